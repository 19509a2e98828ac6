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
from cypresskit.compiler.liveness import Alive
from cypresskit.compiler.ports import constants_of
from cypresskit.compiler.register_channels import choices, decide, group, possible

ONE = 0x3F800000  # 1.0, which a fetch or store can select in place of a word


def assign_vregs(function: Function) -> None:
    """Make a function's virtual registers, with the copies that phis and the hardware need."""
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


class _Coalescer:
    """Merges the virtual registers of phis and their arguments.

    ``last_point`` of each block, among the points of the program that lifetimes count; ``readers``:
    how many operands read each word.
    """

    def __init__(self, function: Function):
        self.function = function
        self.blocks = function.blocks
        self.last_point: dict[BasicBlock, int] = {}
        self.readers = Counter(s.value for b in self.blocks for op in b.ops for s in op.srcs)

        alive = Alive(self.blocks)
        steps = {block: [(op.results, op.located) for op in block.ops] for block in self.blocks}
        alive.set_masks(steps, count_unread=True)
        end = -1
        for block in self.blocks:
            end += len(block.ops) + 1
            self.last_point[block] = end
            touched = {word.vreg for op in block.ops for word in (*op.located, *op.results)}
            for vreg in touched | alive.into[block] | alive.out[block]:
                vreg.depth = max(vreg.depth, block.depth)

    def run(self) -> None:
        """Merge what can be merged, the innermost loops first; copy the rest on the edges."""
        copies: dict[BasicBlock, list[tuple[Word, Word]]] = defaultdict(list)
        for block in sorted(self.blocks, key=lambda b: -b.depth):
            for phi in block.phis:
                for pred, arg in sorted(phi.args.items(), key=lambda item: -item[0].depth):
                    if not self.shares(phi, arg):
                        copies[pred].append((phi, arg))
                        phi.vreg.mask |= 1 << self.last_point[pred]
                for arg in phi.args.values():
                    self.merge_chain(phi.vreg, arg)
        for pred, wanted in copies.items():
            self.copy_on_edge(pred, wanted)

    def shares(self, phi: Word, arg: Word) -> bool:
        """Let an argument share its phi's virtual register. Returns whether it does."""
        if not arg.located:
            return False
        return arg.vreg is phi.vreg or _merge(phi.vreg, arg.vreg)

    def merge_chain(self, vreg: VirtualRegister, word: Word) -> None:
        """Let the partial sums of a sum that grows step by step in a loop's turn lie where the sum
        itself does.
        """
        chain: list[Word] = []
        while word.op is not None and word.op.arithmetic:
            op = word.op
            words = 2 if op.row.kind == "double" else 1
            operands = [s.value for s in op.srcs[op.results.index(word) % words :: words]]
            if any(v.kind == "phi" and v.vreg is vreg for v in operands):
                for partial in chain:
                    _merge(vreg, partial.vreg)
                return

            partials = [v for v in operands if self.is_partial(v, op.name)]
            if not partials:
                return
            word = partials[-1]
            chain.append(word)

    def is_partial(self, word: Word, name: str) -> bool:
        """Whether a word is a partial result of a chain of ops called ``name``: read once."""
        return word.op is not None and word.op.name == name and self.readers[word] == 1

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
            reads = Counter(arg.vreg for _, arg in todo if arg.located)
            safe = [
                n
                for n, (phi, arg) in enumerate(todo)
                if reads[phi.vreg] == (arg.located and arg.vreg is phi.vreg)
            ]
            if safe:
                phi, arg = todo.pop(safe[0])
                result = copy(arg)
                result.vreg = phi.vreg
                phi.args[pred] = result
                phi.vreg.words.append(result)
            else:
                # The copies form a cycle: one of its words is set aside.
                phi, arg = todo[0]
                aside = copy(arg)
                self.function.vreg(aside)
                todo[0] = phi, aside


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
            constant = next(s.value for s in op.srcs if not s.value.located)
            fresh = self.copy(op, constant)
            op.srcs = [Src(fresh, s.neg, s.abs) if s.value is constant else s for s in op.srcs]

        if op.samples:
            self.coordinates(op)
        elif op.fetches and op.srcs and not op.srcs[0].value.located:
            op.srcs[0] = Src(self.copy(op, op.srcs[0].value))

        if op.fetches:
            self.fetched(op)
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
        word = op.results[n]
        fresh = Word("op", op=op)
        op.results[n] = fresh
        word.op = Op("MOV", [Src(fresh)], op.at, results=[word])
        self.after.append(word.op)
        return self.function.vreg(fresh)

    def fetched(self, op: Op) -> None:
        """Put those results of a fetch that somebody reads into one register."""
        used = [n for n, word in enumerate(op.results) if word in self.read]
        if not group([op.results[n].vreg for n in used]):
            group([self.rename(op, n) for n in used])

    def coordinates(self, op: Op) -> None:
        """Put the coordinates of a fetch, but for 0 and 1, into one register."""
        selectable = (0,) if op.name == "LD" else (0, ONE)
        words = [s.value for s in op.srcs]
        needed = [word for word in words if not _selectable(word, selectable)]
        if all(word.located for word in needed) and group([word.vreg for word in needed]):
            return
        copies = {word: self.copy(op, word) for word in needed}
        group([copy.vreg for copy in copies.values()])
        op.srcs = [Src(copies.get(word, word)) for word in words]

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
        to_memory = op.name == "MEM_WRITE"
        mask = detail.mask
        words = [s.value for s in op.srcs]

        # A write to memory takes each component from its own channel; an output selects them.
        needed = list(range(len(mask)))
        channels: list[int | None] = list(mask)
        if not to_memory:
            needed = [n for n in needed if not _selectable(words[n], (0, ONE))]
            channels = [None] * len(needed)

        values = [words[n] for n in needed]
        suited = [
            self.copy(op, value) if self.unsuited(value) or value in values[:n] else value
            for n, value in enumerate(values)
        ]
        if not group([value.vreg for value in suited], channels):
            suited = [self.copy(op, value) for value in values]
            group([value.vreg for value in suited], channels)
        for n, word in zip(needed, suited, strict=True):
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
    """Give a double operation copies of its operands: low words in x or z, high words in y or w."""
    for n, src in enumerate(op.srcs):
        if not src.value.located:
            continue
        copy = Op("MOV", [Src(src.value)], op.at)
        allowed = HIGH if n % 2 else LOW
        copy.results[0].vreg = VirtualRegister(
            list(copy.results), src.value.vreg.order, allowed=allowed
        )
        op.srcs[n] = Src(copy.results[0], src.neg, src.abs)
        block.ops.insert(block.ops.index(op), copy)


def _selectable(word: Word, bits: tuple[int, ...]) -> bool:
    """Whether a fetch or store can name a word and needn't read it: a constant with these bits."""
    return word.kind == "const" and word.bits in bits


def _readable(op: Op) -> bool:
    """Whether a bundle of its own can hold the op's constants, of which t takes two."""
    constants = len(op.srcs) - len(op.located)
    return constants_of([op]).fit and (op.row.slots != "t" or constants <= 2)
