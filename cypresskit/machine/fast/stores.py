"""Stores to LDS, outputs and global memory."""

from collections.abc import Sequence

from cypresskit.il.dataflow import lds_words
from cypresskit.machine.fast.access import Loads
from cypresskit.machine.fast.storage import ELEMENT, FAILED, ITEM, Storage
from cypresskit.machine.fast.vec import Vec, pick


class Stores:
    """Translation of stores."""

    def __init__(self, storage: Storage, loads: Loads):
        self.s, self.loads, self.e, self.body = storage, loads, storage.e, storage.program.body

    def _store(self, at: int, places: Sequence[Vec], rows: Sequence[Vec], words: Sequence[int]) -> None:
        """For each lane that executes ``at``, store ``words`` of its row at its place. Lanes that take no part store to
        a place that nobody reads: that is quicker than to jump."""
        mask = self.s.executing(at)
        for lane, (place, row) in enumerate(zip(places, rows, strict=True)):
            here = mask[lane].select(place, self.s.slot("nowhere", "ptr"))
            if list(words) == [0, 1, 2, 3]:
                here.store(row, 4)
            for word in words if len(words) < 4 else ():
                here.at(4 * word).store(row[word], 4)

    def _check(self, at: int, inside: Vec, place: Vec) -> None:
        """Where the place of some lane that executes ``at`` isn't inside: report the first of them, and give up."""
        bad = self.s.without(self.s.executing(at), inside)
        fail, rest = self.e.new("fail"), self.e.new("store")
        self.e.branch(bad.any(), fail, rest, "yes")
        self.e.label(fail)
        first = bad.first()
        self.s.report(ELEMENT, place.lanes(self.s.lanes)[first])
        self.s.report(ITEM, self.s.quad.item[first].cast("zext", "i64"))
        self.s.give_up(FAILED, self.e.const(at, "i64"))
        self.e.label(rest)

    def _rows(self, values: dict[int, Vec], whole: Vec | None) -> list[Vec]:
        """A <4 x i32> for each lane: ``values``, and the other components of ``whole``."""
        lanes = range(self.s.lanes)
        if whole and not values:
            return [whole[[4 * lane + c for c in range(4)]] for lane in lanes]
        columns = {c: whole[[4 * lane + c for lane in lanes]] for c in range(4)} if whole else {}
        columns |= {c: value.lanes(self.s.lanes) for c, value in values.items()}
        parts = [columns.get(c, columns[min(columns)]) for c in range(4)]
        return [pick(parts, [(c, lane) for c in range(4)]) for lane in lanes]

    def out(self, at: int, values: dict[int, Vec], whole: Vec | None = None) -> None:
        """Store to an output or to global memory."""
        dest, lanes = self.body[at].dest, range(self.s.lanes)
        stored = sorted({*values, *(dest.written if whole and dest else ())})
        if not stored or dest is None:
            return
        rows = self._rows(values, whole)
        if dest.register.kind == "g":
            element, inside = self.loads.global_elements(at, -9, dest.register)
            self._check(at, inside, element)
            self._store(at, self._places(self.s.slot("global", "ptr"), element << 4), rows, stored)
            return
        base, size = (self.s.slot(f"o{dest.register.index}", "ptr"), self.s.slot(f"o{dest.register.index}_words"))
        items = self.s.quad.item.cast("zext", "i64")
        for limit in (1, 2, 4):  # an output has one, two or four words for a work-item
            here, on = self.e.new("output"), self.e.new("no_output")
            self.e.branch(size.cmp("eq", limit), here, on)
            self.e.label(here)
            places = [base.at(items[lane] * (4 * limit)) for lane in lanes]
            self._store(at, places, rows, [c for c in stored if c < limit])
            self.e.go(on)
            self.e.label(on)

    def _places(self, base: Vec, offsets: Vec) -> list[Vec]:
        """The place of each lane, from byte offsets."""
        return [base.at(offsets[lane]) for lane in range(self.s.lanes)]

    def lds(self, at: int) -> None:
        """An LDS store."""
        i, n = self.body[at], self.s.lanes
        stored, (last,) = lds_words(i), i.op.passed
        rows = self._rows({c: self.loads.reading.component(at, last, c).lanes(n) for c in stored}, None)
        block, address, inside = self.loads.lds_places(at)
        self._check(at, inside(max(stored)), address)
        self._store(at, self._places(block, address), rows, stored)
