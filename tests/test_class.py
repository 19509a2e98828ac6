"""A teacher's afternoon: lessons for a roster of forty, what comes back, and marks for all."""

import csv
import shutil
from pathlib import Path

import hand_ins
import pytest

import cypresskit as ck
from cypresskit import cli

FULL = dict.fromkeys(hand_ins.HONEST, 12) | {"late 1": 12, "late 2": 3}
AGAIN = ("honest 1", "mistaken", "two sizes", "equal")


@pytest.fixture(scope="module")
def afternoon(once, tmp_path_factory):
    """A folder with week3, what was handed out; submitted; and marks, after the late ones came.
    It is made once for all processes that run tests. Beside it, the marks before those came.
    """
    return once("afternoon", lambda: spend_afternoon(tmp_path_factory.mktemp("class")))


def spend_afternoon(folder: Path) -> tuple[Path, dict[str, dict[str, str]]]:
    """Hand out, collect, mark, and mark again with the late ones. Returns the folder and the first
    marks.
    """
    roster = folder / "class.csv"
    roster.write_text("id,name\n" + "".join(f"{name},{name}\n" for name in hand_ins.CLASS))
    handed_out, submitted = folder / "week3", folder / "submitted"
    command = ["handout", *hand_ins.LESSONS, "--to", str(handed_out), "--roster", str(roster)]
    assert cli.main(command) == 0
    submitted.mkdir()
    for name, make in hand_ins.CLASS.items():
        if name not in hand_ins.LATE:
            make(handed_out / name, submitted / name)
    assert marks(folder, "submitted", "marks") == 0
    for name, make in hand_ins.LATE.items():
        make(handed_out / name, submitted / name)
    before = table(folder / "marks")
    assert marks(folder, "submitted", "marks") == 0
    return folder, before


def marks(folder: Path, submitted: str, out: str) -> int:
    """Mark what was submitted, with the numbers that were handed out."""
    seed = (folder / "week3/seed.txt").read_text().strip()
    options = ["--own-numbers", "--seed", seed, "--jobs", "2"]
    return cli.main(["marks", *options, str(folder / submitted), str(folder / out)])


def table(out: Path) -> dict[str, dict[str, str]]:
    """The rows of marks.csv by students."""
    text = (out / "marks.csv").read_text(encoding="utf-8-sig")
    return {row["student"]: row for row in csv.DictReader(text.splitlines())}


def points(row: dict[str, str]) -> int:
    """The exercises that were right."""
    return sum(
        value == "1" for name, value in row.items() if "exercise" in name and "expl" not in name
    )


@pytest.mark.slow
def test_honest_work_has_its_points_and_cheats_have_none(afternoon):
    folder, _ = afternoon
    earned = {name: points(row) for name, row in table(folder / "marks").items()}
    assert len(earned) == 40
    assert {name: count for name, count in earned.items() if count} == FULL


@pytest.mark.slow
def test_who_is_late_changes_nobody_elses_marks(afternoon):
    folder, before = afternoon
    after = table(folder / "marks")
    assert {name: row for name, row in after.items() if name not in hand_ins.LATE} == {
        name: {column: row.get(column, "") for column in after[name]}
        for name, row in before.items()
    }


@pytest.mark.slow
def test_marks_made_anew_are_the_same(afternoon):
    """Without what was kept, and in another folder."""
    folder, _ = afternoon
    for name in AGAIN:
        shutil.copytree(folder / "submitted" / name, folder / "again" / name)
    assert marks(folder, "again", "other") == 0
    first, second = table(folder / "marks"), table(folder / "other")
    assert second == {
        name: {column: first[name][column] for column in second[name]} for name in AGAIN
    }


@pytest.mark.slow
def test_each_has_a_page_that_a_browser_may_open(afternoon):
    folder, _ = afternoon
    pages = list((folder / "marks/feedback").iterdir())
    assert len(pages) == 40
    for page in pages:
        assert "<script>alert" not in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_is_not_read_is_named(afternoon, capsys):
    folder, _ = afternoon
    for name in ("fifo", "links", "sparse", "broken"):
        (folder / "odd").mkdir(exist_ok=True)
        hand_ins.CLASS[name](folder / "week3" / name, folder / "odd" / name)
    capsys.readouterr()
    assert marks(folder, "odd", "odd marks") == 0
    said = capsys.readouterr().err
    for words in ("it is a pipe or a device", "it is a link", "30,000,000 bytes", "it is no JSON"):
        assert words in said


# -- the same cheats in a notebook

BODIES = {
    "halted": hand_ins.HALTED,
    "verdict": hand_ins.VERDICT,
    "frames": hand_ins.FRAMES,
    "objects": hand_ins.OBJECTS,
    "equal": hand_ins.EQUAL,
    "forged": hand_ins.FORGED,
    "patched": hand_ins.PATCHED,
}
CELLS = {
    "two sizes": (hand_ins.TWO_SIZES, "ceiling", ck.teach.small.check_ceiling),
    "reference": (hand_ins.REFERENCE, "seconds", ck.teach.bus.check_seconds),
    "by host": (hand_ins.BY_HOST, "product", ck.teach.larger.check_product),
    "larger card": (hand_ins.LARGER_CARD, "product", ck.teach.larger.check_product),
}
for name, body in BODIES.items():
    CELLS[name] = f"def seconds(*given):\n{body}", "seconds", ck.teach.bus.check_seconds


@pytest.mark.parametrize("name", CELLS)
def test_a_cheat_earns_nothing_in_a_notebook(name):
    cell, asked, check = CELLS[name]
    notebook: dict = {"ck": ck, "__name__": "__main__"}
    exec(cell, notebook)
    verdict = check(notebook[asked])
    assert not verdict.right and not verdict.broken, verdict
