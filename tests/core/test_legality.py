"""The hardware's rules, one by one: code that breaks each. That the rules forbid nothing else shows
in the catalog and in random programs, whose compiled code breaks none.
"""

import pytest

import cypresskit as ck
from cypresskit.compiler.assembly import (
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.code import Code
from tools.legality import violations

GPRS = 8  # registers of every code below

# Code in small: operations, bundles, clauses


def op(slot: str, name: str, *reads: Read, dest: str = "", number: int = -1, **more) -> Operation:
    """An operation in a slot, a letter; ``dest`` such as "R1.x", its slot's channel if it may be.
    The operations of a bundle count as different, unless given the same ``number``.
    """
    at = "xyzwt".index(slot)
    register, _, letter = dest.partition(".")
    channel = "xyzw".index(letter) if letter else at % 4
    place = (number_of(register), channel) if dest else None
    usual = {"swizzle": "SCL_210" if slot == "t" else "VEC_012", "channel": channel}
    usual |= {"place": 0, "lds": None}
    order = at if number < 0 else number
    return Operation(
        name, at, reads=reads, dest=place, at=0, line=1, number=order, **(usual | more)
    )


def number_of(register: str) -> int:
    return int(register[1:]) + (124 if register[0] == "T" else 0)


def gpr(text: str, **more) -> Read:
    register, letter = text.split(".")
    return Read("gpr", number_of(register), "xyzw".index(letter), **more)


def constant(element: int, letter: str = "x", buffer: int = 0) -> Read:
    return Read("constant", buffer, "xyzw".index(letter), element)


def literal(at: int, bits: int) -> Read:
    return Read("literal", channel=at, bits=bits)


def bundle(*operations: Operation, literals: tuple[int, ...] = ()) -> Bundle:
    return Bundle(operations, literals)


def alu(*bundles: Bundle | Operation, name: str = "ALU") -> Control:
    """A clause of bundles; an operation is a bundle by itself."""
    clause = (bundle(b) if isinstance(b, Operation) else b for b in bundles)
    return Control(name, bundles=tuple(clause))


def fetch(dest: int = 1, source: int | None = 0, name: str = "SAMPLE", **more) -> FetchInstruction:
    usual: dict = {"select": "xyzw", "coordinates": "xy", "offset": (0, 0)}
    return FetchInstruction(
        name, dest, source=source, at=0, line=1, **({"resource": 0} | usual | more)
    )


def tex(*fetches: FetchInstruction) -> Control:
    return Control("TEX", fetches=fetches)


def store(name: str = "MEM_WRITE", source=0, select="xyzw", index: int | None = None) -> Control:
    where = StoreInstruction(name, source, select, 0, index, at=0, line=1)
    return Control("MEM_EXPORT_WRITE", store=where)


def mov(dest: str = "R1.x", source: Read | str = "R0.x", **more) -> Operation:
    read = gpr(source) if isinstance(source, str) else source
    return op(dest[-1], "MOV", read, dest=dest, **more)


def add(slot: str, a: Read, b: Read, **more) -> Operation:
    return op(slot, "ADD", a, b, **more)


def mad(slot: str, *reads: Read, **more) -> Operation:
    return op(slot, "MULADD_IEEE", *reads, **more)


def four(name: str, *reads: Read, letters: str = "xyzw", dests=("", "", "", "")) -> list[Operation]:
    """One operation over several slots."""
    parts = zip(letters, dests)
    return [
        op(slot, name, *reads, dest=dest, number=0, place=n) for n, (slot, dest) in enumerate(parts)
    ]


TEST = op("x", "PRED_SETE_INT", gpr("R0.x"), Read("inline"))
SECOND_TEST = op("y", "PRED_SETE_INT", gpr("R0.x"), Read("inline"))
LDS_READ = op("x", "LDS_READ_RET", gpr("R0.x"))


def chain(*elements: int) -> list[Operation]:
    """Operations that read the x of these elements of cb0, one in each slot."""
    return [op("xyzwt"[n], "MOV", constant(element)) for n, element in enumerate(elements)]


def literals(count: int) -> Bundle:
    bits = tuple(range(10, 10 + count))
    reads = [literal(n, word) for n, word in enumerate(bits)]
    pairs = [add("xyzwt"[n], *reads[2 * n : 2 * n + 2]) for n in range(count // 2)]
    rest = [op("w", "MOV", reads[-1])] if count % 2 else []
    return bundle(*pairs, *rest, literals=bits)


def busy(count: int) -> Control:
    return alu(*[mov()] * count)


# The report's words, and the controls that break the rule.
FAULTS: dict[str, list[Control]] = {
    # memory
    "R8 of 8 registers": [store(source=8)],
    "R9 of 8 registers": [store(index=9)],
    "a memory write can't swizzle: yx__": [store(select="yx__")],
    "17 fetches": [tex(*[fetch()] * 17)],
    "0 fetches": [tex()],
    "R10 of 8 registers": [tex(fetch(dest=10))],
    "R11 of 8 registers": [tex(fetch(source=11))],
    "reads R1.y, which an earlier fetch of the clause writes": [
        tex(fetch(dest=1, select="xy__"), fetch(dest=2, source=1, coordinates="zy"))
    ],
    "select xyzq": [tex(fetch(select="xyzq"))],
    "offset (8, 0)": [tex(fetch(offset=(8, 0)))],
    "offset (0, -9)": [tex(fetch(offset=(0, -9)))],
    "coordinates xyz": [tex(fetch(coordinates="xyz"))],
    # clauses
    "129 slots": [busy(129)],
    "0 slots": [alu()],
    "3 constant windows": [alu(*[op("x", "MOV", constant(32 * n)) for n in range(3)])],
    # bundles
    "two slots write the same word": [
        alu(bundle(mov("R1.x"), op("t", "MOV", gpr("R0.x"), dest="R1.x")))
    ],
    "slots [1, 0]": [alu(bundle(mov("R1.y"), mov("R1.x")))],
    "slot x writes channel y": [alu(op("x", "MOV", gpr("R0.x"), channel=1))],
    "MOV writes channel y from channel x": [
        alu(op("t", "MOV", gpr("R0.x"), dest="R1.y", channel=0))
    ],
    "only MOV reads the LDS queue": [alu(LDS_READ, op("x", "FLOOR", Read("queue"), dest="R1.x"))],
    "RECIP_IEEE in slots [0]": [alu(op("x", "RECIP_IEEE", gpr("R0.x")))],
    "FLT_TO_INT in slots [4]": [alu(op("t", "FLT_TO_INT", gpr("R0.x")))],
    "LDS_WRITE in slots [1]": [alu(op("y", "LDS_WRITE", gpr("R0.x"), gpr("R0.y")))],
    "ADD_64 in slots [1, 2]": [alu(bundle(*four("ADD_64", letters="yz")))],
    "MUL_64 splits its result": [alu(bundle(*four("MUL_64", dests=("R1.x", "", "", "R1.w"))))],
    "two tests in a bundle": [alu(bundle(TEST, SECOND_TEST))],
    "two LDS instructions in a bundle": [
        alu(bundle(*[op("x", "LDS_WRITE", gpr("R0.x"), gpr("R0.y"), number=n) for n in (0, 1)]))
    ],
    "a barrier is not alone": [alu(bundle(op("x", "GROUP_BARRIER"), mov("R1.y")))],
    # read ports
    "t reads 3 constants": [alu(mad("t", constant(0), constant(0, "y"), constant(0, "x")))],
    "ADD has bank swizzle none": [alu(add("x", gpr("R0.x"), gpr("R0.y"), swizzle=""))],
    "t has bank swizzle VEC_012": [alu(add("t", gpr("R0.x"), gpr("R0.y"), swizzle="VEC_012"))],
    "t loads operand 2 in cycle 0 beside 1 constants": [
        alu(mad("t", constant(0), gpr("R0.y"), gpr("R0.x"), swizzle="SCL_210"))
    ],
    "bank x has to give R0, R1, R2 and R3: 4 registers in three cycles": [
        alu(bundle(mad("x", *map(gpr, ("R0.x", "R1.x", "R2.x"))), mov("R7.y", "R3.x")))
    ],
    "cycle 0 bank x reads R0 and R1 at once": [
        alu(bundle(mov("R7.x", "R0.x"), mov("R7.y", "R1.x")))
    ],
    "cycle 1 bank x reads R1 and R2 at once": [
        alu(bundle(add("x", gpr("R0.x"), gpr("R1.x")), add("y", gpr("R0.x"), gpr("R2.x"))))
    ],
    # constants
    "3 pairs of constants": [alu(bundle(*chain(0, 1, 2)))],
    "5 literals": [alu(literals(5))],
    "literal 0xb is not where it is read": [
        alu(bundle(op("x", "MOV", literal(0, 11)), literals=(10, 11)))
    ],
    # operands and results
    "R12 of 8 registers": [alu(mov("R1.x", "R12.x"))],
    "R13 of 8 registers": [alu(mov("R13.x"))],
    "ADD_INT can't negate operands": [alu(op("x", "ADD_INT", gpr("R0.x", neg=True), gpr("R0.y")))],
    "GROUP_BARRIER writes nothing": [alu(op("x", "GROUP_BARRIER", dest="R1.x"))],
}


def code_of(controls: list[Control]) -> Code:
    return Code((*controls, Control("END")), GPRS, 0, ck.kernels["sgemm_tn"].program, ck.HD5870)


@pytest.mark.parametrize("words", FAULTS)
def test_a_fault_is_reported(words):
    found = list(violations(code_of(FAULTS[words])))
    assert any(words in report for report in found), found
