"""Files that commands read and write."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import cypresskit as ck
from cypresskit.cli.command import CommandError
from cypresskit.il.parser import MAX_TEXT


def is_file(name: str) -> bool:
    """Whether it is a file's name, rather than that of a kernel of the catalogue."""
    return name not in ck.kernels and (bool(Path(name).suffix) or Path(name).exists())


def read_program(path: Path) -> ck.Program:
    """The program in a file; CommandError says why there is none."""
    with _opened(path) as file:
        data = file.read(MAX_TEXT + 1) or b""  # None: nothing yet, from a file that isn't one
    if len(data) > MAX_TEXT:
        raise CommandError(f"can't read {path}: it is no program, which has at most {MAX_TEXT:,} bytes")
    try:
        return ck.assemble(data.decode(), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CommandError(f"can't read {path}: line {line} isn't text. Is it a program, saved as UTF-8?") from None
    except ck.ILError as error:
        raise CommandError(str(error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """An ordinary file, opened for reading: a pipe or a device might make us wait, or never end."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                what = "it is a pipe or a device, not a file; save what comes out of it first"
                raise CommandError(f"can't read {path}: {what}")
            yield file
    except OSError as error:
        raise CommandError(f"can't read {path}: {error.strerror or error}") from None


def check_targets(*paths: Path | None) -> None:
    """CommandError unless each of the files can be written, and none is named twice. To be asked before a long run."""
    seen: dict[Path, Path] = {}
    for path in filter(None, paths):
        target = _resolved(path)
        if target in seen:
            raise CommandError(f"{seen[target]} and {path} are one file: of two results one would be lost")
        seen[target] = path
        if target.exists() and not target.is_file():
            raise CommandError(f"can't write {path}: it is no ordinary file")
        if not target.parent.is_dir():
            raise CommandError(f"can't write {path}: there is no folder {target.parent}")
        if not os.access(target.parent, os.W_OK | os.X_OK) or (target.exists() and not os.access(target, os.W_OK)):
            raise CommandError(f"can't write {path}: no permission")


def write_file(path: Path | None, write: Callable[[Path], object]) -> None:
    """``write`` a file; CommandError where it can't be written. None is a file that nobody asked for."""
    try:
        if path:
            write(path)
    except OSError as error:
        raise CommandError(f"can't write {path}: {error.strerror or error}") from None


def _resolved(path: Path) -> Path:
    """The file that a link leads to, which is written in its place."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a link to itself
        raise CommandError(f"can't write {path}: {error}") from None
