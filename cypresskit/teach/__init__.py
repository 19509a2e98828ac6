"""Exercises: a folder for each lesson with its checks, helpers and pictures, such as
``ck.teach.register_block`` for ``l01_...``.

A check runs what a student wrote and returns a ``Verdict``: whether it is right, what was found,
and where to look. It never raises. Importing this package changes nothing in a running IPython.
``ck.draw.load()`` or ``%load_ext cypresskit`` makes IPython show verdicts in color, and treat
``exit`` as an error.
"""

from importlib import import_module
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

#: The folder of each lesson: its name without the number.
LESSONS = {
    module.name.partition("_")[2]: module.name for module in iter_modules(__path__) if module.ispkg
}


def open_lesson(folder: str) -> None:
    """Let a lesson have the names of its checks and, imported at first use, of its pictures: each
    is in the module of its name.
    """
    package = import_module(f"{__name__}.{folder}")
    modules = {each.name for each in iter_modules(package.__path__) if not each.ispkg}
    pictures = {name: name for name in modules - {"checks"}}
    import_later(package.__name__, pictures, others="checks")


session.register_extension(install)
import_later(__name__, {name: f".{folder}" for name, folder in LESSONS.items()})
for folder in LESSONS.values():
    open_lesson(folder)

if TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType: ...
