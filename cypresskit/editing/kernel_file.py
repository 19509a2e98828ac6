"""A kernel's text as a file: written whole, and watched, since any other editor may change it."""

import os
from pathlib import Path

from cypresskit.kernels.own import read_text
from cypresskit.saving import save_file

Stamp = tuple[int, int, int]  # of a file: when it was changed, its length, and which file it is


class KernelFile:
    """The file at ``path``, and what it was last seen to hold (``text``).

    Raises ``OSError`` if it can't be read, ``ValueError`` if it is too long or isn't text.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.stamp = self._stamp()
        self.text = read_text(self.path)

    def _stamp(self) -> Stamp | None:
        try:
            seen = os.stat(self.path)
        except OSError:
            return None
        return seen.st_mtime_ns, seen.st_size, seen.st_ino

    def news(self) -> str | None:
        """The text that somebody else has put into the file since it was last seen, or None. A file
        that is gone, half written or no text is no news: it may come back.
        """
        stamp = self._stamp()
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

    def write(self, text: str) -> str | None:
        """Put a text into the file, at once and whole. Returns what somebody else had put there in
        the meantime, which is lost with it, or None. Raises ``OSError`` if it can't be written.
        """
        others = self.news()
        if others == text:
            return None
        if text != self.text or others is not None or not self.path.exists():
            save_file(self.path, text)
            self.text = text
            self.stamp = self._stamp()
        return others


def begin_file(path: str | Path, text: str) -> bool:
    """Make a file with a text, if there is none yet. Returns whether it was made."""
    path = Path(path)
    if path.exists():
        return False
    save_file(path, text)
    return True
