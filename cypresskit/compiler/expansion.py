"""Expand one component of an arithmetic instruction into operations of the chip.

Most IL opcodes are one operation. ``REWRITES`` has the others: division by reciprocal and
correction, multiplication by a power of two as a shift. A comparison that the chip lacks is made
with its operands exchanged. ``b`` is the builder that operations are appended to.
"""

from collections.abc import Callable
from functools import partial

from cypresskit.compiler.ir import Src, Word
from cypresskit.compiler.isa import comparison
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.il import Opcode
from cypresskit.il.bits import ALL


class _Chip:
    """Appends the chip's operations by name: ``chip.ADD(a, b)`` returns the word that an ADD makes.
    Operands are words, sources, or integers.
    """

    def __init__(self, builder: OpBuilder):
        self.builder = builder
        self.plain = builder.plain

    def __getattr__(self, name: str) -> Callable[..., Word]:
        return partial(self.builder.emit, name)

    def times(self, a: Src, n: Src) -> Word:
        return self.builder.multiply(a.value, n.value)


def _mov(chip: _Chip, a: Src) -> Word:
    """Copy. This takes no operation unless it loads a constant or modifies its operand."""
    op = a.value.op
    loads = a.value if op is None or op.name != "MOV" else op.srcs[0].value
    return chip.MOV(a) if loads.kind == "const" else chip.plain(a)


def _shift(name: str) -> Callable[[_Chip, Src, Src], Word]:
    """Return a shift by the low five bits of the count, as IL defines it; the chip gives 0 for
    counts above 31.
    """

    def shifted(chip: _Chip, a: Src, count: Src) -> Word:
        known = count.value.kind == "const"
        low = count.value.bits & 31 if known else chip.AND_INT(count, 31)
        return getattr(chip, name)(a, low)

    return shifted


def _quotient(chip: _Chip, a: Src, n: Src) -> Word:
    quotient = chip.MUL_IEEE(a, chip.RECIP_IEEE(n))
    return chip.DIV_IEEE(chip.plain(a), chip.plain(n), quotient)


def _whole_quotient(chip: _Chip, a: Src, n: Src) -> Word:
    quotient, _, more = _divided(chip, a, n)
    return chip.CNDE_INT(n, ALL, chip.SUB_INT(quotient, more))


def _remainder(chip: _Chip, a: Src, n: Src) -> Word:
    _, left, more = _divided(chip, a, n)
    return chip.CNDE_INT(n, ALL, chip.SUB_INT(left, chip.AND_INT(more, n)))


def _divided(chip: _Chip, a: Src, n: Src) -> tuple[Word, Word, Word]:
    """Return (a / n by reciprocal, at most one too small; the remainder; -1 where it is one too
    small).
    """
    quotient = chip.MULHI_UINT(chip.RECIP_UINT(n), a)
    left = chip.SUB_INT(a, chip.MULLO_INT(quotient, n))
    return quotient, left, chip.SETGE_UINT(left, n)


#: Opcodes without an operation of the chip, and what they become; others may compute the same
#: (``Opcode.same``).
REWRITES: dict[str, Callable[..., Word]] = {
    "mov": _mov,
    "sub": lambda chip, a, b: chip.ADD(a, b._replace(neg=not b.neg)),
    "div": _quotient,
    "inegate": lambda chip, a: chip.SUB_INT(0, a),
    "imul": lambda chip, a, b: chip.times(a, b),
    "imad": lambda chip, a, b, c: chip.ADD_INT(chip.times(a, b), c),
    "udiv": _whole_quotient,
    "umod": _remainder,
    "ishl": _shift("LSHL_INT"),
    "ushr": _shift("LSHR_INT"),
    "cmov_logical": lambda chip, a, b, c: chip.CNDE_INT(a, chip.plain(c), chip.plain(b)),
}


def scalar(b: OpBuilder, opcode: Opcode, srcs: list[Src]) -> Word:
    """Append one component of an instruction. Return its result."""
    name = opcode.same or opcode.name
    if name in REWRITES:
        return REWRITES[name](_Chip(b), *srcs)
    if opcode.relation:
        compare, srcs = comparison(opcode.relation, opcode.sources[0], srcs)
        return b.emit(compare, *srcs)
    return b.emit(opcode.hardware, *srcs)
