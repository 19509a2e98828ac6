"""A kernel's file, which other editors may change at any time.

A text that can't be written is kept in its history meanwhile (``edit_history``).
"""

import errno
import os
import stat
import time
from pathlib import Path
from typing import BinaryIO, NamedTuple

from cypresskit.files.atomic import file_stamp, replace_file, save_file
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels.own import read_text

SETTLES = 0.3  # seconds that another editor may take to write a file after emptying it
WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Overwritten(NamedTuple):
    """A text of another editor that was overwritten, and when it was written, in seconds since
    1970.
    """

    text: str
    written: float


class KernelFile:
    """The file at ``path``, and the text that it held when it was last read or written (``text``).

    ``problem`` says why the last text couldn't be written, or is "".

    Raises ``OSError`` if it can't be read, ``ValueError`` if it is too long or isn't text.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.stamp = file_stamp(self.path)
        self.text = read_text(self.path)
        self.problem = ""

    def news(self) -> str | None:
        """Return the text that another editor has written since the last look, or None; also None
        while the file is missing or undecodable.
        """
        stamp = file_stamp(self.path)
        if stamp is None or stamp == self.stamp:
            return None
        try:
            text = read_text(self.path)
        except (OSError, ValueError):
            return None
        self.stamp = stamp
        if text == self.text:
            return None
        self.text = text
        return text

    def written(self) -> float:
        """Return when the file was last written, in seconds since 1970; 0 if it is missing."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return 0.0

    def write(self, text: str) -> Overwritten | None:
        """Replace the file's text in one operation. Returns the text of another editor that this
        overwrites, or None. Raises ``OSError`` if the file can't be written, or couldn't be read
        again.
        """
        if len(text.encode()) > MAX_TEXT:
            raise OSError(errno.EFBIG, f"a program has at most {MAX_TEXT:,} bytes", str(self.path))
        others = self.news()
        if others == text:
            return None
        overwritten = None if others is None else Overwritten(others, self.written())
        if text == self.text and others is None and self.path.is_file():
            return None
        self._check_writable()
        replaced = replace_file(self.path, text)
        if replaced is not None:
            with replaced:
                late = _settled(replaced, self.text)
                if late.strip():
                    overwritten = Overwritten(late, os.fstat(replaced.fileno()).st_mtime)
        self.text = text
        self.stamp = file_stamp(self.path)
        return overwritten

    def _check_writable(self) -> None:
        """Raise ``OSError`` for a read-only file, which could still be replaced; for anything that
        is not a plain file; and for a file that holds no text, which would be lost.
        """
        try:
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            return
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "there is a folder of this name", str(self.path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device", str(self.path))
        if not mode & WRITABLE:
            raise PermissionError(errno.EACCES, "it is read-only", str(self.path))
        if file_stamp(self.path) != self.stamp:  # changed, but not to a text
            try:
                read_text(self.path)
            except ValueError:
                why = "what it holds now is no text, or too long, and would be lost. Move it away"
                raise OSError(errno.EEXIST, why, str(self.path)) from None

    def save(self, text: str) -> Overwritten | None:
        """Write as ``write`` does; but if that fails, set ``problem`` instead of raising. The file
        then still holds the other editor's text.
        """
        try:
            overwritten = self.write(text)
        except OSError as error:
            self.problem = (
                f"{self.path} can't be written: {error.strerror or error}. Your text is kept on"
                " this page and in the history, and is written as soon as that is possible."
            )
            return None
        self.problem = ""
        return overwritten


def _settled(replaced: BinaryIO, known: str) -> str:
    """Return what a replaced file holds once writing to it has ended; "" if that is ``known``. An
    empty file may still be written.
    """
    end = time.monotonic() + SETTLES
    before = None
    while True:
        replaced.seek(0)
        data = replaced.read(MAX_TEXT)
        if data and data == known.encode():
            return ""
        if time.monotonic() > end or (data and data == before):
            return data.decode(errors="replace")
        before = data
        time.sleep(SETTLES / 10)


def begin_file(path: str | Path, text: str) -> bool:
    """Make a file with a text, if there is none. Returns whether it was made."""
    path = Path(path)
    if path.exists():
        return False
    save_file(path, text)
    return True


def whole_letters(text: str) -> str:
    """Return a text with lone surrogates, which a page may send, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
