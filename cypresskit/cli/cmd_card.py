"""`cypresskit card`: what the compiler makes of a kernel, beside what was published, and LLVM's second opinion."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cypresskit.cli.command import CommandError, command, json_option, option, show
from cypresskit.cli.files import is_file, read_program

if TYPE_CHECKING:
    from cypresskit.il import Program
    from cypresskit.kernels import Kernel


@command(
    "card",
    "show what the compiler makes of a kernel",
    "KERNEL is a name of the catalogue (`cypresskit kernels`) or an IL file. The card tells registers, wavefronts, the "
    "loop's bundles and slots, fetches, nominal Gflop/s, what binds, and the lower bounds.",
    option("kernel", metavar="KERNEL", nargs="?", help="a kernel's name, or FILE.il"),
    option("--all", action="store_true", help="the kernels with published figures, published against compiled"),
    option("--markdown", action="store_true", help="with --all: the table as Markdown (also the default)"),
    option(
        "--style", choices=("amd", "best"), default="amd", help="as AMD's compiler did (default), or the fastest code"
    ),
    option("--listing", action="store_true", help="the compiled code, in the manner of AMD's disassembly"),
    option("--llvm", action="store_true", help="compile the same IL with LLVM's back end for this chip too"),
    json_option("the card's fields"),
    example="cypresskit card sgemm_tn --llvm",
)
def card(args: argparse.Namespace) -> None:
    """Print the card, the listing or the table."""
    import cypresskit as ck
    from cypresskit import published
    from cypresskit.compiler import kernel_card
    from cypresskit.compiler.fetch_order import fetch_order
    from cypresskit.compiler.llvm import llvm_card

    if args.all:
        kernels = [kernel for kernel in ck.kernels.values() if kernel.name in published.kernels()]
        cards = [kernel_card(kernel, ck.compile(kernel.program)).as_dict() for kernel in kernels] if args.json else []
        show(args, cards, None if args.json else card_table(kernels))
        return
    if not args.kernel:
        raise CommandError("name a kernel or an IL file, or say --all; `cypresskit kernels` lists the kernels.")
    try:
        program, known = _program(args.kernel)
        code = ck.compile(program, style=args.style)
        found = kernel_card(known, code) if known else code.card()
        second = llvm_card(program).as_dict() if args.llvm else None
    except (ck.ILError, ck.CompileError) as error:
        raise CommandError(str(error)) from None
    text = str(found) if second is None else f"{'':<20} {'cypresskit':<14}LLVM\n{found.text(second)}"
    text += "" if known else f"\n{fetch_order(code, args.style)}"
    show(args, found.as_dict() | ({"llvm": second} if second else {}), code.listing() if args.listing else text)


def card_table(kernels: Iterable[Kernel]) -> str:
    """Published against compiled, as a Markdown table."""
    import cypresskit as ck
    from cypresskit import published
    from cypresskit.compiler import kernel_card

    head = ["registers, published", "amd", "best", "bundles per turn, published", "amd", "best", "bound"]
    head += ["4 and 5 slots, published", "amd", "best"]
    lines = [f"| kernel | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for kernel in kernels:
        row = published.kernels().get(kernel.name, {})
        amd, best = (kernel_card(kernel, ck.compile(kernel.program, style=style)) for style in ("amd", "best"))
        gprs = row.get("gprs", row.get("floats", 0) // 4) or "-"
        shares = f"{row['slots4_pct'] + row['slots5_pct']:.1f} %" if "slots4_pct" in row else "-"
        turn = f"{amd.loop_bundles} ({amd.k_per_iteration} k)"
        cells = (
            gprs,
            amd.gprs,
            best.gprs,
            row.get("bundles", "-"),
            turn,
            best.loop_bundles,
            best.bundles_bound,
            shares,
        )
        filled = (f"{card.slots4_pct + card.slots5_pct:.1f} %" for card in (amd, best))
        lines.append(f"| `{kernel.name}` | {' | '.join(map(str, (*cells, *filled)))} |")
    return "\n".join(lines)


def _program(name: str) -> tuple[Program, Kernel | None]:
    """The program, and the catalogue's kernel if it is one."""
    import cypresskit as ck
    from cypresskit.il.errors import nearest

    if is_file(name):
        return read_program(Path(name)), None
    if name not in ck.kernels:
        guess = nearest(name, ck.kernels)
        raise CommandError(f"no kernel {name!r}, and no such file; the catalogue has {', '.join(ck.kernels)}.{guess}")
    return ck.kernels[name].program, ck.kernels[name]
