"""Strips: turns of a loop that run without a test, and read textures by whole lines.

Most loops of a GEMM kernel break where a counter reaches a bound, and look in textures at places
that don't change, or that such a counter tells. How many turns are left, and in how many of them
every texel lies inside, is then a matter of a few divisions. So many turns run without a test, as a
strip; what is left of the loop follows as it stands.

``strip_loop`` finds such loops in the program; ``safe_turns`` is the proof, made when the code
runs, that in so many turns nothing needs a test.
"""

from dataclasses import dataclass, field
from functools import reduce

from cypresskit.il.dataflow import defines
from cypresskit.il.program import LETTERS
from cypresskit.machine.fast.analysis import Analysis, Cell
from cypresskit.machine.fast.fetches import Coordinates, LaneLoads, beside
from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.vec import Vec

EXACT = 2**24  # up to it, every whole number is a float


@dataclass(frozen=True)
class Counter:
    """A cell that a loop only adds to: ``steps`` are the positive whole numbers that instructions,
    by index, add.
    """

    cell: Cell
    steps: dict[int, int]

    @property
    def step(self) -> int:
        """What a turn adds."""
        return sum(self.steps.values())

    def before(self, at: int) -> int:
        """What a turn adds before instruction ``at``."""
        return sum(step for adds, step in self.steps.items() if adds < at)


@dataclass(frozen=True)
class BreakTest:
    """A break that is taken once ``counter`` reaches what the comparison ``at`` compares it with,
    at position ``component`` of its second source; that never changes in the loop.
    """

    at: int
    component: int
    counter: Counter


@dataclass(frozen=True)
class StripLoop:
    """A loop opened at ``at`` whose turns can be counted beforehand: its ``counters`` by their
    cells' names, the ``tests`` of all its breaks, the ``fetches`` in it, by index.

    ``in_lines``: the groups of fetches that a strip reads by lines; whoever translates it enters
    them.
    """

    at: int
    inside: range
    counters: dict[str, Counter]
    tests: list[BreakTest]
    fetches: list[int]
    in_lines: list[list[LaneLoads]] = field(default_factory=list)

    @property
    def steps(self) -> dict[str, dict[int, int]]:
        """What instructions, by index, add to counters, by name."""
        return {name: counter.steps for name, counter in self.counters.items()}


def strip_loop(analysis: Analysis, at: int) -> StripLoop | None:
    """The loop opened at ``at``, if its turns can be counted beforehand.

    That is so if (1) the only control flow inside are breaks, each taken once a counter reaches a
    bound that never changes; (2) all other instructions compute into registers, or fetch; and (3)
    every coordinate of these fetches is a counter or never changes.
    """
    inside = range(at + 1, analysis.program.matching[at])
    if at in analysis.uniformity.group_level:
        return None
    counters = _counters(analysis, inside)
    tests, fetches = [], []
    for k in inside:
        i = analysis.body[k]
        if i.op.flow:
            test = _break_test(analysis, inside, counters, k)
            if test is None:
                return None
            tests.append(test)
        elif i.dest is None or i.dest.register.kind != "r" or i.op.kind not in ("alu", "fetch"):
            return None
        elif any(register.kind == "g" for register in i.registers):
            return None
        elif i.op.kind == "fetch":
            fetches.append(k)
    dimensions = analysis.program.textures
    known = all(
        _never_changes(analysis, inside, k, 0, axis)
        or (analysis.body[k].opcode == "sample" and _counter_of(analysis, counters, k, axis))
        for k in fetches
        for axis in range(dimensions[analysis.body[k].controls.resource])
    )
    if not tests or not known:
        return None
    needed = {test.counter.cell.name for test in tests}
    needed |= {cell.name for k in fetches for cell in analysis.read[k]}
    counters = {name: counter for name, counter in counters.items() if name in needed}
    return StripLoop(at, inside, counters, tests, fetches)


def _counters(analysis: Analysis, inside: range) -> dict[str, Counter]:
    """The cells that every writer in a loop adds a positive whole number to, by name."""
    steps: dict[str, dict[int, int]] = {}
    cells: dict[str, Cell] = {}
    others: set[str] = set()
    for at in inside:
        for c in defines(analysis.body[at]):
            cell, step = analysis.defined(at, c), analysis.added(at, c)
            uniform = not cell.n and not cell.double and not cell.wide
            if step is None or not 0 < step < EXACT or not uniform:
                others.add(cell.name)
            else:
                steps.setdefault(cell.name, {})[at] = step
                cells[cell.name] = cell
    return {name: Counter(cells[name], steps[name]) for name in steps if name not in others}


def _counter_of(
    analysis: Analysis, counters: dict[str, Counter], at: int, k: int
) -> Counter | None:
    """The counter that the first source of ``at`` is at position ``k``, if it is one."""
    cell = analysis.plain(at, 0, k)
    return counters.get(cell.name) if cell else None


def _break_test(
    analysis: Analysis, inside: range, counters: dict[str, Counter], at: int
) -> BreakTest | None:
    """The test of a break at ``at``: `ge` of a counter and a bound, its only definition in the
    loop, which stands before it.
    """
    i = analysis.body[at]
    webs = analysis.webs
    if i.opcode != "break_logicalnz" or not analysis.plain(at, 0, 0):
        return None
    web = webs.find(webs.used[at, 0, LETTERS.index(i.sources[0].swizzle[0])])
    definitions = [
        (k, c)
        for k in inside
        for c in defines(analysis.body[k])
        if webs.find(webs.defined[k, c]) == web
    ]
    if len(definitions) != 1:
        return None
    compared, c = definitions[0]
    dest = analysis.body[compared].dest
    counter = _counter_of(analysis, counters, compared, c)
    if compared > at or analysis.body[compared].opcode != "ge" or dest is None or counter is None:
        return None
    if c not in dest.written or not _never_changes(analysis, inside, compared, 1, c):
        return None
    return BreakTest(compared, c, counter)


def _never_changes(analysis: Analysis, inside: range, at: int, n: int, k: int) -> bool:
    """Whether source ``n`` of ``at`` is the same in every turn at position ``k``."""
    source = analysis.body[at].sources[n]
    if source.register.kind != "r" or source.swizzle[k] not in LETTERS:
        return source.register.kind != "g"
    cell = analysis.cell(analysis.webs.used[at, n, LETTERS.index(source.swizzle[k])])
    return not any(cell in analysis.written[m] for m in inside)


def safe_turns(loop: StripLoop, registers: RegisterFile, coordinates: Coordinates) -> Vec:
    """i64: in how many turns from here, if it is positive, no break is taken, every fetch looks
    inside its texture, and what is read by lines lies side by side.

    It is at most as many as all of these allow, and 0 if a condition below isn't met. All of them
    are about what registers hold when this is run, at the head of the loop; ``strip_loop`` has
    made sure that these tell the whole strip.

    1. Every counter holds a whole number of at least -2^24, and stays below 2^24: so floats add
       exactly, and its ``count_of``, counted in i64, is equal to it at every place of every turn.
    2. Where a turn begins, every counter lies so far below the bound of each break that tests it
       that what the turn adds before the test doesn't reach it. A bound that is no whole number is
       rounded up; NaN is never reached.
    3. Every counter that is a coordinate, with what is added to it before the fetch and by the
       fetch, is at least 0 in the first turn and below the texture's size in the last: it only
       grows, so it lies between in the others.
    4. Every other coordinate, which never changes, lies inside in every lane, with what the fetch
       adds to it.
    5. Of fetches that are read by lines, lane k reads the texels behind lane k - 1's, and those of
       the first lane begin a line. They lie in one row, since only their column varies.
    """
    analysis, routine = registers.analysis, registers.routine
    safe = routine.ir.const(1, "i1")
    counts, ends = {}, {}  # of counters: where they are, and what they have to stay below
    for name, counter in loop.counters.items():
        counts[name] = registers.recount(counter.cell)
        value = registers.read_cell(counter.cell).bits("float")
        safe = safe & counts[name].cast("sitofp", "float").cmp("oeq", value)
        safe = safe & counts[name].cmp("sge", -EXACT)
        ends[name] = [routine.ir.const(EXACT - counter.step + 1, "i64")]
    for test in loop.tests:
        bound = registers.component(test.at, 1, test.component).lanes(0).bits("float")
        bound = registers.floats.flush(bound).call("ceil")
        bound = bound.call("minnum", float(EXACT)).call("maxnum", -float(EXACT))
        end = bound.cast("fptosi", "i64") - test.counter.before(test.at)
        ends[test.counter.cell.name].append(end)
    coordinates.forget()
    for at in loop.fetches:
        i = analysis.body[at]
        resource, offsets = i.controls.resource, i.controls.aoffimmi
        for axis in range(analysis.program.textures[resource]):
            counted = _counter_of(analysis, loop.counters, at, axis)
            if counted is None:
                place = coordinates.axis(resource, at, axis)
                safe = safe & place.inside(offsets[axis]).all()
                continue
            added = offsets[axis] + counted.before(at)
            name = counted.cell.name
            size = routine.slot(f"t{resource}_{'wh'[axis]}")
            ends[name].append(size - added)
            safe = safe & counts[name].cmp("sge", -added)
    for group in loop.in_lines:
        first = group[0]
        resource = analysis.body[first.at].controls.resource
        columns = coordinates.axis(resource, first.at, 0)
        safe = safe & beside(first, columns)
    turns = []
    for name, counter in loop.counters.items():
        end = reduce(lambda x, y: x.call("smin", y), ends[name])
        turns.append((end - counts[name] + (counter.step - 1)).two("sdiv", counter.step))
    return safe.select(reduce(lambda x, y: x.call("smin", y), turns), 0)
