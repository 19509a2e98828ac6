"""The slice of compiled code that its addresses and branches depend on: most of a kernel computes
data, and its timing needs none of that.

Backwards from every address and test, operation by operation: what writes a register that one of
them reads is needed, whichever way control takes between the two; and what it reads in turn. A
register that holds an address here and data there keeps both: the slice may be too large, never
too small.
"""

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import Bundle, Operation, Read

Place = tuple[int, int]  # a register's number and channel
Spot = tuple[int, int, int]  # an operation: of which control, of which of its bundles, its number


@lru_cache(maxsize=128)
def address_slice(code: Code) -> Code:
    """``code`` with all its bundles, of which each holds only what addresses and tests depend on,
    and all LDS operations.
    """
    needed = _Slice(code)
    needed.need_addresses()
    needed.need_tests()
    controls = []
    for n, control in enumerate(code.controls):
        bundles = [needed.cut(n, b, bundle) for b, bundle in enumerate(control.bundles)]
        controls.append(replace(control, bundles=tuple(bundles)))
    return replace(code, controls=tuple(controls))


class _Slice:
    def __init__(self, code: Code):
        self.code = code
        self.needed: set[Spot] = set()
        self.places: set[Place] = set()
        self.slots: dict[Spot, list[Operation]] = defaultdict(list)
        self.writers: dict[Place, set[Spot]] = defaultdict(set)
        self.in_slot: dict[tuple[int, int, int], Spot] = {}  # by control, bundle and slot
        for n, control in enumerate(code.controls):
            for b, bundle in enumerate(control.bundles):
                for o in bundle.operations:
                    spot = n, b, o.number
                    self.slots[spot].append(o)
                    self.in_slot[n, b, o.slot] = spot
                    if o.dest is not None:
                        self.writers[o.dest].add(spot)

    def need_addresses(self) -> None:
        """What fetches, stores and LDS operations take their addresses from."""
        for control in self.code.controls:
            for f in control.fetches:
                if f.source is not None:
                    letters = [letter for letter in f.coordinates if letter in "xyzw"]
                    self._need_places([(f.source, "xyzw".index(letter)) for letter in letters])
            if control.store is not None and control.store.index is not None:
                self._need_places([(control.store.index, 0)])
        for spot, slots in self.slots.items():
            first = slots[0]
            if first.row.kind == "lds":
                addresses = 2 if first.name == "LDS_READ2_RET" else 1
                self._need(self._sources(spot, first.reads[:addresses]))

    def need_tests(self) -> None:
        """What the predicates depend on."""
        self._need([spot for spot, slots in self.slots.items() if slots[0].row.predicate])

    def cut(self, n: int, b: int, bundle: Bundle) -> Bundle:
        """A bundle with what is needed, and what keeps the LDS queue in order."""
        kept = []
        for o in bundle.operations:
            queued = o.row.kind == "lds" or any(r.kind == "queue" for r in o.reads)
            if queued or (n, b, o.number) in self.needed:
                kept.append(o)
        return replace(bundle, operations=tuple(kept))

    def _need(self, spots: list[Spot]) -> None:
        waiting = list(spots)
        while waiting:
            spot = waiting.pop()
            if spot not in self.needed:
                self.needed.add(spot)
                reads = tuple(r for o in self.slots[spot] for r in o.reads)
                waiting += self._sources(spot, reads)

    def _need_places(self, places: list[Place]) -> None:
        for place in places:
            if place not in self.places:
                self.places.add(place)
                self._need([*self.writers[place]])

    def _sources(self, spot: Spot, reads: tuple[Read, ...]) -> list[Spot]:
        """The operations that may have written what ``spot`` reads."""
        n, b, _ = spot
        spots: list[Spot] = []
        for r in reads:
            if r.kind == "gpr" and (r.index, r.channel) not in self.places:
                self.places.add((r.index, r.channel))
                spots += self.writers[r.index, r.channel]
            elif r.kind in ("pv", "ps"):
                slot = 4 if r.kind == "ps" else r.channel
                spots.append(self.in_slot[n, b - 1, slot])
        return spots
