"""The shader compiler: an IL program to VLIW code for a device, as AMD's driver did when it loaded
a kernel.

The passes, each a module, in their order; ``search`` runs them, and says which variants it tries:

1. ``lower``: IL to scalar operations in SSA form (with ``ssa``, ``sources``, ``expansion``);
2. ``simplify``: fewer of them, and reads of the LDS in pairs;
3. ``vregs``: which words share a place, and which places belong together;
4. ``schedule``, or ``inorder`` in AMD's style: clauses and bundles, and the channel of every
   virtual register (``blocks``, with ``block_problem`` and ``ports``);
5. ``allocate``: registers; ``emit``: hardware code.

``ir`` is what they work on, ``isa`` the chip's operations; ``assembly`` has its instructions as
data, and ``code`` the result and its card, with its ``listing``. ``legality`` checks it against the
rules.
"""

from dataclasses import replace
from functools import lru_cache

from cypresskit.compiler.assembly import (
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.code import Code, KernelCard, kernel_card
from cypresskit.compiler.ir import CompileError
from cypresskit.compiler.search import STYLES
from cypresskit.devices import HD5870, Device
from cypresskit.il import Program

__all__ = [
    "STYLES",
    "Bundle",
    "Code",
    "CompileError",
    "Control",
    "FetchInstruction",
    "KernelCard",
    "Operation",
    "Read",
    "StoreInstruction",
    "compile",
    "kernel_card",
]

READ = (
    "name",
    "gpr_limit",
    "clause_temporaries",
    "tex_clause_fetches",
    "alu_clause_slots",
    "wavefront",
    "lds_bytes",
    "double_fmas",
)
"""The fields of a device that style "amd" reads."""


def compile(program: Program, device: Device = HD5870, style: str = "amd") -> Code:
    """Compile an assembled kernel for ``device``. ``style``: "amd" packs as the compiler did that
    came with the chip (``inorder``), "best" looks for the fastest code (``search``). The last
    results are kept.

    Raises ``CompileError``, which names the IL line, if the kernel needs more than the chip has
    (registers, LDS, doubles), or has a loop that nothing leaves; ``ValueError`` for another style,
    ``TypeError`` for what isn't a ``Device``.
    """
    if not isinstance(program, Program):
        raise TypeError(
            f"compile takes a Program, not {type(program).__name__}: write ck.assemble(text) of IL"
            " text, or a kernel's .program, such as ck.kernels['sgemm_tn'].program"
        )
    if not isinstance(device, Device):
        raise TypeError(f"device is a Device, such as ck.HD5870, not {device!r}")
    if style not in STYLES:
        raise ValueError(f"style {style!r} is not one of {', '.join(map(repr, STYLES))}")
    return _compiled(program, device, style, program.name, program.lines)


@lru_cache(maxsize=128)
def _compiled(program: Program, device: Device, style: str, *shown: object) -> Code:
    """The code of a program. Name and lines, which errors show, are arguments: equal programs may
    differ in them. Devices that differ only in what style "amd" doesn't read share what it
    makes.
    """
    if (
        style == "amd"
        and (alike := replace(HD5870, **{name: getattr(device, name) for name in READ})) != device
    ):
        return replace(_compiled(program, alike, style, *shown), device=device)
    return STYLES[style](program, device)
