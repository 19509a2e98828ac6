"""Instructions of a region, one after another: straight runs, the flow between them, and loops that
begin with strips.

A straight run is a *segment*, with a counter of how many work-items passed it: that is how launches
count what they issued. Within a region all lanes go one way, so a branch is a branch of the host.

A loop whose turns can be counted (``strips``) becomes four blocks of code:

    strips:  how many turns are safe from here? none: go to the rest
    strip:   so many turns without tests; back to strips, unless that was the last full strip
    rest:    the loop as it stands, turn by turn, with all its tests
    done:

The rest is written first, since it shows which segments a strip has to count, and the strip before
the question how many are safe, since it shows what is read by lines.
"""

from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.arithmetic import Arithmetic
from cypresskit.machine.fast.control_flow import ControlFlow
from cypresskit.machine.fast.fetches import Coordinates
from cypresskit.machine.fast.memory_access import MemoryAccess, loads
from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.routine import Routine
from cypresskit.machine.fast.strips import StripLoop, safe_turns, strip_loop
from cypresskit.machine.fast.vec import Vec

STRIP = 1024  # turns of a strip at most: it hears that the kernel is to stop only at its end


class Straight:
    """Translates instructions in their order. ``segments``: those translated so far, each the
    indices of its instructions; segment n has counter 1 + n.
    """

    def __init__(
        self,
        routine: Routine,
        analysis: Analysis,
        registers: RegisterFile,
        coordinates: Coordinates,
        memory: MemoryAccess,
        arithmetic: Arithmetic,
        flow: ControlFlow,
    ):
        self.routine = routine
        self.ir = routine.ir
        self.analysis = analysis
        self.body = analysis.body
        self.registers = registers
        self.coordinates = coordinates
        self.memory = memory
        self.arithmetic = arithmetic
        self.flow = flow
        self.segments: list[tuple[int, ...]] = []

    def translate(self, start: int, stop: int, fresh: bool = True) -> None:
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
            # A loop at the start is the one whose rest is being translated
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

    # Loops that begin with strips

    def _counted_loop(self, loop: StripLoop) -> None:
        """Translate a counted loop: strips as long as there are turns for one, then the loop as it
        stands.
        """
        routine = self.routine
        ir = self.ir
        at = loop.at
        head = ir.new("strips")
        strip = ir.new("strip")
        plain = ir.new("rest")
        done = ir.new("loop_done")
        begun = routine.variable(f"before{at}", "i64")
        turns = routine.variable(f"turns{at}", "i64")
        routine.store(begun, routine.load("issued"))
        self.flow.begun.add(at)
        ir.go(head)

        ir.label(plain)
        first = len(self.segments)
        self.translate(at, loop.inside.stop + 1, False)
        of_the_loop = self.segments[first:]
        issued = sum(map(len, of_the_loop))  # in a turn
        ir.go(done)

        ir.label(strip)
        for counter in range(1 + first, 1 + len(self.segments)):
            routine.add_count(counter, self.registers.gang.count * routine.load(turns))
        routine.add("issued", routine.load(turns) * issued)
        self._strip(loop, routine.load(turns))
        ir.branch(routine.load(turns).cmp("slt", STRIP), plain, head)

        ir.label(head)
        spare = routine.bound() - (routine.load("issued") - routine.load(begun))
        most = spare.two("sdiv", issued).call("smin", STRIP)
        safe = safe_turns(loop, self.registers, self.coordinates)
        routine.store(turns, safe.call("smin", most).freeze())
        ir.branch(routine.load(turns).cmp("sgt", 0), strip, plain)
        ir.label(done)

    def _strip(self, loop: StripLoop, turns: Vec) -> None:
        """Translate ``turns`` turns, none of which ends the loop or looks outside."""
        routine = self.routine
        ir = self.ir
        left = f"left{loop.at}"
        turn = ir.new("turn")
        over = ir.new("turns_done")
        routine.store(routine.variable(left, "i64"), turns)

        ir.label(turn)
        self.memory.strip = loop
        self.registers.steps = loop.steps
        at = loop.inside.start
        while at < loop.inside.stop:
            at = at + 1 if self.body[at].op.flow else self._step(at, loop.inside.stop)
        self.memory.strip = None
        self.registers.steps = {}

        routine.add(left, -1)
        ir.branch(routine.load(left).cmp("ne", 0), turn, over)
        ir.label(over)
