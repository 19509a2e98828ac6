"""`cypresskit contest`: the entries of a class to a leaderboard. Each is judged in a process of its
own.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING

from cypresskit.cli.command import CommandError, Option, command, jobs, option, whole
from cypresskit.saving import files_in, read_plain, shown_name, try_to_save
from cypresskit.tables import one_line

if TYPE_CHECKING:
    from cypresskit.teach.l12_contest.leaderboard import Row

ENDINGS = ".il", ".txt"
LARGEST = 400_000  # bytes of an entry


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
    "Takes files that lesson 12's contest.save writes (IL below a head), files that hold just"
    " (rows, columns, steps), or folders of such files. Each entry is checked, then timed whole, in"
    " a process of its own with limits of time and memory. Writes the leaderboard as a web page and"
    " as CSV. A wrong entry, or a file that is none, stands below with the reason; the exit status"
    " is 0 all the same.",
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
    example="cypresskit contest entries/ --html leaderboard.html --csv leaderboard.csv",
)
def contest(args: argparse.Namespace) -> None:
    """Judge, and write the leaderboard."""
    from cypresskit.isolated.process import Family
    from cypresskit.teach.l12_contest.leaderboard import Row, cannot, line, page, ranked, row, table

    _check_targets(args.html, args.csv)
    families: Queue[Family] = Queue()
    jobs = args.jobs or 1
    for _ in range(jobs):
        families.put(Family(modules=["cypresskit.teach.l12_contest.leaderboard"]))

    def judged(entry: tuple[Path, str]) -> "Row":
        file, why = entry
        name = shown_name(file)
        try:
            if why:
                raise ValueError(why)
            text = read_plain(file, LARGEST).decode()
        except UnicodeDecodeError:
            return Row(name, name, verdict=cannot(name, "it isn't text"))
        except ValueError as error:
            return Row(name, name, verdict=cannot(name, str(error)))
        family = families.get()
        try:
            return row(text, name, args.n, seconds=args.seconds, family=family)
        finally:
            families.put(family)

    rows = []
    try:
        with ThreadPoolExecutor(jobs) as pool:
            files = list(_files(args.entries))
            for (file, _), result in zip(files, pool.map(judged, files)):
                rows.append(result)
                said = f"{result.gflops:.0f} Gflop/s" if result.gflops else result.verdict
                said = one_line(said.partition("\n")[0])
                print(f"{one_line(str(file))} ... {said}", file=sys.stderr, flush=True)
    finally:
        while not families.empty():
            families.get().end()
    for place, entry in ranked(rows, args.n):
        print(f"{place:3} {line(entry)}")
    files_written = [(args.csv, table(rows, args.n)), (args.html, page(rows, args.n))]
    faults = [
        fault
        for path, text in files_written
        for fault in try_to_save(path, text.encode("utf-8", "replace"))
    ]
    if faults:
        raise CommandError("\n".join(faults))
    print(f"{len(rows)} entries; the leaderboard: {args.html}, {args.csv}")


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


def _files(entries: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The files of the arguments, each itself, or all that lies in the folder that it is; and why
    one is no entry, or "".
    """
    for entry in entries:
        if entry.is_dir():
            for file, why in files_in(entry):
                ending = f"entries end in {' or '.join(ENDINGS)}" * (file.suffix not in ENDINGS)
                yield file, why or ending
        elif entry.is_file():
            yield entry, ""
        else:
            raise CommandError(f"{entry}: there is no such file or folder")
