"""Try which one change makes a student's function right: another operator, name or number, a pair
of parentheses, a part left out or added.

It is here because the changed functions run in the answer's process. Its check compares the results
with the right ones.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from inspect import getsource
from itertools import combinations, combinations_with_replacement, product
from textwrap import dedent

SIGNS = ["+", "-", "*", "/", "//", "<", "<=", ">", ">="]
NUMBERS = ["1", "2", "3", "4", "8", "16", "32", "64", "1e3", "1e9"]


def run_changes(answer: Callable, cases: Sequence[tuple]) -> list[tuple[str, list[float]]]:
    """Return what each change says is wrong with a function, and its results for all cases. First
    come those that explain most. A loop isn't changed: it might not end.
    """
    text = dedent(getsource(answer))
    found = []
    for changed, said in () if re.search(r"\b(while|range)\b", text) else _changes(text):
        with redirect_stdout(None), redirect_stderr(None), suppress(Exception):
            own: dict = {}
            exec(changed, answer.__globals__, own)
            (called,) = own.values()
            found.append((said, [float(called(*case)) for case in cases]))
    return found


def _changes(text: str) -> Iterator[tuple[str, str]]:
    """Yield a function's text with each change, and what is wrong with it as it was."""
    head, body = re.split("(?<=:)", text, maxsplit=1)
    if "//" in body:
        yield head + body.replace("//", "/"), "`//` rounds down to a whole number: divide by `/`."
    words = sorted({*re.findall(r"[\w.]+", body)})
    for one, other in combinations(filter(str.isidentifier, words), 2):
        parts = map(str, re.split(rf"\b({one}|{other})\b", body))
        turned = {one: other, other: one}
        yield (
            head + "".join(turned.get(part, part) for part in parts),
            f"`{one}` and `{other}` are exchanged.",
        )

    tokens = [*re.finditer(r"[\w.]+|//|\*\*|[<>]=|[^\s\w]", body)]
    pairs = combinations_with_replacement(tokens, 2)
    spans = [slice(first.start(), last.end()) for first, last in pairs]
    spans = [span for span in spans if "\n" not in body[span]]
    values = [span for span in spans if _is_value(body, span)]
    single = [span for span in values if body[span] in words]
    bases = [span for span in single if not body[: span.start].rstrip().endswith("**")]
    signs = [span for span in spans if body[span] in SIGNS]
    added = [f"({{}} {sign} {word})" for word in [*words, *NUMBERS] for sign in "*/+-"]
    for said, where, instead in [
        ("`{}` belongs in parentheses", values, ["({})"]),
        ("`{}` is too much", spans, [""]),
        ("something else than `{}` belongs", signs, SIGNS),
        ("another power of `{}` belongs", bases, ["({} ** 2)"]),
        ("something else than `{}` belongs", single, NUMBERS),
        ("something else than `{}` belongs", bases, [*words, "min", "max"]),
        ("`{}` is the wrong way round", values, ["(-({}))", "(1 - ({}))", "(1 / ({}))"]),
        ("something is missing beside `{}`", bases, added),
    ]:
        for new, span in product(instead, where):
            around = (v for v in values if v.start <= span.start and span.stop <= v.stop)
            place = min(around, key=lambda v: (v == span, v.stop - v.start), default=span)
            if place == span and said.startswith("something else"):
                continue  # the part is the whole: nothing is said by it
            changed = body[: span.start] + new.format(body[span]) + body[span.stop :]
            beside = f" in `{body[place]}`" * (place != span)
            yield head + changed, f"{said.format(body[span])}{beside}."


def _is_value(text: str, span: slice) -> bool:
    """Whether a part of a line is an expression by itself, without a sign."""
    if text[span][0] in "+-" or re.match(r"\w\(", text[span.start - 1 :]):
        return False
    with suppress(SyntaxError):
        return not isinstance(ast.parse(text[span], mode="eval").body, ast.Tuple)
    return False
