"""Packages whose names are imported when they are first used."""

import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType

from cypresskit.il.errors import did_you_mean


class LazyPackage(ModuleType):
    """A package that imports the module of a name when the name is first asked for."""

    later: Mapping[str, str]
    others: str

    def __getattr__(self, name: str):
        where = self.later.get(name)
        if where == "":
            return self._import(name, name)
        if where is None and not name.startswith("__"):  # which Python itself may ask for
            where = self.others if name != self.others else ""
        module = self._import(where, name) if where else None
        if hasattr(module, name):
            return getattr(module, name)
        guess = did_you_mean(name, dir(self))  # Python's own isn't shown by IPython
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}.{guess}")

    def _import(self, module: str, name: str) -> ModuleType:
        what = f"{self.__name__}.{name}".replace("cypresskit.", "ck.", 1)
        try:
            return import_module(f"{self.__name__}.{module}")
        except RuntimeError as error:
            if os.path.expanduser("~") != "~":
                raise
            wanted = f"{what} needs a home directory, and none is known here: set HOME, to /tmp say"
            raise ImportError(wanted) from error
        except ModuleNotFoundError as error:
            wanted = f"{what} needs {error.name}: pip install 'cypresskit[draw]'"
            raise ImportError(wanted) from error

    def __setattr__(self, name: str, value: object) -> None:
        """Python enters each submodule that it imports: one called like its view gives way."""
        if isinstance(value, ModuleType) and self.later.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> Iterable[str]:
        names = {*vars(self), *self.later}
        if self.others:
            names |= {*dir(import_module(f"{self.__name__}.{self.others}"))}
        return sorted(names)


def import_later(package: str, modules: Mapping[str, str], *, others: str = "") -> None:
    """Let ``package`` import each name of ``modules`` from that module of its own (where that is
    "", the name is a module), and all other names from its module ``others``, when they are first
    used.
    """
    module = sys.modules[package]
    module.__dict__.update(later=modules, others=others)
    module.__class__ = LazyPackage
