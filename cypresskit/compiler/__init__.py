"""The shader compiler: an IL program to VLIW code for a device, as AMD's driver did when it loaded
a kernel.

The passes, each a module, in their order; ``search`` runs them, and says which variants it tries:

1. ``lower``: IL to scalar operations in SSA form (with ``ssa``, ``sources``, ``expansion``);
2. ``simplify``: fewer of them, and reads of the LDS in pairs;
3. ``vregs``: which words share a place (``coalescing``, with ``liveness``), and which places belong
   together (``constraints``, with ``register_channels``);
4. ``schedule``, or ``inorder`` in AMD's style: clauses and bundles, and the channel of every
   virtual register (``blocks``, with ``block_problem`` and ``ports``);
5. ``allocate``: registers; ``emit``: hardware code.

``ir`` is what they work on, ``isa`` the chip's operations; ``assembly`` has its instructions as
data, and ``code`` the result and its card, with its ``listing``.
"""

from functools import lru_cache

from cypresskit.compiler.assembly import (
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.code import Code, KernelCard, MachineCode
from cypresskit.compiler.ir import CompileError, Function
from cypresskit.compiler.search import in_order, look_ahead
from cypresskit.devices import HD5870, CodeLimits, Device
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
    "passes",
]

STYLES = ("amd", "best")


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


def passes(program: Program, device: Device = HD5870, style: str = "amd") -> list[tuple[str, str]]:
    """What the program looks like after each pass of the compiler: (name of the pass, text) in
    order, of the attempt that ``compile`` keeps. The last is the listing.

    Words are named ``w0`` on in the order in which they are defined; ``w7@v3.x`` is a word that
    lives in channel x of virtual register 3.

    >>> for name, text in passes(ck.kernels["sgemv_t"].program):
    ...     print(name, text, sep="\\n")
    """
    printed: list[tuple[str, str]] = []

    def watch(name: str, function: Function) -> None:
        printed.append((name, str(function)))

    code = compile(program, device, style)
    if style == "amd":
        in_order(program, device.limits, watch)
    else:
        look_ahead(program, device, watch)
    last = max(n for n, (name, _) in enumerate(printed) if name == "lower")
    return [*printed[last:], ("emit", code.listing())]


# Equal programs may differ in name and lines, which belong to the keys below: an error shows both,
# and so does ``Code``. What doesn't fit isn't kept, and machine code knows the lines alone.


def forget_code() -> None:
    """Forget the code that is kept of programs, which a process that sees many has no use for."""
    _compiled.cache_clear()
    _in_order.cache_clear()


@lru_cache(maxsize=128)
def _compiled(program: Program, device: Device, style: str, *_names: object) -> Code:
    if style == "amd":
        made = _in_order(program, device.limits, program.lines)
    else:
        made = look_ahead(program, device)
    return Code(program, device, *made)


@lru_cache(maxsize=128)
def _in_order(program: Program, limits: CodeLimits, _lines: tuple[str, ...]) -> MachineCode:
    """Style "amd" reads no more of a device than its limits: boards alike in them share code."""
    return in_order(program, limits)
