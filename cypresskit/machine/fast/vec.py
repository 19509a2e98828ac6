"""LLVM IR as text behind a typed value: a ``Vec`` knows its type, so that an expression needn't
repeat it.

``Vec`` is ``n`` lanes of a ``kind`` ("i1", "i32", "i64", "float", "double", "ptr"); n = 0 is a
scalar. Operators and methods add an instruction to the ``Emitter`` and give its result; numbers
become constants of the other operand's type, a scalar beside a vector goes to all its lanes.
llvmlite's builder is slower and lacks ``freeze`` and the attribute that tells of a flush mode.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

SIZES = {"i1": 1, "i32": 32, "i64": 64, "float": 32, "double": 64}
SUFFIX = {"float": "f32", "double": "f64"}


def of(kind: str, n: int) -> str:
    """The LLVM type of ``n`` lanes of ``kind``; the kind itself for n = 0."""
    return f"<{n} x {kind}>" if n else kind


class Emitter:
    """The text of a function, instruction by instruction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = 0
        self.declared: dict[str, str] = {}

    def op(self, text: str, kind: str, n: int = 0) -> "Vec":
        """Add an instruction with a result of that type."""
        self.names += 1
        self.lines.append(f"  %v{self.names} = {text}")
        return Vec(self, f"%v{self.names}", kind, n)

    def do(self, text: str) -> None:
        """Add an instruction without result."""
        self.lines.append(f"  {text}")

    def new(self, name: str) -> str:
        """A fresh label."""
        self.names += 1
        return f"{name}{self.names}"

    def label(self, name: str) -> None:
        """Begin a block; the one before, unless it jumps elsewhere, goes on here."""
        if self.lines and not self.lines[-1].startswith("  br "):
            self.go(name)
        self.lines.append(f"{name}:")

    def go(self, name: str) -> None:
        """Jump."""
        self.do(f"br label %{name}")

    def branch(self, condition: "Vec", yes: str, no: str) -> None:
        """Jump by an i1."""
        self.do(f"br {condition}, label %{yes}, label %{no}")

    def const(self, value: float | str, kind: str, n: int = 0) -> "Vec":
        """A constant in every lane; floats are written as the bits of the double they equal."""
        text = str(value)
        if isinstance(value, float):
            text = "0x" + struct.pack(">d", value).hex().upper()
        scalar = Vec(self, text, kind)
        if not n:
            return scalar
        return Vec(self, f"<{', '.join([f'{kind} {text}'] * n)}>", kind, n, parts=[scalar] * n)

    def consts(self, values: Sequence[int], kind: str = "i32") -> "Vec":
        """A vector of constants."""
        return Vec(self, f"<{', '.join(f'{kind} {v}' for v in values)}>", kind, len(values))

    def call(self, name: str, kind: str, n: int, *arguments: "Vec") -> "Vec":
        """Call an intrinsic, or a function that ``declared`` defines."""
        types = ", ".join(of(a.kind, a.n) for a in arguments)
        self.declared.setdefault(name, f"declare {of(kind, n)} @{name}({types})")
        return self.op(f"call {of(kind, n)} @{name}({', '.join(map(str, arguments))})", kind, n)


def _operator(name: str) -> Callable[["Vec", "Vec | float"], "Vec"]:
    return lambda self, other: self.two(name, other)


@dataclass(frozen=True, eq=False, slots=True)
class Vec:
    """A typed value of the function that ``e`` collects."""

    e: Emitter
    name: str
    kind: str
    n: int = 0
    parts: Sequence["Vec"] = ()  # the lanes, if they were scalars before

    def __str__(self) -> str:
        return f"{of(self.kind, self.n)} {self.name}"

    def both(self, other: "Vec | float") -> tuple["Vec", "Vec"]:
        """This and another operand, with equally many lanes."""
        if not isinstance(other, Vec):
            return self, self.e.const(other, self.kind, self.n)
        n = max(self.n, other.n)
        return self.lanes(n), other.lanes(n)

    def two(self, name: str, other: "Vec | float") -> "Vec":
        """An instruction of two operands, by name; floats put an f before it."""
        a, b = self.both(other)
        return self.e.op(f"{'f' * (a.kind in SUFFIX)}{name} {a}, {b.name}", a.kind, a.n)

    __add__, __sub__, __mul__ = _operator("add"), _operator("sub"), _operator("mul")
    __and__, __or__, __xor__ = _operator("and"), _operator("or"), _operator("xor")
    __lshift__, __rshift__ = _operator("shl"), _operator("lshr")

    def __invert__(self) -> "Vec":
        return self ^ -1

    def __getitem__(self, k: "int | Vec | Sequence[int]") -> "Vec":
        """One lane as a scalar, or a vector of chosen lanes; of a scalar, itself."""
        if isinstance(k, int) and self.parts:
            return self.parts[k]
        if isinstance(k, int):
            return self.e.op(f"extractelement {self}, i32 {k}", self.kind) if self.n else self
        if isinstance(k, Vec):
            return self.e.op(f"extractelement {self}, {k}", self.kind)
        return pick([self], [(0, lane) for lane in k])

    def lanes(self, n: int) -> "Vec":
        """The value with n lanes: a scalar in all of them; as a scalar, what is the same in all
        lanes.
        """
        if bool(n) == bool(self.n):
            return self
        if not n:
            return self[0]
        first = self.e.op(f"insertelement {of(self.kind, n)} poison, {self}, i32 0", self.kind, n)
        return replace(first[[0] * n], parts=[self] * n)

    def bits(self, kind: str) -> "Vec":
        """The same bits as another type; words of 64 bits take two lanes of 32."""
        if kind == self.kind:
            return self
        n = self.n * SIZES[self.kind] // SIZES[kind]
        return self.e.op(f"bitcast {self} to {of(kind, n)}", kind, n)

    def cast(self, name: str, kind: str) -> "Vec":
        """Converted by the LLVM instruction of that name."""
        return self.e.op(f"{name} {self} to {of(kind, self.n)}", kind, self.n)

    def suffix(self, kind: str = "") -> str:
        """The end of an overloaded intrinsic's name for this type, or for as many lanes of
        ``kind``.
        """
        return (f"v{self.n}" if self.n else "") + SUFFIX.get(kind or self.kind, kind or self.kind)

    def call(self, name: str, *others: "Vec | float") -> "Vec":
        """An overloaded intrinsic whose operands and result have this type."""
        return self.e.call(
            f"llvm.{name}.{self.suffix()}",
            self.kind,
            self.n,
            self,
            *(self.both(x)[1] for x in others),
        )

    def cmp(self, relation: str, other: "Vec | float") -> "Vec":
        """i1: a comparison, named as LLVM names it ("ult", "oeq")."""
        a, b = self.both(other)
        return self.e.op(
            f"{'f' if a.kind in SUFFIX else 'i'}cmp {relation} {a}, {b.name}", "i1", a.n
        )

    def select(self, yes: "Vec", no: "Vec | float") -> "Vec":
        """Lane by lane of an i1: ``yes`` where it is set, else ``no``."""
        yes, no = yes.both(no)
        n = max(self.n, yes.n)
        yes, no = yes.lanes(n), no.lanes(n)
        return self.e.op(f"select {self.lanes(n)}, {yes}, {no}", yes.kind, n)

    def any(self) -> "Vec":
        """i1: set in some lane."""
        return self._number().cmp("ne", 0) if self.n else self

    def all(self) -> "Vec":
        """i1: set in every lane."""
        return self.e.call(f"llvm.vector.reduce.and.v{self.n}i1", "i1", 0, self) if self.n else self

    def _number(self) -> "Vec":
        return self.e.op(f"bitcast {self} to i{self.n}", f"i{self.n}")

    def count(self) -> "Vec":
        """i64: in how many lanes it is set."""
        return self._number().call("ctpop").cast("zext", "i64")

    def first(self) -> "Vec":
        """The number of the first lane in which it is set; some is."""
        number = self._number()
        return self.e.call(
            f"llvm.cttz.i{self.n}", f"i{self.n}", 0, number, self.e.const("true", "i1")
        )

    def freeze(self) -> "Vec":
        """The same value, or an arbitrary one if it is undefined (LLVM's ``freeze``)."""
        return self.e.op(f"freeze {self}", self.kind, self.n)

    # Pointers

    def at(self, offset: "Vec | int") -> "Vec":
        """The place so many bytes further."""
        if isinstance(offset, int):
            return self.e.op(f"getelementptr i8, {self}, i64 {offset}", "ptr") if offset else self
        return self.e.op(f"getelementptr i8, {self}, {offset}", "ptr")

    def load(self, kind: str, n: int = 0, align: int = 0, volatile: bool = False) -> "Vec":
        """The value at this address; ``volatile`` ones LLVM may not keep in registers."""
        text = f"load {'volatile ' if volatile else ''}{of(kind, n)}, {self}"
        return self.e.op(text + (f", align {align}" if align else ""), kind, n)

    def store(self, value: "Vec", align: int = 0) -> None:
        """Put a value there."""
        self.e.do(f"store {value}, {self}" + (f", align {align}" if align else ""))


def pick(parts: Sequence[Vec], wanted: Sequence[tuple[int, int]]) -> Vec:
    """A vector of the wanted (part, lane) pairs out of vectors of one type."""
    e, kind, size = parts[0].e, parts[0].kind, parts[0].n
    if list(wanted) == [(0, lane) for lane in range(size)]:
        return parts[0]
    parts = list(parts)
    width = size
    while len(parts) > 2:
        if len(parts) % 2:
            parts.append(Vec(e, "poison", kind, width))
        every = range(2 * width)
        parts = [_shuffle(x, y, every) for x, y in zip(parts[::2], parts[1::2], strict=True)]
        width *= 2
    second = parts[1] if len(parts) == 2 else Vec(e, "poison", kind, width)
    return _shuffle(parts[0], second, [part * size + lane for part, lane in wanted])


def _shuffle(x: Vec, y: Vec, indices: Sequence[int]) -> Vec:
    mask = x.e.consts(indices)
    return x.e.op(f"shufflevector {x}, {y}, {mask}", x.kind, mask.n)
