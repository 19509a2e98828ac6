"""From IL to LLVM IR: one function that runs a range of *units* (tiles of pixels, or workgroups) of a launch.

    i32 kernel(ptr context, ptr counts, ptr spill, i64 first, i64 last)

``context`` holds addresses and sizes (``Translation.slots`` says where), ``counts`` how many work-items passed each
straight run of instructions, ``spill`` the registers of a workgroup between barriers. Within a unit, *regions* without
barriers run for one quad after another; where a program has no barrier, the whole of it is one region. Control flow
that holds barriers lies outside the regions and must go one way for the whole group: where it doesn't, the kernel
gives up (status DIVERGED) and the explaining engine decides.
"""

import math
from dataclasses import dataclass

from cypresskit.il import Program
from cypresskit.machine.fast.access import splat
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.branches import DIVERGED, DONE
from cypresskit.machine.fast.cells import Cell
from cypresskit.machine.fast.units import Units

EXPECT = '!0 = !{!"branch_weights", i32 100000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 100000}\n'


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


class Translator(Units):
    """The whole function: units, regions, and flow that holds barriers."""

    def __init__(self, program: Program, analysis: Analysis, soft: bool):
        super().__init__(program, analysis, soft)
        self.offsets: dict[str, int] = {}  # of cells in the spill memory of a quad
        self.spill = 64  # its size; the first bytes keep the number of instructions issued
        self.quad_spill = "%spill"

    def run(self) -> Translation:
        b = self.b
        self.variable("exec", f"<{self.lanes} x i1>")
        self.variable("issued", "i64")
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
        b.do("%result = load i32, ptr %status\n  ret i32 %result")
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
                "define i32 @kernel(ptr noalias %context, ptr noalias %counts, ptr noalias %spill, i64 %first, "
                f"i64 %last){flush} {{",
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
            text,
            dict(self.slots),
            tuple(self.literals),
            tuple(self.segments),
            self.spill,
            self.lanes,
            bool(self.a.group_level),
        )

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
        self.quad_spill, quad = "%spill", "0"
        counter = f"quad_at{b.names}"
        if quads > 1:  # a loop of one turn is none: LLVM would move all it can out of it, onto the stack
            self.variable(counter, "i64")
            self.store(counter, "0")
            b.go(head)
            b.label(head)
            quad = self.load(counter)
            b.branch(b.op(f"icmp ult i64 {quad}, {quads}"), body, done)
            b.label(body)
            self.quad_spill = b.op(f"getelementptr i8, ptr %spill, i64 {b.op(f'mul i64 {quad}, @@SPILL@@')}")
        self._quad(quad)
        opening = len(b.lines)
        self.modified: set[str] = set()
        if self.a.barriers and not start:  # registers that start at zero, wherever they are read first
            self.modified = {self.cell_variable(self.a.cell(web)) for web in self.a.webs.entry}
        self.turns = {}
        self._straight(start, stop)
        if condition is not None:
            self._count_segment((condition,), condition)
            if self.body[condition].sources:
                found = self._condition(condition)
                value = found.name if found.n else splat(b, found.name, self.lanes, "i1")
            else:
                value = b.constant("true", self.lanes, "i1")
            self._note("any_true", value)
            no = b.op(f"xor <{self.lanes} x i1> {value}, {b.constant('true', self.lanes, 'i1')}")
            self._note("any_false", no)
        for segment, turns in self.turns.items():
            self.add_count(segment, b.op(f"mul i64 {self.load(turns)}, {self.active_count}"))
        last = condition if condition is not None else stop - 1
        self._save(last)
        b.go(self.region_next)
        b.label(self.region_next)
        if quads > 1:
            self.store(counter, b.op(f"add i64 {self.load(counter)}, 1"))
            b.go(head)
            b.label(done)
        closing, b.lines = b.lines[opening:], b.lines[:opening]
        self._restore(start)
        b.lines += closing

    def _note(self, name: str, value: str) -> None:
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
        for name in self.turns.values():
            self.store(name, "0")
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
                element = "i64" if kind.endswith(("i64", "i64>")) else "i32"
                self.store(name, splat(self.b, zero, lanes, element) if lanes else zero)
            else:
                self.store(name, "zeroinitializer" if kind[0] == "<" else "0")
        if self.a.barriers and start:
            self.store("issued", self.b.op(f"load i64, ptr {self.quad_spill}"))
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
        self.b.do(f"store i64 {self.load('issued')}, ptr {self.quad_spill}")

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
            elif flow == "else" and self._opener(at) in level:
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
                self.enter_loop(at, b.op("load i64, ptr %spill"))
                b.go(head)
                b.label(head)
                first = b.op(f"zext i32 {b.op(f'mul i32 {self.group}, {math.prod(self.program.group)}')} to i64")
                self.poll(at, b.op("load i64, ptr %spill"), first)
                blocks.append(("loop", head, end))
            elif flow == "endloop" and match[at] in level:
                finish(at + 1, None)
                _, head, end = blocks.pop()
                b.go(head)
                b.label(end)
            elif flow in ("break", "continue") and match[at] in level:
                finish(at, at)
                loop = next(block for block in reversed(blocks) if block[0] == "loop")
                target = loop[2] if flow == "break" else loop[1]
                on = b.new_label("stay")
                b.branch(decide(at), target, on)
                b.label(on)
            else:
                continue
            begun = at + 1
        finish(stop, None)


def failing(n: int) -> str:
    """IR of a function that keeps the first failing store of a launch: that with the smallest key, made of how many
    instructions its quad had issued and of the work-item's number."""
    lanes = "".join(
        f"""
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
next{lane}:"""
        for lane in range(n)
    )
    return (
        f"define internal void @fail(ptr %error, <{n} x i1> %bad, <{n} x i32> %items, <{n} x i64> %elements, "
        "i64 %issued, i64 %at) noinline cold {\n  %shifted = shl i64 %issued, 28\n"
        "  %place1 = getelementptr i64, ptr %error, i64 1\n  %place2 = getelementptr i64, ptr %error, i64 2"
        + lanes
        + "\n  ret void\n}\n"
    )
