"""The hardware's operations: the rows of the Evergreen instruction set that compiled kernels use.

An operation occupies one VLIW slot, or two (doubles in xy or zw), or all of x y z w. Its row says which slots it may
take, how many operands it reads, whether these may be negated or made absolute (only float operands can; operations of
three operands can't take absolutes, nor the output scale), and what it computes, as a function on arrays of 32-bit
patterns (64-bit for doubles) that the explaining engine's arithmetic provides.

Two rows, DIV_IEEE and DIV_64, are not one instruction of the chip: they stand for the last rounding and the special
cases of a division by reciprocal, whose other steps the compiler writes out. Source: the ISA text, chapters 4, 8, 9.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cypresskit.machine.numerics import MEANING

SLOTS = "xyzwt"
X, Y, Z, W, T = range(5)

#: Cycle in which each operand is read, per bank swizzle (ISA 4.7.7, 4.7.8).
VECTOR_SWIZZLES = {
    "VEC_012": (0, 1, 2),
    "VEC_021": (0, 2, 1),
    "VEC_120": (1, 2, 0),
    "VEC_102": (1, 0, 2),
    "VEC_201": (2, 0, 1),
    "VEC_210": (2, 1, 0),
}
SCALAR_SWIZZLES = {"SCL_210": (2, 1, 0), "SCL_122": (1, 2, 2), "SCL_212": (2, 1, 2), "SCL_221": (2, 2, 1)}

#: 32-bit patterns that need no literal (ISA 4.7.1), and how a listing shows them.
INLINE = {0: "0.0f", 0x3F800000: "1.0f", 0x3F000000: "0.5f", 1: "1", 0xFFFFFFFF: "-1"}


@dataclass(frozen=True)
class HardwareOp:
    """One row.

    ``slots``: "any" of x y z w t; "vector", one of x y z w; "t"; "x"; "pair", xy or zw; "quad", all of x y z w.
    ``kind``: "float", "int" or "double" operands, "lds", or "sync". ``reads``: operands (a double counts once).
    ``meaning``: arrays of bits to an array of bits, or None where an engine does more than arithmetic.
    """

    name: str
    slots: str
    kind: str
    reads: int
    meaning: Callable[..., np.ndarray] | None

    @property
    def double_result(self) -> bool:
        """Whether the result is two words."""
        return self.name in ("ADD_64", "MUL_64", "FMA_64", "DIV_64", "FLT32_TO_FLT64")

    @property
    def predicate(self) -> bool:
        """Whether it sets the execution mask."""
        return self.name.startswith("PRED_")

    @property
    def writes(self) -> bool:
        """Whether it has a result."""
        return self.kind not in ("lds", "sync") and not self.predicate


def _flip(name: str) -> Callable:
    """The comparison with its operands exchanged: the chip has greater-than, IL less-than."""
    return lambda a, b: MEANING[name](b, a)


def _mulhi(a, b):
    return ((a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)


def _recip_uint(a):
    """2^32 / a rounded down, all ones for 0 and 1."""
    return np.minimum((np.uint64(1) << np.uint64(32)) // np.maximum(a, np.uint32(1)), 0xFFFFFFFF).astype(np.uint32)


_M = MEANING
_TABLE: dict[tuple[str, str], dict[str, tuple[int, Callable | None]]] = {
    ("any", "float"): {
        "MOV": (1, _M["mov"]),
        "ADD": (2, _M["add"]),
        "MUL_IEEE": (2, _M["mul"]),
        "MULADD_IEEE": (3, _M["mad"]),
        "FLOOR": (1, _M["flr"]),
        "FRACT": (1, _M["frc"]),
        "MIN_DX10": (2, _M["min"]),
        "MAX_DX10": (2, _M["max"]),
        "SETGT_DX10": (2, _flip("lt")),
        "SETGE_DX10": (2, _M["ge"]),
        "SETE_DX10": (2, _M["eq"]),
        "SETNE_DX10": (2, _M["ne"]),
        "PRED_SETGT": (2, _flip("lt")),
        "PRED_SETGE": (2, _M["ge"]),
        "PRED_SETE": (2, _M["eq"]),
        "PRED_SETNE": (2, _M["ne"]),
    },
    ("any", "int"): {
        "ADD_INT": (2, _M["iadd"]),
        "SUB_INT": (2, _M["isub"]),
        "AND_INT": (2, _M["iand"]),
        "OR_INT": (2, _M["ior"]),
        "XOR_INT": (2, _M["ixor"]),
        "NOT_INT": (1, _M["inot"]),
        "LSHL_INT": (2, _M["ishl"]),
        "LSHR_INT": (2, _M["ushr"]),
        "ASHR_INT": (2, _M["ishr"]),
        "MIN_INT": (2, _M["imin"]),
        "MAX_INT": (2, _M["imax"]),
        "MIN_UINT": (2, _M["umin"]),
        "MAX_UINT": (2, _M["umax"]),
        "SETE_INT": (2, _M["ieq"]),
        "SETNE_INT": (2, _M["ine"]),
        "SETGT_INT": (2, _flip("ilt")),
        "SETGE_INT": (2, _M["ige"]),
        "SETGT_UINT": (2, _flip("ult")),
        "SETGE_UINT": (2, _M["uge"]),
        "CNDE_INT": (3, lambda a, b, c: _M["cmov_logical"](a, c, b)),
        "PRED_SETE_INT": (2, _M["ieq"]),
        "PRED_SETNE_INT": (2, _M["ine"]),
        "PRED_SETGT_INT": (2, _flip("ilt")),
        "PRED_SETGE_INT": (2, _M["ige"]),
        "PRED_SETGT_UINT": (2, _flip("ult")),
        "PRED_SETGE_UINT": (2, _M["uge"]),
    },
    ("vector", "float"): {"FMA": (3, _M["fma"])},
    ("t", "float"): {
        "FLT_TO_INT": (1, _M["ftoi"]),
        "FLT_TO_UINT": (1, _M["ftou"]),
        "RECIP_IEEE": (1, _M["rcp"]),
        "SQRT_IEEE": (1, _M["sqrt"]),
        "DIV_IEEE": (3, lambda a, b, q: _M["div"](a, b)),
    },
    ("t", "int"): {
        "MULLO_INT": (2, _M["imul"]),
        "MULHI_UINT": (2, _mulhi),
        "RECIP_UINT": (1, _recip_uint),
        "INT_TO_FLT": (1, _M["itof"]),
        "UINT_TO_FLT": (1, _M["utof"]),
    },
    ("pair", "double"): {
        "ADD_64": (2, _M["dadd"]),
        "SETGT_64": (2, _flip("dlt")),
        "SETGE_64": (2, _M["dge"]),
        "SETE_64": (2, _M["deq"]),
        "SETNE_64": (2, _M["dne"]),
        "FLT64_TO_FLT32": (1, _M["d2f"]),
    },
    ("pair", "float"): {"FLT32_TO_FLT64": (1, _M["f2d"])},
    ("quad", "double"): {
        "MUL_64": (2, _M["dmul"]),
        "FMA_64": (3, _M["dmad"]),
        "DIV_64": (3, lambda a, b, q: _M["ddiv"](a, b)),
    },
    ("x", "lds"): {
        "LDS_WRITE": (2, None),
        "LDS_WRITE_REL": (3, None),
        "LDS_READ_RET": (1, None),
        "LDS_READ_REL_RET": (1, None),
        "LDS_READ2_RET": (2, None),
    },
    ("x", "sync"): {"GROUP_BARRIER": (0, None)},
}

OPS: dict[str, HardwareOp] = {
    name: HardwareOp(name, slots, kind, reads, meaning)
    for (slots, kind), rows in _TABLE.items()
    for name, (reads, meaning) in rows.items()
}


def slot_operands(op: HardwareOp, number: int, place: int) -> tuple[int, ...]:
    """Which operand words the slot at ``place`` (0, 1.. among the operation's slots) reads, as indices into the list of
    words; a double is two words, low first. MUL_64 and FMA_64 read the high words in x, y, z and the low ones in w;
    the two-slot operations the high words first (ISA 9, examples at ADD_64 and MUL_64)."""
    if op.kind != "double":
        return tuple(range(number)) if place == 0 else ()
    high = place < 3 if op.slots == "quad" else place == 0
    return tuple(range(1 if high else 0, number, 2))
