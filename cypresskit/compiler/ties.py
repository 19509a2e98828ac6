"""What the hardware ties together: values that must share a register, or lie in given channels.

The results of a fetch lie in one register, and so do the coordinates that a fetch reads, and the words of a store, each
in its own channel; the address of a store lies in x. The two words of a double lie side by side, in xy or zw. The webs
concerned join a ``Cohort`` or become twins, if their other ties allow it; where the wishes collide, a MOV before or
after the operation parts them. So does one where an operation reads more constants than a bundle can.
"""

from cypresskit.compiler.ir import FETCHES, STORES, Block, Function, Op, Src, Value
from cypresskit.compiler.isa import INLINE
from cypresskit.compiler.webs import HIGH, LOW, Cohort, Web, assignable, choices, decide, possible

ONE = 0x3F800000


def tie(function: Function, webs: list[Web]) -> None:
    """Tie the webs of a function, with the copies that this needs."""
    ties = _Ties(function, len(webs))
    for block in sorted(function.blocks, key=lambda b: -b.depth):
        ties.block(block)


class _Ties:
    """``count`` webs exist so far."""

    def __init__(self, function: Function, count: int):
        self.count = count
        blocks = list(function.blocks)
        self.read = {s.value for b in blocks for op in b.ops for s in op.srcs}
        self.read |= {v for b in blocks for phi in b.phis for v in phi.args.values()}

    def block(self, block: Block) -> None:
        """Tie the webs of a block's ops."""
        self.copied: dict = {}  # coordinates that were copied in this block, by what they are copies of
        ops: list[Op] = []
        for op in block.ops:
            self.before: list[Op] = []
            self.after: list[Op] = []
            self.tie(op, block)
            ops += [*self.before, op, *self.after]
        block.ops = ops

    def tie(self, op: Op, block: Block) -> None:
        """Tie the webs of an op; copies that it needs go to ``before`` and ``after``."""
        if op.row is not None:
            self.relieve(op)
        if op.name in FETCHES:
            if op.name != "MEM_READ":
                self.coordinates(op)
            elif op.srcs and not op.srcs[0].value.located:
                op.srcs[0] = Src(self.copy(op, op.srcs[0].value))
            self.results(op)
        elif op.name in STORES:
            self.stored(op, block)
        elif len(op.results) == 2 and op.name != "LDS_POP":
            self.twins(op)

    def web(self, value: Value) -> Web:
        self.count += 1
        return Web(value, self.count)

    def copy(self, op: Op, value: Value) -> Value:
        """A fresh value with the same bits, for ``op`` to read."""
        made = Op("MOV", [Src(value)], op.at)
        self.web(made.results[0])
        self.before.append(made)
        return made.results[0]

    def rename(self, op: Op, n: int) -> Web:
        """Let ``op`` compute a fresh value as result ``n``, which a MOV copies to where the old one lies."""
        value, fresh = op.results[n], Value("op", op=op)
        op.results[n] = fresh
        value.op = Op("MOV", [Src(fresh)], op.at, results=[value])
        self.after.append(value.op)
        return self.web(fresh)

    def relieve(self, op: Op) -> None:
        """An op that reads more constants than a bundle may gets some of them by MOV."""
        while not constants_fit(op):
            value = next(s.value for s in op.srcs if s.value.kind in ("constant", "const"))
            fresh = self.copy(op, value)
            op.srcs = [Src(fresh, s.neg, s.abs) if s.value is value else s for s in op.srcs]

    def coordinates(self, op: Op) -> None:
        """The coordinates of a fetch, but for 0 and 1, lie in one register."""
        selectable = (0,) if op.name == "LD" else (0, ONE)
        free = [s.value for s in op.srcs if not (s.value.kind == "const" and s.value.bits in selectable)]
        if all(v.located for v in free) and join([v.web for v in free]):
            return
        key = tuple(id(v.web or v) for v in free)
        if key not in self.copied:
            self.copied[key] = [self.copy(op, v) for v in free]
            join([v.web for v in self.copied[key]])
        renamed = dict(zip(free, self.copied[key], strict=True))
        op.srcs = [Src(renamed.get(s.value, s.value)) for s in op.srcs]

    def results(self, op: Op) -> None:
        """The results of a fetch that somebody reads lie in one register."""
        used = [n for n, value in enumerate(op.results) if value in self.read]
        if not join([op.results[n].web for n in used]):
            join([self.rename(op, n) for n in used])

    def twins(self, op: Op) -> None:
        """The two words of a double lie side by side."""
        low, high = (r.web for r in op.results)
        if low.twin is high and high.twin is low:
            return
        preloaded = any(m.fixed is not None for w in (low, high) if w.cohort for m in w.cohort.webs)
        if low.twin is None and high.twin is None and low is not high and not preloaded:
            low.twin, high.twin = high, low
            if choices(low) and all(assignable(w.cohort.webs, {}) for w in (low, high) if w.cohort):
                return
            low.twin = high.twin = None
        low, high = self.rename(op, 0), self.rename(op, 1)
        low.allowed, high.allowed = LOW, HIGH
        low.twin, high.twin = high, low

    def stored(self, op: Op, block: Block) -> None:
        """The words of a store lie in their channels of one register, its address in x of another. What a loop carries
        is left where it is best for the loop."""
        count = len(op.info["mask"])
        memory = op.name == "MEM_WRITE"
        words = [s.value for s in op.srcs[:count]]
        free = [n for n, v in enumerate(words) if memory or not (v.kind == "const" and v.bits in (0, ONE))]
        channels = [op.info["mask"][n] if memory else None for n in free]
        values = [words[n] for n in free]
        fresh = list(values)
        for n, value in enumerate(values):
            if self.bound(value, block) or value in values[:n]:
                fresh[n] = self.copy(op, value)
        if not join([v.web for v in fresh], channels):
            fresh = [self.copy(op, v) for v in values]
            join([v.web for v in fresh], channels)
        for n, value in zip(free, fresh, strict=True):
            op.srcs[n] = Src(value)
        for n in range(count, len(op.srcs)):
            address = op.srcs[n].value
            if self.bound(address, block) or 0 not in choices(address.web):
                address = self.copy(op, address)
            decide(address.web, 0)
            op.srcs[n] = Src(address)

    @staticmethod
    def bound(value: Value, block: Block) -> bool:
        """Whether a value lies where a store can't have it: nowhere, where the kernel starts with it, or in a loop."""
        return not value.located or value.web.depth > block.depth or value.web.fixed is not None


def join(webs: list[Web], channels: list[int | None] | None = None) -> bool:
    """Put webs in one cohort, some in given channels; False, and nothing done, if that can't be."""
    wish = dict(zip(webs, channels or [None] * len(webs), strict=True))
    if len(wish) < len(webs):
        return False
    members = list(dict.fromkeys([m for w in webs for m in (w.cohort.webs if w.cohort else [w])]))
    registers = {m.fixed for m in members if m.fixed is not None}
    if len(members) > 4 or len(registers) > 1 or (registers and any(m.twin for m in members)):
        return False
    old = [(m, m.cohort) for m in members]
    if len(members) > 1:
        Cohort(members)
    given = {w: c for w, c in wish.items() if c is not None}
    fine = assignable(members, given) and (not given or possible(given))
    if not fine:
        for m, cohort in old:
            m.cohort = cohort
        return False
    for w, c in given.items():
        decide(w, c)
    return True


def part(block: Block, op: Op) -> None:
    """Give a double operation copies of its operands, low words in x or z and high words in y or w."""
    copies = []
    for n, s in enumerate(op.srcs):
        if s.value.located:
            copy = Op("MOV", [Src(s.value)], op.at)
            Web(copy.results[0], s.value.web.order).allowed = HIGH if n % 2 else LOW
            op.srcs[n] = Src(copy.results[0], s.neg, s.abs)
            copies.append(copy)
    at = block.ops.index(op)
    block.ops[at:at] = copies


def constants_fit(op: Op) -> bool:
    """Whether a bundle of its own can hold the op's constants."""
    places = {s.value.place for s in op.srcs if s.value.kind == "constant"}
    literals = {s.value.bits for s in op.srcs if s.value.kind == "const" and s.value.bits not in INLINE}
    scalars = sum(not s.value.located for s in op.srcs)
    if (op.row.slots == "t" and scalars > 2) or len(literals) > 4:
        return False
    windows = {(buffer, element // 32) for buffer, element, _ in places}
    return len({(b, e, c // 2) for b, e, c in places}) <= 2 and len(windows) <= 2
