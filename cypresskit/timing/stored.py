"""Results of launches, saved on the user's disk under a hash of all that they depend on.

That is: the files that a time follows from, as they were when this was imported, numpy, numba and
the processor; the program's text, the board, the launch and how much of it is simulated. Nothing is
saved or read for compiled code that is given as such, for a subclass of ``Device``, while
``CYPRESSKIT_KEEP`` is 0 (as in tests and judges), once a source has been edited, or once a name of
the model's modules or classes stands for something else. Left out: tables that are changed in
place.

A file is a ``npz`` without pickles: arrays, and JSON for all else, which gives back each number to
its last digit.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cypresskit.devices import Device
from cypresskit.il import Program
from cypresskit.kept_files import KeptFiles, SourceFiles, cache_folder
from cypresskit.kernels import Kernel
from cypresskit.timing.native import compiler
from cypresskit.timing.question import Question
from cypresskit.timing.timed_launch import TimedLaunch

FILES = 1024
PACKAGE = Path(__file__).parents[1]
ROOMS = "compiler", "il", "machine", "timing"
T = TypeVar("T")
Plain = dict[str, Any]  # numbers, strings, lists and dicts by string; and arrays


def kept(
    what: str,
    question: Question,
    launch: TimedLaunch,
    find: Callable[[], T],
    as_plain: Callable[[T], Plain],
    from_plain: Callable[[Plain], T],
) -> T:
    """Return what ``find`` finds of a launch, or found before: then ``from_plain`` its saved form.
    Errors of both are raised: a file that is whole was written by these sources.
    """
    key = _key(what, question, launch)
    if key is None:
        return find()
    files = KeptFiles(cache_folder(), "launch", FILES)
    contents = files.read(key)
    if contents is not None:
        return from_plain(_unpacked(contents))
    result = find()
    if SOURCES.unchanged():
        files.write(key, _packed(as_plain(result)))
    return result


def _key(what: str, question: Question, launch: TimedLaunch) -> str | None:
    """A hash of all that the answer depends on; None if it isn't kept. The numbers of a subclass
    of ``Device`` may come from its own properties and class attributes, which no key can have.
    """
    program = question.kernel.program if isinstance(question.kernel, Kernel) else question.kernel
    device = question.device
    if os.environ.get("CYPRESSKIT_KEEP") == "0" or _is_patched():
        return None
    if not isinstance(program, Program) or type(device) is not Device:
        return None
    parts = (
        what,
        (np.__version__, compiler()),
        (program.mode, program.lines),
        [i for i in program.expanded if i.line < 1],  # of what stood before the lines
        (vars(device), launch.surfaces.key),
        (question.exact, astuple(question.policy)),
    )
    return SOURCES.key(*parts)


def _packed(plain: Plain) -> bytes:
    arrays = {name: value for name, value in plain.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in plain.items() if name not in arrays}
    text = np.frombuffer(json.dumps(rest, default=np.generic.item).encode(), np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, text=text, **arrays)
    return file.getvalue()


def _unpacked(contents: bytes) -> Plain:
    with np.load(io.BytesIO(contents), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    rest: Plain = json.loads(arrays.pop("text").tobytes())
    return rest | arrays


def _sources() -> list[Path]:
    files = (file for room in ROOMS for file in (PACKAGE / room).rglob("*.*"))
    kinds = (".py", ".txt", ".ll")
    return [PACKAGE / "devices.py", *(f for f in files if f.suffix in kinds)]


SOURCES = SourceFiles(_sources)


# What the model is

_noted: list[tuple[Mapping[str, object], str, object]] = []


def note_model() -> None:
    """Note what the names of the model's modules stand for, and of their classes: whatever takes
    such a name from now on is a patch.
    """
    for name in filter(_is_of_the_model, [*sys.modules]):
        module = vars(sys.modules[name])
        classes = [vars(v) for v in module.values() if isinstance(v, type) and v.__module__ == name]
        for names in (module, *classes):
            _noted.extend((names, each, value) for each, value in names.items())


def _is_of_the_model(module: str) -> bool:
    package, _, path = module.partition(".")
    return package == "cypresskit" and path.partition(".")[0] in (*ROOMS, "devices")


def _is_patched() -> bool:
    return any(names.get(name) is not value for names, name, value in _noted)
