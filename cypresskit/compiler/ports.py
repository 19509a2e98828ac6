"""Read ports and constants: which operands a bundle can read at once.

A bundle reads registers in three cycles; in each, every channel's memory gives one register's word, to all slots that
read it. A slot's bank swizzle says in which cycle it takes each operand; t has four swizzles of its own and loses a
cycle to each constant it reads (ISA 4.7). ``fit`` searches the swizzles, the newest units first in the free ports, then
all anew.
"""

from collections.abc import Iterable
from typing import NamedTuple

from cypresskit.compiler.ir import Op, Src
from cypresskit.compiler.isa import INLINE, SCALAR_SWIZZLES, SIGN, VECTOR_SWIZZLES

VECTOR = tuple(VECTOR_SWIZZLES.items())
TRIES = 600  # steps of a search before it is given up


class Unit(NamedTuple):
    """``reads``: per operand (channel, word) or None where no port is needed; ``options``: cycles per operand for each
    swizzle that is allowed, as (swizzle, cycles)."""

    reads: tuple
    options: tuple


def unit(reads: list, scalar: bool, constants: int = 0, forwarded: tuple[int, ...] = ()) -> Unit:
    """The unit of a slot: ``constants`` its constant operands, ``forwarded`` the places of PV and PS (t slot only)."""
    if len(reads) > 1 and reads[0] is not None and reads[0] == reads[1] and not scalar:
        reads = [reads[0], None, *reads[2:]]
    if not scalar:
        return Unit(tuple(reads), VECTOR)
    held = [n for n, read in enumerate(reads) if read is not None] + list(forwarded)
    options = ((name, c) for name, c in SCALAR_SWIZZLES.items() if all(c[n] >= constants for n in held))
    return Unit(tuple(reads), tuple(options))


class Ports:
    """The ports of the bundle being built: ``units`` placed so far and the ``swizzles`` chosen for them."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.swizzles: list[str] = []
        self.table: list = [None] * 12
        self.banks: tuple[set, ...] = (set(), set(), set(), set())

    def fit(self, new: list[Unit]) -> bool:
        """Add units, if swizzles exist; else change nothing."""
        added: list[tuple[int, object]] = []
        for u in new:
            if not u.options:
                return self.forget(added)
            for read in u.reads:
                if read is not None and read[1] not in (bank := self.banks[read[0]]):
                    bank.add(read[1])
                    added.append(read)
                    if len(bank) > 3:
                        return self.forget(added)
        chosen = [""] * len(new)
        self.steps = 0
        if _search(self, new, 0, self.table, chosen):
            self.units += new
            self.swizzles += chosen
            return True
        old, units = len(self.units), self.units + new
        order = sorted(range(len(units)), key=lambda n: (-sum(r is not None for r in units[n].reads), n < old))
        chosen, table = [""] * len(units), [None] * 12
        if _search(self, [units[n] for n in order], 0, table, chosen):
            self.units, self.table = units, table
            self.swizzles = [name for _, name in sorted(zip(order, chosen))]
            return True
        return self.forget(added)

    def forget(self, added: list) -> bool:
        """Take words back that found no port."""
        for channel, word in added:
            self.banks[channel].discard(word)
        return False


def _search(ports: Ports, units: list[Unit], n: int, table: list, chosen: list[str]) -> bool:
    """Find swizzles for units ``n`` and up; ``table`` holds the word that each port reads."""
    if n == len(units):
        return True
    reads, options = units[n]
    for name, cycles in options:
        ports.steps += 1
        if ports.steps > TRIES:
            return False
        taken = []
        for cycle, read in zip(cycles, reads):
            if read is None:
                continue
            cell = 4 * cycle + read[0]
            held = table[cell]
            if held is None:
                table[cell] = read[1]
                taken.append(cell)
            elif held is not read[1]:
                break
        else:
            if _search(ports, units, n + 1, table, chosen):
                chosen[n] = name
                return True
        for cell in taken:
            table[cell] = None
    return False


class Constants(NamedTuple):
    """What operands take besides registers: ``literals``, ``pairs`` of channels in constant buffers (buffer, element,
    half), and the ``windows`` of 32 elements that these lie in (buffer, number)."""

    literals: set[int]
    pairs: set[tuple[int, int, int]]
    windows: set[tuple[int, int]]

    @property
    def fit(self) -> bool:
        """Whether a bundle can hold them, and the clause their windows."""
        return len(self.literals) <= 4 and len(self.pairs) <= 2 and len(self.windows) <= 2

    @property
    def size(self) -> int:
        """64-bit slots of the clause that the literals take."""
        return (len(self.literals) + 1) // 2


def constants_of(ops: Iterable[Op]) -> Constants:
    """What the operands of ``ops`` take."""
    found = Constants(set(), set(), set())
    for op in ops:
        for n, src in enumerate(op.srcs):
            if src.value.kind == "constant":
                buffer, element, channel = src.value.place
                found.pairs.add((buffer, element, channel // 2))
                found.windows.add((buffer, element // 32))
            elif needs_literal(op, n, src):
                found.literals.add(src.value.bits)
    return found


def needs_literal(op: Op, n: int, src: Src) -> bool:
    """Whether an operand is a constant that is not inline, nor, where floats allow it, inline and negated."""
    if src.value.kind != "const" or src.value.bits in INLINE:
        return False
    return not (op.takes_float(n) and src.value.bits ^ SIGN in (0x3F800000, 0x3F000000, 0))
