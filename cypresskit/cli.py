"""The `cypresskit` command: what the package does, from a shell.

Each subcommand is one function that imports what it needs when it runs, so that `--help` answers at once. A mistake in
what was typed, in a file or in a kernel is told in a line or a few on standard error, without a traceback; the exit
status is then 1, or 2 where the command line itself made no sense. What it leaves out: everything with a picture, which
is in the notebooks.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cypresskit import cli_card, cli_check, cli_host, cli_kernels, cli_time

if TYPE_CHECKING:
    import numpy as np


class CommandError(Exception):
    """Something the user can mend: its text is all that is shown."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: the shell's) and return its exit status."""
    parser = _parser()
    args, others = parser.parse_known_args(argv)
    if args.command == "lab":
        args.options = others
    elif others:
        parser.error(f"{args.command} doesn't know {' '.join(others)}: see `cypresskit {args.command} --help`")
    try:
        return args.action(args) or 0
    except CommandError as error:
        print(f"cypresskit {args.command}: {error}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"cypresskit {args.command}: this computer's memory is too small: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    import cypresskit

    parser = argparse.ArgumentParser(
        prog="cypresskit",
        description="Simulate AMD's Cypress GPU (Radeon HD 5870) and learn fast matrix multiplication on it.",
        epilog="Start with `cypresskit lab`. `cypresskit COMMAND --help` tells more about one command.",
    )
    parser.add_argument("--version", action="version", version=f"cypresskit {cypresskit.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(
        name: str, action: Callable[[argparse.Namespace], int | None], summary: str, more: str, example: str = ""
    ):
        sub = commands.add_parser(
            name,
            help=summary,
            description=textwrap.fill(f"{summary[0].upper()}{summary[1:]}. {more}", 78),
            epilog=f"example:\n  {example}" if example else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(action=action)
        return sub

    command("lab", _lab, "open the workbook in JupyterLab", LAB_HELP, "cypresskit lab --no-browser --port 9000")

    sub = command("run", _run, "run an IL program on numpy arrays", RUN_HELP, RUN_EXAMPLE)
    _launch_options(sub)
    sub.add_argument("--engine", choices=("fast", "explain"), default="fast", help="default: fast")

    sub = command(
        "check", _check, "run an IL program with every check on", cli_check.CHECK_HELP, cli_check.CHECK_EXAMPLE
    )
    _launch_options(sub)
    cli_check.add_check(sub)

    sub = command("fuzz", cli_check.fuzz, "look for programs that the simulator gets wrong", cli_check.FUZZ_HELP)
    cli_check.add_fuzz(sub)

    sub = command("pipeline", cli_host.pipeline, "time a product in the host's memory", cli_host.HELP, cli_host.EXAMPLE)
    cli_host.add_pipeline(sub)

    sub = command("kernels", cli_kernels.kernels, "list the catalogue of kernels", cli_kernels.KERNELS_HELP)
    cli_kernels.add_kernels(sub)

    sub = command("card", cli_card.card, "show what the compiler makes of a kernel", cli_card.HELP, cli_card.EXAMPLE)
    cli_card.add(sub)

    sub = command("time", cli_time.time, "simulate how long a kernel takes", cli_time.TIME_HELP, cli_time.TIME_EXAMPLE)
    cli_time.add_time(sub)

    sub = command("score", cli_time.score, "hold the model against what was published", cli_time.SCORE_HELP)
    cli_time.add_score(sub)

    sub = command(
        "bench", cli_kernels.bench, "measure the simulator's speed on GEMM against numpy's", cli_kernels.BENCH_HELP
    )
    sub.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    return parser


def _launch_options(sub: argparse.ArgumentParser) -> None:
    """The program and its arrays, for `run` and `check`."""
    sub.add_argument("file", metavar="FILE.il", help="the program's text")
    sub.add_argument("--domain", required=True, metavar="WxH", help="pixel mode: WIDTHxHEIGHT; compute mode: a number")
    for option, what in (
        ("--input", "texture I: an array (height, width) or (height, width, components)"),
        ("--constant", "constant buffer cbI: an array of rows of four"),
        ("--output", "where output stream oI is written; a file that exists keeps its shape and type, a new one "
         "is float32 (height, width, 4)"),
    ):  # fmt: skip
        sub.add_argument(option, action="append", default=[], metavar="I=FILE.npy", help=f"{what}; may be repeated")
    sub.add_argument(
        "--global",
        dest="memory",
        metavar="N=FILE.npy",
        help="where global memory is written, N elements of 16 bytes that start at zero; N may be a .npy file that "
        "holds what they start as",
    )


# -- lab ---------------------------------------------------------------------------------------------------------------

LAB_HELP = (
    "It looks for the lessons in notebooks/ beside the package (a source checkout), then in the current directory. "
    "Other options go to JupyterLab."
)


def _lab(args: argparse.Namespace) -> None:
    lessons = find_lessons()
    try:
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise CommandError("JupyterLab isn't installed here: try `pip install jupyterlab`.") from None
    options = [f"--ServerApp.root_dir={lessons[0].parent}", f"--LabApp.default_url=/lab/tree/{lessons[0].name}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # usual in a container, where Jupyter would otherwise refuse to start
    LabApp.launch_instance([*options, *args.options])


def find_lessons() -> list[Path]:
    """The lesson notebooks in their order, at least one; CommandError says where they were looked for."""
    places = [Path(__file__).resolve().parent.parent / "notebooks", Path.cwd() / "notebooks", Path.cwd()]
    for place in places:
        if lessons := sorted(place.glob("[0-9][0-9]_*.ipynb")):
            return lessons
    raise CommandError(
        "the lessons aren't here. They are no part of the installed package but lie in notebooks/ of its repository;\n"
        "clone that and run `make lab` in it, or run `cypresskit lab` where notebooks/ is. Looked in:\n"
        + "\n".join(f"  {place}" for place in places)
    )


# -- run ---------------------------------------------------------------------------------------------------------------

RUN_HELP = "Arrays are read from .npy files, and results written to them when the kernel has ended."
RUN_EXAMPLE = "cypresskit run scale.il --domain 64x64 --input 0=a.npy --output 0=c.npy"


def _run(args: argparse.Namespace) -> None:
    import cypresskit as ck

    launch, targets, memory_target = _launch_of(args)
    try:
        result = ck.launch(**launch, engine=args.engine)
    except (ValueError, TypeError, ck.KernelError) as error:
        raise CommandError(_in_options(str(error))) from None
    for number, array in launch["outputs"].items():
        _save(targets[number], array)
    if memory_target is not None:
        _save(memory_target, launch["global_memory"])
    for name, count in vars(result).items():
        if isinstance(count, int) and count:
            print(f"{count:16,}  {name.replace('work_items', 'work-items').replace('_', ' ')}")


def _check(args: argparse.Namespace) -> int:
    launch, _, _ = _launch_of(args)
    try:
        return cli_check.check_file(args, launch)
    except (ValueError, TypeError) as error:
        raise CommandError(_in_options(str(error))) from None


def _in_options(message: str) -> str:
    """A message of `ck.launch` about what to pass, in this command's options."""
    message = message.replace(" (max_instructions raises the limit.)", "")
    message = re.sub(r"pass (input|constant|output)s=\{(\d+): array\}", r"pass --\1 \2=FILE.npy", message)
    return message.replace("pass global_memory=array", "pass --global ELEMENTS=FILE.npy")


def _launch_of(args: argparse.Namespace) -> tuple[dict, dict[int, Path], Path | None]:
    """The arguments of `ck.launch`, and the files that outputs and global memory go to."""
    import numpy as np

    import cypresskit as ck

    path = Path(args.file)
    domain = _domain(args.domain)
    try:
        program = ck.assemble(path.read_text(), str(path))
    except OSError as error:
        raise CommandError(f"can't read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CommandError(
            f"can't read {path}: it isn't text. The program comes first, arrays behind --input"
        ) from None
    except ck.ILError as error:
        raise CommandError(str(error)) from None
    inputs = {i: _load(file) for i, file in _numbered("--input", args.input).items()}
    constants = {i: _load(file) for i, file in _numbered("--constant", args.constant).items()}
    targets = _numbered("--output", args.output)
    outputs = {}
    for number, target in targets.items():
        if target.exists():
            outputs[number] = _load(target)
        elif program.mode == "pixel" and len(domain) == 2:
            outputs[number] = np.zeros((domain[1], domain[0], 4), np.float32)
        else:
            raise CommandError(
                f"--output {number}={target}: only a pixel kernel over WIDTHxHEIGHT has output streams; this one is a "
                f"{program.mode} kernel over {args.domain}, and its results go to --global"
            )
    memory, memory_target = None, None
    if args.memory:
        start, equals, name = args.memory.partition("=")
        if not equals or not name:
            raise CommandError(f"--global {args.memory}: expected N=FILE.npy, such as 4096=g.npy")
        memory = np.zeros((int(start), 4), np.float32) if start.isdecimal() else _load(Path(start))
        memory_target = Path(name)
    launch = {
        "program": program,
        "domain": domain if len(domain) > 1 else domain[0],
        "inputs": inputs,
        "constants": constants,
        "outputs": outputs,
        "global_memory": memory,
    }
    return launch, targets, memory_target


def _domain(text: str) -> tuple[int, ...]:
    sizes = text.lower().split("x")
    if len(sizes) > 3 or not all(size.isdecimal() and int(size) for size in sizes):
        raise CommandError(f"--domain {text}: expected WIDTHxHEIGHT, such as 64x32, or a number of work-items")
    return tuple(int(size) for size in sizes)


def _numbered(option: str, pairs: Sequence[str]) -> dict[int, Path]:
    """`["0=a.npy", "1=b.npy"]` as `{0: Path("a.npy"), 1: Path("b.npy")}`."""
    files: dict[int, Path] = {}
    for pair in pairs:
        number, equals, name = pair.partition("=")
        if not equals or not number.isdecimal() or not name:
            raise CommandError(f"{option} {pair}: expected NUMBER=FILE.npy, such as 0=a.npy")
        if int(number) in files:
            raise CommandError(f"{option} {pair}: number {number} was given before, as {files[int(number)]}")
        files[int(number)] = Path(name)
    return files


def _load(path: Path) -> np.ndarray:
    import numpy as np

    try:
        array: object = np.load(path, allow_pickle=False)
    except OSError as error:
        raise CommandError(f"can't read {path} as a .npy array: {error.strerror or error}") from None
    except (ValueError, EOFError):
        array = None
    if not isinstance(array, np.ndarray):  # text, an empty file, an .npz, an array of Python objects
        raise CommandError(
            f"can't read {path} as a .npy array: it isn't one, or not of numbers. Write it with `np.save`"
        )
    return array


def _save(path: Path, array: np.ndarray) -> None:
    import numpy as np

    try:
        with path.open("wb") as file:  # np.save would add .npy to another name
            np.save(file, array)
    except OSError as error:
        raise CommandError(f"can't write {path}: {error}") from None
