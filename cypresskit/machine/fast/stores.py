"""Stores, and the addresses of LDS and global memory that loads and stores share."""

from cypresskit.machine.fast.access import Value, lanes_of, pick, representative, splat, spread
from cypresskit.machine.fast.arithmetic import of
from cypresskit.machine.fast.operands import Operands


class Stores(Operands):
    """Translation of stores."""

    def lds_layout(self) -> tuple[dict[int, int], int]:
        """Byte offset of each LDS block in a group's memory, and the size of all; 16 bytes of reserve behind each."""
        offsets, size = {}, 0
        for block, (_, length) in sorted(self.program.lds.items()):
            offsets[block] = size
            size += -(-length // 16) * 16 + 16
        return offsets, size

    def _lds_address(self, at: int) -> tuple[str, int, int]:
        """Byte addresses (i64) in distinct lanes, how many, and the lane bits they depend on."""
        b, i = self.b, self.body[at]
        stride = self.program.lds[int(i.control("id"))][0]
        parts = [(0, 0)] + ([(1, 0) if i.opcode.endswith("vec") else (0, 1)] if stride else [])
        bits = 0
        for n, position in parts:
            bits |= self.a.lane_bits(at, n, i.sources[n], (position,))
        chosen = spread(self.lanes, bits)
        names = []
        for n, position in parts:
            name, count = lanes_of(b, self.component(at, n, position), chosen)
            names.append(b.op(f"zext {of('i32', count)} {name} to {of('i64', count)}"))
        address = names[0]
        if stride:
            address = b.op(f"mul {of('i64', count)} {address}, {b.constant(stride, count, 'i64')}")
            address = b._two("add", "i64", count, address, names[1])
        return b._two("and", "i64", count, address, b.constant(-4, count, "i64")), count, bits

    def _below(self, address: str, count: int, offset: int, size: int) -> str:
        b = self.b
        end = b._two("add", "i64", count, address, b.constant(offset, count, "i64"))
        return b.op(f"icmp ult {of('i64', count)} {end}, {b.constant(size, count, 'i64')}")

    def _global_elements(self, at: int, n: int, register) -> tuple[str, int, int]:
        """Elements of ``g[...]`` (i64) in distinct lanes, how many, and the lane bits they depend on."""
        b = self.b
        if register.address is None:
            return str(register.element), 0, 0
        bits = self.a.lane_bits(at, n, register.address, (0,))
        c = "xyzw".find(register.address.swizzle[0])
        if register.address.register.kind == "r" and c >= 0:
            web = self.a.webs.used[at, n, c]
            value = self._extract(self._observed(at, n, web), self.a.cell(web), c)
        else:
            value = self.raw(at, n, register.address, 0)
        name, count = lanes_of(b, value, spread(self.lanes, bits))
        wide = b.op(f"sext {of('i32', count)} {name} to {of('i64', count)}")
        return b._two("add", "i64", count, wide, b.constant(register.element, count, "i64")), count, bits

    def _global_inside(self, element: str, count: int) -> str:
        size = self.slot("global_size")
        return self.b.op(
            f"icmp ult {of('i64', count)} {element}, {splat(self.b, size, count, 'i64') if count else size}"
        )

    def _store(self, at: int, places: list[str], test: str, elements: list[str], words) -> None:
        """For each lane that executes ``at``: where ``test`` (i1 per lane, "" if nothing can be outside) holds, store
        ``words(lane)``, pairs of (byte offset, typed value), at ``places[lane]``; else fail, naming ``elements[lane]``.
        Lanes that take no part store to a place that nobody reads: that is quicker than to jump."""
        b, n = self.b, self.lanes
        mask = self.mask(at)
        if test:
            bad = self.without(mask, test)
            fail, rest = b.new_label("fail"), b.new_label("store")
            b.branch(self.any_lane(bad), fail, rest, "yes")
            b.label(fail)
            vector = "poison"
            for lane, element in enumerate(elements):
                vector = b.op(f"insertelement <{n} x i64> {vector}, i64 {element}, i32 {lane}")
            issued, error = self.load("issued"), self.slot("error", "ptr")
            where = f"<{n} x i32> {self.item}, <{n} x i64> {vector}, i64 {issued}, i64 {at}"
            b.do(f"call void @fail(ptr {error}, <{n} x i1> {bad}, {where})")
            self.store("failed", "true")
            b.go(self.region_next)
            b.label(rest)
        for lane in range(n):
            takes_part = b.op(f"extractelement <{n} x i1> {mask}, i32 {lane}")
            chosen = b.op(f"select i1 {takes_part}, ptr {places[lane]}, ptr {self.slot('nowhere', 'ptr')}")
            for offset, value in words(lane):
                place = b.op(f"getelementptr i8, ptr {chosen}, i64 {offset}") if offset else chosen
                b.do(f"store {value}, ptr {place}, align 4")

    def _each_lane(self, value: str, kind: str, count: int, bits: int) -> list[str]:
        """A value of distinct lanes as one scalar for every lane."""
        if not count:
            return [value] * self.lanes
        scalars = [self.b.op(f"extractelement {of(kind, count)} {value}, i32 {k}") for k in range(count)]
        return [scalars[k] for k in representative(self.lanes, bits)]

    def _every_lane(self, test: str, count: int, bits: int) -> str:
        """An i1 of distinct lanes as a vector of all lanes."""
        if not count:
            return splat(self.b, test, self.lanes, "i1")
        return pick(self.b, "i1", [test], count, [(0, k) for k in representative(self.lanes, bits)])

    def store_out(self, at: int, whole: str, done: list[int], values: dict[int, Value]) -> None:
        """Store components to an output or to global memory: ``done`` of the whole registers, and ``values``."""
        b, n = self.b, self.lanes
        register = self.dest(at).register
        components = sorted({*done, *values})
        if whole and not values and len(components) == 4:
            sources = [pick(b, "i32", [whole], 4 * n, [(0, 4 * lane + c) for c in range(4)]) for lane in range(n)]
        else:
            columns = {c: pick(b, "i32", [whole], 4 * n, [(0, 4 * k + c) for k in range(n)]) for c in done}
            columns |= {c: self._as(v, n) for c, v in values.items()}
            parts = [columns.get(c, columns[components[0]]) for c in range(4)]
            sources = [pick(b, "i32", parts, n, [(c, lane) for c in range(4)]) for lane in range(n)]

        def words(lane: int, limit: int = 4):
            if components == [0, 1, 2, 3] and limit == 4:
                return [(0, f"<4 x i32> {sources[lane]}")]
            kept = [c for c in components if c < limit]
            return [(4 * c, "i32 " + b.op(f"extractelement <4 x i32> {sources[lane]}, i32 {c}")) for c in kept]

        if register.kind == "g":
            element, count, bits = self._global_elements(at, -9, register)
            elements = self._each_lane(element, "i64", count, bits)
            base = self.slot("global", "ptr")
            places = [b.op(f"getelementptr i8, ptr {base}, i64 {b.op(f'shl i64 {e}, 4')}") for e in elements]
            self._store(at, places, self._every_lane(self._global_inside(element, count), count, bits), elements, words)
            return
        base, size = self.slot(f"o{register.index}", "ptr"), self.slot(f"o{register.index}_words")
        for limit in (1, 2, 4):  # an output has one, two or four words for a work-item
            here, on = b.new_label("output"), b.new_label("no_output")
            b.branch(b.op(f"icmp eq i64 {size}, {limit}"), here, on)
            b.label(here)
            items = b.op(f"zext {of('i32', n)} {self.item} to {of('i64', n)}")
            places = []
            for lane in range(n):
                item = b.op(f"extractelement {of('i64', n)} {items}, i32 {lane}")
                places.append(b.op(f"getelementptr i8, ptr {base}, i64 {b.op(f'mul i64 {item}, {4 * limit}')}"))
            self._store(at, places, "", [], lambda lane, limit=limit: words(lane, limit))
            b.go(on)
            b.label(on)

    def lds_store(self, at: int) -> None:
        b, i = self.b, self.body[at]
        block, vector = int(i.control("id")), i.opcode.endswith("vec")
        size = self.program.lds[block][1]
        components = i.dest.written if vector and i.dest else (0,)
        values = {c: self._as(self.component(at, 2 if vector else 1, c), self.lanes) for c in components}
        address, count, bits = self._lds_address(at)
        base = b.op(f"getelementptr i8, ptr {self.slot('lds', 'ptr')}, i64 {self.lds_layout()[0][block]}")
        elements = self._each_lane(address, "i64", count, bits)
        places = [b.op(f"getelementptr i8, ptr {base}, i64 {e}") for e in elements]
        test = self._every_lane(self._below(address, count, 4 * max(components), size), count, bits)
        n = self.lanes

        def words(lane: int):
            if components == (0, 1, 2, 3):
                return [
                    (0, "<4 x i32> " + pick(b, "i32", [values[c] for c in range(4)], n, [(c, lane) for c in range(4)]))
                ]
            return [(4 * c, "i32 " + b.op(f"extractelement <{n} x i32> {values[c]}, i32 {lane}")) for c in components]

        self._store(at, places, test, elements, words)
