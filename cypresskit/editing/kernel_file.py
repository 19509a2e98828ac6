"""A kernel's file with its history. Other editors may change the file at any time."""

import errno
from pathlib import Path

from cypresskit.editing.edit_history import Edits, history_path
from cypresskit.files.atomic import file_stamp, save_file
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels.own import read_text

WRITE_BITS = 0o222  # bits of a file's mode


class KernelFile:
    """The file at ``path``, and its history (``edits``).

    ``problem`` says why the last text couldn't be written, or is "".
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.stamp: object = None  # of the file when it was last read or written
        self.edits = Edits(history_path(self.path))
        self.problem = ""

    def read(self) -> str:
        """Return the text. Raises ``OSError`` if it can't be read, ``ValueError`` if it is too long
        or isn't text.
        """
        stamp = file_stamp(self.path)
        text = read_text(self.path)
        self.stamp = stamp
        return text

    def read_change(self) -> str | None:
        """Return the text that another editor has written since the last look, or None; also None
        while the file is missing or can't be read.
        """
        try:
            return self._read_change()
        except OSError:
            return None

    def _read_change(self) -> str | None:
        """Return ``read_change``. Raises ``OSError`` if it can't be read, or is no text."""
        if file_stamp(self.path) in (None, self.stamp):
            return None
        try:
            return self.read()
        except ValueError as error:
            lost = f"{error}. It would be lost: move it away"
            raise OSError(errno.EEXIST, f"another program wrote to it. {lost}") from None

    def save(self, text: str) -> list[str]:
        """Replace the file's text in one operation. If that can't be done, ``problem`` says why.
        Returns what another editor has written meanwhile: a text, or none.
        """
        self.problem = ""
        theirs: list[str | None] = []
        try:
            if len(text.encode()) > MAX_TEXT:
                raise OSError(errno.EFBIG, f"a program has at most {MAX_TEXT:,} bytes")
            if self.path.exists() and not is_writable(self.path):
                raise OSError(errno.EACCES, "it is read-only, or no plain file")
            self.stamp = save_file(self.path, text, lambda: theirs.append(self._read_change()))
        except OSError as error:
            self.problem = (
                f"{self.path} can't be written: {error.strerror or error}. Your text is kept on"
                " this page, and is written as soon as that is possible."
            )
        return [*filter(None, theirs)]


def is_writable(path: Path) -> bool:
    """Return whether this is a plain file that its owner may replace."""
    return path.is_file() and bool(path.stat().st_mode & WRITE_BITS)


def replace_surrogates(text: str) -> str:
    """Return a text with lone surrogates, which a page may send, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
