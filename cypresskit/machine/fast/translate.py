"""From IL to LLVM IR: one function that runs a range of *batches* (gangs of pixels, or workgroups)
of a launch.

    i32 kernel(ptr context, ptr counts, ptr spill, i64 budget, i64 first, i64 last)

``context`` holds addresses and sizes (``Translation.slots`` says where), ``counts`` how many
work-items passed each straight run of instructions, ``spill`` the registers of a workgroup between
barriers. Within a batch, *regions* without barriers run for one gang after another; where a program
has no barrier, the whole of it is one region. Control flow that holds barriers lies outside the
regions and must go one way for the whole group: where it doesn't, the kernel gives up (status
DIVERGED) and the explaining engine decides. A launch may be left between two batches, too, once
``budget`` instructions have been issued; the next batch is then reported.

Within a region all lanes take the same way: a branch is a branch of the host. A program in which
they may not is run one work-item at a time (see ``analysis``). Each straight run of instructions is
a *segment* with a counter of how many work-items passed it.
"""

from dataclasses import dataclass

from cypresskit.il import Program
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.arithmetic import Arithmetic
from cypresskit.machine.fast.batches import Batches
from cypresskit.machine.fast.control_flow import ControlFlow
from cypresskit.machine.fast.fetches import Coordinates
from cypresskit.machine.fast.memory_access import MemoryAccess, lds_offsets, loads
from cypresskit.machine.fast.native_meaning import Floats
from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.routine import (
    DIVERGED,
    DONE,
    NEXT,
    UNDERFLOWED,
    Routine,
)
from cypresskit.machine.fast.spill import SpilledRegisters
from cypresskit.machine.fast.strips import StripLoop, safe_turns, strip_loop
from cypresskit.machine.fast.target import FLAGGED, Target, flush_mode
from cypresskit.machine.fast.vec import Vec

STRIP = 1024  # turns of a strip at most: it hears that the kernel is to stop only at its end


@dataclass(frozen=True)
class Translation:
    """IR text and how to talk to it: the context's slots by name, the literals in the order of
    their table, which of the counters counts each instruction of the program's body; and ``sizes``,
    the bytes of what a host thread owns. ``reads_global``: what global memory held before matters,
    also to the explaining engine, which decides where flow that holds barriers diverges.
    ``layouts``: the fields of textures' layouts, by their numbers.
    """

    text: str
    slots: dict[str, int]
    literals: tuple[int, ...]
    counters: list[int]
    sizes: dict[str, int]
    lanes: int
    reads_global: bool
    layouts: dict[str, tuple[int, int]]


def translate(program: Program, target: Target) -> Translation:
    """Translate ``program`` for a target."""
    return Translator(program, target).run()


class Translator:
    """The whole function: batches, regions, control flow.

    It holds one of each: the ``routine`` that is written; the ``registers``; the ``memory``; the
    ``arithmetic`` between them; the ``batches``, which say whose registers these are; the control
    ``flow``; what is ``spilled`` between regions.

    ``segments``, each with a counter; ``where`` the running batch lies.
    """

    where: list[Vec]

    def __init__(self, program: Program, target: Target):
        self.program = program
        self.body = program.body
        self.analysis = analysis = Analysis(program)
        self.webs, self.uniformity = analysis.webs, analysis.uniformity
        # a flush mode would flush doubles, too
        self.mode = "soft" if analysis.doubles else target.mode
        self.flushes = flush_mode(self.mode)
        self.routine = Routine(program)
        self.ir = self.routine.ir
        self.floats = Floats(self.ir, self.mode == "soft")
        self.registers = RegisterFile(self.routine, analysis, self.floats)
        self.coordinates = Coordinates(self.routine, self.registers)
        self.memory = MemoryAccess(self.routine, self.registers, self.coordinates)
        self.arithmetic = Arithmetic(self.registers, self.memory)
        self.batches = Batches(self.routine, program, analysis.lanes)
        self.flow = ControlFlow(self.routine, self.registers, self.memory, self.floats)
        self.spilled = SpilledRegisters(self.routine, self.registers)
        self.batch, self.spill = Vec(self.ir, "%batch", "i64"), Vec(self.ir, "%spill", "ptr")
        self.segments: list[tuple[int, ...]] = []

    def run(self) -> Translation:
        """Translate the program."""
        for name, kind in (("issued", "i64"), ("spent", "i64"), ("status", "i32")):
            self.routine.variable(name, kind)
        self.ir.label("batch_loop")
        self.ir.do("%batch = phi i64 [%first, %entry], [%next_batch, %batch_next]")
        self.ir.branch(self.batch.cmp("slt", Vec(self.ir, "%last", "i64")), "batch_body", "exit")
        self.ir.label("batch_body")
        self.where = self.batches.begin(self.batch)
        if self.uniformity.barriers:
            self._group(0, len(self.body))
        else:
            self._region(0, len(self.body), None)
        self.ir.label("batch_next")
        self.ir.do("%next_batch = add i64 %batch, 1")
        self.routine.report(NEXT, Vec(self.ir, "%next_batch", "i64"))
        self.routine.add("spent", self.routine.load("issued") * self.batches.gangs)
        self.ir.branch(
            self.routine.load("spent").cmp("ugt", Vec(self.ir, "%budget", "i64")),
            "exit",
            "batch_loop",
        )
        self.ir.label("exit")
        status = self.routine.load("status")
        if self.flushes:
            underflowed = self.ir.op("call i1 @restore(i64 %saved_mode)", "i1")
            if self.mode in FLAGGED:
                status = underflowed.select(self.ir.const(UNDERFLOWED, "i32"), status)
        self.ir.do(f"ret {status}")
        return self._translation()

    def _translation(self) -> Translation:
        size = self.spilled.gang_bytes
        self.ir.declared["spill_size"] = f"@spill_size = private constant i64 {size}"
        variables = [
            f"  %{name} = alloca {kind if not n else f'<{n} x {kind}>'}, align 64"
            for name, (kind, n) in self.routine.variables.items()
        ]
        flush = ' "denormal-fp-math-f32"="preserve-sign,preserve-sign"' if self.flushes else ""
        text = "\n".join(
            [
                self.flushes,
                *sorted(self.ir.declared.values()),
                (
                    "define i32 @kernel(ptr noalias %context, ptr noalias %counts, ptr noalias"
                    f" %spill, i64 %budget, i64 %first, i64 %last){flush} {{"
                ),
                "entry:",
                *variables,
                "  %saved_mode = call i64 @flush()" if self.flushes else "",
                *self.routine.entry,
                (
                    f"  store i32 {DONE}, ptr %status\n  store i64 0, ptr %spent\n  br label"
                    " %batch_loop"
                ),
                *self.ir.lines,
                "}",
            ]
        )
        counted = {at: 1 + n for n, segment in enumerate(self.segments) for at in segment}
        never = 1 + len(self.segments)
        sizes = {
            "context": 8 * len(self.routine.slots),
            "counts": 8 * (1 + never),
            "spill": size * self.batches.gangs,
            "report": 32,
            "lds": lds_offsets(self.program.lds)[-1],
        }
        layouts = {}
        for n, layout in self.memory.layouts.items():
            layouts[str(n)] = layout.step, layout.lanes
        reads_g = any(x.register.kind == "g" for i in self.body for x in i.sources)
        return Translation(
            text,
            slots={name: at for at, name in enumerate(self.routine.slots)},
            literals=tuple(self.routine.literals),
            counters=[counted.get(at, never) for at in range(len(self.body))],
            sizes=sizes,
            lanes=self.analysis.lanes,
            reads_global=bool(self.uniformity.group_level) or reads_g,
            layouts=layouts,
        )

    # Regions

    def _region(self, start: int, stop: int, condition: int | None) -> None:
        """Instructions start .. stop - 1 for every gang of the batch. With ``condition``, the flow
        instruction there is evaluated at the end: variables any_true and any_false then say how
        the work-items voted.
        """
        # An empty region needs no code, but for the first, which may set registers to zero
        if start == stop and condition is None and start:
            return
        self.registers.touched = {}
        head, body, done = (self.ir.new(name) for name in ("gangs", "gang", "gangs_done"))
        for name in ("any_true", "any_false") if condition is not None else ():
            self.routine.store(self.routine.variable(name, "i1"), 0)
        number = self.ir.const(0, "i64")
        spill = self.spill
        # No loop for a single gang: LLVM would hoist everything out of it and spill it.
        if self.batches.gangs > 1:
            counter = self.routine.variable(f"gang_at{self.ir.names}", "i64")
            self.routine.store(counter, 0)
            self.ir.label(head)
            number = self.routine.load(counter)
            self.ir.branch(number.cmp("ult", self.batches.gangs), body, done)
            self.ir.label(body)
            spill = spill.at(number * Vec(self.ir, "@spill_size", "ptr").load("i64"))
        self.registers.gang = self.batches.gang(self.batch, self.where, number, spill)
        opening = len(self.ir.lines)
        self.registers.modified = set()
        # Registers that start at zero, wherever they are read first.
        if self.uniformity.barriers and not start:
            self.registers.modified = {
                self.registers.cell_variable(self.analysis.cell(web)) for web in self.webs.entry
            }
        self.straight(start, stop)
        if condition is not None:
            self._test(condition)
        self.spilled.save(condition if condition is not None else stop - 1)
        if self.batches.gangs > 1:
            self.routine.add(counter, 1)
            self.ir.go(head)
            self.ir.label(done)
        # What a gang restores is known once its code is written; it is put in front
        closing = self.ir.lines[opening:]
        self.ir.lines = self.ir.lines[:opening]
        self.spilled.restore(start)
        self.ir.lines += closing

    def _test(self, condition: int) -> None:
        """Add the gang's votes on a branch of the whole group to any_true and any_false."""
        self.count_segment((condition,))
        value = self.flow.condition(condition)
        for name, votes in (("any_true", value), ("any_false", ~value)):
            self.routine.store(name, self.routine.load(name) | votes.any())

    # Control flow that holds barriers

    def _group(self, start: int, stop: int) -> None:
        """Regions and the flow between them, for the whole group."""
        begun = start
        for at in range(start, stop):
            flow = self.body[at].op.flow
            barrier = self.uniformity.is_barrier(at)
            if not barrier and not (flow and at in self.flow.group_flow):
                continue
            tested = flow in ("if", "break", "continue")
            through = barrier or flow in ("loop", "endloop")  # part of the region before it
            self._region(begun, at + through, at if tested else None)
            begun = at + 1
            if tested:
                self._decide(at)
            if flow:
                self.flow.translate(at)
        self._region(begun, stop, None)

    def _decide(self, at: int) -> None:
        """Give up if the work-items of the group voted for two ways."""
        divided, together = self.ir.new("apart"), self.ir.new("together")
        votes_differ = self.routine.load("any_true") & self.routine.load("any_false")
        self.ir.branch(votes_differ, divided, together)
        self.ir.label(divided)
        self.routine.give_up(DIVERGED, at)
        self.ir.label(together)

    # Control flow within a region

    def straight(self, start: int, stop: int, fresh: bool = True) -> None:
        """Translate instructions start .. stop - 1; flow at group level is left to the caller.
        ``fresh``: a segment begins at the first.
        """
        at = start
        while at < stop:
            i = self.body[at]
            if fresh:
                self.count_segment(self._segment(at, stop))
            fresh = bool(i.op.flow)
            if not fresh:
                at = self._step(at, stop)
                continue
            loop = strip_loop(self.analysis, at) if i.op.flow == "loop" and at != start else None
            if loop:
                self._counted_loop(loop)
                at = loop.inside.stop
            elif at not in self.flow.group_flow:
                self.flow.translate(at)
            at += 1

    def _step(self, at: int, stop: int) -> int:
        """Translate the instruction at ``at``, or the group of loads that begins there; the index
        after it.
        """
        i = self.body[at]
        if loads(i):
            return self.memory.load_group(at, stop)
        if i.op.kind == "lds":
            self.memory.store_lds(at)
        elif i.op.kind != "fence":
            self.arithmetic.execute(at)
        return at + 1

    # Loops that begin with strips

    def _counted_loop(self, loop: StripLoop) -> None:
        """Translate a counted loop: strips as long as there are turns for one, then the loop as it
        stands.
        """
        routine, ir, at = self.routine, self.ir, loop.at
        head, strip, rest, done = (
            ir.new(name) for name in ("strips", "strip", "rest", "loop_done")
        )
        begun, turns = routine.variable(f"before{at}", "i64"), routine.variable(f"turns{at}", "i64")
        routine.store(begun, routine.load("issued"))
        self.flow.begun.add(at)
        ir.go(head)

        ir.label(rest)  # first, as it shows what strips have to count
        first = len(self.segments)
        self.straight(at, loop.inside.stop + 1, False)
        issued = sum(map(len, self.segments[first:]))
        ir.go(done)

        ir.label(strip)
        for counter in range(1 + first, 1 + len(self.segments)):
            routine.add_count(counter, self.registers.gang.count * routine.load(turns))
        routine.add("issued", routine.load(turns) * issued)
        self._strip(loop, routine.load(turns))
        ir.branch(routine.load(turns).cmp("slt", STRIP), rest, head)

        ir.label(head)  # last, as the strip shows what it reads by lines
        spare = routine.bound() - (routine.load("issued") - routine.load(begun))
        most = spare.two("sdiv", issued).call("smin", STRIP)
        safe = safe_turns(loop, self.registers, self.coordinates)
        routine.store(turns, safe.call("smin", most).freeze())
        ir.branch(routine.load(turns).cmp("sgt", 0), strip, rest)
        ir.label(done)

    def _strip(self, loop: StripLoop, turns: Vec) -> None:
        """Translate ``turns`` turns, none of which ends the loop or looks outside."""
        routine = self.routine
        ir = self.ir
        at = loop.inside.start
        left = f"left{loop.at}"
        turn = ir.new("turn")
        over = ir.new("turns_done")
        routine.store(routine.variable(left, "i64"), turns)
        ir.label(turn)
        self.memory.strip = loop
        self.registers.steps = loop.steps
        while at < loop.inside.stop:
            at = at + 1 if self.body[at].op.flow else self._step(at, loop.inside.stop)
        self.memory.strip = None
        self.registers.steps = {}
        routine.add(left, -1)
        ir.branch(routine.load(left).cmp("ne", 0), turn, over)
        ir.label(over)

    # Counts

    def _segment(self, at: int, stop: int) -> tuple[int, ...]:
        """The instructions from ``at`` that run together, the flow instruction at their end
        included.
        """
        end = next((k + 1 for k in range(at, stop) if self.body[k].op.flow), stop)
        return tuple(k for k in range(at, end) if self.body[k].op.flow not in ("else", "endif"))

    def count_segment(self, segment: tuple[int, ...]) -> None:
        """Count that a segment is passed."""
        if not segment:
            return
        self.routine.add_count(1 + len(self.segments), self.registers.gang.count)
        self.segments.append(segment)
        self.routine.add("issued", len(segment))
