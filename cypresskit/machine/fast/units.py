"""Units and quads: where the work-items of a launch are, and their input registers.

A unit is what compiled code runs at a time: a tile of pixels (one quad), or a workgroup. A quad is four work-items, or
eight, in a row: not 2 x 2 pixels as on the chip, since in a row they share all that depends on y.
"""

import math

from cypresskit.machine.fast.access import lds_offsets
from cypresskit.machine.fast.storage import ONE, Quad, Storage
from cypresskit.machine.fast.vec import Vec

BAND = 16  # tiles of pixels that are run one below the other before the next column: they share columns of a texture


def tile(s: Storage, unit: Vec) -> list[Vec]:
    """The corner (i32) of a tile of pixels: BAND tiles lie one below the other, then comes the next column."""
    full = (s.slot("width") + (s.lanes - 1)).two("udiv", s.lanes) * BAND
    band = unit.two("udiv", full)
    top = band * BAND
    height = (s.slot("height") - top).call("smin", BAND)
    within = unit - band * full
    x, y = within.two("udiv", height), top + within.two("urem", height)
    return [(x * s.lanes).cast("trunc", "i32"), y.cast("trunc", "i32")]


def workgroup(s: Storage, unit: Vec) -> list[Vec]:
    """The numbers (i32) of a workgroup along x, y and z; its LDS is cleared."""
    size = lds_offsets(s.program.lds)[-1]
    if size:
        s.e.declared["memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        s.e.do(f"call void @llvm.memset.p0.i64({s.slot('lds', 'ptr')}, i8 0, i64 {size}, i1 false)")
    across, down = s.slot("groups_x"), s.slot("groups_y")
    rest = unit.two("udiv", across)
    places = unit.two("urem", across), rest.two("urem", down), rest.two("udiv", down)
    return [place.cast("trunc", "i32") for place in places]


def quad(s: Storage, unit: Vec, where: list[Vec], number: Vec, spill: Vec) -> Quad:
    """The quad of that number in the unit that lies at ``where``, with memory to ``spill`` to."""
    if s.program.mode == "pixel":
        return _pixels(s, where, spill)
    return _work_items(s, unit.cast("trunc", "i32"), where, number, spill)


def _in_a_row(s: Storage, first: Vec, end: Vec | int) -> tuple[Vec, Vec]:
    """As many numbers (i32) as there are lanes from ``first`` on, the last again where they would reach ``end``; and
    how many (i64) there are before that."""
    if s.lanes == 1:
        return first, s.e.const(1, "i64")
    numbers = (first.lanes(s.lanes) + s.e.consts(range(s.lanes))).call("smin", end - 1)
    left = (end - first) if isinstance(end, Vec) else s.e.const(end, "i32") - first
    return numbers, left.call("smin", s.lanes).cast("zext", "i64")


def _pixels(s: Storage, corner: list[Vec], spill: Vec) -> Quad:
    width = s.slot("width").cast("trunc", "i32")
    x, count = _in_a_row(s, corner[0], width)
    y = corner[1]
    inputs = {("vWinCoord0", "z"): s.literal(0), ("vWinCoord0", "w"): s.literal(ONE)}
    for letter, place in (("x", x), ("y", y)):
        inputs["vWinCoord0", letter] = (place.cast("sitofp", "float") + 0.5).bits("i32")
    return Quad(count, x + y * width, inputs, spill)


def _work_items(s: Storage, group: Vec, groups: list[Vec], number: Vec, spill: Vec) -> Quad:
    size, n = s.program.group, s.lanes
    total = math.prod(size)
    base = number.cast("trunc", "i32") * n
    within, count = _in_a_row(s, base, total)
    item = within + group * total
    inputs = {(kind, "w"): s.literal(0) for kind in ("vTidInGrp", "vThreadGrpId", "vAbsTid")}
    for letter in "xyzw":
        inputs["vTidInGrpFlat", letter], inputs["vAbsTidFlat", letter] = within, item
        inputs["vThreadGrpIdFlat", letter] = group
    for axis, letter in enumerate("xyz"):
        below, here = math.prod(size[:axis]), size[axis]
        # rows of whole quads: the same for all lanes
        place = within if letter == "x" or size[0] % n else base
        place = place.two("udiv", below).two("urem", here)
        inputs["vTidInGrp", letter], inputs["vThreadGrpId", letter] = place, groups[axis]
        inputs["vAbsTid", letter] = place + groups[axis] * here
    return Quad(count, item, inputs, spill)
