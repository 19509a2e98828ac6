"""The history of a kernel: its edits, with what was found about each.

An edit is added once it is checked and timed. Of edits that are judged alike, only the last stays
if they follow one another too fast for the judgment to be read. ``kernel_file`` keeps other
texts here unchecked. All workbenches on a file share its history, also those of other processes: it
is read again before each change, and once more if another one has written it by the time it is
replaced.
"""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from cypresskit.files.atomic import file_stamp, save_file
from cypresskit.files.received import read_plain
from cypresskit.il.cursor import bare_line
from cypresskit.kernels.own import find_given_text
from cypresskit.tables import elided, quantity

MAX_HISTORY_BYTES = 64 << 20
BURST_SECONDS = 2.0  # between two edits: the judgment of the first can't be read
MAX_LINE_CHARACTERS = 48  # of a line that is quoted
#: Notes on which something depends: on the text of another reader, on one at which the reader was
#: stuck, and on one that was typed in another folder. Others are sentences, which nothing reads.
LINKED_NOTE, SHOWN_NOTE, BROUGHT_NOTE = "linked", "shown", "brought"
#: What is shown of them.
SENTENCES = {
    LINKED_NOTE: "came with a link",
    SHOWN_NOTE: "one more line was shown",
    BROUGHT_NOTE: "brought back from this notebook",
}


@dataclass(frozen=True)
class Edit:
    """A text, and what was found about it."""

    text: str
    number: int = 0  # from 1, and never used twice; 0 until it is in the history
    is_correct: bool | None = None  # whether C is correct; None: not checked
    gflops: float = 0.0  # 0: not timed
    n: int = 0  # m = n = k at which it was timed
    bound: str = ""  # what limits it
    note: str = ""  # where it comes from, unless it was typed: a key of SENTENCES, or a sentence
    time: float = 0.0  # seconds since 1970
    change: str = ""  # from the edit before, in words

    @property
    def judgment(self) -> tuple:
        """What was found about it: two edits of one judgment look alike."""
        return self.is_correct, self.gflops, self.n, self.bound

    def __str__(self) -> str:
        """Return what was found about it, and where it comes from."""
        found = f"{self.gflops:,.0f} Gflop/s at N = {self.n:,}, limited by {self.bound}"
        if not (self.is_correct and self.gflops):
            found = {None: "not checked", False: "C is incorrect", True: "not timed"}[
                self.is_correct
            ]
        origin = filter(None, (SENTENCES.get(self.note, self.note), self.change))
        return "; ".join(filter(None, (found, ", ".join(origin))))

    def shown(self) -> dict[str, Any]:
        """Return what a page shows; ``gflops`` is 0 unless C is correct."""
        return {
            "number": self.number,
            "gflops": self.gflops if self.is_correct else 0.0,
            "is_correct": self.is_correct,
            "summary": str(self),
        }


KINDS = get_type_hints(Edit).values()  # of its fields


class _ChangedError(Exception):
    """Another workbench has written the history since it was read."""


class Edits(Sequence[Edit]):
    """The edits of a kernel, the oldest first, in the file at ``path``.

    Attributes
    ----------
    problem
        Why not all edits are written, or "".
    on_change
        Called when the edits have changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self.on_change: Callable[[], None] = lambda: None
        self.rows: list[Edit] = []  # replaced, never changed: another thread may read them
        self._file_rows = self.rows  # those that the file has
        self._kept_edit: Edit | None = None  # the one that was kept last: it isn't replaced
        self._stamp: object = ...  # of the file when it was last read or written
        self.read_changes()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number):
        return self.rows[number]

    def find_text(self, text: str) -> Edit | None:
        """Return the last edit with this text, or None."""
        return next((edit for edit in reversed(self.rows) if edit.text == text), None)

    def find_fastest(self, n: int, least: float = 0.0, given: str = "") -> Edit | None:
        """Return the reader's fastest correct edit timed at m = n = k = ``n``, the last of equals;
        None if none reaches ``least`` Gflop/s. The text ``given``, the catalog's, and those of
        other readers don't count.
        """
        others = {given, *(edit.text for edit in self.rows if edit.note == LINKED_NOTE)}
        candidates = [
            edit
            for edit in reversed(self.rows)
            if edit.is_correct and edit.n == n and edit.gflops >= least
            if edit.text not in others and not find_given_text(edit.text)
        ]
        return max(candidates, key=lambda edit: edit.gflops, default=None)

    def add(self, edit: Edit) -> None:
        """Add an edit with the next number. It replaces the last edit if that has the same text and
        isn't known to be correct; or if it was typed, and judged alike too short a time ago to be
        read. Where a line was shown, nothing is replaced: each counts. If the file can't be
        written, the edit is written with the next one.
        """
        self.read_changes()
        edit = replace(edit, number=self._next_number, time=round(edit.time or time.time(), 1))
        rows = [*self.rows]
        if rows and self._gives_way(rows[-1], edit):
            last = rows.pop()
            if last.text == edit.text:
                edit = replace(edit, note=last.note or edit.note)
        before = rows[-1].text if rows else edit.text
        self.rows = [*rows, replace(edit, change=describe_change(before, edit.text))]
        self.save()
        self.on_change()

    def _gives_way(self, last: Edit, edit: Edit) -> bool:
        """Return whether an edit replaces the last one."""
        if last.text == edit.text:
            return not last.is_correct and SHOWN_NOTE not in (last.note, edit.note)
        is_unread = last.judgment == edit.judgment and edit.time - last.time < BURST_SECONDS
        return is_unread and not (last.note or edit.note) and last != self._kept_edit

    @property
    def _next_number(self) -> int:
        return self.rows[-1].number + 1 if self.rows else 1

    def add_judged(self, edit: Edit) -> None:
        """Add an edit that was checked, unless the last one has its text and its judgment."""
        self.read_changes()
        for last in self.rows[-1:]:
            if (last.text, last.judgment) == (edit.text, edit.judgment):
                return
        self.add(edit)

    def keep(self, text: str, note: str, can_repeat: bool = False) -> None:
        """Add a text with a note on its origin, unless it is empty, or is here: then only if it
        ``can_repeat``, with what is known about it. All that wasn't written before is written now,
        if that is possible.
        """
        self.read_changes()
        known = self.find_text(text)
        if can_repeat or (text.strip() and known is None):
            self.add(replace(known or Edit(text), note=note, time=0.0))
        self._kept_edit = self.find_text(text) or self._kept_edit
        self.save()

    # -- the file

    def save(self) -> None:
        """Write the edits that aren't written yet. If the file isn't the one that was read, it is
        read first.
        """
        if self._file_rows is self.rows:
            return
        rows = ",\n".join(json.dumps(asdict(edit)) for edit in self.rows)
        self.problem = ""
        try:
            self._stamp = save_file(self.path, f'{{"edits": [\n{rows}\n]}}\n', self._look)
            self._file_rows = self.rows
        except OSError as error:
            self.problem = f"The history can't be written: {error.strerror or error}."
        except _ChangedError:
            self.read_changes()

    def _look(self) -> None:
        if file_stamp(self.path) != self._stamp:
            raise _ChangedError

    def read_changes(self) -> None:
        """Read the file if another workbench has written it. Edits that weren't written follow.
        While the system can't read it, nothing is changed, and none is written.
        """
        if self._stamp == (stamp := file_stamp(self.path)):
            return
        try:
            rows = [] if stamp is None else _read(self.path)
        except OSError as error:
            self.problem = f"The history can't be read: {error.strerror}."
            return
        own = [edit for edit in self.rows if edit not in self._file_rows]
        self._stamp, self.problem = stamp, ""
        self.rows = self._file_rows = rows
        for edit in own:
            self.rows = [*self.rows, replace(edit, number=self._next_number)]
        self.save()
        self.on_change()

    def __repr__(self) -> str:
        lines = (f"  {edit.number:3}  {edit}" for edit in self.rows)
        return "\n".join([f"{len(self)} edits", *lines])


def describe_change(before: str, after: str) -> str:
    """Describe the change of a text by its first new line; "" for none. A line that was moved isn't
    new, nor is one whose comment was changed.
    """
    old, now = ([*map(bare_line, text.splitlines())] for text in (before, after))
    if [*filter(None, old)] == [*filter(None, now)]:
        return "" if before == after else "only comments or spaces were changed"
    unmatched = Counter(old)  # of each line
    new = []
    for number, line in enumerate(now, 1):
        unmatched[line] -= 1
        if line and unmatched[line] < 0:
            new.append((number, line))
    if not new:
        return "lines were moved or deleted"
    number, line = new[0]
    more = f", and {quantity(len(new) - 1, 'more line')}" if new[1:] else ""
    return f"line {number} is now {elided(line, MAX_LINE_CHARACTERS)}{more}"


def history_path(path: Path) -> Path:
    """Return the path of the history of a kernel's file: a hidden file beside it."""
    return path.with_name(f".{path.name}.history.json")


def _read(path: Path) -> list[Edit]:
    """Return the edits in a file. One that holds no edits gets a new name, and so isn't lost.
    Raises ``OSError`` if the system can't read or rename it.
    """
    try:
        content = json.loads(read_plain(Path(os.path.realpath(path)), MAX_HISTORY_BYTES).decode())
        edits = [Edit(**row) for row in content["edits"]]
        for edit in edits:
            is_typed = all(map(isinstance, astuple(edit), KINDS))
            if not (is_typed and math.isfinite(edit.gflops + edit.time)):
                raise ValueError("a field of another type, or a number that isn't finite")
        return edits
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        path.replace(path.with_name(f"{path.name}.unreadable-{time.time_ns()}"))
        return []
