"""Import the names of a package when they are first used."""

import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType

from cypresskit.il.errors import did_you_mean

#: Modules of the packages that the extra `draw` installs.
EXTRAS = {"IPython", "anywidget", "bokeh", "ipywidgets", "traitlets"}


class LazyPackage(ModuleType):
    """A package that imports a name's module at the first access to the name."""

    later: Mapping[str, str]  #: the module of each name; "" if the name is itself a module, ".x" if
    #: it is another name of the module ``x``
    others: str  #: the module of all other names, or ""

    def __getattr__(self, name: str):
        where = self.later.get(name)
        if where == "":
            return self._import(name, name)
        if where and where.startswith("."):
            return self._import(where[1:], name)
        if where is None and not name.startswith("__"):  # Python itself looks up dunder names
            where = self.others if name != self.others else ""
        module = self._import(where, name) if where else None
        if hasattr(module, name):
            return getattr(module, name)
        guess = did_you_mean(name, dir(self))  # IPython doesn't show Python's own suggestion
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}.{guess}")

    def _import(self, module: str, name: str) -> ModuleType:
        what = f"{self.__name__}.{name}".replace("cypresskit.", "ck.", 1)
        try:
            return import_module(f"{self.__name__}.{module}")
        except RuntimeError as error:
            if os.path.expanduser("~") != "~":
                raise
            message = f"{what} needs a home directory: set HOME, for example to /tmp"
            raise ImportError(message) from error
        except ModuleNotFoundError as error:
            missing = str(error.name).partition(".")[0]
            if missing in sys.stdlib_module_names:
                advice = f"this Python lacks {missing}. It needs Linux: on Windows, use WSL"
                raise ImportError(f"{what} doesn't work here: {advice}") from error
            if missing not in EXTRAS:
                raise
            message = f"{what} needs {missing}: pip install 'cypresskit[draw]'"
            raise ImportError(message) from error

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute. For a submodule whose name also names an object in it, set that.

        Python sets each imported submodule as an attribute of its package.
        """
        if isinstance(value, ModuleType) and self.later.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> Iterable[str]:
        names = {*vars(self), *self.later}
        if self.others:
            names |= {*dir(import_module(f"{self.__name__}.{self.others}"))}
        return sorted(names)


def import_later(package: str, modules: Mapping[str, str], *, others: str = "") -> None:
    """Make a package import names at first use.

    Parameters
    ----------
    package
        The package's full name.
    modules
        The submodule of each name; "" if the name is itself a submodule, ".x" if it is another name
        of the submodule ``x``.
    others
        The submodule of all other names; "" for none.
    """
    module = sys.modules[package]
    module.__dict__.update(later=modules, others=others)
    module.__class__ = LazyPackage
