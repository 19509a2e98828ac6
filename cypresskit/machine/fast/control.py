"""Control flow, and the straight runs of instructions between.

A branch whose condition is the same in all lanes is a branch of the host. Divergent flow keeps in ``exec`` the lanes
that take part, and for each loop who still takes turns (running) and who sits out the rest of this one (left).

Each straight run is a *segment* with a counter of how many work-items passed it.

A loop that holds more sums than the host has registers is run in several *passes* over some of the sums each. A block
of 8 x 8 numbers for each of four work-items fills 16 registers of 512 bits; on hosts with less LLVM would keep the sums
on the stack, and load and store one with every multiply-add. Only loops that do nothing but read and compute are split,
and only by sums that nothing in the loop reads but what updates them.
"""

import math
from dataclasses import dataclass

from cypresskit.il import Instruction
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.instructions import Instructions
from cypresskit.machine.fast.storage import ENDLESS, ITEM, Storage
from cypresskit.machine.fast.vec import SIZES, Vec, of


@dataclass
class OpenBlock:
    """An if or loop that is open: labels of its parts, and for a masked one the lanes that ``came`` and those of them
    that take the else, and for a loop the variables of its two masks. ``outside``: lanes may be missing around it."""

    role: str
    masked: bool
    outside: bool
    end: str
    no: str = ""  # label of the else
    head: str = ""
    latch: str = ""
    came: Vec | None = None
    otherwise: Vec | None = None
    running: str = ""
    left: str = ""


class ControlFlow:
    """Translation of a region's control flow."""

    def __init__(self, storage: Storage, instructions: Instructions, room: int):
        self.s, self.e, self.i, self.a = storage, storage.e, instructions, storage.analysis
        self.program, self.body = storage.program, storage.program.body
        self.segments: list[tuple[int, ...]] = []
        self.scopes: list[OpenBlock] = []
        self.room, self.counting = room, True
        self.unit, self.spill = Vec(self.e, "%unit", "i64"), Vec(self.e, "%spill", "ptr")
        match, level = self.program.matching, self.a.vary.group_level
        self.group_flow = {at for opener in level for at in (opener, match[opener], match[match[opener]])}
        leaving = [at for at, i in enumerate(self.body) if i.op.flow in ("break", "continue")]
        self.group_flow.update(at for at in leaving if match[at] in level)

    def at_group_level(self, at: int) -> bool:
        """Whether a flow instruction belongs to an if or loop that holds a barrier."""
        return at in self.group_flow

    def straight(self, start: int, stop: int) -> None:
        """Translate instructions start .. stop - 1; flow at group level is left to the caller."""
        around, self.scopes = self.scopes, []
        self._run(start, stop, True)
        self.scopes = around

    def _run(self, start: int, stop: int, fresh: bool) -> None:
        """Translate instructions; ``fresh``: a segment begins at the first."""
        at = start
        while at < stop:
            i = self.body[at]
            if fresh:
                self.count(self._segment(at, stop), at)
            fresh = bool(i.op.flow)
            if not fresh:
                at = self.i.translate(at, stop)
                continue
            if i.op.flow == "loop" and at != start and self._passes(at):
                at = self.program.matching[at]
            elif not self.at_group_level(at):
                self.follow(at)
            at += 1

    def _passes(self, at: int) -> bool:
        """Translate a loop that is run in several passes, see ``passes``; false if it isn't one. Between passes LLVM
        mustn't know where the sums are, or it would keep all of them on the stack in all passes."""
        parts = [set()] if self.a.vary.masked(at) else passes(self.a, at, self.room)
        if len(parts) < 2:
            return False
        end, sums = self.program.matching[at], set().union(*parts)
        self.temporary = temporary(self.a, range(at, end))
        saved = [(name, self.s.load(name)) for name in self._names(set(range(at, end)) - sums)]
        self._hide(sums)
        for number, left_out in enumerate(parts):
            for name, value in saved if number else ():
                self.s.store(name, value)
                self.s.recount(name)
            self.i.skipped, self.counting, self.i.loads.outside = left_out, not number, not number
            self._hide(sums - left_out, True)
            self._run(at, end + 1, False)
            self._hide(sums - left_out)
        self._hide(sums, True)
        self.i.skipped, self.counting, self.i.loads.outside = set(), True, True
        return True

    def _names(self, instructions: set[int]) -> list[str]:
        """The variables of the cells that these write and others need."""
        cells = {cell.name: cell for k in instructions for cell in self.a.written(k)}
        return sorted(self.s.name(cell) for name, cell in cells.items() if name not in self.temporary)

    def _hide(self, instructions: set[int], back: bool = False) -> None:
        """Put the results of these in memory that LLVM takes for anybody's, or get them ``back``."""
        for name in self._names(instructions):
            kind, n = self.s.variables[name]
            place = f"%{self.s.variable(f'hidden_{name}', kind, n)}"
            if back:
                self.s.store(name, self.e.op(f"load volatile {of(kind, n)}, ptr {place}", kind, n))
            else:
                self.e.do(f"store volatile {self.s.load(name)}, ptr {place}")

    def _segment(self, at: int, stop: int) -> tuple[int, ...]:
        """The instructions from ``at`` that run together, the flow instruction at their end included."""
        end = next((k + 1 for k in range(at, stop) if self.body[k].op.flow), stop)
        return tuple(k for k in range(at, end) if self.body[k].op.flow not in ("else", "endif"))

    def count(self, segment: tuple[int, ...], at: int) -> None:
        """Count that a segment is passed, by those who execute ``at``."""
        if not segment or not self.counting:
            return
        passed = self.s.load("exec").count() if self.a.vary.divergent[at] else self.s.quad.count
        self.s.add_count(1 + len(self.segments), passed)
        self.segments.append(segment)
        self.s.add("issued", len(segment))

    def follow(self, at: int) -> None:
        """Translate a flow instruction."""
        FLOW[self.body[at].op.flow](self, at, self.body[at])

    # Conditions and masks

    def _decision(self, at: int) -> Vec:
        """i1: ``condition``, or what all work-items of the group found."""
        return self.s.load("any_true") if self.at_group_level(at) else self.condition(at)

    def condition(self, at: int) -> Vec:
        """i1 of a flow instruction: a scalar, or one per lane; set where it has none."""
        i = self.body[at]
        if not i.sources:
            return self.e.const(1, "i1")
        self.i.loads.read_global(at)
        values = [self.i.reading.component(at, n, 0) for n in range(len(i.sources))]
        if i.controls.relop:
            a, b = values[0].both(values[1])
            return self.i.f.compare(i.controls.relop, a.bits("float"), b.bits("float"))
        return values[0].cmp(i.op.relation, 0)

    def _loop(self) -> OpenBlock | None:
        return next((scope for scope in reversed(self.scopes) if scope.role == "loop"), None)

    def _present(self, mask: Vec) -> Vec:
        """``mask`` without those who left the innermost loop's turn."""
        loop = self._loop()
        return self.s.without(mask, self.s.load(loop.left)) if loop and loop.masked else mask

    # If

    def _open_if(self, at: int, i: Instruction) -> None:
        has_else = self.body[self.program.matching[at]].op.flow == "else"
        yes, end = self.e.new("then"), self.e.new("endif")
        no = self.e.new("else") if has_else else end
        masked = not self.at_group_level(at) and self.a.vary.condition_varies(at)
        scope = OpenBlock("if", masked, self.a.vary.divergent[at], end, no)
        condition = self._decision(at)
        if masked:
            scope.came = self.s.executing(at)
            taken = self.s.both(scope.came, condition)
            scope.otherwise = self.s.without(scope.came, taken)
            self.s.store("exec", taken)
            condition = taken.any()
        self.e.branch(condition.lanes(0), yes, no)
        self.e.label(yes)
        self.scopes.append(scope)

    def _else(self, at: int, i: Instruction) -> None:
        scope = self.scopes[-1]
        self.e.go(scope.no if scope.masked else scope.end)
        self.e.label(scope.no)
        if scope.otherwise is not None:
            mask = self._present(scope.otherwise)
            self.s.store("exec", mask)
            body = self.e.new("otherwise")
            self.e.branch(mask.any(), body, scope.end)
            self.e.label(body)

    def _endif(self, at: int, i: Instruction) -> None:
        scope = self.scopes.pop()
        self.e.go(scope.end)
        self.e.label(scope.end)
        if scope.came is not None and scope.outside:
            self.s.store("exec", self._present(scope.came))

    # Loops

    def _open_loop(self, at: int, i: Instruction) -> None:
        masked = self.a.vary.masked(at)
        head, latch, end = (self.e.new(name) for name in ("loop", "endloop", "loop_end"))
        self.s.store(self.s.variable(f"before{at}", "i64"), self._issued(at))
        scope = OpenBlock("loop", masked, self.a.vary.divergent[at], end, head=head, latch=latch)
        if masked:
            scope.running, scope.left = (
                self.s.variable(f"{name}{self.e.names}", "i1", self.s.lanes) for name in ("running", "left")
            )
            scope.came = self.s.executing(at)
            self.s.store("exec", scope.came)
            self.s.store(scope.running, scope.came)
            self.s.store(scope.left, 0)
            self.e.branch(scope.came.any(), head, end)
        else:
            self.e.go(head)
        self.e.label(head)
        self.scopes.append(scope)
        self._poll(at, self.s.load("exec") if masked else self.s.quad.active)

    def _leave(self, at: int, i: Instruction) -> None:
        loop, stay = self._loop(), self.e.new("stay")
        assert loop is not None
        condition = self._decision(at)
        if not loop.masked:
            self.e.branch(condition.lanes(0), loop.end if i.op.flow == "break" else loop.latch, stay)
            self.e.label(stay)
            return
        leaving = self.s.both(self.s.load("exec"), condition)
        self.s.store(loop.left, self.s.load(loop.left) | leaving)
        if i.op.flow == "break":
            self.s.store(loop.running, self.s.without(self.s.load(loop.running), leaving))
        rest = self.s.without(self.s.load("exec"), leaving)
        self.s.store("exec", rest)
        if self.scopes[-1] is loop:
            self.e.branch(rest.any(), stay, loop.latch)
            self.e.label(stay)

    def _endloop(self, at: int, i: Instruction) -> None:
        loop = self.scopes.pop()
        self.e.go(loop.latch)
        self.e.label(loop.latch)
        if loop.masked:
            running = self.s.load(loop.running)
            self.s.store("exec", running)
            self.s.store(loop.left, 0)
            self.e.branch(running.any(), loop.head, loop.end)
        else:
            self.e.go(loop.head)
        self.e.label(loop.end)
        if loop.came is not None and loop.outside:
            self.s.store("exec", self._present(loop.came))

    # Programs that don't end

    def _issued(self, at: int) -> Vec:
        """How many instructions have been issued: of a loop that holds barriers, for the first quad."""
        return self.spill.load("i64") if self.at_group_level(at) else self.s.load("issued")

    def _poll(self, at: int, who: Vec) -> None:
        """At the head of a loop: stop if told, or if the loop has run for too long; then the first work-item in the
        mask ``who`` is named, or the group's."""
        e = self.e
        bound = e.op(f"load volatile i64, {self.s.slot('limit', 'ptr')}", "i64")  # becomes 0 if the kernel is to stop
        stop, on = e.new("endless"), e.new("go")
        e.branch((self._issued(at) - self.s.load(f"before{at}")).cmp("ugt", bound), stop, on, "yes")
        e.label(stop)
        if self.at_group_level(at):
            item = self.unit * math.prod(self.program.group)
        else:
            item = self.s.quad.item[who.first()].cast("zext", "i64")
        self.s.report(ITEM, item)
        self.s.give_up(ENDLESS, e.const(at, "i64"))
        e.label(on)


FLOW = {
    "loop": ControlFlow._open_loop,
    "if": ControlFlow._open_if,
    "else": ControlFlow._else,
    "endif": ControlFlow._endif,
    "endloop": ControlFlow._endloop,
    "break": ControlFlow._leave,
    "continue": ControlFlow._leave,
}


def passes(analysis: Analysis, at: int, room: int) -> list[set[int]]:
    """Instructions of the loop opened at ``at`` that each pass leaves out, so that what it sums up takes at most
    ``room`` bytes of registers; one empty set if the loop is run once."""
    inside = range(at + 1, analysis.program.matching[at])
    if at in analysis.vary.group_level or not all(_reads_and_computes(analysis.body[k]) for k in inside):
        return [set()]
    groups: list[set[int]] = []
    left = 0
    for size, writers in _sums(analysis, inside):
        left -= size
        if left < 0:
            groups.append(set())
            left = room - size
        groups[-1] |= writers
    every = set().union(*groups)
    return [every - group for group in groups] if len(groups) > 1 else [set()]


def temporary(analysis: Analysis, inside: range) -> set[str]:
    """The names of cells that nobody needs from one turn of a loop to the next, nor after it."""
    outside = [k for k in range(len(analysis.body)) if k not in inside]
    needed = {name for k in outside for name in analysis.cells_read(k)}
    written: set[str] = set()
    for k in inside:
        needed |= analysis.cells_read(k) - written
        written |= {cell.name for cell in analysis.written(k)}
    return written - needed


def _reads_and_computes(i: Instruction) -> bool:
    """Whether ``i`` stores nothing, opens no if or loop, and waits for nobody."""
    return (
        (i.op.kind in ("alu", "fetch", "lds") and not i.op.store and i.dest is not None and i.dest.register.kind == "r")
        or i.op.flow in ("break", "continue")
    )  # fmt: skip


def _sums(analysis: Analysis, inside: range) -> list[tuple[int, set[int]]]:
    """The sums of a loop: bytes that each takes, and the instructions that update it. These write nothing else, and
    nothing else in the loop reads or writes it."""
    sums: dict[str, tuple[int, set[int]]] = {}
    other: set[str] = set()  # cells that more is done with
    for k in inside:
        written, read = analysis.written(k), analysis.cells_read(k)
        for cell in written:
            if analysis.body[k].op.kind == "alu" and len(written) == 1 and cell.n and cell.name in read:
                sums.setdefault(cell.name, (cell.n * SIZES[cell.kind] // 8, set()))[1].add(k)
                read.discard(cell.name)
            else:
                other.add(cell.name)
        other |= read
    return [found for name, found in sums.items() if name not in other]
