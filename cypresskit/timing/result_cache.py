"""Cache results of launches on the user's disk, by a hash of all that they depend on.

The hash covers the files of the model as they were when this was imported, the versions of numpy
and numba, the processor, the program's source, the board, the launch, and how much is simulated.
Nothing is cached

- for code that is given in compiled form, or for a subclass of ``Device``;
- while ``CYPRESSKIT_KEEP`` is 0, as in tests and judges;
- once a source file was edited, or a name in the model's modules or classes was replaced.

Not noticed: tables of the model that are changed in place.

A file is an ``npz`` without pickles: arrays, and JSON for the rest, which keeps all digits.
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
from cypresskit.files.disk_cache import DiskCache, SourceFiles, cache_folder
from cypresskit.il import Program
from cypresskit.kernels import Kernel
from cypresskit.timing.native import compiler
from cypresskit.timing.timed_launch import TimedLaunch
from cypresskit.timing.timing_request import TimingRequest

MAX_FILES = 1024
PACKAGE = Path(__file__).parents[1]
MODEL = "compiler", "il", "machine", "timing"  # packages that results depend on
T = TypeVar("T")
Plain = dict[str, Any]  # arrays, and what JSON can hold


def load_or_compute(
    what: str,
    request: TimingRequest,
    launch: TimedLaunch,
    compute: Callable[[], T],
    as_plain: Callable[[T], Plain],
    from_plain: Callable[[Plain], T],
) -> T:
    """Load a result from disk, or compute it and save it.

    Errors of ``from_plain`` are raised, since a file that is whole was written by these sources.

    Parameters
    ----------
    what
        The kind of result.
    request, launch
        What it is about.
    compute
        Computes it.
    as_plain, from_plain
        Convert it to its saved form, and back.
    """
    key = _key(what, request, launch)
    if key is None:
        return compute()
    files = DiskCache(cache_folder(), "launch", MAX_FILES)
    contents = files.read(key)
    if contents is not None:
        return from_plain(_unpacked(contents))
    result = compute()
    if SOURCES.unchanged():
        files.write(key, _packed(as_plain(result)))
    return result


def _key(what: str, request: TimingRequest, launch: TimedLaunch) -> str | None:
    """Return a hash of all that a result depends on; None if it isn't cached.

    The numbers of a subclass of ``Device`` may come from its own properties and class attributes,
    which a key can't cover.
    """
    program = request.kernel.program if isinstance(request.kernel, Kernel) else request.kernel
    device = request.device
    if os.environ.get("CYPRESSKIT_KEEP") == "0" or _is_patched():
        return None
    if not isinstance(program, Program) or type(device) is not Device:
        return None
    parts = (
        what,
        (np.__version__, compiler()),
        (program.mode, program.lines),
        [i for i in program.expanded if i.line < 1],  # from before the first line
        (vars(device), launch.memory_layout.key),
        (request.exact, astuple(request.policy)),
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
    files = (file for package in MODEL for file in (PACKAGE / package).rglob("*.*"))
    kinds = (".py", ".txt", ".ll")
    return [PACKAGE / "devices.py", *(f for f in files if f.suffix in kinds)]


SOURCES = SourceFiles(_sources)

# Values of the model's names, to detect replaced ones

_noted: list[tuple[Mapping[str, object], str, object]] = []


def note_model() -> None:
    """Note the current values of all names in the model's modules and classes."""
    for name in filter(_is_of_the_model, [*sys.modules]):
        module = vars(sys.modules[name])
        classes = [vars(v) for v in module.values() if isinstance(v, type) and v.__module__ == name]
        for names in (module, *classes):
            _noted.extend((names, each, value) for each, value in names.items())


def _is_of_the_model(module: str) -> bool:
    package, _, path = module.partition(".")
    return package == "cypresskit" and path.partition(".")[0] in (*MODEL, "devices")


def _is_patched() -> bool:
    return any(names.get(name) is not value for names, name, value in _noted)
