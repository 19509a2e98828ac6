"""Read zip archives that students submit, in memory.

Nothing is unpacked to disk, so a path in an archive can't write anywhere. The caller limits an
archive's own size. Refused, each with a reason: more than ``MAX_FILES`` files, links, passwords,
unusual compression methods, archives in archives, and more than ``MAX_UNPACKED_BYTES``.
"""

import stat
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from cypresskit.files.received import MAX_FILES, is_hidden
from cypresskit.tables import one_line

ENDING = ".zip"
SIGNATURE = b"PK\3\4"
ENTRY = b"PK\1\2"  # begins each file's entry in the central directory
MAX_UNPACKED_BYTES = 400_000_000  # bytes of all files after unpacking
OTHERS = ".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz"  # endings of other archives


class Member(NamedTuple):
    """A file in an archive."""

    archive: Path
    place: int  #: its index in the archive's central directory
    name: str  #: the archive's name, then its path there


def list_members(data: bytes, archive: Path) -> list[tuple[Member, str]]:
    """List the files in an archive, without hidden ones.

    Parameters
    ----------
    data
        The archive's contents.
    archive
        Its path. Its last part begins the members' names.

    Returns
    -------
    list of (member, reason)
        The reason says why the member can't be read; "" if it can.

    Raises
    ------
    ValueError
        If this is no archive, or has too many files.
    """
    found = []
    left = MAX_UNPACKED_BYTES
    for place, info in enumerate(_list(data)):
        name = info.filename.replace("\\", "/")
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        if info.is_dir() or any(map(is_hidden, parts)):
            continue
        why = _fault(info)
        if not why:
            left -= info.file_size
            if left < 0:
                why = f"the archive unpacks to more than {MAX_UNPACKED_BYTES:,} bytes"
        shown = one_line("/".join([archive.name, *parts]))
        found.append((Member(archive, place, shown), why))
    return found


def read_member(data: bytes, member: Member, most: int) -> bytes:
    """Return the contents of a file in an archive.

    Raises
    ------
    ValueError
        If it has more than ``most`` bytes, or is damaged.
    """
    info = _list(data)[member.place]
    if info.file_size > most:
        raise ValueError(f"it has more than {most:,} bytes")
    try:
        with ZipFile(BytesIO(data)) as opened, opened.open(info) as file:
            return file.read(most)
    except Exception as error:  # for damaged data, zipfile raises a dozen types
        raise ValueError(f"it is damaged: {one_line(str(error))}") from None


def _list(data: bytes) -> list[ZipInfo]:
    """Return the entries of an archive."""
    if not data:
        raise ValueError("it is empty")
    if data.count(ENTRY) > MAX_FILES:  # counted first: listing millions would fill the memory
        raise ValueError(f"it has more than {MAX_FILES:,} files")
    try:
        with ZipFile(BytesIO(data)) as opened:
            return opened.infolist()
    except BadZipFile as error:
        raise ValueError(f"it can't be opened as an archive: {error}") from None
    except Exception as error:  # names, sizes and offsets may be anything
        raise ValueError(f"it is damaged: {one_line(str(error))}") from None


def _fault(info: ZipInfo) -> str:
    """Return why an entry can't be read, or ""."""
    if stat.S_ISLNK(info.external_attr >> 16):
        return "it is a link"
    if info.flag_bits & 1:
        return "it has a password"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "its compression method isn't supported"
    if info.filename.lower().endswith((ENDING, *OTHERS)):
        return "it is an archive in an archive: unpack it"
    return ""
