"""Out of SSA form: which values share a place, and which places belong together.

A ``Web`` is a set of values that will live in one register channel: a phi and its arguments, where their lifetimes let
them; where not, a MOV on the edge copies the argument. So a sum that a loop carries is read and written in place.

The hardware ties webs together in three ways. The results of a fetch lie in one register, and so do the coordinates
that a fetch reads, and the words of a store: a ``Cohort`` of at most four webs of different channels. The two words of
a double lie side by side in xy or zw: ``twin`` webs. A store's words and its address lie in given channels. Where the
wishes collide, a MOV parts them. The channels that remain open are left to the scheduler, the registers' numbers to the
allocator.
"""

from collections import Counter
from itertools import permutations

from cypresskit.compiler.ir import Block, Function, Op, Src, Value, liveness
from cypresskit.compiler.isa import INLINE

LOW, HIGH, ANY = 0b0101, 0b1010, 0b1111  # channels by bit: x and z, y and w, all


class Web:
    """Values that share a channel of a register. ``allowed`` channels as bits; ``channel`` once it is decided;
    ``fixed`` register number of a preloaded input."""

    __slots__ = (
        "allowed",
        "channel",
        "cohort",
        "depth",
        "fixed",
        "mask",
        "mate_high",
        "number",
        "order",
        "twin",
        "values",
    )

    def __init__(self, value: Value, order: int):
        self.values = [value]
        self.order = order
        self.allowed = ANY
        self.channel: int | None = None
        self.fixed: int | None = None
        self.cohort: Cohort | None = None
        self.twin: Web | None = None
        self.mask = 0
        self.depth = 0
        self.number: int | None = None
        value.web = self

    def __repr__(self) -> str:
        place = "?" if self.channel is None else "xyzw"[self.channel]
        return f"w{self.order}.{place}"


class Cohort:
    """Webs of different channels that must lie in one register."""

    __slots__ = ("webs",)

    def __init__(self, webs: list[Web]):
        self.webs = webs
        for web in webs:
            web.cohort = self


def choices(web: Web) -> list[int]:
    """Channels that a web may still take, its cohort and its twin considered."""
    if web.channel is not None:
        return [web.channel]
    return [c for c in range(4) if web.allowed >> c & 1 and possible({web: c})]


def decide(web: Web, channel: int) -> None:
    """Give a web its channel, and its twin the one beside it."""
    web.channel = channel
    if web.twin is not None and web.twin.channel is None:
        web.twin.channel = channel ^ 1


def possible(wish: dict[Web, int]) -> bool:
    """Whether the webs of ``wish`` can take these channels: their twins and cohorts must still find theirs."""
    wish = dict(wish)
    for web, c in list(wish.items()):
        if web.twin is not None:
            other = wish.setdefault(web.twin, c ^ 1)
            if other != c ^ 1:
                return False
    for web, c in wish.items():
        if (web.channel is not None and web.channel != c) or not web.allowed >> c & 1:
            return False
    return all(_assignable(cohort.webs, wish) for cohort in {w.cohort for w in wish if w.cohort is not None})


def _assignable(webs: list[Web], wish: dict[Web, int]) -> bool:
    """Whether webs of one register find four different channels."""
    given = [wish.get(w, w.channel) for w in webs]
    taken = [c for c in given if c is not None]
    if len(set(taken)) < len(taken):
        return False
    open_ = [w for w, c in zip(webs, given, strict=True) if c is None]
    free = [c for c in range(4) if c not in taken]
    known = dict(zip(webs, given, strict=True))

    def fits(web: Web, c: int, all_: dict) -> bool:
        if not web.allowed >> c & 1:
            return False
        other = None if web.twin is None else all_.get(web.twin, web.twin.channel)
        return other is None or other == c ^ 1

    for order in permutations(free, len(open_)):
        all_ = known | dict(zip(open_, order, strict=True))
        if all(fits(w, c, all_) for w, c in zip(open_, order, strict=True)):
            return True
    return not open_


def build(function: Function) -> list[Web]:
    """Make the webs of a function, with the copies that they need. Returns them all."""
    maker = _Maker(function)
    maker.merge_phis()
    maker.tie()
    return maker.webs


class _Maker:
    def __init__(self, function: Function):
        self.function = function
        self.blocks = list(function.blocks)
        self.webs: list[Web] = []
        self.end_of: dict[Block, int] = {}
        self.readers = Counter(s.value for b in self.blocks for op in b.ops for s in op.srcs)
        preloaded: dict[int, list[Web]] = {}
        for value in function.inputs:
            web = self.web(value)
            web.fixed, web.channel = value.place
            preloaded.setdefault(value.place[0], []).append(web)
        for webs in preloaded.values():
            Cohort(webs)
        for block in self.blocks:
            for value in block.phis:
                self.web(value)
            for op in block.ops:
                for value in op.results:
                    self.web(value)
                self.restrict(op)
        self.lifetimes()

    def web(self, value: Value) -> Web:
        web = Web(value, len(self.webs))
        self.webs.append(web)
        return web

    @staticmethod
    def restrict(op: Op) -> None:
        """Channels that the slots of a double operation allow."""
        if op.row is not None and op.row.slots in ("pair", "quad"):
            for word, result in enumerate(op.results):
                result.web.allowed = HIGH if word else LOW

    def lifetimes(self) -> None:
        """Each web's ``mask``: a bit for every point of the program where it is alive, in source order."""
        live_in, live_out = liveness(self.blocks)
        point = 0
        for block in self.blocks:
            start, end = point, point + len(block.ops)
            self.end_of[block] = end
            last = dict.fromkeys(live_out[block], end)
            for n in range(len(block.ops) - 1, -1, -1):
                op = block.ops[n]
                for result in op.results:
                    stop = last.pop(result.web, start + n + 1)
                    result.web.mask |= _span(start + n + 1, stop)
                for src in op.srcs:
                    if src.value.located:
                        last.setdefault(src.value.web, start + n)
            for web, stop in last.items():
                web.mask |= _span(start, stop)
            for phi in block.phis:
                if phi.web not in last:
                    phi.web.mask |= 1 << start
            for web in set().union(*(_webs(op) for op in block.ops), live_in[block], live_out[block]):
                web.depth = max(web.depth, block.depth)
            point = end + 1

    # Phis

    def merge_phis(self) -> None:
        copies: dict[Block, list[tuple[Value, Value]]] = {}
        for block in sorted(self.blocks, key=lambda b: -b.depth):
            for phi in block.phis:
                for pred, arg in sorted(phi.args.items(), key=lambda item: -item[0].depth):
                    if arg.web is not phi.web and not (arg.located and self.merge(phi.web, arg.web)):
                        copies.setdefault(pred, []).append((phi, arg))
                        phi.web.mask |= 1 << self.end_of[pred]
                    for arg in phi.args.values():
                        self.merge_chain(phi.web, arg)
        for pred, wanted in copies.items():
            self.copy_on_edge(pred, wanted)

    def merge_chain(self, web: Web, value: Value) -> None:
        """A sum that grows step by step in one turn of a loop stays in its place: the partial sums join its web."""
        chain: list[Value] = []
        while value.kind == "op" and value.op is not None and value.op.row is not None:
            words = 2 if value.op.row.kind == "double" else 1
            word = value.op.results.index(value)
            parts = [s.value for s in value.op.srcs[word % words :: words]]
            if any(v.kind == "phi" and v.web is web for v in parts):
                for partial in chain:
                    self.merge(web, partial.web)
                return
            name = value.op.name
            parts = [v for v in parts if v.op is not None and v.op.name == name and self.readers[v] == 1]
            if not parts:
                return
            value = parts[-1]
            chain.append(value)

    @staticmethod
    def merge(kept: Web, other: Web) -> bool:
        """Make one web of two, if their lifetimes and channels allow it."""
        if kept.mask & other.mask or not kept.allowed & other.allowed or other.fixed is not None:
            return False
        kept.allowed &= other.allowed
        kept.mask |= other.mask
        kept.depth = max(kept.depth, other.depth)
        kept.values += other.values
        for value in other.values:
            value.web = kept
        other.values = []
        return True

    def copy_on_edge(self, pred: Block, wanted: list[tuple[Value, Value]]) -> None:
        """Copies that happen at once, put in an order in which none destroys what another reads."""
        at = pred.ops[-1].at if pred.ops else 0
        todo = [(phi.web, arg) for phi, arg in wanted]
        phi_of = {phi.web: phi for phi, _ in wanted}
        while todo:
            safe = next((n for n, (web, _) in enumerate(todo) if not self.is_read(web, todo, n)), None)
            if safe is None:  # a cycle: one of its values is set aside
                web, arg = todo[0]
                op = Op("MOV", [Src(arg)], at)
                self.web(op.results[0])
                pred.ops.append(op)
                todo[0] = (web, op.results[0])
                safe = next((n for n, (web, _) in enumerate(todo) if not self.is_read(web, todo, n)), 0)
            web, arg = todo.pop(safe)
            op = Op("MOV", [Src(arg)], at)
            op.results[0].web = web
            web.values.append(op.results[0])
            phi_of[web].args[pred] = op.results[0]
            pred.ops.append(op)

    @staticmethod
    def is_read(web: Web, todo: list[tuple[Web, Value]], n: int) -> bool:
        return any(arg.web is web for m, (_, arg) in enumerate(todo) if m != n and arg.located)

    # Ties

    def tie(self) -> None:
        self.webs = [w for w in self.webs if w.values]
        for block in sorted(self.blocks, key=lambda b: -b.depth):
            self.tie_block(block)
        self.webs = [w for w in self.webs if w.values]

    def tie_block(self, block: Block) -> None:
        ops: list[Op] = []
        self.copied: dict = {}
        for op in block.ops:
            before, after = self.tie_op(op, block)
            ops += [*before, op, *after]
        block.ops = ops

    def tie_op(self, op: Op, block: Block) -> tuple[list[Op], list[Op]]:
        """Tie the webs of an op; the copies that must stand before and after it."""
        before: list[Op] = []
        after: list[Op] = []
        if op.row is not None:
            self.relieve(op, before)
        if op.name in ("SAMPLE", "LD"):
            self.coordinates(op, before)
        if op.name in ("SAMPLE", "LD", "MEM_READ"):
            self.results(op, op.results, after)
        elif len(op.results) == 2 and op.name != "LDS_POP":
            self.twins(op, after)
        elif op.name == "MEM_READ":
            self.memory_address(op, before)
        elif op.name in ("MEM_WRITE", "EXPORT"):
            self.stored(op, block, before)
        if op.name == "MEM_READ" and op.srcs and not op.srcs[0].value.located:
            op.srcs[0] = Src(self.copy(op, op.srcs[0].value, before))
        return before, after

    def relieve(self, op: Op, before: list[Op]) -> None:
        """An op that reads more constants than a bundle may gets some of them by MOV."""
        while not constants_fit(op):
            value = next(s.value for s in op.srcs if s.value.kind in ("constant", "const"))
            fresh = self.copy(op, value, before)
            op.srcs = [Src(fresh, s.neg, s.abs) if s.value is value else s for s in op.srcs]

    def memory_address(self, op: Op, before: list[Op]) -> None:
        if op.srcs and not op.srcs[0].value.located:
            op.srcs[0] = Src(self.copy(op, op.srcs[0].value, before))

    def copy(self, op: Op, value: Value, ops: list[Op]) -> Value:
        """A fresh value with the same bits."""
        made = Op("MOV", [Src(value)], op.at)
        self.web(made.results[0])
        ops.append(made)
        return made.results[0]

    def coordinates(self, op: Op, before: list[Op]) -> None:
        selectable = (0,) if op.name == "LD" else (0, 0x3F800000)
        free = [s.value for s in op.srcs if not (s.value.kind == "const" and s.value.bits in selectable)]
        if all(v.located for v in free) and self.join([v.web for v in free]):
            return
        key = tuple(id(v.web or v) for v in free)
        if key not in self.copied:
            fresh = [self.copy(op, v, before) for v in free]
            self.join([v.web for v in fresh])
            self.copied[key] = fresh
        renamed = dict(zip(free, self.copied[key], strict=True))
        op.srcs = [Src(renamed.get(s.value, s.value)) for s in op.srcs]

    def results(self, op: Op, wanted: list[Value], after: list[Op]) -> None:
        """The results that somebody reads lie in one register."""
        used = [v for v in wanted if v.web.mask & (v.web.mask - 1) or len(v.web.values) > 1 or self.read(v)]
        if self.join([v.web for v in used]) and len({v.web for v in used}) == len(used):
            return
        for n, value in enumerate(op.results):
            if value not in used:
                continue
            fresh = Value("op", op=op)
            self.web(fresh)
            op.results[n] = fresh
            mov = Op("MOV", [Src(fresh)], op.at, results=[value])
            value.op = mov
            after.append(mov)
        self.join([v.web for n, v in enumerate(op.results) if v.web in self.webs_of(after)])

    @staticmethod
    def webs_of(ops: list[Op]) -> set[Web]:
        return {s.value.web for op in ops for s in op.srcs}

    def read(self, value: Value) -> bool:
        if not hasattr(self, "reads"):
            self.reads = {s.value for b in self.blocks for o in b.ops for s in o.srcs}
            self.reads |= {v for b in self.blocks for phi in b.phis for v in phi.args.values()}
        return value in self.reads

    def twins(self, op: Op, after: list[Op]) -> None:
        low, high = (r.web for r in op.results)
        if low.twin is high and high.twin is low:
            return
        pinned = any(m.fixed is not None for w in (low, high) if w.cohort for m in w.cohort.webs)
        if low.twin is None and high.twin is None and low is not high and not pinned:
            low.twin, high.twin = high, low
            if choices(low) and all(_assignable(w.cohort.webs, {}) for w in (low, high) if w.cohort):
                return
            low.twin = high.twin = None
        values = list(op.results)
        for n, value in enumerate(values):
            fresh = Value("op", op=op)
            web = self.web(fresh)
            web.allowed = HIGH if n else LOW
            op.results[n] = fresh
            mov = Op("MOV", [Src(fresh)], op.at, results=[value])
            value.op = mov
            after.append(mov)
        low, high = (r.web for r in op.results)
        low.twin, high.twin = high, low

    def stored(self, op: Op, block: Block, before: list[Op]) -> None:
        """The words of a store, in their channels of one register; the address in x of another."""
        count = len(op.info["mask"])
        memory = op.name == "MEM_WRITE"
        free = [
            n
            for n in range(count)
            if memory or not (op.srcs[n].value.kind == "const" and op.srcs[n].value.bits in (0, 0x3F800000))
        ]
        values = [op.srcs[n].value for n in free]
        channels = [op.info["mask"][n] if memory else None for n in free]
        fresh = list(values)
        for n, value in enumerate(values):
            web = value.web
            deeper = web is not None and web.depth > block.depth
            if not value.located or deeper or value in values[:n] or web.fixed is not None:
                fresh[n] = self.copy(op, value, before)
        if not self.join([v.web for v in fresh], channels):
            fresh = [self.copy(op, v, before) for v in values]
            self.join([v.web for v in fresh], channels)
        for n, value in zip(free, fresh, strict=True):
            op.srcs[n] = Src(value)
        if len(op.srcs) > count:
            address = op.srcs[count].value
            web = address.web
            if web is None or web.depth > block.depth or web.fixed is not None or 0 not in choices(web):
                address = self.copy(op, address, before)
            decide(address.web, 0)
            op.srcs[count] = Src(address)

    @staticmethod
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
        fine = _assignable(members, given) and (not given or possible(given))
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


def _webs(op: Op) -> set[Web]:
    return {s.value.web for s in op.srcs if s.value.located} | {r.web for r in op.results}


def _span(first: int, last: int) -> int:
    """Bits first..last."""
    return ((1 << (last - first + 1)) - 1) << first if last >= first else 0
