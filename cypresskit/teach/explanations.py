"""The place for an explanation, one sentence, below each exercise: a cell whose source contains it.

The sentence is between two lines of quotes, so it stays in the notebook whatever is run, restarted
or cleared. ``cypresskit grade`` reads it there.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cypresskit.teach.bindings import find_bound_names, parse_cell, read_cell

OPENS = 'ck.teach.explanation("""'
CLOSES = '""")'
MAX_CHARACTERS = 10_000  # of a text that are read


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

    text: str  #: or its source, if only a run would give it
    is_read: bool  #: whether it has one text, without a run


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
        value = _known(statement.value, values) if isinstance(statement, ast.Assign) else None
        for name in find_bound_names(statement):
            values.pop(name, None)
        for target in getattr(statement, "targets", ()):
            if isinstance(target, ast.Name) and value is not None:
                values[target.id] = value


def _read_call(call: ast.Call, values: Mapping[str, Any]) -> Call:
    given = [*call.args, *(each.value for each in call.keywords)]
    known = [_known(each, values) for each in given]
    texts = [_source(each) if value is None else str(value) for each, value in zip(given, known)]
    text = " / ".join(filter(str.strip, texts))
    return Call(text, bool(text) and len(known) == 1 and None not in known)


def _name(function: ast.expr) -> str:
    """Return the name by which a function is called, without its module's."""
    return getattr(function, "attr", getattr(function, "id", ""))


def _known(node: ast.expr, values: Mapping[str, Any]) -> str | float | None:
    """Return the value of a text or number, or of a name for one; None for anything else."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, ast.Name):
        value = values.get(node.id)
    return value if isinstance(value, str | int | float) else None


def _source(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return "..."
