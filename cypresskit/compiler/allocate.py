"""Allocate registers: choose a number for every virtual register. The scheduler chose its channel.

The schedule determines when each is alive: after the bundle that writes it, up to the last bundle
that reads it from a register. A result that only the next bundle reads, through PV or PS, is never
written. A virtual register that lives within one ALU clause may take a clause temporary (T0 to T3),
which doesn't count as a register of the kernel.

A live range is a set of points of the program, as bits of an integer. Two virtual registers may
share a register if no point is in both. Units (groups, pairs, single virtual registers) take the
first register that is free in their channels, in the order in which their live ranges begin.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from cypresskit.compiler.ir import Function, VirtualRegister, Word, error_at
from cypresskit.compiler.liveness import Alive
from cypresskit.compiler.ports import ClausePlan, Plans
from cypresskit.compiler.target import Target
from cypresskit.devices import FIRST_TEMPORARY

Unit = tuple[VirtualRegister, ...]
RegisterTable = list[list[int]]  # by register and channel: the points at which it is in use


class Allocation(NamedTuple):
    """The result.

    Attributes
    ----------
    registers, temporaries
        How many registers and clause temporaries are used.
    numbers
        The register number of each virtual register.
    written
        The words that need a register.
    """

    registers: int
    temporaries: int
    numbers: dict[VirtualRegister, int]
    written: set[Word]


def allocate(function: Function, plans: Plans, target: Target) -> Allocation:
    """Give every unit a register.

    Preloaded units keep theirs. The others follow in the order in which their live ranges begin;
    those that may use clause temporaries come last, and take one if it is free.

    Raises
    ------
    CompileError
        If the chip has too few registers.
    """
    lives = Lifetimes(function, plans)
    registers: RegisterTable = []
    temporaries: RegisterTable = [[0] * 4 for _ in range(target.clause_temporaries)]
    numbers: dict[VirtualRegister, int] = {}

    def key(unit: Unit) -> tuple:
        start = min((vreg.mask & -vreg.mask).bit_length() for vreg in unit)
        length = max(vreg.mask.bit_count() for vreg in unit)
        preloaded = any(vreg.fixed is not None for vreg in unit)
        return lives.is_local(unit), not preloaded, start, -length, unit[0].order

    for unit in sorted(lives.units, key=key):
        tables = [temporaries, registers] if lives.is_local(unit) else [registers]
        fixed = [vreg.fixed for vreg in unit if vreg.fixed is not None]
        table, number = (registers, fixed[0]) if fixed else _first_free(unit, tables, registers)
        while len(table) <= number:
            table.append([0] * 4)
        for vreg in unit:
            table[number][vreg.channel or 0] |= vreg.mask
            numbers[vreg] = number + (FIRST_TEMPORARY if table is temporaries else 0)

    if len(registers) > target.usable_gprs:
        what = (
            f"the kernel needs {len(registers)} registers, most of them alive here; the chip has"
            f" {target.usable_gprs} for a work-item. Keep fewer values alive at once: a smaller"
            " block, or fetches closer to their uses."
        )
        raise error_at(function.program, lives.crowded_at(), what)
    return Allocation(max(len(registers), 1), sum(map(any, temporaries)), numbers, lives.written)


def _first_free(
    unit: Unit, tables: list[RegisterTable], registers: RegisterTable
) -> tuple[RegisterTable, int]:
    """Return the first row of the tables that is free in a unit's channels while it lives; if there
    is none, a new row of ``registers``.
    """
    for table in tables:
        for number, channels in enumerate(table):
            if not any(channels[vreg.channel or 0] & vreg.mask for vreg in unit):
                return table, number
    return registers, len(registers)


class Lifetimes:
    """Live ranges of the scheduled program.

    Sets each virtual register's ``mask``.

    Attributes
    ----------
    units
        Tuples of virtual registers that share a register.
    local
        Virtual registers that live within one ALU clause.
    """

    def __init__(self, function: Function, plans: Plans):
        steps = {block: list(_steps(plans[block])) for block in function.blocks}
        alive = Alive(list(steps))

        # The clauses in which each is read or written; None stands for outside of any clause.
        clauses: dict[VirtualRegister, set[ClausePlan | None]] = defaultdict(set)
        for vreg in chain(*alive.into.values(), *alive.out.values()):
            clauses[vreg].add(None)
            vreg.mask = 0
        for step in chain(*steps.values()):
            for word in (*step.results, *step.reads):
                word.vreg.mask = 0
        self.written = alive.set_masks(steps)
        for step in chain(*steps.values()):
            for word in (*step.reads, *(r for r in step.results if r in self.written)):
                clauses[word.vreg].add(step.clause)

        # A block has one more point than steps: its end.
        self.instruction_at: list[int] = []
        for block_steps in steps.values():
            numbers = [step.at for step in block_steps]
            self.instruction_at += [*numbers, numbers[-1] if numbers else 0]

        living = [vreg for vreg in clauses if vreg.mask]
        self.vregs = sorted(living, key=lambda vreg: vreg.order)
        self.local = {
            vreg for vreg in self.vregs if len(clauses[vreg]) == 1 and None not in clauses[vreg]
        }
        self.units = _units(self.vregs)

    def is_local(self, unit: Unit) -> bool:
        """Return whether a unit lives within one ALU clause."""
        return all(vreg in self.local for vreg in unit)

    def crowded_at(self) -> int:
        """Return the number of the instruction at which most words are alive."""
        points = range(len(self.instruction_at))
        crowded = max(points, key=lambda point: sum(v.mask >> point & 1 for v in self.vregs))
        return self.instruction_at[crowded]


class _Step(NamedTuple):
    """A bundle, fetch or store.

    Attributes
    ----------
    results
        The words that it makes.
    reads
        The words that it reads from registers.
    clause
        Its ALU clause, if it is in one.
    at
        Its instruction's index in ``Program.body``.
    """

    results: list[Word]
    reads: list[Word]
    clause: ClausePlan | None
    at: int


def _steps(plans: list[ClausePlan]) -> Iterator[_Step]:
    """Yield the steps of a block in order."""
    for plan in plans:
        for draft in plan.bundles:
            ops = list(dict.fromkeys(p.op for p in draft.slots.values()))
            reads = [word for op in ops for word in op.register_words if word not in draft.forwards]
            yield _Step([r for op in ops for r in op.results], reads, plan, ops[0].at)
        yield from (_Step(op.results, op.register_words, None, op.at) for op in plan.ops)


def _units(vregs: list[VirtualRegister]) -> list[Unit]:
    """Return tuples of virtual registers that must share a register."""
    unit_of: dict[VirtualRegister, Unit] = {}
    for vreg in vregs:
        unit_of[vreg] = tuple(member for member in vreg.group or [vreg] if member.mask)
    for vreg in vregs:
        if vreg.pair not in unit_of or unit_of[vreg] == unit_of[vreg.pair]:
            continue
        together = unit_of[vreg] + unit_of[vreg.pair]
        channels_differ = len({member.channel for member in together}) == len(together)
        if channels_differ and all(member.fixed is None for member in together):
            unit_of |= dict.fromkeys(together, together)
    return list(dict.fromkeys(unit_of.values()))
