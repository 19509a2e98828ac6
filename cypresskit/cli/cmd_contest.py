"""`cypresskit contest`: the entries of a class to a leaderboard. Each is judged in a process of its
own.
"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

from cypresskit.cli.command import CommandError, command, option, whole
from cypresskit.isolated.process import Family
from cypresskit.saving import plain_files, read_plain, save_file
from cypresskit.tables import one_line

ENDINGS = ".il", ".txt"


def named(text: str) -> Path:
    """A path that was given; an empty one isn't the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an entry's name is empty")
    return Path(text)


@command(
    "contest",
    "judge entries of lesson 12 and write a leaderboard",
    "Takes files that lesson 12's last cell writes (IL below a head), files that hold just (rows,"
    " columns, steps), or folders of such files. Each entry is checked, then timed whole, in a"
    " process of its own with limits of time and memory. Writes the leaderboard as a web page and"
    " as CSV. A wrong entry stands below with the reason; the exit status is 0 all the same. Off"
    " Linux an entry has 4 S seconds by the clock, not S of processor time.",
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
    option(
        "--html",
        type=Path,
        default=Path("leaderboard.html"),
        metavar="FILE",
        help="page (default %(default)s)",
    ),
    option(
        "--csv",
        type=Path,
        default=Path("leaderboard.csv"),
        metavar="FILE",
        help="table (default %(default)s)",
    ),
    option(
        "--seconds",
        type=whole(1, 10**6),
        default=120,
        metavar="S",
        help="processor time for each (default 120)",
    ),
    option(
        "--jobs",
        type=whole(1, 64),
        default=0,
        metavar="N",
        help="entries judged at a time (default 1)",
    ),
    example="cypresskit contest entries/ --html leaderboard.html --csv leaderboard.csv",
)
def contest(args: argparse.Namespace) -> None:
    """Judge, and write the leaderboard."""
    from cypresskit.teach import leaderboard

    _check_targets(args.html, args.csv)
    files = [file for entry in args.entries for file in _files(entry)]
    jobs = args.jobs or 1
    rows = []
    families: Queue = Queue()
    for _ in range(jobs):
        families.put(Family(modules=["cypresskit.teach.leaderboard"]))

    def judged(file: Path) -> leaderboard.Row:
        family = families.get()
        try:
            return _row(file, args.n, args.seconds, family)
        finally:
            families.put(family)

    with ThreadPoolExecutor(jobs) as pool:
        for file, row in zip(files, pool.map(judged, files)):
            rows.append(row)
            result = f"{row.gflops:.0f} Gflop/s" if row.gflops else row.verdict.splitlines()[0]
            print(f"{one_line(str(file))} ... {one_line(result)}", file=sys.stderr, flush=True)
    while not families.empty():
        families.get().end()
    for place, row in leaderboard.ranked(rows, args.n):
        more = ", ".join(filter(None, (row.file, row.chip, row.note)))
        entry = f"{row.name} ({more})" if more else row.name
        score = f"{place:3} {row.gflops:6.0f}" if row.gflops else "  -      -"
        print(score, f" {one_line(entry)}")
    faults = []
    for path, text in (
        (args.csv, leaderboard.table(rows, args.n)),
        (args.html, leaderboard.page(rows, args.n)),
    ):
        try:
            save_file(path, text.encode("utf-8", "replace"))
        except OSError as error:
            faults.append(f"can't write {path}: {error.strerror or error}")
    if faults:
        raise CommandError("\n".join(faults))
    print(f"{len(rows)} entries; the leaderboard: {args.html}, {args.csv}")


def _row(file: Path, n: int, seconds: float, family: Family) -> Any:
    """The row of an entry's file, whatever it holds."""
    from cypresskit.teach import leaderboard

    name = one_line(os.fsencode(file.name).decode("utf-8", "backslashreplace"))
    try:
        text = read_plain(file, 4 * leaderboard.LONGEST).decode()
    except UnicodeDecodeError:
        why = f"{name} isn't text. Is it an entry?"
    except ValueError as error:
        why = f"{name} can't be judged: {error}"
    else:
        return leaderboard.row(text, name, n, seconds=seconds, family=family)
    return leaderboard.Row(name, name, verdict=f"Not yet. {why}")


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


def _files(entry: Path) -> list[Path]:
    """The files of an argument: itself, or the entries in the folder that it is."""
    if entry.is_dir():
        found = sorted(plain_files(entry))
        for other in (file for file in found if file.suffix not in ENDINGS):
            print(
                f"{one_line(str(other))} is left out: entries end in {' or '.join(ENDINGS)}",
                file=sys.stderr,
            )
        return [file for file in found if file.suffix in ENDINGS]
    if not entry.is_file():
        raise CommandError(f"{entry}: there is no such file or folder")
    return [entry]
