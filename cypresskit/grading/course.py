"""The lessons as marks need them: their exercises.

They are read from the notebooks that students get, in a checkout or as installed: each cell of an
exercise says in its metadata what it is (``tools/book.py`` writes that). A student's cells are
known by the ids that they have in the lesson, and a notebook by its cells, whatever its file is
called.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cypresskit.editing.steps import step_texts
from cypresskit.teach import explanations

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parent / "notebooks"
INSTALLED = PACKAGE / "lessons"
ENTRY = "cypresskit"  # the key of a cell's metadata
NOT_FOR_STUDENTS = "solution", "good"  # the parts that a hand-out lacks
LONGEST = 1000  # characters of a sentence
MOST = 2_000  # cells of a notebook; a lesson has less than two hundred
LETTERS = 200_000  # of a cell, that are looked at
SHARED = 0.5  # of a lesson's cells that a renamed notebook has to have
TITLE = re.compile(r"# (\d\d .+)")
LATIN = "its letters are read as Latin-1, since they aren't UTF-8"
DAMAGED = "letters that aren't UTF-8 are lost"

Cell = dict[str, Any]


class Exercise(NamedTuple):
    """An exercise as the book names it, its check as the lesson calls it, the question below it and
    a good sentence.
    """

    number: int
    name: str  # as in "09 The bus, exercise 1: without the old C"
    check: str
    why: str
    good: str = ""
    step: str = ""  # of the climb, if the answer is what a workbench keeps

    @property
    def answer(self) -> str:
        """The name of what is checked."""
        return self.check.rpartition("(")[2].rstrip(")")


class Lesson(NamedTuple):
    """A lesson's cells, their entries by their ids, and its exercises."""

    name: str  # as in "09 The bus"
    cells: list[Cell]
    entries: Mapping[str, Mapping[str, Any]]
    exercises: tuple[Exercise, ...]


def folder() -> Path:
    """Where the lessons are."""
    return CHECKOUT if any(CHECKOUT.glob("[0-9]*.ipynb")) else INSTALLED


def lessons() -> dict[str, Lesson]:
    """All lessons, by their files' names without ending."""
    return {path.stem: read(path) for path in sorted(folder().glob("[0-9]*.ipynb"))}


def numbered(numbers: Sequence[str]) -> list[Path]:
    """The notebooks of the lessons with these numbers. Raises ``ValueError`` for a number that no
    lesson has.
    """
    chosen = []
    for number in numbers:
        notebooks = sorted(folder().glob(f"{number}_*.ipynb")) if number.isdecimal() else []
        if not notebooks:
            raise ValueError(f"there is no lesson {number}: give numbers such as 07")
        chosen += notebooks
    return chosen


def read(path: Path) -> Lesson:
    """A lesson from its notebook."""
    cells = cells_of(path.read_bytes())
    name = next(title[1] for cell in cells if (title := TITLE.match(cell["source"])))
    found: dict[int, dict[str, Any]] = {}
    for cell in cells:
        entry = entry_of(cell)
        if "exercise" in entry:
            found.setdefault(entry["exercise"], {}).update(entry)
    exercises = [
        Exercise(
            number,
            f"{name}, exercise {number}: {parts['title']}",
            parts["check"],
            parts["question"],
            parts.get("good", ""),
            parts.get("step", ""),
        )
        for number, parts in found.items()
        if "check" in parts
    ]
    entries = {cell["id"]: entry_of(cell) for cell in cells}
    return Lesson(name, cells, entries, tuple(exercises))


def lesson_of(file: str, cells: Iterable[Cell], lessons: Mapping[str, Lesson]) -> str | None:
    """Which of the ``lessons`` a notebook is: that of which it has most cells, by their ids, and at
    least the half; or the one whose title it begins with, or whose name its file has. None if it is
    none of them.
    """
    ids = {cell["id"] for cell in cells}
    shares = {
        stem: len(ids & lesson.entries.keys()) / len(lesson.entries)
        for stem, lesson in lessons.items()
    }
    best = max(shares, key=lambda stem: shares[stem], default=None)
    if best is not None and shares[best] >= SHARED:
        return best
    titles = [title[1] for cell in cells if (title := TITLE.match(cell["source"]))]
    named = (stem for stem, lesson in lessons.items() if lesson.name in titles[:1])
    return next(named, next((stem for stem in lessons if stem in file), None))


def text_of(data: bytes) -> tuple[str, str]:
    """Decode a notebook's file: UTF-8, UTF-16 or UTF-32, with a byte-order mark or without, or
    Latin-1. Returns the text, and ``LATIN``, ``DAMAGED`` or "". Raises ``ValueError`` for an empty
    file.
    """
    coding = json.detect_encoding(data)
    remark = ""
    try:
        text = data.decode(coding)
    except UnicodeDecodeError:
        text = data.decode(coding, "replace")
        remark = DAMAGED
        letters = sum(letter > "\x7f" for letter in text)
        if text.count("\ufffd") > letters / 2:  # a damaged file has more letters that are whole
            text = data.decode("latin-1")
            remark = LATIN
    if not text.strip("\0\ufeff \t\r\n"):
        raise ValueError("it is empty")
    return text, remark


def cells_of(data: bytes | str) -> list[Cell]:
    """The cells of a notebook's file or text, each with its ``id``, ``cell_type``, ``source``,
    ``metadata`` and ``outputs``; what isn't of that form is left out. Raises ``ValueError`` for
    what is no notebook, or has more than ``MOST`` cells.
    """
    text = data if isinstance(data, str) else text_of(data)[0]
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}"[:200]) from None
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise ValueError("it has no cells")
    if len(content["cells"]) > MOST:
        raise ValueError(f"it has more than {MOST:,} cells")
    return [_cell(cell) for cell in content["cells"] if isinstance(cell, dict)]


def _cell(cell: dict) -> Cell:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    source = source if isinstance(source, str) else ""
    metadata, outputs = cell.get("metadata"), cell.get("outputs")
    return {
        "id": str(cell.get("id")),
        "cell_type": str(cell.get("cell_type")),
        "source": source[:LETTERS].encode("utf-8", "replace").decode("utf-8"),
        "metadata": metadata if isinstance(metadata, dict) else {},
        "outputs": [o for o in outputs if isinstance(o, dict)] if isinstance(outputs, list) else [],
    }


def entry_of(cell: Mapping[str, Any]) -> dict[str, Any]:
    """What a cell's metadata say of its exercise; empty if it has none."""
    entry = cell["metadata"].get(ENTRY)
    return entry if isinstance(entry, dict) else {}


def own_entry(cell: Cell, lesson: Lesson) -> Mapping[str, Any]:
    """What a student's cell is in the lesson: by its id, or, where a program gave it another one,
    by its metadata.
    """
    return lesson.entries.get(cell["id"]) or entry_of(cell)


def answers(cells: Iterable[Cell], lesson: Lesson) -> list[str]:
    """The code of a student's cells, in order, but for checks and sentences."""
    left = "check", "sentence"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return [cell["source"] for cell in code if own_entry(cell, lesson).get("part") not in left]


def wrote(cells: Iterable[Cell], lesson: Lesson) -> dict[int, str]:
    """A student's sentences by exercise number: what stands in the place for it, and prose of the
    student's own in that exercise.
    """
    number = 0
    texts = dict[int, str]()
    for cell in cells:
        entry = own_entry(cell, lesson)
        of = entry.get("exercise")
        if cell["cell_type"] == "markdown" and cell["id"] in lesson.entries:
            number = of if type(of) is int else 0 if cell["source"].startswith("## ") else number
        elif entry.get("part") == "sentence" and type(of) is int:
            texts[of] = f"{texts.get(of, '')} {explanations.written(cell['source'])}"
        elif cell["cell_type"] == "markdown" and number:
            texts[number] = f"{texts.get(number, '')} {cell['source']}"
    return {number: " ".join(text.split())[:LONGEST] for number, text in texts.items()}


def kept_steps(cells: Iterable[Cell]) -> dict[str, str]:
    """The kernels of a student's workbenches that count, by their steps of the climb."""
    held = [step_texts(cell["outputs"]) for cell in cells]
    return {step: text for texts in held for step, (text, _) in texts.items()}
