"""Zip archives that students hand in, read in memory.

Nothing is unpacked to a disk, so no name in an archive leads anywhere. An archive is read from its
bytes, which the caller has limited. More than ``MOST`` files, links, passwords, methods whose
output can't be limited, archives in archives, and more than ``LARGEST`` bytes after unpacking are
refused, each with a reason; what a head states and the data disagree on is damage.
"""

import stat
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from cypresskit.files.received import MOST, hidden
from cypresskit.tables import one_line

ENDING = ".zip"
SIGNATURE = b"PK\3\4"
ENTRY = b"PK\1\2"  # each file's head in the archive's list begins so
LARGEST = 60_000_000  # bytes of all files after unpacking
#: Endings of archives of other kinds.
OTHERS = ".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz"


class Member(NamedTuple):
    """A file in an archive: the archive's path, the file's place in its list, and its name, after
    the archive's.
    """

    archive: Path
    place: int
    name: str


def members(data: bytes, archive: Path) -> list[tuple[Member, str]]:
    """List the files in an archive with these bytes, each with what keeps it from being read, or
    "". Hidden ones are left out. Raises ``ValueError`` for what is no archive, or too large.
    """
    found = []
    left = LARGEST
    for place, info in enumerate(_list(data)):
        name = info.filename.replace("\\", "/")
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        if info.is_dir() or any(map(hidden, parts)):
            continue
        why = _fault(info)
        if not why:
            left -= info.file_size
            if left < 0:
                why = f"the archive unpacks to more than {LARGEST:,} bytes"
        shown = one_line("/".join([archive.name, *parts]))
        found.append((Member(archive, place, shown), why))
    return found


def read_member(data: bytes, member: Member, most: int) -> bytes:
    """Unpack a file of an archive with these bytes. Raises ``ValueError`` for more than ``most``
    bytes, and for damage.
    """
    info = _list(data)[member.place]
    if info.file_size > most:
        raise ValueError(f"it has more than {most:,} bytes")
    try:
        with ZipFile(BytesIO(data)) as opened, opened.open(info) as file:
            return file.read(most)
    except Exception as error:  # the data is a stranger's, and zipfile raises a dozen kinds
        raise ValueError(f"it is damaged: {one_line(str(error))}") from None


def _list(data: bytes) -> list[ZipInfo]:
    """The entries of an archive."""
    if not data:
        raise ValueError("it is empty")
    if data.count(ENTRY) > MOST:  # counted first: listing millions would fill the memory
        raise ValueError(f"it has more than {MOST:,} files")
    try:
        with ZipFile(BytesIO(data)) as opened:
            return opened.infolist()
    except BadZipFile as error:
        raise ValueError(f"it can't be opened as an archive: {error}") from None
    except Exception as error:  # names, sizes and places may be anything
        raise ValueError(f"it is damaged: {one_line(str(error))}") from None


def _fault(info: ZipInfo) -> str:
    """What keeps an entry from being read, or ""."""
    if stat.S_ISLNK(info.external_attr >> 16):
        return "it is a link"
    if info.flag_bits & 1:
        return "it has a password"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "it is compressed in a way that isn't read here"
    if info.filename.lower().endswith((ENDING, *OTHERS)):
        return "it is an archive in an archive: unpack it"
    return ""
