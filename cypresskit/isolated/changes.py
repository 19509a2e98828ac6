"""Try which one change makes a student's function right: another operator, name, number or index, a
pair of parentheses, a part left out or added.

``KINDS`` lists what may be wrong with a part of the function's text, which parts these are, and
what is tried in their place. The search ends after so many changes, or events of Python; never by a
clock. So it finds the same on every machine.

It is here because the changed functions run in the answer's process. Its check compares the results
with the right ones.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from inspect import getsource
from itertools import accumulate, combinations, islice, pairwise
from textwrap import dedent
from typing import Any, NamedTuple

MAX_CHANGES = 5_000
MAX_EVENTS = 500_000  # lines, calls and returns, in all changed functions
MAX_CALL_EVENTS = 20_000  # in one call of the function as it is
MAX_ITEMS = 100_000  # of a ``range``, which may run without an event
ARITHMETIC = ["+", "-", "*", "/", "//", "%"]
TESTS = ["<", "<=", ">", ">=", "==", "!="]
KINDS_OF_OPERATORS = dict(
    zip((ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod), ARITHMETIC)
) | dict(zip((ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq), TESTS))
NUMBERS = ["1", "2", "3", "4", "5", "8", "16", "32", "64", "1e3", "1e9"]
FUNCTIONS = ["min", "max", "sum", "len"]
OPERANDS = (
    *(ast.BinOp, ast.Compare, ast.UnaryOp, ast.IfExp),
    *(ast.Call, ast.Subscript, ast.Attribute, ast.Name, ast.Constant),
)
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth"]


class Part(NamedTuple):
    """A part of a text, from byte ``start`` to ``end``; ``text`` is what a change is made of."""

    start: int
    end: int
    text: str

    def is_in(self, other: "Part") -> bool:
        return other.start <= self.start and self.end <= other.end


class FunctionText:
    """A function's text, and its parts.

    Attributes
    ----------
    words
        Its parameters, variables and numbers.
    operands
        Names, numbers, and expressions of them; the longest first.
    values
        Parts that are an expression by themselves, the shortest first: operands, and such as
        ``b * c`` of ``a / b * c``. Then its statements.
    """

    def __init__(self, text: str) -> None:
        self.bytes = text.encode()
        self.lines = [0, *accumulate(map(len, self.bytes.splitlines(keepends=True)))]
        function: Any = next(
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.Lambda)
        )
        body = function.body if isinstance(function.body, list) else [function.body]
        self.nodes: list[Any] = [node for each in body for node in ast.walk(each)]
        arguments = [*function.args.posonlyargs, *function.args.args]
        found = [node for node in self.nodes if isinstance(node, OPERANDS)]
        read = [node for node in found if isinstance(getattr(node, "ctx", ast.Load()), ast.Load)]
        names = {each.arg for each in arguments}
        names |= {node.id for node in found if isinstance(node, ast.Name) and node not in read}
        self.words = sorted(names | {part.text for part in self.numbers()})
        spaces = {node.value for node in self.nodes if isinstance(node, ast.Attribute)}
        parts = [self.part(node) for node in read if node not in spaces]
        self.operands = sorted(parts, key=lambda part: part.start - part.end)
        self.exponents = [
            self.part(node.right)
            for node in found
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
        ]
        self.functions = [self.part(node.func) for node in found if isinstance(node, ast.Call)]
        statements = [node for node in self.nodes if isinstance(node, ast.Assign | ast.AugAssign)]
        self.statements = [*map(self.part, statements)]
        values = sorted({*parts, *self.groups()}, key=lambda part: part.end - part.start)
        self.values = [*values, *self.statements]

    def part(self, node: Any) -> Part:
        """Return the part of a node."""
        start = self.lines[node.lineno - 1] + node.col_offset
        return self.between(start, self.lines[node.end_lineno - 1] + node.end_col_offset)

    def between(self, start: int, end: int) -> Part:
        return Part(start, end, self.bytes[start:end].decode().strip(" ,\n"))

    def changed(self, changes: Iterable[tuple[Part, str]]) -> str:
        """Return the text with other texts in place of parts."""
        made = self.bytes
        for part, new in sorted(changes, reverse=True):
            made = made[: part.start] + new.format(part.text).encode() + made[part.end :]
        return made.decode()

    def groups(self) -> Iterator[Part]:
        """Yield what parentheses would make an operand of."""
        ends = {part.end for part in self.operands if part not in self.functions}
        for start in sorted({part.start for part in self.operands}):
            for end in sorted(end for end in ends if end > start):
                part = self.between(start, end)
                with suppress(SyntaxError):
                    made = ast.parse(part.text.replace("\n", " "), mode="eval").body
                    if isinstance(made, ast.BinOp) and part not in self.operands:
                        yield part

    def operators(self) -> Iterator[tuple[Any, Part]]:
        """Yield operators, each with its node."""
        for node in self.nodes:
            left = getattr(node, "left", getattr(node, "target", None))
            (op, *others) = getattr(node, "ops", [getattr(node, "op", None)])
            symbol = KINDS_OF_OPERATORS.get(type(op), "**" * isinstance(op, ast.Pow))
            if left is not None and symbol and not others:
                start = self.bytes.find(symbol.encode(), self.part(left).end)
                yield node, self.between(start, start + len(symbol))

    def arithmetic(self) -> list[Part]:
        return [part for _, part in self.operators() if part.text not in TESTS]

    def tests(self) -> list[Part]:
        return [part for _, part in self.operators() if part.text in TESTS]

    def extras(self) -> Iterator[Part]:
        """Yield what may be left out: operands, functions, arguments, indexes, lines."""
        for node, operator in self.operators():
            if isinstance(node, ast.BinOp):
                yield self.between(operator.start, self.part(node).end)
                yield self.between(self.part(node).start, operator.end)
        for node in self.nodes:
            if isinstance(node, ast.Subscript):
                yield self.between(self.part(node.value).end, self.part(node).end)
            elif isinstance(node, ast.Call):
                for one, other in pairwise(map(self.part, node.args)):
                    yield self.between(one.start, other.start)
                    yield self.between(one.end, other.end)
        yield from self.functions
        yield from self.statements

    def signs(self) -> Iterator[Part]:
        for part in (self.part(node) for node in self.nodes if isinstance(node, ast.UnaryOp)):
            yield self.between(part.start, part.start + 1)

    def quotients(self) -> Iterator[Part]:
        """Yield quotients; a change is made of the one that isn't rounded."""
        for node, operator in self.operators():
            if operator.text in ("/", "//") and isinstance(node, ast.BinOp):
                start, end, _ = self.part(node)
                before, after = self.bytes[start : operator.start], self.bytes[operator.end : end]
                yield Part(start, end, (before + b"/" + after).decode())

    def numbers(self) -> Iterator[Part]:
        nodes = (node for node in self.nodes if isinstance(node, ast.Constant))
        yield from (self.part(node) for node in nodes if type(node.value) in (int, float))


#: What is wrong with a part, which parts these may be, and what is tried in their place, where {}
#: is the part, and "word" each word of the function.
KINDS: list[tuple[str, Callable[[FunctionText], Iterable[Part]], list[str]]] = [
    ("{} belongs in parentheses", FunctionText.groups, ["({})"]),
    ("{} is too much", FunctionText.extras, [""]),
    ("something else than {} belongs", FunctionText.arithmetic, ARITHMETIC),
    ("something else than {} belongs", FunctionText.tests, TESTS),
    ("{} is too much", FunctionText.signs, [""]),
    ("{} has to be rounded up", FunctionText.quotients, ["(-(-({}) // 1))"]),
    ("{} has to be rounded down", FunctionText.quotients, ["(({}) // 1)"]),
    ("something else than {} belongs", FunctionText.numbers, ["0", "-1", *NUMBERS, "word"]),
    (
        "{} is the wrong way round",
        lambda text: text.operands,
        ["(-({}))", "(1 - ({}))", "(1 / ({}))"],
    ),
    (
        "something else than {} belongs",
        FunctionText.numbers,
        [f"({{}} {sign} {number})" for number in NUMBERS for sign in "*/+-"],
    ),
    (
        "something else than {} belongs",
        lambda text: text.operands,
        ["word", *FUNCTIONS, *(f"{function}(word)" for function in FUNCTIONS), *NUMBERS],
    ),
    ("another power of {} belongs", lambda text: text.operands, ["(({}) ** 2)", "(({}) ** 0.5)"]),
    *(
        (
            f"a {kind} is missing beside {{}}",
            lambda text: text.operands,
            [f"(({{}}) {sign} {word})" for word in ("word", *NUMBERS) for sign in signs],
        )
        for kind, signs in (("factor", "*/"), ("term", "+-"))
    ),
]


def find_changes(text: str) -> Iterator[tuple[str, str]]:
    """Yield a function's text with each change, and what is wrong with it as it was. First come
    those that explain most.
    """
    own = FunctionText(text)
    whole = [(part, "/") for part in own.arithmetic() if part.text == "//"]
    if whole:
        yield own.changed(whole), "`//` rounds down to a whole number: divide by `/`."
    for one, other in combinations(filter(str.isidentifier, own.words), 2):
        turned = {one: other, other: one}
        read = [(part, turned[part.text]) for part in own.operands if part.text in turned]
        if {one, other} == {part.text for part, _ in read} and _is_small(own, read):
            yield own.changed(read), f"`{one}` and `{other}` are exchanged."
    for said, where, instead in KINDS:
        parts = [*dict.fromkeys(where(own))]
        for part in parts:
            if sentence := _sentence(said, part, parts, own):
                for new in instead:
                    for word in own.words if "word" in new else [""]:
                        change = part, new.replace("word", word)
                        if _is_small(own, [change]):
                            yield own.changed([change]), sentence


def _is_small(text: FunctionText, changes: Iterable[tuple[Part, str]]) -> bool:
    """Whether exponents stay as they are, or become a small number: a power may take forever."""
    return not any(
        each.start <= part.start < each.end and new not in NUMBERS[:4]
        for part, new in changes
        for each in text.exponents
    )


def _sentence(said: str, part: Part, parts: Sequence[Part], text: FunctionText) -> str:
    """Return what is wrong with a part, and where it is; "" if nothing is said by it: the part is
    the whole.
    """
    part = text.between(part.start, part.end)
    around = (each for each in text.values if part.is_in(each) and part != each)
    place = next(around, None)
    if place is None and said.startswith(("something", "a factor")):
        return ""
    if place is None:
        return f"{said.format(_named(part, parts, text))}."
    which = _named(part, [each for each in parts if each.is_in(place)], text)
    return f"{said.format(which)} in {_named(place, text.values, text)}."


def _named(part: Part, others: Iterable[Part], text: FunctionText) -> str:
    """Return a part as it is written, and which of those it is that are written so."""
    read = (text.between(each.start, each.end) for each in others)
    starts = sorted({each.start for each in read if each.text == part.text})
    which = starts.index(part.start) if len(starts) > 1 else len(ORDINALS)
    return f"the {ORDINALS[which]} `{part.text}`" if which < len(ORDINALS) else f"`{part.text}`"


class Endless(BaseException):
    """Ends a function that doesn't end by itself; ``except Exception`` doesn't catch it."""


class Trials:
    """Calls functions, for a number of events that is ``left``."""

    def __init__(self) -> None:
        self.left = 0

    def call(self, function: Callable, case: Sequence, most: int) -> float | None:
        """Return a function's number; None if it has none after ``most`` events."""
        arguments = [[*each] if isinstance(each, list) else each for each in case]
        before, self.left = sys.gettrace(), most
        sys.settrace(self._count)
        try:
            return float(function(*arguments))
        except (Exception, Endless):
            return None
        finally:
            sys.settrace(before)

    def _count(self, *_: object) -> Callable:
        self.left -= 1
        if self.left < 0:
            raise Endless
        return self._count


def _bounded_range(*limits: int) -> range:
    if len(made := range(*limits)) > MAX_ITEMS:
        raise Endless
    return made


def run_changes(
    answer: Callable, cases: Sequence[tuple], chosen: Sequence[int] | None = None
) -> list[tuple[int, str, list[float]]]:
    """Return the number of each change that gives numbers, of those that are ``chosen``; what it
    says is wrong with the function; and its results for all cases.
    """
    with redirect_stdout(None), redirect_stderr(None):
        trials = Trials()
        most = []
        for case in cases:
            trials.call(answer, case, MAX_CALL_EVENTS)
            most.append(4 * (MAX_CALL_EVENTS - max(trials.left, 0)) + 200)
        found = []
        left = MAX_EVENTS
        changes = find_changes(dedent(getsource(answer)))
        for number, (text, said) in enumerate(islice(changes, MAX_CHANGES)):
            if (chosen is not None and number not in chosen) or left < 0:
                continue
            own: dict = {}
            with suppress(Exception):
                exec(text, answer.__globals__ | {"range": _bounded_range}, own)
            if not own:
                continue
            results: list[float] = []
            for case, limit in zip(cases, most):
                result = trials.call(next(iter(own.values())), case, limit)
                left -= limit - trials.left
                if result is None:
                    break
                results.append(result)
            else:
                found.append((number, said, results))
        return found
