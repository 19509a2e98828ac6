"""Loads from textures, LDS and global memory; stores to LDS, outputs and global memory.

An access reads one 128-bit *texel* for each lane, or one for all lanes that are known to share its
address. An address outside is sent to a texel of zeros, and counted; only in strips of loops
(``blocking``) all are known to be inside. There, neighbouring fetches make up a group, which reads
whole lines where lanes' texels lie side by side. Each LDS array is padded with 16 zero bytes, so a
vector load may run past its end.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

from cypresskit.il import Instruction, Register
from cypresskit.il.dataflow import components, defines, lds_address, lds_words
from cypresskit.machine.fast.context import Context, column, join_words
from cypresskit.machine.fast.texel_layout import (
    LINE,
    Axis,
    LaneLoads,
    load_lines,
    load_texel,
    row_offset,
    side_by_side,
)
from cypresskit.machine.fast.vec import Vec, pick


class Accesses(Context):
    """Translation of loads, and of stores, which give up where the place of some lane isn't
    inside.
    """

    # Groups of accesses

    def load_group(self, at: int, stop: int) -> int:
        """Translate the loads that begin at ``at`` as one group; the index after them."""
        group: list[LaneLoads] = []
        self.axes = {}
        written: set[tuple[int, int]] = set()
        while at < stop and loads(self.body[at]) and not self._depends(at, written):
            i = self.body[at]
            self.read_global(at)
            group.append(self._fetch(at) if i.op.kind == "fetch" else self._lds_load(at))
            written |= {(self.dest(at).register.index, c) for c in defines(i)}
            at += 1
        blocks = side_by_side(group, self.lanes) if self.inside else []
        self.blocks += blocks
        lines = {at: line for block in blocks for at, line in load_lines(block).items()}
        for access, texels in [
            (access, lines.get(access.at) or self._texels(access)) for access in group
        ]:
            self._deliver(access.at, texels)
        return at

    def _depends(self, at: int, written: set[tuple[int, int]]) -> bool:
        if self.dest(at).register.kind != "r" and written:
            return True
        return any(
            (source.register.index, c) in written
            for _, source, positions in self.webs.uses[at]
            if source.register.kind == "r"
            for c in components(source, positions)
        )

    def _texels(self, access: LaneLoads) -> list[Vec]:
        """A <4 x i32> for each lane, or one for all."""
        half = access.half
        places = access.places(self.lanes if access.varies else 1)
        halves = [half] * len(places)
        if not self.inside:
            inside, all_words = access.inside(0), access.inside(max(access.words, default=0))
            if all_words.n:
                there = self.ir.consts(range(self.lanes), "i64").cmp("ult", self.gang.count)
                missed = (there & ~all_words).count()
            else:
                missed = all_words.select(self.ir.const(0, "i64"), self.gang.count)
            self.add_count(0, missed)
            self.ir.declared["zeros"] = (
                "@zeros = private constant [4 x i32] zeroinitializer, align 16"
            )
            zeros = Vec(self.ir, "@zeros", "ptr")
            places = [inside[k].select(place, zeros) for k, place in enumerate(places)]
            if isinstance(half, Vec):
                halves = [inside[k].select(half, 8) for k in range(len(places))]
        if access.words == (0,):  # one word, for every component
            return [place.load("i32", 0, 4).lanes(4) for place in places]
        align = 4 if access.words else 16
        if access.varies:
            return [
                load_texel(place, half, align) for place, half in zip(places, halves, strict=True)
            ]
        if self.analysis.doubles:  # one by one: each for all lanes LLVM broadcasts as it loads
            return [
                vector(
                    [place.load("i64", 0, 4) for place in (places[0], places[0].at(halves[0]))]
                ).bits("i32")
            ]
        return [vector([places[0].at(4 * c).load("i32", 0, 4) for c in range(4)])]

    def _deliver(self, at: int, texels: list[Vec]) -> None:
        dest, fixed = self.dest(at), self.fixed(at)
        if dest.register.kind != "r":
            self.write_components(at, {c: column(texels, c) for c in dest.written} | fixed)
            return
        for cell, parts in self.by_cell(at, dest.written):
            if cell.wide:
                words = range(4 * self.lanes)
                wanted = [divmod(k % (len(texels) * texels[0].n), texels[0].n) for k in words]
                self.write_wide(at, pick(texels, wanted), parts)
            elif cell.double and len(parts) == 2:
                self.write_cell(
                    at, cell, column([texel.bits("i64") for texel in texels], parts[0] // 2, 2)
                )
            else:
                self.write_components(at, {c: column(texels, c) for c in parts})
        if fixed:
            self.write_components(at, fixed)

    # Textures

    def _fetch(self, at: int) -> LaneLoads:
        i = self.body[at]
        resource, offsets = i.controls.resource, i.controls.aoffimmi
        base, pitch = self.slot(f"t{resource}", "ptr"), self.slot(f"t{resource}_pitch")
        axes = [
            self.axis(resource, at, k, offsets[k]) for k in range(self.program.textures[resource])
        ]
        layout = self.layouts[resource]

        def places(lanes: int) -> list[Vec]:
            first, (column, *rows) = offsets[0], axes
            moves = [
                layout.column_offset(column.index + first, pitch),
                *(row_offset(row.index) for row in rows),
            ]
            moves.sort(key=lambda move: not move.n)  # what all lanes share: last
            here = [
                reduce(lambda place, move: place.at(move[k]), moves, base) for k in range(lanes)
            ]
            return [place.at(LINE * offsets[1]) for place in here] if rows else here

        def inside(word: int) -> Vec:
            first, *more = (axis.inside(offset) for axis, offset in zip(axes, offsets))
            return first & more[0] if more else first

        varies = any(axis.index.n for axis in axes)
        row = (resource, id(axes[0]), id(axes[1]), offsets[1]) if len(axes) == 2 else ()
        return LaneLoads(at, varies, places, inside, (), axes, row, offsets[0], layout, pitch)

    def axis(self, resource: int, at: int, k: int, offset: int) -> Axis:
        """The whole coordinate ``k`` of a fetch; one for all fetches of a group that use the same
        operand.
        """
        i = self.body[at]
        source = i.sources[0]
        sign = ("xyzw"[k] in source.negate and "x") or ""
        key = resource, k, i.opcode, replace(source, swizzle=source.swizzle[k] * 4, negate=sign)
        axis = self.axes.get(key) or self._new_axis(at, k, self.slot(f"t{resource}_{'wh'[k]}"))
        axis.low, axis.high = min(axis.low, offset), max(axis.high, offset)
        self.axes[key] = axis
        return axis

    def _new_axis(self, at: int, k: int, size: Vec) -> Axis:
        i, limit = self.body[at], size.cast("sitofp", "double")
        value = self.component(at, 0, k)
        value = value if self.uniformity.varies(at, 0, i.sources[0], (k,)) else value.lanes(0)
        if i.opcode == "load":
            return Axis(value.cast("sitofp", "double"), value.cast("sext", "i64"), limit)
        value = self.floats.taken(value.bits("float"))
        whole, cell = value.call("floor"), self.analysis.plain(at, 0, k)
        if cell and any(cell in self.analysis.written[m] for m in self.inside):  # strips count it
            index = self.load(self.count_of(cell.name))
        else:
            index = whole.cast("fptosi", "i64")
        return Axis(whole.cast("fpext", "double"), index, limit)

    # LDS

    def lds_places(self, at: int) -> tuple[Vec, Vec, Callable[[int], Vec]]:
        """An LDS access's array, its byte addresses (i64, in each lane or one for all), and a test
        whether a word after them lies inside.
        """
        i = self.body[at]
        stride, size = self.program.lds[i.controls.id]
        parts = lds_address(self.program, i)
        varies = any(
            self.uniformity.varies(at, n, i.sources[n], (position,)) for n, position in parts
        )
        lanes = self.lanes if varies else 0
        values = [self.component(at, n, p).lanes(lanes).cast("zext", "i64") for n, p in parts]
        address = (values[0] * stride + values[1] if stride else values[0]) & -4
        array = self.slot("lds", "ptr").at(lds_offsets(self.program.lds)[i.controls.id])
        return array, address, lambda word: (address + 4 * word).cmp("ult", size)

    def _lds_load(self, at: int) -> LaneLoads:
        array, address, inside = self.lds_places(at)
        words = (lds_words(self.body[at]) or (0,)) if self.body[at].op.words > 1 else (0,)
        return LaneLoads(at, bool(address.n), partial(self._places, array, address), inside, words)

    # Global memory

    def global_elements(self, at: int, n: int, register: Register) -> tuple[Vec, Vec]:
        """Elements of ``g[...]`` (i64) in each lane or of all, and whether they lie inside."""
        element = self.ir.const(register.element, "i64")
        if register.address is not None:
            value = self.raw(at, n, register.address, 0)
            value = value.lanes(
                self.lanes if self.uniformity.varies(at, n, register.address) else 0
            )
            element = value.cast("sext", "i64") + register.element
        return element, element.cmp("ult", self.slot("global_size"))

    def read_global(self, at: int) -> None:
        """Read every ``g[...]`` that ``at`` has as a source."""
        self.elements = {}
        for n, source in enumerate(self.body[at].sources):
            if source.register.kind == "g":
                self.elements[n] = self._read_element(at, n, source.register)

    def _read_element(self, at: int, n: int, register: Register) -> list[Vec]:
        element, inside = self.global_elements(at, -1 - n, register)
        places = partial(self._places, self.slot("global", "ptr"), element << 4)
        return self._texels(LaneLoads(at, bool(element.n), places, lambda word: inside))

    def _places(self, base: Vec, offsets: Vec, lanes: int) -> list[Vec]:
        return [base.at(offsets[lane]) for lane in range(lanes)]

    # Stores

    def _store_rows(self, places: Sequence[Vec], rows: Sequence[Vec], words: Sequence[int]) -> None:
        """Store ``words`` of each lane's row at its place."""
        for place, row in zip(places, rows, strict=True):
            if list(words) == [0, 1, 2, 3]:
                place.store(row, 4)
            for word in words if len(words) < 4 else ():
                place.at(4 * word).store(row[word], 4)

    def _check(self, at: int, inside: Vec, place: Vec) -> None:
        """Give up where the place of some lane isn't inside."""
        fail, rest = self.ir.new("fail"), self.ir.new("store")
        self.ir.branch(inside.all(), rest, fail)
        self.ir.label(fail)
        self.refuse(at, ~inside, place)
        self.ir.label(rest)

    def _rows(self, values: dict[int, Vec], whole: Vec | None) -> list[Vec]:
        """A <4 x i32> for each lane: ``values``, and the other components of ``whole``."""
        lanes = range(self.lanes)
        if whole and not values:
            return [whole[[4 * lane + c for c in range(4)]] for lane in lanes]
        columns = {c: whole[[4 * lane + c for lane in lanes]] for c in range(4)} if whole else {}
        columns |= {c: value.lanes(self.lanes) for c, value in values.items()}
        parts = [columns.get(c, columns[min(columns)]) for c in range(4)]
        return [pick(parts, [(c, lane) for c in range(4)]) for lane in lanes]

    def store_out(self, at: int, values: dict[int, Vec], whole: Vec | None = None) -> None:
        """Store to an output or to global memory: components, and those of a whole register."""
        dest, lanes = self.body[at].dest, range(self.lanes)
        stored = sorted({*values, *(dest.written if whole and dest else ())})
        if not stored or dest is None:
            return
        rows = self._rows(values, whole)
        if dest.register.kind == "g":
            element, inside = self.global_elements(at, -9, dest.register)
            self._check(at, inside, element)
            self._store_rows(
                self._places(self.slot("global", "ptr"), element << 4, self.lanes), rows, stored
            )
            return
        base, size = (
            self.slot(f"o{dest.register.index}", "ptr"),
            self.slot(f"o{dest.register.index}_words"),
        )
        items = self.gang.item.cast("zext", "i64")
        for limit in (1, 2, 4):  # an output has one, two or four words for a work-item
            here, on = self.ir.new("output"), self.ir.new("no_output")
            self.ir.branch(size.cmp("eq", limit), here, on)
            self.ir.label(here)
            places = [base.at(items[lane] * (4 * limit)) for lane in lanes]
            self._store_rows(places, rows, [c for c in stored if c < limit])
            self.ir.label(on)

    def write_components(self, at: int, values: dict[int, Vec]) -> None:
        """Write components one by one, whatever the destination is."""
        if self.dest(at).register.kind in ("g", "o"):
            self.store_out(at, values)
            return
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

    def store_lds(self, at: int) -> None:
        """An LDS store."""
        i, n = self.body[at], self.lanes
        stored, (last,) = lds_words(i), i.op.passed
        array, address, inside = self.lds_places(at)
        self._check(at, inside(max(stored)), address)
        if len(stored) < 4:
            rows = self._rows({c: self.component(at, last, c).lanes(n) for c in stored}, None)
            self._store_rows(self._places(array, address, self.lanes), rows, stored)
            return
        whole = self.wide(at, last, stored)
        self._store_rows(self._places(array, address, self.lanes), self._rows({}, whole), stored)


def lds_offsets(arrays: dict[int, tuple[int, int]]) -> dict[int, int]:
    """Byte offset of each LDS array in a group's memory, and under -1 the size of all; 16 bytes in
    reserve behind each.
    """
    offsets, size = {}, 0
    for array, (_, length) in sorted(arrays.items()):
        offsets[array] = size
        size += -(-length // 16) * 16 + 16
    return offsets | {-1: size}


def loads(i: Instruction) -> bool:
    """Whether an instruction is a fetch or a load from the LDS."""
    return i.op.kind == "fetch" or (i.op.kind == "lds" and not i.op.store)


def vector(parts: Sequence[Vec]) -> Vec:
    """A vector of scalars."""
    whole = Vec(parts[0].e, "poison", parts[0].kind, len(parts))
    for k, part in enumerate(parts):
        whole = whole.e.op(f"insertelement {whole}, {part}, i32 {k}", whole.kind, whole.n)
    return replace(whole, parts=parts)
