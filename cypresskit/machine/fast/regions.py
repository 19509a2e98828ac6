"""Regions: parts of a program without a barrier, each run for one gang of the batch after another.

Barriers cut a program into regions; where it has none, the whole of it is one. A region of several
gangs is a loop over them:

    gangs:       any left? none: go to gangs_done
    gang:        restore its registers; its instructions; save what the next regions need
    gangs_done:

Control flow that holds barriers lies outside the regions and must go one way for the whole
workgroup. The region before it ends with a vote: ``any_true`` and ``any_false`` say whether some
work-item is for each way. Where they differ, the kernel gives up (status DIVERGED), and the
explaining engine decides.
"""

from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.batches import Batches
from cypresskit.machine.fast.control_flow import ControlFlow
from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.routine import DIVERGED, Routine
from cypresskit.machine.fast.spill import SpilledRegisters
from cypresskit.machine.fast.straight import Straight
from cypresskit.machine.fast.vec import Vec


class Regions:
    """Translates what a batch runs. ``batch``: its number; ``where`` it lies, once it is begun."""

    where: list[Vec]

    def __init__(
        self,
        routine: Routine,
        analysis: Analysis,
        registers: RegisterFile,
        batches: Batches,
        flow: ControlFlow,
        straight: Straight,
    ):
        self.routine = routine
        self.ir = routine.ir
        self.analysis = analysis
        self.body = analysis.body
        self.registers = registers
        self.batches = batches
        self.flow = flow
        self.straight = straight
        self.barriers = analysis.uniformity.barriers
        self.spilled = SpilledRegisters(routine, registers)
        self.batch = Vec(self.ir, "%batch", "i64")
        self.spill = Vec(self.ir, "%spill", "ptr")

    def translate(self) -> None:
        """Translate the whole body for the present batch."""
        self.where = self.batches.begin(self.batch)
        if self.barriers:
            self._group(0, len(self.body))
        else:
            self._region(0, len(self.body), None)

    # One region

    def _region(self, start: int, stop: int, condition: int | None) -> None:
        """Instructions start .. stop - 1 for every gang of the batch. With ``condition``, the flow
        instruction there is evaluated at the end: variables any_true and any_false then say how
        the work-items voted.
        """
        # An empty region needs no code, but for the first, which may set registers to zero
        if start == stop and condition is None and start:
            return
        head, body, done = (self.ir.new(name) for name in ("gangs", "gang", "gangs_done"))
        if condition is not None:
            for name in ("any_true", "any_false"):
                self.routine.store(self.routine.variable(name, "i1"), 0)

        number = self.ir.const(0, "i64")
        spill = self.spill
        several = self.batches.gangs > 1  # else no loop: LLVM would hoist all of it, and spill it
        if several:
            counter = self.routine.variable(f"gang_at{self.ir.names}", "i64")
            self.routine.store(counter, 0)
            self.ir.label(head)
            number = self.routine.load(counter)
            self.ir.branch(number.cmp("ult", self.batches.gangs), body, done)
            self.ir.label(body)
            spill = spill.at(number * Vec(self.ir, "@spill_size", "ptr").load("i64"))
        self.registers.gang = self.batches.gang(self.batch, self.where, number, spill)

        opening = len(self.ir.lines)
        self._instructions(start, stop, condition)
        if several:
            self.routine.add(counter, 1)
            self.ir.go(head)
            self.ir.label(done)
        self._restore_at(opening, start)

    def _instructions(self, start: int, stop: int, condition: int | None) -> None:
        """What one gang does, and what it keeps for the regions behind."""
        self.registers.touched = {}
        self.registers.modified = set()
        # Registers that start at zero, wherever they are read first.
        if self.barriers and not start:
            self.registers.modified = {
                self.registers.cell_variable(self.analysis.cell(web))
                for web in self.analysis.webs.entry
            }
        self.straight.translate(start, stop)
        if condition is not None:
            self._vote(condition)
        self.spilled.save(condition if condition is not None else stop - 1)

    def _restore_at(self, opening: int, start: int) -> None:
        """Put the code that restores a gang's registers at line ``opening``: which they are is
        known once the gang's code is written.
        """
        closing = self.ir.lines[opening:]
        self.ir.lines = self.ir.lines[:opening]
        self.spilled.restore(start)
        self.ir.lines += closing

    # Control flow that holds barriers

    def _group(self, start: int, stop: int) -> None:
        """Regions and the flow between them, for the whole group."""
        begun = start
        for at in range(start, stop):
            flow = self.body[at].op.flow
            barrier = self.analysis.uniformity.is_barrier(at)
            if not barrier and not (flow and at in self.flow.group_flow):
                continue
            tested = flow in ("if", "break", "continue")
            ends_region = barrier or flow in ("loop", "endloop")  # and is its last instruction
            self._region(begun, at + ends_region, at if tested else None)
            begun = at + 1
            if tested:
                self._decide(at)
            if flow:
                self.flow.translate(at)
        self._region(begun, stop, None)

    def _vote(self, condition: int) -> None:
        """Add the gang's votes on a branch of the whole group to any_true and any_false."""
        self.straight.count_segment((condition,))
        value = self.flow.condition(condition)
        for name, votes in (("any_true", value), ("any_false", ~value)):
            self.routine.store(name, self.routine.load(name) | votes.any())

    def _decide(self, at: int) -> None:
        """Give up if the work-items of the group voted for two ways."""
        divided = self.ir.new("apart")
        together = self.ir.new("together")
        votes_differ = self.routine.load("any_true") & self.routine.load("any_false")
        self.ir.branch(votes_differ, divided, together)
        self.ir.label(divided)
        self.routine.give_up(DIVERGED, at)
        self.ir.label(together)
