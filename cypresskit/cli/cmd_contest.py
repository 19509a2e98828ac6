"""`cypresskit contest`: the entries of a class to a leaderboard. Each is judged in a process of its own."""

import argparse
import os
import sys
from pathlib import Path

from cypresskit.cli.command import CommandError, command, option, printable, whole
from cypresskit.saving import save_file

ENDINGS = ".il", ".txt"


@command(
    "contest",
    "judge entries of lesson 12 and write a leaderboard",
    "Takes files that lesson 12's last cell writes (IL below a head), or folders of such files. Each entry is checked, "
    "then timed whole, in a process of its own with limits of time and memory. Prints the leaderboard, and writes it "
    "as a web page. A wrong entry stands below with the reason; the exit status is 0 all the same.",
    option("entries", metavar="ENTRY", nargs="+", type=Path, help="files *.il or *.txt, or folders of them"),
    option("--n", type=whole(256, 4096), default=2048, metavar="N", help="time N x N x N (default 2048)"),
    option("--html", type=Path, default=Path("leaderboard.html"), metavar="FILE", help="page (default %(default)s)"),
    option("--seconds", type=whole(1, 10**6), default=120, metavar="S", help="processor time for each (default 120)"),
    example="cypresskit contest entries/",
)
def contest(args: argparse.Namespace) -> None:
    """Judge, and write the leaderboard."""
    from cypresskit.teach import leaderboard

    _check_target(args.html)
    files = [file for entry in args.entries for file in _files(entry)]
    rows = []
    for file in files:
        name = printable(file.name)
        print(f"{printable(str(file))} ...", end="", file=sys.stderr, flush=True)
        try:
            text = file.read_bytes()[: 4 * leaderboard.LONGEST].decode()
        except (OSError, UnicodeDecodeError) as error:
            why = f"can't be read: {error.strerror}" if isinstance(error, OSError) else "isn't text. Is it an entry?"
            rows.append(leaderboard.Row(name, name, verdict=f"Not yet. {name} {why}"))
        else:
            rows.append(leaderboard.row(text, name, args.n, args.seconds))
        result = f"{rows[-1].gflops:.0f} Gflop/s" if rows[-1].gflops else rows[-1].verdict.splitlines()[0]
        print(f" {printable(result)}", file=sys.stderr)
    save_file(args.html, leaderboard.page(rows, args.n))
    for place, row in leaderboard.ranked(rows, args.n):
        more = ", ".join(filter(None, (row.file, row.chip, row.note)))
        entry = f"{row.name} ({more})" if more else row.name
        print(f"{place:3} {row.gflops:6.0f}" if row.gflops else "  -      -", f" {printable(entry)}")
    print(f"{len(rows)} entries; the leaderboard: {args.html}")


def _check_target(path: Path) -> None:
    """``CommandError`` before the long run for what can't be written after it."""
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise CommandError(f"can't write {path}: does its folder exist, and may you write there?")


def _files(entry: Path) -> list[Path]:
    if entry.is_dir():
        given = (file for file in entry.rglob("*") if file.is_file() and not file.is_symlink())
        files = sorted(file for file in given if not file.name.startswith("."))
        for other in (file for file in files if file.suffix not in ENDINGS):
            print(f"{printable(str(other))} is left out: entries end in {' or '.join(ENDINGS)}", file=sys.stderr)
        return [file for file in files if file.suffix in ENDINGS]
    if not entry.is_file():
        raise CommandError(f"{entry}: there is no such file or folder")
    return [entry]
