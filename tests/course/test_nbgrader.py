"""A lesson as an assignment of nbgrader, which the nightly job installs."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from repository import ROOT

from cypresskit.grading.course import METADATA_KEY
from tools import book, nbgrader_assignment

LESSON = book.sources(ROOT / "notebooks", ["09"])[0]


def nbgrader(course, command):
    options = [LESSON.stem, f"--CourseDirectory.root={course}", "--create"]
    run = [sys.executable, "-m", "nbgrader", command, *options]
    beside = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # alembic
    done = subprocess.run(run, cwd=course, capture_output=True, text=True, env=os.environ | beside)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_a_lesson_is_graded_by_nbgrader(tmp_path):
    """A right answer gets its points, a wrong one none, and a sentence waits for the teacher."""
    api = pytest.importorskip("nbgrader.api")
    name = f"{LESSON.stem}/{LESSON.stem}.ipynb"
    source = tmp_path / "source" / name
    source.parent.mkdir(parents=True)
    nbformat.write(nbgrader_assignment.assignment(book.read(LESSON)), source)
    nbgrader(tmp_path, "generate_assignment")

    released = nbformat.read(tmp_path / "release" / name, as_version=4)
    answers = {
        cell.metadata.cypresskit.exercise: cell.source
        for cell in book.solved(book.read(LESSON)).cells
        if nbgrader_assignment.part_of(cell) == "answer"
    }
    for cell in released.cells:
        part = nbgrader_assignment.part_of(cell)
        assert part != "answer" or "NotImplementedError" in cell.source
        number = cell.metadata.get(METADATA_KEY, {}).get("exercise")
        if part == "answer":
            cell.source = answers[number].replace(
                "return ", "return 2 * " * (number == 2) or "return "
            )
        elif part == "sentence":
            cell.source = "because"
    submitted = tmp_path / "submitted/ada" / name
    submitted.parent.mkdir(parents=True)
    nbformat.write(released, submitted)
    nbgrader(tmp_path, "autograde")

    with api.Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        notebook = gradebook.find_submission_notebook(LESSON.stem, LESSON.stem, "ada")
        found = {
            grade.name: (grade.auto_score, grade.needs_manual_grade) for grade in notebook.grades
        }
    points = nbgrader_assignment.POINTS["check"]
    expected = {f"check-{n}": (0 if n == 2 else points, False) for n in (1, 2, 3)}
    assert found == expected | {f"sentence-{n}": (None, True) for n in (1, 2, 3)}


def test_a_lesson_whose_answers_nbgrader_would_clear_is_refused():
    (lesson,) = book.sources(ROOT / "notebooks", ["05"])
    with pytest.raises(ValueError, match="saved by a workbench"):
        nbgrader_assignment.assignment(book.read(lesson))
