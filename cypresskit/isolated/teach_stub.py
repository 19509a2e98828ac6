"""The stub of ``cypresskit.teach`` in a bare process: published figures and the contest's
generator.

While a notebook's cells run, a lesson's helper is an ``Absent`` object, which any code may call, so
that cells which only print don't fail. While the answer is called, using one is an error.
"""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from cypresskit import published
from cypresskit.editing.steps import starter_text
from cypresskit.kernels import generated


class Absent:
    """A ``name`` of ``cypresskit.teach`` that doesn't exist while an answer is judged."""

    lenient = False

    def __init__(self, name: str) -> None:
        self.name = name

    def _used(self) -> "Absent":
        if not Absent.lenient:
            raise RuntimeError(
                f"{self.name} isn't available while an answer is judged: define what you need"
            )
        return self

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.name}.{name}")

    def __call__(self, *_: Any, **__: Any) -> "Absent":
        return self._used()

    def __getitem__(self, _: Any) -> "Absent":
        return self._used()

    def __iter__(self) -> Any:
        self._used()
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __format__(self, _: str) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"<{self.name}, which isn't available while an answer is judged>"


def workbench(*_: Any, text: str = "", **__: Any) -> str:
    """Return the starter text of a workbench. What the student saved is judged in place of the
    cell.
    """
    return starter_text(text) if text else ""


contest: Any = Absent("ck.teach.contest")
contest.make_entry, contest.generate_kernel = generated.make_entry, generated.generate_kernel


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
