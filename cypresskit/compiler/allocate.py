"""Register allocation: a number for every virtual register whose channel the scheduler has decided.

The schedule says exactly when each is alive: after the bundle that writes it, up to the last bundle
that reads it from a register. What the next bundle takes from PV or PS is never written at all.
What lives within one ALU clause may take a clause temporary (T0 to T3), which costs no register of
the kernel's own. Lifetimes are sets of points of the program, held as bits of an integer: two may
share a word if no point is in both. Units (groups, pairs, or single virtual registers) take the
first register that is free in their channels, in one of some orders (``ALLOCATION_ORDERS``).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from cypresskit.compiler.assembly import TEMPORARY
from cypresskit.compiler.ir import Function, VirtualRegister, Word
from cypresskit.compiler.ports import ClausePlan, Plans
from cypresskit.compiler.vregs import Alive
from cypresskit.devices import Limits

Unit = tuple[VirtualRegister, ...]
UnitOrder = Callable[[Unit], tuple]  # a sort key


class Allocation(NamedTuple):
    """The result: how many ``registers`` are used, and temporaries T0 ..; the ``numbers`` of
    virtual registers; ``written``, the words that need a register.
    """

    registers: int
    temporaries: int
    numbers: dict[VirtualRegister, int]
    written: set[Word]


def allocate(
    lives: "Lifetimes",
    limits: Limits,
    order: UnitOrder,
    temporaries_first: bool = False,
) -> Allocation:
    """Give every unit a register: preloaded ones theirs, the others in the given order, those that
    may live in clause temporaries last. These take a temporary before they make another register
    necessary, or, with ``temporaries_first``, wherever one is free.
    """
    used: list[list[int]] = []
    temporary = [[0] * 4 for _ in range(limits.clause_temporaries)]
    numbers: dict[VirtualRegister, int] = {}

    def key(unit: Unit) -> tuple:
        return lives.is_local(unit), all(w.fixed is None for w in unit), *order(unit)

    for unit in sorted(lives.units, key=key):
        tables = [used]
        if lives.is_local(unit):
            tables.insert(0 if temporaries_first else 1, temporary)
        rows = ((t, g) for t in tables for g in range(len(t)))
        free = ((t, g) for t, g in rows if not any(t[g][w.channel or 0] & w.mask for w in unit))
        given = [(used, w.fixed) for w in unit if w.fixed is not None]
        table, g = given[0] if given else next(free, (used, len(used)))
        while len(table) <= g:
            table.append([0] * 4)
        for w in unit:
            table[g][w.channel or 0] |= w.mask
            numbers[w] = g + (TEMPORARY if table is temporary else 0)
    return Allocation(max(len(used), 1), sum(map(any, temporary)), numbers, lives.written)


def _longest(unit: Unit) -> tuple:
    return -max(w.mask.bit_count() for w in unit), unit[0].order


def _whole_first(unit: Unit) -> tuple:
    return len(unit) != 4, *_longest(unit)


def earliest(unit: Unit) -> tuple:
    """Sort key: the units that come to life first go first."""
    return min((w.mask & -w.mask).bit_length() for w in unit), *_longest(unit)


#: The orders that ``search`` tries.
ALLOCATION_ORDERS: tuple[UnitOrder, ...] = (_longest, _whole_first, earliest)


class Lifetimes:
    """Lifetimes of the scheduled program: each virtual register's ``mask``, the ``units`` that lie
    in one register, and the ``local`` ones, which live within one ALU clause.
    """

    def __init__(self, function: Function, plans: Plans):
        steps = {block: list(_steps(plans[block])) for block in function.blocks}
        alive = Alive(list(steps))
        clauses: dict[VirtualRegister, set[ClausePlan | None]] = defaultdict(set)
        for vreg in chain(*alive.into.values(), *alive.out.values()):
            clauses[vreg].add(None)
            vreg.mask = 0
        for word in (
            word for step in chain(*steps.values()) for word in (*step.results, *step.reads)
        ):
            word.vreg.mask = 0
        self.written = alive.set_masks(steps)
        for step in chain(*steps.values()):
            for word in (*step.reads, *(r for r in step.results if r in self.written)):
                clauses[word.vreg].add(step.clause)
        self.at = [
            at
            for found in steps.values()
            for at in [*(s.at for s in found), found[-1].at if found else 0]
        ]
        self.vregs = sorted((w for w in clauses if w.mask), key=lambda w: w.order)
        self.local = {
            w for w in self.vregs if len(clauses[w]) == 1 and None not in clauses[w] and not w.group
        }
        self.units = _units(self.vregs)

    def is_local(self, unit: Unit) -> bool:
        return all(w in self.local for w in unit)

    def crowded_at(self) -> int:
        """The number of the instruction at which most words are alive."""
        return self.at[
            max(range(len(self.at)), key=lambda p: sum(w.mask >> p & 1 for w in self.vregs))
        ]


class _Step(NamedTuple):
    """A bundle, fetch or store: its results, its reads from registers, its ALU ``clause`` if it is
    in one, and the instruction that it came from.
    """

    results: list[Word]
    reads: list[Word]
    clause: ClausePlan | None
    at: int


def _steps(plans: list[ClausePlan]) -> Iterator[_Step]:
    for plan in plans:
        for draft in plan.bundles:
            ops = list(dict.fromkeys(p.op for p in draft.slots.values()))
            reads = [word for op in ops for word in op.located if word not in draft.forwards]
            yield _Step([r for op in ops for r in op.results], reads, plan, ops[0].at)
        yield from (_Step(op.results, op.located, None, op.at) for op in plan.ops)


def _units(vregs: list[VirtualRegister]) -> list[Unit]:
    """The units: tuples of virtual registers that must share a register."""
    unit_of: dict[VirtualRegister, Unit] = {
        v: tuple(w for w in v.group or [v] if w.mask) for v in vregs
    }
    for vreg in vregs:
        if vreg.pair in unit_of and unit_of[vreg] != unit_of[vreg.pair]:
            together = unit_of[vreg] + unit_of[vreg.pair]
            if len({w.channel for w in together}) == len(together) and all(
                w.fixed is None for w in together
            ):
                unit_of |= dict.fromkeys(together, together)
    return list(dict.fromkeys(unit_of.values()))
