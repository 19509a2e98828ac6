"""`cypresskit contest`: the entries of a class to a leaderboard. Each is judged in a process of its own."""

import argparse
import sys
from pathlib import Path

from cypresskit.cli.command import CommandError, amount, command, option, printable
from cypresskit.cli.files import check_targets, write_file
from cypresskit.saving import save_file

ENDINGS = ".il", ".txt"


def _size(text: str) -> int:
    n = int(text) if text.isdecimal() and len(text) < 6 else 0
    if not 256 <= n <= 4096:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 256 to 4096")
    return n


@command(
    "contest",
    "judge entries of lesson 12 and write a leaderboard",
    "Takes files that lesson 12's last cell writes (IL below a head), files that hold just (rows, columns, steps), or "
    "folders of such files. Each entry is checked, then timed whole, in a process of its own with limits of time and "
    "memory. Writes the leaderboard as a web page and as CSV. A wrong entry stands below with the reason; the exit "
    "status is 0 all the same.",
    option("entries", metavar="ENTRY", nargs="+", type=Path, help="files *.il or *.txt, or folders of them"),
    option("--n", type=_size, default=2048, metavar="N", help="time N x N x N (default 2048)"),
    option("--html", type=Path, default=Path("leaderboard.html"), metavar="FILE", help="page (default %(default)s)"),
    option("--csv", type=Path, default=Path("leaderboard.csv"), metavar="FILE", help="table (default %(default)s)"),
    option("--seconds", type=amount, default=120.0, metavar="S", help="processor time for an entry (default 120)"),
    example="cypresskit contest entries/ --html leaderboard.html --csv leaderboard.csv",
)
def contest(args: argparse.Namespace) -> None:
    """Judge, and write the leaderboard."""
    from cypresskit.teach import leaderboard

    check_targets(args.html, args.csv)
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
    page, table = leaderboard.page(rows, args.n), leaderboard.table(rows, args.n)
    write_file(args.html, lambda path: save_file(path, page))
    write_file(args.csv, lambda path: save_file(path, table))
    for place, row in leaderboard.ranked(rows, args.n):
        more = ", ".join(filter(None, (row.file, row.chip, row.note)))
        entry = f"{row.name} ({more})" if more else row.name
        print(f"{place:3} {row.gflops:6.0f}" if row.gflops else "  -      -", f" {printable(entry)}")
    print(f"{len(rows)} entries; the leaderboard: {args.html}, {args.csv}")


def _files(entry: Path) -> list[Path]:
    if entry.is_dir():
        found = sorted(file for file in entry.rglob("*") if file.is_file() and not file.name.startswith("."))
        for other in (file for file in found if file.suffix not in ENDINGS):
            print(f"{printable(str(other))} is left out: entries end in {' or '.join(ENDINGS)}", file=sys.stderr)
        return [file for file in found if file.suffix in ENDINGS]
    if not entry.is_file():
        raise CommandError(f"{entry}: there is no such file or folder")
    return [entry]
