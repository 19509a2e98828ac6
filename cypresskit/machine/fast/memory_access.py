"""Loads from textures, LDS and global memory; stores to LDS, outputs and global memory.

An access reads one 128-bit *texel* for each lane, or one for all lanes that are known to share its
address. An address outside is sent to a texel of zeros, and counted; only in strips of loops
(``strips``) all are known to be inside. There, neighbouring fetches make up a group, which reads
whole lines where lanes' texels lie side by side. Each LDS array is padded with 16 zero bytes, so a
vector load may run past its end.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

from cypresskit.il import Instruction, Register
from cypresskit.il.dataflow import (
    RESULT_ADDRESS,
    address_number,
    components,
    defines,
    lds_address,
    lds_words,
)
from cypresskit.machine.fast.fetches import (
    Coordinates,
    LaneLoads,
    load_lines,
    load_texel,
    side_by_side,
)
from cypresskit.machine.fast.register_file import RegisterFile, column
from cypresskit.machine.fast.routine import ELEMENT, FAILED, ITEM, Routine
from cypresskit.machine.fast.strips import StripLoop
from cypresskit.machine.fast.texel_layout import LINE, layouts, row_offset
from cypresskit.machine.fast.vec import Vec, pick


class MemoryAccess:
    """Translates loads, and stores, which give up where the place of some lane isn't inside.

    ``strip``: the loop of which a strip is translated, whose loads are all known to lie inside.
    """

    strip: StripLoop | None = None

    def __init__(self, routine: Routine, registers: RegisterFile, coordinates: Coordinates):
        self.routine, self.registers, self.coordinates = routine, registers, coordinates
        self.program, self.body, self.lanes = registers.program, registers.body, registers.lanes
        self.webs = registers.webs
        self.uniformity = registers.analysis.uniformity
        self.layouts = layouts(registers.analysis)

    # Groups of accesses

    def load_group(self, at: int, stop: int) -> int:
        """Translate the loads that begin at ``at`` as one group; the index after them."""
        group: list[LaneLoads] = []
        self.coordinates.forget()
        written: set[tuple[int, int]] = set()
        while at < stop and loads(self.body[at]) and not self._depends(at, written):
            i = self.body[at]
            self.read_global(at)
            group.append(self._fetch(at) if i.op.kind == "fetch" else self._lds_load(at))
            written |= {(self.registers.dest(at).register.index, c) for c in defines(i)}
            at += 1
        lines: dict[int, list[Vec]] = {}
        if self.strip:
            for block in side_by_side(group, self.lanes):
                self.strip.in_lines.append(block)
                lines |= load_lines(block)
        loaded = [lines.get(access.at) or self._texels(access) for access in group]
        for access, texels in zip(group, loaded, strict=True):  # when all have been read
            self._deliver(access.at, texels)
        return at

    def _depends(self, at: int, written: set[tuple[int, int]]) -> bool:
        if self.registers.dest(at).register.kind != "r" and written:
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
        if not self.strip:
            inside = access.inside(0)
            all_words = access.inside(max(access.words, default=0))
            count = self.registers.gang.count
            if all_words.n:
                lane_runs = self.routine.ir.consts(range(self.lanes), "i64").cmp("ult", count)
                missed = (lane_runs & ~all_words).count()
            else:
                missed = all_words.select(self.routine.ir.const(0, "i64"), count)
            self.routine.add_count(0, missed)
            self.routine.ir.declared["zeros"] = (
                "@zeros = private constant [4 x i32] zeroinitializer, align 16"
            )
            zeros = Vec(self.routine.ir, "@zeros", "ptr")
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
        # One by one: each for all lanes LLVM broadcasts as it loads
        parts = places[0], places[0].at(halves[0])
        return [vector([part.at(4 * c).load("i32", 0, 4) for part in parts for c in range(2)])]

    def _deliver(self, at: int, texels: list[Vec]) -> None:
        dest, fixed = self.registers.dest(at), self.registers.fixed(at)
        if dest.register.kind != "r":
            self.write_components(at, {c: column(texels, c) for c in dest.written} | fixed)
            return
        for cell, parts in self.registers.by_cell(at, dest.written):
            if cell.wide:
                words = range(4 * self.lanes)
                wanted = [divmod(k % (len(texels) * texels[0].n), texels[0].n) for k in words]
                self.registers.write_wide(at, pick(texels, wanted), parts)
            elif cell.double and len(parts) == 2:
                self.registers.write_cell(
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
        base = self.routine.slot(f"t{resource}", "ptr")
        pitch = self.routine.slot(f"t{resource}_pitch")
        axes = [
            self.coordinates.axis(resource, at, k) for k in range(self.program.textures[resource])
        ]
        layout = self.layouts[resource]

        def places(lanes: int) -> list[Vec]:
            first = offsets[0]
            (column, *rows) = axes
            moves = [
                layout.column_offset(column.index + first, pitch),
                *(row_offset(row.index) for row in rows),
            ]
            moves.sort(key=lambda move: not move.n)  # what all lanes share: last
            starts = [
                reduce(lambda place, move: place.at(move[k]), moves, base) for k in range(lanes)
            ]
            return [start.at(LINE * offsets[1]) for start in starts] if rows else starts

        def inside(word: int) -> Vec:
            first, *more = (axis.inside(offset) for axis, offset in zip(axes, offsets))
            return first & more[0] if more else first

        varies = any(axis.index.n for axis in axes)
        row = (resource, id(axes[0]), id(axes[1]), offsets[1]) if len(axes) == 2 else ()
        return LaneLoads(at, varies, places, inside, (), axes, row, offsets[0], layout, pitch)

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
        values = [
            self.registers.component(at, n, p).lanes(lanes).cast("zext", "i64") for n, p in parts
        ]
        address = (values[0] * stride + values[1] if stride else values[0]) & -4
        offsets, _ = lds_layout(self.program.lds)
        array = self.routine.slot("lds", "ptr").at(offsets[i.controls.id])
        return array, address, lambda word: (address + 4 * word).cmp("ult", size)

    def _lds_load(self, at: int) -> LaneLoads:
        array, address, inside = self.lds_places(at)
        words = (lds_words(self.body[at]) or (0,)) if self.body[at].op.words > 1 else (0,)
        return LaneLoads(at, bool(address.n), partial(self._places, array, address), inside, words)

    # Global memory

    def global_elements(self, at: int, n: int, register: Register) -> tuple[Vec, Vec]:
        """Elements of ``g[...]`` (i64) in each lane or of all, and whether they lie inside."""
        element = self.routine.ir.const(register.element, "i64")
        if register.address is not None:
            value = self.registers.raw(at, n, register.address, 0)
            value = value.lanes(
                self.lanes if self.uniformity.varies(at, n, register.address) else 0
            )
            element = value.cast("sext", "i64") + register.element
        return element, element.cmp("ult", self.routine.slot("global_size"))

    def read_global(self, at: int) -> None:
        """Read every ``g[...]`` that ``at`` has as a source."""
        self.registers.elements = {}
        for n, source in enumerate(self.body[at].sources):
            if source.register.kind == "g":
                self.registers.elements[n] = self._read_element(at, n, source.register)

    def _read_element(self, at: int, n: int, register: Register) -> list[Vec]:
        element, inside = self.global_elements(at, address_number(n), register)
        places = partial(self._places, self.routine.slot("global", "ptr"), element << 4)
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
        fail, go_on = self.routine.ir.new("fail"), self.routine.ir.new("store")
        self.routine.ir.branch(inside.all(), go_on, fail)
        self.routine.ir.label(fail)
        self._refuse(at, ~inside, place)
        self.routine.ir.label(go_on)

    def _refuse(self, at: int, bad: Vec, places: Vec) -> None:
        """Leave the routine, since ``at`` would store outside, in the lanes in ``bad``: report the
        first of them.
        """
        items = self.registers.gang.item
        bad, places, items = (value.lanes(self.lanes) for value in (bad, places, items))
        self.routine.report(ELEMENT, places[bad.first()])
        self.routine.report(ITEM, items[bad.first()].cast("zext", "i64"))
        self.routine.give_up(FAILED, at)

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
        dest = self.body[at].dest
        lanes = range(self.lanes)
        stored = sorted({*values, *(dest.written if whole and dest else ())})
        if not stored or dest is None:
            return
        rows = self._rows(values, whole)
        if dest.register.kind == "g":
            element, inside = self.global_elements(at, RESULT_ADDRESS, dest.register)
            self._check(at, inside, element)
            self._store_rows(
                self._places(self.routine.slot("global", "ptr"), element << 4, self.lanes),
                rows,
                stored,
            )
            return
        base = self.routine.slot(f"o{dest.register.index}", "ptr")
        size = self.routine.slot(f"o{dest.register.index}_words")
        items = self.registers.gang.item.cast("zext", "i64")
        for limit in (1, 2, 4):  # an output has one, two or four words for a work-item
            bound, not_bound = self.routine.ir.new("output"), self.routine.ir.new("no_output")
            self.routine.ir.branch(size.cmp("eq", limit), bound, not_bound)
            self.routine.ir.label(bound)
            places = [base.at(items[lane] * (4 * limit)) for lane in lanes]
            self._store_rows(places, rows, [c for c in stored if c < limit])
            self.routine.ir.label(not_bound)

    def write_components(self, at: int, values: dict[int, Vec]) -> None:
        """Write components one by one, to a register or to memory."""
        if self.registers.dest(at).register.kind in ("g", "o"):
            self.store_out(at, values)
            return
        self.registers.write_components(at, values)

    def store_lds(self, at: int) -> None:
        """An LDS store."""
        i = self.body[at]
        n = self.lanes
        stored = lds_words(i)
        (last,) = i.op.passed
        array, address, inside = self.lds_places(at)
        self._check(at, inside(max(stored)), address)
        if len(stored) < 4:
            rows = self._rows(
                {c: self.registers.component(at, last, c).lanes(n) for c in stored}, None
            )
            self._store_rows(self._places(array, address, self.lanes), rows, stored)
            return
        whole = self.registers.wide(at, last, stored)
        self._store_rows(self._places(array, address, self.lanes), self._rows({}, whole), stored)


def lds_layout(arrays: dict[int, tuple[int, int]]) -> tuple[dict[int, int], int]:
    """Byte offset of each LDS array in a group's memory, and the bytes of all; 16 bytes in reserve
    behind each.
    """
    offsets = {}
    size = 0
    for array, (_, length) in sorted(arrays.items()):
        offsets[array] = size
        size += -(-length // 16) * 16 + 16
    return offsets, size


def loads(i: Instruction) -> bool:
    """Whether an instruction is a fetch or a load from the LDS."""
    return i.op.kind == "fetch" or (i.op.kind == "lds" and not i.op.store)


def vector(parts: Sequence[Vec]) -> Vec:
    """A vector of scalars."""
    whole = Vec(parts[0].e, "poison", parts[0].kind, len(parts))
    for k, part in enumerate(parts):
        whole = whole.e.op(f"insertelement {whole}, {part}, i32 {k}", whole.kind, whole.n)
    return replace(whole, parts=parts)
