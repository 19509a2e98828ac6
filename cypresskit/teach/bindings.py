"""Which cell sets which name: the statements of cells, and the names that they set and use.

Cells are text. One that isn't valid Python seems to set what a line of it begins with.
"""

import ast
import builtins
import re
from collections.abc import Sequence
from functools import lru_cache
from symtable import SymbolTable, symtable


@lru_cache(maxsize=4096)
def parse_cell(cell: str) -> ast.Module | None:
    """Return a cell's syntax tree, or None if it isn't valid Python."""
    try:
        return ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # null bytes; endless brackets
        return None


def strip_magics(cell: str) -> str:
    """Return a cell without the lines that only IPython understands, such as ``%timeit`` and
    ``!ls``.
    """
    if parse_cell(cell):
        return cell
    return re.sub(r"^( *)(\w+ *= *)?[%!].*", r"\1\2None", cell, flags=re.M)


def find_bound_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement sets or changes, wholly or in part. Names inside a function
    or a class don't count.
    """
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            target: ast.AST = node
            while isinstance(target, ast.Attribute | ast.Subscript):
                target = target.value
            names.add(getattr(target, "id", ""))
    return names - {""}


def is_set_in(cell: str, name: str) -> bool:
    """Whether a cell sets a name; of one that isn't Python, whether it seems to."""
    tree = parse_cell(cell)
    if tree is None:
        return bool(re.search(rf"^(def )?{re.escape(name)} *[=(]", cell, re.M))
    return any(name in find_bound_names(statement) for statement in tree.body)


def find_last_setting(cells: Sequence[str], name: str) -> str:
    """Return the last cell that sets a name, or ""."""
    return next((cell for cell in reversed(cells) if is_set_in(strip_magics(cell), name)), "")


def find_setting_lines(cell: str, names: set[str]) -> list[int]:
    """Return the first lines of the statements of a cell that set one of ``names``."""
    tree = parse_cell(cell)
    body = tree.body if tree else []
    return [statement.lineno for statement in body if find_bound_names(statement) & names]


def find_used_names(code: str) -> set[str]:
    """Return the names that code uses but doesn't set itself, without Python's own."""
    try:
        table = symtable(code, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return _find_used(table) - vars(builtins).keys()


def _find_used(table: SymbolTable) -> set[str]:
    top = table.get_type() == "module"
    symbols = table.get_symbols()
    taken = {s.get_name() for s in symbols if s.is_referenced() and (top or s.is_global())}
    return taken.union(*(_find_used(child) for child in table.get_children()))


def find_needed_cells(cells: Sequence[str], code: str) -> list[int]:
    """Return the numbers, in order, of the cells that set what ``code`` uses, and of those that set
    what these use.
    """
    wanted = find_used_names(code)
    resolved = set[str]()
    chosen = set[int]()
    while wanted - resolved:
        name = min(wanted - resolved)
        resolved.add(name)
        for number in reversed([n for n, cell in enumerate(cells) if is_set_in(cell, name)]):
            chosen.add(number)
            wanted |= find_used_names(cells[number])
            if is_set_anew_in(cells[number], name):
                break
    return sorted(chosen)


def find_dependencies(cells: Sequence[str], code: str) -> set[str]:
    """Return the names that ``code`` depends on: those that it uses, and those that are used where
    these are set. Names that a cell only prints aren't among them.
    """
    statements = [
        statement for cell in cells for statement in (parse_cell(cell) or ast.Module([], [])).body
    ]
    pairs = [
        (find_bound_names(statement), find_used_names(ast.unparse(statement)))
        for statement in statements
    ]
    names = find_used_names(code)
    while True:
        more = set[str]().union(*(used for sets_, used in pairs if sets_ & names))
        if more <= names:
            return names
        names |= more


def is_set_anew_in(cell: str, name: str) -> bool:
    """Whether a cell gives a name a new value, which depends on no earlier one.

    In ``n += 1`` it does; an ``n`` that is set in a loop or a branch may.
    """
    tree = parse_cell(cell)
    if tree is None:
        return True
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name == name:
                return True
            continue  # what it uses is looked up when it is called
        nodes = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name]
        if nodes:
            is_assignment = isinstance(statement, ast.Assign | ast.AnnAssign)
            return is_assignment and all(isinstance(node.ctx, ast.Store) for node in nodes)
    return True
