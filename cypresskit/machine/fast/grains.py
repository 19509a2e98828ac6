"""Which operations never give a subnormal, so that nothing needs to be flushed there on hosts without a flush mode.

A value has *grain* g if it is a whole multiple of 2^-g, or infinite or NaN. The grain of a product is the sum of its
factors', that of a sum the largest of its terms', and rounding keeps both: what is rounded away are multiples, too. So
a result of grain 126 is zero or at least 2^-126. Single-precision numbers of 2^-40 or more have grain 63. Where all
numbers of the textures are that large, or zero, a sum of products needs no flush: the caller looks before a launch.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np

from cypresskit.il import Instruction, Source
from cypresskit.il.dataflow import defines, read_positions
from cypresskit.machine.fast.analysis import Analysis

NORMAL = 126  # the least normal number is 2^-126
TEXEL = 63  # the grain of texels, if no one is smaller than
LEAST = (127 - TEXEL + 23) << 23  # 2^-40: its bits
UNKNOWN = 1000  # perhaps a subnormal
STEPS = (0, NORMAL // 4, TEXEL, NORMAL)  # grains are rounded up to these, so that loops settle soon


def coarse(words: np.ndarray) -> bool:
    """Whether all of these numbers have the grain of texels because of their size."""
    sizes = words & 0x7FFFFFFF
    sizes -= 1  # zeros become the largest
    return not sizes.size or bool(sizes.min() >= LEAST - 1)


class Grains:
    """``normal``: the instructions whose operands and results are never subnormal, if texels have grain ``texel``."""

    def __init__(self, analysis: Analysis, texel: int):
        self.a, self.program, self.texel = analysis, analysis.program, texel
        self.found: dict[tuple[str, int], int] = {}  # grains of webs, by their representatives, and of LDS arrays
        self.changed = True
        while self.changed:
            self.changed = False
            self.normal = {at for at, i in enumerate(self.program.body) if self._settle(at, i)}

    def _settle(self, at: int, i: Instruction) -> bool:
        """Take in what ``i`` writes; whether it is arithmetic without subnormals."""
        operands = [self._operand(at, n, source) for n, source in enumerate(i.sources)]
        grain, array = UNKNOWN, ("lds", i.controls.id)
        if i.op.kind == "fetch":
            grain = self.texel
        elif i.op.store:
            self._widen(array, max(operands[n] for n in i.op.passed))
        elif i.op.kind == "lds":
            grain = self.found.get(array, 0)
        elif i.op.name in RULES:
            grain = RULES[i.op.name](*operands) + max(0, 1 - math.frexp(i.shift)[1])
        for c in defines(i):
            if i.dest and i.dest.mask[c] not in "01":
                self._widen(("r", self.a.webs.find(self.a.webs.defined[at, c])), grain)
        return i.op.kind == "alu" and max(*operands, grain) <= NORMAL

    def _widen(self, what: tuple[str, int], grain: int) -> None:
        grain = next((step for step in STEPS if grain <= step), UNKNOWN)
        if grain > self.found.get(what, 0):
            self.found[what], self.changed = grain, True

    def _operand(self, at: int, n: int, source: Source) -> int:
        if source.invert or source.bias or source.x2 or source.sign:
            return UNKNOWN
        positions = read_positions(self.program, self.program.body[at], n)
        return max(self._components(at, n, source, positions), default=0)

    def _components(self, at: int, n: int, source: Source, positions: Iterable[int]) -> Iterable[int]:
        kind = source.register.kind
        for letter in (source.swizzle[p] for p in positions):
            if letter in "01":
                yield 0
            elif kind == "l":
                yield _grain(self.program.literals[source.register.index]["xyzw".index(letter)])
            elif kind == "r":
                yield self.found.get(("r", self.a.webs.find(self.a.webs.used[at, n, "xyzw".index(letter)])), 0)
            else:
                yield 1 if kind == "vWinCoord0" else UNKNOWN


def _grain(bits: int) -> int:
    """Of a literal."""
    value = np.uint32(bits).view(np.float32)
    return value.item().as_integer_ratio()[1].bit_length() - 1 if np.isfinite(value) else 0


def _product(a: int, b: int) -> int:
    return a + b


def _whole(a: int) -> int:
    return 0


def _largest(*grains: int) -> int:
    return max(grains)


#: The grain of what an opcode gives, from those of its operands; unknown for all others.
RULES: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("mov", "frc", "add", "sub", "min", "max"), _largest),
    **dict.fromkeys(("mul", "dp2", "dp3", "dp4"), _product),
    **dict.fromkeys(("flr", "round_nearest", "round_neginf", "round_plusinf", "round_z", "itof", "utof"), _whole),
    **dict.fromkeys(("mad", "fma"), lambda a, b, c: max(a + b, c)),
    "cmov_logical": lambda a, b, c: max(b, c),
}
