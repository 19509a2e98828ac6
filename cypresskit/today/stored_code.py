"""Machine code of lesson 14's kernel, which is timed without NVIDIA's tools."""

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from cypresskit.today.grid_launch import function_of
from cypresskit.today.sass import SassCode


class _Plain(ast.NodeTransformer):
    """Removes docstrings and ``pass``."""

    def visit_Pass(self, node: ast.Pass) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


def find(kernel: Any, arguments: tuple) -> SassCode | None:
    """Return the stored code, with a kernel's own line numbers, if that is lesson 14's kernel for
    matrices in single precision.
    """
    from cypresskit.today.cuda_kernels import as_written

    types = {(str(getattr(one, "dtype", "")), len(getattr(one, "shape", ()))) for one in arguments}
    try:
        own, reference = (statements_of(function_of(one)) for one in (kernel, as_written))
    except (OSError, TypeError, SyntaxError):  # its source can't be read
        return None
    if [what for what, _ in own] != [what for what, _ in reference] or types != {("float32", 2)}:
        return None
    first = reference[0][1]
    lines = {theirs - first: mine for (_, theirs), (_, mine) in zip(reference, own)}
    text = files("cypresskit.today").joinpath("code.json").read_text(encoding="utf-8")
    stored = json.loads(text)
    return SassCode(**stored | {"text": renumbered(stored["text"], lines)})


def statements_of(function: Callable) -> list[tuple[str, int]]:
    """Return the statements of a function, from its ``def`` on: what each does, and its line."""
    lines, first = inspect.getsourcelines(function)
    (tree,) = ast.parse(textwrap.dedent("".join(lines))).body
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function} isn't defined by def")
    tree.name = ""
    tree.decorator_list = []
    plain = _Plain().visit(tree)
    return [
        (ast.dump(node), first + node.lineno - 1)
        for node in ast.walk(plain)
        if isinstance(node, ast.stmt)
    ]


def renumbered(text: str, lines: Mapping[int, int]) -> str:
    """Return the text of a code with another number for each line."""
    rows = (row.split(" ", 1) for row in text.splitlines())
    return "\n".join(f"{lines[int(line)]} {rest}" for line, rest in rows)
