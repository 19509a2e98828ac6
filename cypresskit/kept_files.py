"""Kept files: what was compiled or timed before, in the user's own cache folder.

All of it can be made again, so that nothing here raises. A file that was cut short, altered or
given another's name is as good as none: it is ``sealed`` by a digest of its name and contents. A
folder that belongs to anybody else, or to which others may write, is not used. Of each kind, the
files that nobody has used for longest go.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SEAL = hashlib.sha256().digest_size


def home_cache() -> str:
    """The folder of the user's caches."""
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


def cache_folder() -> Path | None:
    """The folder of the user's cache for this package; None where the user has none: nobody of that
    name is known, and no variable says where they are at home.
    """
    folder = os.environ.get("NUMBA_CACHE_DIR") or home_cache()
    return None if folder.startswith("~") else Path(folder, "cypresskit")


class SourceFiles:
    """The ``files`` that results follow from, as they were when this was made. What is edited later
    must not pass for what made a result: unless they are ``unchanged``, nothing may be kept.
    """

    def __init__(self, files: Callable[[], Iterable[Path]]):
        self.files = files
        self._hash = self._read()

    def key(self, *parts: object) -> str:
        """A hash of the files and of all else that a result depends on."""
        digest = self._hash.copy()
        digest.update(repr(parts).encode())
        return digest.hexdigest()[:32]

    def unchanged(self) -> bool:
        """Whether the files are what they were."""
        return self._read().digest() == self._hash.digest()

    def _read(self) -> "hashlib._Hash":
        return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(self.files())))


def sealed(name: str, contents: bytes) -> bytes:
    """The contents of a file of that name, behind a digest of both."""
    return hashlib.sha256(name.encode() + b"\0" + contents).digest() + contents


def unsealed(name: str, data: bytes) -> bytes:
    """The contents that were ``sealed`` under that name. Raises ``ValueError`` for any other
    data.
    """
    contents = data[SEAL:]
    if sealed(name, contents) != data:
        raise ValueError(f"{name} is damaged")
    return contents


@dataclass(frozen=True)
class KeptFiles:
    """Files of a ``kind`` in a folder, at most so many; none where the folder is None."""

    folder: Path | None
    kind: str
    most: int

    def read(self, key: str) -> bytes | None:
        """What was kept under a key; None unless it is there, whole and the user's own."""
        if self.folder is None:
            return None
        file = self._file(key)
        try:
            if not _is_ours(self.folder):
                return None
            contents = unsealed(file.name, file.read_bytes())
        except (OSError, ValueError):
            return None
        with suppress(OSError):
            os.utime(file)
        return contents

    def write(self, key: str, contents: bytes) -> None:
        """Keep contents under a key; a reader finds all of them or none."""
        if self.folder is None:
            return
        file = self._file(key)
        with suppress(OSError):
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            if not _is_ours(self.folder):
                return
            self._make_room()
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as part:
                try:
                    part.write(sealed(file.name, contents))
                    part.close()
                    os.replace(part.name, file)
                except OSError:
                    os.unlink(part.name)

    def _file(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.kind}-{key}.bin"

    def _make_room(self) -> None:
        """Remove the files that nobody has used for longest, until there is room for one more."""
        assert self.folder is not None
        files = self.folder.glob(f"{self.kind}-*.bin")
        by_use = sorted(files, key=lambda file: file.stat().st_mtime)
        for oldest in by_use[: max(0, len(by_use) - self.most + 1)]:
            oldest.unlink(missing_ok=True)


def _is_ours(folder: Path) -> bool:
    """Whether a folder is the user's own and writable by no one else."""
    status = folder.lstat()
    nobody_else = not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o022
    )
    return stat.S_ISDIR(status.st_mode) and nobody_else
