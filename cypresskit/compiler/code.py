"""Compiled code as data: what the listing prints, the legality checker checks, and the executor runs.

A kernel is a list of control-flow instructions (``Control``). Some start a clause: bundles of ALU operations, or
fetches. Everything knows the index ``at`` of the instruction in ``Program.body`` that it came from, and its IL line.
"""

from dataclasses import dataclass, field
from functools import cached_property

from cypresskit.compiler.isa import OPS, HardwareOp
from cypresskit.devices import Device
from cypresskit.il import Program

TEMPORARY = 124  # T0 is register 124 (ISA 4.6)


@dataclass(frozen=True)
class Read:
    """An operand. ``kind``: "gpr" (``index``, ``channel``; from 124 on the clause temporaries T0..), "pv"
    (``channel``), "ps", "literal" (``bits``; ``channel`` its dword), "inline" (``bits``), "constant" (buffer ``index``,
    ``element``, ``channel``), "queue" (LDS queue ``index`` 0 for A, 1 for B)."""

    kind: str
    index: int = 0
    channel: int = 0
    element: int = 0
    bits: int = 0
    neg: bool = False
    abs: bool = False


@dataclass(frozen=True)
class Operation:
    """One slot of a bundle: slot ``slot`` (0 to 3 are x y z w, 4 is t) runs ``name`` on ``reads``.

    ``dest`` (register, channel) or None where only PV or PS take the result. An operation over several slots appears in
    each, with ``place`` counting them; they share ``number``. ``offset``: of LDS instructions, in words.
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
    offset: int = 0
    lds: tuple[int, int, int] = (0, 0, 0)  # block, its first byte, its bytes

    @property
    def row(self) -> HardwareOp:
        """The hardware table's row."""
        return OPS[self.name]


@dataclass(frozen=True)
class Bundle:
    """What issues together: at most one operation per slot, and up to four literal dwords."""

    operations: tuple[Operation, ...]
    literals: tuple[int, ...] = ()

    @property
    def filled(self) -> int:
        """VLIW slots that do something."""
        return len(self.operations)

    @property
    def size(self) -> int:
        """64-bit slots of the clause."""
        return len(self.operations) + (len(self.literals) + 1) // 2


@dataclass(frozen=True)
class Fetch:
    """SAMPLE or LD of ``resource`` (coordinates: letters of register ``source``, or 0 and 1), or MEM_READ of global
    element ``offset[0]`` plus, if ``source`` is a register, its ``coordinates`` letter. ``select`` says per channel of
    register ``dest`` which component it takes, ``_`` for none."""

    name: str
    dest: int
    select: str
    source: int | None
    coordinates: str
    offset: tuple[int, ...]
    at: int
    line: int
    resource: int = 0
    unnormalised: bool = True


@dataclass(frozen=True)
class Store:
    """MEM_WRITE of global element ``offset`` plus, if given, the x of register ``index``; or EXPORT to output
    ``offset``. ``select``: per component which channel of register ``source`` it takes (0 and 1 too for an EXPORT),
    ``_`` for none."""

    name: str
    source: int
    select: str
    offset: int
    index: int | None
    at: int
    line: int


@dataclass(frozen=True)
class Clause:
    """``kind`` "ALU" with ``bundles``, or "TEX" with ``fetches``."""

    kind: str
    bundles: tuple[Bundle, ...] = ()
    fetches: tuple[Fetch, ...] = ()

    @property
    def slots(self) -> int:
        """64-bit slots of an ALU clause."""
        return sum(b.size for b in self.bundles)

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """Constant windows it locks: (buffer, first element of 32)."""
        reads = {r for b in self.bundles for o in b.operations for r in o.reads if r.kind == "constant"}
        return tuple(sorted({(r.index, r.element // 32 * 32) for r in reads}))


@dataclass(frozen=True)
class Control:
    """A control-flow instruction: ``name`` as in the ISA, its ``clause`` or ``store``, where it may jump to
    (``target``, an index into ``Code.controls``), how many loops are around it (``depth``), and what it came from."""

    name: str
    clause: Clause | None = None
    store: Store | None = None
    target: int | None = None
    depth: int = 0
    at: int = 0
    line: int = 0


@dataclass(frozen=True, eq=False)
class Code:
    """A compiled kernel: ``gprs`` registers per work-item, ``temporaries`` T registers used. ``bounds`` is what the
    compiler knew of the IL for the card: ``registers`` that the innermost loop needs in its own order, and how many
    ``products`` each of the main loop's sums takes."""

    program: Program
    device: Device
    controls: tuple[Control, ...]
    gprs: int
    temporaries: int = 0
    bounds: dict = field(default_factory=dict, repr=False)

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """All clauses in order."""
        return tuple(c.clause for c in self.controls if c.clause is not None)

    @property
    def wavefronts(self) -> int:
        """Wavefronts that the registers let live on a SIMD engine."""
        return min(self.device.register_pool // self.gprs, self.device.max_wavefronts)

    @cached_property
    def main_loop(self) -> tuple[Control, ...]:
        """The controls of the innermost loop that has the most bundles, or all of them if there is no loop."""
        best: tuple[Control, ...] = ()
        depth = max((c.depth for c in self.controls), default=0)
        if not depth:
            return self.controls
        run: list[Control] = []
        for control in (*self.controls, Control("END")):
            if control.depth == depth:
                run.append(control)
                if control.name == "LOOP_END":
                    best = max(best, tuple(run), key=_work)
                    run = []
            else:
                run = []
        return best

    def listing(self) -> str:
        """The code in the manner of AMD's disassembly."""
        from cypresskit.compiler.listing import listing

        return listing(self)

    def card(self, k_per_iteration: int | None = None):
        """The kernel card; see ``compiler.card``."""
        from cypresskit.compiler.card import card

        return card(self, k_per_iteration)

    def __str__(self) -> str:
        return self.listing()


def _work(controls: tuple[Control, ...]) -> int:
    return sum(len(c.clause.bundles) + len(c.clause.fetches) for c in controls if c.clause is not None)
