"""Import the names of a package when they are first used."""

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType

from cypresskit.il.errors import did_you_mean

#: Modules of the packages that the extra `draw` installs.
EXTRAS = {"IPython", "anywidget", "bokeh", "ipywidgets", "traitlets"}


class LazyPackage(ModuleType):
    """A package that imports a name's module at the first access to the name."""

    later: Mapping[str, str]  #: the module of each name; ".x" if it is the module ``x`` itself
    others: str  #: the module of all other names, or ""

    def __getattr__(self, name: str):
        where = self.later.get(name, "")
        if not where and name != self.others and not name.startswith("__"):  # Python looks those up
            where = self.others
        module = self._import(where.removeprefix("."), name) if where else None
        if where.startswith("."):
            return module
        if hasattr(module, name):
            return getattr(module, name)
        guess = did_you_mean(name, dir(self))  # IPython doesn't show Python's own suggestion
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}.{guess}")

    def _import(self, module: str, name: str) -> ModuleType:
        try:
            return import_module(f"{self.__name__}.{module}")
        except ModuleNotFoundError as error:
            missing = str(error.name).partition(".")[0]
            if missing not in EXTRAS:
                raise
            what = f"{self.__name__}.{name}".replace("cypresskit.", "ck.", 1)
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
        The submodule of each name; ".x" if it is the submodule ``x`` itself.
    others
        The submodule of all other names; "" for none.
    """
    module = sys.modules[package]
    module.__dict__.update(later=modules, others=others)
    module.__class__ = LazyPackage
