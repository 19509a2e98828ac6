"""What can be asked about kernels: `cypresskit kernels` lists the catalogue with its figures (see
``blas.figures``), `card` shows what the compiler makes of a kernel, and `il` explains the language.
"""

import argparse
import warnings
from pathlib import Path

import cypresskit as ck
from cypresskit.blas.figures import read
from cypresskit.cli.command import CommandError, command, option, user_errors
from cypresskit.il import OPCODES, reference
from cypresskit.il.errors import did_you_mean
from cypresskit.kernels.own import read_text


@command(
    "kernels",
    "list the catalogue of kernels",
    "For each: precision, mode, the block of C that a work-item computes, registers and the bundles"
    " of a turn of its loop as compiled for the HD 5870, Gflop/s on it at N = 2048 by the timing"
    " model, and what it teaches.",
)
def kernels(args: argparse.Namespace) -> None:
    """List the catalogue."""
    print(
        "kernel                 precision      mode     block  registers  bundles  Gflop/s  it"
        " teaches"
    )
    for kernel in ck.kernels.values():
        row = read()[kernel.name]
        block = "x".join(map(str, kernel.block))
        kind = f"{kernel.name:22} {kernel.precision:14} {kernel.mode:8} {block:6}"
        print(f"{kind} {row.registers:9}  {row.bundles:7}  {row.gflops:7.1f}  {kernel.teaches}")


@command(
    "stats",
    "show what the compiler makes of a kernel",
    "KERNEL is a name of the catalogue (`cypresskit kernels`) or an IL file. The card tells"
    " registers, wavefronts, the loop's bundles and slots, fetches, nominal Gflop/s, what binds,"
    " and the lower bounds.",
    option("kernel", metavar="KERNEL", help="a kernel's name, or FILE.il"),
    option(
        "--listing",
        action="store_true",
        help="the compiled code, in the manner of AMD's disassembly",
    ),
    example="cypresskit stats sgemm_tn",
)
def stats(args: argparse.Namespace) -> None:
    """Print the card or the listing."""
    with user_errors(ck.ILError, ck.CompileError):
        program, known = named_program(args.kernel)
        code = ck.compile(program)
        known = known or convention_of(program)
        page = code.card(*known.convention.turn) if known else code.card()
    print(code.listing() if args.listing else page)


def named_program(name: str) -> tuple[ck.Program, ck.Kernel | None]:
    """Return the program of a catalog name or path, and its catalog kernel or None."""
    if name in ck.kernels:
        return ck.kernels[name].program, ck.kernels[name]
    if Path(name).suffix or Path(name).exists():
        return read_program(Path(name)), None
    guess = did_you_mean(name, ck.kernels)
    raise CommandError(
        f"no kernel {name!r}, and no such file.{guess} The catalogue has {', '.join(ck.kernels)}."
    )


def read_program(path: Path) -> ck.Program:
    """Assemble a file. Raises ``CommandError`` if it can't be read or isn't text."""
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    return ck.assemble(text, str(path))


def convention_of(program: ck.Program) -> ck.Kernel | None:
    """Return the program as a GEMM kernel, or None if its product is incorrect."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return ck.load_kernel(program)
    except (ck.LaunchConventionError, UserWarning):
        return None


@command(
    "explain",
    "tell what an instruction, a register or a modifier of IL does",
    "Without a NAME: all names. What is told comes from the tables that assemble and run programs.",
    option("name", metavar="NAME", nargs="?", help="such as mad, vAbsTid or _sat"),
    example="cypresskit explain ubit_extract",
)
def explain(args: argparse.Namespace) -> None:
    """Print an entry of the reference, or all names."""
    if args.name is None:
        print("\n".join([*OPCODES, *reference.REGISTERS, *reference.MODIFIERS, *reference.SYNTAX]))
    else:
        with user_errors(ValueError):
            print(reference.describe(args.name))
