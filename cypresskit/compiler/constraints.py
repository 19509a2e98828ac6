"""Constrain the registers of an operation's words, as the hardware requires.

- The results of a fetch share a register. The coordinates that it reads share one, too.
- The words of a store are in one register. A write to memory takes each word from its own channel,
  and its address from channel x of any register.
- The two words of a double are adjacent, in xy or zw: a ``pair``.
- An operation reads no more constants than one bundle can hold.

The virtual registers of an op are put into a ``group`` or a ``pair`` if their other constraints
allow it (``register_channels``). If not, a MOV before the op copies an operand, or a MOV after it
copies a result.
"""

from cypresskit.compiler.ir import (
    HIGH,
    LOW,
    Function,
    Op,
    Src,
    StoreDetail,
    VirtualRegister,
    Word,
)
from cypresskit.compiler.ports import find_constants
from cypresskit.compiler.register_channels import (
    can_join,
    choose_channel,
    find_free_channels,
    join_groups,
)
from cypresskit.il.bits import ONE


def constrain(function: Function) -> None:
    """Group and pair the virtual registers of a function, with the copies that this needs."""
    for block in function.blocks:
        constraints = _Constraints(function)
        block.ops = [op for wanted in block.ops for op in constraints.with_copies(wanted)]


class _Constraints:
    """Constrains ops, one after another.

    Attributes
    ----------
    before, after
        The copies that the current op needs.
    """

    def __init__(self, function: Function):
        self.function = function
        self.before: list[Op] = []
        self.after: list[Op] = []

    def with_copies(self, op: Op) -> list[Op]:
        """Constrain the op's operands and results. Return it, between the copies that this
        needs.
        """
        self.before = []
        self.after = []
        if op.row.slots:
            self.limit_constants(op)
        if op.is_texture_fetch:
            self.constrain_coordinates(op)
        elif op.is_fetch and len(op.register_words) < len(op.srcs):  # a constant index of g[]
            op.srcs = [Src(self.copy(op, op.srcs[0].value))]

        if op.is_fetch:
            self.constrain_fetch(op)
        elif isinstance(op.detail, StoreDetail):
            self.constrain_store(op, op.detail)
        elif len(op.results) == 2 and not op.popped:
            self.constrain_double(op)
        return [*self.before, op, *self.after]

    # Copies

    def copy(self, op: Op, word: Word) -> Word:
        """Return a new word with the same bits, for ``op`` to read."""
        made = Op("MOV", [Src(word)], op.at)
        self.function.vreg(made.results[0])
        self.before.append(made)
        return made.results[0]

    def rename(self, op: Op, n: int) -> VirtualRegister:
        """Let ``op`` compute a new word as result ``n``, which a MOV copies to the old one."""
        word = op.results[n]
        fresh = Word("op", op=op)
        op.results[n] = fresh
        word.op = Op("MOV", [Src(fresh)], op.at, results=[word])
        self.after.append(word.op)
        return self.function.vreg(fresh)

    # Operands

    def limit_constants(self, op: Op) -> None:
        """Read constants from copies until one bundle can hold the rest."""
        while not _readable(op):
            constant = next(s.value for s in op.srcs if not s.value.has_register)
            fresh = self.copy(op, constant)
            op.srcs = [Src(fresh, s.neg) if s.value is constant else s for s in op.srcs]

    def constrain_coordinates(self, op: Op) -> None:
        """Put a fetch's coordinates that aren't selectable into one register."""
        words = [s.value for s in op.srcs]
        needed = [word for word in words if not _selectable(word)]
        if all(word.has_register for word in needed) and join_groups(
            [word.vreg for word in needed]
        ):
            return
        copies = {word: self.copy(op, word) for word in needed}
        join_groups([copy.vreg for copy in copies.values()])
        op.srcs = [Src(copies.get(word, word)) for word in words]

    # Results

    def constrain_fetch(self, op: Op) -> None:
        """Put the results of a fetch into one register."""
        if not join_groups([word.vreg for word in op.results]):
            join_groups([self.rename(op, n) for n in range(len(op.results))])

    def constrain_double(self, op: Op) -> None:
        """Put the two words of a double next to each other."""
        low, high = (r.vreg for r in op.results)
        if low.pair is high and high.pair is low:
            return

        preloaded = any(m.fixed is not None for m in low.group + high.group)
        unpaired = low.pair is None and high.pair is None
        if unpaired and low is not high and not preloaded:
            low.pair, high.pair = high, low
            if any(can_join({low: c}) for c in range(4)):
                return
            low.pair = high.pair = None

        low, high = self.rename(op, 0), self.rename(op, 1)
        low.allowed, high.allowed = LOW, HIGH
        low.pair, high.pair = high, low

    def constrain_store(self, op: Op, detail: StoreDetail) -> None:
        """Put the words of a store into their channels of one register, its address into an x."""
        values = [s.value for s in op.srcs[: len(detail.mask)]]
        if op.name == "MEM_WRITE":  # takes each component from its own channel
            needed = list(range(len(values)))
            channels: list[int | None] = list(detail.mask)
        else:  # an output may select any channel, or 0 and 1
            needed = [n for n, value in enumerate(values) if not _selectable(value)]
            channels = [None] * len(needed)

        for n, word in zip(needed, self.in_one_register(op, values, needed, channels), strict=True):
            op.srcs[n] = Src(word)
        if len(op.srcs) > len(values):
            self.constrain_address(op)

    def in_one_register(
        self, op: Op, values: list[Word], needed: list[int], channels: list[int | None]
    ) -> list[Word]:
        """Return the needed values, or copies of them, in channels of one register."""
        stored = [values[n] for n in needed]
        suited = [
            self.copy(op, value) if self.is_unsuited(value) or value in stored[:n] else value
            for n, value in enumerate(stored)
        ]
        if not join_groups([value.vreg for value in suited], channels):
            suited = [self.copy(op, value) for value in stored]
            join_groups([value.vreg for value in suited], channels)
        return suited

    def constrain_address(self, op: Op) -> None:
        """Put the address of a store, its last operand, into a channel x."""
        address = op.srcs[-1].value
        if self.is_unsuited(address) or 0 not in find_free_channels(address.vreg):
            address = self.copy(op, address)
        choose_channel(address.vreg, 0)
        op.srcs[-1] = Src(address)

    def is_unsuited(self, word: Word) -> bool:
        """Return whether a store needs a copy of a word: it is in no register, or in a preloaded
        one.
        """
        return not word.has_register or word.vreg.fixed is not None


def _selectable(word: Word) -> bool:
    """Return whether a fetch or store can select a word without a register: 0 or 1.0."""
    return word.kind == "const" and word.bits in (0, ONE)


def _readable(op: Op) -> bool:
    """Return whether one bundle can hold the op's constants: at most two in slot t."""
    constants = len(op.srcs) - len(op.register_words)
    return find_constants([op]).is_encodable and (op.row.slots != "t" or constants <= 2)
