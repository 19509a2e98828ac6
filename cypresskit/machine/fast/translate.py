"""From IL to LLVM IR: one function that runs a range of *units* (tiles of pixels, or workgroups) of a launch.

    i32 kernel(ptr context, ptr counts, ptr spill, i64 first, i64 last)

``context`` holds addresses and sizes (``Translation.slots`` says where), ``counts`` how many work-items passed each
straight run of instructions, ``spill`` the registers of a workgroup between barriers. Within a unit, *regions* without
barriers run for one quad after another; where a program has no barrier, the whole of it is one region. Control flow
that holds barriers lies outside the regions and must go one way for the whole group: where it doesn't, the kernel
gives up (status DIVERGED) and the explaining engine decides.

Inside a region, control flow with the same answer in all lanes is a branch. Divergent flow keeps a mask of the lanes
that take part (``%exec``), and for each loop who still takes turns (running) and who sits out this one (left).
"""

import math
from dataclasses import dataclass

from cypresskit.il import Instruction, Program, Source
from cypresskit.machine.fast.access import Value, lanes_of, pick, splat
from cypresskit.machine.fast.analysis import ALL, Analysis, Cell, literal
from cypresskit.machine.fast.arithmetic import LETTER, Builder, of
from cypresskit.machine.fast.flow import defines
from cypresskit.machine.fast.memory import MemoryAccess

DONE, ENDLESS, DIVERGED, STOPPED = range(4)
BAND = 4  # tiles of pixels that are run one below the other before the next column: they share columns of a texture
CONSTANT_SECOND = ("ishl", "ishr", "ushr", "udiv", "umod", "iand", "imul", "umul")
EXPECT = "!0 = !{!\"branch_weights\", i32 100000, i32 1}\n!1 = !{!\"branch_weights\", i32 1, i32 100000}\n"


@dataclass(frozen=True)
class Translation:
    """IR text and how to talk to it: context slots by name, literals in the order of the literal table, the segment
    counters (lists of body indices), and bytes of spill memory for a quad."""

    text: str
    slots: dict[str, int]
    literals: tuple[int, ...]
    segments: tuple[tuple[int, ...], ...]
    spill: int
    lanes: int
    divides: bool  # has flow with barriers in it, that may turn out divergent


def translate(program: Program, soft: bool) -> Translation:
    """Translate ``program``; ``soft`` flushes subnormals in software (needed off x86 and with doubles)."""
    analysis = Analysis(program)
    return Translator(program, analysis, soft or analysis.doubles).run()


class Translator(MemoryAccess):
    """State of one translation. Memory instructions are in the base class."""

    def __init__(self, program: Program, analysis: Analysis, soft: bool):
        self.program, self.body, self.a = program, program.body, analysis
        self.b = Builder(soft)
        self.lanes = analysis.lanes
        self.slots: dict[str, int] = {}
        self.literals: dict[int, str] = {}
        self.constants: set[str] = set()
        self.entry: list[str] = []  # what the entry block loads
        self.allocas: dict[str, str] = {}
        self.segments: list[tuple[int, ...]] = []
        self.offsets: dict[str, int] = {}
        self.spill = 64  # the first bytes keep the number of instructions issued
        self.soft = soft
        self.pixel = program.mode == "pixel"
        self.loops = any(i.op.flow == "loop" for i in self.body)

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

    # The whole function

    def run(self) -> Translation:
        b = self.b
        self.variable("exec", f"<{self.lanes} x i1>")
        self.variable("issued", "i32")
        self.variable("failed", "i1")
        self.variable("status", "i32")
        b.label("unit_loop")
        b.do("%unit = phi i64 [%first, %entry], [%next_unit, %unit_next]")
        b.do("%more_units = icmp slt i64 %unit, %last")
        b.branch("%more_units", "unit_body", "exit")
        b.label("unit_body")
        self.store("failed", "false")
        self._unit()
        if self.a.barriers:
            self._group(0, len(self.body))
        else:
            self._region(0, len(self.body), None)
        b.go("unit_next")
        b.label("unit_next")
        b.do("%next_unit = add i64 %unit, 1")
        b.go("unit_loop")
        b.label("exit")
        if not self.soft:
            b.do("call void @llvm.x86.sse.ldmxcsr(ptr %saved_mode)")
        b.do(f"%result = load i32, ptr %status\n  ret i32 %result")
        return self._text()

    def _text(self) -> Translation:
        head = [f"  %{name} = alloca {kind}, align 64" for name, kind in self.allocas.items()]
        if not self.soft:
            head += [
                "  %saved_mode = alloca i32\n  %flush_mode = alloca i32",
                "  call void @llvm.x86.sse.stmxcsr(ptr %saved_mode)",
                "  %mode = load i32, ptr %saved_mode",
                f"  %mode_flushing = or i32 %mode, {0x8040}",
                "  store i32 %mode_flushing, ptr %flush_mode",
                "  call void @llvm.x86.sse.ldmxcsr(ptr %flush_mode)",
            ]
            self.b.declared["s"] = "declare void @llvm.x86.sse.stmxcsr(ptr)"
            self.b.declared["llvm.x86.sse.ldmxcsr"] = "declare void @llvm.x86.sse.ldmxcsr(ptr)"
        body = "\n".join(self.b.lines).replace("@@SPILL@@", str(self.spill))
        flush = ' "denormal-fp-math-f32"="preserve-sign,preserve-sign"' if not self.soft else ""
        text = "\n".join(
            [
                *sorted(set(self.b.declared.values())),
                failing(self.lanes),
                "define i32 @kernel(ptr noalias %context, ptr noalias %counts, ptr noalias %spill, i64 %first, i64 %last)"
                f"{flush} {{",
                "entry:",
                *head,
                *self.entry,
                f"  store i32 {DONE}, ptr %status",
                "  br label %unit_loop",
                body,
                "}",
                EXPECT,
            ]
        )
        return Translation(
            text, dict(self.slots), tuple(self.literals), tuple(self.segments), self.spill, self.lanes,
            bool(self.a.group_level),
        )

    # Units, quads, input registers

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

    # Regions

    def _region(self, start: int, stop: int, condition: int | None) -> None:
        """Instructions start .. stop - 1 for every quad of the unit. With ``condition``, the flow instruction there is
        evaluated at the end: variables any_true and any_false then tell what the work-items found."""
        b = self.b
        quads = 1 if self.pixel else -(-math.prod(self.program.group) // self.lanes)
        self.touched: dict[str, Cell] = {}
        self.region_next = b.new_label("quad_next")
        head, body, done = (b.new_label(name) for name in ("quads", "quad", "quads_done"))
        if condition is not None:
            for name in ("any_true", "any_false"):
                self.variable(name, "i1")
                self.store(name, "false")
        counter = f"quad_at{b.names}"
        self.variable(counter, "i64")
        self.store(counter, "0")
        b.go(head)
        b.label(head)
        quad = self.load(counter)
        more = b.op(f"icmp ult i64 {quad}, {quads}")
        b.branch(more, body, done)
        b.label(body)
        if quads > 1:
            self.quad_spill = b.op(f"getelementptr i8, ptr %spill, i64 {b.op(f'mul i64 {quad}, @@SPILL@@')}")
        else:
            self.quad_spill = "%spill"
        self._quad(quad)
        opening = len(b.lines)
        self.modified: set[str] = set()
        if self.a.barriers and not start:  # registers that start at zero, wherever they are read first
            self.modified = {self.cell_variable(self.a.cell(web)) for web in self.a.webs.entry}
        self._straight(start, stop)
        if condition is not None:
            self._count_segment((condition,), condition)
            if self.body[condition].sources:
                value = self._condition(condition)
                value = splat(b, value.name, self.lanes, "i1") if not value.n else value.name
            else:
                value = b.constant("true", self.lanes, "i1")
            self._note("any_true", value, condition)
            no = b.op(f"xor <{self.lanes} x i1> {value}, {b.constant('true', self.lanes, 'i1')}")
            self._note("any_false", no, condition)
        last = condition if condition is not None else stop - 1
        self._save(last)
        b.go(self.region_next)
        b.label(self.region_next)
        self.store(counter, b.op(f"add i64 {self.load(counter)}, 1"))
        b.go(head)
        b.label(done)
        closing, b.lines = b.lines[opening:], b.lines[:opening]
        self._restore(start)
        b.lines += closing

    def _note(self, name: str, value: str, at: int) -> None:
        some = self.any_lane(self.both(self.active, value))
        self.store(name, self.b.op(f"or i1 {self.load(name)}, {some}"))

    def _live_cells(self, live: int) -> set[str]:
        """Names of cells of which a component in ``live`` is a part. (By register: a superset of what is needed.)"""
        webs = self.a.webs
        registers = {c for c in range(webs.count) if live >> c & 1}
        found = set()
        for name, cell in self.touched.items():
            register = int(name[1:].split("_")[0])
            if any(webs.slot[register] + c in registers for c in cell.components):
                found.add(name)
        return found

    def _address(self, name: str) -> str:
        if name not in self.offsets:
            self.offsets[name] = self.spill
            self.spill += 64 * -(-self._bytes(self.allocas[name]) // 64)
        return self.b.op(f"getelementptr i8, ptr {self.quad_spill}, i64 {self.offsets[name]}")

    @staticmethod
    def _bytes(kind: str) -> int:
        if kind[0] != "<":
            return int(kind[1:]) // 8
        count, element = kind[1:-1].split(" x ")
        return int(count) * int(element[1:]) // 8

    def _restore(self, start: int) -> None:
        """Give every cell of the region its value at the start: what was spilled, or zero."""
        kept = self._live_cells(self.a.webs.live[start]) if self.a.barriers and start else set()
        first = {self.a.cell(web).name for web in self.a.webs.entry} if not start else set()
        for name in self.touched:
            kind = self.allocas[name]
            if name in kept:
                self.store(name, self.b.op(f"load {kind}, ptr {self._address(name)}"))
            elif name in first:  # a register that is read before it is written: a zero that LLVM doesn't know
                zero = self.literal_value(0)
                if kind == "i64" or " i64" in kind:
                    zero = self.b.op(f"zext i32 {zero} to i64")
                lanes = int(kind[1:].split(" ")[0]) if kind[0] == "<" else 0
                element = "i64" if kind.endswith("i64") or kind.endswith("i64>") else "i32"
                self.store(name, splat(self.b, zero, lanes, element) if lanes else zero)
            else:
                self.store(name, "zeroinitializer" if kind[0] == "<" else "0")
        if self.a.barriers and start:
            self.store("issued", self.b.op(f"load i32, ptr {self.quad_spill}"))
        else:
            self.store("issued", "0")

    def _save(self, last: int) -> None:
        """Keep what later regions read."""
        if not self.a.barriers:
            return
        live = self._live_cells(self.a.webs.live_after(last))
        for name in self.touched:
            if name in live and name in self.modified:
                self.b.do(f"store {self.allocas[name]} {self.load(name)}, ptr {self._address(name)}")
        self.b.do(f"store i32 {self.load('issued')}, ptr {self.quad_spill}")

    # Flow that holds barriers

    def _group(self, start: int, stop: int) -> None:
        """Regions and the flow between them, for the whole group."""
        b, match = self.b, self.program.matching
        blocks: list[tuple[str, str, str]] = []  # (role, label to go on or of else, label of the end)
        begun = start

        def finish(end: int, condition: int | None) -> None:
            if begun == end and condition is None and begun:
                return
            self._region(begun, end, condition)
            b.branch(self.load("failed"), "unit_next", after := b.new_label("region_done"))
            b.label(after)

        def decide(at: int) -> str:
            split = b.op(f"and i1 {self.load('any_true')}, {self.load('any_false')}")
            apart, together = b.new_label("apart"), b.new_label("together")
            b.branch(split, apart, together, "yes")
            b.label(apart)
            self.give_up(DIVERGED, at)
            b.label(together)
            return self.load("any_true")

        for at in range(start, stop):
            i = self.body[at]
            flow, level = i.op.flow, self.a.group_level
            if self.a.is_barrier(at):
                finish(at + 1, None)
            elif flow == "if" and at in level:
                finish(at, at)
                yes, no, end = (b.new_label(name) for name in ("then", "else", "endif"))
                b.branch(decide(at), yes, no)
                b.label(yes)
                blocks.append(("if", no, end))
            elif flow == "else" and match[match[at]] in level and self._opener(at) in level:
                finish(at, None)
                b.go(blocks[-1][2])
                b.label(blocks[-1][1])
                blocks[-1] = ("else", "", blocks[-1][2])
            elif flow == "endif" and self._opener(at) in level:
                finish(at, None)
                role, no, end = blocks.pop()
                b.go(end)
                if role == "if":
                    b.label(no)
                    b.go(end)
                b.label(end)
            elif flow == "loop" and at in level:
                finish(at + 1, None)
                head, end = b.new_label("group_loop"), b.new_label("group_loop_end")
                b.go(head)
                b.label(head)
                self.poll(at, b.op("load i32, ptr %spill"))
                blocks.append(("loop", head, end))
            elif flow == "endloop" and match[at] in level:
                finish(at + 1, None)
                _, head, end = blocks.pop()
                b.go(head)
                b.label(end)
            elif flow in ("break", "continue") and match[at] in level:
                finish(at, at)
                loop = next(block for block in reversed(blocks) if block[0] == "loop")
                target = loop[2] if flow == "break" else self._latch(at, loop)
                on = b.new_label("stay")
                b.branch(decide(at), target, on)
                b.label(on)
            else:
                continue
            begun = at + 1
        finish(stop, None)

    def _latch(self, at: int, loop: tuple[str, str, str]) -> str:
        """Where a continue of a loop with barriers goes: straight to the loop's head (endloop doesn't count then)."""
        del at
        return loop[1]

    def _opener(self, at: int) -> int:
        """The if that an else or endif belongs to."""
        opener = self.program.matching[at] if self.body[at].op.flow == "endif" else at
        if self.body[opener].op.flow == "else":
            opener = next(o for o, e in self.program.matching.items() if e == opener and self.body[o].op.flow == "if")
        return opener

    # Straight code and flow inside a region

    def _straight(self, start: int, stop: int) -> None:
        self.blocks: list[dict] = []
        at = start
        fresh = True
        while at < stop:
            i = self.body[at]
            outer = i.op.flow and self._at_group_level(at)
            if fresh:
                self._count_segment(self._segment(at, stop), at)
                fresh = False
            if outer:
                fresh = True
                at += 1
            elif i.op.flow:
                self._flow(at, i)
                fresh = True
                at += 1
            else:
                at = self._instruction(at, stop)

    def _at_group_level(self, at: int) -> bool:
        flow, match = self.body[at].op.flow, self.program.matching
        if flow in ("loop", "if"):
            return at in self.a.group_level
        if flow in ("else", "endif"):
            return self._opener(at) in self.a.group_level
        return match[at] in self.a.group_level

    def _segment(self, at: int, stop: int) -> tuple[int, ...]:
        """The instructions from ``at`` that run together, the flow instruction at their end included."""
        found = []
        while at < stop:
            flow = self.body[at].op.flow
            if flow not in ("else", "endif"):
                found.append(at)
            at += 1
            if flow:
                break
        return tuple(found)

    def _count_segment(self, segment: tuple[int, ...], at: int) -> None:
        b = self.b
        if not segment:
            return
        count = self.active_count
        if self.a.divergent[at]:
            mask = b.op(f"bitcast <{self.lanes} x i1> {self.load('exec')} to i{self.lanes}")
            found = b.call(f"llvm.ctpop.i{self.lanes}", f"i{self.lanes}", (f"i{self.lanes}", mask))
            count = b.op(f"zext i{self.lanes} {found} to i64")
        self.add_count(len(self.segments), count)
        self.segments.append(segment)
        issued = len([s for s in segment if self.body[s].op.flow != "endloop"])
        self.store("issued", b.op(f"add i32 {self.load('issued')}, {issued}"))

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

    def _condition(self, at: int) -> Value:
        """i1 of a flow instruction: a scalar, or one per lane."""
        b, i = self.b, self.body[at]
        self.global_reads(at)
        values = [self.component(at, n, 0) for n in range(len(i.sources))]
        n = max(v.n for v in values)
        if i.op.name in ("breakc", "ifc"):
            a, c = (b.cast(self._as(v, n), "float", "i32", n) for v in values)
            return Value(b.compare(str(i.control("relop")), a, c, n), n)
        relation = "eq" if i.opcode.endswith("_logicalz") else "ne"
        return Value(b.op(f"icmp {relation} {of('i32', n)} {values[0].name}, {b.constant(0, n, 'i32')}"), n)

    def _loop(self) -> dict | None:
        return next((block for block in reversed(self.blocks) if block["role"] == "loop"), None)

    def _present(self, mask: str) -> str:
        """``mask`` without who left the innermost loop's turn."""
        loop = self._loop()
        return self.without(mask, self.load(loop["left"])) if loop and loop["masked"] else mask

    def _flow(self, at: int, i: Instruction) -> None:
        flow = i.op.flow
        {
            "loop": self._open_loop,
            "if": self._open_if,
            "else": self._else,
            "endif": self._endif,
            "endloop": self._endloop,
            "break": self._leave,
            "continue": self._leave,
        }[flow](at)

    def _open_if(self, at: int) -> None:
        b = self.b
        has_else = self.body[self.program.matching[at]].op.flow == "else"
        yes, end = b.new_label("then"), b.new_label("endif")
        no = b.new_label("else") if has_else else end
        condition = self._condition(at)
        masked = bool(self.a.condition_bits(at))
        block = {"role": "if", "no": no, "end": end, "masked": masked, "outside": self.a.divergent[at]}
        if masked:
            came = self.mask(at)
            block["came"] = came
            taken = self.both(came, condition.name if condition.n else splat(b, condition.name, self.lanes, "i1"))
            block["otherwise"] = self.without(came, taken)
            self.store("exec", taken)
            b.branch(self.any_lane(taken), yes, no)
        else:
            b.branch(condition.name, yes, no)
        b.label(yes)
        self.blocks.append(block)

    def _else(self, at: int) -> None:
        b, block = self.b, self.blocks[-1]
        b.go(block["end"] if not block["masked"] else block["no"])
        b.label(block["no"])
        if block["masked"]:
            mask = self._present(block["otherwise"])
            self.store("exec", mask)
            body = b.new_label("otherwise")
            b.branch(self.any_lane(mask), body, block["end"])
            b.label(body)

    def _endif(self, at: int) -> None:
        block = self.blocks.pop()
        self.b.go(block["end"])
        self.b.label(block["end"])
        if block["masked"] and block["outside"]:
            self.store("exec", self._present(block["came"]))

    def _open_loop(self, at: int) -> None:
        b = self.b
        masked = bool(self.a.loop_divergent.get(at, 0) | self.a.divergent[at])
        head, latch, end = (b.new_label(name) for name in ("loop", "endloop", "loop_end"))
        block = {"role": "loop", "at": at, "head": head, "latch": latch, "end": end, "masked": masked}
        block["outside"] = self.a.divergent[at]
        if masked:
            block["running"] = f"running{b.names}"
            block["left"] = f"left{b.names}"
            for name in ("running", "left"):
                self.variable(block[name], f"<{self.lanes} x i1>")
            block["came"] = self.mask(at)
            self.store("exec", block["came"])
            self.store(block["running"], block["came"])
            self.store(block["left"], "zeroinitializer")
            b.branch(self.any_lane(block["came"]), head, end)
        else:
            b.go(head)
        b.label(head)
        self.poll(at, self.load("issued"))
        self.blocks.append(block)

    def _leave(self, at: int) -> None:
        """break and continue."""
        b, i = self.b, self.body[at]
        loop = self._loop()
        assert loop is not None
        stay = b.new_label("stay")
        if not loop["masked"]:
            target = loop["end"] if i.op.flow == "break" else loop["latch"]
            if i.sources:
                b.branch(self._condition(at).name, target, stay)
            else:
                b.go(target)
            b.label(stay)
            return
        leaving = self.load("exec")
        if i.sources:
            condition = self._condition(at)
            found = condition.name if condition.n else splat(b, condition.name, self.lanes, "i1")
            leaving = self.both(leaving, found)
        n = self.lanes
        self.store(loop["left"], b.op(f"or <{n} x i1> {self.load(loop['left'])}, {leaving}"))
        if i.op.flow == "break":
            self.store(loop["running"], self.without(self.load(loop["running"]), leaving))
        rest = self.without(self.load("exec"), leaving)
        self.store("exec", rest)
        if self.blocks[-1] is loop:
            b.branch(self.any_lane(rest), stay, loop["latch"])
            b.label(stay)

    def _endloop(self, at: int) -> None:
        b, loop = self.b, self.blocks.pop()
        b.go(loop["latch"])
        b.label(loop["latch"])
        if loop["masked"]:
            running = self.load(loop["running"])
            self.store("exec", running)
            self.store(loop["left"], "zeroinitializer")
            b.branch(self.any_lane(running), loop["head"], loop["end"])
        else:
            b.go(loop["head"])
        b.label(loop["end"])
        if loop["masked"] and loop["outside"]:
            self.store("exec", self._present(loop["came"]))

    def poll(self, at: int, issued: str) -> None:
        """At the head of a loop: stop if told, or if the program has run for too long."""
        b = self.b
        bound = b.op(f"load volatile i32, ptr {self.slot('limit', 'ptr')}")  # becomes 0 if the kernel is to stop
        over = b.op(f"icmp ugt i32 {issued}, {bound}")
        stop, on = b.new_label("endless"), b.new_label("go")
        b.branch(over, stop, on, "yes")
        b.label(stop)
        self.give_up(ENDLESS, at)
        b.label(on)

    def give_up(self, status: int, at: int) -> None:
        """Leave the function."""
        self.store("status", str(status))
        place = self.b.op(f"getelementptr i64, ptr {self.slot('error', 'ptr')}, i64 3")
        self.b.do(f"store i64 {at}, ptr {place}")
        self.b.go("exit")

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
        if i.op.kind != "alu" and not i.op.float_modifiers(n) and not i.op.flow and i.op.kind != "fetch":
            return Value(b.op(f"sub {of('i32', value.n)} {b.constant(0, value.n, 'i32')}, {name}") if negated else name, value.n)
        if not i.op.float_modifiers(n):
            return Value(b.op(f"sub {of('i32', value.n)} {b.constant(0, value.n, 'i32')}, {name}") if negated else name, value.n)
        name = b.cast(b.modified(b.cast(name, "float", "i32", value.n), source, value.n), "i32", "float", value.n)
        return Value(self._negate(name, value.n) if negated else name, value.n)

    def _negate(self, bits: str, n: int) -> str:
        return self.b.op(f"xor {of('i32', n)} {bits}, {self.b.constant(-0x80000000, n, 'i32')}")

    def raw(self, at: int, n: int, source: Source, position: int) -> Value:
        """A component of an operand without modifiers; NaN canonical where the instruction can tell."""
        b, register, letter = self.b, source.register, source.swizzle[position]
        if letter in "01":
            return Value(self.literal_value(0x3F800000 if letter == "1" else 0), 0)
        c = "xyzw".index(letter)
        if register.kind == "l":
            return Value(self.literal_value(self.program.literals[register.index][c]), 0)
        if register.kind == "cb":
            return Value(self.constant_value(register.index, register.element, c), 0)
        if register.kind == "g":
            return self.read_global(at, n, c)
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
        """Source ``n`` as a double (i64 bits), modifiers applied."""
        b, source = self.b, self.body[at].sources[n]
        value = self.pair(at, n, source, 0)
        if source.modified and not (source.invert or source.bias or source.x2 or source.sign):
            bits = b.cast(value.name, "double", "i64", value.n)
            bits = b.intrinsic("fabs", "double", value.n, bits) if source.abs else bits
            bits = b.op(f"fneg {of('double', value.n)} {bits}") if source.negates_double else bits
            return Value(b.cast(bits, "i64", "double", value.n), value.n)
        if source.modified:
            high = b.op(f"lshr {of('i64', value.n)} {value.name}, {b.constant(32, value.n, 'i64')}")
            high = b.op(f"trunc {of('i64', value.n)} {high} to {of('i32', value.n)}")
            high = b.cast(b.modified(b.cast(high, "float", "i32", value.n), source, value.n), "i32", "float", value.n)
            high = self._negate(high, value.n) if source.negates_double else high
            low = b.op(f"and {of('i64', value.n)} {value.name}, {b.constant(ALL, value.n, 'i64')}")
            value = Value(self._join_words(low, high, value.n), value.n)
        return value

    def _join_words(self, low64: str, high: str, n: int) -> str:
        b = self.b
        high = b.op(f"zext {of('i32', n)} {high} to {of('i64', n)}")
        high = b.op(f"shl {of('i64', n)} {high}, {b.constant(32, n, 'i64')}")
        return b.op(f"or {of('i64', n)} {low64}, {high}")

    def pair(self, at: int, n: int, source: Source, position: int) -> Value:
        """Two neighbouring positions of an operand as i64 bits."""
        b = self.b
        first, second = source.swizzle[position : position + 2]
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
            value = self._swizzled(self.global_whole(at, n), picked)
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
        return b.op(f"xor {of('i32', size)} {value}, <{', '.join(f'i32 {s}' for s in signs)}>") if source.negate else value

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

    # Arithmetic

    def _instruction(self, at: int, stop: int) -> int:
        """Translate the instruction at ``at``, or the group of accesses that begins there; the index after it."""
        i = self.body[at]
        if i.op.kind == "fence":
            return at + 1
        if i.op.kind in ("fetch", "lds"):
            return self.accesses(at, stop)
        self.global_reads(at)
        assert i.dest is not None
        written = i.dest.written
        fixed = {c: Value(self.literal_value(0x3F800000 if i.dest.mask[c] == "1" else 0), 0) for c in range(4) if i.dest.mask[c] in "01"}
        if i.op.double:
            self._double_result(at, i, fixed)
            return at + 1
        if i.op.name == "dp4":
            value = self._dot(at, i)
            self.write(at, {c: value for c in written} | fixed)
            return at + 1
        whole = ""
        vector: list[int] = []
        if self.lanes == 4:
            vector = [
                c for c in written if i.dest.register.kind != "r" or self.a.cell(self.a.webs.defined[at, c]).form == "wide"
            ]
        result: dict[int, Value] = {}
        if vector:
            whole = self._wide_result(at, i, tuple(vector))
        for c in written:
            if c not in vector:
                result[c] = self._component_result(at, i, c)
        if whole:
            self.write_whole(at, whole, vector)
        self.write(at, result | fixed)
        return at + 1

    def _canonical_now(self, at: int) -> bool:
        """Whether a float result must have the canonical NaN when it is written."""
        i = self.body[at]
        assert i.dest is not None
        if i.dest.register.kind != "r":
            return True
        roots = {self.a.webs.find(self.a.webs.defined[at, c]) for c in i.dest.written}
        words_of_doubles = any(self.a.cell(root).form.endswith("64") for root in roots)
        return words_of_doubles or bool(roots & self.a.canonical_at_definition)

    def _value(self, at: int, i: Instruction, operands: list[str], n: int) -> str:
        """The result (i32 bits) of a componentwise operation on i32 operands of n lanes."""
        b, op = self.b, i.op
        if op.name == "mov":
            bits, is_float = operands[0], False
        else:
            typed = [b.cast(v, LETTER[k], "i32", n) for v, k in zip(operands, op.sources, strict=True)]
            value = b.compute(op.name, n, *typed)
            is_float = op.result == "f"
            bits = b.cast(value, "i32", "float", n) if is_float else value
        if i.shift != 1.0 or i.saturate:
            value = b.scaled(b.cast(bits, "float", "i32", n), i.shift, i.saturate, n)
            bits, is_float = b.cast(value, "i32", "float", n), not i.saturate
        if is_float and self._canonical_now(at):
            bits = b.cast(b.canonical(b.cast(bits, "float", "i32", n), "float", n), "i32", "float", n)
        return bits

    def _wide_result(self, at: int, i: Instruction, positions: tuple[int, ...]) -> str:
        operands = []
        for k in range(len(i.sources)):
            value = literal(self.program, i.sources[k], positions[0])
            same = {literal(self.program, i.sources[k], p) for p in positions}
            if k == 1 and i.op.name in CONSTANT_SECOND and value is not None and len(same) == 1:
                operands.append(self.b.constant(value, 4 * self.lanes, "i32"))
            else:
                operands.append(self.wide(at, k, positions))
        return self._value(at, i, operands, 4 * self.lanes)

    def _component_result(self, at: int, i: Instruction, c: int) -> Value:
        values: list[Value | int] = []
        for k in range(len(i.sources)):
            value = literal(self.program, i.sources[k], c)
            values.append(value if k == 1 and i.op.name in CONSTANT_SECOND and value is not None else self.component(at, k, c))
        n = max((v.n for v in values if isinstance(v, Value)), default=0)
        operands = [self._as(v, n) if isinstance(v, Value) else self.b.constant(v, n, "i32") for v in values]
        return Value(self._value(at, i, operands, n), n)

    def _dot(self, at: int, i: Instruction) -> Value:
        b = self.b
        products = []
        for p in range(4):
            pair = [self.component(at, k, p) for k in (0, 1)]
            n = max(v.n for v in pair)
            products.append((b.multiply(*(b.cast(self._as(v, n), "float", "i32", n) for v in pair), n), n))
        n = max(lanes for _, lanes in products)
        names = [splat(b, name, n, "float") if n and not lanes else name for name, lanes in products]
        total = names[0]
        for name in names[1:]:
            total = b.add("fadd", total, name, n)
        if i.shift != 1.0 or i.saturate:
            total = b.scaled(total, i.shift, i.saturate, n)
        if not i.saturate and self._canonical_now(at):
            total = b.canonical(total, "float", n)
        return Value(b.cast(total, "i32", "float", n), n)

    def _double_result(self, at: int, i: Instruction, fixed: dict[int, Value]) -> None:
        b, op = self.b, i.op
        assert i.dest is not None
        values = [self.double(at, k) if kind == "d" else self.component(at, k, 0) for k, kind in enumerate(op.sources)]
        n = max(v.n for v in values)
        typed = []
        for value, kind in zip(values, op.sources, strict=True):
            if kind == "d":
                bits = splat(b, value.name, n, "i64") if n and not value.n else value.name
                typed.append(b.cast(bits, "double", "i64", n))
            else:
                typed.append(b.cast(self._as(value, n), "float", "i32", n))
        result = b.compute(op.name, n, *typed)
        if op.result != "d":
            bits = b.cast(result, "i32", "float", n) if op.result == "f" else result
            if i.shift != 1.0 or i.saturate:
                result = b.scaled(b.cast(bits, "float", "i32", n), i.shift, i.saturate, n)
                bits = b.cast(result, "i32", "float", n)
            if (op.result == "f" or i.shift != 1.0) and not i.saturate and self._canonical_now(at):
                bits = b.cast(b.canonical(b.cast(bits, "float", "i32", n), "float", n), "i32", "float", n)
            self.write(at, {c: Value(bits, n) for c in i.dest.written} | fixed)
            return
        plain = b.cast(result, "i64", "double", n)
        canonical = ""
        words: dict[int, Value] = {}
        for p in (0, 2):
            both = [c for c in (p, p + 1) if c in i.dest.written]
            cell = self.a.cell(self.a.webs.defined[at, p]) if both and i.dest.register.kind == "r" and p in both else None
            whole = len(both) == 2 and cell is not None and cell.form.endswith("64")
            root = self.a.webs.find(self.a.webs.defined[at, p]) if cell else None
            if both and (not whole or root in self.a.canonical_at_definition) and not canonical:
                canonical = b.cast(b.canonical(result, "double", n), "i64", "double", n)
            if whole and cell:
                self.write_cell(at, cell, Value(canonical if root in self.a.canonical_at_definition else plain, n))
                continue
            for c in both:
                bits = b.op(f"lshr {of('i64', n)} {canonical}, {b.constant(32, n, 'i64')}") if c % 2 else canonical
                words[c] = Value(b.op(f"trunc {of('i64', n)} {bits} to {of('i32', n)}"), n)
        self.write(at, words | fixed)

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
            whole, done = getattr(self, "pending", ("", []))
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


def failing(n: int) -> str:
    """IR of a function that keeps the first failing store of a launch: that with the smallest key, made of how many
    instructions its quad had issued and of the work-item's number."""
    lines = []
    for lane in range(n):
        lines.append(f"""
  %bad{lane} = extractelement <{n} x i1> %bad, i32 {lane}
  %item{lane} = extractelement <{n} x i32> %items, i32 {lane}
  %number{lane} = zext i32 %item{lane} to i64
  %key{lane} = or i64 %shifted, %number{lane}
  %element{lane} = extractelement <{n} x i64> %elements, i32 {lane}
  %old{lane} = load i64, ptr %error
  %less{lane} = icmp ult i64 %key{lane}, %old{lane}
  %earlier{lane} = and i1 %bad{lane}, %less{lane}
  br i1 %earlier{lane}, label %record{lane}, label %next{lane}
record{lane}:
  store i64 %key{lane}, ptr %error
  store i64 %at, ptr %place1
  store i64 %element{lane}, ptr %place2
  br label %next{lane}
next{lane}:""")
    return (
        f"define internal void @fail(ptr %error, <{n} x i1> %bad, <{n} x i32> %items, <{n} x i64> %elements, "
        "i64 %issued, i64 %at) noinline cold {\n  %shifted = shl i64 %issued, 28\n"
        "  %place1 = getelementptr i64, ptr %error, i64 1\n  %place2 = getelementptr i64, ptr %error, i64 2"
        + "".join(lines)
        + "\n  ret void\n}\n"
    )
