"""Exercises: a module for each lesson, ``ck.teach.register_block`` and so on, with what a lesson needs and its checks.

A check runs what a student wrote and returns a ``Verdict``: whether it is right, what was found, where to look. It
never raises. ``book`` makes the notebooks, ``magics`` are for cells of IL.
"""

from importlib import import_module
from pkgutil import iter_modules

from cypresskit.teach.verdict import Verdict

__all__ = ["Verdict"]


def __getattr__(name: str):
    """A lesson's module, imported when first used."""
    if any(module.name == name for module in iter_modules(__path__)):
        return import_module(f"cypresskit.teach.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
