"""Represent the chip's instructions as data.

A kernel is a list of control-flow instructions (``Control``). Some start a clause: bundles of ALU
operations, or fetches. Each has the index ``at`` of the instruction in ``Program.body`` that it
came from; operations, fetches and stores have the IL line, too.
"""

from dataclasses import dataclass
from functools import cached_property

from cypresskit.compiler.ir import LdsAccess
from cypresskit.compiler.isa import OPS, HardwareOp


@dataclass(frozen=True, slots=True)
class Read:
    """An operand.

    Attributes
    ----------
    kind
        "gpr", "pv", "ps", "literal", "inline", "constant" or "queue" (the LDS queue).
    index
        Register number (from 124 on clause temporaries T0..), constant buffer, or queue (0 is A, 1
        is B).
    channel
        Channel of a register, PV or constant; dword of a literal.
    element
        Element of a constant buffer.
    bits
        Value of a literal or inline constant.
    neg
        Whether it is negated.
    """

    kind: str
    index: int = 0
    channel: int = 0
    element: int = 0
    bits: int = 0
    neg: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One slot of a bundle.

    Attributes
    ----------
    name, slot
        The operation and its slot: 0 to 3 are x y z w, 4 is t.
    channel
        The channel of the result.
    reads
        Its operands.
    dest
        (register, channel), or None if only PV or PS take the result.
    swizzle
        Its bank swizzle.
    at, line
        Its instruction's index in ``Program.body``, and its line.
    number, place
        An operation over several slots appears in each: with the same number, and its places
        counted from 0.
    lds
        What an LDS instruction accesses.
    """

    name: str
    slot: int
    channel: int
    reads: tuple[Read, ...]
    dest: tuple[int, int] | None
    swizzle: str
    at: int
    line: int
    number: int
    place: int
    lds: LdsAccess | None

    @property
    def row(self) -> HardwareOp:
        """Its row of ``isa.OPS``."""
        return OPS[self.name]

    @property
    def is_multiplication(self) -> bool:
        """Whether it multiplies two numbers."""
        return "MUL" in self.name or "FMA" in self.name

    @property
    def is_product(self) -> bool:
        """Whether it multiplies what was computed or fetched, not a constant as alpha."""
        is_constant = any(read.kind in ("constant", "literal", "inline") for read in self.reads[:2])
        return self.is_multiplication and not is_constant


@dataclass(frozen=True)
class Bundle:
    """Operations that issue together: at most one per slot, and up to four literal dwords."""

    operations: tuple[Operation, ...]
    literals: tuple[int, ...] = ()

    @cached_property
    def parts(self) -> tuple[tuple[Operation, ...], ...]:
        """The slots of each operation."""
        by_number: dict[int, list[Operation]] = {}
        for o in self.operations:
            by_number.setdefault(o.number, []).append(o)
        return tuple(map(tuple, by_number.values()))

    @cached_property
    def reads_queue(self) -> bool:
        """Whether it takes a word from the LDS queue."""
        return any(r.kind == "queue" for o in self.operations for r in o.reads)

    @property
    def filled(self) -> int:
        """The number of filled slots."""
        return len(self.operations)

    @property
    def size(self) -> int:
        """64-bit slots of the clause that it takes."""
        return len(self.operations) + (len(self.literals) + 1) // 2

    @property
    def multiplications(self) -> int:
        """Multiplications of two floats or doubles, also by constants."""
        return _multiplied([o for o in self.operations if o.is_multiplication])

    @property
    def products(self) -> int:
        """Products of two floats or doubles that were computed or fetched."""
        return _multiplied([o for o in self.operations if o.is_product])


def _multiplied(operations: list[Operation]) -> int:
    """Return how many numbers the operations of a bundle make; one of doubles takes four slots."""
    kinds = [operation.row.kind for operation in operations]
    return kinds.count("float") + min(kinds.count("double"), 1)


@dataclass(frozen=True)
class FetchInstruction:
    """SAMPLE of a texture, or MEM_READ of global memory.

    Attributes
    ----------
    name, dest
        The operation and its destination register.
    select
        For each channel of ``dest`` the component that it takes; ``_`` for none.
    source, coordinates
        The register with the coordinates, and its letters (0 and 1 are constants). Of MEM_READ: the
        register and letter that are added to the element number; None without.
    offset
        Texels added to the coordinates. Of MEM_READ: (element number,).
    at, line
        Its instruction's index in ``Program.body``, and its line.
    resource
        Texture number.
    """

    name: str
    dest: int
    select: str
    source: int | None
    coordinates: str
    offset: tuple[int, ...]
    at: int
    line: int
    resource: int


@dataclass(frozen=True)
class StoreInstruction:
    """MEM_WRITE to global memory, or EXPORT to an output.

    Attributes
    ----------
    name
        The operation.
    source, select
        The register, and for each component the channel that it takes (for an EXPORT also 0 and 1);
        ``_`` for none.
    offset, index
        The element's number, to which the x of register ``index`` is added if there is one. Of
        EXPORT: the output's number.
    at, line
        Its instruction's index in ``Program.body``, and its line.
    """

    name: str
    source: int
    select: str
    offset: int
    index: int | None
    at: int
    line: int


@dataclass(frozen=True)
class Control:
    """A control-flow instruction.

    Attributes
    ----------
    name
        Its name in the ISA.
    bundles, fetches, store
        Its clause, or its store.
    target
        Index into ``Code.controls`` that it may jump to; -1 without.
    depth
        The number of loops around it.
    at
        Its instruction's index in ``Program.body``.
    """

    name: str
    bundles: tuple[Bundle, ...] = ()
    fetches: tuple[FetchInstruction, ...] = ()
    store: StoreInstruction | None = None
    target: int = -1
    depth: int = 0
    at: int = 0

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of its bundles."""
        return tuple(o for bundle in self.bundles for o in bundle.operations)

    @property
    def accesses(self) -> tuple[FetchInstruction | StoreInstruction, ...]:
        """Its fetches, or its store."""
        return self.fetches if self.store is None else (*self.fetches, self.store)

    @property
    def slots(self) -> int:
        """64-bit slots of an ALU clause."""
        return sum(b.size for b in self.bundles)

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """Constant windows that an ALU clause locks: (buffer, first element of 32)."""
        reads = {r for o in self.operations for r in o.reads if r.kind == "constant"}
        return tuple(sorted({(r.index, r.element // 32 * 32) for r in reads}))
