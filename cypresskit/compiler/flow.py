"""Control flow: ifs and loops of the IL as blocks and the words between them.

Leaving a loop under a condition is an if around a break. A loop that tests its condition first and computes little for
it is turned over: the test is copied in front of the loop, and the loop then tests at its end, where its operations
share bundles with the work.
"""

from cypresskit.compiler.ir import Block, refuse
from cypresskit.compiler.operands import Operands
from cypresskit.il import Instruction, Program

TURNED_OVER = 6  # instructions before a loop's test that are still copied
RELATIONS = {
    "ge": ("SETGE_DX10", False),
    "gt": ("SETGT_DX10", False),
    "le": ("SETGE_DX10", True),
    "lt": ("SETGT_DX10", True),
    "eq": ("SETE_DX10", False),
    "ne": ("SETNE_DX10", False),
}


class Flow(Operands):
    """Builds blocks; ``frames`` are the ifs and loops that are open."""

    def __init__(self, program: Program):
        super().__init__(program)
        self.frames: list[dict] = []

    def range(self, start: int, stop: int) -> None:
        """Lower the instructions ``start`` to ``stop`` of the program."""
        raise NotImplementedError

    def flow(self, i: Instruction) -> None:
        flow = i.op.flow
        if flow == "if":
            self.begin_if(i, False)
        elif flow == "else":
            self.begin_else()
        elif flow == "endif":
            self.end_if()
        elif i.sources:
            self.begin_if(i, False)
            self.leave(flow)
            self.end_if()
        else:
            self.leave(flow)

    def begin_if(self, i: Instruction, inverted: bool) -> None:
        """An if whose then-part runs if the instruction's condition holds (or does not, if ``inverted``)."""
        if i.op.name in ("breakc", "ifc"):
            name, swapped = RELATIONS[str(i.control("relop"))]
            srcs = [self.operand(i, n, 0) for n in (0, 1)]
            value = self.emit(name, *(srcs[::-1] if swapped else srcs))
            wanted = True
        else:
            value, wanted = self.operand(i, 0, 0).value, not i.opcode.endswith("_logicalz")
        test = "PRED_SETNE_INT" if wanted != inverted else "PRED_SETE_INT"
        self.emit(test, value, self.const(0), words=0)
        came = self.block
        self.items.append("if")
        self.frames.append({"kind": "if", "came": came, "ends": []})
        self.start(came)

    def begin_else(self) -> None:
        frame = self.frames[-1]
        frame["ends"].append(self.block)
        frame["kind"] = "else"
        self.items.append("else")
        self.start(frame["came"])

    def end_if(self) -> None:
        if self.frames[-1]["kind"] == "if":
            self.begin_else()
        frame = self.frames.pop()
        self.items.append("endif")
        self.start(*frame["ends"], self.block)

    def leave(self, flow: str) -> None:
        """break or continue: the block ends here, what follows is not reached."""
        frame = next(f for f in reversed(self.frames) if f["kind"] == "loop")
        if not self.block.dead:
            target = frame["exit"] if flow == "break" else frame["header"]
            target.preds.append(self.block)
            self.block.succs.append(target)
        self.items.append(flow)
        self.start()

    def loop(self, at: int, end: int) -> None:
        test = self.turned_over(at, end)
        if test is not None:
            self.range(at + 1, test)
            self.at = test
            self.begin_if(self.program.body[test], True)
        self.items.append("loop")
        before = self.block
        self.depth += 1
        header = self.start(before)
        header.sealed = False
        frame = {"kind": "loop", "header": header, "exit": Block(self.depth - 1, sealed=False)}
        self.frames.append(frame)
        if test is None:
            self.range(at + 1, end)
        else:
            self.range(test + 1, end)
            self.range(at + 1, test)
            self.at = test
            self.flow(self.program.body[test])
        if not self.block.dead:
            header.preds.append(self.block)
            self.block.succs.append(header)
        self.seal(header)
        header.dead = before.dead
        self.items.append("endloop")
        self.frames.pop()
        self.depth -= 1
        self.block = frame["exit"]  # type: ignore[assignment]
        if not self.block.preds and not before.dead:
            raise refuse(self.program, at, "nothing leaves this loop: it needs a break that is reached")
        self.seal(self.block)
        self.items.append(self.block)
        if test is not None:
            self.end_if()

    def turned_over(self, at: int, end: int) -> int | None:
        """Where the test of a loop stands that can be turned over, or None."""
        for test in range(at + 1, min(at + 2 + TURNED_OVER, end)):
            i = self.program.body[test]
            if i.op.flow == "break" and i.sources:
                loop = [j for j in range(test, end) if self.program.body[j].op.flow == "continue"]
                return None if any(self.program.matching[j] == at for j in loop) else test
            registers = [s.register for s in i.sources] + ([i.dest.register] if i.dest else [])
            if i.op.kind != "alu" or any(r.kind in ("g", "o") for r in registers):
                return None
        return None
