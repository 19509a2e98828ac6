"""From IL to LLVM IR: one function that runs a range of *batches* (gangs of pixels, or workgroups)
of a launch.

    i32 kernel(ptr context, ptr counts, ptr spill, i64 budget, i64 first, i64 last)

``context`` holds addresses and sizes (``Translation.slots`` says where), ``counts`` how many
work-items passed each straight run of instructions, ``spill`` the registers of a workgroup between
barriers. The function is made of

    for batch in first .. last:          here
        for region between barriers:     regions
            for gang in batch:           regions
                instructions, flow       straight, with control_flow
                strips of loops          straight, with strips
        leave if ``budget`` instructions have been issued; the next batch is then reported

and ends with a status (``routine``): DONE, a fault that was found, or that the explaining engine
has to decide. What each instruction does is not here: see ``arithmetic``, ``memory_access`` and
``register_file``.

What holds throughout: text is only ever appended, in the order in which it runs, but for ``rest``
and ``strip`` of a counted loop, and for what a region restores; ``registers.gang`` is the gang
whose instructions are being written; each instruction that can run lies in one segment, and is
counted by its counter alone.

The laws: both engines leave the same bits and counts on random programs, barriers, divergence and
strips among them (tests/test_fast.py, ``make fuzz``).
"""

from cypresskit.il import Program
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.arithmetic import Arithmetic
from cypresskit.machine.fast.batches import Batches
from cypresskit.machine.fast.control_flow import ControlFlow
from cypresskit.machine.fast.fetches import Coordinates
from cypresskit.machine.fast.memory_access import MemoryAccess, lds_layout
from cypresskit.machine.fast.native_meaning import Floats
from cypresskit.machine.fast.regions import Regions
from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.routine import DONE, NEXT, UNDERFLOWED, Routine
from cypresskit.machine.fast.straight import Straight
from cypresskit.machine.fast.target import FLAGGED, Target, flush_mode
from cypresskit.machine.fast.translation import Translation
from cypresskit.machine.fast.vec import Vec


def translate(program: Program, target: Target) -> Translation:
    """Translate ``program`` for a target."""
    return Translator(program, target).run()


class Translator:
    """The whole function: the loop over batches, how it ends, and what the host must know of it.

    Everything in it is one of: the ``routine`` that is written; the ``registers``; the ``memory``;
    the ``arithmetic`` between them; the ``batches``, which say whose registers these are; the
    control ``flow``; ``straight`` runs of instructions; ``regions`` of them.
    """

    def __init__(self, program: Program, target: Target):
        self.program = program
        self.body = program.body
        self.analysis = analysis = Analysis(program)
        # a flush mode would flush doubles, too
        self.mode = "soft" if analysis.doubles else target.mode
        self.flushes = flush_mode(self.mode)

        self.routine = routine = Routine(program)
        self.ir = routine.ir
        floats = Floats(self.ir, self.mode == "soft")
        registers = RegisterFile(routine, analysis, floats)
        coordinates = Coordinates(routine, registers)
        self.memory = memory = MemoryAccess(routine, registers, coordinates)
        arithmetic = Arithmetic(registers, memory)
        self.batches = Batches(routine, program, analysis.lanes)
        flow = ControlFlow(routine, registers, memory, floats)
        self.straight = Straight(
            routine, analysis, registers, coordinates, memory, arithmetic, flow
        )
        self.regions = Regions(routine, analysis, registers, self.batches, flow, self.straight)

    def run(self) -> Translation:
        """Translate the program."""
        for name, kind in (("issued", "i64"), ("spent", "i64"), ("status", "i32")):
            self.routine.variable(name, kind)
        self._batches()
        self._end()
        return self._translation()

    def _batches(self) -> None:
        """The loop over batches, which is left early once the budget is spent."""
        routine = self.routine
        ir = self.ir
        ir.label("batch_loop")
        ir.do("%batch = phi i64 [%first, %entry], [%next_batch, %batch_next]")
        ir.branch(self.regions.batch.cmp("slt", Vec(ir, "%last", "i64")), "batch_body", "exit")

        ir.label("batch_body")
        self.regions.translate()

        ir.label("batch_next")
        ir.do("%next_batch = add i64 %batch, 1")
        routine.report(NEXT, Vec(ir, "%next_batch", "i64"))
        routine.add("spent", routine.load("issued") * self.batches.gangs)
        over_budget = routine.load("spent").cmp("ugt", Vec(ir, "%budget", "i64"))
        ir.branch(over_budget, "exit", "batch_loop")

    def _end(self) -> None:
        """Give the host its floating-point mode back, and return the status."""
        self.ir.label("exit")
        status = self.routine.load("status")
        if self.flushes:
            underflowed = self.ir.op("call i1 @restore(i64 %saved_mode)", "i1")
            if self.mode in FLAGGED:
                status = underflowed.select(self.ir.const(UNDERFLOWED, "i32"), status)
        self.ir.do(f"ret {status}")

    # The result

    def _translation(self) -> Translation:
        spill_size = self.regions.spilled.gang_bytes
        self.ir.declared["spill_size"] = f"@spill_size = private constant i64 {spill_size}"
        segments = self.straight.segments
        counter_of = {at: 1 + n for n, segment in enumerate(segments) for at in segment}
        unused = 1 + len(segments)  # of instructions that never run
        _, lds_bytes = lds_layout(self.program.lds)
        sizes = {
            "context": 8 * len(self.routine.slots),
            "counts": 8 * (1 + unused),
            "spill": spill_size * self.batches.gangs,
            "report": 32,
            "lds": lds_bytes,
        }
        layouts = {}
        for n, layout in self.memory.layouts.items():
            layouts[str(n)] = layout.step, layout.lanes
        reads_g = any(x.register.kind == "g" for i in self.body for x in i.sources)
        return Translation(
            self._text(),
            slots={name: at for at, name in enumerate(self.routine.slots)},
            literals=tuple(self.routine.literals),
            counters=[counter_of.get(at, unused) for at in range(len(self.body))],
            sizes=sizes,
            lanes=self.analysis.lanes,
            reads_global=bool(self.analysis.uniformity.group_level) or reads_g,
            layouts=layouts,
        )

    def _text(self) -> str:
        """The module: what is declared, then the function with its variables on the stack."""
        flush = ' "denormal-fp-math-f32"="preserve-sign,preserve-sign"' if self.flushes else ""
        head = (
            "define i32 @kernel(ptr noalias %context, ptr noalias %counts, ptr noalias"
            f" %spill, i64 %budget, i64 %first, i64 %last){flush} {{"
        )
        variables = [
            f"  %{name} = alloca {kind if not n else f'<{n} x {kind}>'}, align 64"
            for name, (kind, n) in self.routine.variables.items()
        ]
        begin = [
            f"  store i32 {DONE}, ptr %status",
            "  store i64 0, ptr %spent",
            "  br label %batch_loop",
        ]
        lines = [
            self.flushes,
            *sorted(self.ir.declared.values()),
            head,
            "entry:",
            *variables,
            "  %saved_mode = call i64 @flush()" if self.flushes else "",
            *self.routine.entry,
            *begin,
            *self.ir.lines,
            "}",
        ]
        return "\n".join(lines)
