"""Marks: what is right gets its point; what is wrong or patches the workbook gets none, whatever
stands beside it.
"""

import csv
from copy import deepcopy

import nbformat
import pytest
from conftest import ROOT

from cypresskit.draw.predict import KEPT
from cypresskit.teach import check
from tools import book, grade, handed_in, marks

pytestmark = pytest.mark.slow
BOOK = ROOT / "notebooks"
SETUP = (
    "import cypresskit as ck\nfrom types import SimpleNamespace\nfrom dataclasses import replace"
)
CHECK = "ck.teach.start_here.check_peak(peak)"
RIGHT = "def peak(e, p, u, g):\n    return 2 * e * p * u * g"
WRONG = "def peak(e, p, u, g):\n    return e"
PATCH = (
    "ck.teach.start_here.check_peak = lambda *a, **o: SimpleNamespace(right=True, finding='',"
    " hint='')"
)


def judged(*cells):
    return grade.judge([SETUP, *cells], CHECK)


@pytest.mark.parametrize(
    "cells",
    [
        [RIGHT],
        [WRONG, RIGHT],
        [RIGHT, "x = ("],
        [PATCH, RIGHT],
        [
            "two = 2",
            "two += 0",
            "1 / 0",
            "def twice(x):\n    return two * x",
            RIGHT.replace("2 * e", "twice(e)"),
        ],
        ["a = 1; n = 5", "n = 2", RIGHT.replace("2 * e", "a * n * e")],
        ["two = 1", "two = 2 * two", "class K:\n    t = two", RIGHT.replace("2 * e", "K.t * e")],
        ["%%time\n" + RIGHT.replace("    return", "    %time e\n    !ls\n    return")],
    ],
)
def test_a_right_answer_gets_its_point_whatever_stands_beside_it(cells):
    assert judged(*cells).right


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([WRONG], "it should be"),
        ([PATCH, WRONG], "it should be"),
        ([f"{PATCH}\n{WRONG}"], "start_here.check_peak"),
        ([f"{WRONG}\nck.teach.formula.isclose = lambda *a, **o: True"], "formula.isclose"),
        ([f"ck.teach.formula._judged.__code__ = (lambda *a, **o: 1).__code__\n{WRONG}"], "_judged"),
        (
            [
                WRONG.replace(
                    "return e",
                    "object.__setattr__(ck.HD5870, 'clock_ghz', 5.0); return 2 * e * p * u * g",
                )
            ],
            "HD5870",
        ),
        (
            [
                WRONG.replace(
                    "    return e",
                    "    ck.teach.formula.isclose = lambda *a, **o: True\n    return e",
                )
            ],
            "formula.isclose",
        ),
        ([f"ck.kernels['sgemm_tn'] = ck.kernels['sgemm_nn']\n{RIGHT}"], "KERNELS"),
        ([f"import math\nmath.isclose = lambda *a, **o: True\n{WRONG}"], "isclose"),
        ([RIGHT.replace("return", "import os; os._exit(0) or")], "could not be judged"),
        ([WRONG, "def peak(e:\n    return"], "isn't valid Python"),
        (["def peak(e, p, u, g):\n    while True: pass"], "had not ended"),
        (["peak = 1 / 0"], "The cell of peak stops with ZeroDivisionError"),
        (
            ["two = 1 / 0", RIGHT.replace("2", "two")],
            "A cell that peak needs stops with ZeroDivisionError",
        ),
        ([f"{RIGHT}\nexit()"], "could not be judged: it tries to quit Python."),
        (["peak = bytes(10**12)"], "needs more than"),
        ([], "There is no peak"),
    ],
)
def test_what_is_wrong_or_patched_gets_none(cells, said, monkeypatch):
    monkeypatch.setattr(check, "SECONDS", 1.0)
    verdict = judged(*cells)
    assert not verdict.right and verdict.hint and said in verdict.finding, verdict


@pytest.mark.parametrize("path", book.sources(BOOK), ids=lambda path: path.stem)
def test_solved_lessons_get_all_points_and_unsolved_none(path):
    for make, right in ((book.solved, True), (book.student, False)):
        cells = [cell.source for cell in make(book.read(path)).cells if cell.cell_type == "code"]
        asked = [found[1] for found in map(book.CHECK.search, cells) if found]
        assert [grade.apart_judged(cells, check).right for check in asked] == [right] * len(asked)


ASKED = "From which N does the chip take at least as long?"
EVIL = [
    {"question": ["x"], "guess": 1, "truth": {"y": 1}},
    7,
    None,
    {"question": ASKED, "guess": "\t=2+2" + "9" * 10**5, "truth": float("nan")},
]


@pytest.fixture
def submitted(tmp_path, monkeypatch):
    """Lesson 09 handed in by Ada, who solved it and guessed, by Bob, who did nothing, by Eve and by
    others.
    """
    path = book.sources(BOOK, ["09"])[0]
    student, solved, ada = (
        make(book.read(path)) for make in (book.student, book.solved, book.solved)
    )
    entered = {
        "change = ": "change._entries[0].value = 1200",
        "helps = ": "helps[1024]._entries[0].value = 'the bus'",
    }
    for asks, enter in entered.items():
        next(
            cell for cell in ada.cells if asks in cell.source and "predict" in cell.source
        ).source += f"\n{enter}"
    book.execute(student), book.execute(ada)
    book.write(student, tmp_path / f"{path.stem}.ipynb")
    book.write(solved, tmp_path / "solutions" / f"{path.stem}.ipynb")
    monkeypatch.setattr(handed_in, "LESSONS", tmp_path)
    evil = deepcopy(student)
    for cell, saved in zip((cell for cell in evil.cells if cell.cell_type == "code"), EVIL):
        cell.outputs = [nbformat.v4.new_output("display_data", {}, metadata={KEPT: saved})]
    next(c for c in evil.cells if c.source.startswith(book.ASKS)).source = (
        "=cmd()<script>" + "x" * 10**5
    )
    names = "Ada L_4711_assignsubmission_file", "=bob", "eve", "cyd", "dan"  # who handed nothing in
    for who, notebook in zip(names, (ada, student, evil)):
        book.write(notebook, tmp_path / "in" / who / "09" / f"Bus {path.stem} (1).ipynb")
    book.write(student, tmp_path / "in" / names[0] / f"{path.stem}_late.ipynb")
    book.write(nbformat.v4.new_notebook(), tmp_path / "in/=bob/homework.ipynb")
    for who in ("cyd", "dan"):
        (tmp_path / "in" / who).mkdir()
    (tmp_path / f"in/cyd/{path.stem}.ipynb").write_text("{")
    return tmp_path / "in"


def rows(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))


def test_a_class_gets_its_tables_and_pages(submitted, tmp_path, capsys):
    command = [str(submitted), str(tmp_path)]
    assert marks.main(command) == 0
    out, err = capsys.readouterr()
    assert "homework.ipynb is not marked" in err and "4 explanations wait" in out
    first = "09 The bus, exercise 1: without the old C"
    marked = {row["id"]: (row[first], row["total"]) for row in rows(tmp_path / "marks.csv")}
    none = ("0", "0.0")
    assert marked == {
        "'=bob": none,
        "4711": ("1", "63.3"),
        "cyd": none,
        "dan": ("", ""),
        "eve": ("0", "6.7"),
    }

    guesses = [list(row.values()) for row in rows(tmp_path / "guesses.csv")]
    assert guesses[0] == ["4711", "Ada L", "09 The bus", ASKED, "1200", "1200.0", "2400", "-50.0"]
    assert guesses[1][4:] == ["the bus", "", "the bus", ""]
    assert (
        guesses[2][:5] == ["eve", "eve", "09 The bus", ASKED, "'\t=2+2" + "9" * 995]
        and len(guesses) == 3
    )

    sheet = tmp_path / "explanations.csv"
    wrote = rows(sheet)
    assert [row["student"] for row in wrote] == [
        "Ada L",
        "eve",
        "Ada L",
        "Ada L",
    ], "a question after the other"
    assert wrote[1]["sentence"].startswith("'=cmd()<script>x") and len(wrote[1]["sentence"]) == 1001
    assert (
        wrote[0]["sentence"] == wrote[0]["a good answer"]
        and wrote[0]["question"][:17] == "Why does leaving "
    )
    pages = {
        who: (tmp_path / "feedback" / f"{who}.html").read_text() for who in ("=bob", "cyd", "eve")
    }
    assert (
        "Not yet." in pages["=bob"]
        and "<script>" not in pages["eve"]
        and "is no notebook" in pages["cyd"]
    )

    def save_as_a_spreadsheet_does(points):
        text = [list(row.values())[:-1] + [given] for row, given in zip(wrote, points)]
        with sheet.open("w", newline="", encoding="cp1252") as file:
            csv.writer(file, delimiter=";").writerows([list(wrote[0]), *text])

    save_as_a_spreadsheet_does(["2", "0", "1,5", "three"])
    with pytest.raises(
        SystemExit, match=r"row 5 \(Ada L, .*`three` isn't a number of points from 0 to 2"
    ):
        marks.main(command)
    save_as_a_spreadsheet_does(["2", "0", "1,5", ""])
    assert marks.main(command) == 0 and "1 explanations wait" in capsys.readouterr().out
    ada = rows(tmp_path / "marks.csv")[1]
    assert [ada[f"{first}, explanation"], ada["09 The bus, of 100"], ada["total"]] == [
        "2.0",
        "80.8",
        "80.8",
    ]
    assert [row[marks.RUBRIC] for row in rows(sheet)] == [
        "2.0",
        "0.0",
        "1.5",
        "",
    ], "points are kept"
    page = (tmp_path / "feedback/Ada L_4711_assignsubmission_file.html").read_text()
    assert "<h1>Ada L: 80.8 of 100 points" in page and f"<h3>{first}" in page
    assert (
        "def seconds(" in page
        and "1.5 of 2 points" in page
        and "not read yet" in page
        and "You said 1200" in page
    )

    marks.save(sheet, [row | {"id": "nobody"} for row in rows(sheet)])
    (tmp_path / "feedback/eve.html").unlink()
    with pytest.raises(SystemExit, match="by nobody: no table or page was written"):
        marks.main(command)
    assert not (tmp_path / "feedback/eve.html").exists() and rows(sheet)[0]["id"] == "nobody"
