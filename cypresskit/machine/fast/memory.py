"""Translation of fetches, LDS and global memory; see ``access`` for how accesses are checked and grouped."""

from dataclasses import replace

from cypresskit.il import Instruction
from cypresskit.machine.fast.access import (
    Access,
    Axis,
    Value,
    all_of,
    hidden,
    lanes_of,
    panel_offset,
    pick,
    representative,
    splat,
    spread,
    surely_inside,
)
from cypresskit.machine.fast.arithmetic import of
from cypresskit.machine.fast.flow import defines, letters
from cypresskit.machine.fast.operands import Operands

MANY = 12  # loaded vectors at a time that would crowd out the values being computed


class MemoryAccess(Operands):
    """The part of the ``Translator`` that deals with memory."""

    # Loads: textures, LDS, global memory

    def accesses(self, at: int, stop: int) -> int:
        """Translate the loads that begin at ``at`` as one group (or one LDS store); the index after them."""
        if "store" in self.body[at].opcode:
            self._lds_store(at)
            return at + 1
        group: list[Access] = []
        self.axes: dict[tuple, Axis] = {}
        written: set[tuple[int, int]] = set()
        while at < stop and self._loads(self.body[at]) and not self._depends(at, written):
            i = self.body[at]
            access = self._fetch(at) if i.op.kind == "fetch" else self._lds_load(at)
            group.append(access)
            written |= {(self.dest(at).register.index, c) for c in defines(i)}
            at += 1
        end = at
        vectors = sum(len(self.a.cells_written(access.at)) for access in group)
        while vectors > MANY and end < stop and self._plain(self.body[end]):
            end += 1
        self._run(group, range(at, end))
        return end

    @staticmethod
    def _plain(i: Instruction) -> bool:
        """Whether ``i`` only computes, from registers to registers."""
        registers = [source.register.kind for source in i.sources] + ([i.dest.register.kind] if i.dest else [])
        return i.op.kind == "alu" and "g" not in registers and "o" not in registers

    @staticmethod
    def _loads(i: Instruction) -> bool:
        return i.op.kind == "fetch" or (i.op.kind == "lds" and "store" not in i.opcode)

    def _depends(self, at: int, written: set[tuple[int, int]]) -> bool:
        if self.dest(at).register.kind != "r" and written:
            return True
        return any(
            (source.register.index, c) in written
            for _, source, positions in self.a.webs.uses[at]
            if source.register.kind == "r"
            for c in letters(source, positions)
        )

    def _run(self, group: list[Access], tail: range = range(0)) -> None:
        """Test all addresses of a group at once; load them, or replace those outside one by one. The arithmetic of
        ``tail`` follows in both copies; so, in the usual one, each load can stand where its value is first needed."""
        b = self.b
        near, far, after = (b.new_label(name) for name in ("inside", "outside", "loaded"))
        tests = [access.fits() for access in group if access.fits]
        operands: dict[tuple, dict[int, Axis]] = {}
        for axis in (axis for access in group for axis in access.axes):
            operands.setdefault(axis.key, {})[id(axis)] = axis
        tests.extend(surely_inside(b, list(same.values())) for same in operands.values())
        for test in tests:
            further = b.new_label("fits")
            b.branch(b.op(f"freeze i1 {test}"), further, far, "no")
            b.label(further)
        b.go(near)
        for label, slow in ((near, False), (far, True)):
            b.label(label)
            waiting = list(group)
            for at in (*tail, None):
                ready = [access for access in waiting if slow or at is None or self._touches(at, access.at)]
                texels = [access.load(slow) for access in ready]
                for access, found in zip(ready, texels, strict=True):
                    if access.finish:
                        access.finish(found)
                    else:
                        self._deliver(access.at, found, access.bits)
                    waiting.remove(access)
                if at is not None:
                    self.instruction(at, at + 1)
            b.go(after)
        b.label(after)

    def _touches(self, at: int, load: int) -> bool:
        """Whether ``at`` reads or writes the register that the load at ``load`` fills."""
        loaded = self.dest(load).register
        return self.dest(at).register == loaded or any(s.register == loaded for s in self.body[at].sources)

    def _count_outside(self, at: int, bits: int, inside: list[str]) -> None:
        """Count the lanes that execute ``at`` and whose representative is outside."""
        b, n = self.b, self.lanes
        if len(inside) == 1:
            vector = splat(b, inside[0], n, "i1")
        else:
            vector = "poison"
            for k, one in enumerate(inside):
                vector = b.op(f"insertelement <{len(inside)} x i1> {vector}, i1 {one}, i32 {k}")
            vector = pick(b, "i1", [vector], len(inside), [(0, k) for k in representative(n, bits)])
        missed = b.op(f"bitcast <{n} x i1> {self.without(self.mask(at), vector)} to i{n}")
        count = b.op(f"zext i{n} {b.call(f'llvm.ctpop.i{n}', f'i{n}', (f'i{n}', missed))} to i64")
        self.add_count(-1, count)

    def _fetch(self, at: int) -> Access:
        self.global_reads(at)
        b, i = self.b, self.body[at]
        resource = int(i.control("resource"))
        declared = self.program.textures[resource]
        offsets = i.control("aoffimmi", (0, 0, 0))
        base, pitch = self.slot(f"t{resource}", "ptr"), self.slot(f"t{resource}_pitch")
        axes: list[Axis] = []
        for k in range(declared.dimensions):
            size = self.slot(f"t{resource}_{'width' if k == 0 else 'height'}", "double")
            axis = self._axis(resource, at, k, size, declared.unnormalised)
            axis.low, axis.high = min(axis.low, offsets[k]), max(axis.high, offsets[k])
            axes.append(axis)
        bits = 0
        for axis in axes:
            bits |= axis.bits
        chosen = spread(self.lanes, bits)

        def element(vector: str, kind: str, axis: Axis, lane: int) -> str:
            if not axis.n:
                return vector
            k = spread(self.lanes, axis.bits).index(lane & axis.bits)
            return b.op(f"extractelement {of(kind, axis.n)} {vector}, i32 {k}")

        def pointer(lane: int) -> str:
            place = base
            for k in sorted(range(len(axes)), key=lambda k: axes[k].bits == 0):  # what is the same for all lanes: last
                index = element(axes[k].index, "i64", axes[k], lane)
                offset = panel_offset(b, index, offsets[0], pitch) if k == 0 else b.op(f"shl i64 {index}, 6")
                place = b.op(f"getelementptr i8, ptr {place}, i64 {offset}")
            if len(axes) > 1 and offsets[1]:
                place = b.op(f"getelementptr i8, ptr {place}, i64 {64 * offsets[1]}")
            return place

        def load(slow: bool) -> list[str]:
            if not slow:
                return [b.op(f"load <4 x i32>, ptr {pointer(lane)}, align 16") for lane in chosen]
            texels, inside = [], []
            for lane in chosen:
                tests, place = [], base
                for k, axis in enumerate(axes):
                    whole = hidden(b, element(axis.place, "double", axis, lane), "double")
                    whole = b.op(f"fadd double {whole}, {float(offsets[k])!r}")
                    tests.append(b.op(f"fcmp oge double {whole}, 0.0"))
                    tests.append(b.op(f"fcmp olt double {whole}, {axis.limit}"))
                    index = b.op(f"fptosi double {whole} to i64")
                    offset = panel_offset(b, index, 0, pitch) if k == 0 else b.op(f"shl i64 {index}, 6")
                    place = b.op(f"getelementptr i8, ptr {place}, i64 {offset}")
                for test in tests[1:]:
                    tests[0] = b.op(f"and i1 {tests[0]}, {test}")
                inside.append(tests[0])
                place = b.op(f"select i1 {tests[0]}, ptr {place}, ptr {self.slot('zeros', 'ptr')}")
                texels.append(b.op(f"load <4 x i32>, ptr {place}, align 16"))
            self._count_outside(at, bits, inside)
            return texels

        return Access(at, bits, load, axes=axes)

    def _axis(self, resource: int, at: int, k: int, limit: str, unnormalised: bool) -> Axis:
        """The whole coordinate ``k`` of a fetch; one for all fetches of a group that use the same operand."""
        source, load = self.body[at].sources[0], self.body[at].opcode == "load"
        operand = (
            load,
            source.register,
            source.swizzle[k],
            k in map("xyzw".find, source.negate),
            str(source).split("_")[1:],
        )
        key = (str(operand), "" if unnormalised or load else (resource, k))
        if (resource, k, key) in self.axes:
            return self.axes[resource, k, key]
        known = next((axis for (_, _, other), axis in self.axes.items() if other == key), None)
        if known:
            axis = replace(known, limit=limit, low=0, high=0)
        else:
            axis = self._new_axis(at, k, limit, unnormalised, key)
        self.axes[resource, k, key] = axis
        return axis

    def _new_axis(self, at: int, k: int, limit: str, unnormalised: bool, key: tuple) -> Axis:
        b, source = self.b, self.body[at].sources[0]
        bits = self.a.lane_bits(at, 0, source, (k,))
        name, n = lanes_of(b, self.component(at, 0, k), spread(self.lanes, bits))
        if self.body[at].opcode == "load":
            place = b.op(f"sitofp {of('i32', n)} {name} to {of('double', n)}")
            whole = b.op(f"sitofp {of('i32', n)} {name} to {of('float', n)}")
            index = b.op(f"sext {of('i32', n)} {name} to {of('i64', n)}")
        else:
            value = b.flush(b.cast(name, "float", "i32", n), n) if self.soft else b.cast(name, "float", "i32", n)
            if not unnormalised:
                size = b.op(f"fptrunc double {limit} to float")
                value = b._two("fmul", "float", n, value, splat(b, size, n, "float") if n else size)
            whole = b.intrinsic("floor", "float", n, value)
            place = b.op(f"fpext {of('float', n)} {whole} to {of('double', n)}")
            index = b.op(f"fptosi {of('float', n)} {whole} to {of('i64', n)}")
        return Axis(bits, n, place, index, limit, b.cast(whole, "i32", "float", n), key)

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

    def _lds_load(self, at: int) -> Access:
        self.global_reads(at)
        b, i = self.b, self.body[at]
        block, vector = int(i.control("id")), i.opcode.endswith("vec")
        size = self.program.lds[block][1]
        address, count, bits = self._lds_address(at)
        base = b.op(f"getelementptr i8, ptr {self.slot('lds', 'ptr')}, i64 {self.lds_layout()[0][block]}")
        components = (self.dest(at).written if vector else (0,)) or (0,)
        chosen = spread(self.lanes, bits)

        def each(value: str, kind: str) -> list[str]:
            if not count:
                return [value]
            return [b.op(f"extractelement {of(kind, count)} {value}, i32 {k}") for k in range(count)]

        def load(slow: bool) -> list[str]:
            places = [b.op(f"getelementptr i8, ptr {base}, i64 {a}") for a in each(address, "i64")]
            if not slow:
                if vector:
                    return [b.op(f"load <4 x i32>, ptr {place}, align 4") for place in places]
                return [splat(b, b.op(f"load i32, ptr {place}, align 4"), 4) for place in places]
            texels = ["zeroinitializer"] * len(chosen)
            for c in components:
                inside = each(self._below(address, count, 4 * c, size), "i1")
                for k, place in enumerate(places):
                    word = b.op(f"getelementptr i8, ptr {place}, i64 {4 * c}")
                    word = b.op(f"select i1 {inside[k]}, ptr {word}, ptr {self.slot('zeros', 'ptr')}")
                    found = b.op(f"load i32, ptr {word}, align 4")
                    if vector:
                        texels[k] = b.op(f"insertelement <4 x i32> {texels[k]}, i32 {found}, i32 {c}")
                    else:
                        texels[k] = splat(b, found, 4)
            self._count_outside(at, bits, each(self._below(address, count, 4 * max(components), size), "i1"))
            return texels

        return Access(at, bits, load, lambda: all_of(b, self._below(address, count, 4 * max(components), size), count))

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

    def global_reads(self, at: int) -> None:
        """Read every ``g[...]`` that ``at`` has as a source."""
        b = self.b
        self.found: dict[int, tuple[list[str], int]] = {}
        for n, source in enumerate(self.body[at].sources):
            if source.register.kind != "g":
                continue
            element, count, bits = self._global_elements(at, -1 - n, source.register)
            names = [f"g{k}" for k in range(1 << bits.bit_count())]

            def load(slow: bool, element=element, count=count, bits=bits) -> list[str]:
                texels, inside = [], []
                test = self._global_inside(element, count) if slow else ""
                for k in range(max(count, 1)):
                    index = b.op(f"extractelement <{count} x i64> {element}, i32 {k}") if count else element
                    place = b.op(
                        f"getelementptr i8, ptr {self.slot('global', 'ptr')}, i64 {b.op(f'shl i64 {index}, 4')}"
                    )
                    if slow:
                        inside.append(b.op(f"extractelement <{count} x i1> {test}, i32 {k}") if count else test)
                        place = b.op(f"select i1 {inside[k]}, ptr {place}, ptr {self.slot('zeros', 'ptr')}")
                    texels.append(b.op(f"load <4 x i32>, ptr {place}, align 4"))
                if slow:
                    self._count_outside(at, bits, inside)
                return texels

            def keep(texels: list[str], n=n) -> None:
                for k, texel in enumerate(texels):
                    self.variable(f"global{n}_{k}", "<4 x i32>")
                    self.store(f"global{n}_{k}", texel)

            def fits(element=element, count=count) -> str:
                return all_of(b, self._global_inside(element, count), count)

            self._run([Access(at, bits, load, fits, keep)])
            self.found[n] = [self.load(f"global{n}_{k}") for k in range(len(names))], bits

    def _deliver(self, at: int, texels: list[str], bits: int) -> None:
        """Write loaded texels to the destination."""
        b, n = self.b, self.lanes
        chosen = representative(n, bits)
        dest, fixed = self.dest(at), self.fixed(at)

        def one(c: int) -> Value:
            if not bits:
                return Value(b.op(f"extractelement <4 x i32> {texels[0]}, i32 {c}"), 0)
            return Value(pick(b, "i32", texels, 4, [(k, c) for k in chosen]), n)

        if dest.register.kind != "r":
            self.write(at, {c: one(c) for c in dest.written} | fixed)
            return
        left = list(dest.written)
        while left:
            cell = self.a.cell(self.a.webs.defined[at, left[0]])
            parts = [c for c in left if self.a.cell(self.a.webs.defined[at, c]) is cell]
            left = [c for c in left if c not in parts]
            if cell.form == "wide":
                self.write_whole(at, pick(b, "i32", texels, 4, [(k, c) for k in chosen for c in range(4)]), parts)
            elif cell.form.endswith("64") and len(parts) == 2:
                half = parts[0] // 2
                pairs = [b.op(f"bitcast <4 x i32> {texel} to <2 x i64>") for texel in texels]
                if bits:
                    self.write_cell(at, cell, Value(pick(b, "i64", pairs, 2, [(k, half) for k in chosen]), n))
                else:
                    self.write_cell(at, cell, Value(b.op(f"extractelement <2 x i64> {pairs[0]}, i32 {half}"), 0))
            else:
                self.write(at, {c: one(c) for c in parts})
        if fixed:
            self.write(at, fixed)

    # Stores

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

    def _lds_store(self, at: int) -> None:
        b, i = self.b, self.body[at]
        block, vector = int(i.control("id")), i.opcode.endswith("vec")
        size = self.program.lds[block][1]
        components = i.dest.written if vector and i.dest else (0,)
        self.global_reads(at)
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
