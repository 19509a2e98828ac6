"""Cheating and hostile work: answers, and what is handed in.

Each of ``HOSTILE`` makes what a student hands in of lesson 09: a path.
"""

import json
import os

from hand_ins import GIVEN, answer_exercise, save

NAME = "09_bus.ipynb"

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
    """An answer to the lesson's first exercise."""
    return lambda folder: save(folder / NAME, answer_exercise(GIVEN, answer=cell))


def edited_outputs(folder):
    """Outputs that say "Right.", below checks of no answer."""
    outputs = [{"output_type": "stream", "text": "Right.\n"}]
    save(folder / NAME, [cell | {"outputs": outputs} for cell in GIVEN])


def file(data):
    def make(folder):
        folder.mkdir()
        (folder / NAME).write_bytes(data)

    return make


def lone_surrogates(folder):
    cells = answer_exercise(GIVEN, answer="x = '\ud800'")
    save(
        folder / NAME, answer_exercise(cells, 2, answer="seconds = '\udfff'", sentence="why \ud83d")
    )


def links(folder):
    folder.mkdir()
    (folder / NAME).symlink_to(f"../honest/{NAME}")
    (folder / "zeros.ipynb").symlink_to("/dev/zero")
    (folder / "all").symlink_to("../honest")


def fifo(folder):
    folder.mkdir()
    os.mkfifo(folder / NAME)


def sparse(folder):
    folder.mkdir()
    with (folder / NAME).open("wb") as huge:
        huge.truncate(60 << 30)


def linked_folder(folder):
    folder.symlink_to("honest")


def archive(folder):
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
    "broken": file(b'{"cells": [{"cell_type": "code", "source": '),
    "brackets": file(b"[" * 200_000),
    "odd": file(json.dumps({"cells": ODD}).encode()),
    "lone surrogates": lone_surrogates,
    "links": links,
    "fifo": fifo,
    "sparse": sparse,
    "linked folder": linked_folder,
    "archive": archive,
}
