"""LLVM IR for the arithmetic of IL: one function of this module gives what ``numerics.MEANING`` gives, on vectors.

A ``Builder`` collects IR text. Values are names of SSA values; ``n`` is the number of lanes of the vectors (0 means
scalars). Single precision flushes subnormals: with ``soft`` unset the host's flush mode does that and only operations
that select or copy bits flush by themselves; with ``soft`` set every operation does. NaN results are whatever the host
gives: the caller asks for canonical ones where somebody can see the difference.
"""

import struct
from collections.abc import Callable

NAN = "0x7FF8000000000000"  # LLVM writes float constants as doubles
TINY = 2.0**-126 * (1 - 2.0**-25)
LETTER = {"f": "float", "d": "double", "i": "i32", "u": "i32", "b": "i32"}


def of(kind: str, n: int) -> str:
    """The LLVM type of ``n`` lanes of ``kind``; the kind itself for n = 0."""
    return f"<{n} x {kind}>" if n else kind


class Builder:
    """Text of one function; ``op`` adds an instruction and returns its result's name."""

    def __init__(self, soft: bool):
        self.soft = soft
        self.lines: list[str] = []
        self.names = 0
        self.declared: dict[str, str] = {}

    def op(self, text: str) -> str:
        """Add ``%name = text``."""
        self.names += 1
        self.lines.append(f"  %v{self.names} = {text}")
        return f"%v{self.names}"

    def do(self, text: str) -> None:
        """Add an instruction without result."""
        self.lines.append(f"  {text}")

    def new_label(self, name: str) -> str:
        """A fresh label."""
        self.names += 1
        return f"{name}{self.names}"

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")

    def go(self, name: str) -> None:
        """Jump."""
        self.do(f"br label %{name}")

    def branch(self, condition: str, yes: str, no: str, rare: str = "") -> None:
        """Jump by condition; ``rare`` "no" or "yes" names the way that is hardly ever taken."""
        hint = {"": "", "no": ", !prof !0", "yes": ", !prof !1"}[rare]
        self.do(f"br i1 {condition}, label %{yes}, label %{no}{hint}")

    def call(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Call an intrinsic; arguments are (type, value)."""
        self.declared[name] = f"declare {result} @{name}({', '.join(t for t, _ in arguments)})"
        return self.op(f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in arguments)})")

    def intrinsic(self, name: str, kind: str, n: int, *values: str) -> str:
        """An overloaded intrinsic whose arguments and result have one type."""
        suffix = (f"v{n}" if n else "") + {"float": "f32", "double": "f64"}.get(kind, kind)
        return self.call(f"llvm.{name}.{suffix}", of(kind, n), *((of(kind, n), v) for v in values))

    def constant(self, value: float | int | str, n: int, kind: str) -> str:
        """A constant, repeated for vectors. Floats are written as bits of the double they equal."""
        if isinstance(value, float):
            value = "0x" + struct.pack(">d", value).hex().upper()
        return f"<{', '.join([f'{kind} {value}'] * n)}>" if n else str(value)

    def cast(self, value: str, to: str, source: str, n: int) -> str:
        """The same bits as another type of the same width."""
        return value if to == source else self.op(f"bitcast {of(source, n)} {value} to {of(to, n)}")

    def choose(self, condition: str, yes: str, no: str, kind: str, n: int) -> str:
        """``select`` lane by lane."""
        return self.op(f"select {of('i1', n)} {condition}, {of(kind, n)} {yes}, {of(kind, n)} {no}")

    def canonical(self, value: str, kind: str, n: int) -> str:
        """``value`` with NaN made the canonical one; kind float or double. In integers: LLVM takes one NaN for as good
        as another and would drop a choice between floats."""
        bits, infinity, nan = ("i32", 0x7F800000, 0x7FC00000) if kind == "float" else ("i64", 0x7FF << 52, 0x7FF8 << 48)
        pattern = self.cast(value, bits, kind, n)
        size = self._two("and", bits, n, pattern, self.constant((1 << int(bits[1:]) - 1) - 1, n, bits))
        test = self.op(f"icmp ugt {of(bits, n)} {size}, {self.constant(infinity, n, bits)}")
        return self.cast(self.choose(test, self.constant(nan, n, bits), pattern, bits, n), kind, bits, n)

    def flush(self, value: str, n: int) -> str:
        """A float with subnormals made zero, whatever the host's mode."""
        bits = self.cast(value, "i32", "float", n)
        exponent = self.op(f"and {of('i32', n)} {bits}, {self.constant(0x7F800000, n, 'i32')}")
        zero = self.op(f"icmp eq {of('i32', n)} {exponent}, {self.constant(0, n, 'i32')}")
        sign = self.op(f"and {of('i32', n)} {bits}, {self.constant(-0x80000000, n, 'i32')}")
        return self.cast(self.choose(zero, sign, bits, "i32", n), "float", "i32", n)

    def _two(self, name: str, kind: str, n: int, a: str, b: str) -> str:
        return self.op(f"{name} {of(kind, n)} {a}, {b}")

    def _small(self, result: str, exact: str, n: int, also: str = "") -> str:
        """``result``, or a zero of its sign where the double ``exact`` is too small for a normal float."""
        size = self.intrinsic("fabs", "double", n, exact)
        tiny = self.op(f"fcmp olt {of('double', n)} {size}, {self.constant(TINY, n, 'double')}")
        if also:
            tiny = self._two("or", "i1", n, tiny, also)
        zero = self.intrinsic("copysign", "float", n, self.constant(0.0, n, "float"), result)
        return self.choose(tiny, zero, result, "float", n)

    def _wide(self, value: str, n: int) -> str:
        return self.op(f"fpext {of('float', n)} {value} to {of('double', n)}")

    def multiply(self, name: str, a: str, b: str, n: int) -> str:
        """``fmul`` or ``fdiv``."""
        if not self.soft:
            return self._two(name, "float", n, a, b)
        a, b = self.flush(a, n), self.flush(b, n)
        exact = self._two(name, "double", n, self._wide(a, n), self._wide(b, n))
        return self._small(self._two(name, "float", n, a, b), exact, n)

    def add(self, name: str, a: str, b: str, n: int) -> str:
        """``fadd`` or ``fsub``."""
        if not self.soft:
            return self._two(name, "float", n, a, b)
        return self.flush(self._two(name, "float", n, self.flush(a, n), self.flush(b, n)), n)

    def fused(self, a: str, b: str, c: str, n: int) -> str:
        """a * b + c, rounded once."""
        if not self.soft:
            return self.intrinsic("fma", "float", n, a, b, c)
        a, b, c = (self.flush(x, n) for x in (a, b, c))
        result = self.intrinsic("fma", "float", n, a, b, c)
        product = self._two("fmul", "double", n, self._wide(a, n), self._wide(b, n))  # exact
        addend = self._wide(c, n)
        total = self._two("fadd", "double", n, product, addend)
        back = self._two("fsub", "double", n, total, product)
        lost = self._two("fsub", "double", n, product, self._two("fsub", "double", n, total, back))
        lost = self._two("fadd", "double", n, lost, self._two("fsub", "double", n, addend, back))
        towards = self._two(
            "fmul", "double", n, lost, self.intrinsic("copysign", "double", n, self.constant(1.0, n, "double"), total)
        )
        below = self.op(f"fcmp olt {of('double', n)} {towards}, {self.constant(0.0, n, 'double')}")
        size = self.intrinsic("fabs", "double", n, total)
        edge = self.op(f"fcmp oeq {of('double', n)} {size}, {self.constant(TINY, n, 'double')}")
        return self._small(result, total, n, self._two("and", "i1", n, edge, below))

    def floor(self, a: str, n: int) -> str:
        """The float rounded down."""
        return self.intrinsic("floor", "float", n, self.flush(a, n) if self.soft else a)

    def compare(self, relation: str, a: str, b: str, n: int) -> str:
        """i1 of a float comparison: lt, le, gt, ge, eq, ne. Always flushed here: where one side turns out constant LLVM
        compares the bits of the other, and those the host's flush mode doesn't touch."""
        a, b = self.flush(a, n), self.flush(b, n)
        return self.op(f"fcmp {'u' if relation == 'ne' else 'o'}{relation} {of('float', n)} {a}, {b}")

    def logical(self, condition: str, n: int) -> str:
        """All ones where an i1 is set."""
        return self.op(f"sext {of('i1', n)} {condition} to {of('i32', n)}")

    def scaled(self, value: str, shift: float, saturate: bool, n: int) -> str:
        """A float result times ``shift``, then clamped to 0..1 (NaN to 0)."""
        if shift != 1.0:
            value = self.multiply("fmul", value, self.constant(shift, n, "float"), n)
        if saturate:
            value, zero, one = self.flush(value, n), self.constant(0.0, n, "float"), self.constant(1.0, n, "float")
            above = self.op(f"fcmp ogt {of('float', n)} {value}, {one}")
            positive = self.op(f"fcmp ogt {of('float', n)} {value}, {zero}")
            value = self.choose(positive, self.choose(above, one, value, "float", n), zero, "float", n)
        return value

    def modified(self, value: str, source, n: int) -> str:
        """A float under a source's modifiers, except negation."""
        if source.invert:
            value = self.add("fsub", self.constant(1.0, n, "float"), value, n)
            value = self.canonical(value, "float", n)
        if source.bias:
            value = self.canonical(self.add("fsub", value, self.constant(0.5, n, "float"), n), "float", n)
        if source.x2:
            value = self.canonical(self.multiply("fmul", value, self.constant(2.0, n, "float"), n), "float", n)
        if source.sign:
            value = self.flush(value, n)
            zero, one, less = (self.constant(c, n, "float") for c in (0.0, 1.0, -1.0))
            below = self.op(f"fcmp olt {of('float', n)} {value}, {zero}")
            above = self.op(f"fcmp ogt {of('float', n)} {value}, {zero}")
            other = self.op(f"fcmp uno {of('float', n)} {value}, {value}")
            value = self.choose(other, self.constant(NAN, n, "float"), zero, "float", n)
            value = self.choose(below, less, self.choose(above, one, value, "float", n), "float", n)
        return self.intrinsic("fabs", "float", n, value) if source.abs else value

    def _whole(self, value: str, n: int, signed: bool) -> str:
        """A float rounded towards zero and clamped to an integer's range; NaN gives 0."""
        low, high = (-(2.0**31), 2.0**31) if signed else (0.0, 2.0**32)
        fits, above = (
            self.op(f"fcmp {relation} {of('float', n)} {value}, {self.constant(limit, n, 'float')}")
            for relation, limit in (("oge", low), ("oge", high))
        )
        below = self.op(f"fcmp olt {of('float', n)} {value}, {self.constant(low, n, 'float')}")
        safe = self.choose(fits, value, self.constant(0.0, n, "float"), "float", n)
        safe = self.choose(above, self.constant(0.0, n, "float"), safe, "float", n)
        result = self.op(f"{'fptosi' if signed else 'fptoui'} {of('float', n)} {safe} to {of('i32', n)}")
        least, most = (-(2**31), 2**31 - 1) if signed else (0, -1)
        result = self.choose(below, self.constant(least, n, "i32"), result, "i32", n)
        return self.choose(above, self.constant(most, n, "i32"), result, "i32", n)

    def compute(self, name: str, n: int, *v: str) -> str:
        """The result of opcode ``name`` on operands of the types that its row of the table names; comparisons give
        i32. Not here: mov, dp4."""
        if name in EXACT:
            return EXACT[name](self, n, *v)
        if name in ("iadd", "isub", "iand", "ior", "ixor", "imul", "umul"):
            return self._two(name[1:] if name[1:] in ("or", "and", "xor", "add", "sub", "mul") else name, "i32", n, *v)
        if name in ("ishl", "ishr", "ushr"):
            amount = self._two("and", "i32", n, v[1], self.constant(31, n, "i32"))
            return self._two({"ishl": "shl", "ishr": "ashr", "ushr": "lshr"}[name], "i32", n, v[0], amount)
        if name in ("imin", "imax", "umin", "umax"):
            return self.intrinsic({"i": "s", "u": "u"}[name[0]] + name[1:], "i32", n, *v)
        if name in ("ilt", "ige", "ieq", "ine", "ult", "uge"):
            relation = name[1:] if name[1:] in ("eq", "ne") else {"i": "s", "u": "u"}[name[0]] + name[1:]
            return self.logical(self.op(f"icmp {relation} {of('i32', n)} {v[0]}, {v[1]}"), n)
        if name in ("lt", "ge", "eq", "ne"):
            return self.logical(self.compare(name, v[0], v[1], n), n)
        if name in ("dlt", "dge", "deq", "dne"):
            prefix = "u" if name == "dne" else "o"
            return self.logical(self.op(f"fcmp {prefix}{name[1:]} {of('double', n)} {v[0]}, {v[1]}"), n)
        if name in ("min", "max"):
            a, b = self.flush(v[0], n), self.flush(v[1], n)
            first = self.op(f"fcmp {'olt' if name == 'min' else 'oge'} {of('float', n)} {a}, {b}")
            return self.choose(first, a, b, "float", n)
        if name in ("udiv", "umod"):
            none = self.op(f"icmp eq {of('i32', n)} {v[1]}, {self.constant(0, n, 'i32')}")
            divisor = self.choose(none, self.constant(1, n, "i32"), v[1], "i32", n)
            result = self._two("udiv" if name == "udiv" else "urem", "i32", n, v[0], divisor)
            return self.choose(none, self.constant(-1, n, "i32"), result, "i32", n)
        if name in ("ftoi", "ftou"):
            return self._whole(v[0], n, name == "ftoi")
        raise NotImplementedError(name)


def _narrow(b: Builder, n: int, a: str) -> str:
    result = b.op(f"fptrunc {of('double', n)} {a} to {of('float', n)}")
    return b._small(result, a, n)


EXACT: dict[str, Callable[..., str]] = {
    "add": lambda b, n, x, y: b.add("fadd", x, y, n),
    "sub": lambda b, n, x, y: b.add("fsub", x, y, n),
    "mul": lambda b, n, x, y: b.multiply("fmul", x, y, n),
    "mad": lambda b, n, x, y, z: b.fused(x, y, z, n),
    "fma": lambda b, n, x, y, z: b.fused(x, y, z, n),
    "div": lambda b, n, x, y: b.multiply("fdiv", x, y, n),
    "rcp": lambda b, n, x: b.multiply("fdiv", b.constant(1.0, n, "float"), x, n),
    "sqrt": lambda b, n, x: b.intrinsic("sqrt", "float", n, b.flush(x, n) if b.soft else x),
    "flr": lambda b, n, x: b.floor(x, n),
    "frc": lambda b, n, x: b.add("fsub", x, b.floor(x, n), n),
    "imad": lambda b, n, x, y, z: b._two("add", "i32", n, b._two("mul", "i32", n, x, y), z),
    "umad": lambda b, n, x, y, z: b._two("add", "i32", n, b._two("mul", "i32", n, x, y), z),
    "inegate": lambda b, n, x: b._two("sub", "i32", n, b.constant(0, n, "i32"), x),
    "inot": lambda b, n, x: b._two("xor", "i32", n, x, b.constant(-1, n, "i32")),
    "cmov_logical": lambda b, n, x, y, z: b.choose(
        b.op(f"icmp ne {of('i32', n)} {x}, {b.constant(0, n, 'i32')}"), y, z, "i32", n
    ),
    "itof": lambda b, n, x: b.op(f"sitofp {of('i32', n)} {x} to {of('float', n)}"),
    "utof": lambda b, n, x: b.op(f"uitofp {of('i32', n)} {x} to {of('float', n)}"),
    "dadd": lambda b, n, x, y: b._two("fadd", "double", n, x, y),
    "dmul": lambda b, n, x, y: b._two("fmul", "double", n, x, y),
    "dmad": lambda b, n, x, y, z: b.intrinsic("fma", "double", n, x, y, z),
    "ddiv": lambda b, n, x, y: b._two("fdiv", "double", n, x, y),
    "d2f": _narrow,
    "f2d": lambda b, n, x: b._wide(b.flush(x, n), n),
}
