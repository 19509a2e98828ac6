"""Cache compiled code and simulated times in the user's cache folder.

Everything in the cache can be computed again, so a file that can't be read or written is ignored.
Each file begins with a checksum of its name and contents: a truncated, edited or renamed one counts
as missing. A folder that another user owns or may write to is not used. Of each kind of file, the
least recently used ones are deleted.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from cypresskit.files.atomic import save_file

CHECKSUM_BYTES = hashlib.sha256().digest_size


def home_cache() -> str:
    """Return the folder of the user's caches."""
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


def cache_folder() -> Path | None:
    """Return this package's folder in the user's cache, or None if the user has no home folder."""
    folder = os.environ.get("NUMBA_CACHE_DIR") or home_cache()
    return None if folder.startswith("~") else Path(folder, "cypresskit")


class SourceFiles:
    """The source files from which cached results were computed.

    A result computed by an old version must not be cached under the key of a new one. So they are
    read before they are imported, and a ``DiskCache`` writes nothing once they were edited.

    Parameters
    ----------
    files
        Lists the files. They are read at once, and again by ``is_unchanged``.
    """

    def __init__(self, files: Callable[[], Iterable[Path]]):
        self.files = files
        self._hash = self._read()

    def key(self, *parts: object) -> str:
        """Return a hash of the files and of everything else that a result depends on."""
        digest = self._hash.copy()
        digest.update(repr(parts).encode())
        return digest.hexdigest()[:32]

    def is_unchanged(self) -> bool:
        """Return whether the files have the same contents as at the beginning."""
        return self._read().digest() == self._hash.digest()

    def _read(self) -> "hashlib._Hash":
        return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(self.files())))


def is_off() -> bool:
    """Return whether what was made of a reader's kernel isn't cached: in tests and judges, where an
    earlier answer may have forged it.
    """
    return os.environ.get("CYPRESSKIT_KEEP") == "0"


def add_checksum(name: str, contents: bytes) -> bytes:
    """Return the contents of a file after a checksum of its name and contents."""
    return hashlib.sha256(name.encode() + b"\0" + contents).digest() + contents


def read_archived(archive: Path, name: str) -> bytes | None:
    """Return the contents that a cache saved under this name, from an archive of its files that
    came with the package; None if they are missing or damaged.
    """
    try:
        with ZipFile(archive) as files:
            return strip_checksum(name, files.read(name))
    except (OSError, KeyError, ValueError, BadZipFile):
        return None


def strip_checksum(name: str, data: bytes) -> bytes:
    """Return the contents that ``add_checksum`` was given.

    Raises
    ------
    ValueError
        If the checksum doesn't match.
    """
    contents = data[CHECKSUM_BYTES:]
    if add_checksum(name, contents) != data:
        raise ValueError(f"{name} is damaged")
    return contents


@dataclass(frozen=True)
class DiskCache:
    """The cached files of one kind.

    Attributes
    ----------
    folder
        Where they are. If None, nothing is cached.
    kind
        The first part of their names.
    most
        Their maximum number.
    sources
        What their contents are computed by. Once these files were edited, nothing is written.
    """

    folder: Path | None
    kind: str
    most: int
    sources: SourceFiles

    def read(self, key: str) -> bytes | None:
        """Return the contents cached under a key; None if they are missing or damaged."""
        if self.folder is None:
            return None
        file = self.folder / self.name(key)
        try:
            if not _is_private(self.folder):
                return None
            contents = strip_checksum(file.name, file.read_bytes())
        except (OSError, ValueError):
            return None
        with suppress(OSError):
            os.utime(file)
        return contents

    def write(self, key: str, contents: bytes) -> None:
        """Cache contents under a key, atomically."""
        if self.folder is None or not self.sources.is_unchanged():
            return
        file = self.folder / self.name(key)
        with suppress(OSError):
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            if not _is_private(self.folder):
                return
            self._delete_oldest()
            save_file(file, add_checksum(file.name, contents))

    def name(self, key: str) -> str:
        """Return the name of the file with the contents that are cached under a key."""
        return f"{self.kind}-{key}.bin"

    def _delete_oldest(self) -> None:
        """Delete the least recently used files, so that one more is within the maximum."""
        assert self.folder is not None
        files = self.folder.glob(f"{self.kind}-*.bin")
        by_use = sorted(files, key=lambda file: file.stat().st_mtime)
        for oldest in by_use[: max(0, len(by_use) - self.most + 1)]:
            oldest.unlink(missing_ok=True)


def _is_private(folder: Path) -> bool:
    """Return whether only the user may write to a folder."""
    status = folder.lstat()
    only_ours = not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o022
    )
    return stat.S_ISDIR(status.st_mode) and only_ours
