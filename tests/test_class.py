"""A teacher's afternoon: handouts for a class, its submissions, and their grades.

The tests grade thirteen students of nineteen on a roster.
"""

import csv
from pathlib import Path

import hand_ins
import pytest

import cypresskit as ck
from cypresskit import cli
from cypresskit.grading import gradebook

WHO = (
    *("honest", "copied", "canvas", "by its cells", "one lesson", "mistaken", "stumbles"),
    *("endless", "disk", "stays", "links", "linked folder", "archive"),
)
NOTHING = [f"absent {n}" for n in range(6)]
EARNED = dict.fromkeys(hand_ins.HONEST, 12) | {"one lesson": 3}


def points(row: dict[str, str]) -> int:
    """The exercises that were right."""
    return sum(
        value == "1" for name, value in row.items() if "exercise" in name and "expl" not in name
    )


@pytest.fixture(scope="module")
def afternoon(once, tmp_path_factory, sandbox):
    """The folder of grades, and the rows of grades.csv by student. They are made once for all
    processes that run tests.
    """

    def spend() -> tuple[Path, dict[str, dict[str, str]]]:
        folder = tmp_path_factory.mktemp("class")
        week, submitted, grades = (folder / name for name in ("week3", "submitted", "grades"))
        assert cli.main(["handout", *hand_ins.LESSONS, "--to", str(week)]) == 0
        ids = [f"{'23' if name == 'canvas' else name},{name}" for name in (*WHO, *NOTHING)]
        (folder / "class.csv").write_text("\n".join(["id,name", *ids]))
        submitted.mkdir()
        for name in WHO:
            hand_ins.CLASS[name](week, submitted / name)
        roster = "--roster", str(folder / "class.csv")
        assert cli.main(["grade", *roster, str(submitted), str(grades)]) == 0
        text = (grades / "grades.csv").read_text(encoding="utf-8-sig")
        return grades, {row["student"]: row for row in csv.DictReader(text.splitlines())}

    return once("afternoon", spend)


@pytest.mark.slow
def test_honest_work_has_its_points_and_cheats_have_none(afternoon):
    _, rows = afternoon
    earned = {name: points(row) for name, row in rows.items()}
    assert {name: count for name, count in earned.items() if count} == EARNED


@pytest.mark.slow
def test_each_student_has_a_status_and_a_page_that_a_browser_may_open(afternoon):
    """And no submission strikes an exercise out of the maximum."""
    grades, rows = afternoon
    assert set(rows) == {*WHO, *NOTHING}
    for name in NOTHING:
        assert rows[name]["status"] == gradebook.NOT_SUBMITTED and not float(rows[name]["total"])
    assert {row["maximum"] for row in rows.values()} == {"400"}, "the same for all"
    assert rows["links"]["status"].count("it is a link") == 3
    assert "it is a link" in rows["linked folder"]["status"]
    assert "archive.zip: it can't be opened as an archive" in rows["archive"]["status"]
    assert rows["by its cells"]["status"].count(", ") == 3, "four lessons were known"
    for name, row in rows.items():
        exercises = [column for column in row if "exercise" in column and "expl" not in column]
        lessons = sum(bool(row[column]) for column in row if column.endswith(", of 100"))
        assert len([column for column in exercises if row[column]]) == 3 * lessons, name
    pages = [page.read_text(encoding="utf-8") for page in (grades / "feedback").iterdir()]
    assert len(pages) == len(rows) and not any("<script>alert" in page for page in pages)


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
