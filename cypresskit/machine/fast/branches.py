"""Control flow without barriers, and the straight runs of instructions between.

A branch whose condition is the same in all lanes is a branch of the host. Divergent flow keeps in ``%exec`` the lanes
that take part, and for each loop who still takes turns (running) and who sits out the rest of this one (left).
"""

from dataclasses import dataclass

from cypresskit.il import Instruction, Program
from cypresskit.machine.fast.access import Value, splat
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.arithmetic import of
from cypresskit.machine.fast.instructions import Instructions

DONE, ENDLESS, DIVERGED, STOPPED = range(4)  # how a call of the kernel ends
NAMED = 7  # loops around an endless one that it may turn out to be


@dataclass
class Block:
    """An if or loop that is open: labels of its parts, and for a masked one the lanes that ``came``, which of these
    take the else, and for a loop the names of its two masks. ``outside``: lanes may be missing around it."""

    role: str
    masked: bool
    outside: int
    end: str
    no: str = ""  # label of the else
    head: str = ""
    latch: str = ""
    came: str = ""
    otherwise: str = ""
    running: str = ""
    left: str = ""


class Branches(Instructions):
    """Translation of a region's control flow."""

    def __init__(self, program: Program, analysis: Analysis, soft: bool):
        super().__init__(program, analysis, soft)
        self.around = self._loops_around()
        self.segments: list[tuple[int, ...]] = []  # what each counter counts: indices in the program's body
        self.blocks: list[Block] = []
        self.turns: dict[int, str] = {}  # segments of uniform loops in the region: variables that count their turns

    def _opener(self, at: int) -> int:
        """The if that an else or endif belongs to."""
        opener = self.program.matching[at] if self.body[at].op.flow == "endif" else at
        if self.body[opener].op.flow == "else":
            opener = next(o for o, e in self.program.matching.items() if e == opener and self.body[o].op.flow == "if")
        return opener

    def _straight(self, start: int, stop: int) -> None:
        self.blocks = []
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
                at = self.instruction(at, stop)

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
        if self._loop() and not self.a.divergent[at]:  # counted in a register: all lanes that exist take every turn
            name = f"turns{len(self.segments)}"
            self.variable(name, "i64")
            self.turns[len(self.segments)] = name
            self.store(name, b.op(f"add i64 {self.load(name)}, 1"))
        else:
            self.add_count(len(self.segments), count)
        self.segments.append(segment)
        issued = len(segment)
        self.store("issued", b.op(f"add i64 {self.load('issued')}, {issued}"))

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

    def _uniform(self, at: int) -> str:
        """i1 of a flow instruction whose condition is known to be the same in all lanes."""
        condition = self._condition(at)
        if condition.n:
            return self.b.op(f"extractelement {of('i1', condition.n)} {condition.name}, i32 0")
        return condition.name

    def _loop(self) -> Block | None:
        return next((block for block in reversed(self.blocks) if block.role == "loop"), None)

    def _present(self, mask: str) -> str:
        """``mask`` without who left the innermost loop's turn."""
        loop = self._loop()
        return self.without(mask, self.load(loop.left)) if loop and loop.masked else mask

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
        masked = bool(self.a.condition_bits(at))
        block = Block("if", masked, self.a.divergent[at], end, no)
        if masked:
            condition = self._condition(at)
            block.came = self.mask(at)
            found = condition.name if condition.n else splat(b, condition.name, self.lanes, "i1")
            taken = self.both(block.came, found)
            block.otherwise = self.without(block.came, taken)
            self.store("exec", taken)
            b.branch(self.any_lane(taken), yes, no)
        else:
            b.branch(self._uniform(at), yes, no)
        b.label(yes)
        self.blocks.append(block)

    def _else(self, at: int) -> None:
        b, block = self.b, self.blocks[-1]
        b.go(block.end if not block.masked else block.no)
        b.label(block.no)
        if block.masked:
            mask = self._present(block.otherwise)
            self.store("exec", mask)
            body = b.new_label("otherwise")
            b.branch(self.any_lane(mask), body, block.end)
            b.label(body)

    def _endif(self, at: int) -> None:
        block = self.blocks.pop()
        self.b.go(block.end)
        self.b.label(block.end)
        if block.masked and block.outside:
            self.store("exec", self._present(block.came))

    def _open_loop(self, at: int) -> None:
        b = self.b
        masked = bool(self.a.loop_divergent.get(at, 0) | self.a.divergent[at])
        head, latch, end = (b.new_label(name) for name in ("loop", "endloop", "loop_end"))
        self.enter_loop(at, self.load("issued"))
        block = Block("loop", masked, self.a.divergent[at], end, head=head, latch=latch)
        if masked:
            block.running = f"running{b.names}"
            block.left = f"left{b.names}"
            for name in (block.running, block.left):
                self.variable(name, f"<{self.lanes} x i1>")
            block.came = self.mask(at)
            self.store("exec", block.came)
            self.store(block.running, block.came)
            self.store(block.left, "zeroinitializer")
            b.branch(self.any_lane(block.came), head, end)
        else:
            b.go(head)
        b.label(head)
        self.poll(at, self.load("issued"), "", self.load("exec") if masked else self.mask(at))
        self.blocks.append(block)

    def _leave(self, at: int) -> None:
        """break and continue."""
        b, i = self.b, self.body[at]
        loop = self._loop()
        assert loop is not None
        stay = b.new_label("stay")
        if not loop.masked:
            target = loop.end if i.op.flow == "break" else loop.latch
            if i.sources:
                b.branch(self._uniform(at), target, stay)
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
        self.store(loop.left, b.op(f"or <{n} x i1> {self.load(loop.left)}, {leaving}"))
        if i.op.flow == "break":
            self.store(loop.running, self.without(self.load(loop.running), leaving))
        rest = self.without(self.load("exec"), leaving)
        self.store("exec", rest)
        if self.blocks[-1] is loop:
            b.branch(self.any_lane(rest), stay, loop.latch)
            b.label(stay)

    def _endloop(self, at: int) -> None:
        b, loop = self.b, self.blocks.pop()
        b.go(loop.latch)
        b.label(loop.latch)
        if loop.masked:
            running = self.load(loop.running)
            self.store("exec", running)
            self.store(loop.left, "zeroinitializer")
            b.branch(self.any_lane(running), loop.head, loop.end)
        else:
            b.go(loop.head)
        b.label(loop.end)
        if loop.masked and loop.outside:
            self.store("exec", self._present(loop.came))

    def _loops_around(self) -> dict[int, list[int]]:
        """For each loop's opener, those of the loops that hold it, the outermost first, but ``NAMED`` at most."""
        around: dict[int, list[int]] = {}
        stack: list[int] = []
        for at, i in enumerate(self.body):
            if i.op.flow == "loop":
                around[at] = stack[-NAMED:]
                stack.append(at)
            elif i.op.flow == "endloop":
                stack.pop()
        return around

    def enter_loop(self, at: int, issued: str) -> None:
        """Before the head of a loop: an inner one notes how many instructions had been issued."""
        if self.around[at]:
            self.store(self.variable(f"before{at}", "i64")[1:], issued)

    def poll(self, at: int, issued: str, item: str, mask: str = "") -> None:
        """At the head of a loop: stop if told, or if the program has run for too long; then ``item`` is named, or the
        first work-item in ``mask``."""
        b = self.b
        bound = b.op(f"load volatile i64, ptr {self.slot('limit', 'ptr')}")  # becomes 0 if the kernel is to stop
        over = b.op(f"icmp ugt i64 {issued}, {bound}")
        stop, on = b.new_label("endless"), b.new_label("go")
        b.branch(over, stop, on, "yes")
        b.label(stop)
        # an inner loop that ends every time leads back here, too: the endless one is where most instructions ran
        outermost, *inner = [*self.around[at], at]
        place = str(outermost)
        half = b.op(f"lshr i64 {bound}, 1")
        for loop in inner:
            ran = b.op(f"sub i64 {issued}, {self.load(f'before{loop}')}")
            place = b.op(f"select i1 {b.op(f'icmp ugt i64 {ran}, {half}')}, i64 {loop}, i64 {place}")
        if mask:
            n = self.lanes
            bits = b.op(f"bitcast <{n} x i1> {mask} to i{n}")
            lane = b.call(f"llvm.cttz.i{n}", f"i{n}", (f"i{n}", bits), ("i1", "true"))
            item = b.op(f"extractelement <{n} x i32> {self.item}, i{n} {lane}")
            item = b.op(f"zext i32 {item} to i64")
        place_of_item = b.op(f"getelementptr i64, ptr {self.slot('error', 'ptr')}, i64 4")
        b.do(f"store i64 {item}, ptr {place_of_item}")
        self.give_up(ENDLESS, place)
        b.label(on)

    def give_up(self, status: int, at: int | str) -> None:
        """Leave the function; ``at``, an index in the program's body, tells where."""
        self.store("status", str(status))
        place = self.b.op(f"getelementptr i64, ptr {self.slot('error', 'ptr')}, i64 3")
        self.b.do(f"store i64 {at}, ptr {place}")
        self.b.go("exit")
