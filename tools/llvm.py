"""A second opinion: the kernels as compiled by LLVM's back end for this chip (triple ``r600--``,
cpu ``cypress``).

    python -m tools.llvm

writes cypresskit/data/llvm.json, with LLVM's version and the date; lesson 03 shows it.

The compiler's scalar form is written as LLVM IR, blocks and phis one to one; in the resulting
assembly, registers and the bundles of the innermost loop are counted. Kernels with doubles or LDS,
which can't be written this way, are not in the record. The rest is up to the back end's own
scheduler: it is nobody's optimum.
"""

import datetime
import json
import re
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
from llvmlite import ir

import cypresskit as ck
from cypresskit.compiler.ir import (
    BasicBlock,
    CompileError,
    FetchDetail,
    Function,
    Op,
    Src,
    StoreDetail,
    Word,
    refuse,
)
from cypresskit.compiler.lower import lower
from cypresskit.compiler.simplify import simplify

FILE = Path(ck.__file__).parent / "data" / "llvm.json"
I32, I64, FLOAT, V4 = (
    ir.IntType(32),
    ir.IntType(64),
    ir.FloatType(),
    ir.VectorType(ir.FloatType(), 4),
)
TEXTURE = ir.FunctionType(V4, [V4, *[I32] * 9])
RELATIONS = {"eq": "==", "ne": "!=", "ge": ">=", "gt": ">", "lt": "<", "le": "<="}
PLAIN = {
    "ADD": "fadd",
    "MUL_IEEE": "fmul",
    "ADD_INT": "add",
    "SUB_INT": "sub",
    "AND_INT": "and_",
    "LSHL_INT": "shl",
    "LSHR_INT": "lshr",
    "MULLO_INT": "mul",
}
FMA = ir.FunctionType(FLOAT, [FLOAT] * 3)
MEANING: dict[str, Callable] = {
    name: getattr(ir.IRBuilder, made) for name, made in PLAIN.items()
} | {
    "MOV": lambda b, x: x,
    "MULADD_IEEE": lambda b, *xyz: b.call(
        b.module.declare_intrinsic("llvm.fmuladd", [FLOAT], FMA), xyz
    ),
    "FLT_TO_INT": lambda b, x: b.fptosi(x, I32),
    "INT_TO_FLT": lambda b, x: b.sitofp(x, FLOAT),
    "MULHI_UINT": lambda b, x, y: b.trunc(
        b.lshr(b.mul(b.zext(x, I64), b.zext(y, I64)), I64(32)), I32
    ),
    "CNDE_INT": lambda b, x, y, z: b.select(b.icmp_signed("==", x, I32(0)), y, z),
    "RECIP_UINT": lambda b, x: b.udiv(I32(-1), x),
}


def opinion(program: ck.Program) -> dict[str, int]:
    """Registers and bundles of the innermost loop. Raises ``CompileError`` for doubles and LDS."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    function = simplify(lower(program, ck.HD5870.limits))
    module = llvm.parse_assembly(str(ModuleWriter(function).module))
    module.verify()
    machine = llvm.Target.from_triple("r600--").create_target_machine(cpu="cypress", opt=3)
    return read(machine.emit_assembly(module))


def read(assembly: str) -> dict[str, int]:
    """The figures of the back end's assembly: control flow, then the clauses that it names by
    address. A bundle's slots have a line each, with a star at the last one.
    """
    _, *clauses = re.split(r"(ALU|Fetch) clause starting at (\d+):", assembly)
    last = re.compile(r"^\s+[A-Z]\S* +\*", re.MULTILINE)
    bundles = {
        address: len(last.findall(body))
        for kind, address, body in zip(*[iter(clauses)] * 3, strict=True)
    }
    loop = re.search(r"LOOP_START(?:(?!LOOP_START).)*?END_LOOP", assembly, re.DOTALL)
    named = re.findall(r"^\s*ALU.*?@(\d+)", loop[0], re.MULTILINE) if loop else []
    registers = len(set(re.findall(r"\bT(\d+)\.", assembly)))
    return {"registers": registers, "loop_bundles": sum(bundles[address] for address in named)}


class ModuleWriter:
    """LLVM IR of a function. Words are i32; floats are bitcasts of them."""

    def __init__(self, function: Function):
        self.function, self.module, self.values = function, ir.Module(), dict[Word, ir.Value]()
        self.main = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [V4, V4]), "main")
        self.main.calling_convention = "amdgpu_ps"
        for register in self.main.args:
            register.add_attribute("inreg")
        self.blocks = {
            block: self.main.append_basic_block() for block in function.blocks if not block.dead
        }
        for block, made in self.blocks.items():
            self.values |= {phi: ir.IRBuilder(made).phi(I32) for phi in block.phis}
        for block in self.blocks:
            self.block(block)
        for phi, (before, value) in (
            (p, arg) for block in self.blocks for p in block.phis for arg in p.args.items()
        ):
            if value.kind in ("constant", "input"):
                raise CompileError(
                    "an input that flows into a loop unchanged is not known to the way through LLVM"
                )
            self.values[phi].add_incoming(self.word(value), self.blocks[before])

    def word(self, value: Word) -> ir.Value:
        """A word as i32."""
        if value.kind == "const":
            return I32(value.bits)
        if value.kind == "constant":
            buffer, element, channel = value.place
            vector = self.load(8 + buffer, I32(16 * element))
        elif value.kind == "input":
            register, channel = value.place
            vector = self.main.args[register]
        else:
            return self.values[value]
        return self.b.bitcast(self.b.extract_element(vector, I32(channel)), I32)

    def load(self, space: int, address: ir.Value) -> ir.Value:
        return self.b.load(self.b.inttoptr(address, ir.PointerType(addrspace=space)), typ=V4)

    def operand(self, src: Src, float_: bool) -> ir.Value:
        if src.neg or src.abs:
            raise CompileError("a negated operand is not known to the way through LLVM")
        return self.b.bitcast(self.word(src.value), FLOAT) if float_ else self.word(src.value)

    def vector(self, srcs: list[Src]) -> ir.Value:
        made = ir.Constant(V4, ir.Undefined)
        for n, src in enumerate(srcs):
            made = self.b.insert_element(made, self.operand(src, True), I32(n))
        return made

    def block(self, block: BasicBlock) -> None:
        self.b, test, targets = (
            ir.IRBuilder(self.blocks[block]),
            None,
            [self.blocks[b] for b in block.succs],
        )
        for op in block.ops:
            if op.row.predicate:
                test = self.computed(op)
            else:
                self.op(op)
        if test:
            self.b.cbranch(test, *targets)
        else:
            self.b.branch(*targets) if targets else self.b.ret_void()

    def op(self, op: Op) -> None:
        detail = op.detail
        if isinstance(detail, FetchDetail) and op.name != "LD":
            if op.samples:
                vector = self.sampled(op, detail)
            else:
                vector = self.load(1, self.address(detail.offset[0], op.srcs))
            parts = (
                self.b.extract_element(vector, I32(channel)) for channel in range(len(op.results))
            )
            self.values |= {
                word: self.b.bitcast(part, I32) for word, part in zip(op.results, parts)
            }
        elif (
            isinstance(detail, StoreDetail)
            and op.name == "MEM_WRITE"
            and detail.mask == (0, 1, 2, 3)
        ):
            vector, address = self.vector(op.srcs[:4]), self.address(detail.place, op.srcs[4:])
            self.b.store(vector, self.b.inttoptr(address, ir.PointerType(addrspace=1)))
        elif len(op.results) == 1 and (op.row.relation or op.name in MEANING):
            self.values[op.results[0]] = self.computed(op)
        else:
            raise refuse(
                self.function.program, op.at, f"{op.name} is not known to the way through LLVM"
            )

    def computed(self, op: Op) -> ir.Value:
        """The i32 that an operation computes, or a test's i1."""
        floats = op.row.kind == "float"
        operands = [self.operand(src, floats) for src in op.srcs]
        if relation := RELATIONS.get(op.row.relation):
            unordered = self.b.fcmp_unordered if relation == "!=" else self.b.fcmp_ordered
            whole = self.b.icmp_unsigned if op.row.compares.startswith("u") else self.b.icmp_signed
            holds = (unordered if floats else whole)(relation, *operands)
            return holds if op.row.predicate else self.b.sext(holds, I32)
        result = MEANING[op.name](self.b, *operands)
        return self.b.bitcast(result, I32) if result.type == FLOAT else result

    def sampled(self, op: Op, detail: FetchDetail) -> ir.Value:
        numbers = (*(*detail.offset, 0)[:2], 0, detail.resource, detail.resource, 0, 0, 0, 0)
        fetch = self.module.declare_intrinsic("llvm.r600.tex", fnty=TEXTURE)
        return self.b.call(fetch, [self.vector(op.srcs), *map(I32, numbers)])

    def address(self, offset: int, srcs: list[Src]) -> ir.Value:
        index = self.word(srcs[0].value) if srcs else I32(0)
        return self.b.shl(self.b.add(index, I32(offset)), I32(4))


if __name__ == "__main__":
    kernels = {}
    for name, kernel in ck.kernels.items():
        try:
            kernels[name] = opinion(kernel.program)
        except CompileError as error:
            print(f"{name}: {error}")
    version = ".".join(map(str, llvm.llvm_version_info))
    record = {"llvm": version, "date": str(datetime.date.today()), "kernels": kernels}
    FILE.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
