"""What a student handed in of a lesson: its difference to the handout.

A cell is the student's if its text isn't the lesson's. It belongs to the exercise in whose section
it stands, and the teacher sees it there, whatever it contains. Of what it contains only the calls
of the exercise's check count: they say which name is judged.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cypresskit.editing.step_outputs import find_step_texts
from cypresskit.editing.steps import STEPS
from cypresskit.grading.course import Cell, Exercise, Lesson, find_entry, is_given, is_handed_out
from cypresskit.grading.handout import LINK
from cypresskit.grading.judging import Attempt
from cypresskit.tables import elided
from cypresskit.teach import bindings
from cypresskit.teach.check import capitalize

MAX_CHARACTERS = 50_000  # of a cell that are shown
CLEARED = (
    "the notebook has no outputs, and a workbench saves its kernel in them: if they were cleared,"
    " another copy is needed"
)
FOR_STUDENTS = "answer", "sentence"  # parts of an exercise; solved ones have known ids, too
PYTHON = sys.version_info[:2]
SAVED = "saved in the workbench"  # a kind of cell


class OwnCell(NamedTuple):
    """A cell that isn't as handed out."""

    place: int  #: the exercise in whose section it stands, or 0
    kind: str  #: code, markdown, raw, or ``SAVED``
    text: str
    is_answer: bool  #: whether it was handed out as the place for the answer
    file: str = ""  #: where it stands, if a student handed in several


class HandIn:
    """A student's notebook of a lesson.

    Attributes
    ----------
    cells
        The student's own cells, in their order, and the kernels that workbenches saved.
    is_cleared
        Whether it has no outputs, in which a workbench would have saved a kernel.
    file
        Its name.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        lesson: Lesson,
        file: str = "",
        python: tuple[int, int] = (0, 0),
    ) -> None:
        self._cells = cells
        self.python = python
        self.file = file
        self._places = _find_places(cells, lesson)
        outputs = [output for cell in cells for output in cell["outputs"]]
        self._saved = find_step_texts(outputs)
        self.is_cleared = any(each.step for each in lesson.exercises) and not outputs
        handed = {"", *(_plain(cell["source"]) for cell in lesson.cells)}
        self.cells = []
        for cell, place in zip(cells, self._places):
            source, part = cell["source"], find_entry(cell).get("part")
            is_old = is_given(cell) and part not in FOR_STUDENTS  # of another version
            if _plain(source) not in handed and not is_old:
                text = elided(source, MAX_CHARACTERS)
                self.cells.append(OwnCell(place, cell["cell_type"], text, part == "answer"))
        for exercise in lesson.exercises:
            saved = self._saved.get(exercise.step)
            if saved and saved.text.strip() != STEPS[exercise.step].starter.strip():
                self.cells.append(OwnCell(exercise.number, SAVED, saved.text, is_answer=True))

    def attempts(self, exercise: Exercise) -> list[Attempt]:
        """Return what is judged: the name of the answer, as it is at the end of the exercise's
        section, or else of the notebook, and the kernel saved in a workbench. The name is the one
        that the notebook's own check is called with. The first says most, if none is right.
        """
        start, _, _ = exercise.check.partition("(")
        code = [
            (place, cell["source"])
            for cell, place in zip(self._cells, self._places)
            if cell["cell_type"] == "code"
        ]
        section = [n for n, (place, _) in enumerate(code) if place == exercise.number]
        sources = [source for _, source in code]
        above = sources[: section[-1] + 1 if section else None]
        passed = (name for source in above for name in _passed_to(start, source))
        names = [
            name
            for name in passed
            if any(bindings.is_set_in(bindings.read_cell(source), name) for source in sources)
        ] or [exercise.answer]
        given = _plain(exercise.template)
        for part in (above, sources):
            own = [source for source in part if _plain(source) != given]
            if any(bindings.is_set_in(bindings.read_cell(source), names[-1]) for source in own):
                above = own  # a second, empty copy of the lesson takes no answer back
                break
        found = [Attempt(above, f"{start}({names[-1]})")]
        if saved := self._saved.get(exercise.step):  # first: that nothing was saved isn't true
            kernel = [*above, f"{exercise.answer} = {saved.text!r}"]
            found.insert(0, Attempt(kernel, exercise.check))
        return found

    def warnings(self, exercise: Exercise) -> list[str]:
        """Return why a right answer to an exercise may not have been judged as right."""
        ran, judging = (".".join(map(str, version)) for version in (self.python, PYTHON))
        reasons = {
            f"{capitalize(CLEARED)}.": exercise.step and self.is_cleared,
            f"Python {ran} ran the notebook, and Python {judging} judged it: what came later isn't"
            " valid there.": self.python > PYTHON,
        }
        return [said for said, holds in reasons.items() if holds]

    def lines_shown(self, exercise: Exercise) -> int:
        """Return how many lines of a solution the workbench showed."""
        saved = self._saved.get(exercise.step)
        return saved.lines_shown if saved else 0


def _passed_to(check: str, source: str) -> Iterator[str]:
    """Yield the names that a cell calls a check with, whatever the module is called there."""
    tree = bindings.parse_cell(bindings.read_cell(source))
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Call(func=function, args=[ast.Name(id=name)]) if (
                ast.unparse(function).rpartition(".")[2] == check.rpartition(".")[2]
            ):
                yield name


def _lesson_places(lesson: Lesson) -> Iterator[tuple[Cell, int]]:
    """Yield a lesson's cells, with the exercise in whose section each stands, or 0."""
    place = 0
    for cell in lesson.cells:
        if cell["cell_type"] == "markdown" and cell["source"].startswith("## "):
            place = find_entry(cell).get("exercise", 0)
        yield cell, place


def given_lines(lesson: Lesson) -> dict[int, set[str]]:
    """Return the lines that were handed out in the section of each exercise, and outside (0)."""
    found: dict[int, set[str]] = defaultdict(set)
    for cell, place in _lesson_places(lesson):
        if is_handed_out(cell):
            found[place] |= {line.strip() for line in cell["source"].splitlines()}
    for exercise in lesson.exercises:
        if exercise.step:
            starter = STEPS[exercise.step].starter
            found[exercise.number] |= {line.strip() for line in starter.splitlines()}
    return found


def _find_places(cells: Sequence[Cell], lesson: Lesson) -> list[int]:
    """Return the exercise in whose section each cell stands, or 0.

    A cell of the lesson tells it by its id or its text, and any cell by its metadata; others stand
    where the one above them does.
    """
    known: dict[str, int] = {}
    for cell, place in _lesson_places(lesson):
        known[cell["id"]] = place
        known.setdefault(_plain(cell["source"]), place)
    texts = [_plain(cell["source"]) for cell in lesson.cells]
    repeated = {text for text in texts if texts.count(text) > 1}
    places = []
    place = 0
    for cell in cells:
        text = _plain(cell["source"])
        entered = find_entry(cell).get("exercise")
        found = [entered, known.get(cell["id"]), None if text in repeated else known.get(text)]
        place = next((each for each in found if isinstance(each, int)), place)
        places.append(place)
    return places


def _plain(source: str) -> str:
    """Return a cell's text without what isn't a difference: links, and spaces at ends of lines."""
    return "\n".join(line.rstrip() for line in LINK.sub(r"\1", source).split("\n")).strip()
