"""Write files atomically: whole or not at all.

A file is written beside its target first and then takes its place, so a full disk or Ctrl-C leaves
an older one as it was.
"""

import os
import stat
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
