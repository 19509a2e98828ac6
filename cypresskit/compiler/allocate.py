"""Register allocation: a number for every virtual register whose channel the scheduler has decided.

The schedule says exactly when each is alive: after the bundle that writes it, up to the last bundle that reads it from
a register. What the next bundle takes from PV or PS is never written at all. What lives within one ALU clause may take
a clause temporary (T0 to T3), which costs no register of the kernel's own. Lifetimes are sets of points of the program,
held as bits of an integer, so holes count: two may share a word if no point is in both.

Units (groups and pairs, which share a register, or single virtual registers) take the first register that is free in
their channels, in one of some orders (``ORDERS``).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cypresskit.compiler.assembly import TEMPORARY
from cypresskit.compiler.ir import Op, VirtualRegister, Word
from cypresskit.compiler.packing import ClausePlan, Draft
from cypresskit.compiler.schedule import Schedule
from cypresskit.compiler.vregs import liveness, span
from cypresskit.devices import Device

Unit = list[VirtualRegister]


@dataclass(eq=False)
class Allocation:
    """``registers`` used, and ``temporaries`` T0..; the ``numbers`` of virtual registers; ``written``: words that need
    a register."""

    registers: int
    temporaries: int
    numbers: dict[VirtualRegister, int]
    written: set[Word]


def allocate(
    lives: "Lifetimes", device: Device, order: Callable[[Unit], tuple], temporaries_first: bool = False
) -> Allocation:
    """Registers for all units in the given order, those that may live in clause temporaries last. These take one before
    they make another register necessary, or, ``temporaries_first``, wherever one is free."""
    used: list[list[int]] = []
    temporary = [[0] * 4 for _ in range(device.clause_temporaries)]
    numbers: dict[VirtualRegister, int] = {}

    def free(table: list[list[int]], unit: Unit) -> int | None:
        for g, row in enumerate(table):
            if all(not row[w.channel or 0] & w.mask for w in unit):
                return g
        return None

    def give(table: list[list[int]], g: int, unit: Unit, first: int = 0) -> None:
        while len(table) <= g:
            table.append([0] * 4)
        for w in unit:
            table[g][w.channel or 0] |= w.mask
            numbers[w] = first + g

    units = sorted(lives.units, key=order)
    early = lives.is_local if temporaries_first else lambda unit: False
    for unit in sorted(units, key=lives.is_local):
        g = next((w.fixed for w in unit if w.fixed is not None), None)
        if g is None and not early(unit):
            g = free(used, unit)
        if g is None and lives.is_local(unit):
            t = free(temporary, unit)
            if t is not None:
                give(temporary, t, unit, TEMPORARY)
                continue
            g = free(used, unit)
        give(used, len(used) if g is None else g, unit)
    temporaries = len({n for n in numbers.values() if n >= TEMPORARY and n >= len(used)})
    return Allocation(max(len(used), 1), temporaries, numbers, lives.written)


def _movable(unit: Unit) -> bool:
    """Whether nothing in it is preloaded, in a register that is given: those come first in every order."""
    return all(w.fixed is None for w in unit)


def _life(unit: Unit) -> int:
    return max(w.mask.bit_count() for w in unit)


def _longest(unit: Unit) -> tuple:
    return _movable(unit), -_life(unit), unit[0].order


def _whole_first(unit: Unit) -> tuple:
    return _movable(unit), -(len(unit) == 4), -_life(unit), unit[0].order


def earliest(unit: Unit) -> tuple:
    """The order in which they come to life."""
    first = min((w.mask & -w.mask).bit_length() for w in unit)
    return _movable(unit), first, -_life(unit), unit[0].order


ORDERS = (_longest, _whole_first, earliest)


class Lifetimes:
    """Lifetimes of the scheduled program: each virtual register's ``mask``, the ``units`` that lie in one register, and
    which live within one ALU clause."""

    def __init__(self, scheduled: Schedule):
        blocks = list(scheduled.function.blocks)
        live_in, live_out = liveness(blocks)
        self.vregs: dict[VirtualRegister, None] = {}
        self.written: set[Word] = set()
        self.op_at: list[int] = []
        clauses: dict[VirtualRegister, set[ClausePlan | None]] = {}
        for block in blocks:
            through = live_in[block] | live_out[block]
            for vreg in through.union(w.vreg for op in block.ops for w in (*op.located, *op.results)):
                vreg.mask = 0
        point = 0
        for block in blocks:
            events = list(_events(scheduled.plans[block]))
            start, end = point, point + len(events)
            last: dict[VirtualRegister, int] = dict.fromkeys(live_out[block], end)
            for n in range(len(events) - 1, -1, -1):
                clause, results, reads, _ = events[n]
                for word in results:
                    if word.vreg in last:
                        self.add(word.vreg, start + n + 1, last.pop(word.vreg))
                        self.written.add(word)
                        clauses.setdefault(word.vreg, set()).add(clause)
                for word in reads:
                    last.setdefault(word.vreg, start + n)
                    clauses.setdefault(word.vreg, set()).add(clause)
            for vreg, stop in last.items():
                self.add(vreg, start, stop)
            for vreg in live_in[block] | live_out[block]:
                clauses.setdefault(vreg, set()).add(None)
            self.op_at += [at for *_, at in events] + [events[-1][3] if events else 0]
            point = end + 1
        self.local = {w for w, c in clauses.items() if len(c) == 1 and None not in c and w.group is None}
        self.units = _units(sorted((w for w in self.vregs if w.mask), key=lambda w: w.order))

    def add(self, vreg: VirtualRegister, first: int, last: int) -> None:
        vreg.mask |= span(first, last)
        self.vregs[vreg] = None

    def is_local(self, unit: Unit) -> bool:
        """Whether it may live in a clause temporary."""
        return all(w in self.local for w in unit)

    def crowded_at(self) -> int:
        """The instruction where most is alive."""
        points = range(len(self.op_at))
        most = max(points, key=lambda p: sum(w.mask >> p & 1 for w in self.vregs))
        return self.op_at[most]


def _events(plans: list[ClausePlan]) -> Iterator[tuple[ClausePlan | None, list[Word], list[Word], int]]:
    """Per point of a block: its clause (None outside ALU clauses), the words it makes, those it reads from registers,
    and the instruction it came from."""
    for plan in plans:
        for draft in plan.bundles:
            results, reads = _bundle_words(draft)
            yield plan, results, reads, next(iter(draft.slots.values())).op.at
        for op in plan.ops:
            yield None, op.results, op.located, op.at


def _bundle_words(draft: Draft) -> tuple[list[Word], list[Word]]:
    """What a bundle makes, and what it reads from registers."""
    ops: dict[Op, None] = dict.fromkeys(p.op for p in draft.slots.values())
    reads = [word for op in ops for word in op.located if word not in draft.forwards]
    return [r for op in ops for r in op.results], reads


def _units(vregs: list[VirtualRegister]) -> list[Unit]:
    """Virtual registers that are to share a register."""
    unit_of: dict[VirtualRegister, Unit] = {}
    alive = set(vregs)
    for vreg in vregs:
        members = [w for w in (vreg.group.vregs if vreg.group else [vreg]) if w in alive]
        if vreg not in unit_of:
            for w in members:
                unit_of[w] = members
    for vreg in vregs:
        pair = vreg.pair
        if pair is None or pair not in alive or unit_of[vreg] is unit_of[pair]:
            continue
        together = unit_of[vreg] + unit_of[pair]
        if len({w.channel for w in together}) == len(together) and all(w.fixed is None for w in together):
            for w in together:
                unit_of[w] = together
    return list({id(unit): unit for unit in unit_of.values()}.values())
