"""Write files atomically: completely or not at all.

A file is first written next to its target and then replaces it, so after a full disk or Ctrl-C the
old file is unchanged.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from cypresskit.tables import one_line

Stamp = tuple[int, int, int]


def save_file(
    path: str | Path, data: str | bytes, look: Callable[[], object] = lambda: None
) -> Stamp | None:
    """Write a file; text is encoded as UTF-8. Symbolic links are followed, not replaced.

    ``look`` is called just before the old file is replaced. Returns the stamp of what was written;
    None for a pipe or a device.

    Raises
    ------
    OSError
        If it can't be written. The error names the file.
    """
    path = Path(path)
    content = data.encode() if isinstance(data, str) else data
    target = Path(os.path.realpath(path))
    # A unique name, since another process may be writing the same file
    beside = target.with_name(f".{uuid4().hex}")
    try:
        if path.exists() and not path.is_file():  # a pipe or a device can't be replaced
            path.write_bytes(content)
            return None
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        stamp = file_stamp(beside)
        look()
        beside.replace(target)
        return stamp
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)


def try_to_save(path: Path, data: str | bytes) -> list[str]:
    """Write a file like ``save_file``. Return a list with an error message, or an empty list."""
    try:
        save_file(path, data)
    except OSError as error:
        return [f"can't write {one_line(str(path))}: {error.strerror or error}"]
    return []


def file_stamp(path: Path) -> Stamp | None:
    """Return a file's time of change, size and inode, which identify its contents; or None."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
