"""Memory accesses of the fast engine: textures, LDS and global memory, checked every time.

An access reads one 128-bit *texel* for each lane. Lanes that are known to share an address (``Analysis.lane_bits``)
share the load. Neighbouring accesses make up a group with one test for all of them: where every address of every lane
is inside, the loads follow at once; otherwise a second copy of the loads sends each outside address to a texel of zeros
and counts it. What the addresses are made of is computed axis by axis, so that the host's compiler moves whatever stays
the same out of a loop, tests included.

Textures are kept in panels of four texels (64 bytes, a line of the host's cache): all rows of columns 0 to 3, then of
columns 4 to 7, and so on. A walk down a column then reads consecutive lines.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from cypresskit.machine.fast.arithmetic import Builder, of

PANEL = 4  # texels side by side


def spread(lanes: int, bits: int) -> list[int]:
    """The lanes whose number has only bits of ``bits``: one representative for each set that shares a value."""
    return [lane for lane in range(lanes) if lane & ~bits == 0]


def representative(lanes: int, bits: int) -> list[int]:
    """For each lane, the position in ``spread`` of the lane that stands for it."""
    chosen = spread(lanes, bits)
    return [chosen.index(lane & bits) for lane in range(lanes)]


def pick(b: Builder, kind: str, parts: list[str], size: int, wanted: list[tuple[int, int]]) -> str:
    """A vector of the wanted (part, element) pairs from vectors of ``size`` elements each."""
    width = size
    parts = list(parts)
    while len(parts) > 2 or (len(parts) == 2 and len(parts) & 1):
        if len(parts) % 2:
            parts.append("poison")
        indices = ", ".join(f"i32 {k}" for k in range(2 * width))
        parts = [
            b.op(f"shufflevector <{width} x {kind}> {x}, <{width} x {kind}> {y}, <{2 * width} x i32> <{indices}>")
            for x, y in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    second = parts[1] if len(parts) == 2 else "poison"
    indices = ", ".join(f"i32 {part * size + element}" for part, element in wanted)
    mask = f"<{len(wanted)} x i32> <{indices}>"
    return b.op(f"shufflevector <{width} x {kind}> {parts[0]}, <{width} x {kind}> {second}, {mask}")


@dataclass
class Value:
    """A value of one component: ``n`` lanes, or a scalar (0) that all lanes share; always i32."""

    name: str
    n: int


def lanes_of(b: Builder, value: Value, chosen: list[int], kind: str = "i32") -> tuple[str, int]:
    """The value in the chosen lanes: a scalar for one lane, else a vector; with its number of lanes."""
    if not value.n:
        if len(chosen) == 1:
            return value.name, 0
        return splat(b, value.name, len(chosen), kind), len(chosen)
    if len(chosen) == 1:
        return b.op(f"extractelement {of(kind, value.n)} {value.name}, i32 {chosen[0]}"), 0
    if len(chosen) == value.n:
        return value.name, value.n
    return pick(b, kind, [value.name], value.n, [(0, lane) for lane in chosen]), len(chosen)


def splat(b: Builder, scalar: str, n: int, kind: str = "i32") -> str:
    """A vector with the scalar in every lane."""
    first = b.op(f"insertelement {of(kind, n)} poison, {kind} {scalar}, i32 0")
    indices = ", ".join(["i32 0"] * n)
    return b.op(f"shufflevector {of(kind, n)} {first}, {of(kind, n)} poison, <{n} x i32> <{indices}>")


def all_of(b: Builder, condition: str, n: int) -> str:
    """i1: the condition holds in every lane."""
    if not n:
        return condition
    return b.call(f"llvm.vector.reduce.and.v{n}i1", "i1", (of("i1", n), condition))


@dataclass
class Axis:
    """One coordinate in its own distinct lanes: ``place`` (a whole double) is tested, ``index`` (i64) is used."""

    bits: int
    n: int
    place: str
    index: str
    limit: str  # double: the texture's size
    bits_of_place: str  # i32: place as a float
    key: tuple  # which operand it is
    low: int = 0
    high: int = 0


def hidden(b: Builder, value: str, kind: str) -> str:
    """An i64 or double scalar whose origin LLVM can't see: what is computed from it stays where it is, and isn't moved
    out of a loop in the hope that it may be needed."""
    bits = b.cast(value, "i64", kind, 0)
    return b.cast(b.op(f'call i64 asm sideeffect "", "=r,0"(i64 {bits})'), kind, "i64", 0)


def surely_inside(b: Builder, axes: list[Axis]) -> str:
    """i1: in every lane, the coordinate that ``axes`` share lies inside all their textures, with all offsets that are
    added to it. Where this is false it may still lie inside: only -0.0 and places beyond 2^24 are such cases.

    One comparison does for both ends: as integers, the bits of floats from 0 up are in order, those of negative numbers
    and NaN lie above."""
    axis = axes[0]
    bounds = [b.op(f"fsub double {a.limit}, {float(a.high)!r}") for a in axes] + [b.constant(2.0**24, 0, "double")]
    bound = bounds[0]
    for other in bounds[1:]:
        bound = b.call("llvm.minnum.f64", "double", ("double", bound), ("double", other))
    bound = b.call("llvm.maxnum.f64", "double", ("double", bound), ("double", b.constant(0.0, 0, "double")))
    bound = b.op(f"bitcast float {b.op(f'fptrunc double {bound} to float')} to i32")
    n, low = axis.n, min(a.low for a in axes)
    test = b.op(f"icmp ult {of('i32', n)} {axis.bits_of_place}, {splat(b, bound, n) if n else bound}")
    if low < 0:
        enough = b.op(f"fcmp oge {of('double', n)} {axis.place}, {b.constant(float(-low), n, 'double')}")
        test = b._two("and", "i1", n, test, enough)
    return all_of(b, test, n)


@dataclass
class Access:
    """One access while it is being translated.

    ``bits``: the lane bits on which its address depends. ``fits`` makes the i1 that no address is outside (axes of
    textures are tested together instead). ``load(slow)`` gives one <4 x i32> for each distinct lane.
    """

    at: int
    bits: int
    load: Callable[[bool], list[str]]
    fits: Callable[[], str] | None = None
    finish: Callable[[list[str]], None] | None = None  # what becomes of them, if not the usual
    axes: list[Axis] = field(default_factory=list)


def panel_offset(b: Builder, x: str, shift: int, pitch: str) -> str:
    """Bytes from a texture's start to texel column x + shift (i64 scalar) in row 0."""
    x = b.op(f"add i64 {x}, {shift}") if shift else x
    panel = b.op(f"ashr i64 {x}, {PANEL.bit_length() - 1}")
    panel = b.op(f"mul i64 {panel}, {pitch}")
    within = b.op(f"and i64 {x}, {PANEL - 1}")
    within = b.op(f"shl i64 {within}, 4")
    return b.op(f"add i64 {panel}, {within}")
