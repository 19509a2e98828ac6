"""Units and quads: where the work-items of a launch are, and their input registers.

A unit is what compiled code runs at a time: a tile of pixels (one quad, or two side by side), or a workgroup. The lanes
of a quad are numbered x + 2 y, as on the chip; a second quad of pixels, to the right, follows.
"""

import math

from cypresskit.machine.fast.access import Value, splat
from cypresskit.machine.fast.arithmetic import of
from cypresskit.machine.fast.branches import Branches

BAND = 4  # tiles of pixels that are run one below the other before the next column: they share columns of a texture


class Units(Branches):
    """Translation of what a unit and a quad begin with."""

    def _unit(self) -> None:
        """Where the unit lies: the tile's corner, or the group's numbers."""
        b = self.b
        if not self.pixel:
            groups = [self.slot(f"groups{axis}") for axis in "xyz"]
            rest = b.op(f"udiv i64 %unit, {groups[0]}")
            at = [
                b.op(f"urem i64 %unit, {groups[0]}"),
                b.op(f"urem i64 {rest}, {groups[1]}"),
                b.op(f"udiv i64 {rest}, {groups[1]}"),
            ]
            self.group_at = [b.op(f"trunc i64 {x} to i32") for x in at]
            self.group = b.op("trunc i64 %unit to i32")
            size = self.lds_layout()[1]
            if size:
                lds = self.slot("lds", "ptr")
                b.declared["memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
                b.do(f"call void @llvm.memset.p0.i64(ptr {lds}, i8 0, i64 {size}, i1 false)")
            return
        # tiles in bands: BAND tiles one below the other, then the next column
        columns, rows = self.slot("tile_columns"), self.slot("tile_rows")
        full = b.op(f"mul i64 {columns}, {BAND}")
        band = b.op(f"udiv i64 %unit, {full}")
        top = b.op(f"mul i64 {band}, {BAND}")
        left = b.op(f"sub i64 {rows}, {top}")
        height = b.call("llvm.smin.i64", "i64", ("i64", left), ("i64", str(BAND)))
        within = b.op(f"sub i64 %unit, {b.op(f'mul i64 {band}, {full}')}")
        tile_x = b.op(f"udiv i64 {within}, {height}")
        tile_y = b.op(f"add i64 {top}, {b.op(f'urem i64 {within}, {height}')}")
        corner = [b.op(f"mul i64 {tile_x}, {self.lanes // 2}"), b.op(f"mul i64 {tile_y}, 2")]
        self.corner = [b.op(f"trunc i64 {c} to i32") for c in corner]

    def _ramp(self, values: list[int]) -> str:
        return f"<{', '.join(f'i32 {v}' for v in values)}>"

    def _quad(self, quad: str) -> None:
        """Lane numbers, the mask of lanes that exist, and the input registers, for a quad that begins."""
        b, n = self.b, self.lanes
        self.inputs: dict[tuple[str, str], Value] = {}
        vector = of("i32", n)
        if self.pixel:
            steps = ([lane & 1 | lane >> 1 & 2 for lane in range(n)], [lane >> 1 & 1 for lane in range(n)])
            x, y = (
                b.op(f"add {vector} {splat(b, corner, n)}, {self._ramp(step)}")
                for corner, step in zip(self.corner, steps, strict=True)
            )
            width, height = (b.op(f"trunc i64 {self.slot(s)} to i32") for s in ("width", "height"))
            inside = [
                b.op(f"icmp ult {vector} {place}, {splat(b, size, n)}") for place, size in ((x, width), (y, height))
            ]
            self.active = b.op(f"and <{n} x i1> {inside[0]}, {inside[1]}")
            self.item = b.op(f"add {vector} {x}, {b.op(f'mul {vector} {y}, {splat(b, width, n)}')}")
            for letter, place in (("x", x), ("y", y)):
                centre = b.op(f"sitofp {vector} {place} to {of('float', n)}")
                centre = b.op(f"fadd {of('float', n)} {centre}, {b.constant(0.5, n, 'float')}")
                self.inputs["vWinCoord0", letter] = Value(b.cast(centre, "i32", "float", n), n)
            self.inputs["vWinCoord0", "z"] = Value(self.literal_value(0), 0)
            self.inputs["vWinCoord0", "w"] = Value(self.literal_value(0x3F800000), 0)
        else:
            self._compute_ids(quad)
        mask = b.op(f"bitcast <{n} x i1> {self.active} to i{n}")
        self.active_count = b.op(f"zext i{n} {b.call(f'llvm.ctpop.i{n}', f'i{n}', (f'i{n}', mask))} to i64")

    def _compute_ids(self, quad: str) -> None:
        b, n = self.b, self.lanes
        vector = of("i32", n)
        size = self.program.group
        total = math.prod(size)
        base = b.op(f"mul i32 {b.op(f'trunc i64 {quad} to i32')}, {n}")
        within = b.op(f"add {vector} {splat(b, base, n)}, {self._ramp(list(range(n)))}")
        self.active = b.op(f"icmp ult {vector} {within}, {b.constant(total, n, 'i32')}")
        first = b.op(f"mul i32 {self.group}, {total}")
        self.item = b.op(f"add {vector} {splat(b, first, n)}, {within}")
        zero = Value(self.literal_value(0), 0)
        for letter in "xyzw":
            self.inputs["vTidInGrpFlat", letter] = Value(within, n)
            self.inputs["vAbsTidFlat", letter] = Value(self.item, n)
            self.inputs["vThreadGrpIdFlat", letter] = Value(self.group, 0)
        for axis, letter in enumerate("xyz"):
            below, here = math.prod(size[:axis]), size[axis]
            if letter == "x" or size[0] % n:
                place = b.op(f"udiv {vector} {within}, {b.constant(below, n, 'i32')}")
                place, lanes = b.op(f"urem {vector} {place}, {b.constant(here, n, 'i32')}"), n
            else:  # the same for all lanes, since rows of the group are whole quads
                place = b.op(f"urem i32 {b.op(f'udiv i32 {base}, {below}')}, {here}")
                lanes = 0
            self.inputs["vTidInGrp", letter] = Value(place, lanes)
            self.inputs["vThreadGrpId", letter] = Value(self.group_at[axis], 0)
            corner = b.op(f"mul i32 {self.group_at[axis]}, {here}")
            total_place = b.op(f"add {of('i32', lanes)} {splat(b, corner, n) if lanes else corner}, {place}")
            self.inputs["vAbsTid", letter] = Value(total_place, lanes)
        for kind in ("vTidInGrp", "vThreadGrpId", "vAbsTid"):
            self.inputs[kind, "w"] = zero
