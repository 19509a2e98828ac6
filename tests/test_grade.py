"""Marks: what is right gets its point; what is wrong or patches the workbook gets none, whatever stands beside it."""

import csv
import shutil

import nbformat
import pytest
from conftest import ROOT

from tools import book, grade, marks

BOOK = ROOT / "notebooks"
SETUP = "import cypresskit as ck\nfrom types import SimpleNamespace\nfrom dataclasses import replace"
CHECK = "ck.teach.start_here.check_peak(peak)"
RIGHT = "def peak(e, p, u, g):\n    return 2 * e * p * u * g"
WRONG = "def peak(e, p, u, g):\n    return e"
ALWAYS = "lambda *a, **o: SimpleNamespace(right=True, finding='', hint='')"


def judged(*cells, check=CHECK):
    return grade.judge([SETUP, *cells], check)


@pytest.mark.parametrize(
    "cells",
    [[RIGHT], [WRONG, RIGHT], [RIGHT, "x = ("], ["two = 2", "two += 0", RIGHT.replace("2 *", "two *")],
     [f"ck.teach.start_here.check_peak = {ALWAYS}", RIGHT],
     ["%%time\n" + RIGHT.replace("    return", "    %time e\n    !ls\n    return")]],
)  # fmt: skip
def test_a_right_answer_gets_its_point_whatever_stands_beside_it(cells):
    assert judged(*cells).right


PATCH = "ck.teach.start_here.check_peak = " + ALWAYS


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([WRONG], "it should be"),
        ([PATCH, WRONG], "it should be"),
        ([f"{PATCH}\n{WRONG}"], "start_here.check_peak"),
        ([f"{WRONG}\nck.teach.formula.isclose = lambda *a, **o: True"], "formula.isclose"),
        ([f"import cypresskit.teach.formula as f\nf.judge.__code__ = (lambda *a, **o: 1).__code__\n{WRONG}"], "judge"),
        ([WRONG.replace("return e", "object.__setattr__(ck.HD5870, 'clock_ghz', 5.0); return 2 * e * p * u * g")],
         "HD5870"),
        ([WRONG.replace("    return e", "    ck.teach.formula.isclose = lambda *a, **o: True\n    return e")],
         "formula.isclose"),
        ([f"import math\nmath.isclose = lambda *a, **o: True\n{WRONG}"], "isclose"),
        ([RIGHT.replace("return", "import os; os._exit(0) or")], "could not be judged"),
        ([WRONG, "def peak(e:\n    return"], "isn't valid Python"),
        (["def peak(e, p, u, g):\n    while True: pass"], "had not ended"),
        (["peak = 1 / 0"], "ZeroDivisionError"),
        ([f"{RIGHT}\nexit()"], "could not be judged: it tries to quit Python."),
        (["peak = bytes(10**12)"], "needs more than"),
        ([], "There is no peak"),
    ],
)  # fmt: skip
def test_what_is_wrong_or_patched_gets_none(cells, said):
    verdict = judged(*cells)
    assert not verdict.right and verdict.hint and said in verdict.finding, verdict


@pytest.mark.parametrize("path", book.sources(BOOK), ids=lambda path: path.stem)
def test_solved_lessons_get_all_points_and_unsolved_none(path):
    """Judged in this process, which is not what the table below starts for each of lesson 09's."""
    asked = [exercise.check for exercise in marks.exercises(BOOK / f"{path.stem}.ipynb")]
    for make, right in ((book.solved, True), (book.student, False)):
        cells = [cell.source for cell in make(book.read(path)).cells if cell.cell_type == "code"]
        assert [grade.apart_judged(cells, check)[0] for check in asked] == [right] * len(asked)


def test_a_class_gets_its_table_and_pages(tmp_path, capsys):
    path = book.sources(BOOK, ["09"])[0]
    for who, make in (("Ada L_4711_assignsubmission_file", book.solved), ("=bob", book.student)):
        folder = tmp_path / "in" / who / "09"
        folder.mkdir(parents=True)
        nbformat.write(make(book.read(path)), folder / f"Bus {path.stem} (1).ipynb")
    shutil.copy(
        folder / f"Bus {path.stem} (1).ipynb",
        tmp_path / "in/Ada L_4711_assignsubmission_file" / f"{path.stem}_late.ipynb",
    )
    nbformat.write(nbformat.v4.new_notebook(), folder / "homework.ipynb")
    (tmp_path / "in" / "cyd").mkdir()
    (tmp_path / "in" / "dan").mkdir()  # who handed nothing in
    (tmp_path / "in" / "cyd" / f"{path.stem}.ipynb").write_text("{")
    shutil.copy(path, tmp_path / "in" / "cyd")
    table, pages = tmp_path / "m.csv", tmp_path / "pages"
    assert marks.main([str(tmp_path / "in"), "--csv", str(table), "--feedback", str(pages)]) == 0
    assert "homework.ipynb is not marked" in capsys.readouterr().err
    rows = {row["id"]: row for row in csv.DictReader(table.open())}
    assert {who: row["total"] for who, row in rows.items()} == {"4711": "3", "'=bob": "0", "cyd": "0", "dan": ""}
    balance = {row["student"]: row["09 The bus, exercise 2: any precision, any traffic"] for row in rows.values()}
    assert balance == {"Ada L": "1", "'=bob": "0", "cyd": "0", "dan": ""}
    ada, bob = ((pages / f"{who}.html").read_text() for who in ("Ada L_4711_assignsubmission_file", "=bob"))
    assert "<h1>Ada L: 3 of 3 right" in ada and "<h2>09 The bus, exercise 1: without the old C" in ada
    assert "def seconds(" in ada and "return" in ada, "the student's own code"
    assert "Not yet." in bob and "Traceback" not in bob
    assert "is no notebook" in (pages / "cyd.html").read_text()
