"""How textures lie in memory, and loads of texels that lie side by side.

Textures lie in *lines* of 64 bytes, as the host's cache has them. All rows of one line lie one
below the other, then those of the next: so a walk down a column reads consecutive lines. One row
more keeps them off the same sets of the host's cache. Missing components of single-precision texels
read 0, 0, 1.0.

Which texels make up a line depends on how a kernel reads: neighbouring work-items of a GEMM kernel
read neighbouring texels, each as many of them as a row of its block has. What the lanes read at
once lies in one line (of programs with doubles: the first double of each lane's texel in one, the
second in the next), so that a load needs no sorting.

What addresses are made of is computed axis by axis, so that the host's compiler moves whatever
stays the same out of a loop, tests included. Where a group of fetches may read what lies in one
line for all lanes, a strip (``blocking``) begins only if the lanes do lie side by side, and then
loads the line.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.vec import Vec, pick

LINE = 64  # bytes


def address(array: np.ndarray) -> int:
    """The address of an array's first byte."""
    return array.__array_interface__["data"][0]  # half the time of array.ctypes.data


def aligned(size: int) -> np.ndarray:
    """Zeros (int64) of ``size`` bytes, a multiple of 8, that begin at a line of the cache."""
    memory = np.zeros((size + LINE) // 8, np.int64)
    start = -address(memory) % LINE // 8
    return memory[start : start + size // 8]


@dataclass(frozen=True)
class TexelLayout:
    """Each of ``lanes`` work-items, 4 or 8, reads ``step`` texels side by side, a power of two."""

    step: int = 1
    lanes: int = 4

    @property
    def group(self) -> int:
        """Texels that all lanes read together."""
        return self.step * self.lanes

    @property
    def parts(self) -> int:
        """Lines that hold one texel of each lane."""
        return self.lanes * 16 // LINE

    def memory(self, height: int, width: int) -> np.ndarray:
        """Memory for a texture, by row, group, lane, texel of a lane, and part; it begins at a line
        of the cache.
        """
        groups = -(-width // self.group)
        lanes = (
            self.lanes if self.step * self.parts > 1 else 1
        )  # else texels stay as they are, line by line
        lines = aligned(groups * self.step * self.parts * pitch(height)).view(f"V{LINE // lanes}")
        return lines.reshape(groups, self.step, self.parts, height + 1, lanes)[
            ..., :height, :
        ].transpose(3, 0, 4, 1, 2)

    def fill(self, memory: np.ndarray, texels: np.ndarray, single: bool) -> None:
        """Lay texels (height, width, words of 32 bits) out in ``memory``."""
        height, width, words = texels.shape
        if words < 4 or width % self.group:
            full = np.zeros((height, memory.shape[1] * self.group, 4), np.uint32)
            full[:, :width, :words] = texels
            if single and words < 4:
                full[..., 3] = 0x3F800000
            texels = full
        memory[...] = texels.reshape(-1).view(memory.dtype).reshape(memory.shape)

    def column_offset(self, x: Vec, pitch: Vec) -> Vec:
        """Bytes from a texture's start to (the first part of) texel column x (i64) in row 0."""
        group = x.two("ashr", self.group.bit_length() - 1)
        line = (group * self.step + (x & (self.step - 1))) * self.parts
        lane = (x & (self.group - 1)) >> self.step.bit_length() - 1
        return line * pitch + lane * (LINE // self.lanes)


IN_ORDER = TexelLayout()  # four texels of a row in each line


def pitch(height: int) -> int:
    """Bytes from one line of a row of texels to the next."""
    return (height + 1) * LINE


def row_offset(y: Vec) -> Vec:
    """Bytes from row 0 to row y (i64)."""
    return y << LINE.bit_length() - 1


def layouts(analysis: Analysis) -> dict[int, TexelLayout]:
    """The layouts of the textures that are fetched from, by number."""
    found, rows = {}, defaultdict(set)
    for at, i in enumerate(analysis.body):
        if i.op.kind == "fetch":
            resource, source, (column, row, *_) = (
                i.controls.resource,
                i.sources[0],
                i.controls.aoffimmi,
            )
            found[resource], dimensions = IN_ORDER, analysis.program.textures[resource]
            if [analysis.uniformity.varies(at, 0, source, (k,)) for k in range(dimensions)] == [
                True,
                False,
            ]:
                rows[resource, source.register, source.swizzle[:2], row].add(column)
    for (resource, *_), columns in rows.items():
        if len(columns) in (1, 2, 4) and max(columns) - min(columns) < len(columns):
            found[resource] = TexelLayout(len(columns), analysis.lanes)
    return found


@dataclass
class Axis:
    """One coordinate of fetches, in every lane or (a scalar) the same in all: ``place`` (a whole
    double), as an integer ``index`` (i64). ``limit`` (double): the texture's size. ``low``,
    ``high``: the least and the largest that is added to it.
    """

    place: Vec
    index: Vec
    limit: Vec
    low: int = 0
    high: int = 0

    def fits(self) -> Vec:
        """i1: in every lane it lies inside, with all that is added to it."""
        return (self.inside(self.low) & self.inside(self.high)).all()

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


def beside(block: list[LaneLoads]) -> Vec:
    """i1: whether the lanes of a block of fetches do lie side by side, the first of them where a
    line begins.
    """
    index, layout = block[0].axes[0].index, block[0].layout
    aligned = ((index[0] + block[0].column) & (layout.group - 1)).cmp("eq", 0)
    steps = index.e.consts([layout.step * k for k in range(layout.lanes)], "i64")
    return aligned & (index - steps).cmp("eq", index[0]).all()


def load_lines(block: list[LaneLoads]) -> dict[int, list[Vec]]:
    """The texels of a block of fetches whose lanes lie side by side."""
    (place,), layout, found = block[0].places(1), block[0].layout, {}
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
        found[access.at] = [line]
    return found


def load_texel(place: Vec, half: Vec | int = 8, align: int = 16) -> Vec:
    """The four words of a texel, the last two of them ``half`` bytes behind the first."""
    if half == 8:
        return place.load("i32", 4, align)
    return pick(
        [place.load("i32", 2, 8), place.at(half).load("i32", 2, 8)],
        [divmod(c, 2) for c in range(4)],
    )
