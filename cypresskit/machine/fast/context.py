"""The state of a function being translated: the launch's context, literals and constants,
variables, the registers in their cells, and the gang that runs: its lanes, its work-items and its
input registers. Operands of instructions with their modifiers, and destinations with their masks.

A component is i32, of one lane (n = 0: the same for all) or of every lane; a whole register is <16
x i32>, lane by lane. Everything is kept as integers, so that copying never changes bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cypresskit.il import Dest, Program, Source
from cypresskit.machine.fast.analysis import Analysis, Cell
from cypresskit.machine.fast.native_meaning import Floats, canonical
from cypresskit.machine.fast.target import Target, flush_mode
from cypresskit.machine.fast.texel_layout import Axis, LaneLoads, layouts
from cypresskit.machine.fast.vec import Emitter, Vec, pick

ONE = 0x3F800000  # 1.0
DONE, FAILED, ENDLESS, DIVERGED, UNDERFLOWED, STOPPED = range(6)  # how a call of the kernel ends
PLACE, ITEM, ELEMENT, NEXT = range(
    4
)  # what it reports: where in the body, whose, of which memory; the next batch


@dataclass
class Gang:
    """The lanes that run together: how many of them there are (``count``), the numbers (i32) of
    their work-items, and the input registers by name and letter; where it keeps its registers
    between regions. At the domain's edge, what is left of the lanes repeats the last work-item: as
    they load and store the same, nobody can tell.
    """

    count: Vec
    item: Vec
    inputs: dict[tuple[str, str], Vec]
    spill: Vec


class Context:
    """The state that all layers of the translator share: ``ir`` collects the function.

    ``entry``: what the entry block loads; ``slots``: names of the context's values, in order;
    ``touched``: the cells that the region uses, and ``modified`` those that it writes, by name.
    ``elements`` of global memory that the running instruction's sources name, of each lane or one
    for all, by number of the source. ``inside``: the instructions of the strip that is translated,
    whose loads are all known to lie inside; ``axes``, the coordinates of a group of fetches;
    ``blocks``, those of its loads that may lie side by side. ``skipped``: the instructions that
    another pass over the loop executes. ``segments``, each with a counter; ``group_flow``: the flow
    instructions of ifs and loops that hold a barrier. ``gangs`` of a batch, which lies at
    ``where``; ``offsets`` of cells
    in the spill memory of a gang, and its ``size``: the first bytes keep the number of instructions
    issued.
    """

    def __init__(self, program: Program, target: Target):
        self.program, self.body, self.target = program, program.body, target
        self.analysis = analysis = Analysis(program)
        self.webs, self.uniformity, self.lanes = analysis.webs, analysis.uniformity, analysis.lanes
        self.ir = Emitter()
        self.mode = (
            "soft" if analysis.doubles else target.mode
        )  # a flush mode would flush doubles, too
        self.flushes = flush_mode(self.mode)
        self.floats = Floats(self.ir, self.mode == "soft")
        self.slots: dict[str, Vec] = {}
        self.literals: dict[int, Vec] = {}
        self.constants: dict[tuple[int, int, int], Vec] = {}
        self.entry: list[str] = []
        self.variables: dict[str, tuple[str, int]] = {}
        self.touched: dict[str, Cell] = {}
        self.modified: set[str] = set()
        self.elements: dict[int, list[Vec]] = {}
        self.layouts = layouts(analysis)
        self.inside = range(0)
        self.axes: dict[tuple, Axis] = {}
        self.blocks: list[list[LaneLoads]] = []
        self.skipped: set[int] = set()
        self.segments: list[tuple[int, ...]] = []
        match, level = program.matching, self.uniformity.group_level
        self.group_flow = {
            at for opener in level for at in (opener, match[opener], match[match[opener]])
        }
        leaving = [at for at, i in enumerate(self.body) if i.op.flow in ("break", "continue")]
        self.group_flow.update(at for at in leaving if match[at] in level)
        self.batch, self.spill = Vec(self.ir, "%batch", "i64"), Vec(self.ir, "%spill", "ptr")
        self.gangs = 1 if program.mode == "pixel" else -(-math.prod(program.group) // self.lanes)
        self.gang: Gang
        self.where: list[Vec] = []
        self.offsets: dict[tuple, int] = {}
        self.size = 8

    def _entered(self, name: str, base: str, offset: int, kind: str) -> Vec:
        self.entry.append(f"  %p_{name} = getelementptr i8, ptr {base}, i64 {offset}")
        self.entry.append(f"  %{name} = load {kind}, ptr %p_{name}")
        return Vec(self.ir, f"%{name}", kind)

    def slot(self, name: str, kind: str = "i64") -> Vec:
        """A value of the context, loaded once in the entry block."""
        if name not in self.slots:
            self.slots[name] = self._entered(name, "%context", 8 * len(self.slots), kind)
        return self.slots[name]

    def literal(self, bits: int) -> Vec:
        """A literal as i32, loaded from memory, so that LLVM can't constant-fold it in its own
        way.
        """
        if bits not in self.literals:
            table = self.slot("literals", "ptr").name
            self.literals[bits] = self._entered(
                f"l_{bits:08x}", table, 4 * len(self.literals), "i32"
            )
        return self.literals[bits]

    def constant(self, buffer: int, element: int, component: int) -> Vec:
        """A component of a constant buffer as i32."""
        key = buffer, element, component
        if key not in self.constants:
            base = self.slot(f"cb{buffer}", "ptr").name
            name = f"cb{buffer}_{element}_{component}"
            self.constants[key] = self._entered(name, base, 16 * element + 4 * component, "i32")
        return self.constants[key]

    # Variables: on the stack in the text, which LLVM makes registers

    def variable(self, name: str, kind: str, n: int = 0) -> str:
        """Declare a variable; its name."""
        self.variables[name] = kind, n
        return name

    def load(self, name: str) -> Vec:
        """The value of a variable."""
        kind, n = self.variables[name]
        return self.address_of(name).load(kind, n)

    def store(self, name: str, value: Vec | int) -> None:
        """Set a variable; a number sets every lane."""
        kind, n = self.variables[name]
        self.address_of(name).store(
            value if isinstance(value, Vec) else self.ir.const(value, kind, n)
        )

    def address_of(self, name: str) -> Vec:
        """The pointer to a variable."""
        return Vec(self.ir, f"%{name}", "ptr")

    def add(self, name: str, value: Vec | int) -> None:
        """Add to a variable."""
        self.store(name, self.load(name) + value)

    def add_count(self, counter: int, count: Vec) -> None:
        """counts[counter] += count; counter 0 is that of accesses out of range."""
        place = Vec(self.ir, "%counts", "ptr").at(8 * counter)
        place.store(place.load("i64") + count)

    def report(self, what: int, value: Vec) -> None:
        """Tell the caller."""
        self.slot("report", "ptr").at(8 * what).store(value)

    def bound(self) -> Vec:
        """i64: the number of instructions that a loop may issue; 0 once the kernel is to stop."""
        return self.slot("limit", "ptr").load("i64", volatile=True)

    def give_up(self, status: int, at: Vec) -> None:
        """Leave the function; ``at``, an index in the program's body, tells where."""
        self.store("status", status)
        self.report(PLACE, at)
        self.ir.go("exit")

    def refuse(self, at: int, bad: Vec, places: Vec) -> None:
        """Leave the function, since ``at`` would store outside, in the lanes in ``bad``: report the
        first of them.
        """
        bad, places, item = (value.lanes(self.lanes) for value in (bad, places, self.gang.item))
        self.report(ELEMENT, places[bad.first()])
        self.report(ITEM, item[bad.first()].cast("zext", "i64"))
        self.give_up(FAILED, self.ir.const(at, "i64"))

    # Registers

    def cell_variable(self, cell: Cell) -> str:
        """The variable that holds a cell."""
        if cell.name not in self.variables:
            self.variable(cell.name, cell.kind, cell.n)
        self.touched.setdefault(cell.name, cell)
        return cell.name

    def read_cell(self, cell: Cell) -> Vec:
        """The whole cell."""
        return self.load(self.cell_variable(cell))

    def cell_component(self, whole: Vec, cell: Cell, c: int) -> Vec:
        """Component ``c`` of a cell's value, i32."""
        if cell.wide:
            return whole[[4 * lane + c for lane in range(self.lanes)]]
        if cell.double:
            return (whole >> 32 if c % 2 else whole).cast("trunc", "i32")
        return whole

    def write_cell(self, at: int, cell: Cell, value: Vec) -> None:
        """Set a cell, by instruction ``at``."""
        name = self.cell_variable(cell)
        self.modified.add(name)
        self.store(name, value.lanes(cell.n))
        if steps := self.analysis.steps.get(name, {}).get(at):
            self.add(self.count_of(name), steps)

    def count_of(self, name: str) -> str:
        """The variable with the whole number (i64) that a counter is taken to hold, where
        ``recount`` has found it.
        """
        return self.variable(f"{name}_whole", "i64")

    def recount(self, name: str) -> None:
        """Find the whole number in a variable, if it is a counter."""
        if name in self.analysis.steps:
            self.store(
                self.count_of(name), self.load(name).bits("float").cast("fptosi", "i64").freeze()
            )

    # Sources

    def component(self, at: int, n: int, position: int) -> Vec:
        """Source ``n`` at a position, with its modifiers."""
        return self._modified(
            at, n, self.raw(at, n, self.body[at].sources[n], position), (position,)
        )

    def wide(self, at: int, n: int, positions: tuple[int, ...]) -> Vec:
        """Source ``n`` for whole registers, with its modifiers."""
        shown = [p if p in positions else positions[0] for p in range(4)]
        return self._modified(
            at, n, self._whole_source(at, n, self.body[at].sources[n], shown), range(4)
        )

    def _modified(self, at: int, n: int, value: Vec, positions: Sequence[int]) -> Vec:
        i = self.body[at]
        source = i.sources[n]
        if not source.modified or (i.op.double and i.op.sources[n] == "d"):
            return value
        if i.op.float_modifiers(n):
            value = self.floats.modified(value.bits("float"), source).bits("i32")
            opposite = value ^ -0x80000000
        else:
            opposite = self.ir.const(0, "i32", value.n) - value
        negated = ["xyzw"[p] in source.negate for p in positions]
        return value if not any(negated) else chosen(negated, opposite, value)

    def raw(self, at: int, n: int, source: Source, position: int) -> Vec:
        """A component of an operand without modifiers; NaN canonical where the instruction can
        tell.
        """
        register, letter = source.register, source.swizzle[position]
        if letter in "01":
            return self.literal(ONE if letter == "1" else 0)
        c = "xyzw".index(letter)
        if register.kind == "l":
            return self.literal(self.program.literals[register.index][c])
        if register.kind == "cb":
            return self.constant(register.index, register.element, c)
        if register.kind == "g":
            return column(self.elements[n], c)
        if register.kind != "r":
            return self.gang.inputs[register.kind, letter]
        web = self.webs.used[at, n, c]
        return self.cell_component(self._cell_value(at, n, web), self.analysis.cell(web), c)

    def _cell_value(self, at: int, n: int, web: int) -> Vec:
        """A cell's value for source ``n``, its NaN made canonical if that can be observed and was
        left for later.
        """
        whole, root = self.read_cell(self.analysis.cell(web)), self.webs.find(web)
        kinds = self.analysis.kinds.get(root, set())
        if (
            len(kinds) != 1
            or "b" in kinds
            or not (self.analysis.observes(at, n, root) or self.analysis.passes_on(at))
        ):
            return whole
        return canonical(whole.bits("double" if "d" in kinds else "float")).bits(whole.kind)

    def pair(self, at: int, n: int, source: Source) -> Vec:
        """An operand's first two positions as i64."""
        first, second = source.swizzle[0], source.swizzle[1]
        if source.register.kind == "r" and first + second in ("xy", "zw"):
            web = self.webs.used[at, n, "xyzw".index(first)]
            if self.analysis.cell(web).double:
                return self._cell_value(at, n, web)
        return join_words(self.raw(at, n, source, 0), self.raw(at, n, source, 1))

    def double(self, at: int, n: int) -> Vec:
        """Source ``n`` as a double, made absolute and negated: doubles have no other modifiers."""
        source = self.body[at].sources[n]
        value = self.pair(at, n, source).bits("double")
        value = value.call("fabs") if source.abs else value
        return value.e.op(f"fneg {value}", "double", value.n) if source.negates_double else value

    def _whole_source(self, at: int, n: int, source: Source, shown: list[int]) -> Vec:
        letters = [source.swizzle[p] for p in shown]
        if source.register.kind == "r" and set(letters) <= set("xyzw"):
            webs = [self.webs.used[at, n, "xyzw".index(x)] for x in letters]
            if self.analysis.cell(webs[0]).wide and len({self.webs.find(web) for web in webs}) == 1:
                whole = self._cell_value(at, n, webs[0])
                if "".join(letters) == "xyzw":
                    return whole
                return whole[
                    [4 * lane + "xyzw".index(x) for lane in range(self.lanes) for x in letters]
                ]
        if source.register.kind == "g" and set(letters) <= set("xyzw"):
            texels, every = self.elements[n], range(self.lanes)
            return pick(
                texels, [(lane % len(texels), "xyzw".index(x)) for lane in every for x in letters]
            )
        parts = {
            letter: self.raw(at, n, source, p)
            for letter, p in dict(zip(letters, shown, strict=True)).items()
        }
        return self.interleaved([parts[letter] for letter in letters])

    def interleaved(self, parts: Sequence[Vec]) -> Vec:
        """Four components as a whole register."""
        n = self.lanes
        if len({part.name for part in parts}) == 1 and not parts[0].n:
            return parts[0].lanes(4 * n)
        return pick(
            [part.lanes(n) for part in parts], [(k, lane) for lane in range(n) for k in range(4)]
        )

    # Results

    def dest(self, at: int) -> Dest:
        """The destination of an instruction that has one."""
        dest = self.body[at].dest
        assert dest is not None
        return dest

    def fixed(self, at: int) -> dict[int, Vec]:
        """The components that the mask sets to 0 or 1."""
        bits = {"0": 0, "1": ONE}
        return {c: self.literal(bits[m]) for c, m in enumerate(self.dest(at).mask) if m in bits}

    def write_wide(self, at: int, value: Vec, written: Sequence[int]) -> None:
        """Write components of a whole register to a wide cell."""
        cell = self.analysis.defined(at, written[0])
        choice = [c in written for c in range(4)]
        if not all(choice[c] for c in cell.components):
            value = chosen(choice, value, self.read_cell(cell))
        self.write_cell(at, cell, value)

    def by_cell(
        self, at: int, written: Sequence[int] | dict[int, Vec]
    ) -> list[tuple[Cell, list[int]]]:
        """The cells of an instruction's result, and which components of each are written."""
        found: dict[str, tuple[Cell, list[int]]] = {}
        for c in sorted(written):
            cell = self.analysis.defined(at, c)
            found.setdefault(cell.name, (cell, []))[1].append(c)
        return list(found.values())


def join_words(low: Vec, high: Vec) -> Vec:
    """Two words (i32) as 64 bits."""
    low, high = low.both(high)
    return low.cast("zext", "i64") | (high.cast("zext", "i64") << 32)


def chosen(choice: list[bool], yes: Vec, no: Vec) -> Vec:
    """Whole registers: components of ``yes`` where chosen, else of ``no``."""
    return yes if all(choice) else pick([yes, no], [(not choice[k % 4], k) for k in range(yes.n)])


def column(texels: list[Vec], c: int, size: int = 4) -> Vec:
    """Component ``c`` of the texel of each lane, or of all: ``size`` numbers each, in vectors of
    any length.
    """
    n = texels[0].n
    starts = range(0, len(texels) * n, size)
    return (
        pick(texels, [divmod(start + c, n) for start in starts])
        if len(starts) > 1
        else texels[0][c]
    )
