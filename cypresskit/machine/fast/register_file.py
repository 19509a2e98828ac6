"""The registers of the gang that runs: operands of instructions with their modifiers, results with
their masks.

A component is i32, of one lane (n = 0: the same for all) or of every lane; a whole register is <16
x i32>, lane by lane. Everything is kept as integers, so that copying never changes bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cypresskit.il import Dest, Source
from cypresskit.il.bits import ONE, SIGN
from cypresskit.il.program import LETTERS
from cypresskit.machine.fast.analysis import Analysis, Cell
from cypresskit.machine.fast.native_meaning import Floats, canonical
from cypresskit.machine.fast.routine import Routine
from cypresskit.machine.fast.vec import Vec, pick


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


class RegisterFile:
    """Reads and writes registers of ``gang``, each in the cell where ``analysis`` has it.

    ``elements`` of global memory that the running instruction's sources name, of each lane or one
    for all, by number of the source: whoever loads them leaves them here. ``touched``: the cells
    that a region uses, and ``modified`` those that it writes, by name. ``steps``, in a strip: what
    instructions, by index, add to counters, by name (see ``strips``).
    """

    gang: Gang

    def __init__(self, routine: Routine, analysis: Analysis, floats: Floats):
        self.routine, self.analysis, self.floats = routine, analysis, floats
        self.program, self.body = analysis.program, analysis.body
        self.webs, self.lanes = analysis.webs, analysis.lanes
        self.elements: dict[int, list[Vec]] = {}
        self.touched: dict[str, Cell] = {}
        self.modified: set[str] = set()
        self.steps: dict[str, dict[int, int]] = {}

    # Cells

    def cell_variable(self, cell: Cell) -> str:
        """The variable that holds a cell."""
        if cell.name not in self.routine.variables:
            self.routine.variable(cell.name, cell.kind, cell.n)
        self.touched.setdefault(cell.name, cell)
        return cell.name

    def read_cell(self, cell: Cell) -> Vec:
        """The whole cell."""
        return self.routine.load(self.cell_variable(cell))

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
        self.routine.store(name, value.lanes(cell.n))
        if step := self.steps.get(name, {}).get(at):
            self.routine.add(self.count_of(cell), step)

    # Counters of a strip

    def count_of(self, cell: Cell) -> str:
        """The variable with the whole number (i64) that a counter holds, in a strip."""
        return self.routine.variable(f"{cell.name}_whole", "i64")

    def recount(self, cell: Cell) -> Vec:
        """Find the whole number (i64) in a counter; any number, if it holds none."""
        whole = self.read_cell(cell).bits("float").cast("fptosi", "i64").freeze()
        self.routine.store(self.count_of(cell), whole)
        return whole

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
            opposite = value ^ -SIGN
        else:
            opposite = self.routine.ir.const(0, "i32", value.n) - value
        negated = [LETTERS[p] in source.negate for p in positions]
        return value if not any(negated) else chosen(negated, opposite, value)

    def raw(self, at: int, n: int, source: Source, position: int) -> Vec:
        """A component of an operand without modifiers; NaN canonical where the instruction can
        tell.
        """
        register = source.register
        letter = source.swizzle[position]
        if letter in "01":
            return self.routine.literal(ONE if letter == "1" else 0)
        c = LETTERS.index(letter)
        if register.kind == "l":
            return self.routine.literal(self.program.literals[register.index][c])
        if register.kind == "cb":
            return self.routine.constant(register.index, register.element, c)
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
        whole = self.read_cell(self.analysis.cell(web))
        root = self.webs.find(web)
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
            web = self.webs.used[at, n, LETTERS.index(first)]
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
        if source.register.kind == "r" and set(letters) <= set(LETTERS):
            webs = [self.webs.used[at, n, LETTERS.index(x)] for x in letters]
            if self.analysis.cell(webs[0]).wide and len({self.webs.find(web) for web in webs}) == 1:
                whole = self._cell_value(at, n, webs[0])
                if "".join(letters) == LETTERS:
                    return whole
                return whole[
                    [4 * lane + LETTERS.index(x) for lane in range(self.lanes) for x in letters]
                ]
        if source.register.kind == "g" and set(letters) <= set(LETTERS):
            texels = self.elements[n]
            every = range(self.lanes)
            return pick(
                texels, [(lane % len(texels), LETTERS.index(x)) for lane in every for x in letters]
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
        return {
            c: self.routine.literal(bits[m]) for c, m in enumerate(self.dest(at).mask) if m in bits
        }

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
        groups: dict[str, tuple[Cell, list[int]]] = {}
        for c in sorted(written):
            cell = self.analysis.defined(at, c)
            groups.setdefault(cell.name, (cell, []))[1].append(c)
        return list(groups.values())

    def write_components(self, at: int, values: dict[int, Vec]) -> None:
        """Write components one by one."""
        for cell, written in self.by_cell(at, values):
            parts = {c: values[c] for c in written}
            if cell.wide:
                self.write_wide(
                    at,
                    self.interleaved([parts.get(c, parts[written[0]]) for c in range(4)]),
                    written,
                )
            elif cell.double:
                if len(parts) < 2:
                    old = self.read_cell(cell)
                    parts = {c: self.cell_component(old, cell, c) for c in cell.components} | parts
                self.write_cell(at, cell, join_words(*(parts[c] for c in cell.components)))
            else:
                self.write_cell(at, cell, parts[written[0]])


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
    if len(starts) == 1:
        return texels[0][c]
    return pick(texels, [divmod(start + c, n) for start in starts])
