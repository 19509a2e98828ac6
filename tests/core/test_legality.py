"""The hardware's rules, one by one: code that breaks each. That the rules forbid nothing else shows
in the catalog and in random programs, whose compiled code breaks none.
"""

from conftest import from_rows

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


def code_of(controls: list[Control]) -> Code:
    return Code((*controls, Control("END")), GPRS, 0, ck.kernels["sgemm_tn"].program, ck.HD5870)


@from_rows
def test_a_fault_is_reported(words, controls):
    found = list(violations(code_of(eval(controls))))
    assert any(words in report for report in found), found
