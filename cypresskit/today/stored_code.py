"""Machine code of the workbook's own kernels, which are timed without NVIDIA's tools."""

import ast
import inspect
import json
import textwrap
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from cypresskit.today.sass import SassCode


@cache
def known() -> dict[str, dict]:
    """Return the stored code: the fields of each ``SassCode``, by the kernel's key."""
    text = files("cypresskit.today").joinpath("code.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def find(kernel: Any, arguments: tuple) -> SassCode | None:
    """Return the code of a kernel for such arguments if it is stored, with its own line numbers."""
    function = getattr(kernel, "py_func", kernel)
    try:
        key = key_of(function, arguments)
        first = inspect.getsourcelines(function)[1]
    except (OSError, TypeError, SyntaxError):  # its source can't be read
        return None
    if key not in known():
        return None
    return SassCode(**known()[key] | {"text": moved(known()[key]["text"], first)})


def moved(text: str, by: int) -> str:
    """Return the text of a code whose lines are moved."""
    rows = (row.split(" ", 1) for row in text.splitlines())
    return "\n".join(f"{int(line) + by} {rest}" for line, rest in rows)


def key_of(function: Callable, arguments: tuple) -> str:
    """Return what tells kernels apart: their source without names and comments, the values from
    around them, and the types of their arguments.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    statements = tree.body[0].body  # type: ignore[attr-defined]
    if ast.get_docstring(tree.body[0]) is not None:  # type: ignore[arg-type]
        statements = statements[1:]
    body = ast.unparse(ast.Module(statements, []))
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    around = inspect.getclosurevars(function)
    values = {name: value for name, value in around.nonlocals.items() if not callable(value)}
    types = [
        (str(getattr(one, "dtype", type(one))), len(getattr(one, "shape", ()))) for one in arguments
    ]
    return sha256(repr((body, names, sorted(values.items()), types)).encode()).hexdigest()[:16]
