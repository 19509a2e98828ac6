"""`cypresskit contest`: the entries of a class to a leaderboard. Each is judged in a process of its
own.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cypresskit.cli.command import CommandError, Option, command, jobs, option, whole
from cypresskit.saving import files_in, save_file
from cypresskit.tables import one_line

if TYPE_CHECKING:
    from cypresskit.marks.standings import Standings

ENDINGS = ".il", ".txt"
PAUSE = 2.0  # seconds between two looks for new entries


def named(text: str) -> Path:
    """A path that was given; an empty one isn't the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an entry's name is empty")
    return Path(text)


def output(name: str, file: str, what: str) -> Option:
    """The option for a file that is written."""
    words = f"{what} (default %(default)s)"
    return option(name, type=Path, default=Path(file), metavar="FILE", help=words)


@command(
    "contest",
    "judge entries of lesson 12 and write a leaderboard",
    "Takes files that lesson 12's last cell writes (IL below a head), files that hold just (rows,"
    " columns, steps), or folders of such files. Each entry is checked, then timed whole, in a"
    " process of its own with limits of time and memory. Writes the leaderboard as a web page and"
    " as CSV. A wrong entry stands below with the reason; the exit status is 0 all the same. Off"
    " Linux an entry has 4 S seconds by the clock, not S of processor time. Right entries that were"
    " judged before aren't judged again. The page shows the winner on the chip, if Bokeh is"
    " installed; with --watch it follows the entries while it is open.",
    option(
        "entries",
        metavar="ENTRY",
        nargs="+",
        type=named,
        help="files *.il or *.txt, or folders of them",
    ),
    option(
        "--n",
        type=whole(256, 4096),
        default=2048,
        metavar="N",
        help="time N x N x N (default 2048)",
    ),
    output("--html", "leaderboard.html", "page"),
    output("--csv", "leaderboard.csv", "table"),
    option(
        "--seconds",
        type=whole(1, 10**6),
        default=120,
        metavar="S",
        help="processor time for each (default 120)",
    ),
    jobs("entries", "1", most=64),
    option("--watch", action="store_true", help="go on: judge what comes, until Ctrl-C"),
    example="cypresskit contest entries/ --html leaderboard.html --csv leaderboard.csv",
)
def contest(args: argparse.Namespace) -> None:
    """Judge, and write the leaderboard; then, if it is to watch, again and again."""
    from cypresskit.marks.standings import Standings

    _check_targets(args.html, args.csv)
    folders = [entry.resolve() for entry in args.entries if entry.is_dir()]
    files = _files(args.entries)
    store = args.html.with_name(f".{args.html.stem}.judged.json")
    if any(folder in store.resolve().parents for folder in folders):
        store = None  # where whoever hands in could write it
    standings = Standings(args.n, args.seconds, jobs=args.jobs or 1, store=store)
    board = LeaderboardFiles(standings, args.html, args.csv, live=args.watch)
    try:
        standings.judge(files, board.tell)
        board.print_places()
        board.write()
        print(f"{len(standings.shown)} entries; the leaderboard: {args.html}, {args.csv}")
        if args.watch:
            print(f"Open {args.html}: it follows the entries. Ctrl-C ends it.", flush=True)
            _watch(args.entries, standings, board)
    finally:
        standings.end()


class LeaderboardFiles:
    """What is written of standings: a page, a table, and lines in a terminal."""

    def __init__(self, standings: "Standings", html: Path, csv: Path, *, live: bool) -> None:
        self.standings, self.html, self.csv = standings, html, csv
        self.live = html.with_name(f"{html.stem}-live.js") if live else None
        self.winner = html.with_name(f"{html.stem}-winner.html")
        self.played: tuple[str, str] | None = None  # the winner's text and file, once it is written

    def tell(self, file: Path, row: Any) -> None:
        """A line on an entry that was judged; while it watches, the page follows at once."""
        result = f"{row.gflops:.0f} Gflop/s" if row.gflops else row.verdict.splitlines()[0]
        print(f"{one_line(str(file))} ... {one_line(result)}", file=sys.stderr, flush=True)
        if self.live:
            self.write(replay=False)

    def print_places(self) -> None:
        """The leaderboard, as lines."""
        from cypresskit.teach import leaderboard

        for place, row in leaderboard.ranked(self.standings.shown, self.standings.n):
            more = ", ".join(filter(None, (row.file, row.chip, row.note)))
            entry = f"{row.name} ({more})" if more else row.name
            score = f"{place:3} {row.gflops:6.0f}" if row.gflops else "  -      -"
            print(score, f" {one_line(entry)}")

    def write(self, replay: bool = True) -> None:
        """Write page and table, and the page on which the winner plays; if not ``replay``, an
        older one of those stays. Raises ``CommandError`` if one can't be written.
        """
        from cypresskit.teach import leaderboard, leaderboard_page

        rows, n = self.standings.shown, self.standings.n
        if replay:
            self._replay()
        written = time.time_ns() // 10**6
        names = {"winner": self.winner.name} if self.played else {}
        if self.live:
            names["live"] = self.live.name
        history = self.standings.history
        page = leaderboard_page.page(rows, n, history=history, written=written, **names)
        files = [(self.csv, leaderboard.table(rows, n)), (self.html, page)]
        if self.live:
            files.append((self.live, leaderboard_page.stamp(written)))
        faults = []
        for path, text in files:
            try:
                save_file(path, text.encode("utf-8", "replace"))
            except OSError as error:
                faults.append(f"can't write {path}: {error.strerror or error}")
        if faults:
            raise CommandError("\n".join(faults))

    def _replay(self) -> None:
        """Write the page of the winner, if that is another than the last time."""
        try:
            from cypresskit.marks.replay import replayed
        except ImportError:  # of Bokeh
            return
        winner = self.standings.winner()
        if winner == self.played:
            return
        text = replayed(*winner) if winner else ""
        self.played = winner if text else None
        if text:
            with suppress(OSError):
                save_file(self.winner, text)


def _watch(entries: Sequence[Path], standings: "Standings", board: LeaderboardFiles) -> None:
    """Look for new entries until Ctrl-C."""
    try:
        while True:
            time.sleep(PAUSE)
            if standings.judge(_files(entries, tell=False), board.tell):
                board.write()
    except KeyboardInterrupt:
        print("The leaderboard stays as it is.")


def _check_targets(html: Path, csv: Path) -> None:
    """Raise ``CommandError`` before the long run if its results couldn't be written after it."""
    if html.absolute() == csv.absolute():
        raise CommandError(
            f"{html} and {csv} are the same file: give the page and the table a name each"
        )
    for path in (html, csv):
        writable = path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)
        special = path.exists() and not path.is_file()
        if path.is_dir() or special or not writable:
            raise CommandError(
                f"can't write {path}: does its folder exist, and may you write there?"
            )


def _files(entries: Sequence[Path], tell: bool = True) -> list[Path]:
    """The files of the arguments: each itself, or the entries in the folder that it is; ``tell``
    says what is left out.
    """
    files: list[Path] = []
    for entry in entries:
        if entry.is_dir():
            for file, why in files_in(entry):
                if not why and file.suffix in ENDINGS:
                    files.append(file)
                elif tell:
                    why = why or f"entries end in {' or '.join(ENDINGS)}"
                    print(f"{one_line(str(file))} is left out: {why}", file=sys.stderr)
        elif entry.is_file():
            files.append(entry)
        elif tell:
            raise CommandError(f"{entry}: there is no such file or folder")
    return files
