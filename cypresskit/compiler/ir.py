"""Define the intermediate form: scalar words in SSA form, basic blocks in structured control flow.

A ``Word`` is 32 bits: a constant, an element of a constant buffer, a preloaded register, the result
of an ``Op``, or a ``phi``, which takes the word of the edge along which control arrived. The
components of an IL register, and the two words of a double, are separate words, so that each may be
put into any channel.

A ``Function`` is a list of items: blocks, and between them keywords of control flow ("loop",
"endloop", "if", "else", "endif", "break"). An "if" tests the predicate that the last op
of the block before it sets. Every if has an else block, perhaps empty, so every edge has a block of
its own for copies.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from cypresskit.compiler.isa import OPS, HardwareOp
from cypresskit.il import Program

LOW, HIGH, ANY = 0b0101, 0b1010, 0b1111  # channels by bit: x and z, y and w, all


_constants: "dict[int, Word]" = {}


def const(bits: int) -> "Word":
    """Return the word of a constant: one for all threads, as words are compared by identity."""
    return _constants.get(bits) or _constants.setdefault(bits, Word("const", bits=bits))


class CompileError(ValueError):
    """A kernel that can't be compiled for the chip. The message names the IL line and the limit.

    ``line`` is that line, or 0.
    """

    line = 0


def error_at(program: Program, at: int, what: str) -> CompileError:
    """Return the error for ``body[at]``: its line, and ``what`` is wrong and what to try."""
    line = program.body[at].line
    error = CompileError(f"{program.where(line)}\n    {what}")
    error.line = line
    return error


@dataclass(eq=False, slots=True, repr=False)
class Word:
    """32 bits.

    Attributes
    ----------
    kind
        "const" (``bits``), "constant" (``place`` is buffer, element, channel), "input" (``place``
        is register, channel), "op" (``op``), or "phi" (``args`` by predecessor).
    forward
        The word that replaced this one, if any.
    home
        The component of an IL register that it was first written to.
    vreg
        Its virtual register; set by ``vregs``.
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
        """Return the word that stands for this one after simplification."""
        word = self
        while word.forward is not None:
            word = word.forward
        if word is not self:
            self.forward = word
        return word

    @property
    def has_register(self) -> bool:
        """Whether it is held in a register."""
        return self.kind in ("op", "phi", "input")


@dataclass(eq=False, slots=True, repr=False)
class VirtualRegister:
    """Words that share a channel of a register.

    Attributes
    ----------
    words
        The words.
    order
        The number of virtual registers made before it.
    allowed
        Allowed channels, as bits.
    channel
        Its channel, once chosen.
    fixed
        The register of a preloaded input.
    group
        Up to four virtual registers that must be in one register, in different channels.
    pair
        The one that holds the other word of a double, and must be adjacent.
    mask
        Its live range: a bit for every point of the program.
    """

    words: list[Word]
    order: int
    allowed: int = ANY
    channel: int | None = None
    fixed: int | None = None
    group: "tuple[VirtualRegister, ...]" = ()
    pair: "VirtualRegister | None" = None
    mask: int = 0

    @property
    def home(self) -> int | None:
        """The component of an IL register that its words were first written to, if any."""
        return next((word.home for word in self.words if word.home is not None), None)


class Src(NamedTuple):
    """An operand: a word, perhaps negated."""

    value: Word
    neg: bool = False

    def resolve(self) -> "Src":
        return Src(self.value.resolve(), self.neg)


@dataclass(frozen=True)
class FetchDetail:
    """Details of a fetch.

    Attributes
    ----------
    offset
        Of SAMPLE: texels added to the coordinates, per dimension. Of MEM_READ: the element
        of global memory, to which the operand is added if there is one.
    resource
        Texture number.
    """

    offset: tuple[int, ...]
    resource: int = 0


@dataclass(frozen=True)
class StoreDetail:
    """Details of EXPORT and MEM_WRITE.

    Attributes
    ----------
    place
        The output, or the element of global memory, to which an extra last operand is added.
    mask
        The components that the operands go to.
    """

    place: int
    mask: tuple[int, ...]


@dataclass(frozen=True)
class LdsAccess:
    """Details of an LDS instruction.

    Attributes
    ----------
    array
        LDS array, at bytes ``base`` to ``base + size``. Addresses count from the start of the LDS.
    base, size
        Bytes.
    offset
        LDS_WRITE_REL and LDS_READ_REL_RET access two words, the second ``offset`` words after the
        first.
    """

    array: int
    base: int
    size: int
    offset: int


Detail = FetchDetail | StoreDetail | LdsAccess


@dataclass(eq=False, slots=True)
class Op:
    """An operation on words.

    Attributes
    ----------
    name
        A row of ``isa.OPS``.
    srcs
        Its operands. A double takes two, the low word first.
    at
        Its instruction's index in ``Program.body``.
    detail
        Details of fetches, stores and LDS accesses.
    results
        The words that it makes.
    popped
        Of LDS_POP: the LDS read whose words it takes.
    """

    name: str
    srcs: list[Src]
    at: int
    detail: Detail | None = None
    results: list[Word] = field(default_factory=list)
    popped: "Op | None" = None

    def __post_init__(self):
        if not self.results:
            count = self.popped.row.queued if self.popped else self.row.words
            self.results = [Word("op", op=self) for _ in range(count)]

    @property
    def row(self) -> HardwareOp:
        """Its row of ``isa.OPS``."""
        return OPS[self.name]

    @property
    def is_fetch(self) -> bool:
        """Whether it is done by a fetch clause."""
        return self.row.kind == "fetch"

    @property
    def is_texture_fetch(self) -> bool:
        """Whether it reads a texture. Textures are never written."""
        return self.is_fetch and not self.row.memories

    @property
    def is_store(self) -> bool:
        """Whether it writes memory or an output. The ISA counts these as control flow."""
        return self.row.kind == "store"

    @property
    def is_arithmetic(self) -> bool:
        """Whether its results, or its test, depend on its operands only."""
        return self.row.meaning is not None

    @property
    def is_pure(self) -> bool:
        """Whether two such ops on the same operands give the same results."""
        return self.is_texture_fetch or (self.is_arithmetic and not self.row.is_test)

    @property
    def register_words(self) -> list[Word]:
        """The operands that are held in registers."""
        return [s.value for s in self.srcs if s.value.has_register]

    def takes_float(self, n: int) -> bool:
        """Return whether operand ``n`` can be negated: of a double only the high word, which
        has the sign.
        """
        return self.row.kind == "float" or (self.row.kind == "double" and n % 2 == 1)


@dataclass(eq=False)
class BasicBlock:
    """Ops in order.

    Attributes
    ----------
    depth
        The number of loops around it.
    phis, preds, succs
        Its phis and its neighbors in the control flow graph.
    dead
        Whether it is never reached.
    loop
        Of the first block in a loop: the instruction that opens the loop.
    defs, sealed, incomplete
        For the construction of SSA form (Braun et al., see ``ssa``): the word that each variable
        holds at the block's end, as far as known; whether all predecessors are known; until then,
        the phis that wait for their arguments.
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
    """A lowered kernel.

    Attributes
    ----------
    program
        The kernel.
    items
        Blocks and keywords of control flow.
    inputs
        The preloaded registers that it reads.
    vregs
        The number of virtual registers made.
    """

    program: Program
    items: list[BasicBlock | str]
    inputs: list[Word]
    vregs: int = 0

    @property
    def blocks(self) -> list[BasicBlock]:
        """Its blocks, in order."""
        return [item for item in self.items if isinstance(item, BasicBlock)]

    def vreg(self, word: Word) -> VirtualRegister:
        """Return a new virtual register for a word."""
        self.vregs += 1
        word.vreg = VirtualRegister([word], self.vregs)
        return word.vreg
