"""Read files and folders that students have submitted, with any content.

Links are not followed. Only plain files are read, and at most as many bytes as the caller allows.
Each function reports why it doesn't read a file.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from cypresskit.tables import one_line

MACOS_FOLDER = "__MACOSX"
MAX_DEPTH = 8  # nested folders that are read
MAX_FILES = 2_000  # files of a folder that are read


def find_files(folder: Path, depth: int = 0) -> Iterator[tuple[Path, str]]:
    """Yield the files in a folder and its subfolders, sorted by name.

    Each comes with the reason why it can't be read, or "". Hidden files, and those that macOS adds
    to archives (``__MACOSX``), are left out.
    """
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield folder, f"it can't be read: {error.strerror}"
        return
    for entry in inside[:MAX_FILES]:
        path = Path(entry.path)
        if is_hidden(entry.name):
            continue
        if not entry.is_dir(follow_symlinks=False):
            yield path, explain_unreadable(entry)
        elif depth < MAX_DEPTH:
            yield from find_files(path, depth + 1)
        else:
            yield path, f"it is nested in more than {MAX_DEPTH} folders"
    if len(inside) > MAX_FILES:
        yield folder, f"only the first {MAX_FILES:,} of its {len(inside):,} files are read"


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is left out."""
    return name.startswith(".") or name == MACOS_FOLDER


def explain_unreadable(entry: os.DirEntry) -> str:
    """Return why an entry that is no folder can't be read, or "" for a plain file."""
    if entry.is_symlink():
        return "it is a link"
    return "" if entry.is_file(follow_symlinks=False) else "it is a pipe or a device"


def printable_name(path: Path) -> str:
    """Return a file's name on one line, with bytes that aren't UTF-8 escaped."""
    return one_line(os.fsencode(path.name).decode("utf-8", "backslashreplace"))


def read_plain(path: Path, most: int) -> bytes:
    """Return the bytes of a plain file.

    Raises
    ------
    ValueError
        For a link, a pipe, a device, a folder, a file of more than ``most`` bytes, or one that
        can't be read: then the cause is an ``OSError``.
    """
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        if path.is_symlink():
            raise ValueError("it is a link")
        number = os.open(path, flags)
    except OSError as error:
        raise ValueError(f"it can't be read: {error.strerror}") from error
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ValueError("it is no plain file")
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise ValueError(f"it can't be read: {error.strerror}") from error
    if len(data) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return data
