"""What instructions read and write: registers in their cells, literals, constants, input registers, masks of lanes.

A ``Value`` is one component for all lanes; whole registers of four lanes are <16 x i32>, lane by lane. Everything is
kept as integers, so that copying never changes bits.
"""

from cypresskit.il import Dest, Program, Source
from cypresskit.machine.fast.access import Axis, Value, pick, representative, splat
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.arithmetic import Builder, of
from cypresskit.machine.fast.cells import Cell
from cypresskit.machine.fast.flow import defines


class Operands:
    """The state of a translation, and how operands are read and results written."""

    def __init__(self, program: Program, analysis: Analysis, soft: bool):
        self.program, self.body, self.a = program, program.body, analysis
        self.b = Builder(soft)
        self.soft, self.lanes, self.pixel = soft, analysis.lanes, program.mode == "pixel"
        self.slots: dict[str, int] = {}
        self.literals: dict[int, str] = {}
        self.constants: set[str] = set()
        self.entry: list[str] = []  # what the entry block loads
        self.allocas: dict[str, str] = {}
        self.inputs: dict[tuple[str, str], Value] = {}  # input registers of the quad
        self.active = self.active_count = self.item = ""  # of the quad: lanes that exist, how many, their work-items
        self.region_next = ""  # label: the next quad
        self.touched: dict[str, Cell] = {}  # cells that the region uses
        self.modified: set[str] = set()  # and those that it writes
        self.pending: tuple[str, list[int]] = ("", [])  # components of a store that are there as whole registers
        self.found: dict[int, tuple[list[str], int]] = {}  # global elements read, by number of the source
        self.axes: dict[tuple, Axis] = {}  # coordinates of a group of fetches

    def dest(self, at: int) -> Dest:
        """The destination of an instruction that has one."""
        dest = self.body[at].dest
        assert dest is not None
        return dest

    def fixed(self, at: int) -> dict[int, Value]:
        """The components that the mask sets to 0 or 1."""
        bits = {"0": 0, "1": 0x3F800000}
        return {c: Value(self.literal_value(bits[m]), 0) for c, m in enumerate(self.dest(at).mask) if m in bits}

    def store_out(self, at: int, whole: str, done: list[int], values: dict[int, Value]) -> None:
        """Store to an output or to global memory; see ``MemoryAccess``."""
        raise NotImplementedError

    def instruction(self, at: int, stop: int) -> int:
        """Translate one instruction or group of accesses; see ``Instructions``."""
        raise NotImplementedError

    # Building blocks

    def slot(self, name: str, kind: str = "i64") -> str:
        """A value of the context, loaded once in the entry block."""
        if name not in self.slots:
            self.slots[name] = len(self.slots)
            at = 8 * self.slots[name]
            self.entry.append(f"  %p_{name} = getelementptr i8, ptr %context, i64 {at}")
            self.entry.append(f"  %{name} = load {kind}, ptr %p_{name}")
        return f"%{name}"

    def literal_value(self, bits: int) -> str:
        """A literal as an i32 that LLVM doesn't know, lest it compute with it in another way than the program would."""
        if bits not in self.literals:
            table = self.slot("literals", "ptr")
            name = f"%l_{bits:08x}"
            self.entry.append(f"  {name}_p = getelementptr i32, ptr {table}, i64 {len(self.literals)}")
            self.entry.append(f"  {name} = load i32, ptr {name}_p")
            self.literals[bits] = name
        return self.literals[bits]

    def constant_value(self, buffer: int, element: int, component: int) -> str:
        """A component of a constant buffer as i32."""
        name = f"%cb{buffer}_{element}_{component}"
        if name not in self.constants:
            self.constants.add(name)
            base = self.slot(f"cb{buffer}", "ptr")
            self.entry.append(f"  {name}_p = getelementptr i32, ptr {base}, i64 {4 * element + component}")
            self.entry.append(f"  {name} = load i32, ptr {name}_p")
        return name

    def variable(self, name: str, kind: str) -> str:
        """A stack variable (a register for LLVM, unless its address is taken)."""
        self.allocas[name] = kind
        return f"%{name}"

    def load(self, name: str) -> str:
        """The value of a variable."""
        return self.b.op(f"load {self.allocas[name]}, ptr %{name}")

    def store(self, name: str, value: str) -> None:
        """Set a variable."""
        self.b.do(f"store {self.allocas[name]} {value}, ptr %{name}")

    def form_type(self, cell: Cell) -> str:
        """The LLVM type of a cell."""
        n = self.lanes
        return {"scalar": "i32", "lanes": f"<{n} x i32>", "scalar64": "i64", "lanes64": f"<{n} x i64>"}.get(
            cell.form, f"<{4 * n} x i32>"
        )

    def cell_variable(self, cell: Cell) -> str:
        """The variable that holds a cell in a region."""
        if cell.name not in self.allocas:
            self.variable(cell.name, self.form_type(cell))
        self.touched.setdefault(cell.name, cell)
        return cell.name

    # Masks

    def add_count(self, counter: int, count: str) -> None:
        """counts[counter] += count."""
        place = self.b.op(f"getelementptr i64, ptr %counts, i64 {counter + 1}")
        old = self.b.op(f"load i64, ptr {place}")
        self.b.do(f"store i64 {self.b.op(f'add i64 {old}, {count}')}, ptr {place}")

    def mask(self, at: int) -> str:
        """Who executes ``at``."""
        return self.load("exec") if self.a.divergent[at] else self.active

    def both(self, first: str, second: str) -> str:
        """Lanes in both masks; undefined lanes of ``second`` don't matter where ``first`` is unset."""
        n = self.lanes
        return self.b.op(f"select <{n} x i1> {first}, <{n} x i1> {second}, <{n} x i1> zeroinitializer")

    def without(self, first: str, second: str) -> str:
        """Lanes of ``first`` that are not in ``second``."""
        n = self.lanes
        return self.both(first, self.b.op(f"xor <{n} x i1> {second}, {self.b.constant('true', n, 'i1')}"))

    def any_lane(self, mask: str) -> str:
        """i1: some lane is set."""
        bits = self.b.op(f"bitcast <{self.lanes} x i1> {mask} to i{self.lanes}")
        return self.b.op(f"icmp ne i{self.lanes} {bits}, 0")

    # Operands

    def component(self, at: int, n: int, position: int) -> Value:
        """Source ``n`` at a position, with its modifiers, as i32 bits."""
        i = self.body[at]
        source = i.sources[n]
        value = self.raw(at, n, source, position)
        if not source.modified:
            return value
        b, negated = self.b, "xyzw"[position] in source.negate
        name = value.name
        if i.op.double and i.op.sources[n] == "d":
            return value
        if not i.op.float_modifiers(n):
            zero = b.constant(0, value.n, "i32")
            return Value(b.op(f"sub {of('i32', value.n)} {zero}, {name}"), value.n) if negated else value
        name = b.cast(b.modified(b.cast(name, "float", "i32", value.n), source, value.n), "i32", "float", value.n)
        if negated:
            name = b.op(f"xor {of('i32', value.n)} {name}, {b.constant(-0x80000000, value.n, 'i32')}")
        return Value(name, value.n)

    def raw(self, at: int, n: int, source: Source, position: int) -> Value:
        """A component of an operand without modifiers; NaN canonical where the instruction can tell."""
        register, letter = source.register, source.swizzle[position]
        if letter in "01":
            return Value(self.literal_value(0x3F800000 if letter == "1" else 0), 0)
        c = "xyzw".index(letter)
        if register.kind == "l":
            return Value(self.literal_value(self.program.literals[register.index][c]), 0)
        if register.kind == "cb":
            return Value(self.constant_value(register.index, register.element, c), 0)
        if register.kind == "g":
            return self.read_global(n, c)
        if register.kind != "r":
            return self.inputs[register.kind, letter]
        web = self.a.webs.used[at, n, c]
        return self._extract(self._observed(at, n, web), self.a.cell(web), c)

    def _observed(self, at: int, n: int, web: int) -> str:
        """A cell's value for source ``n``, its NaN made canonical if that can be seen and was left for later."""
        b, cell = self.b, self.a.cell(web)
        root = self.a.webs.find(web)
        whole = self.load(self.cell_variable(cell))
        kinds = self.a.kinds.get(root, set())
        passes_on = self.a.copies(self.body[at]) and any(
            self.a.webs.find(self.a.webs.defined[at, c]) in self.a.canonical_at_definition
            for c in defines(self.body[at])
            if (at, c) in self.a.webs.defined
        )
        if len(kinds) != 1 or "b" in kinds or not (self.a.observes(at, n, root) or passes_on):
            return whole
        n_lanes = {"scalar": 0, "scalar64": 0, "wide": 4 * self.lanes}.get(cell.form, self.lanes)
        bits, kind = ("i64", "double") if "d" in kinds else ("i32", "float")
        return b.cast(b.canonical(b.cast(whole, kind, bits, n_lanes), kind, n_lanes), bits, kind, n_lanes)

    def _extract(self, whole: str, cell: Cell, c: int) -> Value:
        """Component ``c`` of a cell's value."""
        b, n = self.b, self.lanes
        if cell.form == "wide":
            return Value(pick(b, "i32", [whole], 4 * n, [(0, 4 * lane + c) for lane in range(n)]), n)
        lanes = n if cell.form.startswith("lanes") else 0
        if cell.form.endswith("64"):
            if c % 2:
                whole = b.op(f"lshr {of('i64', lanes)} {whole}, {b.constant(32, lanes, 'i64')}")
            whole = b.op(f"trunc {of('i64', lanes)} {whole} to {of('i32', lanes)}")
        return Value(whole, lanes)

    def _as(self, value: Value, n: int) -> str:
        """The value with ``n`` lanes; as a scalar, if it was computed in every lane though known to be the same."""
        if value.n and not n:
            return self.b.op(f"extractelement {of('i32', value.n)} {value.name}, i32 0")
        return splat(self.b, value.name, n) if n and not value.n else value.name

    def double(self, at: int, n: int) -> Value:
        """Source ``n`` as a double (i64 bits), made absolute and negated: doubles have no other modifiers."""
        b, source = self.b, self.body[at].sources[n]
        value = self.pair(at, n, source, 0)
        if source.modified:
            bits = b.cast(value.name, "double", "i64", value.n)
            bits = b.intrinsic("fabs", "double", value.n, bits) if source.abs else bits
            bits = b.op(f"fneg {of('double', value.n)} {bits}") if source.negates_double else bits
            return Value(b.cast(bits, "i64", "double", value.n), value.n)
        return value

    def _join_words(self, low64: str, high: str, n: int) -> str:
        b = self.b
        high = b.op(f"zext {of('i32', n)} {high} to {of('i64', n)}")
        high = b.op(f"shl {of('i64', n)} {high}, {b.constant(32, n, 'i64')}")
        return b.op(f"or {of('i64', n)} {low64}, {high}")

    def pair(self, at: int, n: int, source: Source, position: int) -> Value:
        """Two neighbouring positions of an operand as i64 bits."""
        b = self.b
        first, second = source.swizzle[position], source.swizzle[position + 1]
        if source.register.kind == "r" and first + second in ("xy", "zw"):
            web = self.a.webs.used[at, n, "xyzw".index(first)]
            cell = self.a.cell(web)
            if cell.form.endswith("64"):
                return Value(self._observed(at, n, web), self.lanes if cell.form == "lanes64" else 0)
        low, high = self.raw(at, n, source, position), self.raw(at, n, source, position + 1)
        lanes = max(low.n, high.n)
        wide = b.op(f"zext {of('i32', lanes)} {self._as(low, lanes)} to {of('i64', lanes)}")
        return Value(self._join_words(wide, self._as(high, lanes), lanes), lanes)

    def wide(self, at: int, n: int, positions: tuple[int, ...]) -> str:
        """Source ``n`` for whole registers, <16 x i32>, with its modifiers."""
        b, i, lanes = self.b, self.body[at], self.lanes
        source = i.sources[n]
        shown = [p if p in positions else positions[0] for p in range(4)]
        picked = [source.swizzle[p] for p in shown]
        webs = [self.a.webs.used.get((at, n, "xyzw".index(x))) if x in "xyzw" else None for x in picked]
        cells = [self.a.cell(w) if w is not None else None for w in webs]
        if source.register.kind == "r" and cells[0] and all(c is cells[0] for c in cells) and cells[0].form == "wide":
            whole = self._observed(at, n, webs[0])  # type: ignore[arg-type]
            value = self._swizzled(whole, picked)
        elif source.register.kind == "g" and not set(picked) & set("01"):
            value = self._swizzled(self.global_whole(n), picked)
        else:
            parts = {p: self.raw(at, n, source, p) for p in dict.fromkeys(shown)}
            value = self.whole([parts[p] for p in shown])
        if not source.modified:
            return value
        size = 4 * lanes
        if not i.op.float_modifiers(n):
            minus = b.op(f"sub {of('i32', size)} zeroinitializer, {value}")
            return self._where([("xyzw"[p] in source.negate) for p in range(4)], minus, value)
        value = b.cast(b.modified(b.cast(value, "float", "i32", size), source, size), "i32", "float", size)
        signs = ["-2147483648" if "xyzw"[p] in source.negate else "0" for p in range(4)] * lanes
        return (
            b.op(f"xor {of('i32', size)} {value}, <{', '.join(f'i32 {s}' for s in signs)}>") if source.negate else value
        )

    def _swizzled(self, whole: str, picked: list[str]) -> str:
        if "".join(picked) == "xyzw":
            return whole
        wanted = [(0, 4 * lane + "xyzw".index(x)) for lane in range(self.lanes) for x in picked]
        return pick(self.b, "i32", [whole], 4 * self.lanes, wanted)

    def whole(self, parts: list[Value]) -> str:
        """Four components as <16 x i32>."""
        b, n = self.b, self.lanes
        if not any(p.n for p in parts):
            if len({p.name for p in parts}) == 1:
                return splat(b, parts[0].name, 4 * n)
            four = "poison"
            for k, part in enumerate(parts):
                four = b.op(f"insertelement <4 x i32> {four}, i32 {part.name}, i32 {k}")
            return pick(b, "i32", [four], 4, [(0, k) for _ in range(n) for k in range(4)])
        return pick(b, "i32", [self._as(p, n) for p in parts], n, [(k, lane) for lane in range(n) for k in range(4)])

    def _where(self, choice: list[bool], yes: str, no: str) -> str:
        """Whole registers: components of ``yes`` where chosen, else of ``no``."""
        size = 4 * self.lanes
        if all(choice):
            return yes
        indices = ", ".join(f"i32 {k if choice[k % 4] else k + size}" for k in range(size))
        return self.b.op(f"shufflevector {of('i32', size)} {yes}, {of('i32', size)} {no}, <{size} x i32> <{indices}>")

    def read_global(self, n: int, c: int) -> Value:
        """Component ``c`` of the global element that source ``n`` names."""
        texels, bits = self.found[n]
        if not bits:
            return Value(self.b.op(f"extractelement <4 x i32> {texels[0]}, i32 {c}"), 0)
        return Value(pick(self.b, "i32", texels, 4, [(k, c) for k in representative(self.lanes, bits)]), self.lanes)

    def global_whole(self, n: int) -> str:
        """The global elements that source ``n`` names, as whole registers."""
        texels, bits = self.found[n]
        return pick(self.b, "i32", texels, 4, [(k, c) for k in representative(self.lanes, bits) for c in range(4)])

    # Results

    def write_cell(self, at: int, cell: Cell, value: Value) -> None:
        """Set a whole cell for the lanes that execute ``at``; a scalar value goes to all lanes."""
        b, name = self.b, self.cell_variable(cell)
        self.modified.add(name)
        new = value.name
        if value.n and cell.form.startswith("scalar"):  # computed in every lane, but known to be the same
            new = b.op(f"extractelement {of('i64' if cell.form == 'scalar64' else 'i32', value.n)} {new}, i32 0")
        if cell.form in ("lanes", "lanes64", "wide"):
            kind = "i64" if cell.form == "lanes64" else "i32"
            size = self.lanes * (4 if cell.form == "wide" else 1)
            if not value.n:
                new = splat(b, new, size, kind)
            if self.a.divergent[at]:
                mask = self.load("exec")
                if cell.form == "wide":
                    mask = pick(b, "i1", [mask], self.lanes, [(0, k // 4) for k in range(size)])
                new = b.choose(mask, new, self.load(name), kind, size)
        self.store(name, new)

    def write_whole(self, at: int, value: str, components: list[int]) -> None:
        """Write components of a <16 x i32> to the wide cell, output or global element that ``at`` names."""
        i = self.body[at]
        assert i.dest is not None
        if i.dest.register.kind != "r":
            self.pending = (value, components)
            return
        cell = self.a.cell(self.a.webs.defined[at, components[0]])
        choice = [c in components for c in range(4)]
        if not all(choice[c] for c in cell.components):
            value = self._where(choice, value, self.load(self.cell_variable(cell)))
        self.write_cell(at, cell, Value(value, 4 * self.lanes))

    def write(self, at: int, values: dict[int, Value]) -> None:
        """Write components one by one, whatever the destination is."""
        i, b = self.body[at], self.b
        assert i.dest is not None
        if i.dest.register.kind in ("g", "o"):
            whole, done = self.pending
            self.pending = ("", [])
            if whole or values:
                self.store_out(at, whole, done, values)
            return
        left = dict(values)
        while left:
            c = min(left)
            cell = self.a.cell(self.a.webs.defined[at, c])
            parts = {k: left.pop(k) for k in list(left) if self.a.cell(self.a.webs.defined[at, k]) is cell}
            if cell.form in ("scalar", "lanes"):
                self.write_cell(at, cell, parts[c])
            elif cell.form == "wide":
                full = [parts.get(k, parts[c]) for k in range(4)]
                self.write_whole(at, self.whole(full), list(parts))
            else:
                old = None
                low, high = cell.components
                if len(parts) < 2:
                    old = self.load(self.cell_variable(cell))
                n = self.lanes if cell.form == "lanes64" else 0
                pieces = [parts[k] if k in parts else self._extract(str(old), cell, k) for k in (low, high)]
                wide = b.op(f"zext {of('i32', n)} {self._as(pieces[0], n)} to {of('i64', n)}")
                self.write_cell(at, cell, Value(self._join_words(wide, self._as(pieces[1], n), n), n))
