"""Describe kernels: `cypresskit kernels` and `stats`."""

import argparse
from pathlib import Path

import cypresskit as ck
from cypresskit.cli.command import CommandError, command, convert_errors, option
from cypresskit.il.errors import did_you_mean
from cypresskit.kernels.own import read_text


@command(
    "kernels",
    "list the catalog of kernels",
    "Columns: precision, mode, the block of C that a work-item computes, and what the kernel"
    " teaches.",
)
def kernels(args: argparse.Namespace) -> None:
    """List the catalog."""
    print(ck.kernels)


@command(
    "stats",
    "show the compiler's statistics of a kernel",
    "KERNEL is a name in the catalog (`cypresskit kernels`) or an IL file. The statistics are its"
    " registers, wavefronts, bundles and slots of the main loop, fetches, nominal Gflop/s, what it"
    " is bound by, and the least possible bundles and registers.",
    option("kernel", metavar="KERNEL", help="a kernel's name, or FILE.il"),
    option(
        "--listing",
        action="store_true",
        help="print the compiled code instead, in the format of AMD's disassembly",
    ),
    example="cypresskit stats sgemm_tn",
)
def stats(args: argparse.Namespace) -> None:
    """Print the statistics or the listing."""
    with convert_errors(ck.ILError, ck.CompileError):
        program, known = find_program(args.kernel)
        code = ck.compile(program)
        known = known or find_gemm_kernel(program)
        statistics = code.stats(*known.convention.per_iteration) if known else code.stats()
    print(code.listing() if args.listing else statistics)


def find_program(name: str) -> tuple[ck.Program, ck.Kernel | None]:
    """Return the program that ``name`` (in the catalog, or a path) means, and the catalog's kernel
    or None.
    """
    if name in ck.kernels:
        return ck.kernels[name].program, ck.kernels[name]
    if Path(name).suffix or Path(name).exists():
        return read_program(Path(name)), None
    guess = did_you_mean(name, ck.kernels)
    raise CommandError(
        f"no kernel {name!r}, and no such file.{guess} The catalog has {', '.join(ck.kernels)}."
    )


def read_program(path: Path) -> ck.Program:
    """Assemble a file. Raise ``CommandError`` if it can't be read or isn't text."""
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    return ck.assemble(text, str(path))


def find_gemm_kernel(program: ck.Program) -> ck.Kernel | None:
    """Return the program as a GEMM kernel, or None if it doesn't state how it is launched."""
    try:
        return ck.load_kernel(program)
    except ck.LaunchConventionError:
        return None
