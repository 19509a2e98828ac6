"""Compute every opcode bit for bit, on numpy arrays of 32-bit patterns (64-bit for doubles).

Single precision flushes subnormals, as the chip does: inputs, and results whose value rounded to 24
bits is below 2^-126, become zero with their sign. ``mad`` and ``dmad`` round once. Every NaN that
arithmetic makes is the same quiet NaN, since no document says which bits the chip gives. Doubles
keep subnormals.

numpy has no fused multiply-add: ``fused`` makes one of exact sums.
"""

from collections.abc import Callable

import numpy as np

from cypresskit.il import bits
from cypresskit.il.fused import multiply_add, two_sum
from cypresskit.il.opcodes import OPCODES

SIGN, INFINITY, NAN = np.uint32(bits.SIGN), np.uint32(bits.INFINITY), np.uint32(bits.NAN)
NAN64 = np.uint64(0x7FF8000000000000)
ONE = np.uint32(bits.ONE)
TRUE, FALSE = np.uint32(bits.ALL), np.uint32(0)
# Values below it round to less than 2^-126 when the exponent is unbounded
TINY = 2.0**-126 * (1 - 2.0**-25)
MIN_NORMAL = np.float32(2.0**-126)


def flushed(bits: np.ndarray) -> np.ndarray:
    """Return single-precision bits as float32, with subnormals made zero."""
    exponent = bits & INFINITY
    if exponent.all():  # the usual case: nothing to flush
        return bits.view(np.float32)
    return np.where(exponent, bits, bits & SIGN).view(np.float32)


def single(result: np.ndarray) -> np.ndarray:
    """Return the bits of a float32 result: subnormals flushed, NaN canonical."""
    size = np.abs(result)
    # The usual case: nothing to flush, no NaN (which makes this false)
    if size.min(initial=np.inf) >= MIN_NORMAL:
        return result.view(np.uint32)
    bits = np.where(size < MIN_NORMAL, result.view(np.uint32) & SIGN, result.view(np.uint32))
    return np.where(np.isnan(result), NAN, bits)


def _single_of(result: np.ndarray, exact: Callable[[], np.ndarray]) -> np.ndarray:
    """Return ``single`` of a result that was already rounded.

    A result of 2^-126 is flushed if the value before rounding, ``exact()``, is below TINY.
    """
    edge = np.abs(result) == MIN_NORMAL
    if edge.any():
        result = np.where(
            edge & (np.abs(exact()) < TINY), np.copysign(np.float32(0), result), result
        )
    return single(result)


def double(result: np.ndarray) -> np.ndarray:
    """Return the bits of a float64 result, NaN canonical."""
    return np.where(np.isnan(result), NAN64, result.view(np.uint64))


def _rounded(operation: Callable) -> Callable:
    """Return a product or quotient of float32 numbers as an operation on bits."""

    def compute(a, b):
        x, y = flushed(a), flushed(b)
        return _single_of(operation(x, y), lambda: operation(x.astype(np.float64), y))

    return compute


_mul, _div = _rounded(np.multiply), _rounded(np.divide)


def _mad(a, b, c):
    x, y, z = flushed(a), flushed(b), flushed(c)

    def nearer():
        total, lost = two_sum(x.astype(np.float64) * y, z)  # the product is exact
        return np.where(lost * np.sign(total) < 0, np.nextafter(total, 0), total)

    return _single_of(multiply_add(x, y, z), nearer)


def _dot(a, b):
    """Return a dot product of four components, rounding each product and sum from the left."""
    products = np.broadcast_to(_mul(a, b), (4, max(a.shape[1], b.shape[1])))
    total = products[0:1]
    for n in range(1, 4):
        total = single(flushed(total) + flushed(products[n : n + 1]))
    return total


def _rcp(a):
    return _div(ONE, a)


def _to_integer(low: float, high: float, kind) -> Callable:
    """Return a conversion of floats to integers: truncated, clamped to low..high, NaN to 0."""

    def convert(a):
        whole = np.trunc(flushed(a).astype(np.float64))
        return (
            np.clip(np.where(np.isnan(whole), 0.0, whole), low, high).astype(kind).view(np.uint32)
        )

    return convert


def _floats(operation: Callable) -> Callable:
    """Return an operation on float32 numbers as one on bits."""
    return lambda *bits: single(operation(*(flushed(b) for b in bits)))


def _doubles(operation: Callable) -> Callable:
    """Return an operation on float64 numbers as one on bits."""
    return lambda *bits: double(operation(*(b.view(np.float64) for b in bits)))


def _choose(condition: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    """Return ``yes`` where any bit of the condition is set, else ``no``."""
    return np.where(condition != 0, yes, no)


_LOW5 = np.uint32(31)

RELATION: dict[str, Callable] = {
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "ge": np.greater_equal,
    "gt": np.greater,
}
_VIEWS = {"u": np.uint32, "i": np.int32}


def compared(kind: str, relation: str) -> Callable:
    """Return a comparison: all ones where the relation holds. ``kind`` is a letter of a type."""
    number = flushed if kind == "f" else lambda bits: bits.view(_VIEWS[kind])
    return lambda a, b: np.where(RELATION[relation](number(a), number(b)), TRUE, FALSE)


#: The function of each arithmetic opcode: arrays of bits to an array of bits. Rows are components;
#: doubles are uint64.
MEANING: dict[str, Callable[..., np.ndarray]] = {
    "mov": lambda a: a,
    "add": _floats(np.add),
    "sub": _floats(np.subtract),
    "mul": _mul,
    "mad": _mad,
    "div": _div,
    "flr": _floats(np.floor),
    "frc": _floats(lambda a: a - np.floor(a)),
    "min": _floats(lambda a, b: np.where(a < b, a, b)),
    "max": _floats(lambda a, b: np.where(a >= b, a, b)),
    "round_nearest": _floats(np.rint),
    "round_plusinf": _floats(np.ceil),
    "round_z": _floats(np.trunc),
    "rcp": _rcp,
    "dp4": _dot,
    "iadd": lambda a, b: a + b,
    "isub": lambda a, b: a - b,
    "inegate": lambda a: np.uint32(0) - a,
    "imul": np.multiply,
    "umul_high": lambda a, b: (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32),
    "imad": lambda a, b, c: a * b + c,
    "udiv": lambda a, b: np.where(b == 0, TRUE, a // np.maximum(b, np.uint32(1))),
    "umod": lambda a, b: np.where(b == 0, TRUE, a % np.maximum(b, np.uint32(1))),
    "ishl": lambda a, b: a << (b & _LOW5),
    "ishr": lambda a, b: (a.view(np.int32) >> (b & _LOW5).view(np.int32)).view(np.uint32),
    "ushr": lambda a, b: a >> (b & _LOW5),
    "iand": np.bitwise_and,
    "ior": np.bitwise_or,
    "ixor": np.bitwise_xor,
    "inot": np.bitwise_not,
    "imin": lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    "imax": lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    "umin": np.minimum,
    "umax": np.maximum,
    "cmov_logical": _choose,
    "ftoi": _to_integer(-(2.0**31), 2.0**31 - 1, np.int32),
    "ftou": _to_integer(0.0, 2.0**32 - 1, np.uint32),
    "itof": lambda a: a.view(np.int32).astype(np.float32).view(np.uint32),
    "utof": lambda a: a.astype(np.float32).view(np.uint32),
    "dadd": _doubles(np.add),
    "dmul": _doubles(np.multiply),
    "dmad": _doubles(multiply_add),
    "d2f": lambda a: _single_of(a.view(np.float64).astype(np.float32), lambda: a.view(np.float64)),
    "f2d": lambda a: double(flushed(a).astype(np.float64)),
}


def complete(table: dict[str, Callable], compares: Callable[[str, str], Callable]) -> None:
    """Add the comparisons to a table of opcodes, by type and relation, and the opcodes that compute
    the same as another.
    """
    for op in OPCODES.values():
        if op.relation and op.kind == "alu":
            table[op.name] = compares(op.sources[0], op.relation)
        if op.same:
            table[op.name] = table[op.same]


complete(MEANING, compared)


def pair(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Join two words to a 64-bit pattern."""
    same = low.shape == high.shape  # saves broadcast_shapes, which is slow
    shape = low.shape if same else np.broadcast_shapes(low.shape, high.shape)
    words = np.empty((*shape, 2), "<u4")
    words[..., 0], words[..., 1] = low, high
    return words.view("<u8")[..., 0]


def split(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split a 64-bit pattern into (low, high) words."""
    words = np.array(bits, "<u8", order="C")[..., np.newaxis].view("<u4")
    return words[..., 0], words[..., 1]
