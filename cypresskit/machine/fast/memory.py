"""Loads from textures, LDS and global memory; see ``access`` for how accesses are checked and grouped."""

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
from cypresskit.machine.fast.stores import Stores

MANY = 12  # loaded vectors at a time that would crowd out the values being computed


class MemoryAccess(Stores):
    """Translation of loads."""

    def accesses(self, at: int, stop: int) -> int:
        """Translate the loads that begin at ``at`` as one group (or one LDS store); the index after them."""
        if "store" in self.body[at].opcode:
            self.global_reads(at)
            self.lds_store(at)
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

    def global_reads(self, at: int) -> None:
        """Read every ``g[...]`` that ``at`` has as a source."""
        b = self.b
        self.found: dict[int, tuple[list[str], int]] = {}
        for n, source in enumerate(self.body[at].sources):
            if source.register.kind != "g":
                continue
            element, count, bits = self._global_elements(at, -1 - n, source.register)

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
            self.found[n] = [self.load(f"global{n}_{k}") for k in range(max(count, 1))], bits

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
