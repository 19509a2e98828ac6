"""A notebook's function as bytes, with the names that it uses.

Python's own pickle writes a function as the name of its module, and a notebook has none. Here a
function or class that is no installed package's is written by value: its code, its defaults, and
those global names that its code mentions. Names that stand for something which can't be written,
an open file or a picture, are left out, and the bare process says so if they are used. Lessons
and their checks (``cypresskit.teach``) are never taken along.
"""

import builtins
import importlib
import io
import linecache
import marshal
import pickle
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import CellType, CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

LESSONS = "cypresskit.teach"
PACKAGE = Path(__file__).parents[1]
INSTALLED = {Path(path).resolve() for path in sysconfig.get_paths().values()} | {PACKAGE.resolve()}
LINES = 5_000  # of a file that an error may quote


def carried(function: Callable) -> dict[str, Any]:
    """What ``runner`` needs to make ``function`` again: ``pickle``, the ``missing`` names with
    their types, and the source ``lines`` of the files that its code comes from.
    """
    buffer = io.BytesIO()
    missing = dict[str, str]()
    files = set[str]()
    _Carrier(buffer, missing, files).dump(function)
    lines = {file: linecache.getlines(file)[:LINES] for file in files}
    return {"pickle": buffer.getvalue(), "missing": missing, "lines": lines}


def restored(data: bytes, absent: Callable[[str], Any]) -> Callable:
    """The function that ``carried`` wrote; ``absent(name)`` stands for a lesson's."""
    return _Restorer(io.BytesIO(data), absent).load()


class _Restorer(pickle.Unpickler):
    """Reads what ``_Carrier`` wrote; ``absent(name)`` stands for a lesson's name."""

    def __init__(self, buffer: io.BytesIO, absent: Callable[[str], Any]) -> None:
        super().__init__(buffer)
        self.absent = absent

    def persistent_load(self, name: Any) -> Any:
        return self.absent(str(name))


class _Carrier(pickle.Pickler):
    """Writes functions, classes and modules; see this module."""

    def __init__(self, buffer: io.BytesIO, missing: dict[str, str], files: set[str]) -> None:
        super().__init__(buffer)
        self.missing, self.files = missing, files
        self.trying: set[int] = set()
        self.namespaces: dict[int, dict] = {}  # of functions that share their global names

    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, ModuleType):
            return value.__name__ if value.__name__.startswith(LESSONS) else None
        if isinstance(value, FunctionType | type) and str(value.__module__).startswith(LESSONS):
            return f"{value.__module__}.{value.__qualname__}"
        return None

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, MappingProxyType):
            return MappingProxyType, (dict(value),)
        if isinstance(value, CellType):
            return make_cell, (), _contents(value), None, None, fill_cell
        if isinstance(value, CodeType):
            self.files.add(value.co_filename)
            return marshal.loads, (marshal.dumps(value),)
        if isinstance(value, FunctionType) and not _importable(value):
            return self._function(value)
        if isinstance(value, type) and not _importable(value):
            return self._class(value)
        return NotImplemented

    def _function(self, function: FunctionType) -> tuple:
        state = {
            "globals": self._globals(function),
            "defaults": function.__defaults__,
            "keywords": function.__kwdefaults__,
            "attributes": {k: v for k, v in vars(function).items() if k != "__wrapped__"},
            "name": function.__name__,
        }
        namespace = self.namespaces.setdefault(id(function.__globals__), {})
        made = (function.__code__, function.__closure__, namespace)
        return make_function, made, state, None, None, fill_function

    def _globals(self, function: FunctionType) -> dict[str, Any]:
        """The global names that a function's code mentions, but for what can't be written."""
        taken = {}
        for name in sorted(_mentioned(function.__code__)):
            if name not in function.__globals__:
                continue
            value = function.__globals__[name]
            if self._can_be_written(value):
                taken[name] = value
            else:
                self.missing[name] = type(value).__name__
        return taken

    def _can_be_written(self, value: Any) -> bool:
        if isinstance(value, ModuleType) or id(value) in self.trying:
            return True
        trial = _Carrier(io.BytesIO(), self.missing, self.files)
        trial.trying = self.trying | {id(value)}
        try:
            trial.dump(value)
        except Exception:  # of whatever writes it
            return False
        return True

    def _class(self, kind: type) -> tuple:
        left = ("__dict__", "__weakref__")
        members = {name: member for name, member in vars(kind).items() if name not in left}
        made = (type(kind), kind.__name__, kind.__bases__)
        return make_class, made, members, None, None, fill_class


def _contents(cell: CellType) -> tuple:
    try:
        return (cell.cell_contents,)
    except ValueError:  # nothing was put there yet
        return ()


def _mentioned(code: CodeType) -> set[str]:
    """The names that some code mentions, that of functions in it included."""
    inner = [_mentioned(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)


def _importable(value: FunctionType | type) -> bool:
    """Whether a new Python finds it by its name, in an installed package."""
    module = sys.modules.get(value.__module__ or "")
    if module is None or value.__module__ == "__main__" or "<locals>" in value.__qualname__:
        return False
    reached: Any = module
    for part in value.__qualname__.split("."):
        reached = getattr(reached, part, None)
    if reached is not value:
        return False
    file = getattr(module, "__file__", None)
    return file is None or any(folder in INSTALLED for folder in Path(file).resolve().parents)


def make_function(code: CodeType, closure: tuple | None, namespace: dict) -> FunctionType:
    namespace |= {"__builtins__": builtins, "__name__": "__main__"}
    return FunctionType(code, namespace, code.co_name, None, closure)


def fill_function(function: FunctionType, state: dict) -> None:
    function.__globals__.update(state["globals"])
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["keywords"]
    function.__name__ = state["name"]
    vars(function).update(state["attributes"])


def make_class(metaclass: type, name: str, bases: tuple) -> type:
    return metaclass(name, bases, {"__module__": "__main__"})


def fill_class(kind: type, members: dict) -> None:
    for name, member in members.items():
        if name not in ("__doc__", "__module__") or member is not None:
            setattr(kind, name, member)


def make_cell() -> CellType:
    return CellType()


def fill_cell(cell: CellType, content: tuple) -> None:
    for value in content:
        cell.cell_contents = value
