"""Exercises: for each lesson a folder with its checks, helpers and pictures,
``ck.teach.register_block`` for ``l01_...``.

A check runs what a student wrote and returns a ``Verdict``: whether it is right, what was found,
where to look. It never raises. Importing this changes nothing in a running IPython;
``ck.draw.load()`` or ``%load_ext cypresskit`` lets that show verdicts in colour, say which cell
failed, and take ``exit`` for an error.
"""

from importlib import import_module
from pkgutil import iter_modules

from cypresskit import published, session
from cypresskit.teach.check import Verdict
from cypresskit.teach.explanations import explanation
from cypresskit.teach.notebook import install

__all__ = ["Verdict", "explanation", "published"]

#: What modules are called here: lessons without their number.
MODULES = {
    module.name.split("_", 1)[1] if module.name[1:3].isdigit() else module.name: module.name
    for module in iter_modules(__path__)
}


session.extend(install)


def __getattr__(name: str):
    """A lesson's module, imported when first used."""
    if name in MODULES:
        return import_module(f"cypresskit.teach.{MODULES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
