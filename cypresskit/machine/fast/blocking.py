"""Loops whose turns can be counted beforehand, run in strips of turns without any test.

Most loops of a GEMM kernel break where a counter reaches a bound, and look in textures at places
that don't change, or that such a counter tells. How many turns are left, and in how many of them
every texel lies inside, is then a matter of a few divisions. So many turns run without a test, as a
strip; what is left of the loop follows as it stands.

If a loop has more accumulators than the host has vector registers, each strip is run in several
*passes*, each of which updates a subset of them: register blocking. A block of 8 x 8 numbers for
each of four work-items fills 16 registers of 512 bits; on hosts with less LLVM would keep
accumulators on the stack, and load and store one with every multiply-add. A strip is short enough
for the host's L1 cache to keep what one pass has read for the next. Accumulators, here *sums*, are
what nothing in the loop reads but the instructions that update them.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

from cypresskit.il.dataflow import defines
from cypresskit.machine.fast.analysis import EXACT, Analysis, Cell
from cypresskit.machine.fast.instructions import Instructions
from cypresskit.machine.fast.texel_layout import beside
from cypresskit.machine.fast.vec import SIZES, Vec

TURNS = 64  # of a strip that is run in passes
LONG = 1024  # of another: it hears that the kernel is to stop only at its end


class Blocking(Instructions):
    """Translation of a loop's strips."""

    def run_blocked(self, at: int, general: Callable[[], list[tuple[int, int]]]) -> None:
        """Translate the loop at ``at``, which is countable: strips as long as there are turns for
        one, then the loop as it stands, by ``general``; this tells its segments' counters and
        lengths.
        """
        ir = self.ir
        head, strip, rest, done = (
            ir.new(name) for name in ("strips", "strip", "rest", "loop_done")
        )
        parts = passes(self.analysis, at, self.target.room)
        turns = self.variable(f"turns{at}", "i64")
        ir.go(head)
        ir.label(rest)
        segments = general()  # first, as it tells what strips have to count
        issued = sum(length for _, length in segments)
        ir.go(done)
        ir.label(strip)
        self.inside, self.blocks = range(at + 1, self.program.matching[at]), []
        for counter, _ in segments:
            self.add_count(counter, self.gang.count * self.load(turns))
        self.add("issued", self.load(turns) * issued)
        self._passes(at, parts, self.load(turns))
        self.inside = range(0)
        longest = LONG if len(parts) < 2 else TURNS
        ir.branch(self.load(turns).cmp("slt", longest), rest, head)
        ir.label(head)
        spare = self.bound() - (self.load("issued") - self.load(f"before{at}"))
        self.store(
            turns,
            self._turns(at).call("smin", spare.two("sdiv", issued)).call("smin", longest).freeze(),
        )
        ir.branch(self.load(turns).cmp("sgt", 0), strip, rest)
        ir.label(done)

    def _passes(self, at: int, parts: list[set[int]], turns: Vec) -> None:
        """A strip, once for each of ``parts``, the instructions that are left out. Between passes
        LLVM mustn't know where the sums are, or it would keep all of them on the stack in all
        passes.
        """
        if len(parts) < 2:
            self._strip(at, turns)
            return
        inside, sums = range(at + 1, self.program.matching[at]), set().union(*parts)
        unused = temporary(self.analysis, inside)
        saved = [(name, self.load(name)) for name in self._names(set(inside) - sums, unused)]
        self._hide(self._names(sums, unused))
        for number, left_out in enumerate(parts):
            for name, value in saved if number else ():
                self.store(name, value)
                self.recount(name)
            own = self._names(sums - left_out, unused)
            self._hide(own, True)
            self.skipped = left_out
            self._strip(at, turns)
            self._hide(own)
        self.skipped = set()
        self._hide(self._names(sums, unused), True)

    def _strip(self, at: int, turns: Vec) -> None:
        """Translate a strip of ``turns`` turns, none of which ends the loop or reads outside."""
        ir, k, end = self.ir, at + 1, self.program.matching[at]
        left, turn, over = (
            self.variable(f"left{ir.names}", "i64"),
            ir.new("turn"),
            ir.new("turns_done"),
        )
        self.store(left, turns)
        ir.label(turn)
        while k < end:
            k = k + 1 if self.body[k].op.flow else self.translate(k, end)
        self.add(left, -1)
        ir.branch(self.load(left).cmp("ne", 0), turn, over)
        ir.label(over)

    def _names(self, instructions: set[int], unused: set[str]) -> list[str]:
        """The variables of the cells that these write, but for ``unused`` ones."""
        cells = {cell.name: cell for k in instructions for cell in self.analysis.written[k]}
        return sorted(
            self.cell_variable(cell) for name, cell in cells.items() if name not in unused
        )

    def _hide(self, names: list[str], back: bool = False) -> None:
        """Move variables to memory that LLVM can't keep in registers (volatile), or ``back``."""
        for name in names:
            kind, n = self.variables[name]
            hidden = self.address_of(self.variable(f"hidden_{name}", kind, n))
            if back:
                self.store(name, hidden.load(kind, n, volatile=True))
            else:
                hidden.store(self.load(name), volatile=True)

    # How many turns

    def _turns(self, at: int) -> Vec:
        """i64: in how many turns from here, if it is positive, no break is taken and no fetch looks
        outside.
        """
        inside = range(at + 1, self.program.matching[at])
        ends = self._ends(inside)
        for cell in {cell.name: cell for k in inside for cell in self.analysis.written[k]}.values():
            self.recount(self.cell_variable(cell))
        self.axes = {}
        edges = self._edges(inside)
        good = self.ir.const(1, "i1")
        for (cell, resource, side), found in edges.items():
            ends.setdefault(cell, []).append(self.slot(f"t{resource}_{'wh'[side]}") - max(found))
            good = good & self.load(self.count_of(cell.name)).cmp("sge", -min(found))
        turns = []
        for cell, bounds in ends.items():
            step, count = (
                self._added(cell, inside, inside.stop),
                self.load(self.count_of(self.cell_variable(cell))),
            )
            exact = count.cast("sitofp", "float").cmp("oeq", self.load(cell.name).bits("float"))
            good = good & exact & count.cmp("sge", int(-EXACT))
            end = reduce(lambda x, y: x.call("smin", y), bounds).call("smin", int(EXACT) - step + 1)
            turns.append((end - count + (step - 1)).two("sdiv", step))
        for axis in self.axes.values():
            good = good & axis.fits()
        for block in self.blocks:  # what lies side by side in the strip, found anew here
            first = block[0]
            fixed = self.axis(self.body[first.at].controls.resource, first.at, 0, first.column)
            good = good & beside([replace(first, axes=[fixed])])
        return good.select(reduce(lambda x, y: x.call("smin", y), turns), 0)

    def _added(self, cell: Cell, inside: range, until: int) -> int:
        """The amount that a turn adds to a counter before that instruction."""
        return sum(
            step
            for at, step in self.analysis.steps[cell.name].items()
            if inside.start <= at < until
        )

    def _ends(self, inside: range) -> dict[Cell, list[Vec]]:
        """The bounds (i64) of counters that breaks compare: each stays below them where a turn
        begins that isn't the last.
        """
        ends: dict[Cell, list[Vec]] = {}
        for at in inside:
            test = _test_of(self.analysis, inside, at)
            if test is not None:
                m, c, cell = test
                bound = self.floats.flush(self.component(m, 1, c).lanes(0).bits("float"))
                whole = (
                    bound.call("ceil")
                    .call("minnum", EXACT)
                    .call("maxnum", -EXACT)
                    .cast("fptosi", "i64")
                )
                ends.setdefault(cell, []).append(whole - self._added(cell, inside, m))
        return ends

    def _edges(self, inside: range) -> dict[tuple[Cell, int, int], list[int]]:
        """Offsets that fetches add to counters which are their coordinates, by counter, texture and
        side. Coordinates that stay the same become ``axes``.
        """
        edges: dict[tuple[Cell, int, int], list[int]] = {}
        for at in inside:
            i = self.body[at]
            resource, offsets = i.controls.resource, i.controls.aoffimmi
            for side in range(self.program.textures[resource]) if i.op.kind == "fetch" else ():
                moving = counter(self.analysis, inside, at, side)
                if moving is None:
                    self.axis(resource, at, side, offsets[side])
                else:
                    found = offsets[side] + self._added(moving, inside, at)
                    edges.setdefault((moving, resource, side), []).append(found)
        return edges


def countable(analysis: Analysis, at: int) -> bool:
    """Whether the turns of the loop at ``at`` can be counted beforehand."""
    inside = range(at + 1, analysis.program.matching[at])
    if at in analysis.uniformity.group_level:
        return False
    breaks = [k for k in inside if analysis.body[k].op.flow]
    return bool(breaks) and all(
        _test_of(analysis, inside, k) is not None if k in breaks else _simple(analysis, inside, k)
        for k in inside
    )


def _simple(analysis: Analysis, inside: range, at: int) -> bool:
    """Whether ``at`` only computes, or fetches from places that are known beforehand."""
    i = analysis.body[at]
    if (
        any(register.kind == "g" for register in i.registers)
        or i.dest is None
        or i.dest.register.kind != "r"
    ):
        return False
    if i.op.kind != "fetch":
        return i.op.kind == "alu"
    return all(
        _fixed(analysis, inside, at, 0, k)
        or (i.opcode == "sample" and counter(analysis, inside, at, k) is not None)
        for k in range(analysis.program.textures[i.controls.resource])
    )


def _test_of(analysis: Analysis, inside: range, at: int) -> tuple[int, int, Cell] | None:
    """The comparison, its component and the counter of a break that is taken once a counter reaches
    a fixed bound.
    """
    i, webs = analysis.body[at], analysis.webs
    if i.opcode != "break_logicalnz" or not analysis.plain(at, 0, 0):
        return None
    web = webs.find(webs.used[at, 0, "xyzw".index(i.sources[0].swizzle[0])])
    found = [
        (k, c)
        for k in inside
        for c in defines(analysis.body[k])
        if webs.find(webs.defined[k, c]) == web
    ]
    if len(found) != 1 or found[0][0] > at or analysis.body[found[0][0]].opcode != "ge":
        return None
    test, c = found[0]
    dest, cell = analysis.body[test].dest, counter(analysis, inside, test, c)
    return (
        (test, c, cell)
        if cell and dest and c in dest.written and _fixed(analysis, inside, test, 1, c)
        else None
    )


def counter(analysis: Analysis, inside: range, at: int, k: int) -> Cell | None:
    """The cell that the first source of ``at`` reads at position ``k``, if every turn only adds to
    it.
    """
    cell = analysis.plain(at, 0, k)
    if not cell:
        return None
    steps = analysis.steps.get(cell.name, {})
    writers = [m for m in inside if cell in analysis.written[m]]
    return cell if writers and all(steps.get(m, 0) > 0 for m in writers) else None


def _fixed(analysis: Analysis, inside: range, at: int, n: int, k: int) -> bool:
    """Whether source ``n`` of ``at`` is the same in every turn at position ``k``."""
    source = analysis.body[at].sources[n]
    if source.register.kind != "r" or source.swizzle[k] not in "xyzw":
        return source.register.kind != "g"
    cell = analysis.cell(analysis.webs.used[at, n, "xyzw".index(source.swizzle[k])])
    return not any(cell in analysis.written[m] for m in inside)


# Passes


def passes(analysis: Analysis, at: int, room: int) -> list[set[int]]:
    """For each pass over the loop opened at ``at``, the instructions that it leaves out, so that
    its sums and their operands take at most ``room`` bytes of registers; one empty set if a single
    pass does it, or if several would compute too much again.
    """
    inside = range(at + 1, analysis.program.matching[at])
    full, rest = [], []
    for needed, sums in _sums(analysis, inside).items():
        size = max(size for size, _ in sums)
        most = max(1, (room - _bytes(needed)) // size)
        parts = [sums[k : k + most] for k in range(0, len(sums), most)]
        full += parts[: len(sums) // most]
        rest += [(_bytes(needed) + size * len(part), part) for part in parts[len(sums) // most :]]
    left = 0
    for size, part in rest:
        left -= size
        if left < 0:
            full.append([])
            left = room - size
        full[-1] += part
    groups = [set().union(*(writers for _, writers in part)) for part in full]
    every = set().union(*groups)
    again = [
        k
        for k in inside
        if analysis.body[k].op.kind == "alu" and any(cell.n for cell in analysis.written[k])
    ]
    if len(groups) < 2 or (len(again) - len(every)) * (len(groups) - 1) >= len(every):
        return [set()]
    return [every - group for group in groups]


def temporary(analysis: Analysis, inside: range) -> set[str]:
    """The names of cells that are dead between turns of a loop and after it."""
    outside = [k for k in range(len(analysis.body)) if k not in inside]
    needed = {cell.name for k in outside for cell in analysis.read[k]}
    written: set[str] = set()
    for k in inside:
        needed |= {cell.name for cell in analysis.read[k]} - written
        written |= {cell.name for cell in analysis.written[k]}
    return written - needed


def _bytes(cells: Iterable[Cell]) -> int:
    """The bytes of the largest of these cells."""
    return max((cell.n * SIZES[cell.kind] // 8 for cell in cells), default=0)


def _sums(analysis: Analysis, inside: range) -> dict[tuple[Cell, ...], list[tuple[int, set[int]]]]:
    """The sums that a loop adds up: parts of registers that only instructions which read and write
    them touch. For the operands that are added, the bytes of each of their sums, and the
    instructions that update it.
    """
    sums: dict[tuple, set[int]] = {}
    other: set[tuple] = set()  # parts of registers that more is done with
    for k in inside:
        read = {cell.part for cell in analysis.read[k]}
        written = analysis.written[k]
        for cell in written:
            if (
                analysis.body[k].op.kind == "alu"
                and len(written) == 1
                and cell.n
                and cell.part in read
            ):
                sums.setdefault(cell.part, set()).add(k)
                read.discard(cell.part)
            else:
                other.add(cell.part)
        other |= read
    found: dict[tuple[Cell, ...], list[tuple[int, set[int]]]] = {}
    for part, writers in sums.items():
        if part not in other:
            needed = {
                cell for k in writers for cell in analysis.read[k] if cell.n and cell.part != part
            }
            size = max(_bytes(analysis.written[k]) for k in writers)
            found.setdefault(tuple(sorted(needed, key=lambda cell: cell.name)), []).append(
                (size, writers)
            )
    return found
