"""`cypresskit card`: what the compiler makes of a kernel, beside what was published, and LLVM's second opinion."""

from __future__ import annotations

import argparse
import json
from importlib.resources import files
from pathlib import Path

HELP = (
    "KERNEL is a name of the catalogue (`cypresskit kernels`) or an IL file. The card tells registers, wavefronts, the "
    "loop's bundles and slots, fetches, nominal Gflop/s, what binds, and the lower bounds."
)
EXAMPLE = "cypresskit card sgemm_tn --llvm"


def add(sub: argparse.ArgumentParser) -> None:
    """The options of `card`."""
    sub.add_argument("kernel", metavar="KERNEL", nargs="?", help="a kernel's name, or FILE.il")
    sub.add_argument(
        "--all", action="store_true", help="the kernels with published figures, published against compiled"
    )
    sub.add_argument("--markdown", action="store_true", help="with --all: the table as Markdown (also the default)")
    sub.add_argument("--listing", action="store_true", help="the compiled code, in the manner of AMD's disassembly")
    sub.add_argument("--llvm", action="store_true", help="compile the same IL with LLVM's back end for this chip too")
    sub.add_argument("--json", action="store_true", help="print JSON in place of text")


def card(args: argparse.Namespace) -> None:
    """Print the card, the listing or the table."""
    import cypresskit as ck
    from cypresskit.cli import CommandError
    from cypresskit.compiler import card_table, kernel_card

    if args.all:
        kernels = [kernel for kernel in ck.kernels.values() if kernel.name in published_ids()]
        if args.json:
            print(json.dumps([kernel_card(kernel, ck.compile(kernel.program)).as_dict() for kernel in kernels]))
        else:
            print(card_table(kernels), end="")
        return
    if not args.kernel:
        raise CommandError("name a kernel or an IL file, or say --all; `cypresskit kernels` lists the kernels.")
    try:
        program, known = _program(args.kernel)
        code = ck.compile(program)
        found = kernel_card(known, code) if known else code.card()
        second = _llvm(program) if args.llvm else None
    except (ck.ILError, ck.CompileError) as error:
        raise CommandError(str(error)) from None
    if args.json:
        print(json.dumps(found.as_dict() | ({"llvm": second.as_dict()} if second else {})))
    elif args.listing:
        print(code.listing())
    else:
        print(found if second is None else f"{'':<20} {'cypresskit':<14}LLVM\n{found.text(second.as_dict())}")


def published_ids() -> set[str]:
    """The kernels of which figures were published."""
    text = files("cypresskit.data").joinpath("published.json").read_text()
    return {row["id"] for row in json.loads(text)["kernels"]}


def _program(name: str):
    """The program, and the catalogue's kernel if it is one."""
    import cypresskit as ck
    from cypresskit.cli import CommandError, read_program
    from cypresskit.il.errors import nearest

    path = Path(name)
    if name not in ck.kernels and not path.suffix and not path.exists():
        guess = nearest(name, ck.kernels)
        raise CommandError(f"no kernel {name!r}, and no such file; the catalogue has {', '.join(ck.kernels)}.{guess}")
    if name in ck.kernels:
        return ck.kernels[name].program, ck.kernels[name]
    return read_program(path), None


def _llvm(program):
    from cypresskit.compiler.llvm import llvm_card

    return llvm_card(program)
