"""Loads from textures, LDS and global memory, checked every time.

An access reads one 128-bit *texel* for each lane. Lanes that are known to share an address (``Variation.lane_bits``)
share the load. Neighbouring accesses make up a group with one test for all of them: where every address of every lane
is inside, the loads follow at once; otherwise a second copy of the loads sends each outside address to a texel of zeros
and counts it. What texture addresses are made of is computed axis by axis, so that the host's compiler moves whatever
stays the same out of a loop, tests included.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cypresskit.il import Instruction, Register
from cypresskit.il.dataflow import components, defines, lds_address, lds_words
from cypresskit.machine.fast.laneloads import Axis, LaneLoads, load_blocks, side_by_side, surely_inside
from cypresskit.machine.fast.panels import ROW, column_offset, row_offset
from cypresskit.machine.fast.readwrite import Reading, Writing, distinct, representative, spread
from cypresskit.machine.fast.storage import Storage
from cypresskit.machine.fast.target import Target
from cypresskit.machine.fast.vec import Vec, pick

VECTOR = 64  # bytes of a loaded vector


class Loads:
    """Translation of loads. ``outside``: whether accesses out of range are counted here, or were before."""

    def __init__(self, storage: Storage, reading: Reading, writing: Writing, target: Target):
        self.s, self.reading, self.writing, self.e, self.a = storage, reading, writing, storage.e, storage.analysis
        self.program, self.body = storage.program, storage.program.body
        self.axes: dict[tuple, Axis] = {}  # coordinates of a group of fetches
        self.outside = True
        self.saving = target.saving
        self.most = (
            target.room // VECTOR // 2
        )  # loaded vectors at a time; more would crowd out the values being computed

    # Groups of accesses

    def group(self, at: int, stop: int, execute: Callable[[int], None]) -> int:
        """Translate the loads that begin at ``at`` as one group; the index after them, and after what ``execute``
        translated in both its copies."""
        group: list[LaneLoads] = []
        self.axes = {}
        written: set[tuple[int, int]] = set()
        while at < stop and _loads(self.body[at]) and not self._depends(at, written):
            i = self.body[at]
            self.read_global(at)
            group.append(self._fetch(at) if i.op.kind == "fetch" else self._lds(at))
            written |= {(self.writing.dest(at).register.index, c) for c in defines(i)}
            at += 1
        end = at
        if sum(len(self.a.written(access.at)) for access in group) > self.most:
            while end < stop and _computes(self.body[end]):
                end += 1
        self._run(group, range(at, end), execute)
        return end

    def _depends(self, at: int, written: set[tuple[int, int]]) -> bool:
        if self.writing.dest(at).register.kind != "r" and written:
            return True
        return any(
            (source.register.index, c) in written
            for _, source, positions in self.a.webs.uses[at]
            if source.register.kind == "r"
            for c in components(source, positions)
        )

    def _run(self, group: list[LaneLoads], tail: Sequence[int] = (), execute: Callable[[int], object] = id) -> None:
        """Test all addresses of a group at once; load them, or replace those outside one by one. The arithmetic of
        ``tail`` follows in both copies; so, in the usual one, each load can stand where its value is first needed."""
        e = self.e
        near, far, after = (e.new(name) for name in ("inside", "outside", "loaded"))
        tests = [access.fits() for access in group if access.fits]
        operands: dict[tuple, dict[int, Axis]] = {}
        for axis in (axis for access in group for axis in access.axes):
            operands.setdefault(axis.key, {})[id(axis)] = axis
        for test in tests + [surely_inside(list(same.values())) for same in operands.values()]:
            further = e.new("fits")
            e.branch(test.freeze(), further, far, "no")
            e.label(further)
        e.go(near)
        for label, checked in ((near, False), (far, True)):
            e.label(label)
            waiting = list(group)
            blocks = [] if checked else side_by_side(group, self.s.lanes)
            loaded = load_blocks(e, blocks, self.s.lanes) if blocks else {}
            for at in (*tail, None):
                ready = [access for access in waiting if checked or at is None or self._touches(at, access.at)]
                texels = [loaded.get(access.at) or self._texels(access, checked) for access in ready]
                for access, found in zip(ready, texels, strict=True):
                    access.deliver(found) if access.deliver else self._deliver(access.at, found, access.bits)
                    waiting.remove(access)
                if at is not None:
                    execute(at)
            e.go(after)
        e.label(after)

    def _touches(self, at: int, load: int) -> bool:
        """Whether ``at`` reads or writes the register that the load at ``load`` fills."""
        loaded = self.writing.dest(load).register
        return self.writing.dest(at).register == loaded or any(s.register == loaded for s in self.body[at].sources)

    def _texels(self, access: LaneLoads, checked: bool) -> list[Vec]:
        """A <4 x i32> for each distinct lane."""
        count = range(len(spread(self.s.lanes, access.bits)))
        if checked and access.far:
            return [access.far(k, self._sharing(access, k)) for k in count]
        found, inside = [], []
        for k in count:
            place = access.place(k)
            if checked:
                inside.append(access.holds(k, max(access.words, default=0)))
            if access.words == (0,):  # one word, for every component
                place = self._safe(place, access.holds(k, 0)) if checked else place
                found.append(place.load("i32", 0, 4).lanes(4))
            elif not (checked or access.words or access.bits):  # each for all lanes: LLVM broadcasts it as it loads
                found.append(vector([place.at(4 * c).load("i32", 0, 4) for c in range(4)]))
            elif not checked or not access.words:
                found.append((self._safe(place, inside[-1]) if checked else place).load("i32", 4, access.align))
            else:
                texel = self.e.const(0, "i32", 4)
                for c in access.words:
                    texel = texel.put(c, self._safe(place.at(4 * c), access.holds(k, c)).load("i32", 0, 4))
                found.append(texel)
        if checked and self.outside:
            self._count_outside(access, inside)
        return found

    def _sharing(self, access: LaneLoads, k: int) -> Vec:
        """How many lanes (i64) execute the access and share distinct lane ``k``; none where they aren't counted."""
        shared = [int(self.outside and other == k) for other in representative(self.s.lanes, access.bits)]
        return (self.s.executing(access.at) & self.e.consts(shared, "i1")).count()

    def _safe(self, place: Vec, inside: Vec) -> Vec:
        return inside.select(place, self.s.slot("zeros", "ptr"))

    def _count_outside(self, access: LaneLoads, inside: list[Vec]) -> None:
        """Count the lanes that execute the access and whose representative is outside."""
        every = [inside[k] for k in representative(self.s.lanes, access.bits)]
        missed = self.s.without(self.s.executing(access.at), vector(every))
        self.s.add_count(0, missed.count())

    def _deliver(self, at: int, texels: list[Vec], bits: int) -> None:
        """Write loaded texels to the destination."""
        shared, dest, fixed = representative(self.s.lanes, bits), self.writing.dest(at), self.writing.fixed(at)

        def one(c: int) -> Vec:
            return pick(texels, [(k, c) for k in shared]) if bits else texels[0][c]

        if dest.register.kind != "r":
            self.writing.components(at, {c: one(c) for c in dest.written} | fixed)
            return
        for cell, parts in self.writing.by_cell(at, dest.written):
            if cell.wide:
                self.writing.whole(at, pick(texels, [(k, c) for k in shared for c in range(4)]), parts)
            elif cell.double and len(parts) == 2:
                pairs = [texel.bits("i64") for texel in texels]
                half = parts[0] // 2
                self.s.write(at, cell, pick(pairs, [(k, half) for k in shared]) if bits else pairs[0][half])
            else:
                self.writing.components(at, {c: one(c) for c in parts})
        if fixed:
            self.writing.components(at, fixed)

    # Textures

    def _fetch(self, at: int) -> LaneLoads:
        i = self.body[at]
        texture, offsets = self.program.textures[i.controls.resource], i.controls.aoffimmi
        base, pitch = self.s.slot(f"t{texture.id}", "ptr"), self.s.slot(f"t{texture.id}_pitch")
        axes = [self._axis(texture.id, at, k, offsets[k]) for k in range(texture.dimensions)]
        bits = 0
        for axis in axes:
            bits |= axis.bits
        lanes = spread(self.s.lanes, bits)

        def element(vector: Vec, axis: Axis, k: int) -> Vec:
            return vector[spread(self.s.lanes, axis.bits).index(lanes[k] & axis.bits)]

        def place(k: int) -> Vec:
            where = [element(axis.index, axis, k) for axis in axes]
            where[0] = where[0] + offsets[0] if offsets[0] else where[0]
            moves = [column_offset(where[0], pitch), *(row_offset(y) for y in where[1:])]
            here = base
            for n in sorted(range(len(axes)), key=lambda n: axes[n].bits == 0):  # what all lanes share: last
                here = here.at(moves[n])
            return here if len(axes) < 2 else here.at(ROW * offsets[1])

        def far(k: int, lanes: Vec) -> Vec:
            exact = [element(axis.place, axis, k) + float(offsets[n]) for n, axis in enumerate(axes)]
            exact += [self.e.const(0.0, "double")] * (2 - len(axes))
            limits = [axis.limit for axis in axes] + [self.e.const(1.0, "double")] * (2 - len(axes))
            texel = Vec(self.e, f"%{self.s.variable('texel', 'i32', 4)}", "ptr")
            counts = Vec(self.e, "%counts", "ptr")
            told = ", ".join(map(str, (texel, base, pitch, counts, lanes, *exact, *limits)))
            self.e.do(f"call {self.saving} void @texel({told})")
            return texel.load("i32", 4)

        row = (texture.id, axes[0].key, axes[1].key, offsets[1]) if len(axes) == 2 else ()
        return LaneLoads(at, bits, place, far=far, axes=axes, row=row, column=offsets[0], pitch=pitch)

    def _axis(self, resource: int, at: int, k: int, offset: int) -> Axis:
        """The whole coordinate ``k`` of a fetch; one for all fetches of a group that use the same operand."""
        i = self.body[at]
        source, whole = i.sources[0], i.opcode == "load" or self.program.textures[resource].unnormalised
        operand = (
            i.opcode,
            replace(source, swizzle=source.swizzle[k] * 4, negate=("xyzw"[k] in source.negate and "x") or ""),
        )
        key = operand, () if whole else (resource, k)
        axis = self.axes.get((resource, k, key))
        if axis is None:
            limit = self.s.slot(f"t{resource}_{'height' if k else 'width'}", "double")
            known = next((axis for (_, _, other), axis in self.axes.items() if other == key), None)
            axis = replace(known, limit=limit, offsets=(0, 0)) if known else self._new_axis(at, k, limit, key)
        axis = replace(axis, offsets=(min(axis.offsets[0], offset), max(axis.offsets[1], offset)))
        self.axes[resource, k, key] = axis
        return axis

    def _new_axis(self, at: int, k: int, limit: Vec, key: tuple) -> Axis:
        i = self.body[at]
        bits = self.a.vary.lane_bits(at, 0, i.sources[0], (k,))
        value = distinct(self.reading.component(at, 0, k), bits, self.s.lanes)
        if i.opcode == "load":
            whole, place, index = (
                value.cast("sitofp", "float"),
                value.cast("sitofp", "double"),
                value.cast("sext", "i64"),
            )
        else:
            value = self.reading.f.taken(value.bits("float"))
            if not self.program.textures[i.controls.resource].unnormalised:
                value = value * limit.cast("fptrunc", "float")
            counted = self.reading.counted(at, k)
            if counted is not None:
                exact = counted.cast("sitofp", "float").cmp("oeq", value)
                return Axis(
                    bits,
                    value.call("floor").cast("fpext", "double"),
                    counted,
                    value.bits("i32"),
                    limit,
                    key,
                    exact=exact,
                )
            whole = value.call("floor")
            place, index = whole.cast("fpext", "double"), whole.cast("fptosi", "i64")
        return Axis(bits, place, index, whole.bits("i32"), limit, key)

    # LDS

    def lds_places(self, at: int) -> tuple[Vec, Vec, Callable[[int], Vec], int]:
        """Of an LDS access: its block, byte addresses (i64) in distinct lanes, whether a word after them lies inside,
        and the lane bits they depend on."""
        i = self.body[at]
        stride, size = self.program.lds[i.controls.id]
        parts, bits = lds_address(self.program, i), 0
        for n, position in parts:
            bits |= self.a.vary.lane_bits(at, n, i.sources[n], (position,))
        values = [distinct(self.reading.component(at, n, p), bits, self.s.lanes).cast("zext", "i64") for n, p in parts]
        address = (values[0] * stride + values[1] if stride else values[0]) & -4
        block = self.s.slot("lds", "ptr").at(lds_offsets(self.program.lds)[i.controls.id])
        return block, address, lambda word: (address + 4 * word).cmp("ult", size), bits

    def _lds(self, at: int) -> LaneLoads:
        block, address, below, bits = self.lds_places(at)
        words = lds_words(self.body[at]) or (0,)

        def place(k: int) -> Vec:
            return block.at(address[k])

        one = words if self.body[at].op.words > 1 else (0,)
        last = max(one)
        return LaneLoads(at, bits, place, lambda k, word: below(word)[k], one, 4, lambda: below(last).all())

    # Global memory

    def global_elements(self, at: int, n: int, register: Register) -> tuple[Vec, Vec, int]:
        """Elements of ``g[...]`` (i64) in distinct lanes, whether they lie inside, and the lane bits they depend on."""
        size = self.s.slot("global_size")
        if register.address is None:
            element, bits = self.e.const(register.element, "i64"), 0
        else:
            bits = self.a.vary.lane_bits(at, n, register.address, (0,))
            value = self.reading.raw(at, n, register.address, 0)
            element = distinct(value, bits, self.s.lanes).cast("sext", "i64") + register.element
        return element, element.cmp("ult", size), bits

    def read_global(self, at: int) -> None:
        """Read every ``g[...]`` that ``at`` has as a source."""
        self.reading.found = {}
        for n, source in enumerate(self.body[at].sources):
            if source.register.kind == "g":
                self.reading.found[n] = self._read_element(at, n, source.register)

    def _read_element(self, at: int, n: int, register: Register) -> tuple[list[Vec], int]:
        element, inside, bits = self.global_elements(at, -1 - n, register)
        names = [self.s.variable(f"global{n}_{k}", "i32", 4) for k in range(len(spread(self.s.lanes, bits)))]

        def place(k: int) -> Vec:
            return self.s.slot("global", "ptr").at(element[k] << 4)

        def deliver(texels: list[Vec]) -> None:
            for name, texel in zip(names, texels, strict=True):
                self.s.store(name, texel)

        self._run([LaneLoads(at, bits, place, lambda k, word: inside[k], (), 4, inside.all, deliver)])
        return [self.s.load(name) for name in names], bits


def lds_offsets(blocks: dict[int, tuple[int, int]]) -> dict[int, int]:
    """Byte offset of each LDS block in a group's memory, and under -1 the size of all; 16 bytes in reserve behind
    each."""
    offsets, size = {}, 0
    for block, (_, length) in sorted(blocks.items()):
        offsets[block] = size
        size += -(-length // 16) * 16 + 16
    return offsets | {-1: size}


def _loads(i: Instruction) -> bool:
    return i.op.kind == "fetch" or (i.op.kind == "lds" and not i.op.store)


def _computes(i: Instruction) -> bool:
    """Whether ``i`` only computes, from registers to registers."""
    registers = [source.register.kind for source in i.sources] + ([i.dest.register.kind] if i.dest else [])
    return i.op.kind == "alu" and "g" not in registers and "o" not in registers


def vector(parts: Sequence[Vec]) -> Vec:
    """A vector of scalars."""
    whole = Vec(parts[0].e, "poison", parts[0].kind, len(parts))
    for k, part in enumerate(parts):
        whole = whole.put(k, part)
    return whole
