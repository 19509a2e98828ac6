"""What README promises: answers get verdicts, a class its grades, a lesson runs in JupyterLab."""

import random

import hand_ins
import pytest
from answer_sources import answers_of_tests
from answers import LESSONS, read_planted
from sampling import DAY

from cypresskit import cli
from cypresskit.grading.course import parse_cells


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_right_and_a_wrong_answer_get_their_verdicts(lesson):
    """Of a check of each lesson, drawn anew each day."""
    chance = random.Random(f"{DAY} {lesson}")
    checks = [item for item in read_planted().items() if item[1].lesson == lesson]
    check, row = chance.choice(checks)
    answer, words = chance.choice(row.wrong)
    with answers_of_tests():
        assert check(row.right[0]).right
        verdict = check(answer)
    assert not verdict.right and not verdict.is_broken
    assert all(word in str(verdict) for word in words)


@pytest.mark.usefixtures("sandbox")
def test_a_class_of_two_gets_its_grades(tmp_path, capsys):
    week, folder, out = tmp_path / "week", tmp_path / "in", tmp_path / "out"
    assert cli.main(["handout", "09", "--to", str(week)]) == 0
    cells = parse_cells((week / "09_bus.ipynb").read_bytes())
    for student, answer in ("ada", hand_ins.SECONDS), ("bob", "seconds = None"):
        answered = hand_ins.answer_exercise(cells, answer=answer)
        hand_ins.save(folder / student / "09_bus.ipynb", answered)
    assert cli.main(["grade", str(folder), str(out)]) == 0
    rows = hand_ins.rows(out / "grades.csv")
    points = {row["student"]: float(row["total"] or 0) for row in rows}
    assert points["ada"] > points["bob"] == 0
    assert all((out / "feedback" / f"{student}.html").exists() for student in points)


def test_a_lesson_runs_in_jupyterlab(lab, page):
    lab.open(page, "09_bus.ipynb")
    lab.run_all(page)
    assert sum(map(len, lab.outputs(page))) > 10
