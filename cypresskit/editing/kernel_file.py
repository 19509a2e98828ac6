"""A kernel's text as a file: written whole, and watched, since any other editor may change it.

A text that can't be written is kept in its history meanwhile (``edits``).
"""

import errno
import stat
import time
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

from cypresskit.files.atomic import file_stamp, replace_file, save_file
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels.own import read_text

SETTLES = 0.3  # seconds that another editor may take to write a file that it has emptied
WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class KernelFile:
    """The file at ``path``, and what it was last seen to hold (``text``).

    ``problem`` says why the text that was last saved isn't in it, or is "".

    Raises ``OSError`` if it can't be read, ``ValueError`` if it is too long or isn't text.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.stamp = file_stamp(self.path)
        self.text = read_text(self.path)
        self.problem = ""

    def news(self) -> str | None:
        """The text that somebody else has put into the file since it was last seen, or None: so it
        is while the file is missing, partial or undecodable, too.
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
        """When the file was written last, in seconds since 1970; 0 for none."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return 0.0

    def write(self, text: str) -> str | None:
        """Put a text into the file, at once and whole. Returns what somebody else had put there in
        the meantime, or was just putting there, which is lost with it, or None. Raises ``OSError``
        if it can't be written.
        """
        others = self.news()
        if others == text:
            return None
        if text != self.text or others is not None or not self.path.is_file():
            self._check_writable()
            with replace_file(self.path, text) or nullcontext() as replaced:
                late = "" if replaced is None else _settled(replaced, self.text)
            self.text = text
            self.stamp = file_stamp(self.path)
            return late if late.strip() else others
        return others

    def _check_writable(self) -> None:
        """Raise ``OSError`` for what is no plain file, for one that its owner protects, which could
        be replaced all the same, and for one that holds what is no text and would be lost.
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
        if file_stamp(self.path) != self.stamp:  # and it was no news
            try:
                read_text(self.path)
            except ValueError:
                why = "what it holds now is no text, or too long, and would be lost. Move it away"
                raise OSError(errno.EEXIST, why, str(self.path)) from None

    def save(self, text: str) -> str | None:
        """As ``write``, but for a text that can't be written, ``problem`` says why. What somebody
        else had put into the file is then not lost: it is there.
        """
        try:
            others = self.write(text)
        except OSError as error:
            self.problem = (
                f"{self.path} can't be written: {error.strerror or error}. Your text is kept on"
                " this page and in the history, and writing it is tried again and again."
            )
            return None
        self.problem = ""
        return others


def _settled(replaced: BinaryIO, known: str) -> str:
    """What a file that was replaced holds, once nobody writes to it any more; "" if that is the
    text that is ``known``. An empty one is being written, or was empty.
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
    """Make a file with a text, if there is none yet. Returns whether it was made."""
    path = Path(path)
    if path.exists():
        return False
    save_file(path, text)
    return True


def whole_letters(text: str) -> str:
    """A text without halves of letters, as a page may send them, which no file can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
