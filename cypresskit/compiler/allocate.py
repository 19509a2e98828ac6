"""Register allocation: a number for every web whose channel the scheduler has decided.

The schedule says exactly when each web is alive: after the bundle that writes it, up to the last bundle that reads it
from a register. What the next bundle takes from PV or PS is never written at all. A web that lives within one ALU
clause may take a clause temporary (T0 to T3), which costs no register of the kernel's own. Lifetimes are sets of points
of the program, held as bits of an integer, so holes count: two webs may share a word if no point is in both.

Units (cohorts and twins, which share a register, or single webs) take the first register that is free in their
channels, the long-lived first; a few orders are tried and the one that needs the fewest registers stays.
"""

from dataclasses import dataclass

from cypresskit.compiler.bundles import Draft, Step
from cypresskit.compiler.code import TEMPORARY
from cypresskit.compiler.ir import Block, Function, Op, Value, liveness, refuse
from cypresskit.compiler.webs import Web
from cypresskit.devices import Device


@dataclass(eq=False)
class Allocation:
    """``registers`` used, numbers 0 up; ``written``: values that need a register; ``temporaries`` T0.. used."""

    registers: int
    written: set[Value]
    temporaries: int


def allocate(function: Function, steps: dict[Block, list[Step]], device: Device) -> Allocation:
    """Give every web its register. Raises ``CompileError`` if the chip has too few."""
    lives = _Lives(function, steps)
    webs = sorted((w for w in lives.webs if w.mask), key=lambda w: w.order)
    units = _units(webs)
    best: dict[Web, int] = {}
    count = 0
    for order in (_longest, _whole_first, _earliest):
        numbers, needed = _first_fit(sorted(units, key=order), lives.local, device)
        if not best or needed < count:
            best, count = numbers, needed
    for web, number in best.items():
        web.number = number
    temporaries = len({n for n in best.values() if n >= TEMPORARY and n >= count})
    limit = device.gpr_limit - (device.clause_temporaries if temporaries else 0)
    if count > limit:
        at = lives.crowded_at()
        raise refuse(
            function.program,
            at,
            f"the kernel needs {count} registers, most of them alive here; the chip has {limit} for a work-item. "
            "Keep fewer values alive at once: a smaller block, or fewer fetches before they are used.",
        )
    return Allocation(max(count, 1), lives.written, temporaries)


class _Lives:
    """Lifetimes of the scheduled program: each web's ``mask``, and which webs live within one ALU clause."""

    def __init__(self, function: Function, steps: dict[Block, list[Step]]):
        blocks = list(function.blocks)
        live_in, live_out = liveness(blocks)
        self.webs: dict[Web, None] = {}
        self.written: set[Value] = set()
        self.clauses: dict[Web, set] = {}
        self.op_at: list[int] = []
        for block in blocks:
            for web in live_in[block] | live_out[block]:
                web.mask = 0
            for op in block.ops:
                for value in op.results + [s.value for s in op.srcs if s.value.located]:
                    value.web.mask = 0
        point = 0
        for block in blocks:
            events = list(_events(steps[block]))
            start, end = point, point + len(events)
            last: dict[Web, int] = dict.fromkeys(live_out[block], end)
            for n in range(len(events) - 1, -1, -1):
                clause, results, reads, _ = events[n]
                for value in results:
                    web = value.web
                    if web in last:
                        self.add(web, start + n + 1, last.pop(web))
                        self.written.add(value)
                        self.clauses.setdefault(web, set()).add(clause)
                for value in reads:
                    last.setdefault(value.web, start + n)
                    self.clauses.setdefault(value.web, set()).add(clause)
            for web, stop in last.items():
                self.add(web, start, stop)
            for web in live_in[block] | live_out[block]:
                self.clauses.setdefault(web, set()).add(None)
            self.op_at += [at for *_, at in events] + [events[-1][3] if events else 0]
            point = end + 1
        self.local = {w for w, c in self.clauses.items() if len(c) == 1 and None not in c and w.cohort is None}

    def add(self, web: Web, first: int, last: int) -> None:
        web.mask |= ((1 << (last - first + 1)) - 1) << first
        self.webs[web] = None

    def crowded_at(self) -> int:
        """The instruction where most webs are alive."""
        points = range(len(self.op_at))
        most = max(points, key=lambda p: sum(w.mask >> p & 1 for w in self.webs))
        return self.op_at[most]


def _events(steps: list[Step]):
    """Per point of a block: its clause (None outside ALU clauses), the values it makes, those it reads from registers,
    and the instruction it came from."""
    for step in steps:
        if step.kind == "ALU":
            for draft in step.bundles:
                results, reads = bundle_values(draft)
                yield step, results, reads, next(iter(draft.slots.values())).op.at
        else:
            for op in step.ops:
                yield None, op.results, [s.value for s in op.srcs if s.value.located], op.at


def bundle_values(draft: Draft) -> tuple[list[Value], list[Value]]:
    """What a bundle makes, and what it reads from registers."""
    ops: dict[Op, None] = dict.fromkeys(p.op for p in draft.slots.values())
    results = [r for op in ops for r in op.results]
    reads = [s.value for op in ops for s in op.srcs if s.value.located and s.value not in draft.forwards]
    return results, reads


def _units(webs: list[Web]) -> list[list[Web]]:
    """Webs that are to share a register."""
    unit_of: dict[Web, list[Web]] = {}
    alive = set(webs)
    for web in webs:
        members = [w for w in (web.cohort.webs if web.cohort else [web]) if w in alive]
        if web not in unit_of:
            for w in members:
                unit_of[w] = members
    for web in webs:
        twin = web.twin
        if twin not in alive or unit_of[web] is unit_of[twin]:
            continue
        together = unit_of[web] + unit_of[twin]
        if len({w.channel for w in together}) == len(together) and all(w.fixed is None for w in together):
            for w in together:
                unit_of[w] = together
    return list({id(unit): unit for unit in unit_of.values()}.values())


def _movable(unit: list[Web]) -> bool:
    """Whether no web of it is preloaded, in a register that is given: those come first in every order."""
    return all(w.fixed is None for w in unit)


def _longest(unit: list[Web]):
    return _movable(unit), -max(w.mask.bit_count() for w in unit), unit[0].order


def _whole_first(unit: list[Web]):
    return _movable(unit), -(len(unit) == 4), -max(w.mask.bit_count() for w in unit), unit[0].order


def _earliest(unit: list[Web]):
    first = min((w.mask & -w.mask).bit_length() for w in unit)
    return _movable(unit), first, -max(w.mask.bit_count() for w in unit), unit[0].order


def _first_fit(units: list[list[Web]], local: set[Web], device: Device) -> tuple[dict[Web, int], int]:
    """Registers for all units in the given order, those that may live in clause temporaries last."""
    used: list[list[int]] = []
    temporary = [[0] * 4 for _ in range(device.clause_temporaries)]
    numbers: dict[Web, int] = {}

    def free(table: list[list[int]], unit: list[Web]) -> int | None:
        for g, row in enumerate(table):
            if all(not row[w.channel or 0] & w.mask for w in unit):
                return g
        return None

    def give(table: list[list[int]], g: int, unit: list[Web], first: int = 0) -> None:
        for w in unit:
            table[g][w.channel or 0] |= w.mask
            numbers[w] = first + g

    brief = [u for u in units if all(w in local for w in u)]
    for unit in [u for u in units if not all(w in local for w in u)] + brief:
        fixed = next((w.fixed for w in unit if w.fixed is not None), None)
        if fixed is not None:
            while len(used) <= fixed:
                used.append([0] * 4)
            give(used, fixed, unit)
            continue
        g = free(used, unit)
        if g is None and all(w in local for w in unit):
            t = free(temporary, unit)
            if t is not None:
                give(temporary, t, unit, TEMPORARY)
                continue
        if g is None:
            g = len(used)
            used.append([0] * 4)
        give(used, g, unit)
    return numbers, len(used)
