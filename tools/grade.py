"""Marks: an answer judged from a notebook's text, in a copy of this process, whose package is
untouched.

``judge`` takes a notebook's code cells, and a check as the lesson calls it. Only the cells that the
answer needs are run, in the notebook's order: those that set its name, and the names used there.
Then the check runs. A patched check, device or judge earns no point: the package's functions,
classes and devices are compared before and after. What happened in the kernel in which the notebook
was written doesn't count.

Not proof against code written to deceive this module, which runs in the same process as the answer.
"""

import ast
import builtins
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from symtable import SymbolTable, symtable
from types import FunctionType, ModuleType

import numpy as np

from cypresskit import teach
from cypresskit.devices import Board
from cypresskit.kernels.catalogue import Catalogue
from cypresskit.teach import apart
from cypresskit.teach.check import Verdict, error_text

CHECK = re.compile(r"^(?:\w+ = )?ck\.teach\.(\w+)\.(check_\w+)\((\w+)\)\s*\Z", re.M)
SECONDS = 60.0  # for an exercise, its cells included
LAST = (
    "only the cells that the answer needs are run: does it use something that was set elsewhere, or"
    " by hand?"
)


def judge(cells: Sequence[str], check: str) -> Verdict:
    """The verdict on the answer in a notebook's code ``cells`` by ``check``, spelled as in the
    lesson, ``ck.teach.bus.check_seconds(seconds)``. It never raises, whatever the cells do.
    """
    try:
        return apart.call(apart_judged, cells, check, seconds=SECONDS)
    except apart.Lost as lost:
        return Verdict(False, f"The answer could not be judged: {lost}.", lost.hint)


def apart_judged(cells: Sequence[str], check: str) -> Verdict:
    """The judge's side in the copy."""
    match = CHECK.search(check)
    if not match:
        raise ValueError(f"{check} is no check")
    module, name, answer = match.groups()
    run = getattr(import_module(f"cypresskit.teach.{teach.MODULES[module]}"), name)
    before, cells = _state(), [_plain(cell) for cell in cells]
    names: dict = {"__name__": "__main__", "ck": sys.modules["cypresskit"], "np": np}
    for cell in needed(cells, answer):
        where = f"The cell of {answer}" if _sets(cell, answer) else f"A cell that {answer} needs"
        try:
            exec(compile(cell, "<cell>", "exec"), names)
        except MemoryError:
            raise
        except SyntaxError as error:
            return Verdict(
                False,
                f"{where} isn't valid Python: {error.msg}.",
                f"line {error.lineno} of that cell.",
            )
        except Exception as error:
            return Verdict(False, f"{where} stops with {error_text(error)}.", LAST)
    if answer not in names:
        return Verdict(False, f"There is no {answer}.", f"a cell has to set {answer}.")
    verdict = None if _changed(before) else run(names[answer])
    if changed := _changed(before):
        finding = f"This changes the workbook's own {changed[0]}."
        return Verdict(False, finding, "an answer leaves the workbook as it is.")
    assert verdict
    return verdict


def _plain(cell: str) -> str:
    """A cell without the lines that IPython alone understands, such as ``%timeit`` and ``!ls``."""
    try:
        ast.parse(cell)
        return cell
    except SyntaxError:
        return re.sub(r"^( *)[%!].*", r"\1pass", cell, flags=re.M)


def needed(cells: Sequence[str], asked: str) -> list[str]:
    """The cells that set what the code ``asked`` uses, and those that set what these use, in
    order.
    """
    wanted, seen, chosen = _uses(_table(asked)), set[str](), set[int]()
    while wanted - seen:
        name = (wanted - seen).pop()
        seen.add(name)
        for number in reversed([number for number, cell in enumerate(cells) if _sets(cell, name)]):
            chosen.add(number)
            wanted |= _uses(_table(cells[number]))
            if _sets_anew(cells[number], name):
                break
    return [cells[number] for number in sorted(chosen)]


def _table(cell: str) -> SymbolTable:
    """A cell's symbols; none of one that isn't Python, which is found out when it runs."""
    try:
        return symtable(cell, "<cell>", "exec")
    except SyntaxError:
        return symtable("", "<cell>", "exec")


def _uses(table: SymbolTable) -> set[str]:
    """The names that code uses but doesn't set itself."""
    inner = [_uses(child) for child in table.get_children()]
    top = table.get_type() == "module"
    taken = {
        s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global())
    }
    return taken.union(*inner) - vars(builtins).keys()


def _sets(cell: str, name: str) -> bool:
    """Whether a cell sets a name; of one that isn't Python, whether it seems to."""
    try:
        symbols = {
            symbol.get_name(): symbol for symbol in symtable(cell, "<cell>", "exec").get_symbols()
        }
    except SyntaxError:
        return bool(re.search(rf"^(def )?{name} *[=(]", cell, re.M))
    return name in symbols and (symbols[name].is_assigned() or symbols[name].is_imported())


def _sets_anew(cell: str, name: str) -> bool:
    """Whether what a cell sets a name to, before it uses it, hangs on no earlier value: ``n += 1``
    does, and an ``n`` that is set in a loop or a branch may.
    """
    try:
        body = ast.parse(cell).body
    except SyntaxError:
        return True
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name == name:
                return True
            continue  # what it uses is looked up when it is called
        if found := [
            node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name
        ]:
            plain = isinstance(statement, ast.Assign | ast.AnnAssign)
            return plain and all(isinstance(node.ctx, ast.Store) for node in found)
    return True


def _state() -> dict[str, object]:
    """What each name of the package, and of what it rests on, stands for: a function, class, module
    or device.
    """
    state: dict[str, object] = {}
    for name, module in [*sys.modules.items()]:
        if name.split(".")[0] in ("cypresskit", "builtins", "math") or module is np:
            _note(state, module, module.__name__)
    return state


def _changed(before: dict[str, object]) -> list[str]:
    now = _state()
    return sorted(key for key, value in before.items() if now.get(key) != value)


def _note(state: dict[str, object], owner, place: str) -> None:
    for name, value in [*vars(owner).items()]:
        key = f"{place}.{name}"
        if isinstance(value, FunctionType):
            state[key] = id(value), id(value.__code__), repr(value.__defaults__)
        elif isinstance(value, Catalogue):
            state[key] = [(kernel, id(value[kernel])) for kernel in value]
        elif isinstance(value, Board):
            state[key] = id(value), repr(vars(value))
        elif callable(value) or isinstance(
            value, ModuleType | property | classmethod | staticmethod
        ):
            state[key] = id(value)
            if (
                isinstance(value, type)
                and value.__module__ == place
                and place.startswith("cypresskit")
            ):
                _note(state, value, key)
