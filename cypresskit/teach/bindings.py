"""Which cell sets which name: the statements of cells, and the names that they set and use.

Cells are text, which IPython reads (``read_cell``). One that isn't Python even so seems to set what
a line of it begins with.
"""

import ast
import builtins
import re
from collections.abc import Sequence
from functools import lru_cache
from symtable import SymbolTable, symtable
from typing import NamedTuple

#: Magics that run code in the notebook, and the patterns of their options.
OPTIONS = {
    "time": r"(--no-raise-error\s+)*",
    "prun": r"(-[rq]\s+|-[DlsT]\s*\S+\s+)*",
    "capture": r".*",
}
AUTOMAGIC = re.compile(r"\s*(time|prun) +[^=!><\s].*\s*")  # a cell of one line, without its %
#: What IPython may have to replace. It reads the whole cell again for each.
ESCAPED = re.compile(r"^\s*[%!?,;/]|= *[%!]|\?\s*$", re.M)
MAX_READING = 1_000_000  # characters times replacements: a second or two


@lru_cache(maxsize=4096)
def parse_cell(cell: str) -> ast.Module | None:
    """Return a cell's syntax tree, or None if it isn't valid Python."""
    try:
        return ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # null bytes; endless brackets
        return None


@lru_cache(maxsize=4096)
def read_cell(cell: str) -> str:
    """Return the Python that a cell runs, as IPython reads it, in the same lines.

    In place of ``%time``, ``%prun``, ``%%time``, ``%%prun`` and ``%%capture`` stands the code that
    they run. Other magics and system commands do nothing: they are ``None`` or, if a name gets
    their value, the call of ``get_ipython()`` that IPython makes, which is refused when it runs.
    """
    if parse_cell(cell) or len(cell) * len(ESCAPED.findall(cell)) > MAX_READING:
        return cell
    try:
        return _read(cell)
    except Exception:  # whatever IPython raises on what isn't a cell
        return cell


def _read(cell: str) -> str:
    from IPython.core.inputtransformer2 import TransformerManager

    cell = re.sub("\r\n?", "\n", cell)
    if AUTOMAGIC.fullmatch(cell):
        cell = f"%{cell.strip()}"
    text = cell if parse_cell(cell) else TransformerManager().transform_cell(cell)
    lines = text.split("\n")
    nodes = [*ast.walk(parse_cell(text) or ast.Module([], []))]
    for node in nodes:
        if isinstance(node, ast.Expr | ast.Assign) and (magic := find_magic(node.value)):
            line = lines[node.lineno - 1].encode()
            code = _replacement(magic, is_value=isinstance(node, ast.Assign))
            if code is not None:  # a magic ends its line
                lines[node.lineno - 1] = line[: node.value.col_offset].decode() + code
    blank = 0 if cell == text else len(cell) - len(cell.lstrip("\n"))
    return "\n" * blank + "\n".join(lines)


class Magic(NamedTuple):
    """A magic, or a system command, whose ``name`` is ``!``."""

    name: str
    line: str  #: what follows the name
    body: str | None = None  #: of a cell's magic


def find_magic(call: ast.AST) -> Magic | None:
    """Return the magic that a call of ``get_ipython()`` stands for, or None."""
    if not isinstance(call, ast.Call) or not ast.unparse(call.func).startswith("get_ipython()."):
        return None
    values = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
    if len(values) == 1:
        return Magic("!", *values)
    return Magic(*values) if 2 <= len(values) <= 3 else None


def _replacement(magic: Magic, is_value: bool) -> str | None:
    """Return the code in place of a magic's call; None if the call stays."""
    name, line, body = magic
    if name not in OPTIONS:
        return None if is_value or body is not None else "None"
    options = re.match(OPTIONS[name], f"{line} ")
    code = line[options.end() :] if options else line
    if body is None:
        tree = parse_cell(code := _read(code))
        if tree and is_value and [type(each) for each in tree.body] == [ast.Expr]:
            return ast.unparse(tree)
        return code if tree and not is_value else None
    if name == "capture":
        output = next((word for word in line.split() if word[0] != "-"), "")
        code = f"{output} = get_ipython().run_line_magic('capture', '')" if output else ""
    elif name == "time" and code.strip():
        return None
    return f"{code}\n{_read(body)}"


def find_refused_magic(cells: Sequence[str], name: str) -> str:
    """Return the magic of the last cell that would set a name but isn't run, such as "%%bash", or
    that runs a file, "%run"; or "".
    """
    for cell in reversed(cells):
        for node in ast.walk(parse_cell(read_cell(cell)) or ast.Module([], [])):
            magic = find_magic(node)
            if magic and magic.body is not None and is_set_in(read_cell(magic.body), name):
                return f"%%{magic.name}"
        if found := re.search(r"^ *(%(run|load|store|pylab))\b", cell, re.M):
            return found[1]
    return ""


def find_bound_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement sets or changes, wholly or in part. Names inside a
    function, a class or a comprehension don't count.
    """
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set()
    loops = (each.target for each in ast.walk(statement) if isinstance(each, ast.comprehension))
    inside = {node for target in loops for node in ast.walk(target)}
    for node in ast.walk(statement):
        if node in inside:
            continue
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
