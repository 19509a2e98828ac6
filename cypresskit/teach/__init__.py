"""Exercises: for each lesson a module with its checks and helpers, ``ck.teach.register_block`` for
``l01_...``.

A check runs what a student wrote and returns a ``Verdict``: whether it is right, what was found,
where to look. It never raises.
"""

from importlib import import_module
from pkgutil import iter_modules

import cypresskit.teach.notebook  # noqa: F401  (which shows verdicts)
from cypresskit import published
from cypresskit.teach.check import Verdict

__all__ = ["Verdict", "published"]

#: What modules are called here: lessons without their number.
MODULES = {
    module.name.split("_", 1)[1] if module.name[1:3].isdigit() else module.name: module.name
    for module in iter_modules(__path__)
}


def __getattr__(name: str):
    """A lesson's module, imported when first used."""
    if name in MODULES:
        return import_module(f"cypresskit.teach.{MODULES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
