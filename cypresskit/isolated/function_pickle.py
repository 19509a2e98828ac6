"""Serialize a notebook's function, with the names that it uses.

Python's pickle writes a function as its module and name, but a notebook isn't a module.
So cloudpickle writes it by value: code, defaults, and the globals that the code names. Functions of
installed modules are written by name. Names whose values can't be serialized, such as open files or
pictures, are left out; using one is reported as an error. Lessons and their checks
(``cypresskit.teach``) are never included.
"""

import importlib
import io
import linecache
import pickle
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle

LESSONS = "cypresskit.teach"
PACKAGE = Path(__file__).parents[1]
INSTALLED = {Path(path).resolve() for path in sysconfig.get_paths().values()} | {PACKAGE.resolve()}
MAX_LINES = 5_000  # of a source file, sent along so that errors can quote it


def pickle_function(function: Callable) -> dict[str, Any]:
    """Serialize a function for ``runner``.

    Returns
    -------
    dict
        ``pickle``; the ``missing`` names with their types; and the source ``lines`` of each file of
        its code.
    """
    buffer = io.BytesIO()
    carrier = _FunctionPickler(buffer)
    before = cloudpickle.list_registry_pickle_by_value()
    try:
        carrier.dump(function)
    finally:
        for name in cloudpickle.list_registry_pickle_by_value() - before:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])
    lines = {file: linecache.getlines(file)[:MAX_LINES] for file in carrier.files}
    return {"pickle": buffer.getvalue(), "missing": carrier.missing, "lines": lines}


def unpickle_function(data: bytes, absent: Callable[[str], Any]) -> Callable:
    """Return the function that ``pickle_function`` wrote.

    ``absent(name)`` returns the stub of a lesson's object.
    """
    return _FunctionUnpickler(io.BytesIO(data), absent).load()


class _FunctionUnpickler(pickle.Unpickler):
    """Reads the output of ``_FunctionPickler``; ``absent(name)`` replaces names of lessons."""

    def __init__(self, buffer: io.BytesIO, absent: Callable[[str], Any]) -> None:
        super().__init__(buffer)
        self.absent = absent

    def persistent_load(self, name: Any) -> Any:
        return self.absent(str(name))


class _FunctionPickler(cloudpickle.Pickler):
    """Writes a function; collects its ``missing`` names and the ``files`` of its code."""

    def __init__(self, buffer: io.BytesIO, within: "_FunctionPickler | None" = None) -> None:
        super().__init__(buffer)
        self.missing: dict[str, str] = within.missing if within else {}
        self.files: set[str] = within.files if within else set()
        self.trying: set[int] = set()  # ids of values whose trial is running: ends recursion
        self.copies: list[FunctionType] = []  # kept alive: cloudpickle remembers their ids

    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, ModuleType):
            return value.__name__ if value.__name__.startswith(LESSONS) else None
        if isinstance(value, FunctionType | type) and str(value.__module__).startswith(LESSONS):
            return f"{value.__module__}.{value.__qualname__}"
        return None

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, CodeType):
            self.files.add(value.co_filename)
        if isinstance(value, FunctionType | type) and not _is_installed(value):
            if value.__module__ in sys.modules:
                cloudpickle.register_pickle_by_value(sys.modules[value.__module__])
            if isinstance(value, FunctionType):
                value = self._without_missing(value)
        return super().reducer_override(value)

    def _without_missing(self, function: FunctionType) -> FunctionType:
        """Return the function without global names that can't be serialized."""
        names = function.__globals__
        used = [name for name in _find_names(function.__code__) if name in names]
        left = {name: names[name] for name in used if not self._can_be_written(names[name])}
        if not left:
            return function
        self.missing |= {name: type(value).__name__ for name, value in left.items()}
        others = {name: names[name] for name in names if name not in left}
        copy = FunctionType(function.__code__, others, closure=function.__closure__)
        copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        self.copies.append(copy)
        return copy

    def _can_be_written(self, value: Any) -> bool:
        if isinstance(value, ModuleType) or id(value) in self.trying:
            return True
        trial = _FunctionPickler(io.BytesIO(), self)
        trial.trying = self.trying | {id(value)}
        try:
            trial.dump(value)
        except Exception:  # a class may define its own serialization
            return False
        return True


def _find_names(code: CodeType) -> set[str]:
    """Return the names in code, and in the functions inside it."""
    inner = [_find_names(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)


def _is_installed(value: FunctionType | type) -> bool:
    """Return whether a function or class is Python's own, or an installed package's."""
    module = sys.modules.get(value.__module__ or "")
    file = getattr(module, "__file__", None)
    if module is None or value.__module__ == "__main__":
        return False
    return file is None or any(folder in INSTALLED for folder in Path(file).resolve().parents)
