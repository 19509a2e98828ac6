"""`cypresskit contest`: the entries of a class to a leaderboard. Each is judged in a process of its
own.
"""

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
    "Takes files that lesson 12's last cell writes (IL below a head), files that hold just (rows,"
    " columns, steps), or folders of such files. Each entry is checked, then timed whole, in a"
    " process of its own with limits of time and memory. Writes the leaderboard as a web page and"
    " as CSV. A wrong entry stands below with the reason; the exit status is 0 all the same. Off"
    " Linux an entry has 4 S seconds by the clock, not S of processor time.",
    option(
        "entries",
        metavar="ENTRY",
        nargs="+",
        type=Path,
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
    example="cypresskit contest entries/ --html leaderboard.html --csv leaderboard.csv",
)
def contest(args: argparse.Namespace) -> None:
    """Judge, and write the leaderboard."""
    from cypresskit.teach import leaderboard

    _check_targets(args.html, args.csv)
    files = [file for entry in args.entries for file in _files(entry)]
    rows = []
    for file in files:
        name = printable(file.name)
        print(f"{printable(str(file))} ...", end="", file=sys.stderr, flush=True)
        try:
            text = file.read_bytes()[: 4 * leaderboard.LONGEST].decode()
        except (OSError, UnicodeDecodeError) as error:
            why = (
                f"can't be read: {error.strerror}"
                if isinstance(error, OSError)
                else "isn't text. Is it an entry?"
            )
            rows.append(leaderboard.Row(name, name, verdict=f"Not yet. {name} {why}"))
        else:
            rows.append(leaderboard.row(text, name, args.n, args.seconds))
        result = (
            f"{rows[-1].gflops:.0f} Gflop/s"
            if rows[-1].gflops
            else rows[-1].verdict.splitlines()[0]
        )
        print(f" {printable(result)}", file=sys.stderr)
    page, table = leaderboard.page(rows, args.n), leaderboard.table(rows, args.n)
    save_file(args.html, page)
    save_file(args.csv, table)
    for place, row in leaderboard.ranked(rows, args.n):
        more = ", ".join(filter(None, (row.file, row.chip, row.note)))
        entry = f"{row.name} ({more})" if more else row.name
        print(
            f"{place:3} {row.gflops:6.0f}" if row.gflops else "  -      -", f" {printable(entry)}"
        )
    print(f"{len(rows)} entries; the leaderboard: {args.html}, {args.csv}")


def _check_targets(html: Path, csv: Path) -> None:
    """Raise ``CommandError`` before the long run if its results couldn't be written after it."""
    if html.absolute() == csv.absolute():
        raise CommandError(
            f"{html} and {csv} are the same file: give the page and the table a name each"
        )
    for path in (html, csv):
        if (
            not path.parent.is_dir()
            or path.is_dir()
            or not os.access(path.parent, os.W_OK | os.X_OK)
        ):
            raise CommandError(
                f"can't write {path}: does its folder exist, and may you write there?"
            )


def _files(entry: Path) -> list[Path]:
    if entry.is_dir():
        given = (file for file in entry.rglob("*") if file.is_file() and not file.is_symlink())
        files = sorted(file for file in given if not file.name.startswith("."))
        for other in (file for file in files if file.suffix not in ENDINGS):
            print(
                f"{printable(str(other))} is left out: entries end in {' or '.join(ENDINGS)}",
                file=sys.stderr,
            )
        return [file for file in files if file.suffix in ENDINGS]
    if not entry.is_file():
        raise CommandError(f"{entry}: there is no such file or folder")
    return [entry]
