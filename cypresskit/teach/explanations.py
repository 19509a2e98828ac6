"""The place for an explanation, one sentence, below each exercise: a cell whose source contains it.

The sentence is between two lines of quotes, so it stays in the notebook whatever is run, restarted
or cleared. ``cypresskit grade`` reads it there.
"""

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

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


def find_calls(cell: str, values: dict[str, Any]) -> Iterator[str | None]:
    """Yield the texts of the calls of ``explanation`` in a cell; None if only a run would give it.

    ``values`` has the values of the names that earlier cells set, and gets this cell's.
    """
    tree = parse_cell(read_cell(cell))
    for statement in tree.body if tree else ():
        value = _evaluate(statement.value, values) if isinstance(statement, ast.Assign) else None
        values |= dict.fromkeys(find_bound_names(statement), value)
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        for call in calls:
            if getattr(call.func, "attr", getattr(call.func, "id", "")) == "explanation":
                text = _evaluate(call.args[0], values) if len(call.args) == 1 else None
                yield text if text is None else str(text)


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """Return the value of a constant or a name, or of texts joined by ``+`` or in a format.

    That of anything else is None.
    """
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return values.get(node.id)
        case ast.FormattedValue(conversion=-1, format_spec=None):
            value = _evaluate(node.value, values)
            return value if value is None else str(value)
        case ast.BinOp(op=ast.Add()):
            parts = [node.left, node.right]
        case ast.JoinedStr():
            parts = node.values
        case _:
            return None
    with suppress(TypeError, RecursionError):
        return "".join(_evaluate(part, values) for part in parts)[:MAX_CHARACTERS]
