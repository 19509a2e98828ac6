"""Write random programs: text with randomly chosen fields, and arrays of difficult numbers.

A field is ``{name}``, one of the alternatives under that name in the writer's ``grammar``, or
``{a|b}``, one of two. Alternatives are separated by ``|`` and may contain fields. An alternative
that is written twice is chosen more often.
"""

import random
import re

import numpy as np

FIELD = re.compile(r"\{([^{}]*)\}")
SPECIAL = np.array(
    [
        0,
        0x80000000,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0xFFC01234,
        0x7F800001,
        1,
        0x807FFFFF,
        0x00800000,
        0x80800001,
        0x7F7FFFFF,
        0x4B7FFFFF,
        0x4F000000,
        0x3F7FFFFF,
        0x20000000,
        0x1FFFFFFF,
        0x00400000,
        0x3FF00000,
        0x7FF00000,
        0x000FFFFF,
        0xFFFFFFFF,
        2,
        3,
        7,
        31,
        0x40490FDB,
        0x3EAAAAAB,
    ],
    np.uint32,
)


def random_words(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    """Return uint32 patterns: floats of many sizes, integers, special values, and random bits."""
    draw = np.random.default_rng(rng.getrandbits(64))
    plain = (draw.standard_normal(shape) * 2.0 ** draw.integers(-4, 5, shape)).astype(np.float32)
    with np.errstate(over="ignore"):  # some become infinite
        wide = (
            draw.standard_normal(shape) * 2.0 ** draw.integers(-130, 127, shape).astype(float)
        ).astype(np.float32)
    whole = draw.integers(-9, 10, shape)
    double = draw.standard_normal((*shape, 1)).view(np.uint32)[..., 1]
    kinds = [
        plain,
        plain,
        wide,
        whole.astype(np.float32),
        whole.astype(np.int32),
        double,
        draw.choice(SPECIAL, shape),
        draw.integers(0, 2**32, shape, np.uint32),
    ]
    return np.choose(draw.integers(0, len(kinds), shape), [kind.view(np.uint32) for kind in kinds])


class Writer:
    """Writes a program line by line; ``grammar`` maps names of fields to their alternatives."""

    def __init__(self, rng: random.Random, grammar: dict[str, str]):
        self.rng, self.grammar = rng, grammar
        self.lines: list[str] = []
        self.depth = 0

    @property
    def text(self) -> str:
        """The program so far."""
        return "\n".join(self.lines) + "\n"

    def say(self, text: str) -> None:
        """Write lines, with a random choice in place of each field."""
        while FIELD.search(text):
            text = FIELD.sub(self.chosen, text)
        self.lines += ["    " * self.depth + line for line in text.splitlines()]

    def chosen(self, field: re.Match) -> str:
        name = field[1]
        if name in self.grammar:
            return f"{{{self.grammar[name]}}}"
        return self.rng.choice(name.split("|"))
