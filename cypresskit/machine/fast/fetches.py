"""Where fetches look: their coordinates, one axis at a time, and their texels, lane by lane or line
by line.

What addresses are made of is computed axis by axis, so that the host's compiler moves whatever
stays the same out of a loop, tests included. In a strip (``strips``) a coordinate that the loop
counts is known as a whole number, and fetches of neighbours read whole lines.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cypresskit.il.program import LETTERS
from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.routine import Routine
from cypresskit.machine.fast.texel_layout import IN_ORDER, LINE, TexelLayout
from cypresskit.machine.fast.vec import Vec, pick


@dataclass(frozen=True)
class Axis:
    """One coordinate of fetches, in every lane or (a scalar) the same in all: ``place`` (a whole
    double), as an integer ``index`` (i64). ``limit`` (double): the texture's size.
    """

    place: Vec
    index: Vec
    limit: Vec

    def inside(self, offset: int) -> Vec:
        """i1 in each lane: exactly whether the place at that offset lies inside."""
        place = self.place + float(offset) if offset else self.place
        return place.cmp("oge", 0.0) & place.cmp("olt", self.limit)


@dataclass(frozen=True)
class LaneLoads:
    """The loads of one instruction: ``places(n)`` is where the first n lanes read, ``inside(word)``
    (i1) in which lanes that word lies inside; of one lane for all unless it ``varies``. ``words``:
    those that are read, or none for the whole texel. Of a fetch: its ``axes``, the ``row`` of
    texels that it reads (what it has in common with others of that row) and its ``column`` there,
    the texture's ``layout``, and bytes between lines.
    """

    at: int
    varies: bool
    places: Callable[[int], list[Vec]]
    inside: Callable[[int], Vec]
    words: tuple[int, ...] = ()
    axes: list[Axis] = field(default_factory=list)
    row: tuple = ()
    column: int = 0
    layout: TexelLayout = IN_ORDER
    pitch: Vec | int = 0

    @property
    def half(self) -> Vec | int:
        """Bytes from a texel's first two words to its last two."""
        return self.pitch if self.layout.parts > 1 else 8


class Coordinates:
    """The coordinates of fetches. Those of a group that use the same operand share an ``Axis``."""

    def __init__(self, routine: Routine, registers: RegisterFile):
        self.routine, self.registers = routine, registers
        self.program, self.body = registers.program, registers.body
        self.axes: dict[tuple, Axis] = {}

    def forget(self) -> None:
        """Begin a group of fetches: registers may have been written since the last one."""
        self.axes = {}

    def axis(self, resource: int, at: int, k: int) -> Axis:
        """The whole coordinate ``k`` of a fetch; one for all fetches of a group that use the same
        operand.
        """
        i = self.body[at]
        source = i.sources[0]
        sign = (LETTERS[k] in source.negate and "x") or ""
        key = resource, k, i.opcode, replace(source, swizzle=source.swizzle[k] * 4, negate=sign)
        if key not in self.axes:
            self.axes[key] = self._new_axis(at, k, self.routine.slot(f"t{resource}_{'wh'[k]}"))
        return self.axes[key]

    def _new_axis(self, at: int, k: int, size: Vec) -> Axis:
        i = self.body[at]
        limit = size.cast("sitofp", "double")
        value = self.registers.component(at, 0, k)
        if not self.registers.analysis.uniformity.varies(at, 0, i.sources[0], (k,)):
            value = value.lanes(0)
        if i.opcode == "load":
            return Axis(value.cast("sitofp", "double"), value.cast("sext", "i64"), limit)
        value = self.registers.floats.taken(value.bits("float"))
        whole = value.call("floor")
        cell = self.registers.analysis.plain(at, 0, k)
        if cell and cell.name in self.registers.steps:  # a strip counts it
            index = self.routine.load(self.registers.count_of(cell))
        else:
            index = whole.cast("fptosi", "i64")
        return Axis(whole.cast("fpext", "double"), index, limit)


def side_by_side(group: list[LaneLoads], lanes: int) -> list[list[LaneLoads]]:
    """The fetches that read rows of texels together, if the lanes may lie side by side: then as
    many texels apart as there are fetches.
    """
    rows: dict[tuple, list[LaneLoads]] = {}
    for access in sorted(group, key=lambda access: access.column):
        if access.row and access.axes[0].index.n and not access.axes[1].index.n:
            rows.setdefault(access.row, []).append(access)
    alike = (row for row in rows.values() if row[0].layout == TexelLayout(len(row), lanes))
    return [
        row
        for row in alike
        if [load.column - row[0].column for load in row] == list(range(len(row)))
    ]


def beside(first: LaneLoads, columns: Axis) -> Vec:
    """i1: whether the lanes of fetches, of which ``first`` reads the first texel of each lane, do
    lie side by side in their ``columns``, and begin where a line does.
    """
    index = columns.index.freeze()
    layout = first.layout
    aligned = ((index[0] + first.column) & (layout.group - 1)).cmp("eq", 0)
    steps = index.e.consts([layout.step * k for k in range(layout.lanes)], "i64")
    return aligned & (index - steps).cmp("eq", index[0]).all()


def load_lines(block: list[LaneLoads]) -> dict[int, list[Vec]]:
    """The texels of a block of fetches whose lanes lie side by side."""
    (place,) = block[0].places(1)
    layout = block[0].layout
    loaded = {}
    for n, access in enumerate(block):
        if n:
            place = place.at(access.pitch)
        line = place.load("i32", LINE // 4, LINE)
        if layout.parts > 1:
            place = place.at(access.pitch)
            halves = [line.bits("i64"), place.load("i64", LINE // 8, LINE)]
            line = pick(halves, [(part, k) for k in range(layout.lanes) for part in range(2)]).bits(
                "i32"
            )
        loaded[access.at] = [line]
    return loaded


def load_texel(place: Vec, half: Vec | int = 8, align: int = 16) -> Vec:
    """The four words of a texel, the last two of them ``half`` bytes behind the first."""
    if half == 8:
        return place.load("i32", 4, align)
    return pick(
        [place.load("i32", 2, 8), place.at(half).load("i32", 2, 8)],
        [divmod(c, 2) for c in range(4)],
    )
