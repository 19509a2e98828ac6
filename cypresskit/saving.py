"""Files that are written whole or not at all.

Each is written beside its target first, so that a full disk or Ctrl-C leaves an older file as it was.
"""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4


def save_file(path: str | Path, data: str | bytes) -> None:
    """Write one file, text as UTF-8; errors as for ``save_files``."""
    content = data.encode() if isinstance(data, str) else data
    save_files({Path(path): lambda beside: beside.write_bytes(content)})


def save_files(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write all of the files or, where one can't be written, none of them. A writer is given the path to write to. A
    link stays, and what it leads to is written. Raises ``OSError``, which names the file that can't be written."""
    beside: dict[Path, Path] = {}
    path = Path()
    try:
        for path, write in writers.items():
            if path.exists() and not path.is_file():  # a pipe: what has gone through it is gone
                write(path)
                continue
            target = Path(os.path.realpath(path))
            beside[target] = target.with_name(f".{uuid4().hex}")  # nobody else's: others may be writing the same file
            write(beside[target])
            with beside[target].open("r+b") as file:
                os.fsync(file.fileno())
            if target.exists():
                beside[target].chmod(stat.S_IMODE(target.stat().st_mode))
        for target, written in beside.items():
            path = target
            written.replace(target)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        for written in beside.values():
            written.unlink(missing_ok=True)
