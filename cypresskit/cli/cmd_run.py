"""`cypresskit run`: an IL program on arrays in .npy files. `cypresskit check`: with the checks of `ck.check`."""

import argparse
import sys

import cypresskit as ck
from cypresskit.cli.command import CommandError, amount, command, option, printable, user_errors
from cypresskit.cli.files import array_writer, check_targets, write_files
from cypresskit.cli.launching import OPTIONS, in_options, read_arrays

BUDGETS = ("fetches", "bundles", "registers")


@command(
    "run",
    "run an IL program on numpy arrays",
    "Arrays are read from .npy files, and results written to them when the kernel has ended.",
    option("file", metavar="FILE.il", help="the program's text"),
    *OPTIONS,
    option("--engine", choices=("fast", "explain"), default="fast", help="default: fast"),
    example="cypresskit run scale.il --domain 64x64 --input 0=a.npy --output 0=c.npy",
)
def run(args: argparse.Namespace) -> None:
    """Launch the program, write its results and print the counts."""
    arrays = read_arrays(args)
    program = arrays.program(args.file)
    check_targets(*arrays.targets.values())
    with user_errors(ValueError, TypeError, ck.KernelError, put=in_options):
        result = ck.launch(program, **arrays.arguments, engine=args.engine)
    left = arrays.arguments["outputs"] | {"g": arrays.arguments["global_memory"]}
    write_files({target: array_writer(left[place]) for place, target in arrays.targets.items()})
    for name, count in vars(result).items():
        if isinstance(count, int) and count:
            print(f"{count:16,}  {name.replace('work_items', 'work-items').replace('_', ' ')}")


@command(
    "check",
    "run IL programs with every check on",
    "Takes what `cypresskit run` takes, steps through each program, and looks for accesses out of range, races, values "
    "that nobody set, barriers that not all reach, NaN and infinities, and what it costs. Prints one report per fault; "
    "no file is written, so --output and --global only say what is there. The exit status is 0 if nothing was found, "
    "1 if something was or a file could not be checked.",
    option("files", metavar="FILE.il", nargs="+", help="the programs' texts"),
    *OPTIONS,
    option("--border", action="store_true", help="fetches that rely on zero outside a texture are intended"),
    option("--name", action="append", default=[], metavar="PLACE=NAME", help="what reports call texture 0, or g or o0"),
    *(option(f"--max-{what}", type=amount, metavar="N", help=f"report more {what} than this") for what in BUDGETS),
    example="cypresskit check mine.il --domain 8x8 --input 0=a.npy --output 0=c.npy --name 0=A",
)
def check(args: argparse.Namespace) -> int:
    """Check each of the files."""
    arrays = read_arrays(args)
    names = _names(args.name, arrays.arguments)
    budgets = {what: most for what in BUDGETS if (most := getattr(args, f"max_{what}")) is not None}
    status = 0
    for file in args.files:
        try:
            program = arrays.program(file)
            found = ck.check(program, **arrays.arguments, names=names, budgets=budgets, border=args.border)
        except (CommandError, ValueError, TypeError) as error:  # the other files are still looked at
            print(f"cypresskit check: {printable(in_options(str(error)))}", file=sys.stderr)
            status = 1
            continue
        print(f"{printable(file)}: {found}" if len(args.files) > 1 and not found else in_options(str(found)))
        status |= bool(found)
    return status


def _names(pairs: list[str], arguments: dict) -> dict:
    """`["0=A", "g=C"]` as `{0: "A", "g": "C"}`; CommandError for a place that was not given."""
    places = {str(n): n for n in arguments["inputs"]} | {f"o{n}": f"o{n}" for n in arguments["outputs"]}
    places |= {"g": "g"} if arguments["global_memory"] is not None else {}
    found: dict = {}
    for pair in pairs:
        place, _, name = pair.partition("=")
        if not name or place not in places:
            given = f"with a place that was given ({', '.join(places) or 'nothing'})"
            raise CommandError(f"--name {pair}: expected PLACE=NAME, such as 0=A, {given}")
        if places[place] in found:
            raise CommandError(f"--name {pair}: {place} was named before, {found[places[place]]}")
        found[places[place]] = name
    return found
