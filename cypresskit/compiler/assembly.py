"""The chip's instructions as data.

A kernel is a list of control-flow instructions (``Control``). Some start a clause: bundles of ALU
operations, or fetches. Everything knows the index ``at`` of the instruction in ``Program.body``
that it came from; what computes, fetches or stores knows the line of IL, too.
"""

from dataclasses import dataclass
from functools import cached_property

from cypresskit.compiler.ir import LdsAccess
from cypresskit.compiler.isa import OPS, HardwareOp
from cypresskit.devices import TEMPORARY as TEMPORARY  # T0 is register 124


@dataclass(frozen=True, slots=True)
class Read:
    """An operand. ``kind``: "gpr" (``index``, ``channel``; from 124 on the clause temporaries
    T0..), "pv" (``channel``), "ps", "literal" (``bits``; ``channel`` its dword), "inline"
    (``bits``), "constant" (buffer ``index``, ``element``, ``channel``), "queue" (LDS queue
    ``index`` 0 for A, 1 for B).
    """

    kind: str
    index: int = 0
    channel: int = 0
    element: int = 0
    bits: int = 0
    neg: bool = False
    abs: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One slot of a bundle: slot ``slot`` (0 to 3 are x y z w, 4 is t) runs ``name`` on ``reads``.

    ``dest`` (register, channel) or None where only PV or PS take the result. An operation over
    several slots appears in each, with ``place`` counting them; they share ``number``. ``lds``:
    what an LDS instruction accesses.
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
    place: int = 0
    omod: float = 1.0
    clamp: bool = False
    lds: LdsAccess | None = None

    @property
    def row(self) -> HardwareOp:
        return OPS[self.name]


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
        """Whether it takes what an LDS read queued."""
        return any(r.kind == "queue" for o in self.operations for r in o.reads)

    @property
    def filled(self) -> int:
        return len(self.operations)

    @property
    def size(self) -> int:
        """64-bit slots of the clause."""
        return len(self.operations) + (len(self.literals) + 1) // 2


@dataclass(frozen=True)
class FetchInstruction:
    """SAMPLE or LD of ``resource`` (coordinates: letters of register ``source``, or 0 and 1), or
    MEM_READ of global element ``offset[0]`` plus, if ``source`` is a register, its ``coordinates``
    letter. ``select`` says per channel of register ``dest`` which component it takes, ``_`` for
    none.
    """

    name: str
    dest: int
    select: str
    source: int | None
    coordinates: str
    offset: tuple[int, ...]
    at: int
    line: int
    resource: int = 0


@dataclass(frozen=True)
class StoreInstruction:
    """MEM_WRITE of global element ``offset`` plus, if given, the x of register ``index``; or EXPORT
    to output ``offset``. ``select``: per component which channel of register ``source`` it takes (0
    and 1 too for an EXPORT), ``_`` for none.
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
    """A control-flow instruction: ``name`` as in the ISA; its clause, which is ``bundles`` or
    ``fetches``, or its ``store``; where it may jump to (``target``, an index into
    ``Code.controls``, or -1), how many loops are around it (``depth``), and what it came from.
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
