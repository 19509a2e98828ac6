"""Compile an IL program to VLIW code for a device, as AMD's driver did when it loaded a kernel.

The passes, each a module, in their order:

1. ``lower``: IL to scalar operations in SSA form (with ``ssa``, ``sources``, ``expansion``).
2. ``simplify``: fewer operations; reads of the LDS in pairs.
3. ``vregs``: virtual registers: which words share one (``coalescing``, with ``liveness``), and
   which of them must be together (``constraints``, with ``register_channels``).
4. ``schedule``: clauses, bundles, and the channel of every virtual register (``blocks``, with
   ``block_problem`` and ``ports``).
5. ``allocate``: register numbers.
6. ``emit``: hardware code.

``ir`` defines what the passes work on, ``isa`` the chip's operations, ``assembly`` its
instructions, and ``code`` the result with its statistics and its ``listing``. Left out: spilling
registers to memory, and moving code from block to block. ``llvm`` compiles with another compiler.
"""

from functools import lru_cache, partial

from cypresskit.compiler.allocate import allocate
from cypresskit.compiler.assembly import Bundle, Control
from cypresskit.compiler.code import Code, KernelStats
from cypresskit.compiler.emit import emit
from cypresskit.compiler.ir import CompileError
from cypresskit.compiler.llvm import compile_with_llvm
from cypresskit.compiler.lower import lower
from cypresskit.compiler.schedule import schedule
from cypresskit.compiler.simplify import simplify
from cypresskit.compiler.target import Target
from cypresskit.compiler.vregs import assign_vregs
from cypresskit.devices import HD5870, Device, check_device
from cypresskit.files import result_cache
from cypresskit.il import Program
from cypresskit.il.errors import shorten

__all__ = [
    "Bundle",
    "Code",
    "CompileError",
    "Control",
    "KernelStats",
    "compile",
]


COMPILERS = "cypresskit", "llvm"


def compile(program: Program, device: Device = HD5870, by: str = "cypresskit") -> Code:
    """Compile an assembled kernel. The latest results are cached.

    Parameters
    ----------
    program
        The kernel.
    device
        The board to compile for.
    by
        The compiler: "cypresskit" or "llvm".

    Raises
    ------
    CompileError
        If the kernel needs more registers, LDS or doubles than the chip has, or has a loop without
        an exit. The message names the IL line. By LLVM also for what that can't compile.
    TypeError
        If ``device`` isn't a board.
    ValueError
        For another compiler.
    """
    check_device(device)
    if by not in COMPILERS:
        raise ValueError(f'by is the compiler, "cypresskit" or "llvm", not {shorten(by)}')
    source = program.meaning, tuple((i.line, i.call) for i in program.expanded)
    if by == "llvm":
        return compile_with_llvm(program, device, (program.name, program.lines, source))
    code = _compiled(program, Target.of(device), source)
    return Code(*code, program, device)


@lru_cache(maxsize=128)
def _compiled(
    program: Program, target: Target, source: tuple[object, ...]
) -> tuple[tuple[Control, ...], int, int]:
    """Return the controls, registers and temporaries, from disk if they are there. ``source`` is a
    program's meaning and lines: equal programs may differ in their lines, which the controls have.
    """
    key = result_cache.hash_key("code", source, target)
    return result_cache.load_or_compute(key, partial(_run_passes, program, target))


def forget() -> None:
    """Clear the cache of what this compiler compiled; that on disk stays."""
    _compiled.cache_clear()


def _run_passes(program: Program, target: Target) -> tuple[tuple[Control, ...], int, int]:
    """Return the controls, registers and temporaries."""
    function = lower(program, target)
    simplify(function)
    assign_vregs(function)
    plans = schedule(function, target)
    allocation = allocate(function, plans, target)
    return emit(function, plans, allocation), allocation.registers, allocation.temporaries
