"""What stands for ``cypresskit.teach`` in a bare process: published figures and entries of the
contest; of the lessons and their checks, nothing.

While a notebook's cells are run, a lesson's helper is an ``Absent`` that any code may call, so
that a cell which prints what it finds goes on. While the answer is called, using one is an error.
"""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from cypresskit import published
from cypresskit.editing.steps import book_text
from cypresskit.kernels import generated


class Absent:
    """What isn't there while an answer is judged: ``name`` of ``cypresskit.teach``."""

    lenient = False

    def __init__(self, name: str) -> None:
        self.name = name

    def _used(self) -> "Absent":
        if not Absent.lenient:
            raise RuntimeError(
                f"{self.name} isn't there while an answer is judged: write what you need of it"
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
        return f"<{self.name}, which isn't there while an answer is judged>"


def workbench(*_: Any, text: str = "", **__: Any) -> str:
    """What ``ck.workbench`` gives here: the text that its cell gives. What a workbench kept is in
    the notebook, and is judged in the place of its cell.
    """
    return book_text(text) if text else ""


contest: Any = Absent("ck.teach.contest")
contest.entry, contest.generate_kernel = generated.entry, generated.generate_kernel


def _lesson(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"ck.teach.{name}")


def absent(name: str) -> Any:
    """What stands for ``cypresskit.teach.<name>``, which a pickle_function function mentions."""
    last = name.rpartition(".")[2]
    if name.endswith(("l12_contest.entry", "l12_contest.generate_kernel")):
        return getattr(generated, last)
    if last in ("l12_contest", "contest"):
        return contest
    return sys.modules["cypresskit.teach"] if name == "cypresskit.teach" else Absent(name)


def install() -> None:
    """Put this in the place of ``cypresskit.teach``."""
    teach: Any = ModuleType("cypresskit.teach", "What of the lessons is there for an answer.")
    teach.__getattr__ = _lesson
    teach.published, teach.contest = published, contest
    sys.modules["cypresskit.teach"] = teach
    face: Any = sys.modules["cypresskit"]
    face.teach = teach
    face.workbench = workbench
    face.draw = Drawing()


class Drawing:
    """What stands for ``cypresskit.draw``: nothing is drawn while an answer is judged."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: SimpleNamespace(value=None, reveal=lambda *_, **__: "")
