"""Read the lessons' exercises, and the cells of a submitted notebook.

Lessons are read from the notebooks that students get, in a checkout or as installed. The metadata
of a cell state its role in an exercise (``tools/book.py`` writes them). A submitted notebook is
identified by its title or else by its checks, so its file may have any name.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parent / "notebooks"
INSTALLED = PACKAGE / "lessons"
METADATA_KEY = "cypresskit"  # the key of a cell's metadata
NOT_FOR_STUDENTS = "solution", "good"  # parts that are left out of a handout
EMPTY = "the file is empty: another copy is needed"
DAMAGED = (
    "the file is no whole notebook: it is damaged, or was saved only in part. Another copy is"
    " needed"
)
PACKED = "it is an archive, which has to be unpacked"
ARCHIVES = b"PK", b"\x1f\x8b", b"7z", b"Rar!"  # what their files begin with
OLD = "it is a notebook in an old format: it has to be opened in JupyterLab, and saved"
MAX_CELLS = 2_000  # cells of a notebook; a lesson has fewer than two hundred
MAX_CELL_CHARACTERS = 200_000  # characters of a cell that are read
TITLE = re.compile(r"# (\d\d .+)")

Cell = dict[str, Any]


class Notebook(NamedTuple):
    """A submitted notebook."""

    cells: list[Cell]
    python: tuple[int, int] = (0, 0)  #: the version that ran it; zeros if it isn't known


class Exercise(NamedTuple):
    """An exercise of a lesson."""

    number: int
    name: str  #: as in "09 The bus, exercise 1: without the old C"
    check: str  #: its check, as the lesson calls it
    why: str  #: the question that asks for an explanation
    good: str = ""  #: a good explanation, worth two points
    step: str = ""  #: the climb's step, if the answer is a kernel saved in a workbench
    template: str = ""  #: the given source of the answer

    @property
    def key(self) -> str:
        """Its short name, as in "09.1"."""
        return f"{self.name[:2]}.{self.number}"

    @property
    def answer_key(self) -> str:
        """The name of decisions on its answer, as in "09.1 answer"."""
        return f"{self.key} answer"

    @property
    def why_key(self) -> str:
        """The name of decisions on its explanation, as in "09.1 why"."""
        return f"{self.key} why"

    @property
    def answer(self) -> str:
        """The name of the variable that is checked."""
        return self.check.rpartition("(")[2].rstrip(")")


class Lesson(NamedTuple):
    """A lesson."""

    name: str  #: as in "09 The bus"
    cells: list[Cell]
    exercises: tuple[Exercise, ...]  #: those that count

    @property
    def number(self) -> str:
        """Its number, as in "09"."""
        return self.name[:2]

    @property
    def added_key(self) -> str:
        """The name of decisions on the lesson, as in "09 added"."""
        return f"{self.number} added"


def lessons_folder() -> Path:
    """Return the folder of the lessons."""
    return CHECKOUT if any(CHECKOUT.glob("[0-9]*.ipynb")) else INSTALLED


def read_lessons() -> dict[str, Lesson]:
    """Read all lessons, by the stem of their file."""
    return {path.stem: read(path) for path in sorted(lessons_folder().glob("[0-9]*.ipynb"))}


def select_notebooks(numbers: Sequence[str]) -> list[Path]:
    """Return the notebooks of the lessons with these numbers.

    Raises
    ------
    ValueError
        If there is no lesson of a number.
    """
    chosen = []
    for number in numbers:
        notebooks = sorted(lessons_folder().glob(f"{number}_*.ipynb")) if number.isdecimal() else []
        if not notebooks:
            raise ValueError(f"there is no lesson {number}: give numbers such as 07")
        chosen += notebooks
    return chosen


def select_exercises(lessons: Mapping[str, Lesson], keys: Sequence[str]) -> dict[str, Lesson]:
    """Return lessons with the exercises of these keys, as in "05.1"; all of a lesson that has none
    of them.

    Raises
    ------
    ValueError
        If there is no exercise of a key.
    """
    known = {exercise.key for lesson in lessons.values() for exercise in lesson.exercises}
    if unknown := {*keys} - known:
        raise ValueError(f"there is no exercise {min(unknown)}: give numbers such as 05.1")
    chosen = {}
    for stem, lesson in lessons.items():
        own = tuple(exercise for exercise in lesson.exercises if exercise.key in keys)
        chosen[stem] = lesson._replace(exercises=own or lesson.exercises)
    return chosen


def read(path: Path) -> Lesson:
    """Read a lesson from its notebook."""
    cells = parse_cells(path.read_bytes())
    name = next(title[1] for cell in cells if (title := TITLE.match(cell["source"])))
    found: dict[int, dict[str, Any]] = {}
    for cell in cells:
        entry = find_entry(cell)
        parts = found.setdefault(entry.get("exercise", 0), {})
        parts |= entry
        if entry.get("part") == "answer":
            parts["template"] = cell["source"]
    exercises = [
        Exercise(
            number,
            f"{name}, exercise {number}: {parts['title']}",
            parts["check"],
            parts["question"],
            *(parts.get(key, "") for key in ("good", "step", "template")),
        )
        for number, parts in found.items()
        if "check" in parts
    ]
    return Lesson(name, cells, tuple(exercises))


@cache
def read_samples() -> dict[str, list[str]]:
    """Return explanations worth one point and none, with the reasons, by the exercise's key."""
    return tomllib.loads(Path(__file__).with_name("samples.toml").read_text(encoding="utf-8"))


def identify_lessons(cells: Iterable[Cell], lessons: Mapping[str, Lesson]) -> list[str]:
    """Return which lessons a submitted notebook has parts of: those whose title it has, then those
    of which it has a check.
    """
    text = "\n".join(cell["source"] for cell in cells)
    found = [stem for stem, lesson in lessons.items() if f"# {lesson.name}" in text]
    for stem, lesson in lessons.items():
        found += [stem for exercise in lesson.exercises if exercise.check in text]
    return [*dict.fromkeys(found)]


def parse_cells(data: bytes) -> list[Cell]:
    """Return the cells of a notebook's file, see ``parse_notebook``."""
    return parse_notebook(data).cells


def parse_notebook(data: bytes) -> Notebook:
    """Return the notebook in a file, in an encoding of Unicode or else Windows-1252.

    Each cell has a ``cell_type``, ``source``, ``metadata``, ``outputs`` and ``id`` of the right
    types; malformed parts are left out.

    Raises
    ------
    ValueError
        If this is no notebook, or has more than ``MAX_CELLS`` cells; it says what to do.
    """
    try:
        try:
            content = json.loads(data)
        except UnicodeDecodeError:
            content = json.loads(data.decode("cp1252", "replace"))
    except (ValueError, RecursionError):
        fault = PACKED if data.startswith(ARCHIVES) else DAMAGED if data.strip() else EMPTY
        raise ValueError(fault) from None
    content = content if isinstance(content, dict) else {}
    cells = content.get("cells")
    if "worksheets" in content:
        raise ValueError(OLD)
    if not isinstance(cells, list) or not cells:
        raise ValueError("it has no cells")
    if len(cells) > MAX_CELLS:
        raise ValueError(f"it has more than {MAX_CELLS:,} cells")
    python = content.get("metadata")
    for key in "language_info", "version":
        python = python.get(key) if isinstance(python, dict) else None
    numbers = re.match(r"(\d{1,3})\.(\d{1,3})\b", python if isinstance(python, str) else "")
    return Notebook(
        [parse_cell(cell) for cell in cells if isinstance(cell, dict)],
        (int(numbers[1]), int(numbers[2])) if numbers else (0, 0),
    )


def parse_cell(cell: dict) -> Cell:
    """Return a notebook's cell."""
    source, metadata, outputs = map(cell.get, ("source", "metadata", "outputs"))
    parts = source if isinstance(source, list) else [source]
    text = "".join(part for part in parts if isinstance(part, str))[:MAX_CELL_CHARACTERS]
    return {
        "cell_type": str(cell.get("cell_type")),
        "source": text.encode("utf-8", "replace").decode("utf-8"),
        "metadata": metadata if isinstance(metadata, dict) else {},
        "outputs": outputs if isinstance(outputs, list) else [],
        "id": str(cell.get("id")),
    }


def cell_id(source: str) -> str:
    """Return the id of a cell as it is handed out, in any version of a lesson."""
    return hashlib.sha1(source.encode()).hexdigest()[:8]


def find_entry(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell's role in an exercise, from its metadata; empty if it has none."""
    entry = cell["metadata"].get(METADATA_KEY)
    return entry if isinstance(entry, dict) else {}


def is_handed_out(cell: Mapping[str, Any]) -> bool:
    """Return whether a cell of a lesson is for students."""
    return find_entry(cell).get("part") not in NOT_FOR_STUDENTS


def is_given(cell: Cell) -> bool:
    """Return whether a cell is as handed out, in this version of a lesson or in another."""
    return cell_id(cell["source"].replace("\r\n", "\n")) == cell["id"].partition("-")[0]
