"""The stub of ``cypresskit.teach`` in a bare process: published figures and the contest's
generator.

A lesson is an ``Absent`` object: a cell may name it, but using it is an error. That ends the cell's
statement, and only those count that set a name that the answer needs.
"""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from cypresskit import published
from cypresskit.editing.steps import starter_text
from cypresskit.kernels import generated


class Absent:
    """A part of ``cypresskit.teach`` that doesn't exist while an answer is judged."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            f"{self.name}.{name} isn't available while an answer is judged: define what you need"
        )


def workbench(*_: Any, text: str = "", **__: Any) -> str:
    """Return the text of a workbench. What the student saved is judged in place of the cell."""
    return text


contest: Any = Absent("ck.teach.contest")
contest.generate_kernel = generated.generate_kernel


def _lesson(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"ck.teach.{name}")


def install() -> None:
    """Replace ``cypresskit.teach``, ``ck.workbench`` and ``ck.draw`` by stubs."""
    teach: Any = ModuleType("cypresskit.teach", "The part of the lessons that answers may use.")
    teach.__getattr__ = _lesson
    teach.published, teach.contest = published, contest
    teach.starter_text = starter_text
    sys.modules["cypresskit.teach"] = teach
    face: Any = sys.modules["cypresskit"]
    face.teach = teach
    face.workbench = workbench
    face.draw = Drawing()


class Drawing:
    """The stub of ``cypresskit.draw``: nothing is drawn while an answer is judged."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: SimpleNamespace(value=None, reveal=lambda *_, **__: "")
