"""The compiler's middle form: scalar words in static single assignment, basic blocks in structured
control flow.

A ``Word`` is 32 bits: a constant, an element of a constant buffer, a register that is filled before
the kernel starts, the result of an ``Op``, or a ``phi`` that picks the word of the edge control
came along. An IL register's components, and the two words of a double, are separate words, so that
each may later live in any channel.

A ``Function`` is a list of items: blocks, and between them the keywords of control flow ("loop",
"endloop", "if", "else", "endif", "break", "continue"). An "if" tests the predicate that the last op
of the block before it sets; every if has an else block, perhaps empty, so every edge has a block of
its own where copies can go.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from cypresskit.compiler.isa import OPS, HardwareOp
from cypresskit.il import Program

LOW, HIGH, ANY = 0b0101, 0b1010, 0b1111  # channels by bit: x and z, y and w, all


@cache
def const(bits: int) -> "Word":
    """The word of 32 bits that are known."""
    return Word("const", bits=bits)


class CompileError(ValueError):
    """A kernel that can't be compiled for the chip: says the IL line and the limit it runs into."""


def refuse(program: Program, at: int, what: str) -> CompileError:
    """The error for ``body[at]``, naming its line: ``what`` is wrong, and what to try."""
    return CompileError(f"{program.where(program.body[at].line)}\n    {what}")


@dataclass(eq=False, slots=True, repr=False)
class Word:
    """32 bits. ``kind``: "const" (``bits``), "constant" (``place`` = buffer, element, channel),
    "input" (``place`` = register, channel), "op" (``op``), "phi" (``args`` by predecessor).
    ``forward``: the word that replaced this one, if one has. ``home``: the component of an IL
    register that it was first written to. ``vreg``: where it lives, once passes behind SSA form
    have decided that.
    """

    kind: str
    bits: int = 0
    place: tuple[int, ...] = ()
    op: "Op | None" = None
    args: "dict[BasicBlock, Word]" = field(default_factory=dict)
    forward: "Word | None" = None
    home: int | None = None
    vreg: "VirtualRegister" = field(init=False)

    def resolve(self) -> "Word":
        """The word that stands for this one after simplification."""
        word = self
        while word.forward is not None:
            word = word.forward
        if word is not self:
            self.forward = word
        return word

    @property
    def located(self) -> bool:
        """Whether it lives in a register."""
        return self.kind in ("op", "phi", "input")


@dataclass(eq=False, slots=True, repr=False)
class VirtualRegister:
    """Words that share a ``channel`` of a register, once that is decided; ``allowed`` ones as bits;
    ``fixed``: the register of a preloaded input; ``group``: the at most four that must lie in one
    register, in different channels; ``pair``, the one that holds the other word of a double and
    lies beside it; ``mask``, a bit for every point of the program where it is alive; ``depth`` of
    the innermost loop it is alive in; ``order`` in which they were made.
    """

    words: list[Word]
    order: int
    allowed: int = ANY
    channel: int | None = None
    fixed: int | None = None
    group: "tuple[VirtualRegister, ...]" = ()
    pair: "VirtualRegister | None" = None
    mask: int = 0
    depth: int = 0

    @property
    def home(self) -> int | None:
        """The component of an IL register that its words were first written to, if any."""
        return next((word.home for word in self.words if word.home is not None), None)


class Src(NamedTuple):
    """An operand: a word, perhaps made absolute, then negated."""

    value: Word
    neg: bool = False
    abs: bool = False

    @property
    def negated(self) -> "Src":
        return Src(self.value, not self.neg, self.abs)

    def resolve(self) -> "Src":
        return Src(self.value.resolve(), self.neg, self.abs)


@dataclass(frozen=True)
class FetchDetail:
    """Of SAMPLE and LD: ``offset`` in texels is added to the coordinates, one for each dimension.
    Of MEM_READ: the element of global memory, to which the operand is added if there is one.
    """

    offset: tuple[int, ...]
    resource: int = 0


@dataclass(frozen=True)
class StoreDetail:
    """Of EXPORT and MEM_WRITE: operands go to components ``mask`` of an output, or of an element of
    global memory, ``place``, to which the last operand is added if there is one more.
    """

    place: int
    mask: tuple[int, ...]


@dataclass(frozen=True)
class LdsAccess:
    """Of LDS instructions: LDS ``array`` lies at bytes ``base`` to ``base + size``. LDS_WRITE_REL
    and LDS_READ_REL_RET access two words, the second ``offset`` words after the first. The address
    counts from the start of the LDS.
    """

    array: int
    base: int
    size: int
    offset: int


Detail = FetchDetail | StoreDetail | LdsAccess


@dataclass(eq=False, slots=True)
class Op:
    """An operation on words. ``name`` is a row of ``isa.OPS``. A double is two of ``srcs``, low
    word first. ``at`` is the index in ``Program.body``, ``detail`` what else the instruction
    carries; ``popped``, the LDS read whose words an LDS_POP takes.
    """

    name: str
    srcs: list[Src]
    at: int
    detail: Detail | None = None
    omod: float = 1.0
    clamp: bool = False
    results: list[Word] = field(default_factory=list)
    popped: "Op | None" = None

    def __post_init__(self):
        if not self.results:
            count = self.popped.row.queued if self.popped else self.row.words
            self.results = [Word("op", op=self) for _ in range(count)]

    @property
    def row(self) -> HardwareOp:
        return OPS[self.name]

    @property
    def fetches(self) -> bool:
        return self.row.kind == "fetch"

    @property
    def samples(self) -> bool:
        """Whether it reads a texture, which nothing writes."""
        return self.fetches and not self.row.memories

    @property
    def stores(self) -> bool:
        """Whether it writes memory or an output, which the ISA counts among control-flow
        instructions.
        """
        return self.row.kind == "store"

    @property
    def arithmetic(self) -> bool:
        """Whether its operands alone give its results, or its test."""
        return self.row.meaning is not None

    @property
    def pure(self) -> bool:
        """Whether two such ops on the same operands give the same results."""
        return self.samples or (self.arithmetic and not self.row.predicate)

    @property
    def plain(self) -> bool:
        """Whether its result is neither scaled nor clamped."""
        return self.omod == 1.0 and not self.clamp

    @property
    def located(self) -> list[Word]:
        return [s.value for s in self.srcs if s.value.located]

    def takes_float(self, n: int) -> bool:
        """Whether operand ``n`` can be negated and made absolute: of a double the high word, which
        has the sign.
        """
        return self.row.kind == "float" or (self.row.kind == "double" and n % 2 == 1)


@dataclass(eq=False)
class BasicBlock:
    """Ops in order. ``depth`` counts the loops around it; ``dead`` blocks are never reached.

    For the construction of SSA form (Braun et al., see ``ssa``): ``defs`` has the word that each
    variable holds at the block's end, as far as that was asked for; ``sealed``: whether all
    predecessors are known; until then ``incomplete`` has the phis that wait for arguments.
    ``loop``: of the first block in a loop, the instruction that opens it.
    """

    depth: int = 0
    ops: list[Op] = field(default_factory=list)
    phis: list[Word] = field(default_factory=list)
    preds: list["BasicBlock"] = field(default_factory=list)
    succs: list["BasicBlock"] = field(default_factory=list)
    defs: dict[tuple[int, int], Word] = field(default_factory=dict)
    sealed: bool = True
    incomplete: dict[tuple[int, int], Word] = field(default_factory=dict)
    dead: bool = False
    loop: int = 0


@dataclass(eq=False)
class Function:
    """A lowered kernel: ``items`` are blocks and keywords of control flow, ``inputs`` the preloaded
    registers it reads, ``vregs`` how many virtual registers were made.
    """

    program: Program
    items: list[BasicBlock | str]
    inputs: list[Word]
    vregs: int = 0

    @property
    def blocks(self) -> list[BasicBlock]:
        return [item for item in self.items if isinstance(item, BasicBlock)]

    def vreg(self, word: Word) -> VirtualRegister:
        """A new virtual register for a word."""
        self.vregs += 1
        word.vreg = VirtualRegister([word], self.vregs)
        return word.vreg
