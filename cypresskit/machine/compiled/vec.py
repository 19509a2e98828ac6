"""LLVM IR as text: typed values whose operators write instructions.

A ``Vec`` is ``n`` lanes of a ``kind`` ("i1", "i32", "i64", "float", "double", "ptr"); n = 0 is a
scalar. Operators and methods add an instruction to the ``Emitter`` and return its result. Numbers
become constants of the other operand's type; a scalar beside a vector is copied to all lanes.
llvmlite's builder is slower, and lacks the attribute for a flush mode.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

SIZES = {"i32": 32, "i64": 64, "float": 32, "double": 64}
SUFFIX = {"float": "f32", "double": "f64"}


def of(kind: str, n: int) -> str:
    """Return the LLVM type of ``n`` lanes of ``kind``."""
    return f"<{n} x {kind}>" if n else kind


class Emitter:
    """The text of a function, instruction by instruction.

    Attributes
    ----------
    lines
        The instructions.
    variables
        Memory on the stack, which LLVM turns into registers.
    declared
        Declarations and definitions of functions, by name.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = 0
        self.declared: dict[str, str] = {}
        self.variables: dict[str, Vec] = {}

    def op(self, text: str, kind: str, n: int = 0) -> "Vec":
        """Add an instruction. Return its result, of that type."""
        self.names += 1
        self.do(f"%v{self.names} = {text}")
        return Vec(self, f"%v{self.names}", kind, n)

    def do(self, text: str) -> None:
        """Add an instruction without result."""
        self.lines.append(f"  {text}")

    def new(self, name: str) -> str:
        """Return a new label. Its dot keeps it apart from labels with an instruction's number."""
        self.names += 1
        return f"{name}.{self.names}"

    def label(self, name: str) -> None:
        """Begin a block; the one before continues here, unless it jumps."""
        if not self.lines or not self.lines[-1].startswith(("  br ", "  switch ")):
            self.go(name)
        self.lines.append(f"{name}:")

    def go(self, name: str) -> None:
        """Jump."""
        self.do(f"br label %{name}")

    def branch(self, condition: "Vec", yes: str, no: str) -> None:
        """Jump by an i1."""
        self.do(f"br {condition}, label %{yes}, label %{no}")

    def when(self, condition: "Vec") -> str:
        """Begin a block that runs if an i1 is set. Return the label of what follows it."""
        inside, after = self.new("if"), self.new("after")
        self.branch(condition, inside, after)
        self.label(inside)
        return after

    def const(self, value: float | str, kind: str, n: int = 0) -> "Vec":
        """Return a constant in every lane; a float is written as the bits of an equal double."""
        text = str(value)
        if isinstance(value, float):
            text = "0x" + struct.pack(">d", value).hex().upper()
        return self.consts([text] * n, kind) if n else Vec(self, text, kind)

    def consts(self, values: Sequence[int | str], kind: str = "i32") -> "Vec":
        """Return a vector of constants."""
        return Vec(self, f"<{', '.join(f'{kind} {v}' for v in values)}>", kind, len(values))

    def vector(self, parts: Sequence["Vec"]) -> "Vec":
        """Combine scalars into a vector; return a single one as it is."""
        if all(part is parts[0] for part in parts):
            return parts[0].lanes(len(parts))
        whole = Vec(self, "poison", parts[0].kind, len(parts))
        for k, part in enumerate(parts):
            whole = self.op(f"insertelement {whole}, {part}, i32 {k}", whole.kind, whole.n)
        return whole

    def call(self, name: str, kind: str, n: int, *arguments: "Vec") -> "Vec":
        """Call an intrinsic, or a function that ``declared`` defines."""
        types = ", ".join(of(a.kind, a.n) for a in arguments)
        self.declared.setdefault(name, f"declare {of(kind, n)} @{name}({types})")
        return self.op(f"call {of(kind, n)} @{name}({', '.join(map(str, arguments))})", kind, n)

    # Variables

    def variable(self, name: str, kind: str, n: int = 0) -> None:
        """Declare a variable."""
        self.variables[name] = Vec(self, f"%{name}", kind, n)

    def get(self, name: str) -> "Vec":
        """Return the value of a variable."""
        place = self.variables[name]
        return replace(place, kind="ptr", n=0).load(place.kind, place.n)

    def set(self, name: str, value: "Vec | int") -> None:
        """Set a variable; a number sets every lane."""
        place = self.variables[name]
        value = value if isinstance(value, Vec) else place.like(value)
        replace(place, kind="ptr", n=0).store(value)

    def add(self, name: str, value: "Vec | int") -> None:
        """Add to a variable."""
        self.set(name, self.get(name) + value)

    def allocations(self) -> list[str]:
        """Return the lines that allocate the variables, which begin as 0."""
        return [
            f"  {v.name} = alloca {of(v.kind, v.n)}\n"
            f"  store {of(v.kind, v.n)} zeroinitializer, ptr {v.name}"
            for v in self.variables.values()
        ]


def _operator(name: str) -> Callable[["Vec", "Vec | float"], "Vec"]:
    return lambda self, other: self.two(name, other)


@dataclass(frozen=True, eq=False, slots=True)
class Vec:
    """A typed value in the function that ``e`` writes."""

    e: Emitter
    name: str
    kind: str
    n: int = 0

    def __str__(self) -> str:
        return f"{of(self.kind, self.n)} {self.name}"

    def like(self, value: float | str) -> "Vec":
        """Return a constant of this type."""
        return self.e.const(value, self.kind, self.n)

    def both(self, other: "Vec | float") -> tuple["Vec", "Vec"]:
        """Return this and another operand, with equal numbers of lanes."""
        if not isinstance(other, Vec):
            return self, self.like(other)
        n = max(self.n, other.n)
        return self.lanes(n), other.lanes(n)

    def two(self, name: str, other: "Vec | float") -> "Vec":
        """Apply an instruction of two operands, by name; floats put an f before it."""
        a, b = self.both(other)
        return self.e.op(f"{'f' * (a.kind in SUFFIX)}{name} {a}, {b.name}", a.kind, a.n)

    __add__, __sub__, __mul__ = _operator("add"), _operator("sub"), _operator("mul")
    __and__, __or__, __xor__ = _operator("and"), _operator("or"), _operator("xor")
    __lshift__, __rshift__ = _operator("shl"), _operator("lshr")

    def __invert__(self) -> "Vec":
        return self ^ -1

    def __getitem__(self, k: int) -> "Vec":
        """Return one lane as a scalar; a scalar as it is."""
        return self.e.op(f"extractelement {self}, i32 {k}", self.kind) if self.n else self

    def pick(self, wanted: Sequence[int]) -> "Vec":
        """Return some lanes as a vector; a single one as a scalar."""
        if len(wanted) == 1:
            return self[wanted[0]]
        if not self.n:
            return self.lanes(len(wanted))
        if list(wanted) == list(range(self.n)):
            return self
        order = self.e.consts(wanted)
        return self.e.op(f"shufflevector {self}, {self}, {order}", self.kind, len(wanted))

    def lanes(self, n: int) -> "Vec":
        """Copy a scalar to n lanes; return a vector, or for n < 2 anything, as it is."""
        if self.n or n < 2:
            return self
        first = self.e.op(f"insertelement {of(self.kind, n)} poison, {self}, i32 0", self.kind, n)
        return first.pick([0] * n)

    def bits(self, kind: str) -> "Vec":
        """Return the same bits as another type; 64-bit words take two lanes of 32."""
        if kind == self.kind:
            return self
        n = max(self.n, 1) * SIZES[self.kind] // SIZES[kind]
        n = n if n > 1 else 0
        return self.e.op(f"bitcast {self} to {of(kind, n)}", kind, n)

    def cast(self, name: str, kind: str) -> "Vec":
        """Convert by the LLVM instruction of that name."""
        return self.e.op(f"{name} {self} to {of(kind, self.n)}", kind, self.n)

    def suffix(self, kind: str = "") -> str:
        """Return the end of an overloaded intrinsic's name for this type, or for as many lanes of
        ``kind``.
        """
        return (f"v{self.n}" if self.n else "") + SUFFIX.get(kind or self.kind, kind or self.kind)

    def call(self, name: str, *others: "Vec | float") -> "Vec":
        """Call an overloaded intrinsic whose operands and result have this type."""
        return self.e.call(
            f"llvm.{name}.{self.suffix()}",
            self.kind,
            self.n,
            self,
            *(self.both(x)[1] for x in others),
        )

    def cmp(self, relation: str, other: "Vec | float") -> "Vec":
        """Return an i1: a comparison, named as in LLVM ("ult", "oeq")."""
        a, b = self.both(other)
        return self.e.op(
            f"{'f' if a.kind in SUFFIX else 'i'}cmp {relation} {a}, {b.name}", "i1", a.n
        )

    def select(self, yes: "Vec", no: "Vec | float") -> "Vec":
        """Choose lane by lane of an i1: ``yes`` where it is set, else ``no``."""
        yes, no = yes.both(no)
        n = max(self.n, yes.n)
        yes, no = yes.lanes(n), no.lanes(n)
        return self.e.op(f"select {self.lanes(n)}, {yes}, {no}", yes.kind, n)

    # Pointers

    def at(self, offset: "Vec | int") -> "Vec":
        """Return the address ``offset`` bytes further."""
        if isinstance(offset, int):
            return self.at(self.e.const(offset, "i64")) if offset else self
        return self.e.op(f"getelementptr i8, {self}, {offset}", self.kind)

    def load(self, kind: str, n: int = 0, align: int = 0) -> "Vec":
        """Load a value."""
        return self.e.op(f"load {of(kind, n)}, {self}" + _aligned(align), kind, n)

    def store(self, value: "Vec", align: int = 0) -> None:
        """Store a value."""
        self.e.do(f"store {value}, {self}" + _aligned(align))


def _aligned(align: int) -> str:
    return f", align {align}" if align else ""
