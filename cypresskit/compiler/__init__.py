"""The shader compiler: an IL program to VLIW code for a device, as AMD's driver did when it loaded
a kernel.

The passes, each a module, in their order:

1. ``lower``: IL to scalar operations in SSA form (with ``ssa``, ``sources``, ``expansion``);
2. ``simplify``: fewer of them, and reads of the LDS in pairs;
3. ``vregs``: which words share a place (``coalescing``, with ``liveness``), and which places belong
   together (``constraints``, with ``register_channels``);
4. ``schedule``: clauses and bundles, and the channel of every virtual register (``blocks``, with
   ``block_problem`` and ``ports``);
5. ``allocate``: registers; ``emit``: hardware code.

If registers run out, fewer fetches are gathered. ``ir`` is what the passes work on, ``isa`` the
chip's operations; ``assembly`` has its instructions as data, and ``code`` the result and its card,
with its ``listing``.
"""

from functools import lru_cache

from cypresskit.compiler.allocate import allocate
from cypresskit.compiler.assembly import (
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.code import Code, KernelCard, MachineCode
from cypresskit.compiler.emit import emit
from cypresskit.compiler.ir import CompileError
from cypresskit.compiler.lower import lower
from cypresskit.compiler.schedule import schedule
from cypresskit.compiler.simplify import simplify
from cypresskit.compiler.vregs import assign_vregs
from cypresskit.devices import HD5870, CodeLimits, Device, check_device
from cypresskit.il import Program

__all__ = [
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
]

GATHER = (128, 16, 8, 4, 2, 1)  # fetches of a block that go together, until registers suffice


def compile(program: Program, device: Device = HD5870) -> Code:
    """Compile an assembled kernel for ``device``. The last results are kept.

    Raises ``CompileError``, which names the IL line, if the kernel needs more than the chip has
    (registers, LDS, doubles), or has a loop that nothing leaves; ``TypeError`` for what isn't a
    ``Device``.
    """
    if not isinstance(program, Program):
        raise TypeError(
            f"compile takes a Program, not {type(program).__name__}: write ck.assemble(text) of IL"
            " text, or a kernel's .program, such as ck.kernels['sgemm_tn'].program"
        )
    check_device(device)
    return _compiled(program, device, program.name, program.lines)


# Equal programs may differ in name and lines, which belong to the keys below: an error shows both,
# and so does ``Code``. What doesn't fit isn't kept, and machine code knows the lines alone.


def forget_code() -> None:
    """Forget the code that is kept of programs, which a process that sees many has no use for."""
    _compiled.cache_clear()
    _shared.cache_clear()


@lru_cache(maxsize=128)
def _compiled(program: Program, device: Device, *_names: object) -> Code:
    return Code(program, device, *_shared(program, device.limits, program.lines))


@lru_cache(maxsize=128)
def _shared(program: Program, limits: CodeLimits, _lines: tuple[str, ...]) -> MachineCode:
    """The code that all boards alike in their limits share: of the first attempt whose registers
    suffice.
    """
    refused: list[CompileError] = []
    for gather in GATHER:
        function = lower(program, limits)
        simplify(function)
        assign_vregs(function)
        try:
            plans, source_gprs = schedule(function, limits, gather)
            allocation = allocate(function, plans, limits)
        except CompileError as error:
            refused.append(error)
            continue
        controls = emit(function, plans, allocation)
        return MachineCode(controls, allocation.registers, allocation.temporaries, source_gprs)
    raise refused[0]
