"""A kernel's file with its history. Other editors may change the file at any time."""

import errno
from pathlib import Path

from cypresskit.editing.edit_history import Edits, history_path
from cypresskit.files.atomic import file_stamp, save_file
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels.own import read_text

WRITABLE = 0o222  # bits of a file's mode


class KernelFile:
    """The file at ``path``; the text that it held when it was last read or written (``text``); and
    its history (``edits``).

    ``problem`` says why the last text couldn't be written, or is "".

    Raises ``OSError`` if it can't be read, ``ValueError`` if it is too long or isn't text.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.stamp = file_stamp(self.path)
        self.text = read_text(self.path)
        self.edits = Edits(history_path(self.path))
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

    def save(self, text: str) -> str | None:
        """Replace the file's text in one operation. Returns the text of another editor that this
        overwrites, or None. If the file can't be written, ``problem`` says why; it then still holds
        the other editor's text.
        """
        self.problem = ""
        try:
            return self._write(text)
        except OSError as error:
            self.problem = (
                f"{self.path} can't be written: {error.strerror or error}. Your text is kept on"
                " this page and in the history, and is written as soon as that is possible."
            )
            return None

    def _write(self, text: str) -> str | None:
        if len(text.encode()) > MAX_TEXT:
            raise OSError(errno.EFBIG, f"a program has at most {MAX_TEXT:,} bytes")
        others = self.news()
        if text == self.text and (others is not None or self.path.is_file()):
            return None
        if self.path.exists() and (obstacle := self._obstacle()):
            raise OSError(errno.EACCES, obstacle)
        late: list[str | None] = []  # written while ours was brought to the disk
        stamp = save_file(self.path, text, lambda: late.append(self.news()))
        self.text, self.stamp = text, stamp
        return late[0] or others

    def _obstacle(self) -> str:
        """Why what is there must not be replaced, or ""."""
        if not self.path.is_file() or not self.path.stat().st_mode & WRITABLE:
            return "it is read-only, or no plain file"
        if file_stamp(self.path) != self.stamp:  # changed, but not to a text
            return "what it holds now is no text, or too long, and would be lost. Move it away"
        return ""


def whole_letters(text: str) -> str:
    """Return a text with lone surrogates, which a page may send, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
