"""Files that are written whole or not at all.

Each is written beside its target first, so that a full disk or Ctrl-C leaves an older file as it
was.
"""

import os
import stat
from pathlib import Path
from uuid import uuid4


def save_file(path: str | Path, data: str | bytes) -> None:
    """Write a file, text as UTF-8. Symbolic links are followed, not replaced. Raises ``OSError``,
    which names the file that can't be written.
    """
    path, content = Path(path), data.encode() if isinstance(data, str) else data
    target = Path(os.path.realpath(path))
    beside = target.with_name(
        f".{uuid4().hex}"
    )  # nobody else's: others may be writing the same file
    try:
        if path.exists() and not path.is_file():  # a pipe: what has gone through it is gone
            path.write_bytes(content)
            return
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        beside.replace(target)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)
