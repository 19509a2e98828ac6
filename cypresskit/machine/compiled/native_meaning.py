"""What every arithmetic opcode computes, as LLVM IR on vectors: ``NATIVE`` has the keys of
``il.meaning.MEANING``.

The two are independent implementations that must agree bit for bit.

Single precision flushes subnormals. Without ``soft`` the host's flush mode does that, and only
operations that select or copy bits flush by themselves; with ``soft`` every operation does. NaN
results depend on the processor: the translator requests ``canonical`` ones where the difference is
visible. On hosts without a fused multiply-add LLVM calls the C library's for doubles, and for
``mad`` without ``soft``: it is exact and slow.
"""

from collections.abc import Callable

from cypresskit.il.bits import INFINITY, NAN, SIGN
from cypresskit.il.meaning import TINY, complete
from cypresskit.machine.compiled.vec import Emitter, Vec

KIND = {"f": "float", "d": "double"}  # of an operand, by its letter; others are i32


class Floats:
    """Single-precision arithmetic as the chip does it. ``soft``: flush in every operation. Else
    ``one`` is the word of 1.0, unknown to LLVM: the host's flush mode flushes what it multiplies.
    """

    def __init__(self, e: Emitter, soft: bool):
        self.e, self.soft = e, soft
        self.one = e.const("undef", "i32")

    def flush(self, value: Vec) -> Vec:
        """Return a float with subnormals made zero."""
        if not self.soft:
            return value * self.one.bits("float")
        bits = value.bits("i32")
        return (bits & INFINITY).cmp("eq", 0).select(bits & -SIGN, bits).bits("float")

    def canonical(self, value: Vec) -> Vec:
        """Return a float or double with NaN made the canonical one. In integers, because LLVM may
        take any NaN for any other.
        """
        kind = "i32"
        infinity = INFINITY
        nan = NAN
        if value.kind == "double":
            kind = "i64"
            infinity = 0x7FF << 52
            nan = 0x7FF8 << 48
        bits = value.bits(kind)
        is_nan = (bits << 1).cmp("ugt", infinity << 1)
        return is_nan.select(bits.like(nan), bits).bits(value.kind)

    def taken(self, value: Vec) -> Vec:
        """Return an operand, flushed unless the host does it."""
        return self.flush(value) if self.soft else value

    def small(self, result: Vec, exact: Vec) -> Vec:
        """Return ``result``, or a zero of its sign if the double ``exact`` is too small for a
        normal float.
        """
        tiny = exact.call("fabs").cmp("olt", TINY)
        zero = result.like(0.0).call("copysign", result)
        return tiny.select(zero, result)

    def multiply(self, name: str, a: Vec, b: Vec | float) -> Vec:
        """Return a * b or a / b: ``name`` is "mul" or "div"."""
        if not self.soft:
            return a.two(name, b)
        a, b = (self.flush(x) for x in a.both(b))
        return self.small(a.two(name, b), wide(a).two(name, wide(b)))

    def add(self, name: str, a: Vec, b: Vec | float) -> Vec:
        """Return a + b or a - b: ``name`` is "add" or "sub"."""
        if not self.soft:
            return a.two(name, b)
        a, b = (self.flush(x) for x in a.both(b))
        return self.flush(a.two(name, b))

    def mad(self, a: Vec, b: Vec, c: Vec) -> Vec:
        """Return a * b + c, rounded once."""
        if not self.soft:
            return a.call("fma", b, c)
        a, b, c = (wide(self.flush(x)) for x in (a, b, c))
        product = a * b  # exact
        total = product + c
        back = total - product
        lost = (product - (total - back)) + (c - back)
        # An inexact sum with an even last bit gets its neighbor towards the exact one: rounding
        # that to a float is then the only rounding (S. Boldo and G. Melquiond, 2008).
        bits = total.bits("i64")
        step = (bits ^ lost.bits("i64")).two("ashr", 63) | 1
        is_changed = lost.cmp("one", 0.0) & (bits & 1).cmp("eq", 0)
        odd = is_changed.select(bits + step, bits).bits("double")
        return self.small(odd.cast("fptrunc", "float"), odd)

    def compare(self, relation: str, a: Vec, b: Vec) -> Vec:
        """Return an i1: lt, le, gt, ge, eq or ne, of floats. They are always flushed here: if one
        side is constant, LLVM compares the bits of the other, which the host's flush mode doesn't
        flush.
        """
        return self.flush(a).cmp(("u" if relation == "ne" else "o") + relation, self.flush(b))


def wide(value: Vec) -> Vec:
    """Return a float as a double."""
    return value.cast("fpext", "double")


def _two(name: str) -> Callable:
    return lambda f, a, b: a.two(name, b)


def _call(name: str) -> Callable:
    return lambda f, a, *others: a.call(name, *others)


def _taken(name: str) -> Callable:
    return lambda f, a: f.taken(a).call(name)


def _shift(name: str) -> Callable:
    return lambda f, a, b: a.two(name, b & 31)


def _extreme(relation: str) -> Callable:
    def smaller_or_larger(f: Floats, a: Vec, b: Vec) -> Vec:
        a, b = f.flush(a), f.flush(b)
        return a.cmp(relation, b).select(a, b)

    return smaller_or_larger


def _divided(name: str) -> Callable:
    def quotient(f: Floats, a: Vec, b: Vec) -> Vec:
        none = b.cmp("eq", 0)
        return none.select(b.like(-1), a.two(name, none.select(b.like(1), b)))

    return quotient


def _to_integer(name: str) -> Callable:
    """Return a function that rounds a float towards zero and clamps it to an integer's range; NaN
    gives 0.
    """
    return lambda f, a: f.e.call(f"llvm.{name}.sat.{a.suffix('i32')}.{a.suffix()}", "i32", a.n, a)


def _high(f: Floats, a: Vec, b: Vec) -> Vec:
    """Return the upper words of products."""
    return ((a.cast("zext", "i64") * b.cast("zext", "i64")) >> 32).cast("trunc", "i32")


def _rcp(f: Floats, a: Vec) -> Vec:
    return f.multiply("div", a.like(1.0), a)


def _dot(f: Floats, a: Vec, b: Vec) -> Vec:
    products = f.multiply("mul", a, b)
    total = products[0]
    for k in range(1, products.n):
        total = f.add("add", total, products[k])
    return total


#: What each IL arithmetic opcode computes: operands of the kinds that its row of the table names
#: (dot products: two vectors) to a result of the kind; comparisons give i32.
NATIVE: dict[str, Callable[..., Vec]] = {
    "mov": lambda f, a: a,
    "add": lambda f, a, b: f.add("add", a, b),
    "sub": lambda f, a, b: f.add("sub", a, b),
    "mul": lambda f, a, b: f.multiply("mul", a, b),
    "mad": Floats.mad,
    "div": lambda f, a, b: f.multiply("div", a, b),
    "flr": _taken("floor"),
    "frc": lambda f, a: f.add("sub", a, f.taken(a).call("floor")),
    "min": _extreme("olt"),
    "max": _extreme("oge"),
    "round_nearest": _taken("rint"),
    "round_plusinf": _taken("ceil"),
    "round_z": _taken("trunc"),
    "rcp": _rcp,
    "dp4": _dot,
    "iadd": _two("add"),
    "isub": _two("sub"),
    "inegate": lambda f, a: a.like(0) - a,
    "imul": _two("mul"),
    "umul_high": _high,
    "imad": lambda f, a, b, c: a * b + c,
    "udiv": _divided("udiv"),
    "umod": _divided("urem"),
    "ishl": _shift("shl"),
    "ishr": _shift("ashr"),
    "ushr": _shift("lshr"),
    "iand": _two("and"),
    "ior": _two("or"),
    "ixor": _two("xor"),
    "inot": lambda f, a: ~a,
    "imin": _call("smin"),
    "imax": _call("smax"),
    "umin": _call("umin"),
    "umax": _call("umax"),
    "cmov_logical": lambda f, a, b, c: a.cmp("ne", 0).select(b, c),
    "ftoi": _to_integer("fptosi"),
    "ftou": _to_integer("fptoui"),
    "itof": lambda f, a: a.cast("sitofp", "float"),
    "utof": lambda f, a: a.cast("uitofp", "float"),
    "dadd": _two("add"),
    "dmul": _two("mul"),
    "dmad": _call("fma"),
    "d2f": lambda f, a: f.small(a.cast("fptrunc", "float"), a),
    "f2d": lambda f, a: wide(f.flush(a)),
}


def _relation(kind: str, relation: str) -> Callable:
    """Return a function that gives all ones where a relation, named as in LLVM, holds between
    numbers of a type (a letter of ``Opcode.types``).
    """
    if kind == "f":
        return lambda f, a, b: f.compare(relation, a, b).cast("sext", "i32")
    sign = "" if relation in ("eq", "ne") else "us"[kind == "i"]
    return lambda f, a, b: a.cmp(sign + relation, b).cast("sext", "i32")


complete(NATIVE, _relation)
