"""Cache what kernels give, by a hash of all that it depends on: compiled code, results of launches,
and a judge's comparisons.

They lie on the user's disk, and those of the lessons in a release (``cypresskit.cli.ahead``). The
hash covers the files of the model as they were when this was imported, and what a caller adds: the
program's meaning, the board, the launch, and how much is simulated. It doesn't cover the processor
and the versions of numba and numpy: clocks are the same with each, to the last bit, as a test
shows. Nothing is cached

- while ``CYPRESSKIT_KEEP`` is 0, as in tests and judges;
- once a source file was edited.

Not noticed: a name of the model that is replaced in memory, or a table that is changed there.

A file is a compressed pickle: like the machine code beside it, it is read from a folder only that
no other user may write to (``DiskCache``).
"""

import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cypresskit.files.disk_cache import DiskCache, SourceFiles, cache_folder, is_off, read_archived

MAX_FILES = 2048
PACKAGE = Path(__file__).parents[1]
RELEASED = PACKAGE / "data/results.zip"  # the lessons', in a release only
KIND = "result"  # of file
#: Packages that results depend on.
MODEL = "chip", "compiler", "il", "kernels", "machine", "timing", "trace"
T = TypeVar("T")


def load_or_compute(key: str | None, compute: Callable[[], T]) -> T:
    """Load the result that is saved under this key, or compute it and save it. It is never None."""
    saved: T | None = load(key)
    if saved is not None:
        return saved
    result = compute()
    save(key, result)
    return result


def hash_key(*parts: object) -> str | None:
    """Return a hash of the model and of all else that a result depends on; None if nothing is
    cached.
    """
    return None if is_off() else SOURCES.key(*parts)


def load(key: str | None) -> Any:
    """Return the result that is saved under this key, or None."""
    if key is None:
        return None
    files = _files()
    contents = files.read(key) or read_archived(RELEASED, files.name(key))
    return None if contents is None else pickle.loads(zlib.decompress(contents))


def save(key: str | None, result: object) -> None:
    """Save a result under this key, unless it is None or a source file was edited."""
    if key is not None:
        _files().write(key, zlib.compress(pickle.dumps(result)))


def saved_files(folder: Path) -> list[Path]:
    """Return the files of results in a folder and those inside it, by name."""
    return sorted(folder.rglob(f"{KIND}-*.bin"))


def _files() -> DiskCache:
    return DiskCache(cache_folder(), KIND, MAX_FILES, SOURCES)


def _sources() -> list[Path]:
    files = (file for package in MODEL for file in (PACKAGE / package).rglob("*.*"))
    kinds = (".py", ".txt", ".ll")
    return [PACKAGE / "devices.py", *(f for f in files if f.suffix in kinds)]


SOURCES = SourceFiles(_sources)
