"""Control flow: ifs and loops of the IL as blocks and the keywords between them.

Leaving a loop under a condition is an if around a break. A loop that tests its condition first and computes little for
it is rotated: the test is copied in front of the loop, and the loop then tests at its end, where its operations share
bundles with the work. ``lower`` does that; here is which loops it may do it to.
"""

from dataclasses import dataclass, field

from cypresskit.compiler.ir import BasicBlock, refuse
from cypresskit.compiler.isa import comparison
from cypresskit.compiler.sources import Sources
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.il import Instruction, Program

ROTATED = 6  # instructions before a loop's test that are still copied


@dataclass(eq=False)
class _OpenIf:
    """An if that is open: the block that ``tests``, and the blocks that its parts ``end`` in."""

    tests: BasicBlock
    ends: list[BasicBlock] = field(default_factory=list)


@dataclass(eq=False)
class _OpenLoop:
    """A loop that is open: the block ``before`` it, the ``header`` that every iteration begins with, the ``exit``."""

    at: int
    before: BasicBlock
    header: BasicBlock
    exit: BasicBlock


class Regions:
    """Builds blocks; ``ifs`` and ``loops`` are open."""

    def __init__(self, builder: OpBuilder, sources: Sources, program: Program):
        self.builder, self.sources, self.program = builder, sources, program
        self.ifs: list[_OpenIf] = []
        self.loops: list[_OpenLoop] = []
        body, matching = program.body, program.matching
        self.continued = {matching[at] for at, i in enumerate(body) if i.op.flow == "continue"}

    def instruction(self, i: Instruction) -> None:
        """Anything but the beginning and the end of a loop."""
        flow = i.op.flow
        if flow == "if":
            self.begin_if(i)
        elif flow == "else":
            self.begin_else()
        elif flow == "endif":
            self.end_if()
        elif i.sources:
            self.begin_if(i)
            self.leave(flow)
            self.end_if()
        else:
            self.leave(flow)

    def begin_if(self, i: Instruction, inverted: bool = False) -> None:
        """An if whose then-part runs if the instruction's condition holds (or does not, if ``inverted``)."""
        b, wanted = self.builder, True
        if i.controls.relop:
            name, swapped = comparison(i.relation, "f")
            srcs = [self.sources.operand(i, n, 0) for n in (0, 1)]
            value = b.emit(name, *(srcs[::-1] if swapped else srcs))
        else:
            value, wanted = self.sources.operand(i, 0, 0).value, i.relation == "ne"
        b.emit("PRED_SETNE_INT" if wanted != inverted else "PRED_SETE_INT", value, b.const(0), words=0)
        b.items.append("if")
        self.ifs.append(_OpenIf(b.block))
        b.start(b.block)

    def begin_else(self) -> None:
        frame = self.ifs[-1]
        frame.ends.append(self.builder.block)
        self.builder.items.append("else")
        self.builder.start(frame.tests)

    def end_if(self) -> None:
        if not self.ifs[-1].ends:
            self.begin_else()
        frame = self.ifs.pop()
        self.builder.items.append("endif")
        self.builder.start(*frame.ends, self.builder.block)

    def leave(self, flow: str) -> None:
        """break or continue: the block ends here, what follows is not reached."""
        b, loop = self.builder, self.loops[-1]
        if not b.block.dead:
            _edge(b.block, loop.exit if flow == "break" else loop.header)
        b.items.append(flow)
        b.start()

    def begin_loop(self, at: int) -> None:
        b = self.builder
        b.items.append("loop")
        before = b.block
        b.depth += 1
        header = b.start(before)
        header.sealed = False
        self.loops.append(_OpenLoop(at, before, header, BasicBlock(b.depth - 1, sealed=False)))

    def end_loop(self) -> None:
        b, loop = self.builder, self.loops.pop()
        if not b.block.dead:
            _edge(b.block, loop.header)
        b.seal(loop.header)
        loop.header.dead = loop.before.dead
        b.items.append("endloop")
        b.depth -= 1
        b.block = loop.exit
        if not b.block.preds and not loop.before.dead:
            raise refuse(self.program, loop.at, "nothing leaves this loop: it needs a break that is reached")
        b.seal(b.block)
        b.items.append(b.block)

    def test_to_rotate(self, at: int) -> int | None:
        """Where the test of the loop at ``at`` stands if that can be rotated, or None."""
        body, end = self.program.body, self.program.matching[at]
        for test in range(at + 1, min(at + 2 + ROTATED, end)):
            i = body[test]
            if i.op.flow == "break" and i.sources:
                return None if at in self.continued else test
            registers = [s.register for s in i.sources] + ([i.dest.register] if i.dest else [])
            if i.op.kind != "alu" or any(r.kind in ("g", "o") for r in registers):
                return None
        return None


def _edge(block: BasicBlock, target: BasicBlock) -> None:
    block.succs.append(target)
    target.preds.append(block)
