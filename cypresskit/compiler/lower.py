"""From IL to scalar operations: the first pass.

Each component of an IL register becomes a variable of its own, and each write to it a new word (``ssa``). So a `mov` is
no operation at all, unless it loads a constant or changes its operand. ``sources`` says what an instruction reads,
``expansion`` what it computes, ``control_flow`` where control goes; here are the instructions as wholes: which
components they write, fetches, stores, the local data share.
"""

import math

from cypresskit.compiler.control_flow import Regions
from cypresskit.compiler.expansion import doubles, scalar, scaled
from cypresskit.compiler.ir import FetchDetail, Function, LdsAccess, Src, StoreDetail, Word, refuse
from cypresskit.compiler.sources import ONE, Sources, plain, times
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.devices import Device
from cypresskit.il import Dest, Instruction, Program


def lower(program: Program, device: Device, rotate: bool = True) -> Function:
    """The scalar form of a program, with its loops rotated where they can be. A workgroup of one wavefront runs in step
    and needs no barrier."""
    return _Lowering(program, device, rotate).run()


class _Lowering:
    """``tests``: where the test of each loop that is open stands if the loop is rotated, or None."""

    def __init__(self, program: Program, device: Device, rotate: bool):
        self.program, self.body, self.device, self.rotate = program, program.body, device, rotate
        self.builder = OpBuilder()
        self.sources = Sources(self.builder, program)
        self.flow = Regions(self.builder, self.sources, program)
        self.tests: list[int | None] = []
        self.barriers = math.prod(program.group) > device.wavefront
        self.lds_base, self.lds_bytes = {}, 0
        for n, (_, size) in sorted(program.lds.items()):
            self.lds_base[n] = self.lds_bytes
            self.lds_bytes += size

    def run(self) -> Function:
        at = 0
        while at < len(self.body):
            flow = self.body[at].op.flow
            if flow == "loop":
                at = self.begin_loop(at)
                continue
            if flow == "endloop":
                self.end_loop(self.program.matching[at])
            else:
                self.instruction(at)
            at += 1
        inputs = [word for word in self.builder.places.values() if word.kind == "input"]
        return Function(self.program, self.builder.items, inputs)

    def begin_loop(self, at: int) -> int:
        """Begin a loop, its test in front of it if it is rotated. Returns the next instruction."""
        test = self.flow.test_to_rotate(at) if self.rotate else None
        self.tests.append(test)
        if test is not None:
            self.straight(at + 1, test)
            self.flow.begin_if(self.body[test], inverted=True)
            at = test
        self.flow.begin_loop()
        return at + 1

    def end_loop(self, at: int) -> None:
        """End the loop that began at ``at``."""
        test = self.tests.pop()
        if test is not None:
            self.straight(at + 1, test)
            self.flow.instruction(self.body[test])
        self.flow.end_loop(at)
        if test is not None:
            self.flow.end_if()

    def straight(self, start: int, stop: int) -> None:
        """The arithmetic before a loop's test, and its place."""
        for at in range(start, stop):
            self.instruction(at)
        self.builder.at = stop

    # Instructions

    def instruction(self, at: int) -> None:
        i = self.body[at]
        self.builder.at = at
        self.check_chip(i)
        if i.op.flow:
            self.flow.instruction(i)
        elif i.op.kind == "fetch":
            self.fetch(i)
        elif i.op.kind == "lds":
            self.lds(i)
        elif i.op.kind == "fence":
            if self.barriers and i.controls.threads:
                self.builder.emit("GROUP_BARRIER", words=0)
        elif i.dest is not None:
            self.alu(i, i.dest)

    def check_chip(self, i: Instruction) -> None:
        """Raise ``CompileError`` for an instruction that the chip has nothing for."""
        name, most = self.device.name, self.device.lds_bytes
        if i.op.double and not self.device.double_fmas:
            what = f"{i.op.name} works on doubles, and the {name} has none: compute in single precision"
            raise refuse(self.program, self.builder.at, what)
        if i.op.kind == "lds" and self.lds_bytes > most:
            what = f"a workgroup's {self.lds_bytes} bytes of LDS are more than the {most} of the {name}: "
            what += "share fewer values, or let the work-items of a group fetch them"
            raise refuse(self.program, self.builder.at, what)

    def alu(self, i: Instruction, dest: Dest) -> None:
        op, b, positions = i.op, self.builder, dest.written
        words: dict[int, Word] = {}
        if op.double:
            srcs: list[Src] = []
            for n, kind in enumerate(op.sources):
                srcs += self.sources.double(i, n) if kind == "d" else [self.sources.operand(i, n, 0)]
            results = doubles(b, op, srcs)
            if op.result != "d":
                results = [scaled(b, i, results[0])] * 2
            words = {p: results[p % 2] for p in positions}
        elif op.across:
            places = range(op.across)
            total, *parts = [b.emit("MUL_IEEE", *(self.sources.operand(i, n, p) for n in (0, 1))) for p in places]
            for part in parts:
                total = b.emit("ADD", total, part)
            words = dict.fromkeys(positions, scaled(b, i, total))
        else:
            done: dict[tuple, Word] = {}
            for p in positions:
                srcs = [self.sources.operand(i, n, p) for n in range(len(op.sources))]
                if op.name == "mov" or tuple(srcs) not in done:
                    done[tuple(srcs)] = scaled(b, i, scalar(b, op, srcs))
                words[p] = done[tuple(srcs)]
        self.write(dest, words)

    def write(self, dest: Dest, words: dict[int, Word]) -> None:
        b, register = self.builder, dest.register
        for c, letter in enumerate(dest.mask):
            if letter in "01":
                words[c] = b.emit("MOV", b.const(ONE if letter == "1" else 0))
        if register.kind == "r":
            for c, word in words.items():
                b.block.defs[register.index, c] = word
                word.home = c if word.home is None else word.home
            return
        mask = tuple(sorted(words))
        srcs, address = [Src(words[c]) for c in mask], register.address
        if address is not None:
            srcs.append(Src(self.sources.component(address, address.swizzle[0])))
        name, place = ("EXPORT", register.index) if register.kind == "o" else ("MEM_WRITE", register.element)
        b.emit(name, *srcs, words=0, detail=StoreDetail(place, mask))

    def fetch(self, i: Instruction) -> None:
        resource = i.controls.resource
        texture = self.program.textures[resource]
        srcs = [Src(plain(self.builder, self.sources.operand(i, 0, axis))) for axis in range(texture.dimensions)]
        offset = i.controls.aoffimmi[: texture.dimensions]
        detail = FetchDetail(offset, resource, texture.unnormalised)
        results = self.builder.append("SAMPLE" if i.opcode == "sample" else "LD", srcs, 4, detail).results
        if i.dest is not None:
            self.write(i.dest, {c: results[c] for c in i.dest.written})

    # Local data share

    def lds(self, i: Instruction) -> None:
        b, operand = self.builder, self.sources.operand
        store, vector = i.op.store, i.op.words > 1
        block = i.controls.id
        stride, size = self.program.lds[block]
        base, address = self.lds_base[block], operand(i, 0, 0).value
        if stride:
            offset = operand(i, 1, 0) if vector else operand(i, 0, 1)
            address = b.emit("ADD_INT", times(b, address, b.const(stride)), offset)
        if base:
            address = b.emit("ADD_INT", address, b.const(base))
        components = list(i.dest.written) if vector and i.dest else [0]
        found: dict[int, Word] = {}
        for first in range(0, len(components), 2):
            pair = components[first : first + 2]
            start = b.emit("ADD_INT", address, b.const(4 * pair[0])) if pair[0] else address
            detail = LdsAccess(block, base, size, pair[-1] - pair[0])
            if store:
                data = [plain(b, operand(i, 2 if vector else 1, c)) for c in pair]
                b.emit("LDS_WRITE" if len(pair) == 1 else "LDS_WRITE_REL", start, *data, words=0, detail=detail)
            else:
                name = "LDS_READ_RET" if len(pair) == 1 else "LDS_READ_REL_RET"
                read = b.append(name, [Src(start)], 0, detail)
                pop = b.append("LDS_POP", [], len(pair))
                pop.popped = read
                found |= zip(pair, pop.results)
        if not store and i.dest is not None:
            self.write(i.dest, found if vector else dict.fromkeys(i.dest.written, found[0]))
