"""A kernel's file with its history, and the rule by which no text is lost.

A text leaves the file only into the history: ``KernelFile`` keeps it there before another takes its
place, whether that comes from a page, a notebook, the history or another program. There is one
exception: of a text that its reader types, stage by stage, only stages that were judged stay, and
not all of them (``Edits.add``).
While the history can't be written, the file isn't, either.
"""

import errno
from pathlib import Path

from cypresskit.editing.edit_history import Edits, history_path
from cypresskit.files.atomic import file_stamp, save_file
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels.own import read_text

WRITE_BITS = 0o222  # bits of a file's mode
#: Notes on texts, where they come from or what became of them.
OPENED_NOTE = "when it was opened"
THEIRS_NOTE = "written by another program"
REPLACED_NOTE = "replaced by another text"


class KernelFile:
    """The file at ``path``; the text of a missing one is empty. Raises ``OSError`` if it can't be
    read, ``ValueError`` if it is too long or isn't text.

    Attributes
    ----------
    edits
        Its history.
    text
        The newest text: that of the file, unless there is a problem.
    note
        Where it comes from, unless it was typed or is in the history.
    problem
        Why the text couldn't be written, or "".
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.stamp: object = None  # of the file when it was last read or written
        self.edits = Edits(history_path(self.path))
        self.problem = ""
        self.text = self._read() if self.path.exists() else ""
        self.note = "" if self.edits.find_text(self.text) else OPENED_NOTE

    def replace(self, text: str, note: str = "", is_typed_on: bool = False) -> None:
        """Replace the text: by one that its reader has typed, or one that the history gets at once
        with a ``note``. ``is_typed_on``: it was made from the text that it replaces.
        """
        if text != self.text:
            self._take(text, "", is_typed_on)
        if note:
            self.edits.keep(text, note, can_repeat=True)
        self.save()

    def look(self) -> bool:
        """Take what another program has written, or write a text that couldn't be written before.
        Returns whether the text has changed.
        """
        self.edits.read_changes()
        try:
            text = self._read_change()
        except OSError:  # it is missing for the moment, or holds no text
            text = None
        if text is None and self.problem:
            self.save()
        if text in (None, self.text):
            return False
        self._take(text, THEIRS_NOTE)
        return True

    def _take(self, text: str, note: str, is_typed_on: bool = False) -> None:
        """Make a text the newest. The one before is kept, unless its reader types on."""
        if self.note or not is_typed_on:
            self.edits.keep(self.text, self.note or REPLACED_NOTE)
        self.text, self.note = text, note

    def save(self) -> None:
        """Write the text in one operation. If that can't be done, ``problem`` says why."""
        self.problem = ""
        try:
            if len(self.text.encode()) > MAX_TEXT:
                raise OSError(errno.EFBIG, f"a program has at most {MAX_TEXT:,} bytes")
            if self.path.exists() and not is_writable(self.path):
                raise OSError(errno.EACCES, "it is read-only, or no plain file")
            self.stamp = save_file(self.path, self.text, self._keep_theirs)
        except OSError as error:
            reason = f"{self.path} can't be written: {error.strerror or error}."
            self.problem = (
                f"{self.edits.problem or reason} Your text is kept on this page, and is written as"
                " soon as that is possible."
            )

    def _keep_theirs(self) -> None:
        """Keep what another program has just written. Raises ``OSError`` unless the history has all
        that the file loses.
        """
        self.edits.keep(self._read_change() or "", THEIRS_NOTE)
        if self.edits.problem:
            raise OSError(self.edits.problem)

    def _read(self) -> str:
        stamp = file_stamp(self.path)
        text = read_text(self.path)
        self.stamp = stamp
        return text

    def _read_change(self) -> str | None:
        """Return the text that another program has written since the last look, or None. Raises
        ``OSError`` if it can't be read, or is no text.
        """
        if file_stamp(self.path) in (None, self.stamp):
            return None
        try:
            return self._read()
        except ValueError as error:
            lost = f"{error}. It would be lost: move it away"
            raise OSError(errno.EEXIST, f"another program wrote to it. {lost}") from None


def is_writable(path: Path) -> bool:
    """Return whether this is a plain file that its owner may replace."""
    return path.is_file() and bool(path.stat().st_mode & WRITE_BITS)


def replace_surrogates(text: str) -> str:
    """Return a text with lone surrogates, which a page may send, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
