"""The shader compiler: an IL program to VLIW code for a device, as AMD's driver did when it loaded a kernel.

The passes, each a module, in their order:

1. ``lower``: IL to scalar operations in SSA form (with ``ssa``, ``operands``, ``arithmetic``, ``flow``);
2. ``simplify``: fewer of them (``offsets`` of fetches, ``lds_pairs``); ``hoist``: out of loops what these don't change;
3. ``webs``: which values share a place; ``ties``: which places belong together;
4. ``schedule``: clauses and bundles, and the channel of every web (``dependences``, ``bundles``, ``ports``);
5. ``allocate``: registers; ``emit``: hardware code.

``ir`` is what they work on, ``isa`` the chip's operations, ``code`` the result as data. ``execute`` runs it,
``legality`` checks it against the rules, ``listing`` and ``card`` (with ``sums``) show it, and ``llvm`` asks LLVM's
back end for this chip for a second opinion.
"""

from cypresskit.compiler.allocate import allocate
from cypresskit.compiler.card import Card, card_table, kernel_card
from cypresskit.compiler.code import Bundle, Clause, Code, Control, Fetch, Operation, Read, Store
from cypresskit.compiler.emit import emit
from cypresskit.compiler.hoist import clocks, hoist
from cypresskit.compiler.ir import CompileError
from cypresskit.compiler.lower import lower
from cypresskit.compiler.schedule import schedule
from cypresskit.compiler.simplify import simplify
from cypresskit.compiler.sums import products
from cypresskit.compiler.ties import tie
from cypresskit.compiler.webs import build
from cypresskit.devices import HD5870, Device
from cypresskit.il import Program

__all__ = [
    "Bundle",
    "Card",
    "Clause",
    "Code",
    "CompileError",
    "Control",
    "Fetch",
    "Operation",
    "Read",
    "Store",
    "card_table",
    "compile",
    "kernel_card",
]


def compile(program: Program, device: Device = HD5870) -> Code:
    """Compile an assembled kernel for ``device``.

    What leaves a loop is decided by trying: nothing, all that may be worth it, and parts of that.

    Raises ``CompileError``, which names the IL line, if the kernel needs more than the chip has (registers, LDS,
    doubles), or has a loop that nothing leaves.
    """
    if not isinstance(program, Program):
        raise TypeError(f"compile takes a Program, not {type(program).__name__}: assemble the IL text first")
    plain, most = _translate(program, device, 0)
    best = plain
    for words in (most, most // 2, most // 4):
        if words:
            try:
                code, _ = _translate(program, device, words)
            except CompileError:  # too many registers
                continue
            if clocks(code) < clocks(best):
                best = code
            if code.gprs <= plain.gprs:
                break
    return best


def _translate(program: Program, device: Device, words: int) -> tuple[Code, int]:
    """The code, where at most ``words`` results leave a loop that doesn't change them, and how many are worth it."""
    function = lower(program, device)
    simplify(function)
    most = hoist(function, words)
    if words:
        simplify(function)  # what came out of a loop may be computed before it already
    sums = products(function)
    tie(function, build(function))
    steps, bounds = schedule(function, device)
    return emit(function, steps, allocate(function, steps, device), device, bounds | {"products": sums}), most
