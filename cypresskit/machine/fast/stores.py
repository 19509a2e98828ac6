"""Stores to LDS, outputs and global memory."""

from collections.abc import Callable, Sequence
from functools import partial

from cypresskit.il.dataflow import lds_words
from cypresskit.machine.fast.access import Loads
from cypresskit.machine.fast.readwrite import representative
from cypresskit.machine.fast.storage import ELEMENT, FAILED, ITEM, Storage
from cypresskit.machine.fast.vec import Vec, pick

Words = Callable[[int], list[tuple[int, Vec]]]  # of a lane: what it stores, with byte offsets


class Stores:
    """Translation of stores."""

    def __init__(self, storage: Storage, loads: Loads):
        self.s, self.loads, self.e, self.body = storage, loads, storage.e, storage.program.body

    def _store(self, at: int, places: Sequence[Vec], words: Words) -> None:
        """For each lane that executes ``at``, store ``words(lane)`` at ``places[lane]``. Lanes that take no part store
        to a place that nobody reads: that is quicker than to jump."""
        mask = self.s.executing(at)
        for lane, place in enumerate(places):
            here = mask[lane].select(place, self.s.slot("nowhere", "ptr"))
            for offset, value in words(lane):
                here.at(offset).store(value, 4)

    def _check(self, at: int, inside: Vec, place: Vec, bits: int) -> None:
        """Where the place of some lane that executes ``at`` isn't inside: report the first of them, and give up; place
        and test are those of distinct lanes."""
        shared = representative(self.s.lanes, bits)
        bad = self.s.without(self.s.executing(at), inside[shared] if inside.n else inside)
        fail, rest = self.e.new("fail"), self.e.new("store")
        self.e.branch(bad.any(), fail, rest, "yes")
        self.e.label(fail)
        first = bad.first()
        self.s.report(ELEMENT, place[shared][first] if place.n else place)
        self.s.report(ITEM, self.s.quad.item[first].cast("zext", "i64"))
        self.s.give_up(FAILED, self.e.const(at, "i64"))
        self.e.label(rest)

    def _rows(self, at: int, values: dict[int, Vec], whole: Vec | None) -> tuple[list[int], list[Vec]]:
        """The components that are stored, and a <4 x i32> for each lane: ``values``, and the others of ``whole``."""
        n, dest = self.s.lanes, self.body[at].dest
        of_whole = [c for c in dest.written if c not in values] if whole and dest else []
        stored = sorted({*values, *of_whole})
        if whole and len(of_whole) == 4:
            return stored, [whole[[4 * lane + c for c in range(4)]] for lane in range(n)]
        columns = {c: whole[[4 * lane + c for lane in range(n)]] for c in of_whole} if whole else {}
        columns |= {c: value.lanes(n) for c, value in values.items()}
        parts = [columns.get(c, columns[stored[0]]) for c in range(4)]
        return stored, [pick(parts, [(c, lane) for c in range(4)]) for lane in range(n)]

    def out(self, at: int, values: dict[int, Vec], whole: Vec | None = None) -> None:
        """Store to an output or to global memory."""
        if not values and whole is None:
            return
        stored, rows = self._rows(at, values, whole)
        dest = self.body[at].dest
        assert dest is not None

        def words(lane: int, limit: int = 4) -> list[tuple[int, Vec]]:
            kept = [c for c in stored if c < limit]
            return [(0, rows[lane])] if kept == [0, 1, 2, 3] else [(4 * c, rows[lane][c]) for c in kept]

        if dest.register.kind == "g":
            element, inside, bits = self.loads.global_elements(at, -9, dest.register)
            self._check(at, inside, element, bits)
            self._store(at, self._places(self.s.slot("global", "ptr"), element << 4, bits), words)
            return
        base, size = (self.s.slot(f"o{dest.register.index}", "ptr"), self.s.slot(f"o{dest.register.index}_words"))
        items = self.s.quad.item.cast("zext", "i64")
        for limit in (1, 2, 4):  # an output has one, two or four words for a work-item
            here, on = self.e.new("output"), self.e.new("no_output")
            self.e.branch(size.cmp("eq", limit), here, on)
            self.e.label(here)
            places = [base.at(items[lane] * (4 * limit)) for lane in range(self.s.lanes)]
            self._store(at, places, partial(words, limit=limit))
            self.e.go(on)
            self.e.label(on)

    def _places(self, base: Vec, offsets: Vec, bits: int) -> list[Vec]:
        """The place of each lane, from byte offsets in distinct lanes."""
        distinct = [base.at(offsets[k]) for k in range(max(offsets.n, 1))]
        return [distinct[k] for k in representative(self.s.lanes, bits)]

    def lds(self, at: int) -> None:
        """An LDS store."""
        i, n = self.body[at], self.s.lanes
        stored, (last,) = lds_words(i), i.op.passed
        values = {c: self.loads.reading.component(at, last, c).lanes(n) for c in stored}
        block, address, below, bits = self.loads.lds_places(at)
        self._check(at, below(max(stored)), address, bits)

        def words(lane: int) -> list[tuple[int, Vec]]:
            if stored == (0, 1, 2, 3):
                return [(0, pick([values[c] for c in stored], [(c, lane) for c in stored]))]
            return [(4 * c, values[c][lane]) for c in stored]

        self._store(at, self._places(block, address, bits), words)
