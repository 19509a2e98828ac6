"""Marks: what is right gets its point, what is wrong or cheats gets none, and whatever one student
hands in, all others get their marks.
"""

import csv
import json
import os
import random
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT

from cypresskit import cli
from cypresskit.draw.predict import KEPT
from cypresskit.isolated.process import Family
from cypresskit.kernels import generated
from cypresskit.marks import course, gradebook, judging, submissions
from cypresskit.teach import check
from tools import book

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


@pytest.fixture(scope="module")
def family():
    """Where answers run: in a sandbox, if there is one."""
    made = Family(sandbox=True)
    yield made
    made.end()


@pytest.mark.parametrize(
    "cells",
    [
        [RIGHT],
        [WRONG, RIGHT],
        [RIGHT, "x = ("],
        [PATCH, RIGHT],
        [RIGHT + "\nprint(ck.teach.bus.anything(3), f'{ck.teach.x:.3f}')\n1 / 0"],
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
        [f"{PATCH}\n{RIGHT}"],
    ],
)
def test_a_right_answer_gets_its_point_whatever_stands_beside_it(cells, family):
    verdict = judging.judge([SETUP, *cells], CHECK, family=family)
    assert verdict.right, verdict


FORGED = """
import os
def peak(e, p, u, g):
    for n in range(3, 64):
        try:
            text = b'{"result":2720.0,"arguments":{"list":[1,2,3,4]},"right":true}'
            os.write(n, len(text).to_bytes(4, "big") + text)
        except OSError:
            pass
"""
HALTED = """
def peak(*a):
    from cypresskit.teach.check import Halted, Verdict
    h = Halted("x", "y")
    h.verdict = Verdict(True, "fine")
    raise h
"""
FRAMES = """
import sys
def peak(*a):
    frame = sys._getframe()
    while frame:
        for name in ("right", "want", "verdict"):
            if name in frame.f_locals:
                return frame.f_locals[name]
        frame = frame.f_back
"""
ON_DISK = """
import importlib.util, os
def peak(e, p, u, g):
    path = os.path.join(os.path.dirname(ck.__file__), "teach", "l00_start_here.py")
    return eval(open(path).read().split("return ")[1].split("\\n")[0])
"""


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([WRONG], "it should be"),
        ([PATCH, WRONG], "it should be"),
        ([f"{PATCH}\n{WRONG}"], "it should be"),
        ([f"{WRONG}\nck.teach.formula.isclose = lambda *a, **o: True"], "it should be"),
        ([f"import math\nmath.isclose = lambda *a, **o: True\n{WRONG}"], "it should be"),
        ([HALTED], "cypresskit.teach"),
        ([FRAMES], "peak"),
        ([FORGED], ""),
        ([f"from cypresskit.teach.l00_start_here.checks import check_peak as peak\n{WRONG}"], ""),
        ([RIGHT.replace("return", "import os; os._exit(0) or")], "brings Python down"),
        ([WRONG, "def peak(e:\n    return"], "isn't valid Python"),
        (["def peak(e, p, u, g):\n    while True: pass"], "had not ended"),
        (["peak = 1 / 0"], "The cell of peak stops with ZeroDivisionError"),
        (
            ["two = 1 / 0", RIGHT.replace("2", "two")],
            "A cell that peak needs stops with ZeroDivisionError",
        ),
        ([f"{RIGHT}\nexit()"], "could not be judged"),
        (["peak = bytes(10**12)"], "could not be judged"),
        (["peak = 2720"], "is of type int, not a function"),
        ([], "There is no peak"),
    ],
)
def test_what_is_wrong_or_cheats_gets_no_point(cells, said, monkeypatch, family):
    monkeypatch.setattr(check, "SECONDS", 1.0)
    verdict = judging.judge([SETUP, *cells], CHECK, family=family)
    assert not verdict.right and not verdict.broken and verdict.hint, verdict
    assert said in verdict.finding, verdict


@pytest.mark.parametrize(
    ("name", "said"), [("right", "C is right at three shapes"), ("numpy", "no kernel was launched")]
)
def test_a_cuda_kernel_is_judged_and_numpy_in_its_place_is_not(name, said, family):
    """In a sandbox, where there is one."""
    (path,) = (ROOT / "notebooks/source").glob("13_*.md")
    cells = [cell.source for cell in book.solved(book.read(path)).cells]
    kernel = next(text for text in cells if text.startswith("def product(a, b):"))
    kernel = kernel.partition("\n\nprint(")[0]
    answer = {"right": kernel, "numpy": "def product(a, b):\n    return a.T @ b"}[name]
    asked = "ck.teach.what_is_left.check_product(product)"
    verdict = judging.judge(["import numpy as np", answer], asked, family=family)
    assert verdict.right == (name == "right") and said in verdict.finding, verdict


ENTRY = [
    "import cypresskit as ck",
    "text, block, steps = ck.teach.climb.start('12')",
    "mine = ck.teach.contest.entry(text, block=block, k_step=steps)",
]


@pytest.mark.parametrize("kernel", ["fast", "", "nonsense", "il_ps_2_0\nend\n"])
def test_a_students_own_kernel_is_judged_where_it_is_handed_in(kernel, family):
    if kernel == "fast":  # the book's: the loop's body twice in a turn
        fast = generated.write(12, 8, 3).text
        body = fast.partition("whileloop\n")[2].partition("endloop")[0]
        kernel = fast.replace(body, 2 * body)
    asked = "ck.teach.contest.check_entry(mine)"
    verdict = judging.judge(ENTRY, asked, family=family, kernel=kernel)
    assert not verdict.broken and verdict.right == (len(kernel) > 99), verdict


def test_the_kernel_beside_a_notebook_is_read_with_care(tmp_path):
    file = tmp_path / submissions.KERNEL
    assert submissions.own_kernel(tmp_path) == ""
    file.write_text("il_ps_2_0")
    assert submissions.own_kernel(tmp_path) == "il_ps_2_0"
    for data, said in ((b"\xff\xfe", "isn't text"), (b"x" * 300_000, "more than")):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=said):
            submissions.own_kernel(tmp_path)
    file.unlink()
    file.symlink_to("/dev/zero")
    assert submissions.own_kernel(tmp_path) == ""
    file.unlink()
    os.mkfifo(file)
    assert submissions.own_kernel(tmp_path) == ""


def test_a_sandbox_has_no_right_answers(family):
    if not family.sandbox:
        pytest.skip("bubblewrap isn't installed or doesn't work here")
    verdict = judging.judge([SETUP, ON_DISK], CHECK, family=family)
    assert not verdict.right and "FileNotFoundError" in verdict.finding, verdict
    write = "open('/tmp/x', 'w').close(); open(ck.__file__, 'a')"
    verdict = judging.judge([SETUP, WRONG.replace("return e", write)], CHECK, family=family)
    assert "Read-only file system" in verdict.finding, verdict
    lists = "import os; raise ValueError(os.listdir('/root' if os.path.exists('/root') else '/'))"
    verdict = judging.judge([SETUP, WRONG.replace("return e", lists)], CHECK, family=family)
    assert "notebooks" not in verdict.finding and ".ssh" not in verdict.finding


def test_a_value_found_by_asking_the_check_earns_nothing(family):
    asks = (
        "half = next(n for n in range(128, 4097, 128) if ck.teach.start_here.check_half(n).right)"
    )
    verdict = judging.judge([SETUP, asks], "ck.teach.start_here.check_half(half)", family=family)
    assert not verdict.right and "The cell of half stops with" in verdict.finding, verdict


def test_marks_are_the_same_when_made_again(family):
    """An answer that is wrong for some numbers is judged alike for one student each time."""
    some = RIGHT.replace("return", "return 1 if round(1e6 * g) % 2 and g not in (0.85, 0.725) else")
    for seed in "abcdef":
        again = {judging.judge([SETUP, some], CHECK, seed=seed, family=family) for _ in range(3)}
        assert len(again) == 1


@pytest.mark.slow
@pytest.mark.parametrize("path", book.sources(BOOK), ids=lambda path: path.stem)
def test_solved_lessons_get_all_points_and_unsolved_none(path, family):
    for make, right in ((book.solved, True), (book.student, False)):
        cells = [cell.source for cell in make(book.read(path)).cells if cell.cell_type == "code"]
        asked = [found[1] for found in map(book.CHECK.search, cells) if found]
        verdicts = [judging.judge(cells, check, family=family) for check in asked]
        assert [verdict.right for verdict in verdicts] == [right] * len(asked), verdicts


# -- a class


ASKED = "From which N does the chip take at least as long?"
EVIL = [
    {"question": ["x"], "guess": 1, "truth": {"y": 1}},
    7,
    None,
    {"question": ASKED, "guess": "\t=2+2\ud800" + "9" * 10**5, "truth": float("nan")},
]
ADA = "Ada L_4711_assignsubmission_"
FIRST = "09 The bus, exercise 1: without the old C"


def cells(lesson, make) -> nbformat.NotebookNode:
    return make(book.read(book.sources(BOOK, [lesson])[0]))


def guessed(notebook, question, guess, truth):
    """Add a saved guess to the first code cell."""
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    saved = {KEPT: {"question": question, "guess": guess, "truth": truth}}
    first.outputs = [nbformat.v4.new_output("display_data", {}, metadata=saved)]


def put(folder: Path, name: str, notebook) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook) if not isinstance(notebook, str) else notebook
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


@pytest.fixture
def submitted(tmp_path):
    """Lesson 09 handed in by Ada, in both of Moodle's folders, by Bob, who did nothing, and by
    Eve."""
    folder = tmp_path / "in"
    student, solved = cells("09", book.student), cells("09", book.solved)
    guessed(solved, ASKED, 1200, 2400)
    evil = deepcopy(student)
    for cell, saved in zip((cell for cell in evil.cells if cell.cell_type == "code"), EVIL):
        cell.outputs = [nbformat.v4.new_output("display_data", {}, metadata={KEPT: saved})]
    asks = next(cell for cell in evil.cells if cell.source.startswith(book.ASKS))
    asks.source = "=cmd()<script>" + "x" * 10**5
    put(folder / f"{ADA}file", "Bus 09_bus (1).ipynb", solved)
    put(folder / f"{ADA}onlinetext", "09_bus.ipynb", student)
    put(folder / "=bob", "09_bus.ipynb", student)
    put(folder / "=bob", "homework.ipynb", student)
    put(folder / "eve/09", "09_bus.ipynb", evil)
    put(folder / "cyd", "09_bus.ipynb", "{")
    put(folder / "__MACOSX/ada", "09_bus.ipynb", solved)
    put(folder / ".git", "09_bus.ipynb", solved)
    (folder / "dan").mkdir()
    return folder


def rows(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))


def test_a_class_gets_its_tables_and_pages(submitted, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["marks", str(submitted), str(out), "--jobs", "2"]
    assert cli.main(command) == 0
    told, err = capsys.readouterr()
    assert "homework.ipynb is not marked" in err and "explanations wait" in told
    marked = {row["id"]: (row[FIRST], row["maximum"]) for row in rows(out / "marks.csv")}
    assert marked == {
        "'=bob": ("0", "100"),
        "4711": ("1", "100"),
        "cyd": ("0", "100"),
        "dan": ("", ""),
        "eve": ("0", "100"),
    }
    guesses = [row for row in rows(out / "guesses.csv") if row["id"] == "4711"]
    assert [guesses[0][name] for name in ("guess", "true value")] == ["1200", "2400"]
    pages = {page.name: page.read_text(encoding="utf-8") for page in (out / "feedback").iterdir()}
    assert "<script>" not in pages["eve.html"] and "is no notebook" in pages["cyd.html"]
    assert "def seconds(" in pages["Ada L_4711.html"]
    moodle = {row["Identifier"]: row for row in rows(out / "moodle.csv")}
    assert moodle["Participant 4711"]["Maximum Grade"] == "100"

    sheet = out / "explanations.csv"
    wrote = rows(sheet)
    evil = next(row for row in wrote if row["sentence"].startswith("'=cmd()<script>x"))
    assert len(evil["sentence"]) == 1001
    with sheet.open("w", newline="", encoding="cp1252") as file:
        writer = csv.DictWriter(file, list(wrote[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(row | {gradebook.RUBRIC: "1,5"} for row in wrote)
    before = (out / "marks.csv").read_bytes()
    (out / "feedback/left.html").write_text("of one who has left the class")
    assert cli.main(command) == 0
    assert (out / "marks.csv").read_bytes() != before
    ada = next(row for row in rows(out / "marks.csv") if row["id"] == "4711")
    assert ada[f"{FIRST}, explanation"] == "1.5"
    assert "1.5 of 2 points" in (out / "feedback/Ada L_4711.html").read_text(encoding="utf-8")
    assert not (out / "feedback/left.html").exists()
    once_more = (out / "marks.csv").read_bytes()
    assert cli.main(command) == 0 and (out / "marks.csv").read_bytes() == once_more

    put(submitted / "cyd", "09_bus.ipynb", cells("09", book.solved))
    put(submitted / f"{ADA}file", "Bus 09_bus (1).ipynb", cells("09", book.student))
    assert cli.main(command) == 0
    kept = [row for row in rows(sheet) if row[gradebook.RUBRIC]]
    assert len(kept) == len(wrote), "points aren't lost with a sentence"

    sheet.write_text("nonsense\n1\n")
    assert cli.main(command) == 1 and "has lost a column" in capsys.readouterr().err


def odd_guess(chance: random.Random):
    """Any JSON value."""
    digits = chance.randrange(1, 1000)
    return chance.choice(
        [
            None,
            chance.random() < 0.5,
            chance.choice([-1, 1]) * chance.randrange(10**digits),
            chance.uniform(-1, 1) * 10.0 ** chance.randrange(-320, 309),
            chance.choice([float("nan"), float("inf"), -float("inf")]),
            "".join(chance.choices("9.,/<=e+-\ud800 x", k=chance.choice([0, 9, 10**5]))),
            [[chance.random()]] * chance.randrange(3),
            {"1": 10**400, "x": [None]},
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_any_saved_guess_is_shown_and_a_number_as_it_was_entered(seed):
    guess = odd_guess(random.Random(seed))
    lesson = course.read(BOOK / "09_bus.ipynb")
    saved = json.loads(json.dumps({"question": ASKED, "guess": guess, "truth": 2400}))
    cell = course._cell({"cell_type": "code", "outputs": [{"metadata": {KEPT: saved}}]})
    work = gradebook.combined(lesson, [([cell], [])])
    class_ = gradebook.Class({"09": lesson}, {"a": (submissions.Student("a", "A"), {"09": work})})
    listed = list(gradebook.guesses(class_))
    assert len(listed) == (type(guess) in (int, float, str))
    for row in listed:
        assert len(row["guess"]) <= course.LONGEST
        row["guess"].encode("utf-8")  # no surrogates, which no table could hold
        if isinstance(guess, int):
            assert row["guess"] == str(guess)
        elif isinstance(guess, float) and abs(guess) < float("inf"):
            assert row["number"] == pytest.approx(guess, rel=1e-11, abs=1e-320)


@pytest.mark.parametrize(
    "guess, shown",
    [
        (1234567, "1234567"),
        (1234567.0, "1234567"),
        (0.1 + 0.2, "0.3"),
        (1200.0, "1200"),
        (1.5, "1.5"),
    ],
)
def test_a_guess_reads_as_it_was_entered(guess, shown):
    assert gradebook._entered(guess) == shown


def test_equal_sentences_are_read_once_and_names_can_be_hidden():
    exercise = course.Exercise("01 x, exercise 1: y", "ck.teach.a.check_b(c)", "why?", "because")
    lesson = course.Lesson("01 x", frozenset(), (exercise,), {})
    class_ = gradebook.Class({"01": lesson})
    for name, sentence in (("ada", "It's slow."), ("bob", "its  SLOW"), ("cyd", "other")):
        answer = gradebook.Graded(check.Verdict(True, ""), "c = 1", sentence)
        work = gradebook.Work({exercise: answer}, {})
        class_.works[name] = submissions.Student(name, name), {"01": work}
    table = gradebook.explanations(class_)
    assert sorted(row["students"] for row in table) == [1, 1, 1] or len(table) == 2
    assert all("who" not in row for row in gradebook.explanations(class_, hidden=True))
    half = gradebook.Class(class_.asked, class_.works, share=0.5, seed="s")
    read = [part.student.id for part in half.parts() if half.read(part.student, exercise)]
    assert read == [part.student.id for part in half.parts() if half.read(part.student, exercise)]


# -- hostile hand-ins


def lone_surrogate(folder: Path, chance: random.Random) -> None:
    notebook = cells("09", book.student)
    cell = chance.choice(notebook.cells)
    cell.source += "\nx = '\ud800'\n"
    put(folder, "09_bus.ipynb", notebook)


def raises_a_surrogate(folder: Path, chance: random.Random) -> None:
    notebook = cells("09", book.student)
    answer = "def seconds(*_):\n    raise ValueError(chr(0xd800) + '\\u202e\\n<b>')"
    notebook.cells.append(nbformat.v4.new_code_cell(answer))
    put(folder, "09_bus.ipynb", notebook)


def fifo(folder: Path, chance: random.Random) -> None:
    os.mkfifo(folder / "09_bus.ipynb")


def link_to_a_device(folder: Path, chance: random.Random) -> None:
    (folder / "09_bus.ipynb").symlink_to(chance.choice(["/dev/zero", "/dev/stdin", "/etc/passwd"]))


def link_to_others(folder: Path, chance: random.Random) -> None:
    (folder / "09_bus.ipynb").symlink_to("../honest/09_bus.ipynb")
    (folder / "all").symlink_to("../honest")


def sparse(folder: Path, chance: random.Random) -> None:
    with (folder / "09_bus.ipynb").open("wb") as file:
        file.truncate(60 << 30)


def deep(folder: Path, chance: random.Random) -> None:
    place = folder
    for _ in range(40):
        place = place / "d"
    place.mkdir(parents=True)
    put(folder, "09_bus.ipynb", "[" * 200_000)


def odd_bytes(folder: Path, chance: random.Random) -> None:
    (folder / "09_bus.ipynb").write_bytes(chance.randbytes(500))


def odd_json(folder: Path, chance: random.Random) -> None:
    shape = chance.choice(
        [
            {"cells": None},
            {"cells": [None, 7, {"cell_type": "code", "source": [1, None, "half = 2"]}]},
            {"cells": [{"cell_type": ["code"], "outputs": {"a": 1}, "metadata": 3}]},
            {"cells": [{"cell_type": "code", "source": "x = 1\0", "outputs": [3, {}]}]},
            7,
            [],
        ]
    )
    put(folder, "09_bus.ipynb", json.dumps(shape))


def forged(folder: Path, chance: random.Random) -> None:
    notebook = cells("09", book.student)
    text = chance.choice([b"[]", b'{"result": 1e999}', b'{"made": {}}', b'{"print": 3}', b"\xff"])
    answer = FORGED.replace("peak", "seconds").split("text = ")[0]
    answer += f"text = {text!r}\n            os.write(n, len(text).to_bytes(4, 'big') + text)\n"
    answer += "        except OSError:\n            pass\n"
    notebook.cells.append(nbformat.v4.new_code_cell(answer))
    put(folder, "09_bus.ipynb", notebook)


def patches(folder: Path, chance: random.Random) -> None:
    notebook = cells("09", book.student)
    code = "import sys, os\nsys.modules.clear()\nos.environ.clear()\ndef seconds(*_): return 1"
    notebook.cells.append(nbformat.v4.new_code_cell(code))
    put(folder, "09_bus.ipynb", notebook)


HOSTILE = [
    lone_surrogate,
    raises_a_surrogate,
    fifo,
    link_to_a_device,
    link_to_others,
    sparse,
    deep,
    odd_bytes,
    odd_json,
    forged,
    patches,
]
NAMES = ["J\udcf6rg", "x" * 250, "new\nline", "\u202eevil", "<b>&", "a;b", "-rf", "ü" * 120]


@pytest.mark.skipif(os.name == "nt", reason="no pipes and links there")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_one_hands_in_all_others_get_their_marks(seed, tmp_path, capsys, request):
    chance = random.Random(seed)
    folder, out = tmp_path / "in", tmp_path / "out"
    names = chance.sample(NAMES, len(NAMES))
    for number, hostile in enumerate(chance.sample(HOSTILE, 6)):
        place = folder / (names[number] if number < 4 else hostile.__name__)
        place.mkdir(parents=True)
        hostile(place, chance)
    put(folder / "honest", "09_bus.ipynb", cells("09", book.solved))
    if seed % 2:
        (out / "feedback").mkdir(parents=True)
        (out / "feedback/honest.html").mkdir()  # a page that can't be written
    status = cli.main(["marks", str(folder), str(out), "--jobs", "2"])
    told = capsys.readouterr()
    assert status == seed % 2, told.err
    table = {row["id"]: row for row in rows(out / "marks.csv")}
    assert len(table) == 7 and table["honest"][FIRST] == "1"
    assert [who for who, row in table.items() if row[FIRST] == "1"] == ["honest"]
    assert len(told.out.splitlines()) <= 8 and all(
        line.isprintable() for line in told.out.splitlines()
    )
    assert len(list((out / "feedback").iterdir())) == 7


# -- lessons to hand out


def test_a_handout_has_no_solutions_and_no_dead_links(tmp_path):
    assert cli.main(["handout", "07", "09", "--to", str(tmp_path)]) == 0
    assert sorted(path.name[:2] for path in tmp_path.iterdir()) == ["07", "09", "gl"]
    good = {line for path in BOOK.glob("source/0[79]*.md") for line in solutions(path)}
    for path in tmp_path.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        text = "\n".join(cell.source for cell in notebook.cells)
        assert "Solution</summary>" not in text and "A good sentence" not in text
        assert not [line for line in good if line in text.splitlines()]
        for file in set(course.re.findall(r"\]\(([^)#]*\.ipynb)", text)):
            assert (tmp_path / file).exists(), file
    assert "| word" in (tmp_path / "glossary.ipynb").read_text(encoding="utf-8")
    assert course.lessons()["09_bus"].exercises


def solutions(path: Path) -> list[str]:
    parts = book.MARKS.findall(path.read_text(encoding="utf-8"))
    return [line for part in parts for line in part.splitlines() if len(line.strip()) > 25]


def test_students_of_a_roster_get_own_numbers_that_marks_match(tmp_path, family):
    roster = tmp_path / "class.csv"
    roster.write_text("id;name\nada;Ada\nbob;Bob\n")
    out = tmp_path / "out"
    assert cli.main(["handout", "09", "--to", str(out), "--roster", str(roster)]) == 0
    seed = (out / "seed.txt").read_text().strip()
    shown = set()
    for student in ("ada", "bob"):
        cells = nbformat.read(out / student / "09_bus.ipynb", as_version=4).cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        token = check.own_seed(seed, student)
        assert any(token in source for source in code) and seed not in "".join(code)
        asked = "ck.teach.bus.check_seconds(seconds)"
        verdict = judging.judge(code, asked, seed=token, family=family)
        with check.seeded(token):
            from cypresskit.teach import l09_bus

            assert str(l09_bus.check_seconds(lambda *_: 0)).split("gives")[0] in str(verdict)
        shown.add(verdict.finding)
        right = "def seconds(n, b, f): return 24 * n**2 / b + 2 * n**3 / f"
        assert judging.judge([right], asked, seed=token, family=family).right
    assert len(shown) == 2


@pytest.mark.parametrize("seed", range(5))
def test_the_same_answer_is_judged_twice_at_most(seed, monkeypatch):
    """Whatever an answer's end: for good at once, or after the clock ended it a second time. What
    wasn't judged at all, or failed by our fault, is judged anew.
    """
    chance = random.Random(seed)
    ends = [chance.choice([judging.KEPT, judging.ONCE_MORE, judging.NEVER]) for _ in range(8)]
    work = [([f"cell {n}"], CHECK, "") for n in range(len(ends))]
    asked: list[str] = []

    def call(module, function, parts, *_, **__):
        asked.extend(part["cells"][0] for part in parts)
        return [
            [False, "", "", False, ends[int(part["cells"][0].removeprefix("cell "))]]
            for part in parts
        ]

    monkeypatch.setattr(judging, "call", call)
    stored: dict[str, list] = {}
    runs = 5
    for _ in range(runs):
        verdicts, kept = judging.judged(work, "seed", stored, None)
        assert len(verdicts) == len(work)
        stored = json.loads(json.dumps(kept))
    times = {judging.KEPT: 1, judging.ONCE_MORE: 2, judging.NEVER: runs}
    assert [asked.count(cells[0]) for cells, _, _ in work] == [times[end] for end in ends]
