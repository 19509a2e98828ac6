"""`cypresskit run`: an IL program on arrays in .npy files."""

import argparse

from cypresskit.cli.command import CommandError, command, option
from cypresskit.cli.files import array_writer, check_targets, write_files
from cypresskit.cli.launching import OPTIONS, in_options, read_arrays


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
    import cypresskit as ck

    arrays = read_arrays(args)
    program = arrays.program(args.file)
    check_targets(*arrays.targets.values())
    try:
        result = ck.launch(program, **arrays.arguments, engine=args.engine)
    except (ValueError, TypeError, ck.KernelError) as error:
        raise CommandError(in_options(str(error))) from None
    write_files({target: array_writer(arrays.result(place)) for place, target in arrays.targets.items()})
    for name, count in vars(result).items():
        if isinstance(count, int) and count:
            print(f"{count:16,}  {name.replace('work_items', 'work-items').replace('_', ' ')}")
