"""Exercises: a folder for each lesson with its checks, helpers and pictures, such as
``ck.teach.register_block`` for ``l01_...``.

A check runs what a student wrote and returns a ``Verdict``: whether it is right, what was found,
and where to look. It never raises. Importing this package changes nothing in a running IPython.
``ck.draw.load()`` or ``%load_ext cypresskit`` makes IPython show verdicts in color, and treat
``exit`` as an error.
"""

from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from cypresskit import published, session
from cypresskit.editing.steps import starter_text
from cypresskit.lazy import import_later
from cypresskit.teach.check import Verdict
from cypresskit.teach.explanations import explanation
from cypresskit.teach.notebook import install

__all__ = ["Verdict", "explanation", "published", "starter_text"]

#: The names of modules here: lessons without their number.
MODULES = {
    module.name.split("_", 1)[1] if module.name[1:3].isdigit() else module.name: module.name
    for module in iter_modules(__path__)
}


session.register_extension(install)
import_later(__name__, {name: f".{module}" for name, module in MODULES.items()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType: ...
