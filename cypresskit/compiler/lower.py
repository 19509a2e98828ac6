"""Lower IL to scalar operations: the first pass.

Each component of an IL register becomes a variable, and each write to it a new word
(``ssa``). A `mov` becomes no operation unless it loads a constant or modifies its operand.
``sources`` says what an instruction reads, ``expansion`` what it computes. This module handles
whole instructions, and turns control flow into blocks and keywords. A conditional exit of a loop
becomes an if around a break.
"""

from cypresskit.compiler.expansion import scalar
from cypresskit.compiler.ir import (
    BasicBlock,
    FetchDetail,
    Function,
    LdsAccess,
    Src,
    StoreDetail,
    Word,
    error_at,
)
from cypresskit.compiler.isa import comparison
from cypresskit.compiler.sources import Sources
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.compiler.target import Target
from cypresskit.devices import WAVEFRONT
from cypresskit.il import Dest, Instruction, Program
from cypresskit.il.dataflow import lds_words


def lower(program: Program, target: Target) -> Function:
    """Return a program's scalar form. A workgroup of one wavefront runs in step and needs no
    barrier.
    """
    return _Lowering(program, target).run()


class _Lowering:
    """Lowers one program.

    Attributes
    ----------
    ifs
        The open ifs: the block that tests, and the ends of the parts so far.
    loops
        The open loops: the header block, which every iteration begins with, and the block after the
        loop.
    barriers
        Whether a workgroup has several wavefronts.
    lds_base, lds_bytes
        The first byte of each LDS array, and the bytes of all.
    """

    def __init__(self, program: Program, target: Target):
        self.program = program
        self.body = program.body
        self.target = target
        self.builder = OpBuilder()
        self.sources = Sources(self.builder, program)
        self.ifs: list[tuple[BasicBlock, list[BasicBlock]]] = []
        self.loops: list[tuple[BasicBlock, BasicBlock]] = []
        self.barriers = program.group > WAVEFRONT
        self.lds_base = {}
        self.lds_bytes = 0
        for n, size in sorted(program.lds.items()):
            self.lds_base[n] = self.lds_bytes
            self.lds_bytes += size

    def run(self) -> Function:
        for at in range(len(self.body)):
            self.instruction(at)
        inputs = [word for word in self.builder.places.values() if word.kind == "input"]
        return Function(self.program, _reached(self.builder.items), inputs)

    # Control flow

    def begin_loop(self) -> None:
        b = self.builder
        b.items.append("loop")
        exit_block = BasicBlock(b.depth, sealed=False)
        b.depth += 1
        header = b.begin_block(b.block)
        header.sealed = False
        header.loop = b.at
        self.loops.append((header, exit_block))

    def end_loop(self) -> None:
        b = self.builder
        header, exit_block = self.loops.pop()
        b.add_edge(header)
        reached = not header.dead  # from above; the back edge alone doesn't make a loop reachable
        b.seal(header)
        header.dead = not reached
        b.items.append("endloop")
        b.depth -= 1
        b.block = exit_block
        if reached and not exit_block.preds:
            what = "nothing leaves this loop: it needs a break that is reached"
            raise error_at(self.program, header.loop, what)
        b.seal(exit_block)
        b.items.append(exit_block)

    def control(self, i: Instruction) -> None:
        flow = i.op.flow
        b = self.builder
        if flow == "loop":
            self.begin_loop()
        if flow == "endloop":
            self.end_loop()
        if flow == "else":
            self.begin_else()
        if flow == "if" or (i.sources and flow == "break"):
            self.begin_if(i)
        if flow == "break":  # the block ends here; what follows is unreachable
            b.add_edge(self.loops[-1][1])
            b.items.append(flow)
            b.begin_block()
        if flow == "endif" or (i.sources and flow != "if"):
            self.end_if()

    def begin_if(self, i: Instruction) -> None:
        """Begin an if. Its then-part runs if the instruction's condition holds."""
        b = self.builder
        wanted = True
        if i.controls.relop:
            srcs = [self.sources.operand(i, n, 0) for n in (0, 1)]
            compare, srcs = comparison(i.relation, "f", srcs)
            value = b.emit(compare, *srcs)
        else:
            value = self.sources.operand(i, 0, 0).value
            wanted = i.relation == "ne"
        b.append("PRED_SETNE_INT" if wanted else "PRED_SETE_INT", value, 0)
        b.items.append("if")
        self.ifs.append((b.block, []))
        b.begin_block(b.block)

    def begin_else(self) -> None:
        tests, ends = self.ifs[-1]
        ends.append(self.builder.block)
        self.builder.items.append("else")
        self.builder.begin_block(tests)

    def end_if(self) -> None:
        if not self.ifs[-1][1]:
            self.begin_else()
        _, ends = self.ifs.pop()
        self.builder.items.append("endif")
        self.builder.begin_block(*ends, self.builder.block)

    # Instructions

    def instruction(self, at: int) -> None:
        i = self.body[at]
        self.builder.at = at
        self.check_chip(i)
        if i.op.flow:
            self.control(i)
        elif i.op.kind == "fetch":
            self.fetch(i)
        elif i.op.kind == "lds":
            self.lds(i)
        elif i.op.kind == "fence":
            if self.barriers and i.controls.threads:
                self.builder.append("GROUP_BARRIER")
        elif i.dest is not None:
            self.alu(i, i.dest)

    def check_chip(self, i: Instruction) -> None:
        """Raise ``CompileError`` for an instruction that the chip can't do."""
        name = self.target.name
        most = self.target.lds_bytes
        what = ""
        if i.op.double and not self.target.double_fmas:
            what = (
                f"{i.op.name} works on doubles, and the {name} has none: compute in single"
                " precision"
            )
        elif i.op.kind == "lds" and self.lds_bytes > most:
            what = (
                f"a workgroup's {self.lds_bytes} bytes of LDS are more than the {most} on {name}:"
                " share fewer values, or let the work-items of a group fetch them"
            )
        if what:
            raise error_at(self.program, self.builder.at, what)

    def alu(self, i: Instruction, dest: Dest) -> None:
        op, b, positions = i.op, self.builder, dest.written
        words: dict[int, Word] = {}
        if op.double:
            srcs: list[Src] = []
            for n, kind in enumerate(op.sources):
                srcs += (
                    self.sources.double(i, n) if kind == "d" else [self.sources.operand(i, n, 0)]
                )
            results = b.append(op.hardware, *srcs).results
            if op.result != "d":
                results = [results[0]] * 2
            words = {p: results[p % 2] for p in positions}
        elif op.across:
            places = range(op.across)
            total, *parts = [
                b.emit("MUL_IEEE", *(self.sources.operand(i, n, p) for n in (0, 1))) for p in places
            ]
            for part in parts:
                total = b.emit("ADD", total, part)
            words = dict.fromkeys(positions, total)
        else:
            for p in positions:
                srcs = [self.sources.operand(i, n, p) for n in range(len(op.sources))]
                words[p] = scalar(b, op, srcs)
        self.write(dest, words)

    def write(self, dest: Dest, words: dict[int, Word]) -> None:
        b, register = self.builder, dest.register
        if register.kind == "r":
            for c, word in words.items():
                b.block.defs[register.index, c] = word
                word.home = c if word.home is None else word.home
            return
        mask = tuple(sorted(words))
        srcs = [words[c] for c in mask] + self.sources.address(register)
        name, place = (
            ("EXPORT", register.index) if register.kind == "o" else ("MEM_WRITE", register.element)
        )
        b.append(name, *srcs, detail=StoreDetail(place, mask))

    def fetch(self, i: Instruction) -> None:
        srcs = [self.builder.plain(self.sources.operand(i, 0, axis)) for axis in (0, 1)]
        detail = FetchDetail(i.controls.aoffimmi[:2], i.controls.resource)
        results = self.builder.append("SAMPLE", *srcs, detail=detail).results
        if i.dest is not None:
            self.write(i.dest, {c: results[c] for c in i.dest.written})

    def lds(self, i: Instruction) -> None:
        b = self.builder
        operand = self.sources.operand
        store = i.op.store
        vector = i.op.words > 1
        array = i.controls.id
        size = self.program.lds[array]
        base = self.lds_base[array]
        address = operand(i, 0, 0).value
        if base:
            address = b.emit("ADD_INT", address, base)
        components = lds_words(i)
        popped_words: dict[int, Word] = {}
        for first in range(0, len(components), 2):
            pair = components[first : first + 2]
            start = b.emit("ADD_INT", address, 4 * pair[0]) if pair[0] else address
            detail = LdsAccess(array, base, size, pair[-1] - pair[0])
            relative = "_REL" if len(pair) == 2 else ""
            if store:
                data = [b.plain(operand(i, 2 if vector else 1, c)) for c in pair]
                b.append(f"LDS_WRITE{relative}", start, *data, detail=detail)
            else:
                read = b.append(f"LDS_READ{relative}_RET", start, detail=detail)
                popped_words |= zip(pair, b.append("LDS_POP", popped=read).results)
        if not store and i.dest is not None:
            self.write(
                i.dest, popped_words if vector else dict.fromkeys(i.dest.written, popped_words[0])
            )


def _reached(items: list[BasicBlock | str]) -> list[BasicBlock | str]:
    """Return the items that control reaches: after a break, none before the enclosing
    construct goes on.
    """
    reached: list[BasicBlock | str] = []
    dead = False
    depth = 0
    for item in items:
        if not dead:
            reached.append(item)
            dead = isinstance(item, BasicBlock) and item.dead
        elif item in ("if", "loop"):
            depth += 1
        elif depth:
            depth -= item in ("endif", "endloop")
        elif item in ("else", "endif", "endloop"):
            reached.append(item)
            dead = False
    return reached
