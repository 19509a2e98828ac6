"""The loads of an access while it is being translated: one for each distinct lane, or whole panels of a texture.

Neighbouring work-items of a GEMM kernel read neighbouring texels, each as many of them as a row of its block has. Where
a group of fetches may be such a row, compiled code looks whether the lanes do lie side by side, and then loads panels
of four texels and sorts them: half as many instructions as to load texel by texel.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from cypresskit.machine.fast.panels import PANEL, ROW
from cypresskit.machine.fast.vec import Emitter, Vec, of, pick

FAR = 2.0**24  # beyond it not every whole coordinate is a float


@dataclass(frozen=True)
class Axis:
    """One coordinate of fetches in its distinct lanes: ``place`` (a whole double) is tested, ``index`` (i64) is used;
    ``pattern``: the place's bits as a float. ``limit`` (double): the texture's size. ``offsets``: the least and the
    largest that is added to it."""

    bits: int
    place: Vec
    index: Vec
    pattern: Vec
    limit: Vec
    key: tuple  # which operand it is
    offsets: tuple[int, int] = (0, 0)
    exact: Vec | None = None


@dataclass(frozen=True)
class LaneLoads:
    """The loads of one access while it is being translated, one for each distinct lane.

    ``bits``: the lane bits on which the address depends. ``place(k)``: where distinct lane k reads. ``holds(k, word)``:
    i1, whether that word lies inside. ``words``: those that are read, or none for the whole texel. ``fits``: makes the
    i1 that no address is outside, where ``axes`` aren't tested. ``far(k, lanes)``: what distinct lane k reads, wherever
    that is, for so many lanes, if ``holds`` doesn't tell.
    """

    at: int
    bits: int
    place: Callable[[int], Vec]
    holds: Callable[[int, int], Vec] = lambda k, word: NotImplemented
    words: tuple[int, ...] = ()
    align: int = 16
    fits: Callable[[], Vec] | None = None
    deliver: Callable[[list[Vec]], None] | None = None  # what becomes of the texels, if not the usual
    axes: list[Axis] = field(default_factory=list)
    far: Callable[[int, Vec], Vec] | None = None
    row: tuple = ()  # of a fetch: what it has in common with those that read the same row of texels
    pitch: Vec | int = 0
    column: int = 0  # and the offset along that row


def side_by_side(group: list[LaneLoads], lanes: int) -> list[list[LaneLoads]]:
    """The fetches that read rows of texels together, if the lanes may lie side by side: then as many texels apart as
    there are fetches."""
    rows: dict[tuple, list[LaneLoads]] = {}
    for access in sorted(group, key=lambda access: access.column):
        if access.row and access.bits == access.axes[0].bits == lanes - 1:
            rows.setdefault(access.row, []).append(access)
    return [row for row in rows.values() if len(row) in (1, 2, 4) and row[-1].column - row[0].column == len(row) - 1]


def load_blocks(e: Emitter, blocks: list[list[LaneLoads]], count: int) -> dict[int, list[Vec]]:
    """The texels of blocks of fetches: whole panels if the lanes do lie side by side, which is tested once for all."""
    lanes, beside = range(count), e.const(1, "i1")
    for first, step in {
        (block[0].axes[0].key, block[0].column, len(block)): (block[0], len(block)) for block in blocks
    }.values():
        index = first.axes[0].index
        aligned = ((index[0] + first.column) & (PANEL - 1)).cmp("eq", 0)
        beside = beside & aligned & (index - e.consts([step * k for k in lanes], "i64")).cmp("eq", index[0]).all()
    one, each, done = (e.new(name) for name in ("panels", "texels", "block"))
    e.branch(beside.freeze(), one, each, "no")
    e.label(one)
    near = {}
    for block in blocks:
        panels, step = [block[0].place(0)], len(block)
        for _ in range(step * count // PANEL - 1):
            panels.append(panels[-1].at(block[0].pitch))
        lines = [panel.load("i32", 4 * PANEL, ROW) for panel in panels]
        for n, access in enumerate(block):
            wanted = [divmod(4 * (step * k + n) + c, 4 * PANEL) for k in lanes for c in range(4)]
            near[access.at] = pick(lines, wanted)
    e.go(done)
    e.label(each)
    apart = {}
    for access in (access for block in blocks for access in block):
        single = [access.place(k).load("i32", 4, access.align) for k in lanes]
        apart[access.at] = pick(single, [(k, c) for k in lanes for c in range(4)])
    e.go(done)
    e.label(done)
    whole = {
        at: e.op(f"phi {of(a.kind, a.n)} [{a.name}, %{one}], [{apart[at].name}, %{each}]", a.kind, a.n)
        for at, a in near.items()
    }
    return {at: [texels[list(range(4 * k, 4 * k + 4))] for k in lanes] for at, texels in whole.items()}


def surely_inside(axes: list[Axis]) -> Vec:
    """i1: in every lane, the coordinate that ``axes`` share lies inside all their textures, with all offsets that are
    added to it. Where this is false it may still lie inside: only -0.0 and places beyond 2^24 are such cases.

    One comparison does for both ends: as integers, the bits of floats from 0 up are in order, those of negative numbers
    and NaN lie above."""
    bound = axes[0].place.e.const(FAR, "double")
    for axis in axes:
        bound = (axis.limit - float(axis.offsets[1])).call("minnum", bound)
    bound = bound.call("maxnum", 0.0).cast("fptrunc", "float").bits("i32")
    test, low = axes[0].pattern.cmp("ult", bound), min(axis.offsets[0] for axis in axes)
    if low < 0:
        test = test & axes[0].place.cmp("oge", float(-low))
    if axes[0].exact is not None:
        test = test & axes[0].exact
    return test.all()
