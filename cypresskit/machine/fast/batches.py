"""Batches and gangs: where the work-items of a launch are, and their input registers.

A batch is what compiled code runs at a time: one gang of pixels, or a workgroup. A gang is four
work-items, or eight, in a row: not 2 x 2 pixels as on the chip, since in a row they share all that
depends on y.
"""

import math

from cypresskit.machine.fast.access import lds_offsets
from cypresskit.machine.fast.context import ONE, Context, Gang
from cypresskit.machine.fast.vec import Vec

# batches of pixels that are run one below the other before the next column: they share columns of a
# texture
BAND = 16


def corner(c: Context, batch: Vec) -> list[Vec]:
    """The corner (i32) of a gang of pixels: BAND of them lie one below the other, then comes the
    next column.
    """
    full = (c.slot("width") + (c.lanes - 1)).two("udiv", c.lanes) * BAND
    band = batch.two("udiv", full)
    top = band * BAND
    height = (c.slot("height") - top).call("smin", BAND)
    within = batch - band * full
    x, y = within.two("udiv", height), top + within.two("urem", height)
    return [(x * c.lanes).cast("trunc", "i32"), y.cast("trunc", "i32")]


def workgroup(c: Context, batch: Vec) -> list[Vec]:
    """The numbers (i32) of a workgroup along x, y and z; its LDS is cleared."""
    size = lds_offsets(c.program.lds)[-1]
    if size:
        c.ir.declared["memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        c.ir.do(
            f"call void @llvm.memset.p0.i64({c.slot('lds', 'ptr')}, i8 0, i64 {size}, i1 false)"
        )
    across, down = c.slot("groups_x"), c.slot("groups_y")
    rest = batch.two("udiv", across)
    places = batch.two("urem", across), rest.two("urem", down), rest.two("udiv", down)
    return [place.cast("trunc", "i32") for place in places]


def gang(c: Context, batch: Vec, where: list[Vec], number: Vec, spill: Vec) -> Gang:
    """The gang of that number in the batch that lies at ``where``, with memory to ``spill`` to."""
    if c.program.mode == "pixel":
        return _pixels(c, where, spill)
    return _work_items(c, batch.cast("trunc", "i32"), where, number, spill)


def _in_a_row(c: Context, first: Vec, end: Vec | int) -> tuple[Vec, Vec]:
    """As many numbers (i32) as there are lanes from ``first`` on, the last again where they would
    reach ``end``; and how many (i64) there are before that.
    """
    if c.lanes == 1:
        return first, c.ir.const(1, "i64")
    numbers = (first.lanes(c.lanes) + c.ir.consts(range(c.lanes))).call("smin", end - 1)
    left = (end - first) if isinstance(end, Vec) else c.ir.const(end, "i32") - first
    return numbers, left.call("smin", c.lanes).cast("zext", "i64")


def _pixels(c: Context, corner: list[Vec], spill: Vec) -> Gang:
    width = c.slot("width").cast("trunc", "i32")
    x, count = _in_a_row(c, corner[0], width)
    y = corner[1]
    inputs = {("vWinCoord0", "z"): c.literal(0), ("vWinCoord0", "w"): c.literal(ONE)}
    for letter, place in (("x", x), ("y", y)):
        inputs["vWinCoord0", letter] = (place.cast("sitofp", "float") + 0.5).bits("i32")
    return Gang(count, x + y * width, inputs, spill)


def _work_items(c: Context, group: Vec, groups: list[Vec], number: Vec, spill: Vec) -> Gang:
    size, n = c.program.group, c.lanes
    total = math.prod(size)
    base = number.cast("trunc", "i32") * n
    within, count = _in_a_row(c, base, total)
    item = within + group * total
    inputs = {(kind, "w"): c.literal(0) for kind in ("vTidInGrp", "vThreadGrpId", "vAbsTid")}
    for letter in "xyzw":
        inputs["vTidInGrpFlat", letter], inputs["vAbsTidFlat", letter] = within, item
        inputs["vThreadGrpIdFlat", letter] = group
    for axis, letter in enumerate("xyz"):
        below, here = math.prod(size[:axis]), size[axis]
        # rows of whole gangs: the same for all lanes
        place = within if letter == "x" or size[0] % n else base
        place = place.two("udiv", below).two("urem", here)
        inputs["vTidInGrp", letter], inputs["vThreadGrpId", letter] = place, groups[axis]
        inputs["vAbsTid", letter] = place + groups[axis] * here
    return Gang(count, item, inputs, spill)
