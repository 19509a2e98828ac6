"""The `cypresskit` command: what the package does, from a shell.

Each subcommand is one function that imports what it needs when it runs, so that `--help` answers at once. A mistake in
what was typed, in a file or in a kernel is told in a line or a few on standard error, without a traceback; the exit
status is then 1, or 2 where the command line itself made no sense. What it leaves out: everything with a picture, which
is in the notebooks.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import re
import stat
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cypresskit import cli_card, cli_check, cli_host, cli_kernels, cli_time

if TYPE_CHECKING:
    import numpy as np

    import cypresskit as ck

MOST_DIGITS = 9  # of a number on the command line


class CommandError(Exception):
    """Something the user can mend: its text is all that is shown."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: the shell's) and return its exit status."""
    parser = _parser()
    args, others = parser.parse_known_args(argv)
    if args.command == "lab":
        args.options = others
    elif args.command == "check" and not any(other.startswith("-") for other in others):
        args.files += others  # argparse ends the list of files at the first option
    elif others:
        parser.error(f"{args.command} doesn't know {' '.join(others)}: see `cypresskit {args.command} --help`")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a kernel's comments may hold what a terminal doesn't know
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = args.action(args) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # who reads, `head` say, has seen enough; Python would write the rest when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
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
    sub.add_argument("file", metavar="FILE.il", help="the program's text")
    _launch_options(sub)
    sub.add_argument("--engine", choices=("fast", "explain"), default="fast", help="default: fast")

    sub = command("check", _check, "run IL programs with every check on", cli_check.CHECK_HELP, cli_check.CHECK_EXAMPLE)
    sub.add_argument("files", metavar="FILE.il", nargs="+", help="the programs' texts")
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

    arrays, targets = _arrays(args)
    program = _program(args.file, arrays)
    try:
        result = ck.launch(program, **arrays, engine=args.engine)
    except (ValueError, TypeError, ck.KernelError) as error:
        raise CommandError(_in_options(str(error))) from None
    for place, target in targets.items():
        _save(target, arrays["global_memory"] if place == "g" else arrays["outputs"][place])
    for name, count in vars(result).items():
        if isinstance(count, int) and count:
            print(f"{count:16,}  {name.replace('work_items', 'work-items').replace('_', ' ')}")


def _check(args: argparse.Namespace) -> int:
    arrays, _ = _arrays(args)
    names = cli_check.names(args.name, arrays)
    status = 0
    for file in args.files:
        try:
            found = cli_check.findings(args, _program(file, arrays), arrays, names)
        except (CommandError, ValueError, TypeError) as error:  # the other files are still looked at
            print(f"cypresskit check: {_in_options(str(error))}", file=sys.stderr)
            status = 1
            continue
        print(f"{file}: {found}" if len(args.files) > 1 and not found else _in_options(str(found)))
        status |= bool(found)
    return status


def _in_options(message: str) -> str:
    """A message of `ck.launch` about what to pass, in this command's options."""
    for option in (" (max_instructions raises the limit.)", ', or engine="fast" without observers'):
        message = message.replace(option, "")
    message = re.sub(r"pass (input|constant|output)s=\{(\d+): array\}", r"pass --\1 \2=FILE.npy", message)
    return message.replace("pass global_memory=array", "pass --global ELEMENTS=FILE.npy")


def _arrays(args: argparse.Namespace) -> tuple[dict, dict[int | str, Path]]:
    """The arguments of `ck.launch` but for the program, and the files that outputs and global memory ("g") go to."""
    domain = _domain(args.domain)
    streams, outputs = _numbered("--output", args.output), {}
    for number, target in streams.items():
        if len(domain) != 2:
            raise CommandError(f"--output {number}={target}: output streams need --domain WIDTHxHEIGHT")
        outputs[number] = _load(target) if target.exists() else _zeros(f"--output {number}={target}", *domain[::-1])
    targets: dict[int | str, Path] = dict(streams.items())
    memory = None
    if args.memory:
        start, equals, name = args.memory.partition("=")
        if not equals or not name:
            raise CommandError(f"--global {args.memory}: expected N=FILE.npy, such as 4096=g.npy")
        count = int(start[: MOST_DIGITS + 1]) if start.isdecimal() else 0
        memory = _zeros(f"--global {args.memory[:40]}", count) if start.isdecimal() else _load(Path(start))
        targets["g"] = Path(name)
    arrays = {
        "domain": domain if len(domain) > 1 else domain[0],
        "inputs": {i: _load(file) for i, file in _numbered("--input", args.input).items()},
        "constants": {i: _load(file) for i, file in _numbered("--constant", args.constant).items()},
        "outputs": outputs,
        "global_memory": memory,
    }
    return arrays, targets


def _zeros(option: str, *shape: int) -> np.ndarray:
    """Elements of four floats, as many as the card could hold."""
    import numpy as np

    from cypresskit.devices import HD5870

    if math.prod(shape) > (most := HD5870.memory_bytes // 16):
        raise CommandError(f"{option}: the card's memory holds {most:,} elements of 16 bytes")
    return np.zeros((*shape, 4), np.float32)


def _program(file: str, arrays: dict) -> ck.Program:
    program = read_program(Path(file))
    if program.mode == "compute" and arrays["outputs"]:
        raise CommandError(f"{file} is a compute kernel: it has no --output, its results go to --global")
    return program


def read_program(path: Path) -> ck.Program:
    """The program in a file; CommandError says why there is none."""
    import cypresskit as ck
    from cypresskit.il.parser import MAX_TEXT

    with _opened(path) as file:
        try:
            data = file.read(MAX_TEXT + 1) or b""  # None: nothing yet, from a file that isn't one
        except OSError as error:
            raise CommandError(f"can't read {path}: {error.strerror or error}") from None
    if len(data) > MAX_TEXT:
        raise CommandError(f"can't read {path}: it is no program, which has at most {MAX_TEXT:,} bytes")
    try:
        return ck.assemble(data.decode(), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CommandError(f"can't read {path}: line {line} isn't text. Is it a program, saved as UTF-8?") from None
    except ck.ILError as error:
        raise CommandError(str(error)) from None


def _opened(path: Path) -> BinaryIO:
    """An ordinary file, opened for reading: a pipe or a device might make us wait, or never end."""
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))
    except OSError as error:
        raise CommandError(f"can't read {path}: {error.strerror or error}") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise CommandError(f"can't read {path}: it is a pipe or a device, not a file; save what comes out of it first")
    return file


def _domain(text: str) -> tuple[int, ...]:
    from cypresskit.machine.launch import MAX_ITEMS

    sizes = text.lower().split("x")
    if len(sizes) > 3 or not all(size.isdecimal() and size.strip("0") for size in sizes):
        raise CommandError(f"--domain {text[:40]}: expected WIDTHxHEIGHT, such as 64x32, or a number of work-items")
    if max(map(len, sizes)) > MOST_DIGITS or math.prod(map(int, sizes)) > MAX_ITEMS:
        raise CommandError(f"--domain {text[:40]}: at most {MAX_ITEMS:,} work-items are run")
    return tuple(int(size) for size in sizes)


def _numbered(option: str, pairs: Sequence[str]) -> dict[int, Path]:
    """`["0=a.npy", "1=b.npy"]` as `{0: Path("a.npy"), 1: Path("b.npy")}`."""
    files: dict[int, Path] = {}
    for pair in pairs:
        number, equals, name = pair.partition("=")
        if not equals or not number.isdecimal() or len(number) > MOST_DIGITS or not name:
            raise CommandError(f"{option} {pair}: expected NUMBER=FILE.npy, such as 0=a.npy")
        if int(number) in files:
            raise CommandError(f"{option} {pair}: number {number} was given before, as {files[int(number)]}")
        files[int(number)] = Path(name)
    return files


def _load(path: Path) -> np.ndarray:
    import numpy as np

    with _opened(path) as file:
        try:
            array: object = np.load(file, allow_pickle=False)
        except MemoryError:
            raise
        except Exception:  # what a broken header raises depends on where it breaks
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
