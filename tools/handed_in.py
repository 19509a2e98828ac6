"""A class's work, read from notebooks as text: answers and their verdicts, sentences and guesses.

No kernel runs a student's notebook, no saved verdict counts, and only the guess itself is taken
from a saved guess: questions and true values are the lesson's own. Each answer is judged in a
process of its own (see ``tools.grade``).
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import nbformat

from cypresskit.draw.predict import KEPT
from cypresskit.teach.check import Verdict
from tools import book
from tools.grade import judge

LESSONS = Path(__file__).parents[1] / "notebooks"
HEADING = re.compile(r"## (?:Exercise (\d+): (.+))?")
QUESTION = re.compile(rf"{re.escape(book.ASKS)}(.*?\?)", re.S)
LONGEST = 1000  # characters of a sentence or a guess


class Exercise(NamedTuple):
    """An exercise as the book names it, its check as the lesson calls it, the question below it and
    a good answer.
    """

    name: str  # as in "09 The bus, exercise 1: without the old C"
    check: str
    why: str
    good: str


class Lesson(NamedTuple):
    """A lesson's exercises, and the true value of each guess by its question."""

    name: str  # as in "09 The bus"
    prose: set[str]
    exercises: list[Exercise]
    truths: dict[str, object]


class Answer(NamedTuple):
    """A student's answer to an exercise: the verdict, the cell that it is about, and the sentence
    below.
    """

    verdict: Verdict
    code: str = ""
    sentence: str = ""


class Work(NamedTuple):
    """A student's work on a lesson: the answers, and the guesses by their questions."""

    answers: dict[Exercise, Answer]
    guesses: dict[str, str]


def lessons() -> dict[str, Lesson]:
    """All lessons, by their files' names without ending."""
    return {path.stem: read(path) for path in sorted(LESSONS.glob("[0-9]*.ipynb"))}


def read(lesson: Path) -> Lesson:
    """A lesson from its notebook, with the good answers of the solved one."""
    cells = nbformat.read(lesson, as_version=4).cells
    name = next(
        line[2:] for cell in cells for line in cell.source.splitlines() if line.startswith("# ")
    )
    prose = {cell.source for cell in cells if cell.cell_type == "markdown"}
    checks = [
        match[1]
        for cell in cells
        if cell.cell_type == "code" and (match := book.CHECK.search(cell.source))
    ]
    whys = [" ".join(match[1].split()) for cell in cells if (match := QUESTION.match(cell.source))]
    titles = [match[2] for cell in cells if (match := HEADING.match(cell.source)) and match[1]]
    good = sentences(
        nbformat.read(lesson.parent / "solutions" / lesson.name, as_version=4).cells, prose
    )
    names = [f"{name}, exercise {number}: {title}" for number, title in enumerate(titles, 1)]
    exercises = [Exercise(*parts) for parts in zip(names, checks, whys, good.values(), strict=True)]
    return Lesson(
        name, prose, exercises, {question: truth for question, (_, truth) in kept(cells).items()}
    )


def sentences(cells: Iterable, original: set[str]) -> dict[int, str]:
    """A student's sentences by exercise number: all prose that isn't the original lesson's."""
    exercise, texts = 0, dict[int, str]()
    for cell in cells:
        if cell.cell_type == "markdown" and (
            cell.source in original or not cell.metadata.get("editable", True)
        ):
            exercise = int(match[1] or 0) if (match := HEADING.match(cell.source)) else exercise
        elif cell.cell_type == "markdown" and exercise:
            text = QUESTION.sub("", cell.source).replace(book.PLACE, "")
            texts[exercise] = " ".join(f"{texts.get(exercise, '')} {text}".split())[:LONGEST]
    return texts


def kept(cells: Iterable) -> dict[str, tuple[object, object]]:
    """(guess, result) by question, as saved in the outputs that ask; a curve is a question for each
    of its places.
    """
    pairs: dict[str, tuple[object, object]] = {}
    for saved in (
        out.get("metadata", {}).get(KEPT) for cell in cells for out in cell.get("outputs", ())
    ):
        if not isinstance(saved, dict):
            continue
        question, guess, truth = (saved.get(name) for name in ("question", "guess", "truth"))
        parts = {str(question): (guess, truth)}
        if isinstance(truth, dict):
            heights = guess if isinstance(guess, dict) else {}
            parts = {
                f"{question}, at {place}": (heights.get(place), truth[place]) for place in truth
            }
        pairs |= {
            asked: pair
            for asked, pair in parts.items()
            if pair[0] is not None or asked not in pairs
        }
    return pairs


def work(notebook: Path, lesson: Lesson) -> Work:
    """A student's work from a lesson's notebook."""
    try:
        cells = nbformat.read(notebook, as_version=4).cells
        wrote, saved = sentences(cells, lesson.prose), kept(cells)
        code = [
            c.source for c in cells if c.cell_type == "code" and not book.CHECK.search(c.source)
        ]
    except Exception as error:  # what else was handed in under that name
        broken = Verdict(
            False,
            f"{notebook.name} is no notebook: {error}"[:LONGEST],
            "hand in what JupyterLab saved.",
        )
        return Work(dict.fromkeys(lesson.exercises, Answer(broken)), {})
    answers = {}
    for number, exercise in enumerate(lesson.exercises, 1):
        sets = re.compile(rf"^(def )?{exercise.check.rpartition('(')[2].rstrip(')')} *[=(]", re.M)
        cell = next((cell for cell in reversed(code) if sets.search(cell)), "")
        answers[exercise] = Answer(judge(code, exercise.check), cell, wrote.get(number, ""))
    guesses = {
        question: guess
        for question, (guess, _) in saved.items()
        if isinstance(guess, int | float | str)
    }
    return Work(answers, {q: str(guesses[q])[:LONGEST] for q in lesson.truths if q in guesses})


def handed_in(student: Path, asked: dict[str, Lesson]) -> dict[str, Work]:
    """A student's work by lesson; files that belong to no lesson are reported. Of two notebooks of
    a lesson the better answers count, and every sentence and guess.
    """
    row: dict[str, Work] = {}
    for notebook in sorted(student.rglob("*.ipynb")):
        stem = next((stem for stem in asked if stem in notebook.stem), None)
        if ".ipynb_checkpoints" in notebook.parts:
            continue
        if stem is None:
            print(f"{notebook} is not marked: no lesson's name is in its own", file=sys.stderr)
            continue
        new = work(notebook, asked[stem])
        old = row.setdefault(stem, new)
        for exercise, answer in old.answers.items():
            best = max(answer, new.answers[exercise], key=lambda a: (a.verdict.right, bool(a.code)))
            sentence = new.answers[exercise].sentence or answer.sentence
            old.answers[exercise] = best._replace(sentence=sentence)
        row[stem] = Work(old.answers, old.guesses | new.guesses)
    return row
