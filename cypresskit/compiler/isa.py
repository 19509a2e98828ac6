"""List the hardware's operations: the rows of the Evergreen instruction set that kernels use.

Source: ISA, chapters 4, 8, 9. A row states which VLIW slots an operation takes, and what it
computes. Only float operands can be negated. Left out: absolute operands, and
scaled or clamped results, which no kernel uses.

DIV_IEEE is not a single instruction of the chip. It stands for the end of a division by reciprocal:
rounding and special cases. The compiler emits its other steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from cypresskit.il.bits import ALL, HALF, ONE
from cypresskit.il.meaning import MEANING, compared
from cypresskit.il.opcodes import OPCODES, RELATIONS

SLOTS = "xyzwt"
T = 4
CHANNELS = 4  # of a register: x y z w

#: The cycle in which each operand is read, by bank swizzle (ISA 4.7.7, 4.7.8).
VECTOR_SWIZZLES = {
    "VEC_012": (0, 1, 2),
    "VEC_021": (0, 2, 1),
    "VEC_120": (1, 2, 0),
    "VEC_102": (1, 0, 2),
    "VEC_201": (2, 0, 1),
    "VEC_210": (2, 1, 0),
}
SCALAR_SWIZZLES = {
    "SCL_210": (2, 1, 0),
    "SCL_122": (1, 2, 2),
    "SCL_212": (2, 1, 2),
    "SCL_221": (2, 2, 1),
}

#: 32-bit patterns that need no literal (ISA 4.7.1), and how a listing shows them.
INLINE = {0: "0.0f", ONE: "1.0f", HALF: "0.5f", 1: "1", ALL: "-1"}


@dataclass(frozen=True)
class HardwareOp:
    """One row.

    Attributes
    ----------
    name
        The operation.
    slots
        "any" of x y z w t; "vector", one of x y z w; "t"; "x"; "pair", xy or zw; "quad", all of x y
        z w; "" if not an ALU operation.
    kind
        "float", "int" or "double" operands, "lds", "sync", "fetch", "store", or "pop", which takes
        a word from the LDS queue.
    meaning
        Function of arrays of bits; None if the operation is more than arithmetic.
    flops
        Additions and multiplications; 0 for what only t can do.
    relation
        Of a comparison or test: a name of ``RELATIONS``.
    memories
        Where it keeps program order: "g" global memory, "s" the LDS, "o" outputs.
    """

    name: str
    slots: str
    kind: str
    meaning: Callable[..., np.ndarray] | None = None
    flops: int = 0
    relation: str = ""
    memories: str = ""

    @property
    def width(self) -> int:
        """VLIW slots that it fills."""
        return {"": 0, "pair": 2, "quad": 4}.get(self.slots, 1)

    @property
    def words(self) -> int:
        """Number of result words; 0 for a pop, whose LDS read sets it."""
        if self.is_test or self.kind in ("lds", "sync", "store", "pop"):
            return 0
        if self.kind == "fetch":
            return 4
        return 2 if self.name.endswith("64") else 1

    @property
    def queued(self) -> int:
        """Words that an LDS read puts into the queue."""
        return 1 if self.name == "LDS_READ_RET" else 2

    @property
    def is_test(self) -> bool:
        """Whether it sets the execution mask."""
        return self.name.startswith("PRED_")


def _recip_uint(a):
    """Return 2^32 / a rounded down, all ones for 0 and 1."""
    return np.minimum((np.uint64(1) << np.uint64(32)) // np.maximum(a, np.uint32(1)), ALL).astype(
        np.uint32
    )


OPS: dict[str, HardwareOp] = {}


def _add(slots: str, kind: str, name: str, **columns) -> None:
    OPS[name] = HardwareOp(name, slots, kind, **columns)


# Operations that the table of IL opcodes names: each computes the same as its opcode.
for _opcode in OPCODES.values():
    if _opcode.hardware and _opcode.hardware not in OPS:
        _slots = {"xyzwt": "any", "xyzw": "vector"}.get(_opcode.slots, _opcode.slots)
        if _opcode.float_modifiers(0):
            _kind = "float"
        else:
            _kind = "double" if _opcode.sources[0] == "d" else "int"
        _add(
            _slots,
            _kind,
            _opcode.hardware,
            meaning=MEANING[_opcode.name],
            flops=0 if _slots == "t" else _opcode.flops,
        )

_add("t", "float", "DIV_IEEE", meaning=lambda a, b, quotient: MEANING["div"](a, b))
_add("any", "int", "CNDE_INT", meaning=lambda a, b, c: MEANING["cmov_logical"](a, c, b))
_add("t", "int", "RECIP_UINT", meaning=_recip_uint)

for _name in ("LDS_WRITE", "LDS_WRITE_REL", "LDS_READ_RET", "LDS_READ_REL_RET"):
    _add("x", "lds", _name, memories="s")
_add("x", "sync", "GROUP_BARRIER", memories="gs")
_add("", "pop", "LDS_POP")
_add("", "fetch", "SAMPLE")
_add("", "fetch", "MEM_READ", memories="g")
_add("", "store", "MEM_WRITE", memories="g")
_add("", "store", "EXPORT", memories="o")


#: Comparisons, by the letter of the operands' type: name suffix, slots, kind. The chip has
#: greater-than where the arithmetic has less-than, and compares unsigned integers for equality as
#: if they had signs.
COMPARED = {
    "f": ("_DX10", "any", "float"),
    "i": ("_INT", "any", "int"),
    "u": ("_UINT", "any", "int"),
}
CHIP_RELATIONS = {"gt": "GT", "ge": "GE", "eq": "E", "ne": "NE"}


def _add_comparison(compares: str, relation: str) -> None:
    ending, slots, kind = COMPARED[compares]
    name = f"SET{CHIP_RELATIONS[relation]}"
    columns: dict = {"relation": relation, "meaning": compared(compares, relation)}
    _add(slots, kind, f"{name}{ending}", **columns)
    if compares == "i" and relation in ("eq", "ne"):  # the tests that the compiler makes
        _add(slots, kind, f"PRED_{name}{ending}", **columns)


for _compares, _relation in product(COMPARED, CHIP_RELATIONS):
    if _compares != "u" or _relation in ("gt", "ge"):
        _add_comparison(_compares, _relation)


def comparison(relation: str, compares: str, words: list) -> tuple[str, list]:
    """Return the operation that compares two words of a type (a letter of ``COMPARED``), and the
    words in the order in which it takes them.
    """
    if relation not in CHIP_RELATIONS:
        relation = RELATIONS[relation]
        words = words[::-1]
    return f"SET{CHIP_RELATIONS[relation]}{COMPARED[compares][0]}", words


def slot_operands(op: HardwareOp, number: int, place: int) -> tuple[int, ...]:
    """Return which operand words the slot at ``place`` (0, 1, ... among the operation's slots)
    reads.

    The result indexes the list of words; a double is two words, low first. MUL_64 and FMA_64 read
    the high words in x, y, z and the low ones in w; two-slot operations read the high words first
    (ISA 9, examples at ADD_64 and MUL_64).
    """
    if op.kind != "double":
        return tuple(range(number)) if place == 0 else ()
    high = place < 3 if op.slots == "quad" else place == 0
    return tuple(range(1 if high else 0, number, 2))
