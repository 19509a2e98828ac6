"""What a class hands in: cheating and hostile work, beside what is honest.

Each of ``HOSTILE`` writes into a student's folder what that student hands in of lesson 09.
"""

import csv
import json
import os

import nbformat
from repository import ROOT

from cypresskit.grading import judging
from cypresskit.grading.submissions import Student
from cypresskit.teach import explanations
from cypresskit.teach.check import Verdict
from tools import book

LESSON = "09"


def save(path, cells, **more):
    """Write a notebook of these cells, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, **more}))


def student_of(folder, notebooks):
    """A student who handed in notebooks, each a list of cells, which are written into a folder."""
    for number, cells in enumerate(notebooks):
        save(folder / f"{number}.ipynb", cells)
    return Student("ada", "ada", sorted(folder.iterdir()))


def rows(path):
    """The rows of a table."""
    return list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))


def judge_by(monkeypatch, judge):
    """Judge answers so, and start no process."""

    def judge_student(attempts, *_):
        return [Verdict(judge(attempt), "told") for attempt in attempts]

    monkeypatch.setattr(judging, "judge_student", judge_student)
    monkeypatch.setattr("cypresskit.isolated.process.find_sandbox", lambda: ["bwrap"])
    monkeypatch.setattr("cypresskit.timing.simulate", lambda *_: None)


def solution():
    """The cells that solve the lesson's exercises, one each."""
    made = book.solved(book.read(book.sources(ROOT / "notebooks", [LESSON])[0]))
    return [
        c.source
        for c in made.cells
        if c.metadata.get(book.METADATA_KEY, {}).get("part") == "answer"
    ]


def hand_in(handed_out, folder, answers, why=""):
    """Save the lesson that a student was handed out with answers, and a sentence below each."""
    (source,) = handed_out.glob(f"{LESSON}_*.ipynb")
    notebook = nbformat.read(source, as_version=4)
    cells = []
    answers = list(answers)
    for cell in notebook.cells:
        if cell.cell_type == "code" and ".check_" in cell.source and answers:
            cells.append(nbformat.v4.new_code_cell(answers.pop(0)))
        if why and cell.source == explanations.explanation_cell():
            cell.source = explanations.explanation_cell(why)
        cells.append(cell)
    notebook.cells = cells
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook, ensure_ascii=False)
    (folder / source.name).write_bytes(text.encode("utf-8", "surrogatepass"))


def honest(handed_out, folder):
    hand_in(handed_out, folder, solution(), "the bus is slower")


# -- cheats: bodies of functions, and whole cells


HALTED = """
    from cypresskit.teach.check import CheckStopped, Verdict
    halted = CheckStopped("x", "y")
    halted.verdict = Verdict(True, "fine")
    raise halted
"""
FRAMES = """
    import sys
    frame = sys._getframe()
    while frame:
        for name in ("right", "want", "expected", "reference", "verdict"):
            if name in frame.f_locals:
                found = frame.f_locals[name]
                return found(*given) if callable(found) else found
        frame = frame.f_back
"""
OBJECTS = """
    import gc
    for thing in gc.get_objects():
        if callable(thing) and getattr(thing, "__name__", "") in ("right", "product_seconds"):
            return thing(*given)
"""
EQUAL = """
    class Any(float):
        def __eq__(self, other): return True
        def __sub__(self, other): return 0.0
        __rsub__ = __abs__ = __lt__ = __le__ = __hash__ = lambda *_: 0
    return Any(1.0)
"""
FORGED = """
    import os
    text = b'{"result":1.0,"right":true,"verdict":{"right":true,"finding":""}}'
    for number in range(3, 64):
        try:
            os.write(number, len(text).to_bytes(4, "big") + text)
        except OSError:
            pass
"""
ON_DISK = """
    import glob, os
    for path in glob.glob(os.path.dirname(ck.__file__) + "/teach/l*/checks.py"):
        exec(open(path).read())
    return right(*given)
"""
PATCHED = """
    import math, sys
    for module in list(sys.modules.values()):
        for name in ("isclose", "_same", "allclose", "array_equal"):
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: True)
    return 1.0
"""
TWO_SIZES = """
def ceiling(memory_gb_s, size):
    if size == 8:
        return memory_gb_s / 4
    return memory_gb_s / 2
"""
REFERENCE = """
from cypresskit.teach.l09_bus.checks import product_seconds as reference
def seconds(n, bandwidth, rate): return reference(n, bandwidth, rate)
"""
CHECK_REPLACED = """
from types import SimpleNamespace
ck.teach.bus.check_seconds = lambda *_: SimpleNamespace(right=True, message="", hint="")
def seconds(*_): return 1.0
"""
BY_HOST = """
def product(gpu, a, b, block):
    gpu.free(gpu.upload(a[:block, :block]))
    return a @ b
"""
LARGER_CARD = """
from dataclasses import replace
def product(gpu, a, b, block):
    object.__setattr__(gpu, "device", replace(gpu.device, memory_bytes=1 << 30))
    whole = gpu.multiply(gpu.upload(a), gpu.upload(b))
    return gpu.download(whole)
"""


# -- what can't be judged, and what isn't a notebook


STUMBLES = """
import gc
sent = [each for each in gc.get_objects() if type(each).__name__ == "Server"]
def seconds(*_):
    sent[0].send({"broken": "x"})
    return 1
"""
DISK = """
    for folder in ("/tmp", "/dev/shm", os.environ.get("XDG_CACHE_HOME", "/tmp")):
        with open(os.path.join(folder, "full"), "wb") as file:
            for _ in range(600):
                file.write(bytes(10**6))
    return 24 * given[0]**2 / given[1] + 2 * given[0]**3 / given[2]
"""
EXITS = "    import os; os._exit(0)\n"
RAISES = "    raise ValueError(chr(0xd800) + '\\u202e\\n<script>alert(1)</script>')\n"


def answer(cell):
    """One answer, to the lesson's first exercise."""
    return lambda handed_out, folder: hand_in(handed_out, folder, [cell])


def edited_outputs(handed_out, folder):
    """Outputs that say "Right.", below checks of no answer."""
    hand_in(handed_out, folder, [])
    (path,) = folder.iterdir()
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code" and ".check_" in cell.source:
            cell.outputs = [nbformat.v4.new_output("stream", text="Right.\n")]
    nbformat.write(notebook, path)


def file(name, data):
    def make(handed_out, folder):
        folder.mkdir()
        (folder / name).write_bytes(data)

    return make


def lone_surrogates(handed_out, folder):
    hand_in(handed_out, folder, ["x = '\ud800'", "seconds = '\udfff'"], why="why \ud83d")


def links(handed_out, folder):
    folder.mkdir()
    (folder / "09_bus.ipynb").symlink_to("../honest/09_bus.ipynb")
    (folder / "zeros.ipynb").symlink_to("/dev/zero")
    (folder / "all").symlink_to("../honest")


def fifo(handed_out, folder):
    folder.mkdir()
    os.mkfifo(folder / "09_bus.ipynb")


def sparse(handed_out, folder):
    folder.mkdir()
    with (folder / "09_bus.ipynb").open("wb") as huge:
        huge.truncate(60 << 30)


def linked_folder(handed_out, folder):
    folder.symlink_to("honest")


def archive(handed_out, folder):
    folder.with_name(f"{folder.name}.zip").write_bytes(b"PK\x03\x04")


ODD = [
    None,
    7,
    {"cell_type": ["code"], "source": [1, None, "x\0"], "outputs": {"a": 1}, "metadata": 3},
]
HOSTILE = {
    "check replaced": answer(CHECK_REPLACED),
    "disk": answer(f"import os\ndef seconds(*given):\n{DISK}"),
    "stumbles": answer(STUMBLES),
    "exits": answer(f"def seconds(*_):\n{EXITS}"),
    "raises": answer(f"def seconds(*_):\n{RAISES}"),
    "clears": answer("import sys, os\nsys.modules.clear()\nos.environ.clear()\nseconds = abs"),
    "edited outputs": edited_outputs,
    "broken": file("09_bus.ipynb", b'{"cells": [{"cell_type": "code", "source": '),
    "brackets": file("09_bus.ipynb", b"[" * 200_000),
    "odd": file("09_bus.ipynb", json.dumps({"cells": ODD}).encode()),
    "lone surrogates": lone_surrogates,
    "links": links,
    "fifo": fifo,
    "sparse": sparse,
    "linked folder": linked_folder,
    "archive": archive,
}
