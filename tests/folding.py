"""Constants that the compiler folds, on random words: run with numpy, and with what stands for it
on the compile page.
"""

import random

import numpy as np

from cypresskit.compiler.isa import OPS
from cypresskit.il.meaning import pair, scaled

#: Words at which arithmetic goes wrong first: zeros, ends of ranges, subnormals, halves, infinity,
#: NaN; each with either sign.
SPECIAL = (0, 1, 31, 32, 33, 0x7FFFFF, 0x800000, 0x800001, 0x3EFFFFFF, 0x3F000000, 0x3F800000)
SPECIAL += (0x4B000001, 0x4F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF)
#: Sums that are rounded wrongly if they are rounded twice: a product halfway between two floats,
#: and what is added lies far below.
TWICE = ((0x3F800800, 0x3F800800, 0x21800000), (0x3F800800, 0x3F800800, 0xA1800000))


def word(rng: random.Random) -> int:
    """A random word: a special one, any, a float near 1, or a small one."""
    sign = rng.getrandbits(1) << 31
    near = (124 + rng.randrange(34)) << 23 | rng.getrandbits(23)
    return sign | rng.choice([rng.choice(SPECIAL), rng.getrandbits(31), near, rng.getrandbits(24)])


def folded(count: int) -> list[list]:
    """What constants are folded to: of each operation that is, ``count`` times."""
    rng = random.Random(5)
    results = []
    for name, row in OPS.items():
        double = row.kind == "double"
        if row.meaning is None or (double and row.words == 2):
            continue
        for number in range(count):
            words = [word(rng) for _ in range(row.reads * (1 + double))]
            if row.reads == 3 and not double and number < len(TWICE):
                words = list(TWICE[number])
            scale, saturate = rng.choice([1.0, 2.0, 4.0, 0.5, 8.0]), rng.random() < 0.5
            bits, after = fold(row, words, scale, saturate)
            results.append([name, words, scale, saturate, bits, after])
    return results


def fold(row, words: list[int], scale: float, saturate: bool) -> tuple[int, int]:
    """The bits of an operation on constants, and those after its scale and clamp."""
    arrays = [np.array([each], np.uint32) for each in words]
    with np.errstate(all="ignore"):
        if row.kind == "double":
            arrays = [pair(*two) for two in zip(arrays[::2], arrays[1::2])]
        bits = row.meaning(*arrays)
        after = scaled(bits, scale, saturate) if row.scales else bits
    return int(bits[0]), int(after[0])
