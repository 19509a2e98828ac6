"""Out of SSA form: which values share a place.

A ``Web`` is a set of values that will live in one register channel: a phi and its arguments, where their lifetimes let
them; where not, a MOV on the edge copies the argument. So a sum that a loop carries is read and written in place.

Webs may be tied to each other (``ties``): a ``Cohort`` of at most four lies in different channels of one register, and
``twin`` webs, the words of a double, side by side in xy or zw. What channels remain open is left to the scheduler, the
registers' numbers to the allocator.
"""

from collections import Counter
from itertools import permutations

from cypresskit.compiler.ir import Block, Function, Op, Src, Value, liveness

LOW, HIGH, ANY = 0b0101, 0b1010, 0b1111  # channels by bit: x and z, y and w, all


class Web:
    """Values that share a channel of a register: ``number`` and ``channel`` once they are decided. ``allowed`` channels
    as bits; ``fixed`` register of a preloaded input; ``mask``, a bit for every point of the program where it is alive;
    ``depth`` of the innermost loop it is alive in; ``order`` in which webs were made."""

    __slots__ = (*"allowed channel cohort depth fixed mask number order twin values".split(),)

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
    return all(assignable(cohort.webs, wish) for cohort in {w.cohort for w in wish if w.cohort is not None})


def assignable(webs: list[Web], wish: dict[Web, int]) -> bool:
    """Whether webs of one register find four different channels, ``wish`` among them."""
    given = {w: wish.get(w, w.channel) for w in webs}
    taken = [c for c in given.values() if c is not None]
    free = [c for c in range(4) if c not in taken]
    open_ = [w for w, c in given.items() if c is None]

    def fits(web: Web, c: int, all_: dict) -> bool:
        other = None if web.twin is None else all_.get(web.twin, web.twin.channel)
        return bool(web.allowed >> c & 1) and other in (None, c ^ 1)

    def works(order: tuple[int, ...]) -> bool:
        all_ = given | dict(zip(open_, order, strict=True))
        return all(fits(w, c, all_) for w, c in zip(open_, order, strict=True))

    return len(set(taken)) == len(taken) and any(map(works, permutations(free, len(open_))))


def build(function: Function) -> list[Web]:
    """Make the webs of a function, with the copies on edges that its phis need. Returns them all."""
    maker = _Maker(function)
    maker.merge_phis()
    return maker.webs


class _Maker:
    """Makes a web for every value, then merges those of phis and their arguments."""

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


def _webs(op: Op) -> set[Web]:
    return {s.value.web for s in op.srcs if s.value.located} | {r.web for r in op.results}


def _span(first: int, last: int) -> int:
    """Bits first..last."""
    return ((1 << (last - first + 1)) - 1) << first if last >= first else 0
