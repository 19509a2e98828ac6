"""Batches and gangs: where the work-items of a launch are, and their input registers.

A batch is what compiled code runs at a time: one gang of pixels, or a workgroup. A gang is four
work-items, or eight, in a row: not 2 x 2 pixels as on the chip, since in a row they share all that
depends on y.
"""

import math

from cypresskit.il import Program
from cypresskit.il.bits import ONE
from cypresskit.il.program import LETTERS
from cypresskit.machine.fast.memory_access import lds_layout
from cypresskit.machine.fast.register_file import Gang
from cypresskit.machine.fast.routine import BAND, Routine
from cypresskit.machine.fast.vec import Vec


class Batches:
    """Translates where the work-items of a batch are."""

    def __init__(self, routine: Routine, program: Program, lanes: int):
        self.routine, self.program, self.lanes = routine, program, lanes
        self.gangs = 1 if program.mode == "pixel" else -(-math.prod(program.group) // lanes)

    def begin(self, batch: Vec) -> list[Vec]:
        """Where a batch lies: its gang's corner in pixels, or its workgroup's numbers, i32."""
        return self._corner(batch) if self.program.mode == "pixel" else self._workgroup(batch)

    def gang(self, batch: Vec, where: list[Vec], number: Vec, spill: Vec) -> Gang:
        """The gang of that number in the batch that lies at ``where``, with memory to ``spill``
        to.
        """
        if self.program.mode == "pixel":
            return self._pixels(where, spill)
        return self._work_items(batch.cast("trunc", "i32"), where, number, spill)

    def _corner(self, batch: Vec) -> list[Vec]:
        """The corner of a gang of pixels: BAND of them lie one below the other, then comes the next
        column.
        """
        width, height = self.routine.slot("width"), self.routine.slot("height")
        full = (width + (self.lanes - 1)).two("udiv", self.lanes) * BAND
        band = batch.two("udiv", full)
        top = band * BAND
        rows = (height - top).call("smin", BAND)
        within = batch - band * full
        x = within.two("udiv", rows)
        y = top + within.two("urem", rows)
        return [(x * self.lanes).cast("trunc", "i32"), y.cast("trunc", "i32")]

    def _workgroup(self, batch: Vec) -> list[Vec]:
        """The numbers of a workgroup along x, y and z; its LDS is cleared."""
        _, size = lds_layout(self.program.lds)
        if size:
            ir = self.routine.ir
            lds = self.routine.slot("lds", "ptr")
            ir.declared["memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
            ir.do(f"call void @llvm.memset.p0.i64({lds}, i8 0, i64 {size}, i1 false)")
        across, down = self.routine.slot("groups_x"), self.routine.slot("groups_y")
        rows_of_groups = batch.two("udiv", across)
        places = (
            batch.two("urem", across),
            rows_of_groups.two("urem", down),
            rows_of_groups.two("udiv", down),
        )
        return [place.cast("trunc", "i32") for place in places]

    def _in_a_row(self, first: Vec, end: Vec | int) -> tuple[Vec, Vec]:
        """As many numbers (i32) as there are lanes from ``first`` on, the last again where they
        would reach ``end``; and how many (i64) there are before that.
        """
        ir = self.routine.ir
        if self.lanes == 1:
            return first, ir.const(1, "i64")
        numbers = (first.lanes(self.lanes) + ir.consts(range(self.lanes))).call("smin", end - 1)
        left = (end - first) if isinstance(end, Vec) else ir.const(end, "i32") - first
        return numbers, left.call("smin", self.lanes).cast("zext", "i64")

    def _pixels(self, corner: list[Vec], spill: Vec) -> Gang:
        literal = self.routine.literal
        width = self.routine.slot("width").cast("trunc", "i32")
        x, count = self._in_a_row(corner[0], width)
        y = corner[1]
        inputs = {("vWinCoord0", "z"): literal(0), ("vWinCoord0", "w"): literal(ONE)}
        for letter, place in (("x", x), ("y", y)):
            inputs["vWinCoord0", letter] = (place.cast("sitofp", "float") + 0.5).bits("i32")
        return Gang(count, x + y * width, inputs, spill)

    def _work_items(self, group: Vec, groups: list[Vec], number: Vec, spill: Vec) -> Gang:
        size = self.program.group
        zero = self.routine.literal(0)
        total = math.prod(size)
        base = number.cast("trunc", "i32") * self.lanes
        within, count = self._in_a_row(base, total)
        item = within + group * total
        inputs = {(kind, "w"): zero for kind in ("vTidInGrp", "vThreadGrpId", "vAbsTid")}
        for letter in LETTERS:
            inputs["vTidInGrpFlat", letter], inputs["vAbsTidFlat", letter] = within, item
            inputs["vThreadGrpIdFlat", letter] = group
        for axis, letter in enumerate("xyz"):
            below = math.prod(size[:axis])
            length = size[axis]
            # rows of whole gangs: the same for all lanes
            place = within if letter == "x" or size[0] % self.lanes else base
            place = place.two("udiv", below).two("urem", length)
            inputs["vTidInGrp", letter] = place
            inputs["vThreadGrpId", letter] = groups[axis]
            inputs["vAbsTid", letter] = place + groups[axis] * length
        return Gang(count, item, inputs, spill)
