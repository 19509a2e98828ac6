"""The standings of a class's contest: entries judged as they come, several at a time, and what has
been judged kept, so that it isn't judged again.

A right entry is kept under the hash of all that its row depends on: its text, its file's name, N,
and the package. So is when it came in, for the records. Wrong entries are judged anew the next
time, since some are wrong for want of time alone.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Queue

from cypresskit.isolated.process import Family
from cypresskit.marks.judging import version
from cypresskit.saving import read_plain, save_file
from cypresskit.tables import one_line
from cypresskit.teach import leaderboard
from cypresskit.teach.leaderboard import Row
from cypresskit.teach.leaderboard_page import Record


class Standings:
    """The entries of a contest.

    n, seconds : as in ``leaderboard.row``.
    jobs : entries judged at a time.
    store : the file that keeps what was judged, or None.
    """

    def __init__(self, n: int, seconds: float, *, jobs: int = 1, store: Path | None = None) -> None:
        self.n, self.seconds, self.store = n, seconds, store
        self.rows: dict[str, Row] = {}  # by key
        self.came: dict[str, float] = {}  # when right entries came, by key
        self.now: dict[str, bytes] = {}  # the texts of the entries that are there, by key
        self.families: Queue[Family] = Queue()
        self.jobs = jobs
        for _ in range(jobs):
            self.families.put(Family(modules=["cypresskit.teach.leaderboard"]))
        self._load()

    def judge(self, files: Sequence[Path], tell: Callable[[Path, Row], None]) -> bool:
        """Judge the entries in files, those that aren't known yet, and forget the files that are
        gone. ``tell`` is called for each new one, in their order. Returns whether anything changed.
        """
        read = [(file, *self._read(file)) for file in files]
        now = {key: data for _, key, data, _ in read}
        new = {key: (file, data, why) for file, key, data, why in read if key not in self.rows}
        changed = bool(new) or list(now) != list(self.now)
        self.now = now
        with ThreadPoolExecutor(self.jobs) as pool:
            waiting = {key: pool.submit(self._row, *entry) for key, entry in new.items()}
            for key, row in waiting.items():
                self.rows[key] = row.result()
                if self.rows[key].gflops:
                    self.came[key] = _when(new[key][0])
                tell(new[key][0], self.rows[key])
        if new:
            self._save()
        return changed

    @property
    def shown(self) -> list[Row]:
        """The rows of the entries that are there."""
        return [self.rows[key] for key in self.now if key in self.rows]

    @property
    def history(self) -> list[Record]:
        """Right entries in the order in which they came, later versions of a file among them."""
        keys = sorted(self.came, key=lambda key: self.came[key])
        rows = (self.rows[key] for key in keys if not self.rows[key].chip)
        return [Record(row.name, row.file, row.gflops) for row in rows]

    def winner(self) -> tuple[str, str] | None:
        """The text and the file of the fastest entry on the HD 5870."""
        known = [key for key in self.now if key in self.rows]
        rated = [key for key in known if self.rows[key].gflops and not self.rows[key].chip]
        if not rated:
            return None
        best = max(rated, key=lambda key: self.rows[key].gflops)
        return self.now[best].decode(), self.rows[best].file

    def end(self) -> None:
        """End the processes that judge."""
        while not self.families.empty():
            self.families.get().end()

    def _read(self, file: Path) -> tuple[str, bytes, str]:
        """The key of an entry's file, what it holds, and why that can't be judged."""
        name = shown_name(file)
        try:
            data = read_plain(file, 4 * leaderboard.LONGEST)
            data.decode()
            why = ""
        except UnicodeDecodeError:
            why = f"{name} isn't text. Is it an entry?"
        except ValueError as error:
            data = b""
            why = f"{name} can't be judged: {error}"
        whole = hashlib.sha256(data)
        whole.update(b"\0" + os.fsencode(file))
        whole.update("\0".join(["", str(self.n), why, version()]).encode())
        return whole.hexdigest(), data, why

    def _row(self, file: Path, data: bytes, why: str) -> Row:
        """The row of an entry's file, whatever it holds."""
        name = shown_name(file)
        if why:
            return Row(name, name, verdict=f"Not yet. {why}")
        family = self.families.get()
        try:
            text = data.decode()
            return leaderboard.row(text, name, self.n, seconds=self.seconds, family=family)
        finally:
            self.families.put(family)

    def _load(self) -> None:
        """Take over what was judged another time, if it can be read."""
        if self.store is None:
            return
        with suppress(OSError, ValueError, TypeError, KeyError):
            kept = json.loads(self.store.read_text(encoding="utf-8"))
            rows = {key: Row(**row) for key, row in kept["rows"].items()}
            came = {key: float(kept["came"][key]) for key in rows}
            self.rows, self.came = rows, came

    def _save(self) -> None:
        if self.store is None:
            return
        rows = {key: vars(self.rows[key]) for key in self.came}
        with suppress(OSError):
            save_file(self.store, json.dumps({"rows": rows, "came": self.came}))


def shown_name(file: Path) -> str:
    """A file's name on one line."""
    return one_line(os.fsencode(file.name).decode("utf-8", "backslashreplace"))


def _when(file: Path) -> float:
    """When a file was written last, in seconds since 1970."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
