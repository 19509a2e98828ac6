"""From IL to scalar operations: the first pass.

Each component of an IL register becomes a variable of its own, and each write to it a new value (``ssa``). So a `mov`
is no operation at all, unless it loads a constant or changes its operand. What the chip has no instruction for is
written out here: 32-bit division, dp4, source modifiers other than negate and absolute, comparisons of the other way.

A loop that tests its condition first and computes little for it is turned over: the test is copied in front of the
loop, and the loop then tests at its end, where its operations share bundles with the work.
"""

import math
import struct
import sys

from cypresskit.compiler.ir import Block, CompileError, Function, Op, Src, Value
from cypresskit.compiler.isa import OPS
from cypresskit.compiler.ssa import Builder
from cypresskit.devices import Device
from cypresskit.il import Dest, Instruction, Program, Register, Source

ONE, HALF, SIGN, NAN = 0x3F800000, 0x3F000000, 0x80000000, 0x7FC00000
TURNED_OVER = 6  # instructions before a loop's test that are still copied

#: IL opcodes with a hardware operation of the same operands, and those that take them the other way round.
SAME = {
    "add": "ADD", "mul": "MUL_IEEE", "mad": "MULADD_IEEE", "fma": "FMA", "flr": "FLOOR", "frc": "FRACT",
    "min": "MIN_DX10", "max": "MAX_DX10", "ge": "SETGE_DX10", "eq": "SETE_DX10", "ne": "SETNE_DX10",
    "iadd": "ADD_INT", "isub": "SUB_INT", "iand": "AND_INT", "ior": "OR_INT", "ixor": "XOR_INT", "inot": "NOT_INT",
    "ishr": "ASHR_INT", "imin": "MIN_INT", "imax": "MAX_INT", "umin": "MIN_UINT", "umax": "MAX_UINT",
    "ige": "SETGE_INT", "ieq": "SETE_INT", "ine": "SETNE_INT", "uge": "SETGE_UINT",
    "imul": "MULLO_INT", "umul": "MULLO_INT", "ftoi": "FLT_TO_INT", "ftou": "FLT_TO_UINT", "itof": "INT_TO_FLT",
    "utof": "UINT_TO_FLT", "rcp": "RECIP_IEEE", "sqrt": "SQRT_IEEE",
    "dadd": "ADD_64", "dmul": "MUL_64", "dmad": "FMA_64", "dge": "SETGE_64", "deq": "SETE_64", "dne": "SETNE_64",
    "d2f": "FLT64_TO_FLT32", "f2d": "FLT32_TO_FLT64",
}  # fmt: skip
SWAPPED = {"lt": "SETGT_DX10", "ilt": "SETGT_INT", "ult": "SETGT_UINT", "dlt": "SETGT_64"}
RELATIONS = {
    "ge": ("SETGE_DX10", False),
    "gt": ("SETGT_DX10", False),
    "le": ("SETGE_DX10", True),
    "lt": ("SETGT_DX10", True),
    "eq": ("SETE_DX10", False),
    "ne": ("SETNE_DX10", False),
}
SCALED = ("MOV", "ADD", "MUL_IEEE", "FLOOR", "FRACT", "MIN_DX10", "MAX_DX10", "RECIP_IEEE", "SQRT_IEEE")
INPUTS = {  # register, first channel, and whether all components are the same word
    "vWinCoord0": (0, 0, False),
    "vTidInGrp": (0, 0, False),
    "vTidInGrpFlat": (0, 3, True),
    "vThreadGrpId": (1, 0, False),
    "vThreadGrpIdFlat": (1, 3, True),
}


def lower(program: Program, device: Device) -> Function:
    """The scalar form of a program. A workgroup of one wavefront runs in step and needs no barrier."""
    limit = sys.getrecursionlimit()  # a read looks back through as many blocks as the program has branches
    sys.setrecursionlimit(max(limit, 1000 + 10 * len(program.body)))
    try:
        return _Lowering(program, device).run()
    finally:
        sys.setrecursionlimit(limit)


class _Lowering(Builder):
    def __init__(self, program: Program, device: Device):
        super().__init__()
        self.program, self.body, self.device = program, program.body, device
        self.barriers = math.prod(program.group) > device.wavefront
        self.frames: list[dict] = []
        bases, total = {}, 0
        for n, (_, size) in sorted(program.lds.items()):
            bases[n] = total
            total += size
        self.lds_base, self.lds_bytes = bases, total

    def run(self) -> Function:
        self.range(0, len(self.body))
        inputs = [v for v in self.places.values() if v.kind == "input"]
        return Function(self.program, self.items, inputs)

    # Operands

    def component(self, source: Source, letter: str) -> Value:
        if letter in "01":
            return self.const(ONE if letter == "1" else 0)
        c = "xyzw".index(letter)
        return self.register(source.register, c)

    def register(self, register: Register, c: int) -> Value:
        kind, n = register.kind, register.index
        if kind == "r":
            return self.read((n, c), self.block)
        if kind == "l":
            return self.const(self.program.literals[n][c])
        if kind == "cb":
            return self.place("constant", n, register.element, c)
        if kind == "g":
            return self.global_read(register)[c]
        if kind == "vWinCoord0" and c >= 2:
            return self.const(ONE if c == 3 else 0)
        if kind in INPUTS:
            gpr, first, same = INPUTS[kind]
            return self.const(0) if c == 3 and not same else self.place("input", gpr, first if same else c)
        return self.absolute_id(kind, c)

    def absolute_id(self, kind: str, c: int) -> Value:
        """vAbsTid and vAbsTidFlat: group number times group size plus number in the group."""
        x, y, z = self.program.group
        flat = kind == "vAbsTidFlat"
        if c == 3 and not flat:
            return self.const(0)
        group, within = self.place("input", 1, 3 if flat else c), self.place("input", 0, 3 if flat else c)
        size = x * y * z if flat else (x, y, z)[c]
        return self.emit("ADD_INT", self.times(group, self.const(size)), within)

    def times(self, a: Value, b: Value) -> Value:
        """a * b modulo 2^32; a shift where b is a power of two."""
        if b.kind == "const" and b.bits.bit_count() == 1:
            return self.emit("LSHL_INT", a, self.const(b.bits.bit_length() - 1)) if b.bits > 1 else a
        return self.emit("MULLO_INT", a, b)

    def global_read(self, register: Register) -> list[Value]:
        if self.gread is None or self.gread[0] != register:
            srcs = (
                [] if register.address is None else [Src(self.component(register.address, register.address.swizzle[0]))]
            )
            op = Op("MEM_READ", srcs, self.at, words=4, info={"offset": register.element})
            self.gread = (register, self.append(op).results)
        return self.gread[1]

    gread: tuple[Register, list[Value]] | None = None

    def operand(self, i: Instruction, n: int, p: int) -> Src:
        """Source ``n`` at position ``p``, its modifiers applied or kept for the op that reads it."""
        source = i.sources[n]
        value = self.component(source, source.swizzle[p])
        negate = "xyzw"[p] in source.negate
        if i.op.float_modifiers(n):
            return self.modified(value, source, negate)
        return Src(self.emit("SUB_INT", self.const(0), value)) if negate else Src(value)

    def double(self, i: Instruction, n: int) -> list[Src]:
        source = i.sources[n]
        low, high = (self.component(source, source.swizzle[p]) for p in (0, 1))
        return [Src(low), self.modified(high, source, source.negates_double)]

    def modified(self, value: Value, source: Source, negate: bool) -> Src:
        if source.invert:
            value = self.emit("ADD", self.const(ONE), Src(value, True))
        if source.bias:
            value = self.emit("ADD", value, self.const(HALF | SIGN))
        if source.x2:
            value = self.emit("MUL_IEEE", value, self.const(0x40000000))
        if source.sign:
            above = self.emit("AND_INT", self.emit("SETGT_DX10", value, self.const(0)), self.const(ONE))
            below = self.emit("AND_INT", self.emit("SETGT_DX10", self.const(0), value), self.const(ONE | SIGN))
            nan = self.emit("AND_INT", self.emit("SETNE_DX10", value, value), self.const(NAN))
            value = self.emit("OR_INT", self.emit("OR_INT", above, below), nan)
        return Src(value, negate, source.abs)

    def plain(self, src: Src) -> Value:
        """The operand as a value, its modifiers carried out."""
        return self.emit("MOV", src) if src.neg or src.abs else src.value

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

    def scalar(self, name: str, srcs: list[Src]) -> Value:
        """One component of an arithmetic instruction."""
        if name == "mov":
            value = srcs[0].value
            constant = value.kind == "const" or (value.op is not None and _loads_constant(value.op))
            return self.emit("MOV", srcs[0]) if constant or srcs[0].neg or srcs[0].abs else value
        if name in SAME:
            if OPS[SAME[name]].reads == 3:  # operations of three operands take no absolutes
                srcs = [Src(self.emit("MOV", Src(s.value, False, True)), s.neg) if s.abs else s for s in srcs]
            return (
                self.times(srcs[0].value, srcs[1].value) if name in ("imul", "umul") else self.emit(SAME[name], *srcs)
            )
        if name in SWAPPED:
            return self.emit(SWAPPED[name], srcs[1], srcs[0])
        if name == "sub":
            return self.emit("ADD", srcs[0], Src(srcs[1].value, not srcs[1].neg, srcs[1].abs))
        if name in ("ishl", "ushr"):  # the chip gives 0 for counts above 31, IL takes the low five bits
            count = srcs[1].value
            count = (
                self.const(count.bits & 31) if count.kind == "const" else self.emit("AND_INT", count, self.const(31))
            )
            return self.emit("LSHL_INT" if name == "ishl" else "LSHR_INT", srcs[0], count)
        if name == "cmov_logical":
            return self.emit("CNDE_INT", srcs[0], self.plain(srcs[2]), self.plain(srcs[1]))
        if name == "div":
            quotient = self.emit("MUL_IEEE", srcs[0], self.emit("RECIP_IEEE", srcs[1]))
            return self.emit("DIV_IEEE", self.plain(srcs[0]), self.plain(srcs[1]), quotient)
        if name == "inegate":
            return self.emit("SUB_INT", self.const(0), srcs[0])
        a, b, *rest = (s.value for s in srcs)
        if name in ("imad", "umad"):
            return self.emit("ADD_INT", self.times(a, b), rest[0])
        return self.divided(a, b, name == "umod")

    def divided(self, a: Value, b: Value, rest: bool) -> Value:
        """a / b or a mod b of unsigned integers: by reciprocal, off by at most one, then corrected."""
        if b.kind == "const" and b.bits.bit_count() == 1:
            if rest:
                return self.emit("AND_INT", a, self.const(b.bits - 1))
            return self.emit("LSHR_INT", a, self.const(b.bits.bit_length() - 1))
        quotient = self.emit("MULHI_UINT", self.emit("RECIP_UINT", b), a)
        left = self.emit("SUB_INT", a, self.emit("MULLO_INT", quotient, b))
        more = self.emit("SETGE_UINT", left, b)  # all ones, that is -1, where one more fits
        if rest:
            result = self.emit("SUB_INT", left, self.emit("AND_INT", more, b))
        else:
            result = self.emit("SUB_INT", quotient, more)
        return self.emit("CNDE_INT", b, self.const(0xFFFFFFFF), result)

    def doubles(self, name: str, srcs: list[Src]) -> list[Value]:
        if name == "ddiv":
            return self.double_quotient(srcs)
        if name == "dlt":
            return self.pair("SETGT_64", srcs[2:] + srcs[:2])
        if name == "dmad":
            srcs = [Src(self.emit("MOV", Src(s.value, False, True)), s.neg) if s.abs else s for s in srcs]
        return self.pair(SAME[name], srcs)

    def pair(self, name: str, srcs: list[Src]) -> list[Value]:
        op = Op(name, srcs, self.at, words=2 if OPS[name].double_result else 1)
        return self.append(op).results

    def double_quotient(self, srcs: list[Src]) -> list[Value]:
        """a / b: the reciprocal of b in single precision, two steps of Newton, a product, the last rounding."""
        a, b = ([Src(s[0].value), Src(self.plain(s[1]))] for s in (srcs[:2], srcs[2:]))
        one = [Src(self.const(0)), Src(self.const(0x3FF00000))]
        minus = [b[0], Src(b[1].value, True)]
        guess = self.emit("RECIP_IEEE", self.pair("FLT64_TO_FLT32", b)[0])
        y = [Src(v) for v in self.pair("FLT32_TO_FLT64", [Src(guess)])]
        for _ in range(2):
            error = [Src(v) for v in self.pair("FMA_64", minus + y + one)]
            y = [Src(v) for v in self.pair("FMA_64", error + y + y)]
        quotient = [Src(v) for v in self.pair("MUL_64", a + y)]
        return self.pair("DIV_64", a + b + quotient)

    def scaled(self, i: Instruction, value: Value) -> Value:
        """The result's scale and clamp, on the op that made it where the chip can."""
        if i.shift == 1.0 and not i.saturate:
            return value
        op = value.op
        if op is None or op.at != self.at or op.name not in SCALED or op.clamp or op.omod != 1.0:
            value = self.emit("MOV", value)
            op = value.op
        assert op is not None
        if i.shift in (1.0, 2.0, 4.0, 0.5):
            op.omod = i.shift
        else:
            value = self.emit("MUL_IEEE", value, self.const(_float_bits(i.shift)))
            op = value.op
            assert op is not None
        op.clamp = i.saturate
        return value

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

    # Control flow

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
            self.begin_if(self.body[test], True)
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
            self.flow(self.body[test])
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
            i = self.body[test]
            if i.op.flow == "break" and i.sources:
                loop = [j for j in range(test, end) if self.body[j].op.flow == "continue"]
                return None if any(self.program.matching[j] == at for j in loop) else test
            registers = [s.register for s in i.sources] + ([i.dest.register] if i.dest else [])
            if i.op.kind != "alu" or any(r.kind in ("g", "o") for r in registers):
                return None
        return None


def _loads_constant(op: Op) -> bool:
    return op.name == "MOV" and op.srcs[0].value.kind == "const"


def _float_bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def line_of(program: Program, at: int) -> str:
    """``name:line: text`` of ``body[at]``, for an error."""
    return program.where(program.body[at].line)


def refuse(program: Program, at: int, what: str) -> CompileError:
    """The error for ``body[at]``, naming its line."""
    return CompileError(f"{line_of(program, at)}\n    {what}")
