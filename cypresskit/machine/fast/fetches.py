"""Texture coordinates, and loads of texels that lie side by side.

What addresses are made of is computed axis by axis, so that the host's compiler moves whatever stays the same out of a
loop, tests included. Neighbouring work-items of a GEMM kernel read neighbouring texels, each as many of them as a row
of its block has. Where a group of fetches may be such rows, compiled code looks whether the lanes do lie side by side,
and then loads panels of four texels and sorts them: half as many instructions as to load texel by texel.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce

from cypresskit.machine.fast.panels import PANEL, ROW
from cypresskit.machine.fast.vec import Emitter, Vec, of, pick

FAR = 2.0**24  # beyond it not every whole coordinate is a float


@dataclass
class Axis:
    """One coordinate of fetches, in every lane or (a scalar) the same in all: ``place`` (a whole double) is tested,
    ``index`` (i64) is used where ``exact`` (i1) says that they are equal; ``pattern``: the place's bits as a float.
    ``limit`` (double): the texture's size. ``low``, ``high``: the least and the largest that is added to it. ``known``:
    what has been computed in this block, by its name and what is added."""

    place: Vec
    index: Vec
    pattern: Vec
    limit: Vec
    exact: Vec | None = None
    low: int = 0
    high: int = 0
    known: dict[tuple[str, int], Vec] = field(default_factory=dict)

    def once(self, name: str, offset: int, value: Callable[[], Vec]) -> Vec:
        """A value that is computed where it is first needed."""
        if (name, offset) not in self.known:
            self.known[name, offset] = value()
        return self.known[name, offset]

    def fits(self) -> Vec:
        """i1: in every lane it lies inside, with all that is added to it. Where this is false it may still lie inside:
        only -0.0 and places beyond 2^24 are such cases. One comparison does for both ends: as integers, the bits of
        floats from 0 up are in order, those of negative numbers and NaN lie above."""
        bound = (self.limit - float(self.high)).call("minnum", FAR).call("maxnum", 0.0)
        test = self.pattern.cmp("ult", bound.cast("fptrunc", "float").bits("i32"))
        if self.low < 0:
            test = test & self.place.cmp("oge", float(-self.low))
        return (test if self.exact is None else test & self.exact).all()

    def inside(self, offset: int) -> Vec:
        """i1 in each lane: exactly whether the place at that offset lies inside."""

        def compared() -> Vec:
            place = self.place + float(offset) if offset else self.place
            return place.cmp("oge", 0.0) & place.cmp("olt", self.limit)

        return self.once("inside", offset, compared)


@dataclass(frozen=True)
class LaneLoads:
    """The loads of one instruction: ``place(k)`` is where lane k reads, ``inside(word)`` (i1) in which lanes that word
    lies inside; of one lane for all unless it ``varies``. ``words``: those that are read, or none for the whole texel.
    Of a fetch: its ``axes``, the ``row`` of texels that it reads (what it has in common with others of that row) and
    its ``column`` there, and bytes between panels."""

    at: int
    varies: bool
    place: Callable[[int], Vec]
    inside: Callable[[int], Vec]
    words: tuple[int, ...] = ()
    axes: list[Axis] = field(default_factory=list)
    row: tuple = ()
    column: int = 0
    pitch: Vec | int = 0

    def tests(self) -> list[Callable[[], Vec]]:
        """What makes the i1 that no lane reads outside, one for each axis."""
        return [axis.fits for axis in self.axes] or [lambda: self.inside(max(self.words, default=0)).all()]


def forget(group: Iterable[LaneLoads]) -> None:
    """Where another block begins: compute anew what is known of axes."""
    for axis in (axis for access in group for axis in access.axes):
        axis.known.clear()


def side_by_side(group: list[LaneLoads]) -> list[list[LaneLoads]]:
    """The fetches that read rows of texels together, if the lanes may lie side by side: then as many texels apart as
    there are fetches."""
    rows: dict[tuple, list[LaneLoads]] = {}
    for access in sorted(group, key=lambda access: access.column):
        if access.row and access.axes[0].index.n and not access.axes[1].index.n:
            rows.setdefault(access.row, []).append(access)
    return [row for row in rows.values() if len(row) in (1, 2, 4) and row[-1].column - row[0].column == len(row) - 1]


def beside(block: list[LaneLoads], count: int) -> Vec:
    """i1: whether the lanes of a block of fetches do lie side by side, the first of them where a panel begins."""
    index, step = block[0].axes[0].index, len(block)
    aligned = ((index[0] + block[0].column) & (PANEL - 1)).cmp("eq", 0)
    steps = index.e.consts([step * k for k in range(count)], "i64")
    return aligned & (index - steps).cmp("eq", index[0]).all()


def load_panels(block: list[LaneLoads], count: int) -> dict[int, list[Vec]]:
    """The texels of a block of fetches whose lanes lie side by side."""
    panels, step = [block[0].place(0)], len(block)
    for _ in range(step * count // PANEL - 1):
        panels.append(panels[-1].at(block[0].pitch))
    lines = [panel.load("i32", 4 * PANEL, ROW) for panel in panels]
    wanted = [[divmod(4 * (step * k + n) + c, 4 * PANEL) for k in range(count) for c in range(4)] for n in range(step)]
    return {access.at: [pick(lines, wanted[n])] for n, access in enumerate(block)}


def load_blocks(e: Emitter, blocks: list[list[LaneLoads]], count: int) -> dict[int, list[Vec]]:
    """The texels of blocks of fetches: whole panels if the lanes do lie side by side, which is tested once for all."""
    one, each, done = (e.new(name) for name in ("panels", "texels", "block"))
    different = {(id(block[0].axes[0]), block[0].column, len(block)): block for block in blocks}
    together = reduce(lambda a, b: a & b, [beside(block, count) for block in different.values()])
    e.branch(together.freeze(), one, each, "no")
    e.label(one)
    near: dict[int, list[Vec]] = {}
    for block in blocks:
        near |= load_panels(block, count)
    e.go(done)
    e.label(each)
    forget(access for block in blocks for access in block)
    apart = {}
    for access in (access for block in blocks for access in block):
        single = [access.place(k).load("i32", 4, 16) for k in range(count)]
        apart[access.at] = pick(single, [(k, c) for k in range(count) for c in range(4)])
    e.go(done)
    e.label(done)
    forget(access for block in blocks for access in block)
    return {
        at: [e.op(f"phi {of(a.kind, a.n)} [{a.name}, %{one}], [{apart[at].name}, %{each}]", a.kind, a.n)]
        for at, (a,) in near.items()
    }
