"""`cypresskit contest`: judge the entries of a class, and print a leaderboard."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cypresskit.cli.command import CommandError, command
from cypresskit.files.received import find_files, printable_name, read_plain
from cypresskit.tables import one_line, quantity

if TYPE_CHECKING:
    from cypresskit.teach.l12_contest.leaderboard import Row

ENTRY_SUFFIXES = ".il", ".txt"
MAX_ENTRY_BYTES = 400_000  # bytes of an entry


def parse_path(text: str) -> Path:
    """Return a path; refuse an empty one, which would be the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an entry's name is empty")
    return Path(text)


@command(
    "contest",
    "judge entries of lesson 12 and print a leaderboard",
    "ENTRY is a file with a kernel in IL, or a folder of such files. Each entry is verified and"
    " then timed exactly, in a separate process with limits on time and memory. Incorrect entries"
    " and unreadable files are listed below the others, with the reason; the exit status is 0 even"
    " so.",
    {
        "entries": {
            "metavar": "ENTRY",
            "nargs": "+",
            "type": parse_path,
            "help": "files *.il or *.txt, or folders with them",
        },
        "--n": {
            "type": int,
            "default": 2048,
            "metavar": "N",
            "help": "m, n and k of the timed product (default 2048)",
        },
    },
    "cypresskit contest entries/",
)
def contest(args: argparse.Namespace) -> None:
    """Judge the entries and print the leaderboard."""
    from cypresskit.isolated.process import ForkServer, map_with_servers
    from cypresskit.teach.l12_contest.leaderboard import Row, board, explain_unjudged, row

    def judged(entry: tuple[Path, str], server: ForkServer) -> "Row":
        file, why = entry
        name = printable_name(file)
        try:
            if why:
                raise ValueError(why)
            text = read_plain(file, MAX_ENTRY_BYTES).decode()
        except UnicodeDecodeError:
            return Row(name, verdict=explain_unjudged(name, "it isn't text"))
        except ValueError as error:
            return Row(name, verdict=explain_unjudged(name, str(error)))
        return row(text, name, args.n, server)

    if not 256 <= args.n <= 4096:
        raise CommandError(f"N is a whole number from 256 to 4,096, not {args.n}")
    rows = []
    files = list(_files(args.entries))
    modules = ["cypresskit.teach.l12_contest.leaderboard"]
    for (file, _), result in zip(files, map_with_servers(judged, files, modules)):
        rows.append(result)
        outcome = f"{result.gflops:,.0f} Gflop/s" if result.gflops else result.verdict
        outcome = one_line(outcome.partition("\n")[0])
        print(f"{one_line(str(file))} ... {outcome}", file=sys.stderr, flush=True)
    print(board(rows, args.n))
    print(quantity(len(rows), "file"))


def _files(entries: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the arguments' files and those in folders, each with why it is no entry, or ""."""
    for entry in entries:
        if entry.is_dir():
            for file, why in find_files(entry):
                ending = f"entries end in {' or '.join(ENTRY_SUFFIXES)}" * (
                    file.suffix not in ENTRY_SUFFIXES
                )
                yield file, why or ending
        elif entry.is_file():
            yield entry, ""
        else:
            raise CommandError(f"{entry}: there is no such file or folder")
