"""Control flow: ifs and loops of the IL as blocks and the keywords between them.

Leaving a loop under a condition is an if around a break. A loop that tests its condition first and computes little for
it is rotated: the test is copied in front of the loop, and the loop then tests at its end, where its operations share
bundles with the work. ``lower`` does that; here is which loops it may do it to.
"""

from cypresskit.compiler.ir import BasicBlock, refuse
from cypresskit.compiler.isa import comparison
from cypresskit.compiler.sources import Sources
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.il import Instruction, Program

ROTATED = 6  # instructions before a loop's test that are still copied


class Regions:
    """Builds blocks. Open are ``ifs``, the block that tests and those that its parts end in, and ``loops``, the block
    that every iteration begins with and the one behind them."""

    def __init__(self, builder: OpBuilder, sources: Sources, program: Program):
        self.builder, self.sources, self.program = builder, sources, program
        self.ifs: list[tuple[BasicBlock, list[BasicBlock]]] = []
        self.loops: list[tuple[BasicBlock, BasicBlock]] = []
        body, matching = program.body, program.matching
        self.continued = {matching[at] for at, i in enumerate(body) if i.op.flow == "continue"}

    def instruction(self, i: Instruction) -> None:
        """Anything but the beginning and the end of a loop."""
        flow = i.op.flow
        if flow == "else":
            self.begin_else()
            return
        if flow == "if" or (i.sources and flow != "endif"):
            self.begin_if(i)
        if flow in ("break", "continue"):
            self.leave(flow)
        if flow == "endif" or (i.sources and flow != "if"):
            self.end_if()

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
        self.ifs.append((b.block, []))
        b.start(b.block)

    def begin_else(self) -> None:
        tests, ends = self.ifs[-1]
        ends.append(self.builder.block)
        self.builder.items.append("else")
        self.builder.start(tests)

    def end_if(self) -> None:
        if not self.ifs[-1][1]:
            self.begin_else()
        _, ends = self.ifs.pop()
        self.builder.items.append("endif")
        self.builder.start(*ends, self.builder.block)

    def leave(self, flow: str) -> None:
        """break or continue: the block ends here, what follows is not reached."""
        header, behind = self.loops[-1]
        self.builder.go_to(behind if flow == "break" else header)
        self.builder.items.append(flow)
        self.builder.start()

    def begin_loop(self) -> None:
        b = self.builder
        b.items.append("loop")
        behind = BasicBlock(b.depth, sealed=False)
        b.depth += 1
        header = b.start(b.block)
        header.sealed = False
        self.loops.append((header, behind))

    def end_loop(self, at: int) -> None:
        """End the loop that began at ``at``."""
        b = self.builder
        header, behind = self.loops.pop()
        b.go_to(header)
        reached = not header.dead
        b.seal(header)
        header.dead = not reached
        b.items.append("endloop")
        b.depth -= 1
        b.block = behind
        if reached and not behind.preds:
            raise refuse(self.program, at, "nothing leaves this loop: it needs a break that is reached")
        b.seal(behind)
        b.items.append(behind)

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
