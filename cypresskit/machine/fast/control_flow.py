"""Branches and loops: flow instructions as branches of the host.

All lanes go one way. A flow instruction of the *group*, whose branch holds a barrier, goes the way
for which the work-items of the whole group have voted: variables any_true and any_false.
"""

import math

from cypresskit.machine.fast.memory_access import MemoryAccess
from cypresskit.machine.fast.native_meaning import Floats
from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.routine import ENDLESS, ITEM, Routine
from cypresskit.machine.fast.uniformity import Uniformity
from cypresskit.machine.fast.vec import Vec


class ControlFlow:
    """Translates flow instructions. ``group_flow``: those of ifs and loops that hold a barrier;
    ``begun``: loops of which strips have been translated, so that they are begun already.
    """

    def __init__(
        self, routine: Routine, registers: RegisterFile, memory: MemoryAccess, floats: Floats
    ):
        self.routine, self.registers, self.memory, self.floats = routine, registers, memory, floats
        self.ir, self.program, self.body = routine.ir, registers.program, registers.body
        self.group_flow = self._group_flow(registers.analysis.uniformity)
        self.begun: set[int] = set()

    def _group_flow(self, uniformity: Uniformity) -> set[int]:
        match = self.program.matching
        level = uniformity.group_level
        openers = {at for opener in level for at in (opener, match[opener], match[match[opener]])}
        leaving = [at for at, i in enumerate(self.body) if i.op.flow in ("break", "continue")]
        return openers | {at for at in leaving if match[at] in level}

    def translate(self, at: int) -> None:
        """Translate a flow instruction."""
        getattr(self, f"visit_{self.body[at].op.flow}")(at)

    # Branches

    def _decision(self, at: int) -> Vec:
        """i1: whether the branch is taken, by all lanes or, where it holds a barrier, by the whole
        group.
        """
        if at in self.group_flow:
            return self.routine.load("any_true")
        return self.condition(at).lanes(0)

    def condition(self, at: int) -> Vec:
        """i1 of a flow instruction: a scalar, or one per lane; set where it has none."""
        i = self.body[at]
        if not i.sources:
            return self.ir.const(1, "i1")
        self.memory.read_global(at)
        values = [self.registers.component(at, n, 0) for n in range(len(i.sources))]
        if i.controls.relop:
            a, b = values[0].both(values[1])
            return self.floats.compare(i.controls.relop, a.bits("float"), b.bits("float"))
        return values[0].cmp(i.op.relation, 0)

    # A label at7 begins what stands at instruction 7, behind7 what follows it.

    def visit_if(self, at: int) -> None:
        yes = self.ir.new("then")
        self.ir.branch(self._decision(at), yes, f"at{self.program.matching[at]}")
        self.ir.label(yes)

    def visit_else(self, at: int) -> None:
        self.ir.go(f"at{self.program.matching[at]}")
        self.ir.label(f"at{at}")

    def visit_endif(self, at: int) -> None:
        self.ir.label(f"at{at}")

    def visit_loop(self, at: int) -> None:
        if at not in self.begun:  # else it began with strips
            self.routine.store(self.routine.variable(f"before{at}", "i64"), self._issued(at))
        self.ir.label(f"at{at}")
        self._poll(at)

    def visit_break(self, at: int) -> None:
        end = self.program.matching[self.program.matching[at]]
        stay = self.ir.new("stay")
        target = f"behind{end}" if self.body[at].op.flow == "break" else f"at{end}"
        self.ir.branch(self._decision(at), target, stay)
        self.ir.label(stay)

    visit_continue = visit_break

    def visit_endloop(self, at: int) -> None:
        self.ir.label(f"at{at}")
        self.ir.go(f"at{self.program.matching[at]}")
        self.ir.label(f"behind{at}")

    # Programs that don't end

    def _issued(self, at: int) -> Vec:
        """The count of instructions that ends runaway programs. A loop with barriers reads the
        first gang's.
        """
        if at in self.group_flow:
            return Vec(self.ir, "%spill", "ptr").load("i64")
        return self.routine.load("issued")

    def _poll(self, at: int) -> None:
        """At the head of a loop: give up if the caller wants that, or if the loop has run for too
        long, in the name of the first work-item here.
        """
        stop, on = self.ir.new("endless"), self.ir.new("go")
        in_loop = self._issued(at) - self.routine.load(f"before{at}")
        self.ir.branch(in_loop.cmp("ugt", self.routine.bound()), stop, on)
        self.ir.label(stop)
        if at in self.group_flow:
            item = Vec(self.ir, "%batch", "i64") * math.prod(self.program.group)
        else:
            item = self.registers.gang.item[0].cast("zext", "i64")
        self.routine.report(ITEM, item)
        self.routine.give_up(ENDLESS, at)
        self.ir.label(on)
