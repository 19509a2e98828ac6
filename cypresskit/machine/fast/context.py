"""The state of a function being translated: the launch's context, literals and constants, variables, the registers in
their cells, and the gang that runs: its lanes, its work-items and its input registers."""

import math
from dataclasses import dataclass

from cypresskit.il import Program
from cypresskit.machine.fast.analysis import Analysis, Cell
from cypresskit.machine.fast.fetches import Axis, LaneLoads
from cypresskit.machine.fast.native_meaning import Floats
from cypresskit.machine.fast.target import Target, flush_mode
from cypresskit.machine.fast.texel_layout import layouts
from cypresskit.machine.fast.vec import Emitter, Vec

ONE = 0x3F800000  # 1.0
DONE, FAILED, ENDLESS, DIVERGED, UNDERFLOWED, STOPPED = range(6)  # how a call of the kernel ends
PLACE, ITEM, ELEMENT, NEXT = range(4)  # what it reports: where in the body, whose, of which memory; the next batch


@dataclass
class Gang:
    """The lanes that run together: how many of them there are (``count``), the numbers (i32) of their work-items, and
    the input registers by name and letter; where it keeps its registers between regions. At the domain's edge, what is
    left of the lanes repeats the last work-item: as they load and store the same, nobody can tell."""

    count: Vec
    item: Vec
    inputs: dict[tuple[str, str], Vec]
    spill: Vec


class Context:
    """The state that all layers of the translator share: ``ir`` collects the function.

    ``entry``: what the entry block loads; ``slots``: names of the context's values, in order; ``touched``: the cells
    that the region uses, and ``modified`` those that it writes, by name. ``elements`` of global memory that the running
    instruction's sources name, of each lane or one for all, by number of the source. ``inside``: whether all places
    that are loaded from are known to be inside; ``axes``, the coordinates of a group of fetches; ``blocks``, those of
    its loads that may lie side by side. ``skipped``: the instructions that another pass over the loop executes.
    ``segments``, each with a counter; ``group_flow``: the flow instructions of ifs and loops that hold a barrier.
    ``gangs`` of a batch, which lies at ``where``; ``offsets`` of cells in the spill memory of a gang, and its ``size``:
    the first bytes keep the number of instructions issued."""

    def __init__(self, program: Program, target: Target):
        self.program, self.body, self.target = program, program.body, target
        self.analysis = analysis = Analysis(program)
        self.webs, self.uniformity, self.lanes = analysis.webs, analysis.uniformity, analysis.lanes
        self.ir = Emitter()
        self.mode = "soft" if analysis.doubles else target.mode  # a flush mode would flush doubles, too
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
        self.inside = False
        self.axes: dict[tuple, Axis] = {}
        self.blocks: list[list[LaneLoads]] = []
        self.skipped: set[int] = set()
        self.segments: list[tuple[int, ...]] = []
        match, level = program.matching, self.uniformity.group_level
        self.group_flow = {at for opener in level for at in (opener, match[opener], match[match[opener]])}
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
        """A literal as i32, loaded from memory, so that LLVM can't constant-fold it in its own way."""
        if bits not in self.literals:
            table = self.slot("literals", "ptr").name
            self.literals[bits] = self._entered(f"l_{bits:08x}", table, 4 * len(self.literals), "i32")
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
        self.address_of(name).store(value if isinstance(value, Vec) else self.ir.const(value, kind, n))

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
        """Leave the function, since ``at`` would store outside, in the lanes in ``bad``: report the first of them."""
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
        """The variable with the whole number (i64) that a counter is taken to hold, where ``recount`` has found it."""
        return self.variable(f"{name}_whole", "i64")

    def recount(self, name: str) -> None:
        """Find the whole number in a variable, if it is a counter."""
        if name in self.analysis.steps:
            self.store(self.count_of(name), self.load(name).bits("float").cast("fptosi", "i64").freeze())


def join_words(low: Vec, high: Vec) -> Vec:
    """Two words (i32) as 64 bits."""
    low, high = low.both(high)
    return low.cast("zext", "i64") | (high.cast("zext", "i64") << 32)
