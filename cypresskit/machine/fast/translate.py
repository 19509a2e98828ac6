"""From IL to LLVM IR: one function that runs a range of *units* (tiles of pixels, or workgroups) of a launch.

    i32 kernel(ptr context, ptr counts, ptr spill, i64 budget, i64 first, i64 last)

``context`` holds addresses and sizes (``Translation.slots`` says where), ``counts`` how many work-items passed each
straight run of instructions, ``spill`` the registers of a workgroup between barriers. Within a unit, *regions* without
barriers run for one quad after another; where a program has no barrier, the whole of it is one region. Control flow
that holds barriers lies outside the regions and must go one way for the whole group: where it doesn't, the kernel
gives up (status DIVERGED) and the explaining engine decides. A launch may be left between two units, too, when as many
instructions as ``budget`` have been issued; the next unit is then told.
"""

import math
from dataclasses import dataclass

from cypresskit.il import Program
from cypresskit.machine.fast.access import lds_offsets
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.control import ControlFlow
from cypresskit.machine.fast.instructions import Instructions
from cypresskit.machine.fast.native_meaning import Floats
from cypresskit.machine.fast.readwrite import Reading
from cypresskit.machine.fast.storage import DIVERGED, DONE, UNDERFLOWED, UNIT, Storage
from cypresskit.machine.fast.target import MODES, Target
from cypresskit.machine.fast.units import quad, tile, workgroup
from cypresskit.machine.fast.vec import EXPECT, SIZES, Emitter, Vec

LINE = 64  # bytes at whose multiples spilled registers lie


@dataclass(frozen=True)
class Translation:
    """IR text and how to talk to it: the names of the context's slots, literals in the order of the literal table, the
    number of ``segments``, which of the ``counters`` counts each instruction of the program's body, and bytes of spill
    memory for a quad and of LDS. ``reads_global``: what global memory held before matters, also to the explaining
    engine, which decides where flow that holds barriers diverges. ``layouts``: the fields of textures' layouts, by
    their numbers."""

    text: str
    slots: tuple[str, ...]
    literals: tuple[int, ...]
    segments: int
    counters: list[int]
    spill: int
    lanes: int
    lds: int
    reads_global: bool
    layouts: dict[str, tuple[int, int]]


def translate(program: Program, target: Target) -> Translation:
    """Translate ``program`` for a target."""
    return Translator(program, target).run()


class Translator:
    """The whole function: units, regions, and flow that holds barriers."""

    def __init__(self, program: Program, target: Target):
        self.program, self.body, self.target = program, program.body, target
        self.a = Analysis(program)
        self.mode = "soft" if self.a.doubles else target.mode  # a flush mode would flush doubles, too
        self.e = Emitter()
        self.s = Storage(program, self.a, self.e)
        self.i = Instructions(self.s, Reading(self.s, Floats(self.e, self.mode == "soft")))
        self.flow = ControlFlow(self.s, self.i, target.room)
        self.quads = 1 if program.mode == "pixel" else -(-math.prod(program.group) // self.a.lanes)
        self.unit, self.spill = self.flow.unit, self.flow.spill
        self.where: list[Vec] = []
        self.offsets: dict[tuple, int] = {}  # of cells in the spill memory of a quad
        self.size = 8  # of that memory; the first bytes keep the number of instructions issued

    def run(self) -> Translation:
        """Translate the program."""
        e, s = self.e, self.s
        for name, kind in (("issued", "i64"), ("spent", "i64"), ("status", "i32")):
            s.variable(name, kind)
        e.label("unit_loop")
        e.do("%unit = phi i64 [%first, %entry], [%next_unit, %unit_next]")
        e.branch(self.unit.cmp("slt", Vec(e, "%last", "i64")), "unit_body", "exit")
        e.label("unit_body")
        self.where = (tile if self.program.mode == "pixel" else workgroup)(s, self.unit)
        if self.a.vary.barriers:
            self._group(0, len(self.body))
        else:
            self._region(0, len(self.body), None)
        e.go("unit_next")
        e.label("unit_next")
        e.do("%next_unit = add i64 %unit, 1")
        s.report(UNIT, Vec(e, "%next_unit", "i64"))
        s.add("spent", s.load("issued") * self.quads)
        e.branch(s.load("spent").cmp("ugt", Vec(e, "%budget", "i64")), "exit", "unit_loop", "yes")
        s.refused()
        e.label("exit")
        e.lines.append(MODES[self.mode].end)
        status = s.load("status")
        if MODES[self.mode].flagged:
            status = Vec(e, "%underflowed", "i1").select(e.const(UNDERFLOWED, "i32"), status)
        e.do(f"ret {status}")
        return self._finished()

    def _finished(self) -> Translation:
        s, size = self.s, -(-self.size // LINE) * LINE
        self.e.declared["spill_size"] = f"@spill_size = private constant i64 {size}"
        head = [
            f"  %{name} = alloca {kind if not n else f'<{n} x {kind}>'}, align 64"
            for name, (kind, n) in s.variables.items()
        ]
        mode = MODES[self.mode]
        flush = ' "denormal-fp-math-f32"="preserve-sign,preserve-sign"' if mode.begin else ""
        text = "\n".join(
            [
                *sorted({*self.e.declared.values(), *mode.declared}),
                "define i32 @kernel(ptr noalias %context, ptr noalias %counts, ptr noalias %spill, i64 %budget, "
                f"i64 %first, i64 %last){flush} {{",
                "entry:",
                *head,
                mode.begin,
                *s.entry,
                f"  store i32 {DONE}, ptr %status\n  store i64 0, ptr %spent\n  br label %unit_loop",
                *self.e.lines,
                "}",
                EXPECT,
            ]
        )
        segments = self.flow.segments
        counters = {at: 1 + n for n, segment in enumerate(segments) for at in segment}
        return Translation(
            text,
            tuple(s.slots),
            tuple(s.literals),
            len(segments),
            [counters.get(at, 1 + len(segments)) for at in range(len(self.body))],
            size,
            self.a.lanes,
            lds_offsets(self.program.lds)[-1],
            bool(self.a.vary.group_level) or any(x.register.kind == "g" for i in self.body for x in i.sources),
            {str(n): (layout.step, layout.lanes) for n, layout in self.i.loads.layouts.items()},
        )

    # Regions

    def _region(self, start: int, stop: int, condition: int | None) -> None:
        """Instructions start .. stop - 1 for every quad of the unit. With ``condition``, the flow instruction there is
        evaluated at the end: variables any_true and any_false then tell what the work-items found."""
        if start == stop and condition is None and start:
            return
        e, s = self.e, self.s
        s.touched = {}
        head, body, done = (e.new(name) for name in ("quads", "quad", "quads_done"))
        for name in ("any_true", "any_false") if condition is not None else ():
            s.store(s.variable(name, "i1"), 0)
        number, spill = e.const(0, "i64"), self.spill
        if self.quads > 1:  # no loop for a single quad: LLVM would hoist everything out of it and spill it
            counter = s.variable(f"quad_at{e.names}", "i64")
            s.store(counter, 0)
            e.go(head)
            e.label(head)
            number = s.load(counter)
            e.branch(number.cmp("ult", self.quads), body, done)
            e.label(body)
            spill = spill.at(number * Vec(e, "@spill_size", "ptr").load("i64"))
        s.quad = quad(s, self.unit, self.where, number, spill)
        opening = len(e.lines)
        s.modified = set()
        if self.a.vary.barriers and not start:  # registers that start at zero, wherever they are read first
            s.modified = {s.name(self.a.cell(web)) for web in self.a.webs.entry}
        self.flow.straight(start, stop)
        if condition is not None:
            self._test(condition)
        self._save(condition if condition is not None else stop - 1)
        if self.quads > 1:
            s.add(counter, 1)
            e.go(head)
            e.label(done)
        closing, e.lines = e.lines[opening:], e.lines[:opening]
        self._restore(start)
        e.lines += closing

    def _test(self, condition: int) -> None:
        """Note what the quad's work-items find for a branch of the whole group."""
        s = self.s
        self.flow.count((condition,))
        value = self.flow.condition(condition)
        for name, found in (("any_true", value), ("any_false", ~value)):
            s.store(name, s.load(name) | found.any())

    def _live_cells(self, at: int, live: int) -> set[str]:
        return {self.a.cell(web).name for web in self.a.webs.between(at, live)}

    def _place(self, name: str) -> Vec:
        """Where a cell is kept between regions: all cells of the same part of a register in one place, since no two of
        them are live at once, and the whole should fit the host's first cache."""
        cell = self.s.touched[name]
        if cell.part not in self.offsets:
            bytes = max(cell.n, 1) * SIZES[cell.kind] // 8
            self.offsets[cell.part] = -(-self.size // bytes) * bytes
            self.size = self.offsets[cell.part] + bytes
        return self.s.quad.spill.at(self.offsets[cell.part])

    def _restore(self, start: int) -> None:
        """Give every cell of the region its value at the start: what was kept, or zero."""
        s, webs = self.s, self.a.webs
        between = self.a.vary.barriers and start
        kept = self._live_cells(start - 1, webs.live[start]) if between else set()
        first = {self.a.cell(web).name for web in webs.entry} if not start else set()
        for name in s.touched:
            kind, n = s.variables[name]
            if name in kept:
                s.store(name, self._place(name).load(kind, n))
            elif name in first:  # a register that is read before it is written: a zero that LLVM doesn't know
                zero = s.literal(0)
                s.store(name, (zero.cast("zext", "i64") if kind == "i64" else zero).lanes(n))
            else:
                s.store(name, 0)
            s.recount(name)
        if between:
            s.store("issued", s.quad.spill.load("i64"))
        else:
            s.store("issued", 0)

    def _save(self, last: int) -> None:
        if not self.a.vary.barriers:
            return
        live = self._live_cells(last, self.a.webs.live_after(last))
        for name in self.s.touched:
            if name in live and name in self.s.modified:
                self._place(name).store(self.s.load(name))
        self.s.quad.spill.store(self.s.load("issued"))

    # ControlFlow that holds barriers

    def _group(self, start: int, stop: int) -> None:
        """Regions and the flow between them, for the whole group."""
        begun = start
        for at in range(start, stop):
            flow = self.body[at].op.flow
            barrier = self.a.vary.is_barrier(at)
            if not barrier and not (flow and self.flow.at_group_level(at)):
                continue
            tested = flow in ("if", "break", "continue")
            through = barrier or flow in ("loop", "endloop")  # part of the region before it
            self._region(begun, at + through, at if tested else None)
            begun = at + 1
            if tested:
                self._decide(at)
            if flow:
                self.flow.follow(at)
        self._region(begun, stop, None)

    def _decide(self, at: int) -> None:
        apart, together = self.e.new("apart"), self.e.new("together")
        self.e.branch(self.s.load("any_true") & self.s.load("any_false"), apart, together, "yes")
        self.e.label(apart)
        self.s.give_up(DIVERGED, self.e.const(at, "i64"))
        self.e.label(together)
