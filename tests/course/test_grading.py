"""Grading: correct answers get their points, incorrect ones and cheats get none, and no submission
keeps other students from getting their grades, however the package was installed; and what is
handed out.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import cheats
import nbformat
import pytest
from hand_ins import (
    BUS,
    GIVEN,
    LESSONS,
    PYTHON,
    SECONDS,
    SOLVED,
    answer_exercise,
    class_of,
    pages_of,
    rows,
    save,
    work_of,
)
from repository import ROOT
from sampling import ROWS, drawn_by_day, from_rows, seeded

from cypresskit import cli
from cypresskit.cli.cmd_grade import student_work
from cypresskit.editing import step_outputs
from cypresskit.files.received import is_hidden, printable_name
from cypresskit.grading import course, gradebook, judging, review, submissions
from cypresskit.grading.gradebook import CourseRecords, GradedAnswer, Work
from cypresskit.grading.hand_in import HandIn
from cypresskit.grading.submissions import Student
from cypresskit.isolated import process
from cypresskit.isolated.process import ForkServer, find_sandbox
from cypresskit.teach import check, explanations
from cypresskit.teach.check import Verdict
from tools import book

ORDINARY = 1234  # a user without rights
LIMIT = 400  # seconds for a user's process that judges: what hangs ends

BOOK = ROOT / "notebooks"
FIRST = BUS.exercises[0].name
SETUP = (
    "import cypresskit as ck\nfrom types import SimpleNamespace\nfrom dataclasses import replace"
)
PEAK = "ck.teach.start_here.check_peak(peak)"
HALF = "ck.teach.start_here.check_half(half)"
RIGHT = "def peak(e, p, u, g):\n    return 2 * e * p * u * g"


@pytest.fixture(scope="module")
def server():
    """Where answers run: in a sandbox, if there is one."""
    server = ForkServer(find_sandbox())
    yield server
    server.end()


@pytest.fixture
def walled(sandbox, server):
    """The same, in a sandbox for sure."""
    return server


def judge_cells(server, *cells, asked=PEAK, seed=""):
    return judging.judge([SETUP, *cells], asked, seed=seed, server=server)


@from_rows
def test_a_correct_answer_gets_its_point_whatever_else_is_in_the_notebook(cells, server):
    verdict = judge_cells(server, *cells)
    assert verdict.right, verdict


@from_rows
def test_what_is_wrong_or_cheats_gets_no_point(cells, said, asked, monkeypatch, server):
    monkeypatch.setattr(check, "SECONDS", 5.0)
    verdict = judge_cells(server, *cells, asked=asked or PEAK)
    assert not verdict.right and not verdict.is_broken and verdict.hint, verdict
    assert said.format(PYTHON) in str(verdict), verdict


def taking(*lines):
    """A right answer that does something else first."""
    body = "".join(f"    {line}\n" for line in lines)
    return RIGHT.replace("    return", f"{body}    return")


PACKAGE = Path(judging.__file__).parents[1]


def test_a_sandbox_has_no_right_answers(walled):
    verdict = judge_cells(walled, f"import os\ndef peak(*given):{cheats.ON_DISK}")
    assert not verdict.right
    verdict = judge_cells(walled, taking(f"open('{PACKAGE}/teach/l00_start_here/checks.py')"))
    assert "FileNotFoundError" in verdict.message, verdict
    shown = f"{{p.parent.name for p in pathlib.Path('{PACKAGE}/teach').rglob('*.py')}}"
    verdict = judge_cells(walled, taking("import pathlib", f"raise ValueError({shown})"))
    assert "{'visible'}" in verdict.message, verdict


@pytest.mark.parametrize(
    "place", ["/tmp", process.CACHE, "/dev/shm", "/", "/proc", PACKAGE, PACKAGE / "teach"]
)
def test_nothing_is_written_from_a_sandbox(place, walled):
    verdict = judge_cells(walled, taking(f"open('{place}/x', 'w')"))
    assert re.search("Read-only file system|Permission|No such file", verdict.message), verdict


def test_a_sandbox_has_nobodys_files(walled):
    place = "'/root' if os.path.exists('/root') else '/'"
    verdict = judge_cells(walled, taking(f"import os; raise ValueError(os.listdir({place}))"))
    assert "notebooks" not in verdict.message and ".ssh" not in verdict.message


@from_rows
def test_an_answer_that_takes_more_than_its_share_earns_nothing(lines, walled):
    assert not judge_cells(walled, taking(*lines)).right
    assert judge_cells(walled, RIGHT).right, "the next one is judged"


ATTACKS = dict(ROWS["test_grading"]["attacks"])
JUDGE = """
import json
import sys
from cypresskit.grading import judging
from cypresskit.isolated.process import ForkServer, find_sandbox
from cypresskit.teach import check
check.SECONDS = 20  # a busy machine
server = ForkServer(find_sandbox() if sys.argv[1] == "sandbox" else None)
for cell in json.loads(sys.argv[2]):
    print(judging.judge([cell], sys.argv[3], server=server).message, flush=True)
server.end()
"""
TRIES = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def peak(e, p, u, g):
    if {} != -1:
        return "done"
    return 2 * e * p * u * g
"""
THREADS = """import threading, time
def peak(*_):
    for _ in range({}):
        threading.Thread(target=time.sleep, args=(30,)).start()
    time.sleep(30)
"""
LOOPS = """import signal
def peak(*_):
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    while True:
        pass
"""


def judged_by(user, where, cells, folder):
    """A check's messages on cells when such a user grades; skipped if there is no such user."""
    change = []
    if user != os.getuid():
        if os.getuid() or not shutil.which("setpriv"):
            pytest.skip("only root can test as another user, by setpriv")
        change = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        again = (
            "import numpy, subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
        )
        if subprocess.run([*change, sys.executable, "-c", again]).returncode:
            pytest.skip("another user can't run this Python")
        shutil.chown(folder, user)
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), str(folder)) | {"PYTHONPATH": str(ROOT)}
    environment = os.environ | places | {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [*change, sys.executable, "-c", JUDGE, where, json.dumps(cells), PEAK]
    with (folder / "output").open("w+") as file:
        files = {"stdout": file, "stderr": file}
        done = subprocess.run(command, env=environment, cwd="/", timeout=LIMIT, **files)
        file.seek(0)
        output = file.read()
    assert done.returncode == 0, output
    return output.splitlines()


@pytest.fixture
def open_folder():
    """A folder that another user may be given."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@drawn_by_day(("user", "where"), product([os.getuid(), ORDINARY], ["sandbox", "process"]), 1)
def test_an_answer_gets_no_more_memory_or_time(user, where, open_folder, request):
    """By the system's means, tried by root and by an ordinary user, in a sandbox and without."""
    if where == "sandbox":
        request.getfixturevalue(where)
    tries = [TRIES.format(act) for act in ATTACKS.values()]
    cells = [*tries, THREADS.format(1_500), LOOPS]
    *messages, of_threads, of_loops = judged_by(user, where, cells, open_folder)
    refused = [name for name, text in zip(ATTACKS, messages, strict=True) if "2720 Gflop/s" in text]
    assert refused == [*ATTACKS], messages
    assert "can't start new thread" in of_threads
    assert "had not ended after 20 s" in of_loops


# -- no answer is left out of the maximum


@from_rows
def test_no_value_is_a_fault_of_the_check(asked, server):
    """Values of unexpected types, as an answer or returned by one."""
    name = asked.partition("(")[2].rstrip(")")
    for number, value in enumerate(ROWS["test_grading"]["odd_values"]):
        answer = f"{name} = {value}"
        if number % 2 or "seconds" in name:
            answer = f"def {name}(*_):\n    return {value}"
        verdict = judging.judge([f"{SETUP}\nimport numpy as np", answer], asked, server=server)
        assert not verdict.is_broken and not verdict.right, (value, verdict)


SENDS = """
import gc
server = [each for each in gc.get_objects() if type(each).__name__ == "Server"][0]
def peak(*_):
    server.send({{{key!r}: {text!r}}})
    return 1
"""


@pytest.mark.parametrize("key", "broken halted failed cell made result ask print".split())
def test_no_message_is_a_fault_of_the_check(key, server):
    for text in ("Traceback\nx", None, {"a": 1}):
        verdict = judge_cells(server, SENDS.format(key=key, text=text))
        assert not verdict.is_broken and not verdict.right, verdict


def save_output(step, text, **more):
    data = {step_outputs.MIME: {"step": step, "text": text, **more}}
    return {"output_type": "display_data", "data": data}


def test_what_a_workbench_saves_is_judged_in_the_place_of_its_cell(server):
    """The last saved text of the step, whatever else the outputs contain. Lines of the solution
    that it showed are reported.
    """
    exercise = course.Exercise(1, "x", HALF, "why?", step="02")
    lesson = course.Lesson("x", [], (exercise,))
    odd = [
        save_output("01", "b"),
        save_output(["02"], "c"),
        save_output("02", 3),
        save_output(None, None),
    ]
    odd += [{"data": []}, {}]
    text = "a'\n\"\\"
    outputs = [*odd, save_output("02", text, lines_shown=2), *odd]
    opens = {"cell_type": "code", "source": 'half = ck.workbench(step="02")', "outputs": outputs}
    work = HandIn([course.parse_cell(opens)], lesson)
    attempts = work.attempts(exercise)
    assert attempts[0].cells[-1] == f"half = {text!r}"
    for attempt in attempts:
        verdict = judge_cells(server, *attempt.cells, asked=HALF)
        assert not verdict.right and not verdict.is_broken, verdict
        assert "There is no half" not in verdict.message and "stops" not in verdict.message
    records = class_of({"02": work_of(lesson, work)}, lessons={"02": lesson})
    (answer,) = next(records.submissions()).answers.values()
    assert answer.cells[-1].text == text and "showed 2 lines of a solution" in answer.help
    (row,), (page,) = gradebook.grade_rows(records), pages_of(records)
    assert row["x, help"] == answer.help and answer.help in page


def test_grades_are_the_same_when_made_again(server):
    """An answer that is wrong for some numbers is judged alike for one student each time."""
    some = RIGHT.replace("return", "return 1 if round(1e6 * g) % 2 and g not in (0.85, 0.725) else")
    for seed in "abcd":
        assert len({judge_cells(server, some, seed=seed) for _ in range(2)}) == 1


@drawn_by_day("path", book.sources(BOOK), 2, ids=lambda path: path.stem)
def test_solved_lessons_get_all_points(path, server):
    solved = book.solved(book.read(path)).cells
    cells = [cell.source for cell in solved if cell.cell_type == "code"]
    checks = [exercise.check for exercise in LESSONS[path.stem].exercises]
    verdicts = [judging.judge(cells, check, server=server) for check in checks]
    assert all(verdict.right for verdict in verdicts), verdicts


# -- what is reported of an answer without a point


def test_no_page_says_that_an_answer_was_not_judged_and_gives_none(monkeypatch, server):
    """The check failed, the time was spent, the process ended, or the answer never began."""
    attempt = judging.Attempt(["def peak(*_): return 1"], PEAK)
    broken = check.report_broken_check(KeyError("odd"))
    monkeypatch.setattr(judging, "judge", lambda *_, **__: broken)
    verdicts = [Verdict(*fields) for fields in judging.judge_all([[*attempt]], "", None)]
    monkeypatch.setattr(judging, "BUDGET", -1.0)
    verdicts += [Verdict(*fields) for fields in judging.judge_all([[*attempt]], "", None)]

    def dies(*_, **__):
        raise judging.NoResult("memory")

    monkeypatch.setattr(judging, "call", dies)
    of_two = judging.judge_student([attempt] * 2, ForkServer(None))
    assert len(of_two) == 2
    verdicts += of_two[:1]
    monkeypatch.undo()
    verdicts += [judging.judge([f"peak = 1\n{line}"], PEAK, server) for line in ("exit()", "1 /")]
    exercise = LESSONS["00_start_here"].exercises[0]
    for verdict in verdicts:
        records = class_of({"00_start_here": Work({exercise: GradedAnswer(verdict)})})
        (page,) = pages_of(records)
        assert "0 of 1" in page and not re.search(r"(not|n't|never) (be )?judged", page, re.I), page
        assert not verdict.right and verdict.message
    assert "odd" in verdicts[0].message and "-1 s" in verdicts[1].message
    assert "memory" in verdicts[2].message


# -- the records of a class


def test_each_exercise_has_graded_samples():
    """And no sample lacks its exercise."""
    exercises = [exercise for lesson in LESSONS.values() for exercise in lesson.exercises]
    assert {exercise.key for exercise in exercises} == course.read_samples().keys()
    for exercise in exercises:
        assert len({exercise.good, *course.read_samples()[exercise.key]}) == 3


THREE = sorted(LESSONS)[8:11]


@pytest.mark.parametrize(("due", "counted"), [((), THREE[:2]), (tuple(THREE), THREE)])
def test_all_have_the_same_maximum_and_fewer_lessons_give_no_more(due, counted):
    """That of the lessons that are due, or else of those that anybody handed in."""
    right = GradedAnswer(Verdict(True, ""))
    works = [(stem, Work(dict.fromkeys(LESSONS[stem].exercises, right))) for stem in THREE[:2]]
    records = class_of({}, dict(works[:1]), dict(works), due=due)
    table = [*gradebook.grade_rows(records)]
    maximum = 100 * len(counted)
    assert [row["total"] for row in table] == [None, 60, 120]  # without sentences
    assert {row["maximum"] for row in table} == {maximum}
    heads = "no grade", f"60 of {maximum} points", f"120 of {maximum} points"
    for head, page in zip(heads, pages_of(records)):
        assert f"{head}</h1>" in page
    names = [LESSONS[stem].name for stem in counted]
    missing = [row["status"].partition("nothing was read of: ")[2] for row in table]
    assert missing == ["", ", ".join(names[1:]), ", ".join(names[2:])]


# -- a class


ADA = "Ada L_4711_assignsubmission_"


@pytest.fixture
def submitted(tmp_path):
    """Lesson 09 handed in by Ada, in both of Moodle's folders, by Bob, who did nothing, and by
    Eve."""
    folder = tmp_path / "in"
    sentence = explanations.explanation_cell("=cmd()<script>" + "x" * 10**5)
    save(folder / f"{ADA}file/Bus 09_bus (1).ipynb", SOLVED)
    save(folder / f"{ADA}onlinetext/09_bus.ipynb", GIVEN)
    save(folder / "=bob/09_bus.ipynb", GIVEN)
    save(folder / "=bob/homework.ipynb", GIVEN)
    save(folder / "eve/09/09_bus.ipynb", answer_exercise(GIVEN, sentence=sentence))
    (folder / "cyd.ipynb").write_text("{")
    save(folder / "__MACOSX/ada/09_bus.ipynb", SOLVED)
    save(folder / ".git/09_bus.ipynb", SOLVED)
    (folder / "dan").mkdir()
    return folder


@pytest.mark.usefixtures("sandbox")
def test_a_class_gets_its_tables_and_pages(submitted, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["grade", str(submitted), str(out)]
    assert cli.main(command) == 0
    output, error = capsys.readouterr()
    marks = rows(out / "grades.csv")
    waiting = sum(int(row["waiting"]) for row in marks)
    assert f"{waiting} explanations have no points yet" in output
    assert "hidden files: .git, __MACOSX" in error
    assert "Without a grade, 2 of 5: cyd, dan" in output
    marked = {row["id"]: (row[FIRST], row["maximum"]) for row in marks}
    points = {"'=bob": "0", "4711": "1", "cyd": "", "dan": "", "eve": "0"}
    assert marked == {id: (given, "100") for id, given in points.items()}
    pages = {page.name: page.read_text() for page in (out / "feedback").iterdir()}
    assert "<script>" not in pages["eve.html"] and course.DAMAGED in pages["cyd.html"]
    assert "def seconds(" in pages["Ada L_4711.html"]
    assert "<h1>Ada L: 60 of 100 points</h1>" in pages["Ada L_4711.html"]
    assert gradebook.NOT_SUBMITTED in pages["dan.html"]
    assert not [page for page in pages.values() if gradebook.UNSAFE in page]

    page = (out / "review.html").read_text()
    assert "=cmd()&lt;script&gt;x" in page and page.count("<script") == 2
    before = (out / "grades.csv").read_bytes()
    assert cli.main(command) == 0 and (out / "grades.csv").read_bytes() == before


def test_without_a_sandbox_nothing_is_graded_unless_forced_and_all_outputs_say_so(
    submitted, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(process, "find_sandbox", lambda: None)
    out = tmp_path / "out"
    command = ["grade", str(submitted), str(out)]
    assert cli.main(command) == 1 and not out.exists()
    assert "--no-sandbox" in capsys.readouterr().err
    assert cli.main([*command, "--no-sandbox"]) == 0
    pages = [page.read_text() for page in (out / "feedback").iterdir()]
    assert len(pages) == 5 and all(gradebook.UNSAFE in page for page in pages)
    assert {row["judging"] for row in rows(out / "grades.csv")} == {gradebook.UNSAFE}


# -- every entry is accounted for


PLACES = (
    *("ada", "09_bus.ipynb", "bob.ipynb", "x.zip", "lovelaceada_4711_81_09_bus-2.ipynb", "=1"),
    *("lovelaceada_LATE_4711_82_my_kernel.il", "Ada L_9_assignsubmission_file", ".DS_Store"),
    *("Ada L_9_assignsubmission_onlinetext", "__MACOSX", "J\udcf6rg", "new\nline", "a.b.IPYNB"),
)


def entry(folder, name, chance):
    """Anything that may lie in a folder."""
    path = folder / name
    kind = chance.randrange(7)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(chance.choice(["nowhere", "/etc", "../in", "/dev/zero"]))
    elif kind == 2:
        path.mkdir()
        for inner in chance.sample(PLACES, chance.randrange(4) if len(path.parts) < 12 else 0):
            entry(path, inner, chance)
    else:
        path.write_bytes(chance.choice([b"", b"{}", b'{"cells": []}', b"PK", chance.randbytes(99)]))


@seeded(10)
def test_every_entry_is_accounted_for(seed, tmp_path):
    chance = random.Random(seed)
    folder = tmp_path / "in"
    folder.mkdir()
    for name in chance.sample(PLACES, chance.randrange(1, len(PLACES))):
        entry(folder, name, chance)
    everybody, hidden = submissions.find_students(folder)
    notes = "\n".join(note for student in everybody for note in student.notes)
    taken = [path for student in everybody for path in student.notebooks]
    entries = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    for path in entries:
        within = path.relative_to(folder).parts
        is_known = path in taken or f"{printable_name(path)}: " in notes
        assert is_known or any(map(is_hidden, within)), path
        assert printable_name(path) in hidden or len(within) > 1 or not is_hidden(path.name)
    records = CourseRecords({}, [(student, {}) for student in everybody])
    for student in everybody:
        status = records.status(student)
        assert (gradebook.NOT_SUBMITTED in status) == (not student.notes)


def test_what_is_no_notebook_is_reported_once_and_not_judged(tmp_path):
    """Whatever lesson's name it has: it isn't a lesson with no points."""
    whole = (course.lessons_folder() / "09_bus.ipynb").read_bytes()
    broken = [b"", b"[]", b"{}", whole[: len(whole) // 2], whole[:-3], bytes(range(256))]
    broken += [b'{"worksheets": []}', b'{"cells": [' + b"{}," * 100_000 + b"{}]}"]
    for stem, data in zip(LESSONS, broken):
        (tmp_path / f"{stem}.ipynb").write_bytes(data)
    student = Student("ada", "Ada", sorted(tmp_path.iterdir()))
    works = student_work(LESSONS, None, student, None)
    records = CourseRecords(LESSONS, [(student, works)])
    (row,), (page,) = gradebook.grade_rows(records), pages_of(records)
    assert not works and row["total"] is None
    for file in student.notebooks:
        reason = f"{file.name} wasn't read: "
        assert row["status"].count(reason) == row["status"].count(f"{file.name} ") == 1
    for why in (course.EMPTY, course.DAMAGED, course.OLD, "more than 2,000 cells"):
        assert why in row["status"] and why in page


@pytest.mark.parametrize("stem", sorted(LESSONS)[::4])
def test_a_notebook_is_known_by_its_title_whatever_its_file_is_called(stem):
    whole = LESSONS[stem].cells
    title, *others = whole[::2]
    remark = course.parse_cell({"cell_type": "code", "source": "# 99 tries"})
    assert course.identify_lessons([remark, title, *others], LESSONS) == [stem]
    longer = title | {"source": title["source"].replace("\n", " by Ada\n", 1)}
    assert course.identify_lessons([longer, *others], LESSONS) == [stem]
    assert course.identify_lessons(others[:2], LESSONS) == []
    assert course.identify_lessons(whole[1:], LESSONS) == [stem], "by its checks"
    merged = [*whole, *BUS.cells]
    assert course.identify_lessons(merged, LESSONS) == sorted({stem, "09_bus"}), "and merged ones"


NAMES = ["J\udcf6rg", "x" * 250, "new\nline", "\u202eevil", "<b>&", "a;b", "-rf", "ü" * 120]


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("part", [0, 1])
def test_whatever_one_submits_all_others_get_their_grades(part, tmp_path, capsys):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    hostile = sorted(cheats.HOSTILE)[part::2]
    for name, kind in zip(NAMES, hostile, strict=True):
        cheats.HOSTILE[kind](folder / name)
    cells = answer_exercise(GIVEN, answer=SECONDS, sentence="the bus is slower")
    save(folder / "honest/09_bus.ipynb", cells)
    if part:
        (out / "feedback/honest.html").mkdir(parents=True)  # a page that can't be written
    status = cli.main(["grade", str(folder), str(out)])
    output, error = capsys.readouterr()
    assert status == part, error
    table = {row["id"]: row for row in rows(out / "grades.csv")}
    assert len(table) == 9 and all(row["status"] for row in table.values())
    assert [who for who, row in table.items() if row[FIRST] == "1"] == ["honest"]
    lines = output.splitlines()
    assert len(lines) <= 12 and all(map(str.isprintable, lines))
    pages = [page for page in (out / "feedback").iterdir() if page.is_file()]
    assert len(pages) == 9 - part
    assert not any("<script>alert" in page.read_text() for page in pages)


# -- files that aren't read


@pytest.mark.parametrize("ending", [*submissions.ARCHIVES, ".tar.gz", ".IPYNB", ".Zip"])
def test_an_ending_is_no_part_of_a_students_name(ending, tmp_path):
    (tmp_path / f"ada{ending}").write_bytes(b"{}")
    (student,), _ = submissions.find_students(tmp_path)
    assert student.id == "ada"


@pytest.mark.parametrize(
    "coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "cp1252"]
)
def test_a_notebook_is_read_in_any_encoding_of_unicode(coding, tmp_path):
    letters = "".join(map(chr, range(0xA1, 0x100 if coding == "cp1252" else 0x1000)))
    text = json.dumps({"cells": [{"cell_type": "markdown", "source": letters}]}, ensure_ascii=False)
    (tmp_path / "09_bus.ipynb").write_bytes(text.encode(coding))
    (cell,), _ = submissions.read_notebook(tmp_path / "09_bus.ipynb")
    assert cell["source"] == letters


def test_a_notebook_that_printed_much_is_read_and_one_that_is_too_large_is_named(
    tmp_path, monkeypatch
):
    outputs = [{"output_type": "stream", "text": ["x" * 40_000_000]}]
    save(tmp_path / "09.ipynb", [{"cell_type": "code", "source": "a", "outputs": outputs}])
    (cell,), _ = submissions.read_notebook(tmp_path / "09.ipynb")
    assert cell["source"] == "a"
    monkeypatch.setattr(submissions, "MAX_NOTEBOOK_BYTES", 30_000_000)
    with pytest.raises(ValueError, match="more than 30,000,000 bytes"):
        submissions.read_notebook(tmp_path / "09.ipynb")


# -- no file of the reader's is written over


@pytest.mark.parametrize("mine", ["grades.csv", "feedback/ada.html", "notes/exam.txt"])
def test_grading_writes_into_no_folder_that_it_did_not_make(mine, tmp_path, capsys):
    """Whichever file was there before; and into its own again, where other files stay."""
    out = tmp_path / "out"
    save(tmp_path / "in/hello.ipynb", [])
    (out / mine).parent.mkdir(parents=True)
    (out / mine).write_text("mine")
    command = ["grade", str(tmp_path / "in"), str(out), "--no-sandbox"]
    assert cli.main(command) == 1 and "didn't write" in capsys.readouterr().err
    assert [path.read_text() for path in out.rglob("*.*")] == ["mine"]
    (out / mine).unlink()
    for names in (["ada", "bob"], ["ada"]):
        records = CourseRecords({}, [(Student(name, name), {}) for name in names])
        assert not gradebook.is_foreign(out)
        (out / "feedback").mkdir(exist_ok=True)
        assert not review.write_all(records, out)
        (out / "feedback/notes.html").write_text("mine")
    pages = {page.name for page in (out / "feedback").iterdir()}
    assert pages == {"ada.html", "bob.html", "notes.html"}


# -- lessons to hand out


def test_a_handout_writes_over_no_other_file(tmp_path, capsys):
    week = tmp_path / "week"
    for numbers in (["05", "07"], ["05", "07"], ["09"]):  # again nothing is lost; and one more
        assert cli.main(["handout", *numbers, "--to", str(week)]) == 0
    for number in ("07", "09"):
        (file,) = week.glob(f"{number}*.ipynb")
        file.write_text(file.read_text() + " ")
        before = {path: path.read_bytes() for path in week.iterdir()}
        assert cli.main(["handout", "05", "07", "09", "--to", str(week)]) == 1
        assert file.name in capsys.readouterr().err
        assert {path: path.read_bytes() for path in week.iterdir()} == before


def test_a_handout_has_no_solutions_and_no_dead_links(tmp_path):
    assert cli.main(["handout", "07", "09", "--to", str(tmp_path)]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name[:2] for name in names[:2]] == ["07", "09"] and names[2:] == ["glossary.ipynb"]
    sources = [path.read_text() for path in BOOK.glob("source/0[79]*.md")]
    parts = [part for text in sources for part in book.SOLUTION.findall(text)]
    good = {line for part in parts for line in part.splitlines() if len(line.strip()) > 25}
    for path in tmp_path.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        assert all(course.is_given(course.parse_cell(cell)) for cell in notebook.cells)
        text = "\n".join(cell.source for cell in notebook.cells)
        assert "Solution</summary>" not in text and "A good sentence" not in text
        assert not good & {*text.splitlines()}
        for file in set(re.findall(r"\]\(([^)#]*\.ipynb)", text)):
            assert (tmp_path / file).exists(), file


# -- however it was installed

CHECK = """
import cypresskit as ck
from cypresskit.teach.answer_source import AnswerSource
print(ck.teach.bus.check_seconds(AnswerSource([{!r}], "seconds")))
"""


@drawn_by_day("how", ["--user", "--target", "checkout", "--system-site-packages"], 1)
def test_a_right_answer_is_right_however_the_package_was_installed(how, tmp_path):
    """In folders of links, without a network."""
    user = tmp_path / f"lib/python{PYTHON}/site-packages"
    user.mkdir(parents=True)
    (installed,) = (path for path in sys.path if (Path(path) / "numpy").is_dir())
    for path in Path(installed).iterdir():
        if "cypresskit" not in path.name and path.suffix != ".pth":
            (user / path.name).symlink_to(path)
    package = tmp_path / "checkout" if how == "checkout" else user
    package.mkdir(exist_ok=True)
    (package / "cypresskit").symlink_to(ROOT / "cypresskit")
    python = sys._base_executable
    environment = {name: os.environ[name] for name in ("PATH", "XDG_CACHE_HOME")}
    environment["HOME"] = str(tmp_path)
    if how == "--system-site-packages":
        make = [python, "-m", "venv", "--without-pip", how, str(tmp_path / "venv")]
        subprocess.run(make, check=True)
        python = str(tmp_path / "venv/bin/python")
    path = {"--target": user, "checkout": package}.get(how, "")
    environment |= {"PYTHONPATH": str(path)}
    environment |= {"PYTHONUSERBASE": str(tmp_path)} if how != "--target" else {}
    (tmp_path / "mine").mkdir()
    script = tmp_path / "mine/answer.py"
    numpy = f"assert np.__file__.startswith({str(user)!r})"  # not another, which may be there
    answer = SECONDS.replace("    return", f"    {numpy}\n    return")
    script.write_text(CHECK.format(answer))
    done = subprocess.run([python, script], env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("Right."), done.stdout + done.stderr
