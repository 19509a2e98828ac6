"""Grading: correct answers get their points, incorrect ones and cheats get none, and no submission
keeps other students from getting their grades.
"""

import csv
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from copy import deepcopy
from dataclasses import fields, replace
from pathlib import Path

import nbformat
import pytest
from conftest import LACKING, ROOT

from cypresskit import cli, tables
from cypresskit.cli.cmd_grade import student_work
from cypresskit.devices import HD5870
from cypresskit.editing import steps
from cypresskit.files.received import printable_name
from cypresskit.grading import archives, class_tables, course, gradebook, judging, submissions
from cypresskit.isolated import process
from cypresskit.isolated.process import ForkServer, find_sandbox
from cypresskit.teach import check, explanations
from cypresskit.teach.check import Verdict
from tools import book

ORDINARY = 1234  # a user without rights
LIMIT = 400  # seconds for a user's process that judges: what hangs ends

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
def server():
    """Where answers run: in a sandbox, if there is one."""
    made = ForkServer(find_sandbox())
    yield made
    made.end()


@pytest.fixture(scope="module")
def walled(sandbox):
    """The same, in a sandbox for sure."""
    made = ForkServer(sandbox)
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
def test_a_correct_answer_gets_its_point_whatever_else_is_in_the_notebook(cells, server):
    verdict = judging.judge([SETUP, *cells], CHECK, server=server)
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
    from cypresskit.teach.check import CheckStopped, Verdict
    h = CheckStopped("x", "y")
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
        ([RIGHT.replace("return", "import os; os._exit(0) or")], "crashes Python"),
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
def test_what_is_wrong_or_cheats_gets_no_point(cells, said, monkeypatch, server):
    monkeypatch.setattr(check, "SECONDS", 1.0)
    verdict = judging.judge([SETUP, *cells], CHECK, server=server)
    assert not verdict.right and not verdict.is_broken and verdict.hint, verdict
    assert said in verdict.message, verdict


@pytest.mark.parametrize(
    ("cell", "hint"),
    [("\npeak = 1 / 0", "line 2 of that cell"), ("peak = other", "only the cells")],
)
def test_only_a_missing_name_is_looked_for_in_other_cells(cell, hint, server):
    assert judging.judge([SETUP, cell], CHECK, server=server).hint.startswith(hint)


@pytest.mark.parametrize(
    ("name", "said"),
    [("right", "C is correct at three shapes"), ("numpy", "no kernel was launched")],
)
def test_a_cuda_kernel_is_judged_and_numpy_in_its_place_is_not(name, said, server):
    """In a sandbox, where there is one."""
    (path,) = (ROOT / "notebooks/source").glob("14_*.md")
    cells = [cell.source for cell in book.solved(book.read(path)).cells]
    kernel = next(text for text in cells if text.startswith("def product(a, b):"))
    kernel = kernel.partition("\n\nprint(")[0]
    answer = {"right": kernel, "numpy": "def product(a, b):\n    return a.T @ b"}[name]
    asked = "ck.teach.cuda_kernel.check_product(product)"
    verdict = judging.judge(["import numpy as np", answer], asked, server=server)
    assert verdict.right == (name == "right") and said in verdict.message, verdict


def test_a_sandbox_has_no_right_answers(walled):
    server = walled
    verdict = judging.judge([SETUP, ON_DISK], CHECK, server=server)
    assert not verdict.right and "FileNotFoundError" in verdict.message, verdict
    package = Path(judging.__file__).parents[1]
    for place in ("/tmp", "/dev/shm", "/", "/proc", package, package / "teach"):
        write = f"open('{place}/x', 'w')"
        verdict = judging.judge([SETUP, WRONG.replace("return e", write)], CHECK, server=server)
        assert re.search("Read-only file system|Permission|No such file", verdict.message), verdict
    lists = "import os; raise ValueError(os.listdir('/root' if os.path.exists('/root') else '/'))"
    verdict = judging.judge([SETUP, WRONG.replace("return e", lists)], CHECK, server=server)
    assert "notebooks" not in verdict.message and ".ssh" not in verdict.message


FILLS_DISK = """
import os
def peak(e, p, u, g):
    for n in range(200):
        with open(f"{os.environ['NUMBA_CACHE_DIR']}/{n}", "wb") as file:
            file.write(bytes(5_000_000))
    return 2 * e * p * u * g
"""


def taking(*lines: str) -> str:
    """A right answer that does something else first."""
    body = "".join(f"    {line}\n" for line in lines)
    return RIGHT.replace("    return", f"{body}    return")


UNLIMITED = "import resource; resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))"
GREEDY = {
    "disk": FILLS_DISK,
    "processes": taking("import os", "if not os.fork(): bytearray(4 * 10**8)"),
    "limits": taking(UNLIMITED, "taken = bytearray(1_500_000_000)"),
    "shared memory": taking("import mmap", "mmap.mmap(-1, 1_500_000_000)"),
    "files in memory": taking("import os", "os.memfd_create('x')"),
    "segments": taking("import ctypes", "assert ctypes.CDLL(None).shmget(0, 10**8, 0o1600) >= 0"),
}


ATTACKS = {
    "a user namespace": "libc.unshare(0x10000000)",
    "a mount namespace": "libc.unshare(0x00020000)",
    "both": "libc.unshare(0x10020000)",
    "another's namespace": "libc.setns(os.open('/proc/self/ns/mnt', os.O_RDONLY), 0)",
    "a mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "an unmount": "libc.umount2(b'/tmp', 2)",
    "another root": "libc.chroot(b'/tmp')",
    "a new file system": "libc.syscall(430, b'tmpfs', 0)",
    "a file in memory": "libc.memfd_create(b'x', 0)",
    "another's memory": "libc.ptrace(16, os.getppid(), 0, 0)",
    "a namespace by clone": "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
}
JUDGE = """
import os, sys
from cypresskit.grading import judging
from cypresskit.isolated.process import ForkServer, Sandbox, sandbox_command
from cypresskit.teach import check
check.SECONDS, check.WALL = 1, 600  # a busy machine
server = ForkServer(Sandbox(sandbox_command(), "") if sys.argv[1] == "sandbox" else None)
CHECK = "ck.teach.start_here.check_peak(peak)"
for cell in eval(sys.argv[2]):
    print(judging.judge([cell], CHECK, server=server).message, flush=True)
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


def judged_by(user: int, where: str, cells: list[str], folder: Path) -> list[str]:
    """What a check says about cells when such a user grades; skipped if there is no such user."""
    command = [sys.executable, "-c", JUDGE, where, repr(cells)]
    if user != os.getuid():
        change = shutil.which("setpriv")
        if os.getuid() or not change:
            pytest.skip("only root can test as another user, by setpriv")
        ids = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        command = [change, *ids, *command]
        shutil.chown(folder, user)
        begins = (
            "import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', ''], check=True)"
        )
        if subprocess.run([*command[:4], sys.executable, "-c", begins]).returncode:
            pytest.skip("another user can't run this Python")
    folder.chmod(0o700)
    environment = os.environ | {"HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    with (folder / "said").open("w+") as said:
        ran = subprocess.Popen(
            command, env=environment, stdout=said, stderr=said, cwd="/", start_new_session=True
        )
        try:
            code = ran.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = f"killed after {LIMIT} s"
            os.killpg(ran.pid, signal.SIGKILL)
            ran.wait()
        said.seek(0)
        text = said.read()
    assert code == 0, f"{code}: {text}"
    return text.splitlines()


@pytest.fixture
def open_folder():
    """A folder that another user may be given."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("user", [os.getuid(), ORDINARY])
@pytest.mark.parametrize("where", ["sandbox", "process"])
def test_an_answer_gets_no_more_memory_threads_or_time(user, where, open_folder):
    """By the system's means, tried by root and by an ordinary user, in a sandbox and without."""
    if where == "sandbox" and not process.sandbox_command():
        pytest.skip(f"bubblewrap is missing or doesn't work here: `{LACKING['bubblewrap']}`")
    tries = [TRIES.format(act) for act in ATTACKS.values()]
    cells = [*tries, THREADS.format(1_500), THREADS.format(100), LOOPS]
    *said, many, some, loops = judged_by(user, where, cells, open_folder)
    assert len(said) == len(ATTACKS)
    done = [name for name, told in zip(ATTACKS, said) if "2720 Gflop/s" not in told]
    assert not done, f"these are not refused: {done}"
    assert "too many threads" in many or "can't start new thread" in many
    assert "too many threads" in some or "can't start new thread" in some
    assert "had not ended after 1 s of computing" in loops


@pytest.mark.parametrize("cell", GREEDY.values(), ids=GREEDY)
def test_an_answer_that_takes_more_than_its_share_earns_nothing(cell, walled):
    verdict = judging.judge([SETUP, cell], CHECK, server=walled)
    assert not verdict.right, verdict
    assert judging.judge([SETUP, RIGHT], CHECK, server=walled).right, "the next one is judged"


# -- no answer is left out of the maximum


class Hostile:
    """Random values that stumble whoever looks at them, as code."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def value(self, depth: int = 2) -> str:
        chance = self.chance
        plain = (
            *("10**3500", "-10**400", "float('nan')", "float('inf')", "None", "True", "b'x'", "''"),
            *("'x' * 10**5", "2**63", "1e308", "1j", "object()", "np.ones((2, 2))", "np.array([])"),
            *(
                "np.array(['x'])",
                "range(3)",
                "print",
                "type",
                "ck.HD5870",
                "ck.kernels['sgemm_tn']",
            ),
        )
        if not depth or chance.random() < 0.4:
            return chance.choice(plain)
        inner = [self.value(depth - 1) for _ in range(chance.randrange(4))]
        return chance.choice(
            [
                f"[{', '.join(inner)}]",
                f"({''.join(f'{part}, ' for part in inner)})",
                f"dict(enumerate([{', '.join(inner)}]))",
                self.board(),
                self.kernel(depth - 1),
            ]
        )

    def board(self) -> str:
        field = self.chance.choice([each.name for each in fields(HD5870)])
        return f"made(type(ck.HD5870), vars(ck.HD5870) | dict({field}={self.value(0)}))"

    def kernel(self, depth: int) -> str:
        names = ("block", "k_step", "name", "text", "before", "convention")
        values = {name: self.value(depth) for name in self.chance.sample(names, 4)}
        sizes = ", ".join(f"{name}={values.pop(name)}" for name in names[:2] if name in values)
        if self.chance.random() < 0.9:
            values["convention"] = f"made(Convention, dict({sizes}))"
        fields = ", ".join(f"{name}={value}" for name, value in values.items())
        return f"made(Kernel, dict({fields}))"


#: An object with any fields, as no constructor would make it.
MADE = """
import numpy as np
from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import Convention
def made(kind, fields):
    new = object.__new__(type("Own", (kind,), {}) if kind is Kernel else kind)
    vars(new).update(fields)
    return new
"""
VALUES = (
    "ck.teach.registers.check_chip(my_chip)",
    "ck.teach.contest.check_entry(mine)",
    "ck.teach.contest.check_chip(chip)",
    "ck.teach.start_here.check_half(half)",
    "ck.teach.bus.check_seconds(seconds)",
    "ck.teach.bundles.check_sum(sum_of_16)",
)


@pytest.mark.parametrize("seed", range(60))
def test_no_value_is_a_fault_of_the_check(seed, server):
    """Values of unexpected types, as an answer or returned by one."""
    asked = VALUES[seed % len(VALUES)]
    name = asked.partition("(")[2].rstrip(")")
    value = Hostile(seed).value()
    answer = f"{name} = {value}"
    if seed % 2 or "seconds" in name:
        answer = f"def {name}(*_):\n    return {value}"
    verdict = judging.judge([f"{SETUP}{MADE}", answer], asked, server=server)
    assert not verdict.is_broken and not verdict.right, (value, verdict)


SENDS = """
import gc
server = [each for each in gc.get_objects() if type(each).__name__ == "Server"][0]
def peak(*_):
    server.send({message})
    return 1
"""


@pytest.mark.parametrize("seed", range(20))
def test_no_message_is_a_fault_of_the_check(seed, server):
    chance = random.Random(seed)
    text = chance.choice(["x", "", "Traceback\nx", "x" * 5_000, None, 3, [], {"a": 1}])
    key = chance.choice(["broken", "halted", "failed", "cell", "made", "result", "ask", "print"])
    verdict = judging.judge([SETUP, SENDS.format(message={key: text})], CHECK, server=server)
    assert not verdict.is_broken and not verdict.right, verdict


def kept(step: object, text: object) -> dict:
    return {"output_type": "display_data", "data": {steps.MIME: {"step": step, "text": text}}}


@pytest.mark.parametrize("seed", range(10))
def test_what_a_workbench_keeps_is_judged_in_the_place_of_its_cell(seed, server):
    """The last kept text of the step, whatever else stands in the outputs."""
    chance = random.Random(seed)
    exercise = course.Exercise(1, "x", "ck.teach.start_here.check_half(half)", "why?", step="02")
    lesson = course.Lesson("x", [], {}, (exercise,))
    odd = [kept("01", "b"), kept(["02"], "c"), kept("02", 3), kept(None, None), {"data": []}, {}]
    outputs = chance.sample(odd, len(odd)) + [kept("02", "a'\n\"\\")] + chance.sample(odd, 3)
    opens = {"cell_type": "code", "source": 'half = ck.workbench(step="02")', "outputs": outputs}
    attempt = judging.make_attempt([course._cell(opens)], lesson, exercise)
    assert attempt.cells[-1] == f"half = {'a' + chr(39) + chr(10) + chr(34) + chr(92)!r}"
    for cells in (attempt.cells, [opens["source"]]):
        verdict = judging.judge([SETUP, *cells], exercise.check, server=server)
        assert not verdict.right and not verdict.is_broken, verdict
        assert "There is no half" not in verdict.message and "stops" not in verdict.message


def test_a_value_found_by_asking_the_check_earns_nothing(server):
    asks = (
        "half = next(n for n in range(128, 4097, 128) if ck.teach.start_here.check_half(n).right)"
    )
    verdict = judging.judge([SETUP, asks], "ck.teach.start_here.check_half(half)", server=server)
    assert not verdict.right and "The cell of half stops with" in verdict.message, verdict


def test_grades_are_the_same_when_made_again(server):
    """An answer that is wrong for some numbers is judged alike for one student each time."""
    some = RIGHT.replace("return", "return 1 if round(1e6 * g) % 2 and g not in (0.85, 0.725) else")
    for seed in "abcdef":
        again = {judging.judge([SETUP, some], CHECK, seed=seed, server=server) for _ in range(3)}
        assert len(again) == 1


@pytest.mark.slow
@pytest.mark.parametrize("path", book.sources(BOOK), ids=lambda path: path.stem)
def test_solved_lessons_get_all_points(path, server):
    made = book.solved(book.read(path)).cells
    cells = [cell.source for cell in made if cell.cell_type == "code"]
    entries = [cell.metadata.get(book.METADATA_KEY, {}) for cell in made]
    asked = [e["check"] for e in entries if e.get("part") == "check"]
    verdicts = [judging.judge(cells, check, server=server) for check in asked]
    assert all(verdict.right for verdict in verdicts), verdicts


# -- a class


ADA = "Ada L_4711_assignsubmission_"
FIRST = "09 The bus, exercise 1: without the old C"


def cells(lesson, make) -> nbformat.NotebookNode:
    return make(book.read(book.sources(BOOK, [lesson])[0]))


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
    evil = deepcopy(student)
    place = next(cell for cell in evil.cells if cell.source == explanations.explanation_cell())
    place.source = explanations.explanation_cell("=cmd()<script>" + "x" * 10**5)
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


@pytest.mark.slow
@pytest.mark.usefixtures("sandbox")
def test_a_class_gets_its_tables_and_pages(submitted, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["grade", str(submitted), str(out)]
    assert cli.main(command) == 0
    told, err = capsys.readouterr()
    waiting = sum(not row[gradebook.RUBRIC] for row in rows(out / "explanations.csv"))
    assert (
        f"{waiting} explanations have no points yet" in told
        and "hidden files: .git, __MACOSX" in err
    )
    marked = {row["id"]: (row[FIRST], row["maximum"]) for row in rows(out / "grades.csv")}
    assert marked == {
        "'=bob": ("0", "100"),
        "4711": ("1", "100"),
        "cyd": ("", "100"),
        "dan": ("", "100"),
        "eve": ("0", "100"),
    }
    pages = {page.name: page.read_text(encoding="utf-8") for page in (out / "feedback").iterdir()}
    assert "<script>" not in pages["eve.html"] and "is no notebook" in pages["cyd.html"]
    assert "Without a grade, 2 of 5: cyd, dan" in told
    assert "def seconds(" in pages["Ada L_4711.html"]
    assert "<h1>Ada L: 60 of 100 points</h1>" in pages["Ada L_4711.html"]
    assert gradebook.NOT_SUBMITTED in pages["dan.html"]
    assert not [page for page in pages.values() if gradebook.UNSAFE in page]

    sheet = out / "explanations.csv"
    wrote = rows(sheet)
    evil = next(row for row in wrote if row["explanation"].startswith("'=cmd()<script>x"))
    assert len(evil["explanation"]) == 1001
    with sheet.open("w", newline="", encoding="cp1252") as file:
        writer = csv.DictWriter(file, list(wrote[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(row | {gradebook.RUBRIC: "1,5" * bool(row["key"])} for row in wrote)
    before = (out / "grades.csv").read_bytes()
    (out / "feedback/notes.html").write_text("the teacher's")
    shutil.move(submitted / "dan", tmp_path / "dan")
    assert cli.main(command) == 0
    assert (out / "grades.csv").read_bytes() != before
    ada = next(row for row in rows(out / "grades.csv") if row["id"] == "4711")
    assert ada[f"{FIRST}, explanation"] == "1.5"
    assert "1.5 of 2 points" in (out / "feedback/Ada L_4711.html").read_text(encoding="utf-8")
    assert (out / "feedback/notes.html").read_text() == "the teacher's"
    assert not (out / "feedback/dan.html").exists(), "of one who has left the class"
    once_more = (out / "grades.csv").read_bytes()
    assert cli.main(command) == 0 and (out / "grades.csv").read_bytes() == once_more

    put(submitted / "cyd", "09_bus.ipynb", cells("09", book.solved))
    put(submitted / f"{ADA}file", "Bus 09_bus (1).ipynb", cells("09", book.student))
    assert cli.main(command) == 0
    kept = [row for row in rows(sheet) if row[gradebook.RUBRIC]]
    with_key = [row for row in wrote if row["key"]]
    assert len(kept) == len(with_key), "points aren't lost with a sentence"

    sheet.write_text("nonsense\n1\n")
    assert cli.main(command) == 1 and "lacks a column" in capsys.readouterr().err


SETTING = (
    "half = 3",
    "half: int = 3",
    "whole, half = 6, 3",
    "[half, *rest] = 3, 4",
    "for half in range(4):\n    pass",
    "if True:\n    half = 3",
    "def half():\n    return 3",
    "import math as half",
    "print(half := 3)",
)
USING = (
    "half == 3",
    "half.__class__",
    "whole = half",
    "def other():\n    half = 3",
    'text = """\nhalf = 3\n"""',
    "class Other:\n    half = 3",
)


@pytest.mark.parametrize("seed", range(40))
def test_feedback_shows_the_last_cell_that_sets_the_answer(seed):
    """However it is set, as Python itself sees it, with lines for IPython alone or without."""
    chance = random.Random(seed)
    sources = [
        *chance.choices(USING + SETTING, k=3),
        chance.choice(SETTING),
        *chance.choices(USING),
    ]
    setting = []
    for number, source in enumerate(sources):
        names: dict[str, object] = {"half": USING}
        exec(source, names)
        if names["half"] is not USING:
            setting.append(number)
    given = [chance.choice(("", "%matplotlib inline\n", "!ls\n")) + source for source in sources]
    exercise = course.Exercise(1, "x", "ck.teach.start_here.check_half(half)", "why?")
    lesson = course.Lesson("x", [], {}, (exercise,))
    code = [course._cell({"cell_type": "code", "source": source}) for source in given]
    work = gradebook.combine_answers(lesson, [(code, [Verdict(True, "")])])
    assert work[exercise].code == given[setting[-1]]


def test_equal_sentences_are_read_once():
    exercise = course.Exercise(1, "01 x, exercise 1: y", "ck.teach.a.check_b(c)", "why?")
    lesson = course.Lesson("01 x", [], {}, (exercise,))
    class_ = gradebook.CourseRecords({"01": lesson})
    for name, sentence in (("ada", "It's slow."), ("bob", "its  SLOW"), ("cyd", "It s slow!")):
        answer = gradebook.GradedAnswer(check.Verdict(True, ""), "c = 1", sentence)
        class_.works.append((submissions.Student(name, name), {"01": {exercise: answer}}))
    table = gradebook.explanation_rows(class_)
    assert sorted((row["count"], row["students"]) for row in table) == [(1, "bob"), (2, "ada, cyd")]


@pytest.mark.slow
@pytest.mark.usefixtures("sandbox")
def test_without_a_sandbox_nothing_is_graded_unless_forced_and_all_outputs_say_so(
    submitted, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(process, "sandbox_command", lambda: None)
    out = tmp_path / "out"
    assert cli.main(["grade", str(submitted), str(out)]) == 1 and not out.exists()
    assert "--no-sandbox" in capsys.readouterr().err
    assert cli.main(["grade", str(submitted), str(out), "--no-sandbox"]) == 0
    pages = [page.read_text(encoding="utf-8") for page in (out / "feedback").iterdir()]
    assert len(pages) == 5 and all(gradebook.UNSAFE in page for page in pages)
    assert {row["judging"] for row in rows(out / "grades.csv")} == {gradebook.UNSAFE}
    monkeypatch.undo()
    assert cli.main(["grade", str(submitted), str(out)]) == 0
    assert "judging" not in rows(out / "grades.csv")[0], "nothing of that is kept"


# -- every entry and every name is accounted for


def entry(folder: Path, name: str, chance: random.Random) -> None:
    """Anything that may lie in a folder."""
    path = folder / name
    kind = chance.randrange(8)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(chance.choice(["nowhere", "/etc", "../in", "/dev/zero"]))
    elif kind == 2:
        path.mkdir()
        for inner in chance.sample(PLACES, chance.randrange(4)):
            if len(path.parts) < 12:
                entry(path, inner, chance)
    elif kind == 3:
        put(folder, name, cells("09", book.student))
    else:
        path.write_bytes(chance.choice([b"", b"{}", b'{"cells": []}', b"PK", chance.randbytes(99)]))


PLACES = (
    *("ada", "09_bus.ipynb", "bob.ipynb", "x.zip", "lovelaceada_4711_81_09_bus-2.ipynb", "=1"),
    *("lovelaceada_LATE_4711_82_my_kernel.il", "Ada L_9_assignsubmission_file", ".DS_Store"),
    *("Ada L_9_assignsubmission_onlinetext", "__MACOSX", "J\udcf6rg", "new\nline", "a.b.IPYNB"),
)


@pytest.mark.parametrize("seed", range(40))
def test_every_entry_and_every_name_of_the_roster_is_accounted_for(seed, tmp_path):
    chance = random.Random(seed)
    folder = tmp_path / "in"
    folder.mkdir()
    for name in chance.sample(PLACES, chance.randrange(1, len(PLACES))):
        entry(folder, name, chance)
    found, hidden = submissions.find_students(folder)
    listed = [submissions.Student(id, id) for id in chance.sample(["ada", "9", "gone", "4711"], 3)]
    everybody = submissions.merge_roster(found, listed)
    assert [student.id for student in everybody[:3]] == [student.id for student in listed]
    told = "\n".join(note for student in everybody for note in student.notes)
    taken = [path for student in everybody for path in student.notebooks]
    for root, folders, files in os.walk(folder):
        inside = Path(root).relative_to(folder).parts
        if any(submissions.is_hidden(part) for part in inside):
            continue
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        for name in files + links:
            path = Path(root) / name
            shown = printable_name(path)
            if submissions.is_hidden(name):
                assert inside or shown in hidden
            else:
                assert path in taken or f"{shown}: " in told, path
    owners = {student.id for student in found}
    for path in folder.iterdir():
        if not submissions.is_hidden(path.name):
            assert any(owner in printable_name(path) for owner in owners), path
    class_ = gradebook.CourseRecords({}, [(student, {}) for student in everybody])
    for student in everybody:
        status = class_.status(student)
        assert (gradebook.NOT_SUBMITTED in status) == (not student.notes)
        assert status.endswith(gradebook.UNLISTED) == (student not in everybody[:3])


@pytest.mark.parametrize("seed", range(20))
def test_what_is_no_notebook_is_reported_once_and_not_judged(seed, tmp_path):
    """Whatever lesson's name it has: it isn't a lesson with no points."""
    chance = random.Random(seed)
    lessons = course.read_lessons()
    for stem in chance.sample(sorted(lessons), chance.randrange(1, 4)):
        whole = (course.lessons_folder() / f"{stem}.ipynb").read_bytes()
        broken = [
            b"",
            b"[]",
            b"{}",
            whole[: chance.randrange(len(whole) - 2)],
            chance.randbytes(50),
        ]
        (tmp_path / f"{stem}.ipynb").write_bytes(chance.choice(broken))
    files = sorted(tmp_path.iterdir())
    student = submissions.Student("ada", "Ada", files)
    works = student_work(lessons, None, student, None)
    class_ = gradebook.CourseRecords(lessons, [(student, works)])
    (row,) = gradebook.grade_rows(class_)
    page = gradebook.render_page(class_, student)
    assert not works and row["maximum"] == row["total"] == 0
    for file in files:
        reason = f"not judged: {file.name} is no notebook: "
        assert row["status"].count(reason) == page.count(reason) == 1


@pytest.mark.parametrize("sentence", ["", "because the bus is slower"])
def test_a_page_shows_the_explanation_or_that_there_is_none(sentence):
    lesson = course.read_lessons()["09_bus"]
    exercise, *_ = lesson.exercises
    student = submissions.Student("ada", "Ada")
    answers = {exercise: gradebook.GradedAnswer(Verdict(True, "Right."), "", sentence)}
    works = {"09_bus": answers}
    page = gradebook.render_page(
        gradebook.CourseRecords({"09_bus": lesson}, [(student, works)]), student
    )
    assert (gradebook.UNWRITTEN in page) == (not sentence) and "<q></q>" not in page


@pytest.mark.parametrize("seed", range(10))
def test_a_notebook_is_known_by_its_cells_whatever_its_file_is_called(seed):
    chance = random.Random(seed)
    lessons = course.read_lessons()
    stem = chance.choice(list(lessons))
    (path,) = (BOOK / "source").glob(f"{stem}.md")
    data = json.loads(json.dumps(book.solved(book.read(path))))
    of = data["cells"]
    for _ in range(chance.randrange(20)):  # of a student's own
        made = {"cell_type": "code", "id": f"own{len(of)}", "source": "x = 1", "metadata": {}}
        of.insert(chance.randrange(len(of) + 1), made)
    lost = chance.sample(of, len(of) // 5)
    data["cells"] = [cell for cell in of if cell not in lost]
    handed = course.parse_cells(json.dumps(data).encode())
    assert course.identify_lesson("homework final FINAL.ipynb", handed, lessons) == stem
    for cell in handed:
        cell["id"] = "lost"  # by a program that makes new ones
    handed.insert(0, course._cell({"cell_type": "markdown", "source": f"# {lessons[stem].name}"}))
    assert course.identify_lesson("homework.ipynb", handed, lessons) == stem
    assert course.identify_lesson("homework.ipynb", [], lessons) is None


@pytest.mark.parametrize("seed", range(30))
def test_a_roster_has_all_names_however_a_spreadsheet_saved_it(seed, tmp_path):
    chance = random.Random(seed)
    coding = chance.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"])
    letters = 'ab"\n\r,;\t =ü\x85' + "\u2028\u202e" * (coding != "cp1252")
    names = {str(n): "".join(chance.choices(letters, k=chance.randrange(9))) for n in range(9)}
    file = tmp_path / "class.csv"
    with file.open("w", encoding=coding, errors="replace", newline="") as opened:
        writer = csv.writer(opened, delimiter=chance.choice(",;\t"))
        writer.writerows([("id", "name"), *names.items()])
    shown = {student.id: student.name for student in submissions.read_roster(file)}
    if coding == "cp1252":
        names = {id: name.encode(coding, "replace").decode(coding) for id, name in names.items()}
    assert shown == {id: submissions.one_line(name.strip() or id) for id, name in names.items()}


def test_a_wrong_roster_is_refused(tmp_path, capsys):
    (tmp_path / "in/ada").mkdir(parents=True)
    wrong = {
        "name\nada\n": "no column `id`",
        "id\na\na\n": "a twice",
        'id,name\n1,"Ada\n2,Bob\n': "line 3: unexpected end of data",
        f"id,name\n1,{'A' * (1 << 25)}\n": "line 2: field larger",
    }
    for text, said in wrong.items():
        (tmp_path / "class.csv").write_text(text)
        command = ["grade", str(tmp_path / "in"), str(tmp_path / "out")]
        assert cli.main([*command, "--roster", str(tmp_path / "class.csv")]) == 1
        assert said in capsys.readouterr().err


def test_a_notebook_of_countless_cells_is_refused_before_they_fill_the_memory():
    with pytest.raises(ValueError, match="more than 2,000 cells"):
        course.parse_cells(b'{"cells": [' + b"{}," * 2_000_000 + b"{}]}")


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
@pytest.mark.few(1)
@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_one_submits_all_others_get_their_grades(seed, tmp_path, capsys):
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
    status = cli.main(["grade", str(folder), str(out)])
    told = capsys.readouterr()
    assert status == seed % 2, told.err
    table = {row["id"]: row for row in rows(out / "grades.csv")}
    assert len(table) == 7 and all(row["status"] for row in table.values())
    assert len(table) == 7 and table["honest"][FIRST] == "1"
    assert [who for who, row in table.items() if row[FIRST] == "1"] == ["honest"]
    assert len(told.out.splitlines()) <= 9 and all(
        line.isprintable() for line in told.out.splitlines()
    )
    assert len(list((out / "feedback").iterdir())) == 7


# -- archives and encodings


def packed(path: Path, files: dict[str, bytes], chance: random.Random) -> None:
    """Write an archive, as one program or another would."""
    method = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def linked(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info


PARTS = "week3", "a b", "..", "", "C:", "J\u00f6rg", "new\nline", "x\\y"


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(20))
def test_every_notebook_in_an_archive_is_found_wherever_it_lies(seed, tmp_path):
    """Under any path, and nothing is written anywhere."""
    chance = random.Random(seed)
    whole = (course.lessons_folder() / "09_bus.ipynb").read_bytes()
    names = {
        "/".join([*chance.choices(PARTS, k=chance.randrange(4)), f"{n}.ipynb"]) for n in range(3)
    }
    files = dict.fromkeys(names, whole) | {"__MACOSX/a.ipynb": b"x", "week3/.DS_Store": b"x"}
    flat = chance.random() < 0.5
    place = tmp_path / "in" / ("ada_4711_81_week3.ZIP" if flat else "ada/homework.zip")
    packed(place, files, chance)
    before = sorted(tmp_path.rglob("*"))
    (student,), _ = submissions.find_students(tmp_path / "in")
    assert student.id == ("4711" if flat else "ada") and not student.notes
    assert len(student.notebooks) == 3 and sorted(tmp_path.rglob("*")) == before
    for notebook in student.notebooks:
        cells, remark = submissions.read_cells(notebook)
        assert (
            course.identify_lesson(notebook.name, cells, course.read_lessons()) == "09_bus"
            and not remark
        )
        assert printable_name(notebook).isprintable() and notebook.name.startswith(place.name)


def bomb(folder: Path, chance: random.Random) -> None:
    """Gigabytes of zeros in a few kB, in one file or in many, or with a size that is a lie."""
    count = chance.choice([1, 40])
    with zipfile.ZipFile(folder / "09_bus.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(count):
            with archive.open(f"{n}.ipynb", "w") as file:
                for _ in range(chance.choice([3, 31])):
                    file.write(bytes(1_000_000))
    if chance.random() < 0.5:
        data = (folder / "09_bus.zip").read_bytes()
        real = [n * 1_000_000 for n in (3, 31)]
        for size in real:
            data = data.replace(size.to_bytes(4, "little"), (900).to_bytes(4, "little"))
        (folder / "09_bus.zip").write_bytes(data)


def countless(folder: Path, chance: random.Random) -> None:
    packed(folder / "a.zip", {f"{n}.ipynb": b"" for n in range(3_000)}, chance)


def link_in_an_archive(folder: Path, chance: random.Random) -> None:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr(linked("09_bus.ipynb"), "/etc/passwd")


def nested(folder: Path, chance: random.Random) -> None:
    packed(folder / "b.zip", {"09_bus.ipynb": b"{}"}, chance)
    packed(folder / "a.zip", {"b.zip": (folder / "b.zip").read_bytes()}, chance)
    (folder / "b.zip").unlink()


def locked(folder: Path, chance: random.Random) -> None:
    packed(folder / "a.zip", {"09_bus.ipynb": b"{}"}, chance)
    data = bytearray((folder / "a.zip").read_bytes())
    for head, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(head) + flags] |= 1
    (folder / "a.zip").write_bytes(data)


def otherwise_compressed(folder: Path, chance: random.Random) -> None:
    method = chance.choice([zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(folder / "a.zip", "w", method) as archive:
        archive.writestr("09_bus.ipynb", bytes(10_000_000))


def damaged(folder: Path, chance: random.Random) -> None:
    whole = (course.lessons_folder() / "09_bus.ipynb").read_bytes()
    packed(folder / "a.zip", {"09_bus.ipynb": whole, "é.ipynb": whole}, chance)
    data = bytearray((folder / "a.zip").read_bytes())
    for _ in range(chance.randrange(1, 40)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    end = chance.choice([len(data), chance.randrange(len(data))])
    (folder / "a.zip").write_bytes(data[:end])


def no_archive(folder: Path, chance: random.Random) -> None:
    (folder / "a.zip").write_bytes(chance.choice([b"", b"PK", b"PK\3\4", chance.randbytes(500)]))


def other_archive(folder: Path, chance: random.Random) -> None:
    (folder / chance.choice(["a.rar", "a.7z", "a.tar.gz"])).write_bytes(chance.randbytes(500))


ARCHIVES = [
    bomb,
    countless,
    link_in_an_archive,
    nested,
    locked,
    otherwise_compressed,
    damaged,
    no_archive,
    other_archive,
]


@pytest.mark.few(9)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("make", ARCHIVES, ids=lambda make: make.__name__)
def test_no_archive_does_harm_and_each_is_accounted_for(make, seed, tmp_path):
    """Whatever is in it: it is read within the limits, or its student is told why not."""
    chance = random.Random(seed)
    (tmp_path / "ada").mkdir()
    make(tmp_path / "ada", chance)
    (student,), _ = submissions.find_students(tmp_path)
    for notebook in student.notebooks:
        try:
            submissions.read_cells(notebook)
        except ValueError as error:
            student.notes.append(str(error))
    assert student.notes or make is damaged, "there is a reason"
    assert all(note.isprintable() for note in student.notes)
    if make not in (bomb, damaged):
        assert not student.notebooks, student.notes


def test_an_archive_that_unpacks_to_too_much_is_read_as_far_as_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 1000)
    packed(tmp_path / "a.zip", {f"{n}.ipynb": bytes(300) for n in range(5)}, random.Random(1))
    found = archives.list_members((tmp_path / "a.zip").read_bytes(), tmp_path / "a.zip")
    assert [bool(why) for _, why in found] == [False] * 3 + [True] * 2


CODINGS = "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "damaged"


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("seed", range(3))
def test_a_notebook_is_read_in_any_encoding(coding, seed, tmp_path):
    """With any letters; and what isn't Unicode is noted."""
    chance = random.Random(seed)
    latin = coding == "latin-1"
    letters = "".join(chr(chance.randrange(0xA1, 0x100 if latin else 0xD000)) for _ in range(40))
    notebook = cells("09", book.student)
    notebook.cells[0].source += f"\n{letters}"
    text = json.dumps(notebook, ensure_ascii=False)
    if latin:
        text = text.encode("latin-1", "replace").decode("latin-1")
    data = text.encode("utf-8" if coding == "damaged" else coding)
    expected = {"latin-1": course.LATIN, "damaged": course.DAMAGED}.get(coding, "")
    if coding == "damaged":
        data = data.replace(b"# 09 The bus", b"# 09 The bus\xff")
    (tmp_path / "09_bus.ipynb").write_bytes(data)
    read, remark = submissions.read_cells(tmp_path / "09_bus.ipynb")
    assert read[0]["source"].endswith(letters) and remark == expected
    student = submissions.Student("ada", "Ada", [tmp_path / "09_bus.ipynb"])
    lesson = course.read_lessons()["09_bus"]._replace(exercises=())
    student_work({"09_bus": lesson}, None, student, None)
    assert [note for note in student.notes if "UTF-8" in note] == [
        f"09_bus.ipynb: {remark}" for remark in [expected] if remark
    ]


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\xff\xfe", b" \n", bytes(1000)])
def test_an_empty_file_is_called_empty(data, tmp_path):
    (tmp_path / "09_bus.ipynb").write_bytes(data)
    with pytest.raises(ValueError, match="it is empty"):
        submissions.read_cells(tmp_path / "09_bus.ipynb")


# -- the same maximum for everybody


@pytest.mark.parametrize("seed", range(20))
def test_all_have_the_same_maximum_and_fewer_lessons_give_no_more(seed):
    chance = random.Random(seed)
    lessons = course.read_lessons()
    stems = chance.sample(sorted(lessons), 4)
    due = tuple(stems[:3]) if chance.random() < 0.5 else ()
    right = gradebook.GradedAnswer(Verdict(True, "Right."))
    class_ = gradebook.CourseRecords({stem: lessons[stem] for stem in due or stems}, due=due)
    for name in range(6):
        handed = chance.sample(due or stems, chance.randrange(len(due or stems)))
        works = {stem: dict.fromkeys(lessons[stem].exercises, right) for stem in handed}
        class_.works.append((submissions.Student(str(name), str(name)), works))
    rows = list(gradebook.grade_rows(class_))
    (maximum,) = {row["maximum"] for row in rows}
    all_handed = {stem for _, works in class_.works for stem in works}
    assert maximum == 100 * len(due or all_handed)
    for (student, works), row in zip(class_.works, rows):
        most = 60 * len(works)  # without sentences
        assert row["total"] == most <= maximum
        page = gradebook.render_page(class_, student)
        assert f"{most} of {maximum} points</h1>" in page
        missing = [lessons[stem].name for stem in class_.counted if stem not in works]
        assert not works or all(name in row["status"] for name in missing)


# -- no file of the reader's is written over


def write(folder, *names: str) -> list[str]:
    works = [(submissions.Student(name, name), {}) for name in names]
    return gradebook.write_all(gradebook.CourseRecords({}, works), folder)


@pytest.mark.parametrize("mine", ["grades.csv", "feedback/ada.html"])
def test_grading_writes_over_nothing_that_it_did_not_make(mine, tmp_path, capsys):
    """Whichever file was there before: it is refused by name and left; whatever else lies there
    stays; and pages of students who have left go.
    """
    submitted, out = tmp_path / "in", tmp_path / "out"
    put(submitted / "ada", "hello.ipynb", "{}")
    for name in (mine, others := "feedback/notes.html"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    command = ["grade", str(submitted), str(out), "--no-sandbox"]
    assert cli.main(command) == 1 and mine in capsys.readouterr().err
    assert [path.read_text() for path in out.rglob("*.*")] == ["mine"] * 2
    (out / mine).unlink()
    assert not write(out, "ada", "bob") and not write(out, "ada")
    assert {page.name for page in (out / "feedback").iterdir()} == {"ada.html", "notes.html"}
    assert (out / others).read_text() == "mine"
    assert not gradebook.find_foreign_files(out, [submissions.Student("ada", "ada")])


def test_points_that_the_teacher_enters_while_answers_are_judged_count(tmp_path):
    lesson = course.read_lessons()["09_bus"]
    exercise = lesson.exercises[0]
    given = {exercise: gradebook.GradedAnswer(Verdict(True, ""), "", "because of the bus")}
    works = [(submissions.Student("ada", "ada"), {"09_bus": given})]
    records = gradebook.CourseRecords({"09_bus": lesson}, works)
    (tmp_path / "feedback").mkdir()
    assert not gradebook.write_all(records, tmp_path)
    sheet = tmp_path / gradebook.EXPLANATIONS
    row = rows(sheet)[0] | {gradebook.RUBRIC: "2"}
    sheet.write_text(tables.as_csv([row]))
    assert not gradebook.write_all(replace(records, points={}), tmp_path)
    assert rows(sheet)[0][gradebook.RUBRIC] == "2.0"
    assert rows(tmp_path / "grades.csv")[0][f"{FIRST}, explanation"] == "2.0"


@pytest.mark.slow
@pytest.mark.usefixtures("sandbox")
def test_what_the_teacher_adds_to_the_questions_is_kept(submitted, tmp_path):
    out = tmp_path / "out"
    command = ["grade", str(submitted), str(out)]
    assert cli.main(command) == 0
    wrote = rows(out / "explanations.csv")
    with (out / "explanations.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["note", *wrote[0]])
        writer.writeheader()
        writer.writerows(row | {"note": f"of {n}"} for n, row in enumerate(wrote))
    assert cli.main(command) == 0
    assert {row["note"] for row in rows(out / "explanations.csv")} == {
        f"of {n}" for n in range(len(wrote))
    }


@pytest.mark.parametrize("seed", range(4))
def test_a_handout_writes_over_no_other_file(seed, tmp_path, capsys):
    chance = random.Random(seed)
    numbers = chance.sample(["05", "07", "09", "13"], 3)
    command = ["handout", *numbers[:2], "--to", str(tmp_path / "week")]
    assert cli.main(command) == 0
    assert cli.main(command) == 0, "again: nothing is lost"
    assert cli.main(["handout", numbers[2], "--to", str(tmp_path / "week")]) == 0, "one more"
    file = chance.choice(sorted((tmp_path / "week").glob(f"[g{numbers[0][0]}]*.ipynb")))
    worked = file.read_text(encoding="utf-8").replace("# ", "# my own ", 1)
    file.write_text(worked, encoding="utf-8")
    kept = {path: path.read_bytes() for path in (tmp_path / "week").iterdir()}
    status = cli.main(["handout", *numbers, "--to", str(tmp_path / "week")])
    assert status == 1 and file.name in capsys.readouterr().err
    assert {path: path.read_bytes() for path in (tmp_path / "week").iterdir()} == kept


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
    assert course.read_lessons()["09_bus"].exercises


def solutions(path: Path) -> list[str]:
    parts = book.SOLUTION.findall(path.read_text(encoding="utf-8"))
    return [line for part in parts for line in part.splitlines() if len(line.strip()) > 25]


def test_handouts_and_grades_need_no_bokeh(tmp_path):
    code = f"""
import sys
sys.modules["bokeh"] = None
from cypresskit import cli, tables
handed_in, out = {str(tmp_path / "in")!r}, {str(tmp_path / "out")!r}
sys.exit(cli.main(["handout", "09", "--to", handed_in + "/ada"])
    or cli.main(["grade", handed_in, out, "--no-sandbox"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/feedback/ada.html").exists()


def test_an_answer_on_which_its_check_fails_is_incorrect(monkeypatch):
    """So are all of a student's answers if the judging process dies."""
    broken = check.report_broken_check(KeyError("odd"))
    monkeypatch.setattr(judging, "judge", lambda *_, **__: broken)
    ((right, finding, hint),) = judging.judge_all([[["cell"], CHECK, ""]], "", None)
    assert not right and "check fails" in finding and "odd" in finding and hint

    def dies(*_, **__):
        raise judging.NoResult("memory")

    monkeypatch.setattr(judging, "call", dies)
    verdicts = judging.judge_student([judging.Attempt(["cell"], CHECK)] * 3, None)
    assert [verdict.right or verdict.is_broken for verdict in verdicts] == [False] * 3


# -- explanations are found wherever they are


OWN_WORDS = "my own words, number {}"
WRITTEN = {
    "as handed out": lambda text: ("code", f'ck.teach.explanation("""\n{text}\n""")'),
    "single quotes": lambda text: ("code", f"ck.teach.explanation('''{text}''')  # done"),
    "one line": lambda text: ("code", f'ck.teach.explanation("{text}")'),
    "two strings": lambda text: ("code", f"ck.teach.explanation('{text[:5]}'\n '{text[5:]}')"),
    "by keyword": lambda text: ("code", f"from x import y\nexplanation(text='{text}')"),
    "no Python": lambda text: ("code", f'ck.teach.explanation(""{text}"")'),
    "Markdown": lambda text: ("markdown", text),
    "a turned cell": lambda text: ("markdown", f'ck.teach.explanation("""\n{text}\n""")'),
}


@pytest.mark.parametrize("place", WRITTEN)
@pytest.mark.parametrize("lost", [(), ("id",), ("metadata",), ("id", "metadata")])
@pytest.mark.parametrize("instead", [True, False])
def test_an_explanation_is_found_without_ids_metadata_or_its_own_cell(place, lost, instead):
    """In the place of its cell, or in a new cell below."""
    lesson = course.read_lessons()["09_bus"]
    written = []
    number = 0
    for cell in deepcopy(lesson.cells):
        part = course.find_entry(cell).get("part")
        if part == "sentence":
            number += 1
            kind, source = WRITTEN[place](OWN_WORDS.format(number))
            new = cell | {"cell_type": kind, "source": source}
            if not instead:
                written.append(cell)
                new |= {"id": f"new{number}", "metadata": {}}
            cell = new
        for name in lost:
            cell[name] = {} if name == "metadata" else f"{len(written)}-other"
        written.append(cell)
    found = course.read_explanations(written, lesson)
    assert [*found.texts.values()] == [OWN_WORDS.format(n) for n in (1, 2, 3)] and not found.lost


@pytest.mark.parametrize("whole", ['because of the bus\n""")', "because of the bus"])
def test_an_explanation_is_read_without_its_call(whole):
    lesson = course.read_lessons()["09_bus"]
    cells = deepcopy(lesson.cells)
    place = next(c for c in cells if course.find_entry(c).get("part") == "sentence")
    place["source"] = whole
    assert course.read_explanations(cells, lesson).texts == {1: "because of the bus"}


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_cell_turned_to_another_kind_is_said(kind):
    lesson = course.read_lessons()["09_bus"]
    exercise = lesson.exercises[0]
    cells = deepcopy(lesson.cells)
    for cell in cells:
        entry = course.find_entry(cell)
        if entry.get("part") == "answer" and entry.get("exercise") == exercise.number:
            cell["cell_type"] = kind
    attempt = judging.make_attempt(cells, lesson, exercise)
    ((right, message, _),) = judging.judge_all([[*attempt]], "", None)
    assert not right and message == judging.TURNED.format(kind)


def test_a_text_in_the_questions_own_cell_is_an_explanation_and_a_lost_one_is_listed():
    lesson = course.read_lessons()["09_bus"]
    cells = deepcopy(lesson.cells)
    question = next(c for c in cells if course.find_entry(c).get("part") == "question")
    question["source"] += "\nbecause of the bus"
    first = {"cell_type": "code", "source": 'explanation("of what?")', "id": "x", "metadata": {}}
    found = course.read_explanations([first, *cells], lesson)
    assert found.texts == {1: "because of the bus"} and found.lost == ["of what?"]


@pytest.mark.parametrize("seed", range(5))
def test_large_outputs_are_skipped_and_all_else_stays(seed):
    chance = random.Random(seed)
    odd = ['"outputs": [', "]]}", '\\"', "[{", "é"]
    cells = []
    for _ in range(chance.randrange(1, 6)):
        size = chance.choice([10, course.MAX_OUTPUT_CHARACTERS])
        text = "".join(chance.choices(odd, k=3)) + "x" * size
        outputs = [{"output_type": "stream", "text": [text]}]
        cells.append({"cell_type": "code", "source": text[:99], "outputs": outputs, "id": "a"})
    read = course.parse_cells(json.dumps({"cells": cells, "metadata": {"outputs": [1]}}))
    assert [cell["source"] for cell in read] == [cell["source"] for cell in cells]
    for cell, given in zip(read, cells):
        small = len(given["outputs"][0]["text"][0]) < 1_000
        assert cell["outputs"] == (given["outputs"] if small else [])


def test_a_class_has_statistics_lists_of_equal_code_and_points_less_lateness():
    lesson = course.read_lessons()["09_bus"]
    exercise = lesson.exercises[0]
    code = "def seconds(n, b, r):\n    'Text.'\n" + "    n = n * (b + r) / (n - b)  # {}\n" * 5
    records = gradebook.CourseRecords({"09_bus": lesson}, late_percent=10.0)
    for name, right in zip("abcd", (True, False, False, False)):
        verdict = Verdict(right, f"told {min(name, 'c')}")
        answer = gradebook.GradedAnswer(verdict, code.replace("{}", name) if right < 1 else "x")
        student = submissions.Student(name, name, days_late=2.0 * (name == "a"))
        records.works.append((student, {"09_bus": {exercise: answer}}))
    (row,) = class_tables.statistics_rows(records)
    assert (row["right, percent"], row["commonest wrong answer"], row["how often"]) == (
        25,
        "told c",
        2,
    )
    (copies,) = class_tables.copies_rows(records)
    assert copies["students"] == "b, c, d" and "#" not in copies["code"]
    assert [row["Total"] for row in class_tables.moodle_rows(records)] == [48.0, 0, 0, 0]
    possible, first, *_ = class_tables.canvas_rows(records)
    assert possible["09 The bus"] == 100 and first["09 The bus"] == 48.0
    assert "2 days late: 80 %" in records.status(records.works[0][0])


def test_the_good_explanation_is_shown_once_the_teacher_has_graded():
    lesson = course.read_lessons()["09_bus"]
    exercise = lesson.exercises[0]
    answers = [gradebook.GradedAnswer(Verdict(True, ""), "", text) for text in ("", "because")]
    records = gradebook.CourseRecords({"09_bus": lesson})
    records.works = [
        (submissions.Student(n, n), {"09_bus": {exercise: a}}) for n, a in zip("ab", answers)
    ]
    good = gradebook.escape(exercise.good)
    pages = [gradebook.render_page(records, student) for student, _ in records.works]
    assert not any(good in page for page in pages)
    records.points[gradebook.explanation_key(exercise, "because")] = 1.0
    pages = [gradebook.render_page(records, student) for student, _ in records.works]
    assert all(good in page for page in pages)


@pytest.mark.parametrize("name", ["erika_77_assignsubmission_file_", "77", "erika"])
def test_a_roster_may_have_moodles_folder_names(name):
    found = [submissions.Student("77", "erika", notebooks=[Path("x")])]
    (one,) = submissions.merge_roster(found, [submissions.Student(name, name)])
    assert one.notebooks and one.listed


def test_an_interrupt_ends_grading_and_keeps_a_row_for_each_student(tmp_path):
    for name in "abc":
        waiting = cells("09", book.student)
        answer = next(c for c in waiting.cells if c.source.startswith("def seconds"))
        answer.source = "import time\ndef seconds(*_):\n    time.sleep(600)"
        put(tmp_path / "in" / name, "09_bus.ipynb", waiting)
    command = [sys.executable, "-m", "cypresskit", "grade", "in", "out", "--no-sandbox"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as run:
        while not (tmp_path / "out/feedback").exists():
            time.sleep(0.1)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        assert run.wait(600) == 130
    table = rows(tmp_path / "out/grades.csv")
    assert [row["id"] for row in table] == ["a", "b", "c"]
    assert all("not judged yet" in row["status"] for row in table)
