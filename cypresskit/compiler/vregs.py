"""Out of SSA form: which words share a place.

A ``VirtualRegister`` is a set of words that will live in one register channel: a phi and its
arguments, where their lifetimes let them; where not, a MOV on the edge copies the argument. So a
sum that a loop carries is read and written in place. The scheduler decides what channels remain
open, the allocator numbers.

The hardware asks for more: the results of a fetch lie in one register, and so do the coordinates
that a fetch reads, and the words of a store, each in its own channel; the address of a store lies
in x. The two words of a double lie side by side, in xy or zw: they become a ``pair``, the others a
``group``, if their other constraints allow it. Where these collide, or an operation reads more
constants than a bundle can, a MOV before or after the operation parts them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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


def assign_vregs(function: Function) -> None:
    """Make the virtual registers of a function, with the copies that its phis and the hardware
    need.
    """
    for word in function.inputs:
        vreg = function.vreg(word)
        vreg.fixed, vreg.channel = word.place
    preloaded = [word.vreg for word in function.inputs]
    for vreg in preloaded:
        vreg.group = tuple(other for other in preloaded if other.fixed == vreg.fixed)
    for block in function.blocks:
        for word in block.phis:
            function.vreg(word)
        for op in block.ops:
            for n, word in enumerate(op.results):
                vreg = function.vreg(word)
                if op.row.width > 1:
                    vreg.allowed = HIGH if n else LOW
    _Coalescer(function).run()
    _constrain(function)


Sets = dict[BasicBlock, set[VirtualRegister]]


class Alive:
    """Virtual registers alive at each block's start, ``into`` it, and end, ``out`` of it. A phi's
    argument is alive at the end of the predecessor it comes from; the phi itself is defined at the
    start of its block.

    Liveness of IL's registers is in ``il.dataflow``, apart from this: a program's text isn't in SSA
    form, and the engines that run it know no words.
    """

    def __init__(self, blocks: list[BasicBlock]):
        self.into: Sets = {b: set() for b in blocks}
        self.out: Sets = {b: set() for b in blocks}
        use: Sets = {b: set() for b in blocks}
        define: Sets = {b: {p.vreg for p in b.phis} for b in blocks}
        passed: Sets = {}
        for b in blocks:
            for op in b.ops:
                use[b] |= {word.vreg for word in op.located} - define[b]
                define[b] |= {r.vreg for r in op.results}
            passed[b] = {
                p.args[b].vreg for s in b.succs for p in s.phis if b in p.args and p.args[b].located
            }
        changed = True
        while changed:
            changed = False
            for b in reversed(blocks):
                out = passed[b].union(*(self.into[s] for s in b.succs))
                new = use[b] | (out - define[b])
                changed |= out != self.out[b] or new != self.into[b]
                self.out[b], self.into[b] = out, new

    def set_masks(
        self, steps: Mapping[BasicBlock, Sequence[Sequence]], unread: bool = False
    ) -> set[Word]:
        """Add to each virtual register's ``mask`` a bit for every point of the program where it is
        alive. ``steps``: per block and point, the words that it makes and reads. Returns those made
        that are read; ``unread``, the others get the point behind them.
        """
        written: set[Word] = set()
        point = 0
        for block, found in steps.items():
            end = point + len(found)
            last = dict.fromkeys(self.out[block], end)
            for n in range(end - 1, point - 1, -1):
                results, reads, *_ = found[n - point]
                for word in results:
                    if unread or word.vreg in last:
                        word.vreg.mask |= _span(n + 1, last.pop(word.vreg, n + 1))
                        written.add(word)
                for word in reads:
                    last.setdefault(word.vreg, n)
            for phi in block.phis if unread else ():
                last.setdefault(phi.vreg, point)
            for vreg, stop in last.items():
                vreg.mask |= _span(point, stop)
            point = end + 1
        return written


def _span(first: int, last: int) -> int:
    return (1 << last + 1) - (1 << first)


class _Coalescer:
    """Merges the virtual registers of phis and their arguments. ``end_of``: the last point of each
    block.
    """

    def __init__(self, function: Function):
        self.function, self.blocks = function, function.blocks
        self.end_of: dict[BasicBlock, int] = {}
        self.readers = Counter(s.value for b in self.blocks for op in b.ops for s in op.srcs)
        alive, end = Alive(self.blocks), -1
        alive.set_masks(
            {b: [(op.results, op.located) for op in b.ops] for b in self.blocks}, unread=True
        )
        for block in self.blocks:
            self.end_of[block] = end = end + len(block.ops) + 1
            here = {word.vreg for op in block.ops for word in (*op.located, *op.results)}
            for vreg in here | alive.into[block] | alive.out[block]:
                vreg.depth = max(vreg.depth, block.depth)

    def run(self) -> None:
        copies: dict[BasicBlock, list[tuple[Word, Word]]] = defaultdict(list)
        for block in sorted(self.blocks, key=lambda b: -b.depth):
            for phi in block.phis:
                for pred, arg in sorted(phi.args.items(), key=lambda item: -item[0].depth):
                    if not arg.located or (
                        arg.vreg is not phi.vreg and not _merge(phi.vreg, arg.vreg)
                    ):
                        copies[pred].append((phi, arg))
                        phi.vreg.mask |= 1 << self.end_of[pred]
                    for arg in phi.args.values():
                        self.merge_chain(phi.vreg, arg)
        for pred, wanted in copies.items():
            self.copy_on_edge(pred, wanted)

    def merge_chain(self, vreg: VirtualRegister, word: Word) -> None:
        """Let the partial sums of a sum that grows step by step in a loop's turn lie where the sum
        itself does.
        """
        chain: list[Word] = []
        while word.op is not None and word.op.arithmetic:
            op, words = word.op, 2 if word.op.row.kind == "double" else 1
            parts = [s.value for s in op.srcs[op.results.index(word) % words :: words]]
            if any(v.kind == "phi" and v.vreg is vreg for v in parts):
                for partial in chain:
                    _merge(vreg, partial.vreg)
                return
            parts = [
                v
                for v in parts
                if v.op is not None and v.op.name == op.name and self.readers[v] == 1
            ]
            if not parts:
                return
            word = parts[-1]
            chain.append(word)

    def copy_on_edge(self, pred: BasicBlock, wanted: list[tuple[Word, Word]]) -> None:
        """Append copies that are meant to happen at once, in an order in which none destroys what
        another reads.
        """
        at = pred.ops[-1].at if pred.ops else 0
        todo = list(wanted)

        def copy(word: Word) -> Word:
            op = Op("MOV", [Src(word)], at)
            pred.ops.append(op)
            return op.results[0]

        while todo:
            read = Counter(arg.vreg for _, arg in todo if arg.located)
            safe = [
                n
                for n, (phi, arg) in enumerate(todo)
                if read[phi.vreg] == (arg.located and arg.vreg is phi.vreg)
            ]
            if not safe:  # a cycle: one of its words is set aside
                phi, arg = todo[0]
                todo[0] = phi, copy(arg)
                self.function.vreg(todo[0][1])
                continue
            phi, arg = todo.pop(safe[0])
            result = phi.args[pred] = copy(arg)
            result.vreg = phi.vreg
            phi.vreg.words.append(result)


def _merge(kept: VirtualRegister, other: VirtualRegister) -> bool:
    """Make one virtual register of two, if their lifetimes and channels allow it."""
    if kept.mask & other.mask or not kept.allowed & other.allowed or other.fixed is not None:
        return False
    kept.allowed &= other.allowed
    kept.mask |= other.mask
    kept.depth = max(kept.depth, other.depth)
    kept.words += other.words
    for word in other.words:
        word.vreg = kept
    other.words = []
    return True


ONE = 0x3F800000
Channels = dict[VirtualRegister, int]


def choices(vreg: VirtualRegister) -> list[int]:
    """The channels that a virtual register may still take, as its group and its pair allow."""
    if vreg.channel is not None:
        return [vreg.channel]
    return [c for c in range(4) if vreg.allowed >> c & 1 and possible({vreg: c})]


def decide(vreg: VirtualRegister, channel: int) -> None:
    """Give a virtual register its channel, and its pair the one beside it."""
    vreg.channel = channel
    if vreg.pair is not None and vreg.pair.channel is None:
        vreg.pair.channel = channel ^ 1


def possible(wish: Channels, joined: tuple[VirtualRegister, ...] = ()) -> bool:
    """Whether the keys of ``wish`` can take these channels, so that their pairs and groups still
    find theirs. ``joined`` are taken for one group.
    """
    wish = dict(wish)
    for vreg, c in list(wish.items()):
        if vreg.pair is not None and wish.setdefault(vreg.pair, c ^ 1) != c ^ 1:
            return False
    for vreg, c in wish.items():
        if (vreg.channel is not None and vreg.channel != c) or not vreg.allowed >> c & 1:
            return False
    return all(
        _assignable(members, wish)
        for members in {joined if w in joined else w.group for w in wish}
        if members
    )


def _assignable(members: Iterable[VirtualRegister], wish: Channels) -> bool:
    """Whether the members of a group, which share a register, find a channel each: those in
    ``wish`` the one given there.
    """
    given = {w: wish.get(w, w.channel) for w in members}
    taken = [c for c in given.values() if c is not None]
    free = [c for c in range(4) if c not in taken]
    open_ = [w for w, c in given.items() if c is None]

    def fits(vreg: VirtualRegister, chosen: dict) -> bool:
        c = chosen[vreg]
        beside = None if vreg.pair is None else chosen.get(vreg.pair, vreg.pair.channel)
        return bool(vreg.allowed >> c & 1) and beside in (None, c ^ 1)

    ways = (given | dict(zip(open_, order)) for order in permutations(free, len(open_)))
    return len(set(taken)) == len(taken) and any(
        all(fits(w, chosen) for w in open_) for chosen in ways
    )


def group(vregs: list[VirtualRegister], channels: list[int | None] | None = None) -> bool:
    """Join virtual registers, and the groups that they are in, in one group that shares a register;
    some get given ``channels``. Returns False, with nothing changed, if that can't be.
    """
    given = {w: c for w, c in zip(vregs, channels or ()) if c is not None}
    members = tuple(dict.fromkeys([m for w in vregs for m in w.group or [w]]))
    registers = {m.fixed for m in members if m.fixed is not None}
    most = 0 if any(m.pair for m in members) else 1
    if len(set(vregs)) < len(vregs) or len(members) > 4 or len(registers) > most:
        return False
    joined = members if len(members) > 1 else ()
    if not (_assignable(members, given) and possible(given, joined)):
        return False
    for m in joined:
        m.group = joined
    for w, c in given.items():
        decide(w, c)
    return True


def _constrain(function: Function) -> None:
    """Group and pair the virtual registers of a function, with the copies that this needs."""
    blocks = function.blocks
    read = {s.value for b in blocks for op in b.ops for s in op.srcs}
    read |= {v for b in blocks for phi in b.phis for v in phi.args.values()}
    for block in sorted(blocks, key=lambda b: -b.depth):
        constraints = _Constraints(function, block, read)
        block.ops = [made for op in block.ops for made in constraints.added(op)]


class _Constraints:
    """The constraints of one block's ops. ``read``: words that some op reads; ``before`` and
    ``after``: the copies that the present op needs.
    """

    def __init__(self, function: Function, block: BasicBlock, read: set[Word]):
        self.function, self.block, self.read = function, block, read
        self.before: list[Op] = []
        self.after: list[Op] = []

    def added(self, op: Op) -> list[Op]:
        """The op with its operands and results constrained, between the copies that this takes."""
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
        return [*self.before, op, *self.after]

    def copy(self, op: Op, word: Word) -> Word:
        """A fresh word with the same bits, for ``op`` to read."""
        made = Op("MOV", [Src(word)], op.at)
        self.function.vreg(made.results[0])
        self.before.append(made)
        return made.results[0]

    def rename(self, op: Op, n: int) -> VirtualRegister:
        """Let ``op`` compute a fresh word as result ``n``, which a MOV copies to where the old one
        lies.
        """
        word, fresh = op.results[n], Word("op", op=op)
        op.results[n] = fresh
        word.op = Op("MOV", [Src(fresh)], op.at, results=[word])
        self.after.append(word.op)
        return self.function.vreg(fresh)

    def coordinates(self, op: Op) -> None:
        """Put the coordinates of a fetch, but for 0 and 1, into one register."""
        selectable = (0,) if op.name == "LD" else (0, ONE)
        free = [
            s.value for s in op.srcs if s.value.kind != "const" or s.value.bits not in selectable
        ]
        if all(v.located for v in free) and group([v.vreg for v in free]):
            return
        renamed = {v: self.copy(op, v) for v in free}
        group([v.vreg for v in renamed.values()])
        op.srcs = [Src(renamed.get(s.value, s.value)) for s in op.srcs]

    def double(self, op: Op) -> None:
        """Put the two words of a double side by side."""
        low, high = (r.vreg for r in op.results)
        if low.pair is high and high.pair is low:
            return
        preloaded = any(m.fixed is not None for m in low.group + high.group)
        if low.pair is None and high.pair is None and low is not high and not preloaded:
            low.pair, high.pair = high, low
            if any(possible({low: c}) for c in range(4)):
                return
            low.pair = high.pair = None
        low, high = self.rename(op, 0), self.rename(op, 1)
        low.allowed, high.allowed = LOW, HIGH
        low.pair, high.pair = high, low

    def stored(self, op: Op, detail: StoreDetail) -> None:
        """Put the words of a store into their channels of one register, and its address into x of
        another. What a loop carries stays where it is best for the loop.
        """
        memory, mask = op.name == "MEM_WRITE", detail.mask
        words = [s.value for s in op.srcs]
        free = [
            n
            for n in range(len(mask))
            if memory or not (words[n].kind == "const" and words[n].bits in (0, ONE))
        ]
        channels = [mask[n] if memory else None for n in free]
        values = [words[n] for n in free]
        fresh = [
            self.copy(op, v) if self.unsuited(v) or v in values[:n] else v
            for n, v in enumerate(values)
        ]
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
        """Whether a word lies where a store can't have it: in no register, in one that the kernel
        starts with, or in one that a loop uses.
        """
        return not word.located or word.vreg.depth > self.block.depth or word.vreg.fixed is not None


def copy_operands(block: BasicBlock, op: Op) -> None:
    """Give a double operation copies of its operands, low words in x or z and high words in y or
    w.
    """
    for n, s in enumerate(op.srcs):
        if s.value.located:
            copy = Op("MOV", [Src(s.value)], op.at)
            copy.results[0].vreg = VirtualRegister(
                list(copy.results), s.value.vreg.order, HIGH if n % 2 else LOW
            )
            op.srcs[n] = Src(copy.results[0], s.neg, s.abs)
            block.ops.insert(block.ops.index(op), copy)


def _readable(op: Op) -> bool:
    """Whether a bundle of its own can hold the op's constants, of which t takes two."""
    return constants_of([op]).fit and (op.row.slots != "t" or len(op.srcs) - len(op.located) <= 2)
