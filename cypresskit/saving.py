"""Files that are written whole or not at all; and others' files, read with care.

A file is written beside its target first, so that a full disk or Ctrl-C leaves an older one as it
was. Of what others have handed in, no link is followed, nothing but plain files is read, and no
more of them than counts.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from cypresskit.tables import one_line


def save_file(path: str | Path, data: str | bytes) -> None:
    """Write a file, text as UTF-8. Symbolic links are followed, not replaced. Raises ``OSError``,
    which names the file that can't be written.
    """
    if replaced := replace_file(path, data):
        replaced.close()


def try_to_save(path: Path, data: str | bytes) -> list[str]:
    """As ``save_file``; a list with the reason if that fails, an empty one if not."""
    try:
        save_file(path, data)
    except OSError as error:
        return [f"can't write {one_line(str(path))}: {error.strerror or error}"]
    return []


def replace_file(path: str | Path, data: str | bytes) -> BinaryIO | None:
    """As ``save_file``. Returns the file that this one takes the place of, open to be read, or
    None: whoever was writing into that one goes on there, and would not know.
    """
    path = Path(path)
    content = data.encode() if isinstance(data, str) else data
    target = Path(os.path.realpath(path))
    # A name that nobody else has: others may be writing the same file
    beside = target.with_name(f".{uuid4().hex}")
    replaced = None
    try:
        if path.exists() and not path.is_file():  # a pipe: what has gone through it is gone
            path.write_bytes(content)
            return None
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
            with suppress(OSError):
                replaced = target.open("rb")
        beside.replace(target)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)
    return replaced


Stamp = tuple[int, int, int]


def file_stamp(path: Path) -> Stamp | None:
    """When a file was changed, its length, and which file it is; None if there is none."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


LEFT_OUT = "__MACOSX"
DEEPEST, MOST = 8, 2_000  # folders in a folder, and files in one, that are looked at


def files_in(folder: Path, depth: int = 0) -> Iterator[tuple[Path, str]]:
    """All that is no folder in a folder and its folders, by names, each with what keeps it from
    being read: "" for a plain file. What is hidden, and what archives of a Mac bring along
    (``__MACOSX``), is left out.
    """
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield folder, f"it can't be read: {error.strerror}"
        return
    for entry in inside[:MOST]:
        path = Path(entry.path)
        if hidden(entry.name):
            continue
        if not entry.is_dir(follow_symlinks=False):
            yield path, kind_of(entry)
        elif depth < DEEPEST:
            yield from files_in(path, depth + 1)
        else:
            yield path, f"it lies in more than {DEEPEST} folders"
    if len(inside) > MOST:
        yield folder, f"of its {len(inside):,} files the first {MOST:,} are looked at"


def hidden(name: str) -> bool:
    """Whether a file's or folder's name is one that nobody hands in."""
    return name.startswith(".") or name == LEFT_OUT


def kind_of(entry: os.DirEntry) -> str:
    """What keeps an entry that is no folder from being read; "" for a plain file."""
    if entry.is_symlink():
        return "it is a link"
    return "" if entry.is_file(follow_symlinks=False) else "it is a pipe or a device"


def shown_name(path: Path) -> str:
    """A file's name on one line, with what isn't UTF-8 escaped."""
    return one_line(os.fsencode(path.name).decode("utf-8", "backslashreplace"))


def read_plain(path: Path, most: int) -> bytes:
    """What a plain file holds. Raises ``ValueError`` for a link, a pipe, a device, a folder, more
    than ``most`` bytes, and what can't be read.
    """
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        if path.is_symlink():
            raise ValueError("it is a link")
        number = os.open(path, flags)
    except OSError as error:
        raise ValueError(f"it can't be read: {error.strerror}") from None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ValueError("it is no plain file")
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise ValueError(f"it can't be read: {error.strerror}") from None
    if len(data) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return data
