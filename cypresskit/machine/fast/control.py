"""Control flow, and the straight runs of instructions between.

All lanes take the same way: a branch is a branch of the host. A program in which they may not is run one work-item at a
time (see ``analysis``); only where a branch holds a barrier is it found out at run time, for the whole group.

Each straight run is a *segment* with a counter of how many work-items passed it.
"""

import math

from cypresskit.machine.fast.blocking import Blocking, countable
from cypresskit.machine.fast.context import ENDLESS, ITEM
from cypresskit.machine.fast.vec import Vec


class ControlFlow(Blocking):
    """Translation of a region's control flow."""

    def straight(self, start: int, stop: int, fresh: bool = True) -> None:
        """Translate instructions start .. stop - 1; flow at group level is left to the caller. ``fresh``: a segment
        begins at the first."""
        at = start
        while at < stop:
            i = self.body[at]
            if fresh:
                self.count_segment(self._segment(at, stop))
            fresh = bool(i.op.flow)
            if not fresh:
                at = self.translate(at, stop)
                continue
            if i.op.flow == "loop" and at != start and countable(self.analysis, at):
                self._counted_loop(at, self.program.matching[at] + 1)
                at = self.program.matching[at]
            elif at not in self.group_flow:
                self.follow(at)
            at += 1

    def _counted_loop(self, at: int, end: int) -> None:
        """Translate a countable loop that ends before ``end``: strips, then as it stands."""
        begun, first = f"before{at}", len(self.segments)
        self.store(self.variable(begun, "i64"), self.load("issued"))

        def general() -> list[tuple[int, int]]:
            self.straight(at, end, False)
            return [(1 + n, len(self.segments[n])) for n in range(first, len(self.segments))]

        self.run_blocked(at, general)

    def _segment(self, at: int, stop: int) -> tuple[int, ...]:
        """The instructions from ``at`` that run together, the flow instruction at their end included."""
        end = next((k + 1 for k in range(at, stop) if self.body[k].op.flow), stop)
        return tuple(k for k in range(at, end) if self.body[k].op.flow not in ("else", "endif"))

    def count_segment(self, segment: tuple[int, ...]) -> None:
        """Count that a segment is passed."""
        if not segment:
            return
        self.add_count(1 + len(self.segments), self.gang.count)
        self.segments.append(segment)
        self.add("issued", len(segment))

    def follow(self, at: int) -> None:
        """Translate a flow instruction."""
        getattr(self, f"visit_{self.body[at].op.flow}")(at)

    # Branches

    def _decision(self, at: int) -> Vec:
        """i1: whether the branch is taken, by all lanes or, where it holds a barrier, by the whole group."""
        return self.load("any_true") if at in self.group_flow else self.condition(at).lanes(0)

    def condition(self, at: int) -> Vec:
        """i1 of a flow instruction: a scalar, or one per lane; set where it has none."""
        i = self.body[at]
        if not i.sources:
            return self.ir.const(1, "i1")
        self.read_global(at)
        values = [self.component(at, n, 0) for n in range(len(i.sources))]
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
        if f"before{at}" not in self.variables:  # else it began with strips
            self.store(self.variable(f"before{at}", "i64"), self._issued(at))
        self.ir.label(f"at{at}")
        self._poll(at)

    def visit_break(self, at: int) -> None:
        end, stay = self.program.matching[self.program.matching[at]], self.ir.new("stay")
        self.ir.branch(self._decision(at), f"behind{end}" if self.body[at].op.flow == "break" else f"at{end}", stay)
        self.ir.label(stay)

    visit_continue = visit_break

    def visit_endloop(self, at: int) -> None:
        self.ir.label(f"at{at}")
        self.ir.go(f"at{self.program.matching[at]}")
        self.ir.label(f"behind{at}")

    # Programs that don't end

    def _issued(self, at: int) -> Vec:
        """The count of instructions that ends runaway programs. A loop with barriers reads the first gang's."""
        return self.spill.load("i64") if at in self.group_flow else self.load("issued")

    def _poll(self, at: int) -> None:
        """At the head of a loop: stop if told, or if it has run for too long, by the first work-item here."""
        e = self.ir
        stop, on = e.new("endless"), e.new("go")
        e.branch((self._issued(at) - self.load(f"before{at}")).cmp("ugt", self.bound()), stop, on)
        e.label(stop)
        if at in self.group_flow:
            item = self.batch * math.prod(self.program.group)
        else:
            item = self.gang.item[0].cast("zext", "i64")
        self.report(ITEM, item)
        self.give_up(ENDLESS, e.const(at, "i64"))
        e.label(on)
