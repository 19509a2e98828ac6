"""A teacher's afternoon: handouts for a class, its submissions, and their grades.

The tests grade fourteen students of twenty on a roster.
"""

import csv
import shutil
from pathlib import Path

import hand_ins
import pytest

import cypresskit as ck
from cypresskit import cli
from cypresskit.grading import gradebook

WHO = (
    *("honest 1", "copied", "canvas", "by its cells", "late 1", "late 2", "mistaken", "stumbles"),
    *("endless", "disk", "stays", "links", "linked folder", "archive"),
)
NOTHING = [f"absent {n}" for n in range(6)]
EARNED = dict.fromkeys(hand_ins.HONEST, 12) | {"late 1": 12, "late 2": 3}
AGAIN = ("honest 1", "mistaken", "stumbles")


def hand_out(folder: Path, who, absent) -> None:
    """Write the lessons, and a roster of a class."""
    assert cli.main(["handout", *hand_ins.LESSONS, "--to", str(folder / "week3")]) == 0
    rows = [f"{'23' if id == 'canvas' else id},{id}" for id in (*who, *absent)]
    (folder / "class.csv").write_text("\n".join(["id,name", *rows]))


def collect(folder: Path, who) -> None:
    (folder / "submitted").mkdir(exist_ok=True)
    for name in who:
        hand_ins.CLASS[name](folder / "week3", folder / "submitted" / name)


def grade(folder: Path, submitted: str, out: str, *options: str) -> int:
    """Grade what was submitted."""
    return cli.main(["grade", *options, str(folder / submitted), str(folder / out)])


def table(out: Path) -> dict[str, dict[str, str]]:
    """The rows of grades.csv by student."""
    text = (out / "grades.csv").read_text(encoding="utf-8-sig")
    return {row["student"]: row for row in csv.DictReader(text.splitlines())}


def points(row: dict[str, str]) -> int:
    """The exercises that were right."""
    return sum(
        value == "1" for name, value in row.items() if "exercise" in name and "expl" not in name
    )


@pytest.fixture(scope="module")
def afternoon(once, tmp_path_factory, sandbox):
    """A folder with week3, what was handed out; submitted; and grades, after the late ones came.
    It is made once for all processes that run tests. Beside it, the grades before those came.
    """

    def spend() -> tuple[Path, dict[str, dict[str, str]]]:
        folder = tmp_path_factory.mktemp("class")
        roster = "--roster", str(folder / "class.csv")
        hand_out(folder, WHO, NOTHING)
        collect(folder, [name for name in WHO if name not in hand_ins.LATE])
        assert grade(folder, "submitted", "grades", *roster) == 0
        before = table(folder / "grades")
        collect(folder, hand_ins.LATE)
        assert grade(folder, "submitted", "grades", *roster) == 0
        return folder, before

    return once("afternoon", spend)


@pytest.mark.slow
def test_honest_work_has_its_points_and_cheats_have_none(afternoon):
    folder, _ = afternoon
    earned = {name: points(row) for name, row in table(folder / "grades").items()}
    wanted = {name: EARNED.get(name, 0) for name in WHO if EARNED.get(name)}
    assert {name: count for name, count in earned.items() if count} == wanted


@pytest.mark.slow
def test_each_student_has_a_status(afternoon):
    folder, before = afternoon
    rows = table(folder / "grades")
    assert set(rows) == {*WHO, *NOTHING}
    for name in NOTHING:
        assert rows[name]["status"] == gradebook.NOT_SUBMITTED and not float(rows[name]["total"])
    assert {row["maximum"] for row in rows.values()} == {"400"}, "the same for all"
    assert all(before[name]["status"] == gradebook.NOT_SUBMITTED for name in hand_ins.LATE)
    assert rows["links"]["status"].count("it is a link") == 3
    assert "it is a link" in rows["linked folder"]["status"]
    assert "archive.zip: it can't be opened as an archive" in rows["archive"]["status"]
    assert rows["by its cells"]["status"].count(", ") == 3, "four lessons were known"


@pytest.mark.slow
def test_no_submission_strikes_an_exercise_out_of_the_maximum(afternoon):
    folder, _ = afternoon
    for name, row in table(folder / "grades").items():
        exercises = [column for column in row if "exercise" in column and "expl" not in column]
        lessons = sum(bool(row[column]) for column in row if column.endswith(", of 100"))
        assert len([column for column in exercises if row[column]]) == 3 * lessons, name


@pytest.mark.slow
def test_late_submissions_leave_the_grades_of_others(afternoon):
    folder, before = afternoon
    after = table(folder / "grades")
    assert {name: row for name, row in after.items() if name not in hand_ins.LATE} == {
        name: {column: row.get(column, "") for column in after[name]}
        for name, row in before.items()
        if name not in hand_ins.LATE
    }


@pytest.mark.slow
def test_grading_again_gives_the_same_grades(afternoon):
    """Without cached results, and in another folder."""
    folder, _ = afternoon
    for name in AGAIN:
        shutil.copytree(folder / "submitted" / name, folder / "again" / name)
    assert grade(folder, "again", "other") == 0
    first, second = table(folder / "grades"), table(folder / "other")
    assert second == {
        name: {column: first[name][column] for column in second[name]} for name in AGAIN
    }


@pytest.mark.slow
def test_each_has_a_page_that_a_browser_may_open(afternoon):
    folder, _ = afternoon
    pages = list((folder / "grades/feedback").iterdir())
    assert len(pages) == len(WHO) + len(NOTHING)
    for page in pages:
        assert "<script>alert" not in page.read_text(encoding="utf-8")


# -- the same cheats in a notebook

BODIES = "HALTED VERDICT FRAMES OBJECTS EQUAL FORGED PATCHED".split()
CELLS = {
    "two sizes": (hand_ins.TWO_SIZES, "ceiling", ck.teach.small.check_ceiling),
    "reference": (hand_ins.REFERENCE, "seconds", ck.teach.bus.check_seconds),
    "by host": (hand_ins.BY_HOST, "product", ck.teach.larger.check_product),
    "larger card": (hand_ins.LARGER_CARD, "product", ck.teach.larger.check_product),
}
for name in BODIES:
    cell = f"def seconds(*given):\n{getattr(hand_ins, name)}"
    CELLS[name] = cell, "seconds", ck.teach.bus.check_seconds


@pytest.mark.parametrize("name", CELLS)
def test_a_cheat_earns_nothing_in_a_notebook(name):
    cell, asked, check = CELLS[name]
    notebook: dict = {"ck": ck, "__name__": "__main__"}
    exec(cell, notebook)
    verdict = check(notebook[asked])
    assert not verdict.right and not verdict.is_broken, verdict
