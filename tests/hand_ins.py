"""What a class hands in: honest, copied, cheating, endless and hostile work.

Each of ``CLASS`` writes into a student's folder what that student hands in of lessons 08 to 11.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
from conftest import ROOT

from cypresskit.teach import explanations
from tools import book

LESSONS = ("08", "09", "10", "11")
FUNCTIONS = {
    "08": ("ceiling", "waste"),
    "09": ("seconds", "n_balance", "size_for"),
    "10": ("largest", "order", "product"),
    "11": ("pipeline", "next_share", "buffer"),
}


def solution(lesson: str) -> list[str]:
    """The cells that solve a lesson's exercises, one each."""
    made = book.solved(book.read(book.sources(ROOT / "notebooks", [lesson])[0]))
    return [
        c.source
        for c in made.cells
        if c.metadata.get(book.METADATA_KEY, {}).get("part") == "answer"
    ]


def hand_in(handed_out: Path, folder: Path, lesson: str, answers: list[str], why: str = "") -> None:
    """Save the lesson that a student was handed out with answers, and a sentence below each."""
    (source,) = handed_out.glob(f"{lesson}_*.ipynb")
    notebook = nbformat.read(source, as_version=4)
    cells = []
    answers = list(answers)
    for cell in notebook.cells:
        if cell.cell_type == "code" and ".check_" in cell.source and answers:
            cells.append(nbformat.v4.new_code_cell(answers.pop(0)))
        if why and cell.source == explanations.explanation_cell():
            cell.source = explanations.explanation_cell(why)
        cells.append(cell)
    cells += map(nbformat.v4.new_code_cell, answers)
    notebook.cells = cells
    text = json.dumps(notebook, ensure_ascii=False)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / source.name).write_bytes(text.encode("utf-8", "surrogatepass"))


# -- honest


def honest(handed_out: Path, folder: Path, lessons=LESSONS, why="the bus is slower") -> None:
    for lesson in lessons:
        hand_in(handed_out, folder, lesson, solution(lesson), why)


def one_lesson(handed_out: Path, folder: Path) -> None:
    honest(handed_out, folder, ("09",))


def untouched(handed_out: Path, folder: Path) -> None:
    for lesson in LESSONS:
        hand_in(handed_out, folder, lesson, [])


def mistaken(handed_out: Path, folder: Path) -> None:
    """Slips that students make: a factor of two, one matrix too few, a cell that doesn't run."""
    hand_in(handed_out, folder, "08", ["def ceiling(memory_gb_s, size): return memory_gb_s / size"])
    slip = "def seconds(n, b, f): return 2 * 8 * n**2 / b + 2 * n**3 / f"
    hand_in(handed_out, folder, "09", [slip, "def n_balance(:", "size_for = undefined"])


def copied(handed_out: Path, folder: Path) -> None:
    """All files of a fellow student's."""
    shutil.copytree(folder.parent / "honest", folder)


def canvas(handed_out: Path, folder: Path) -> None:
    """Flat files, as Canvas delivers them."""
    whole = folder.with_name("whole")
    honest(handed_out, whole)
    for number, path in enumerate(sorted(whole.iterdir())):
        path.rename(folder.with_name(f"canvas_LATE_23_{number}_{path.stem}-1.ipynb"))
    whole.rmdir()


def by_its_cells(handed_out: Path, folder: Path) -> None:
    """Files whose names say nothing."""
    honest(handed_out, folder)
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(folder / f"homework final FINAL {number}.ipynb")


# -- cheats


def answers(lines: str) -> Callable[[Path, Path], None]:
    """One body for every function that is asked for."""

    def make(handed_out: Path, folder: Path) -> None:
        for lesson, names in FUNCTIONS.items():
            bodies = [f"def {name}(*given):\n{lines}" for name in names]
            hand_in(handed_out, folder, lesson, bodies)

    return make


def cells(lesson: str, *texts: str) -> Callable[[Path, Path], None]:
    """Cells of one lesson."""

    def make(handed_out: Path, folder: Path) -> None:
        hand_in(handed_out, folder, lesson, list(texts))

    return make


HALTED = """
    from cypresskit.teach.check import CheckStopped, Verdict
    halted = CheckStopped("x", "y")
    halted.verdict = Verdict(True, "fine")
    raise halted
"""
VERDICT = """
    from cypresskit.teach.check import Verdict
    return Verdict(True, "fine")
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
ASKS = """
candidates = [lambda n, b, f, k=k: 8 * k * n**2 / b + 2 * n**3 / f for k in (1, 2, 3, 4)]
seconds = next(each for each in candidates if ck.teach.bus.check_seconds(each).right)
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


def edited_outputs(handed_out: Path, folder: Path) -> None:
    """Outputs that say "Right.", below checks of no answer."""
    untouched(handed_out, folder)
    for path in folder.iterdir():
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code" and ".check_" in cell.source:
                cell.outputs = [nbformat.v4.new_output("stream", text="Right.\n")]
        nbformat.write(notebook, path)


# -- what doesn't end, and what isn't a notebook


ENDLESS = "    while True: pass\n"
STUBBORN = "    while True:\n        try: sum(range(10**9))\n        except BaseException: pass\n"
SLEEPS = "    import time; time.sleep(10**6)\n"
FILLS = "    return bytes(10**13) + bytes([1]) * 10**11\n"
DISK = """
    for folder in ("/tmp", "/dev/shm", os.environ.get("XDG_CACHE_HOME", "/tmp")):
        with open(os.path.join(folder, "full"), "wb") as file:
            for _ in range(600):
                file.write(bytes(10**6))
    return 24 * given[0]**2 / given[1] + 2 * given[0]**3 / given[2]
"""
STUMBLES = """
from cypresskit.kernels import Kernel
import gc
sent = [each for each in gc.get_objects() if type(each).__name__ == "Server"]
def seconds(*_):
    sent[0].send({"broken": "x"})
    return 1
"""
EXITS = "    import os; os._exit(0)\n"
STAYS = """
    import os, time
    for _ in range(20):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
    return 1.0
"""
DEEP = "    return (lambda f: f(f))(lambda f: f(f))\n"
RAISES = "    raise ValueError(chr(0xd800) + '\\u202e\\n<script>alert(1)</script>')\n"


def file(name: str, data: bytes) -> Callable[[Path, Path], None]:
    def make(handed_out: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / name).write_bytes(data)

    return make


def lone_surrogates(handed_out: Path, folder: Path) -> None:
    hand_in(handed_out, folder, "09", ["x = '\ud800'", "seconds = '\udfff'"], why="why \ud83d")


def links(handed_out: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "09_bus.ipynb").symlink_to("../honest/09_bus.ipynb")
    (folder / "10_larger_than_the_card.ipynb").symlink_to("/dev/zero")
    (folder / "all").symlink_to("../honest")


def fifo(handed_out: Path, folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "09_bus.ipynb")


def sparse(handed_out: Path, folder: Path) -> None:
    folder.mkdir()
    with (folder / "09_bus.ipynb").open("wb") as huge:
        huge.truncate(60 << 30)


def linked_folder(handed_out: Path, folder: Path) -> None:
    folder.symlink_to("honest")


def archive(handed_out: Path, folder: Path) -> None:
    folder.with_name(f"{folder.name}.zip").write_bytes(b"PK\x03\x04")


Maker = Callable[[Path, Path], None]
HONEST: dict[str, Maker] = {
    "honest": honest,
    "one lesson": one_lesson,
    "copied": copied,
    "canvas": canvas,
    "by its cells": by_its_cells,
}
CHEATS: dict[str, Maker] = {
    "halted": answers(HALTED),
    "verdict": answers(VERDICT),
    "frames": answers(FRAMES),
    "objects": answers(OBJECTS),
    "equal": answers(EQUAL),
    "forged": answers(FORGED),
    "on disk": answers(ON_DISK),
    "patched": answers(PATCHED),
    "two sizes": cells("08", TWO_SIZES),
    "asks": cells("09", ASKS),
    "reference": cells("09", REFERENCE),
    "check replaced": cells("09", CHECK_REPLACED),
    "by host": cells("10", "pass", "pass", BY_HOST),
    "larger card": cells("10", "pass", "pass", LARGER_CARD),
    "by hand": cells("11", "pipeline = ck.teach.pipelines.by_hand"),
    "edited outputs": edited_outputs,
    "disk": cells("09", f"import os\ndef seconds(*given):\n{DISK}"),
    "stumbles": cells("09", STUMBLES),
}
ODD = [
    None,
    7,
    {"cell_type": ["code"], "source": [1, None, "x\0"], "outputs": {"a": 1}, "metadata": 3},
]
OTHERS: dict[str, Maker] = {
    "mistaken": mistaken,
    "untouched": untouched,
    "exits": answers(EXITS),
    "deep": cells("09", f"def seconds(*_):\n{DEEP}"),
    "raises": answers(RAISES),
    "clears": cells("09", "import sys, os\nsys.modules.clear()\nos.environ.clear()\nseconds = abs"),
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
#: What takes as long as is allowed.
SLOW: dict[str, Maker] = {
    "endless": cells("09", f"def seconds(*_):\n{ENDLESS}"),
    "stubborn": cells("09", f"def seconds(*_):\n{STUBBORN}"),
    "sleeps": cells("11", f"def pipeline(*_):\n{SLEEPS}"),
    "fills": cells("09", f"def seconds(*_):\n{FILLS}"),
    "stays": cells("09", f"def seconds(*_):\n{STAYS}"),
}
#: Under these names they stand in the table, where it isn't their own.
CLASS = HONEST | CHEATS | OTHERS | SLOW
