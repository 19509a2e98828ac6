"""Find the source of an answer: the cells of the notebook that calls its check.

An answer is always made anew from its source, in notebooks as in grades, so both judge the same.
"""

import ast
import linecache
from collections.abc import Sequence
from typing import Any, NamedTuple

from cypresskit import session
from cypresskit.isolated.answer import Cell
from cypresskit.isolated.process import ForkServer
from cypresskit.teach import bindings


class AnswerSource(NamedTuple):
    """The source of an answer."""

    cells: Sequence[str]  #: in the order in which they run
    name: str  #: the name that they give to the answer
    server: ForkServer | None = None  #: where it is judged; None for the notebook's own

    def needed_cells(self) -> list[Cell]:
        """Return the cells that the answer needs. None of them sets it if it isn't set at all."""
        cells = [bindings.read_cell(cell) for cell in self.cells]
        numbers = bindings.find_needed_cells(cells, self.name)
        needed = bindings.find_dependencies([cells[number] for number in numbers], self.name)
        return [
            Cell(
                cells[number],
                self.name if bindings.is_set_in(cells[number], self.name) else "",
                bindings.find_setting_lines(cells[number], needed),
            )
            for number in numbers
        ]


def find_all_names(cells: Sequence[Cell]) -> set[str]:
    """Return all names and attributes that stand in cells."""
    nodes = [
        node
        for cell in cells
        for node in ast.walk(bindings.parse_cell(cell.source) or ast.Module([], []))
    ]
    names = {
        alias.name
        for node in nodes
        for alias in getattr(node, "names", ())
        if isinstance(alias, ast.alias)
    }
    return names | {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}


def find_parameters(cells: Sequence[Cell], name: str) -> list[tuple[str, bool]]:
    """Return the names of a function's parameters, and whether its source reads each."""
    functions = [
        function
        for cell in cells
        for node in ast.walk(bindings.parse_cell(cell.source) or ast.Module([], []))
        if (function := _function_in(node, name))
    ]
    if not functions:
        return []
    function = functions[-1]
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    parameters = (one.arg for one in (*function.args.posonlyargs, *function.args.args))
    return [(each, bool(read & {each, "locals"})) for each in parameters]


def _function_in(node: ast.AST, name: str) -> ast.FunctionDef | ast.Lambda | None:
    """Return the function that a statement defines, if it has this name."""
    if isinstance(node, ast.FunctionDef) and node.name == name:
        return node
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        names = (target.id for target in node.targets if isinstance(target, ast.Name))
        return node.value if name in names else None
    return None


def find_source(answer: Any, name: str) -> AnswerSource:
    """Return the source of a value that was passed to a check in a notebook.

    Parameters
    ----------
    answer
        The value, usually a function.
    name
        The name that the lesson gives it.

    Raises
    ------
    ValueError
        If no cell sets it.
    """
    if (shell := session.running_shell()) is None:
        raise ValueError("checks work only in a notebook")
    cells = _run_cells(shell)
    known = [key for key, value in shell.user_ns.items() if value is answer]
    for key in sorted(known, key=name.__ne__):
        if any(bindings.is_set_in(bindings.read_cell(cell), key) for cell in cells):
            return AnswerSource(cells, key)
    raise ValueError("no cell of this notebook sets it")


def _run_cells(shell: Any) -> list[str]:
    """Return the cells that ran, in their order. If the history keeps none, as in a run by nbval,
    they are those that tracebacks would show.
    """
    if any(cells := [*shell.history_manager.input_hist_raw]):
        return cells
    names = filter(shell.compile.format_code_name, linecache.cache)
    return ["".join(linecache.getlines(name)) for name in names]
