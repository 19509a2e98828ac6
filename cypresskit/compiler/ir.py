"""The compiler's middle form: scalar values in static single assignment, basic blocks in structured control flow.

A ``Value`` is one 32-bit word: a constant, an element of a constant buffer, a register that is filled before the kernel
starts, the result of an ``Op``, or a ``phi`` that picks the value of the edge control came along. An IL register's
components, and the two words of a double, are separate values, so that each may later live in any channel.

A ``Function`` is a list of items: blocks, and between them the words of control flow ("loop", "endloop", "if", "else",
"endif", "break", "continue"). An "if" tests the predicate that the last op of the block before it sets; every if has an
else block, perhaps empty, so every edge has a block of its own where copies can go.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cypresskit.compiler.isa import OPS
from cypresskit.il import Program

FETCHES = ("SAMPLE", "LD", "MEM_READ")
STORES = ("MEM_WRITE", "EXPORT")


class CompileError(ValueError):
    """A kernel that can't be compiled for the chip: says the IL line and the limit it runs into."""


def refuse(program: Program, at: int, what: str) -> CompileError:
    """The error for ``body[at]``, naming its line: ``what`` is wrong, and what to try."""
    return CompileError(f"{program.where(program.body[at].line)}\n    {what}")


class Value:
    """One 32-bit word. ``kind``: "const" (``bits``), "constant" (``place`` = buffer, element, channel), "input"
    (``place`` = register, channel), "op" (``op``), "phi" (``block``, ``args`` by predecessor)."""

    __slots__ = ("args", "bits", "block", "forward", "kind", "op", "place", "web")

    def __init__(self, kind: str, bits: int = 0, place: tuple[int, ...] = (), op: "Op | None" = None, block=None):
        self.kind, self.bits, self.place, self.op = kind, bits, place, op
        self.block: Block | None = block
        self.args: dict[Block, Value] = {}
        self.forward: Value | None = None
        self.web: Any = None  # the webs.Web that it joins

    def resolve(self) -> "Value":
        """The value that stands for this one after simplification."""
        value = self
        while value.forward is not None:
            value = value.forward
        if value is not self:
            self.forward = value
        return value

    @property
    def located(self) -> bool:
        """Whether it lives in a register."""
        return self.kind in ("op", "phi", "input")


class Src(NamedTuple):
    """An operand: a value, perhaps made absolute, then negated."""

    value: Value
    neg: bool = False
    abs: bool = False


@dataclass(eq=False)
class Op:
    """An operation on values. ``name`` is a row of ``isa.OPS``, or SAMPLE, LD (texture fetches), MEM_READ, MEM_WRITE
    (global memory), EXPORT (an output), LDS_POP (takes what an LDS read queued). Doubles are two sources, low first.

    ``at`` is the index in ``Program.body``. ``info`` holds what else the instruction carries: resource, offsets, mask.
    """

    name: str
    srcs: list[Src]
    at: int
    words: int = 1
    omod: float = 1.0
    clamp: bool = False
    info: dict = field(default_factory=dict)
    results: list[Value] = field(default_factory=list)

    def __post_init__(self):
        if not self.results:
            self.results = [Value("op", op=self) for _ in range(self.words)]

    @property
    def row(self) -> Any:
        """The hardware table's row, or None for fetches and memory."""
        return OPS.get(self.name)

    @property
    def effect(self) -> bool:
        """Whether it does more than compute its results."""
        if self.name in ("MEM_WRITE", "EXPORT") or (self.row and self.row.predicate):
            return True
        return self.name in ("LDS_WRITE", "LDS_WRITE_REL", "GROUP_BARRIER")

    @property
    def pure(self) -> bool:
        """Whether two such ops on the same operands give the same results."""
        return self.name in ("SAMPLE", "LD") or bool(self.row and self.row.meaning and not self.row.predicate)


@dataclass(eq=False)
class Block:
    """Ops in order. ``depth`` counts the loops around it; ``dead`` blocks are never reached."""

    depth: int = 0
    ops: list[Op] = field(default_factory=list)
    phis: list[Value] = field(default_factory=list)
    preds: list["Block"] = field(default_factory=list)
    succs: list["Block"] = field(default_factory=list)
    defs: dict = field(default_factory=dict)
    sealed: bool = True
    incomplete: dict = field(default_factory=dict)
    dead: bool = False


@dataclass(eq=False)
class Function:
    """A lowered kernel: ``items`` are blocks and control-flow words, ``inputs`` the preloaded registers it reads."""

    program: Program
    items: list[Block | str]
    inputs: list[Value]

    @property
    def blocks(self) -> Iterator[Block]:
        """All blocks, in the order of the program."""
        return (item for item in self.items if isinstance(item, Block))


def liveness(blocks: list[Block]) -> tuple[dict[Block, set], dict[Block, set]]:
    """Webs (or values, where none are set) alive at each block's start and end. A phi's argument is alive at the end of
    the predecessor it comes from; the phi itself is defined at the start of its block."""

    def key(value: Value):
        return value.web or value

    live_in: dict[Block, set] = {b: set() for b in blocks}
    live_out: dict[Block, set] = {b: set() for b in blocks}
    use, define = {}, {}
    for b in blocks:
        reads: set = set()
        writes = {key(p) for p in b.phis}
        for op in b.ops:
            reads |= {key(s.value) for s in op.srcs if s.value.located} - writes
            writes |= {key(r) for r in op.results}
        use[b], define[b] = reads, writes
    passed = {
        b: {s: {key(p.args[b]) for p in s.phis if b in p.args and p.args[b].located} for s in b.succs} for b in blocks
    }
    changed = True
    while changed:
        changed = False
        for b in reversed(blocks):
            out: set = set()
            for s in b.succs:
                out |= live_in[s] | passed[b][s]
            if out != live_out[b]:
                live_out[b] = out
                changed = True
            new = use[b] | (out - define[b])
            if new != live_in[b]:
                live_in[b] = new
                changed = True
    return live_in, live_out
