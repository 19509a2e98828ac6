"""The lessons as marks need them: exercises with their checks and questions, and what is guessed.

They are read from the notebooks that students get, in a checkout or as installed; the good answers
from the lessons' sources, or, where those aren't, from ``sentences.json`` beside the notebooks.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from cypresskit.draw.predict import kept_guesses

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parent / "notebooks"
INSTALLED = PACKAGE / "lessons"
ASKS = "**In one sentence:** "
PLACE = "*Double-click here, and write your sentence below this line.*"
HEADING = re.compile(r"## (?:Exercise (\d+): (.+))?")
QUESTION = re.compile(rf"{re.escape(ASKS)}(.*?\?)", re.S)
#: What a lesson folds away that answers a question, as a pattern
SOLUTION = r"(?s:<details><summary>(?:Solution|A good sentence)</summary>.*?</details>)"
CHECK = re.compile(r"^(?:\w+ = )?(ck\.teach\.\w+\.check_\w+\(.*\))\s*\Z", re.M | re.S)
WHY = re.compile(r"<!-- why: (.*?\?)\s+(.*?)\s+-->", re.S)  # in a source: question, answer
LONGEST = 1000  # characters of a sentence or a guess

Cell = dict[str, Any]


class Exercise(NamedTuple):
    """An exercise as the book names it, its check as the lesson calls it, the question below it and
    a good answer.
    """

    name: str  # as in "09 The bus, exercise 1: without the old C"
    check: str
    why: str
    good: str

    @property
    def answer(self) -> str:
        """The name of what is checked."""
        return self.check.rpartition("(")[2].rstrip(")")


class Lesson(NamedTuple):
    """A lesson's exercises, and the true value of each guess by its question."""

    name: str  # as in "09 The bus"
    prose: frozenset[str]
    exercises: tuple[Exercise, ...]
    truths: dict[str, object]


def folder() -> Path:
    """Where the lessons are."""
    return CHECKOUT if any(CHECKOUT.glob("[0-9]*.ipynb")) else INSTALLED


def lessons() -> dict[str, Lesson]:
    """All lessons, by their files' names without ending."""
    return {path.stem: read(path) for path in sorted(folder().glob("[0-9]*.ipynb"))}


def read(path: Path) -> Lesson:
    """A lesson from its notebook."""
    cells = cells_of(path.read_bytes())
    lines = (line for cell in cells for line in cell["source"].splitlines())
    name = next(line[2:] for line in lines if line.startswith("# "))
    prose = frozenset(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    checks = [match[1] for match in map(CHECK.search, code) if match]
    sources = [cell["source"] for cell in cells]
    whys = [" ".join(match[1].split()) for match in map(QUESTION.match, sources) if match]
    headings = (HEADING.match(text) for text in sources)
    titles = [match[2] for match in headings if match and match[1]]
    names = [f"{name}, exercise {number}: {title}" for number, title in enumerate(titles, 1)]
    good = good_sentences(path) or [""] * len(names)
    exercises = tuple(map(Exercise, names, checks, whys, good))
    truths = {question: truth for question, (_, truth) in kept_guesses(cells).items()}
    return Lesson(name, prose, exercises, truths)


def good_sentences(path: Path) -> list[str]:
    """The good answer to each question of a lesson; none where they aren't installed."""
    source = path.parent / "source" / f"{path.stem}.md"
    if source.exists():
        return [" ".join(good.split()) for _, good in WHY.findall(source.read_text("utf-8"))]
    stored = path.parent / "sentences.json"
    if stored.exists():
        return json.loads(stored.read_text(encoding="utf-8")).get(path.stem, [])
    return []


def cells_of(data: bytes) -> list[Cell]:
    """The cells of a notebook's file, each with its ``cell_type``, ``source``, ``metadata`` and
    ``outputs``; what isn't of that form is left out. Raises ``ValueError`` for what is no notebook.
    """
    try:
        content = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}"[:200]) from None
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise ValueError("it has no cells")
    return [_cell(cell) for cell in content["cells"] if isinstance(cell, dict)]


def _cell(cell: dict) -> Cell:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    source = source if isinstance(source, str) else ""
    metadata, outputs = cell.get("metadata"), cell.get("outputs")
    return {
        "cell_type": str(cell.get("cell_type")),
        "source": source.encode("utf-8", "replace").decode("utf-8"),
        "metadata": metadata if isinstance(metadata, dict) else {},
        "outputs": [o for o in outputs if isinstance(o, dict)] if isinstance(outputs, list) else [],
    }


def sentences(cells: Iterable[Cell], original: frozenset[str]) -> dict[int, str]:
    """A student's sentences by exercise number: all prose that isn't the original lesson's."""
    exercise = 0
    texts = dict[int, str]()
    for cell in cells:
        if cell["cell_type"] != "markdown":
            continue
        source = cell["source"]
        if source in original or not cell["metadata"].get("editable", True):
            match = HEADING.match(source)
            exercise = int(match[1] or 0) if match else exercise
        elif exercise:
            text = QUESTION.sub("", source).replace(PLACE, "")
            texts[exercise] = " ".join(f"{texts.get(exercise, '')} {text}".split())[:LONGEST]
    return texts
