"""Find the source of an answer: the cells of the notebook, or the statements of the script, that
call its check.

An answer is always made anew from its source, in notebooks as in grades, so both judge the same.
"""

import ast
import linecache
import sys
from collections.abc import Sequence
from textwrap import dedent
from types import CodeType
from typing import Any, NamedTuple

from cypresskit import session
from cypresskit.isolated.answer import Cell
from cypresskit.isolated.process import ForkServer
from cypresskit.teach import bindings

LAMBDA = "_lambda"  # the name of a function that was written into the call of its check


class AnswerSource(NamedTuple):
    """The source of an answer."""

    cells: Sequence[str]  #: in the order in which they run
    name: str  #: the name that they give to the answer
    server: ForkServer | None = None  #: where it is judged; None for the notebook's own

    def needed_cells(self) -> list[Cell]:
        """Return the cells that the answer needs. None of them sets it if it isn't set at all."""
        cells = [bindings.strip_magics(cell) for cell in self.cells]
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


def find_unread_parameters(cells: Sequence[Cell], name: str) -> list[tuple[int, str]]:
    """Return the places and names of a function's parameters that its source never reads."""
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
    parameters = enumerate(one.arg for one in (*function.args.posonlyargs, *function.args.args))
    return [] if "locals" in read else [each for each in parameters if each[1] not in read]


def _function_in(node: ast.AST, name: str) -> ast.FunctionDef | ast.Lambda | None:
    """Return the function that a statement defines, if it has this name."""
    if isinstance(node, ast.FunctionDef) and node.name == name:
        return node
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        names = (target.id for target in node.targets if isinstance(target, ast.Name))
        return node.value if name in names else None
    return None


def find_source(answer: Any, name: str) -> AnswerSource:
    """Return the source of a value that was passed to a check.

    Parameters
    ----------
    answer
        The value, usually a function.
    name
        The name that the lesson gives it.

    Raises
    ------
    ValueError
        If its source can't be found; the message says why.
    """
    shell = session.running_shell()
    file = getattr(sys.modules["__main__"], "__file__", None) or ""
    cells = _split_file(file) if shell is None else _run_cells(shell, answer)
    names = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
    plain = [bindings.strip_magics(cell) for cell in cells]

    code = getattr(answer, "__code__", None)
    if isinstance(code, CodeType) and not code.co_freevars:
        texts, others = plain, cells
        if shell is None:
            texts = ["".join(linecache.getlines(code.co_filename))]
            others = _split_file(code.co_filename)
        for number in reversed(range(len(texts))):
            if found := _find_definition(texts[number], code):
                later = texts[number + 1 :]
                is_stale = any(bindings.is_set_in(cell, found[1]) for cell in later)
                # If the answer is still this function, a later cell that sets its name has failed
                if is_stale and names.get(found[1]) is answer:
                    return AnswerSource(cells, found[1])
                return AnswerSource([*others, found[0]], found[1])

    known = sorted((key for key, value in names.items() if value is answer), key=name.__ne__)
    for key in known:
        if any(bindings.is_set_in(cell, key) for cell in plain):
            return AnswerSource(cells, key)
    if isinstance(code, CodeType) and code.co_freevars:
        raise ValueError(f"it uses {', '.join(code.co_freevars)} of the function around it")
    raise ValueError("no cell of this notebook defines it" if shell else "its file isn't there")


def _run_cells(shell: Any, answer: Any) -> list[str]:
    """Return the cells that ran, in their order. If the history keeps none, as in a run by nbval,
    they are those that tracebacks would show, the one with the answer's function last.
    """
    if any(cells := [*shell.history_manager.input_hist_raw]):
        return cells
    own = getattr(getattr(answer, "__code__", None), "co_filename", "")
    names = sorted(filter(shell.compile.format_code_name, linecache.cache), key=own.__eq__)
    return ["".join(linecache.getlines(name)) for name in names]


def _split_file(file: str) -> list[str]:
    """Return the statements of a file, each with its line numbers there."""
    text = "".join(linecache.getlines(file))
    tree = bindings.parse_cell(text) or ast.Module([], [])
    return [_cut(text, statement) for statement in tree.body]


def _cut(text: str, statement: ast.stmt) -> str:
    """Return a statement, not indented, with the line numbers that it has in a text."""
    first = _first_line(statement)
    lines = text.splitlines(keepends=True)[first - 1 : statement.end_lineno]
    return "\n" * (first - 1) + dedent("".join(lines))


def _first_line(node: Any) -> int:
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])


def _find_definition(text: str, code: CodeType) -> tuple[str, str] | None:
    """Return a cell with the function of a text that has this code, and its name there."""
    for node in ast.walk(bindings.parse_cell(text) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if _first_line(node) == code.co_firstlineno:
                return _cut(text, node), node.name
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            constants = compile(ast.Expression(node), "", "eval").co_consts
            made = [one for one in constants if isinstance(one, CodeType)][-1]  # after defaults
            if _names(made) == _names(code) and _has_code(node.body, code):
                return f"{LAMBDA} = ({ast.get_source_segment(text, node)})", LAMBDA
    return None


def _names(code: CodeType) -> tuple:
    return code.co_names, code.co_varnames


def _has_code(node: Any, code: CodeType) -> bool:
    """Return whether the instructions of a code come from within a node."""
    begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    places = [(line, column) for line, _, column, _ in code.co_positions() if column]
    return all(begin <= place <= end for place in places)
