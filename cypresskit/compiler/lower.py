"""From IL to scalar operations: the first pass.

Each component of an IL register becomes a variable of its own, and each write to it a new value (``ssa``). So a `mov`
is no operation at all, unless it loads a constant or changes its operand. ``operands`` says what an instruction reads,
``arithmetic`` what it computes, ``flow`` where control goes; here are the instructions as wholes: which components they
write, fetches, stores, the local data share.
"""

import math
import sys

from cypresskit.compiler.flow import Flow
from cypresskit.compiler.ir import Function, Op, Src, Value, refuse
from cypresskit.compiler.operands import ONE
from cypresskit.devices import Device
from cypresskit.il import Dest, Instruction, Program


def lower(program: Program, device: Device) -> Function:
    """The scalar form of a program. A workgroup of one wavefront runs in step and needs no barrier."""
    limit = sys.getrecursionlimit()  # a read looks back through as many blocks as the program has branches
    sys.setrecursionlimit(max(limit, 1000 + 10 * len(program.body)))
    try:
        return _Lowering(program, device).run()
    finally:
        sys.setrecursionlimit(limit)


class _Lowering(Flow):
    def __init__(self, program: Program, device: Device):
        super().__init__(program)
        self.body, self.device = program.body, device
        self.barriers = math.prod(program.group) > device.wavefront
        bases, total = {}, 0
        for n, (_, size) in sorted(program.lds.items()):
            bases[n] = total
            total += size
        self.lds_base, self.lds_bytes = bases, total

    def run(self) -> Function:
        self.range(0, len(self.body))
        inputs = [v for v in self.places.values() if v.kind == "input"]
        return Function(self.program, self.items, inputs)

    # Instructions

    def range(self, start: int, stop: int) -> None:
        at = start
        while at < stop:
            i = self.body[at]
            self.at, self.gread = at, None
            self.check_chip(i)
            if i.op.flow == "loop":
                end = self.program.matching[at]
                self.loop(at, end)
                at = end + 1
                continue
            if i.op.flow:
                self.flow(i)
            elif i.op.kind == "fetch":
                self.fetch(i)
            elif i.op.kind == "lds":
                self.lds(i)
            elif i.op.kind == "fence":
                if self.barriers and i.control("threads"):
                    self.emit("GROUP_BARRIER", words=0)
            elif i.dest is not None:
                self.alu(i, i.dest)
            at += 1

    def check_chip(self, i: Instruction) -> None:
        """Raise ``CompileError`` for an instruction that the chip has nothing for."""
        name, most = self.device.name, self.device.lds_bytes
        if i.op.double and not self.device.double_fmas:
            raise refuse(
                self.program,
                self.at,
                f"{i.op.name} works on doubles, and the {name} has none: compute in single precision",
            )
        if i.op.kind == "lds" and self.lds_bytes > most:
            what = f"a workgroup's {self.lds_bytes} bytes of LDS are more than the {most} of the {name}"
            raise refuse(
                self.program, self.at, f"{what}: share fewer values, or let the work-items of a group fetch them"
            )

    def alu(self, i: Instruction, dest: Dest) -> None:
        op, positions = i.op, dest.written
        values: dict[int, Value] = {}
        if op.double:
            srcs: list[Src] = []
            for n, kind in enumerate(op.sources):
                srcs += self.double(i, n) if kind == "d" else [self.operand(i, n, 0)]
            results = self.doubles(op.name, srcs)
            if op.result != "d":
                results = [self.scaled(i, results[0])] * 2
            values = {p: results[p % 2] for p in positions}
        elif op.name == "dp4":
            parts = [self.emit("MUL_IEEE", *(self.operand(i, n, p) for n in (0, 1))) for p in range(4)]
            total = parts[0]
            for part in parts[1:]:
                total = self.emit("ADD", total, part)
            total = self.scaled(i, total)
            values = dict.fromkeys(positions, total)
        else:
            done: dict[tuple, Value] = {}
            for p in positions:
                srcs = [self.operand(i, n, p) for n in range(len(op.sources))]
                if op.name == "mov" or tuple(srcs) not in done:
                    done[tuple(srcs)] = self.scaled(i, self.scalar(op.name, srcs))
                values[p] = done[tuple(srcs)]
        self.write(dest, values)

    def write(self, dest: Dest, values: dict[int, Value]) -> None:
        for c, letter in enumerate(dest.mask):
            if letter in "01":
                values[c] = self.emit("MOV", self.const(ONE if letter == "1" else 0))
        register = dest.register
        if register.kind == "r":
            for c, value in values.items():
                self.block.defs[register.index, c] = value
            return
        mask = sorted(values)
        srcs = [Src(values[c]) for c in mask]
        if register.kind == "o":
            self.emit("EXPORT", *srcs, words=0, mask=mask, target=register.index)
            return
        address = register.address
        if address is not None:
            srcs.append(Src(self.component(address, address.swizzle[0])))
        self.emit("MEM_WRITE", *srcs, words=0, mask=mask, offset=register.element, indexed=address is not None)

    def fetch(self, i: Instruction) -> None:
        resource = i.control("resource")
        texture = self.program.textures[resource]
        srcs = [Src(self.plain(self.operand(i, 0, axis))) for axis in range(texture.dimensions)]
        offset = tuple(i.control("aoffimmi", (0, 0, 0)))[: texture.dimensions]
        info = {"resource": resource, "offset": offset, "unnormalised": texture.unnormalised}
        op = self.append(Op("SAMPLE" if i.opcode == "sample" else "LD", srcs, self.at, words=4, info=info))
        assert i.dest is not None
        self.write(i.dest, {c: op.results[c] for c in i.dest.written})

    # Local data share

    def lds(self, i: Instruction) -> None:
        store, vector = "store" in i.opcode, i.opcode.endswith("vec")
        block = i.control("id")
        stride, size = self.program.lds[block]
        address = self.operand(i, 0, 0).value
        if stride:
            offset = self.operand(i, 1, 0) if vector else self.operand(i, 0, 1)
            address = self.emit("ADD_INT", self.times(address, self.const(stride)), offset)
        if self.lds_base[block]:
            address = self.emit("ADD_INT", address, self.const(self.lds_base[block]))
        components = list(i.dest.written) if vector and i.dest else [0]
        found: dict[int, Value] = {}
        for first in range(0, len(components), 2):
            pair = components[first : first + 2]
            start = self.emit("ADD_INT", address, self.const(4 * pair[0])) if pair[0] else address
            info = {"block": block, "base": self.lds_base[block], "size": size, "offset": pair[-1] - pair[0]}
            if store:
                data = [self.plain(self.operand(i, 2 if vector else 1, c)) for c in pair]
                name = "LDS_WRITE" if len(pair) == 1 else "LDS_WRITE_REL"
                self.emit(name, start, *data, words=0, **info)
            else:
                name = "LDS_READ_RET" if len(pair) == 1 else "LDS_READ_REL_RET"
                read = self.append(Op(name, [Src(start)], self.at, words=0, info=info))
                pop = self.append(Op("LDS_POP", [], self.at, words=len(pair), info={"read": read}))
                found.update(zip(pair, pop.results, strict=True))
        if not store and i.dest is not None:
            self.write(i.dest, found if vector else dict.fromkeys(i.dest.written, found[0]))
