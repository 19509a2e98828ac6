"""What the hardware asks of virtual registers: to share a register, or to lie in given channels.

The results of a fetch lie in one register, and so do the coordinates that a fetch reads, and the words of a store, each
in its own channel; the address of a store lies in x. The two words of a double lie side by side, in xy or zw: they
become a ``pair``, the others a ``group``, if their other constraints allow it. Where these collide, or an operation
reads more constants than a bundle can, a MOV before or after the operation parts them.
"""

from collections.abc import Iterable
from itertools import permutations

from cypresskit.compiler.ir import (
    HIGH,
    LOW,
    BasicBlock,
    Function,
    Op,
    Src,
    StoreDetail,
    VirtualRegister,
    Word,
)
from cypresskit.compiler.ports import constants_of

ONE = 0x3F800000
Channels = dict[VirtualRegister, int]


def choices(vreg: VirtualRegister) -> list[int]:
    """Channels that it may still take, its group and its pair considered."""
    if vreg.channel is not None:
        return [vreg.channel]
    return [c for c in range(4) if vreg.allowed >> c & 1 and possible({vreg: c})]


def decide(vreg: VirtualRegister, channel: int) -> None:
    """Give it its channel, and its pair the one beside it."""
    vreg.channel = channel
    if vreg.pair is not None and vreg.pair.channel is None:
        vreg.pair.channel = channel ^ 1


def possible(wish: Channels) -> bool:
    """Whether the keys of ``wish`` can take these channels: their pairs and groups must still find theirs."""
    wish = dict(wish)
    for vreg, c in list(wish.items()):
        if vreg.pair is not None and wish.setdefault(vreg.pair, c ^ 1) != c ^ 1:
            return False
    for vreg, c in wish.items():
        if (vreg.channel is not None and vreg.channel != c) or not vreg.allowed >> c & 1:
            return False
    return all(_assignable(group, wish) for group in {w.group for w in wish if w.group})


def _assignable(vregs: Iterable[VirtualRegister], wish: Channels) -> bool:
    """Whether those of one register find four different channels, ``wish`` among them."""
    given = {w: wish.get(w, w.channel) for w in vregs}
    taken = [c for c in given.values() if c is not None]
    free = [c for c in range(4) if c not in taken]
    open_ = [w for w, c in given.items() if c is None]

    def fits(vreg: VirtualRegister, chosen: dict) -> bool:
        c = chosen[vreg]
        beside = None if vreg.pair is None else chosen.get(vreg.pair, vreg.pair.channel)
        return bool(vreg.allowed >> c & 1) and beside in (None, c ^ 1)

    ways = (given | dict(zip(open_, order)) for order in permutations(free, len(open_)))
    return len(set(taken)) == len(taken) and any(all(fits(w, chosen) for w in open_) for chosen in ways)


def group(vregs: list[VirtualRegister], channels: list[int | None] | None = None) -> bool:
    """Put virtual registers in one group, some in given channels; False, and nothing done, if that can't be."""
    given = {w: c for w, c in zip(vregs, channels or ()) if c is not None}
    members = list(dict.fromkeys([m for w in vregs for m in w.group or [w]]))
    registers = {m.fixed for m in members if m.fixed is not None}
    most = 0 if any(m.pair for m in members) else 1
    if len(set(vregs)) < len(vregs) or len(members) > 4 or len(registers) > most:
        return False
    old = [(m, m.group) for m in members]
    for m in members if len(members) > 1 else ():
        m.group = tuple(members)
    if not (_assignable(members, given) and (not given or possible(given))):
        for m, before in old:
            m.group = before
        return False
    for w, c in given.items():
        decide(w, c)
    return True


def constrain(function: Function) -> Function:
    """Group and pair the virtual registers of a function, with the copies that this needs."""
    blocks = function.blocks
    read = {s.value for b in blocks for op in b.ops for s in op.srcs}
    read |= {v for b in blocks for phi in b.phis for v in phi.args.values()}
    for block in sorted(blocks, key=lambda b: -b.depth):
        constraints = _Constraints(function, block, read)
        ops: list[Op] = []
        for op in block.ops:
            constraints.add(op)
            ops += [*constraints.before, op, *constraints.after]
        block.ops = ops
    return function


class _Constraints:
    """Those of one block's ops. ``read``: words that somebody reads; ``copied``: copies of coordinates, by their
    originals; ``before`` and ``after``: copies that the present op needs."""

    def __init__(self, function: Function, block: BasicBlock, read: set[Word]):
        self.function, self.block, self.read = function, block, read
        self.copied: dict[tuple[int, ...], list[Word]] = {}
        self.before: list[Op] = []
        self.after: list[Op] = []

    def add(self, op: Op) -> None:
        self.before, self.after = [], []
        while op.row.slots and not _readable(op):
            word = next(s.value for s in op.srcs if not s.value.located)
            fresh = self.copy(op, word)
            op.srcs = [Src(fresh, s.neg, s.abs) if s.value is word else s for s in op.srcs]
        if op.samples:
            self.coordinates(op)
        elif op.fetches and op.srcs and not op.srcs[0].value.located:
            op.srcs[0] = Src(self.copy(op, op.srcs[0].value))
        if op.fetches:  # the results that somebody reads lie in one register
            used = [n for n, word in enumerate(op.results) if word in self.read]
            if not group([op.results[n].vreg for n in used]):
                group([self.rename(op, n) for n in used])
        elif isinstance(op.detail, StoreDetail):
            self.stored(op, op.detail)
        elif len(op.results) == 2 and not op.popped:
            self.double(op)

    def copy(self, op: Op, word: Word) -> Word:
        """A fresh word with the same bits, for ``op`` to read."""
        made = Op("MOV", [Src(word)], op.at)
        self.function.vreg(made.results[0])
        self.before.append(made)
        return made.results[0]

    def rename(self, op: Op, n: int) -> VirtualRegister:
        """Let ``op`` compute a fresh word as result ``n``, which a MOV copies to where the old one lies."""
        word, fresh = op.results[n], Word("op", op=op)
        op.results[n] = fresh
        word.op = Op("MOV", [Src(fresh)], op.at, results=[word])
        self.after.append(word.op)
        return self.function.vreg(fresh)

    def coordinates(self, op: Op) -> None:
        """The coordinates of a fetch, but for 0 and 1, lie in one register."""
        selectable = (0,) if op.name == "LD" else (0, ONE)
        free = [s.value for s in op.srcs if s.value.kind != "const" or s.value.bits not in selectable]
        if all(v.located for v in free) and group([v.vreg for v in free]):
            return
        key = tuple(id(v.vreg if v.located else v) for v in free)
        if key not in self.copied:
            self.copied[key] = [self.copy(op, v) for v in free]
            group([v.vreg for v in self.copied[key]])
        renamed = dict(zip(free, self.copied[key], strict=True))
        op.srcs = [Src(renamed.get(s.value, s.value)) for s in op.srcs]

    def double(self, op: Op) -> None:
        """The two words of a double lie side by side."""
        low, high = (r.vreg for r in op.results)
        if low.pair is high and high.pair is low:
            return
        preloaded = any(m.fixed is not None for m in low.group + high.group)
        if low.pair is None and high.pair is None and low is not high and not preloaded:
            low.pair, high.pair = high, low
            if choices(low) and _assignable(low.group, {}) and _assignable(high.group, {}):
                return
            low.pair = high.pair = None
        low, high = self.rename(op, 0), self.rename(op, 1)
        low.allowed, high.allowed = LOW, HIGH
        low.pair, high.pair = high, low

    def stored(self, op: Op, detail: StoreDetail) -> None:
        """The words of a store lie in their channels of one register, its address in x of another. What a loop carries
        is left where it is best for the loop."""
        memory, mask = op.name == "MEM_WRITE", detail.mask
        words = [s.value for s in op.srcs]
        free = [n for n in range(len(mask)) if memory or not (words[n].kind == "const" and words[n].bits in (0, ONE))]
        channels = [mask[n] if memory else None for n in free]
        values = [words[n] for n in free]
        fresh = [self.copy(op, v) if self.unsuited(v) or v in values[:n] else v for n, v in enumerate(values)]
        if not group([v.vreg for v in fresh], channels):
            fresh = [self.copy(op, v) for v in values]
            group([v.vreg for v in fresh], channels)
        for n, word in zip(free, fresh, strict=True):
            op.srcs[n] = Src(word)
        for address in words[len(mask) :]:
            if self.unsuited(address) or 0 not in choices(address.vreg):
                address = self.copy(op, address)
            decide(address.vreg, 0)
            op.srcs[-1] = Src(address)

    def unsuited(self, word: Word) -> bool:
        """Whether a word lies where a store can't have it: in no register, in one that the kernel starts with, or in
        one that a loop uses."""
        return not word.located or word.vreg.depth > self.block.depth or word.vreg.fixed is not None


def part(block: BasicBlock, op: Op) -> None:
    """Give a double operation copies of its operands, low words in x or z and high words in y or w."""
    at = block.ops.index(op)
    for n, s in enumerate(op.srcs):
        if s.value.located:
            copy = Op("MOV", [Src(s.value)], op.at)
            copy.results[0].vreg = VirtualRegister(list(copy.results), s.value.vreg.order, HIGH if n % 2 else LOW)
            op.srcs[n] = Src(copy.results[0], s.neg, s.abs)
            block.ops.insert(at, copy)
            at += 1


def _readable(op: Op) -> bool:
    """Whether a bundle of its own can hold the op's constants, of which t takes two."""
    return constants_of([op]).fit and (op.row.slots != "t" or len(op.srcs) - len(op.located) <= 2)
