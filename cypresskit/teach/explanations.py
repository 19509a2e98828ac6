"""The place for an explanation, one sentence, below each exercise: a cell whose source contains it.

The sentence is between two lines of quotes, so it stays in the notebook whatever is run, restarted
or cleared. ``cypresskit grade`` reads it there.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cypresskit.teach.bindings import find_bound_names, parse_cell, read_cell

OPENS = 'ck.teach.explanation("""'
CLOSES = '""")'
MAX_CHARACTERS = 10_000  # of a text that are read
BEGINS, ENDS = "\ue000", "\ue001"  # of source that stands in a text for what only a run would give
SOURCE = re.compile(f"{BEGINS}[^{ENDS}]*{ENDS}")
PLAIN_FORMAT = re.compile(r"(%[sd%]|\{\w*\}|[^%{}])*")


class Noted:
    """The output below an explanation."""

    def __init__(self, words: int) -> None:
        self.words = words

    def __repr__(self) -> str:
        if not self.words:
            return "Write your sentence between the two lines of quotes, then run this cell."
        noted = "1 word" if self.words == 1 else f"{self.words} words"
        return f"Noted ({noted}). The cell keeps your sentence."


def explanation(text: str) -> Noted:
    """Note an explanation, one sentence; the source of the cell that calls this contains it."""
    return Noted(len(str(text).split()))


def explanation_cell(text: str = "") -> str:
    """Return the source of a cell for an explanation."""
    return f"{OPENS}\n{text}\n{CLOSES}"


class Call(NamedTuple):
    """A call of ``explanation``."""

    text: str  #: with the source, in braces, of what only a run would give
    is_read: bool  #: whether it has one text, some of it without a run


def find_calls(cell: str, values: dict[str, Any]) -> Iterator[Call]:
    """Yield the calls of ``explanation`` in a cell.

    ``values`` has the values of the names that earlier cells set, and gets this cell's.
    """
    tree = parse_cell(read_cell(cell))
    for statement in tree.body if tree else ():
        is_plain = isinstance(statement, ast.Expr | ast.Assign)
        known = values if is_plain else {}  # others may set a name before they use it
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and _name(call.func) == "explanation":
                yield _read_call(call, known)
        value = _evaluate(statement.value, values) if isinstance(statement, ast.Assign) else None
        for name in find_bound_names(statement):
            values.pop(name, None)
        for target in getattr(statement, "targets", ()):
            is_kept = isinstance(value, str | int | float)  # others may change in place
            if isinstance(target, ast.Name) and is_kept and not SOURCE.fullmatch(str(value)):
                values[target.id] = value


def _read_call(call: ast.Call, values: Mapping[str, Any]) -> Call:
    given = [*call.args, *(each.value for each in call.keywords)]
    texts = [str(_evaluate(each, values)) for each in given]
    text = " / ".join(filter(str.strip, texts))
    is_read = len(texts) == 1 and bool(SOURCE.sub("", texts[0]).strip())
    return Call(text.replace(BEGINS, "{").replace(ENDS, "}"), is_read)


def _name(function: ast.expr) -> str:
    """Return the name by which a function is called, without its module's."""
    return getattr(function, "attr", getattr(function, "id", ""))


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """Return the value of a constant or a name, or of texts that are joined or formatted.

    That of anything else is its source, between ``BEGINS`` and ``ENDS``.
    """
    try:
        return _value(node, values)
    except (TypeError, LookupError, ValueError, AttributeError, RecursionError):
        pass
    try:
        return f"{BEGINS}{ast.unparse(node).removeprefix('{').removesuffix('}')}{ENDS}"
    except RecursionError:
        return f"{BEGINS}...{ENDS}"


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return values[node.id]
        case ast.FormattedValue(conversion=-1, format_spec=None):
            return str(_evaluate(node.value, values))
        case ast.JoinedStr():
            text = "".join(_evaluate(part, values) for part in node.values)
        case ast.BinOp(op=ast.Add()):
            text = "".join(_evaluate(part, values) for part in (node.left, node.right))
        case ast.BinOp(op=ast.Mod()):
            given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            text = _template(node.left, values) % tuple(_evaluate(each, values) for each in given)
        case ast.Call(func=ast.Attribute(value=template, attr="format")):
            named = {str(each.arg): _evaluate(each.value, values) for each in node.keywords}
            given = [_evaluate(each, values) for each in node.args]
            text = _template(template, values).format(*given, **named)
        case ast.Dict() | ast.List() | ast.Tuple() | ast.Set():
            return ast.literal_eval(node)
        case _:
            raise ValueError("only a run would give it")
    return text[:MAX_CHARACTERS]


def _template(node: ast.expr, values: Mapping[str, Any]) -> str:
    """Return a format without widths, which may be huge."""
    text = _evaluate(node, values)
    if not PLAIN_FORMAT.fullmatch(text):
        raise ValueError("it has more than places")
    return text
