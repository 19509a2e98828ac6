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
        lines = lines_of(function)
    except (OSError, TypeError, SyntaxError):  # its source can't be read
        return None
    if key not in known():
        return None
    return SassCode(**known()[key] | {"text": renumbered(known()[key]["text"], lines.__getitem__)})


def renumbered(text: str, number: Callable[[int], int]) -> str:
    """Return the text of a code with another number for each line."""
    rows = (row.split(" ", 1) for row in text.splitlines())
    return "\n".join(f"{number(int(line))} {rest}" for line, rest in rows)


def lines_of(function: Callable) -> list[int]:
    """Return the lines of the function's ``def`` and of its statements. Stored code has the places
    in this list as its lines, because comments and ``pass`` move the source's.
    """
    first = inspect.getsourcelines(function)[1]
    nodes = ast.walk(_tree(function))
    return [first + node.lineno - 1 for node in nodes if isinstance(node, ast.stmt)]


def _tree(function: Callable) -> ast.FunctionDef:
    """Return a function's syntax without its docstring, and without each ``pass`` that isn't its
    block's only statement.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function} isn't defined by def")
    if ast.get_docstring(tree) is not None:
        del tree.body[0]
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                kept = [one for one in block if not isinstance(one, ast.Pass)]
                setattr(node, name, kept or block)
    return tree


def key_of(function: Callable, arguments: tuple) -> str:
    """Return what tells kernels apart: their source without names, comments and needless ``pass``,
    the values from around them, and the types of their arguments.
    """
    body = ast.unparse(ast.Module(_tree(function).body, []))
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    around = inspect.getclosurevars(function)
    values = {name: value for name, value in around.nonlocals.items() if not callable(value)}
    types = [
        (str(getattr(one, "dtype", type(one))), len(getattr(one, "shape", ()))) for one in arguments
    ]
    return sha256(repr((body, names, sorted(values.items()), types)).encode()).hexdigest()[:16]
