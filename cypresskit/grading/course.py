"""Read the lessons' exercises, and find a student's answers in a submitted notebook.

Lessons are read from the notebooks that students get, in a checkout or as installed. The metadata
of a cell state its role in an exercise (``tools/book.py`` writes them). A submitted notebook is
identified by its title or else by its checks, so its file may have any name.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from cypresskit.editing.steps import StepText, step_texts
from cypresskit.teach import bindings, explanations

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parent / "notebooks"
INSTALLED = PACKAGE / "lessons"
METADATA_KEY = "cypresskit"  # the key of a cell's metadata
NOT_FOR_STUDENTS = "solution", "good"  # parts that are left out of a handout
ELSEWHERE = "(not in its place)"  # precedes texts that may explain an exercise
UNREAD = "a call of explanation() whose text only a run would give"
MAX_CELLS = 2_000  # cells of a notebook; a lesson has fewer than two hundred
MAX_CELL_CHARACTERS = 200_000  # characters of a cell that are read
TITLE = re.compile(r"# (\d\d .+)")
LINK = re.compile(r"\[([^]]{0,200})\]\([^)]{0,200}\)")  # handouts lack those to other lessons
LISTED = re.compile(r"\n(?=\n|[-*]|\W?\d+[.):])")  # before a paragraph, or a line of a list
MAGIC = re.compile(r"^[ \t]*(%+\w.*|!)", re.M)  # is read as a comment
PROSE = re.compile(r"[^\W\d_]{2}[^\w\n].*[^\W\d_]{2}|[^\0-\u02ff]{4}")  # two words in a line

Cell = dict[str, Any]


class Exercise(NamedTuple):
    """An exercise of a lesson."""

    number: int
    name: str  #: as in "09 The bus, exercise 1: without the old C"
    check: str  #: its check, as the lesson calls it
    why: str  #: the question that asks for an explanation
    good: str = ""  #: a good explanation, worth two points
    step: str = ""  #: the climb's step, if the answer is a kernel saved in a workbench
    samples: Sequence[str] = ()  #: explanations worth one point and none, with the reasons

    @property
    def answer(self) -> str:
        """The name of the variable that is checked."""
        return self.check.rpartition("(")[2].rstrip(")")


class Lesson(NamedTuple):
    """A lesson."""

    name: str  #: as in "09 The bus"
    cells: list[Cell]
    exercises: tuple[Exercise, ...]


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


def select_exercises(lessons: Mapping[str, Lesson], names: Sequence[str]) -> dict[str, Lesson]:
    """Return lessons with the exercises of these names, as in "05.1"; all of a lesson that has none
    of them.

    Raises
    ------
    ValueError
        If there is no exercise of a name.
    """
    keys = {
        e: f"{lesson.name[:2]}.{e.number}" for lesson in lessons.values() for e in lesson.exercises
    }
    if unknown := {*names}.difference(keys.values()):
        raise ValueError(f"there is no exercise {min(unknown)}: give numbers such as 05.1")
    chosen = {}
    for stem, lesson in lessons.items():
        own = tuple(exercise for exercise in lesson.exercises if keys[exercise] in names)
        chosen[stem] = lesson._replace(exercises=own or lesson.exercises)
    return chosen


def read(path: Path) -> Lesson:
    """Read a lesson from its notebook."""
    cells = parse_cells(path.read_bytes())
    name = next(title[1] for cell in cells if (title := TITLE.match(cell["source"])))
    found: dict[int, dict[str, Any]] = {}
    for cell in cells:
        entry = find_entry(cell)
        if "exercise" in entry:
            found.setdefault(entry["exercise"], {}).update(entry)
    samples = read_samples()
    exercises = [
        Exercise(
            number,
            f"{name}, exercise {number}: {parts['title']}",
            parts["check"],
            parts["question"],
            parts.get("good", ""),
            parts.get("step", ""),
            samples.get(f"{name[:2]}.{number}", ()),
        )
        for number, parts in found.items()
        if "check" in parts
    ]
    return Lesson(name, cells, tuple(exercises))


@cache
def read_samples() -> dict[str, tuple[str, ...]]:
    """Return explanations worth one point and none, by lesson and exercise, as in "09.1"."""
    text = Path(__file__).with_name("samples.toml").read_text(encoding="utf-8")
    return {key: tuple(samples) for key, samples in tomllib.loads(text).items()}


def identify_lesson(cells: Iterable[Cell], lessons: Mapping[str, Lesson]) -> str | None:
    """Return which lesson a submitted notebook is, by its title, or else by its checks; or None."""
    text = "\n".join(cell["source"] for cell in cells)
    found = [stem for stem, lesson in lessons.items() if f"# {lesson.name}" in text]
    for stem, lesson in lessons.items():
        found += [stem for exercise in lesson.exercises if exercise.check in text]
    return found[0] if found else None


def parse_cells(data: bytes) -> list[Cell]:
    """Return the cells of a notebook's file, in an encoding of Unicode.

    Each has a ``cell_type``, ``source``, ``metadata`` and ``outputs`` of the right types;
    malformed parts are left out.

    Raises
    ------
    ValueError
        If this is no notebook, or has more than ``MAX_CELLS`` cells.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}"[:200]) from None
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise ValueError("it has no cells")
    if len(content["cells"]) > MAX_CELLS:
        raise ValueError(f"it has more than {MAX_CELLS:,} cells")
    return [_cell(cell) for cell in content["cells"] if isinstance(cell, dict)]


def _cell(cell: dict) -> Cell:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    source = source if isinstance(source, str) else ""
    metadata, outputs = cell.get("metadata"), cell.get("outputs")
    return {
        "cell_type": str(cell.get("cell_type")),
        "source": source[:MAX_CELL_CHARACTERS].encode("utf-8", "replace").decode("utf-8"),
        "metadata": metadata if isinstance(metadata, dict) else {},
        "outputs": [o for o in outputs if isinstance(o, dict)] if isinstance(outputs, list) else [],
    }


def find_entry(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell's role in an exercise, from its metadata; empty if it has none."""
    entry = cell["metadata"].get(METADATA_KEY)
    return entry if isinstance(entry, dict) else {}


def find_answers(cells: Iterable[Cell]) -> list[str]:
    """Return the source of a notebook's code cells in order, without checks and explanations."""
    excluded = "check", "sentence"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return [cell["source"] for cell in code if find_entry(cell).get("part") not in excluded]


def read_explanations(cells: Iterable[Cell], lesson: Lesson) -> tuple[dict[int, str], list[str]]:
    """Return a student's explanations by the exercise's number, and the texts that are none.

    An explanation is the text of a call of ``explanation`` that is alone in its cell and in its
    exercise, which the cell's entry or the last check above tells. Further calls are other texts,
    and so are strings, comments and Markdown that the lesson doesn't have.
    """
    entries = [find_entry(cell) for cell in lesson.cells]
    checks = {entry["check"]: entry["exercise"] for entry in entries if "check" in entry}
    given = {line for cell in lesson.cells for line in _lines(cell) if PROSE.search(line)}
    values: dict[str, Any] = {}
    calls: dict[int, list[str]] = {}
    others: list[str] = []
    current = 0
    for cell in cells:
        source, number = cell["source"], find_entry(cell).get("exercise")
        current = number if type(number) is int else current
        own = "\n".join(line for line in _lines(cell) if line not in given)
        others += [_plain(text) for text in LISTED.split(own) if PROSE.search(text)]
        if cell["cell_type"] != "code":
            current *= "\n## " not in f"\n{source}"
            continue
        texts = [*explanations.find_calls(source, values)]
        passed = [number for check, number in checks.items() if check in source]
        place = current if len(texts) == 1 and texts[0] and not passed else 0
        found = [UNREAD if text is None else _plain(text) for text in texts]
        calls.setdefault(place, []).extend(filter(None, found))
        current = [current, *passed][-1]
    placed = {n: calls.pop(n)[0] for n in checks.values() if len(calls.get(n, ())) == 1}
    further = [*chain(*calls.values())]
    called = "\n".join([*placed.values(), *further])
    return placed, further + [text for text in others if text not in called]


def _plain(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())[: explanations.MAX_CHARACTERS]


def _lines(cell: Cell) -> list[str]:
    """Return the lines of a cell that may be a text: of code its comments, then its strings."""
    text = cell["source"]
    if cell["cell_type"] == "code":
        text = MAGIC.sub("#", text)
        comments = [line.partition("#")[2] for line in text.splitlines()]
        if tree := bindings.parse_cell(text):
            strings = [v for n in ast.walk(tree) if isinstance(v := getattr(n, "value", 0), str)]
            text = "\n\n".join(["\n".join(comments), *strings])
    return [line.strip() for line in LINK.sub(r"\1", text).splitlines()]


def find_saved_kernels(cells: Iterable[Cell]) -> dict[str, StepText]:
    """Return the kernels that a student's workbenches have saved, by step of the climb."""
    return {step: saved for cell in cells for step, saved in step_texts(cell["outputs"]).items()}
