"""A kernel's text, changed at random: as a person types, or with a single fault planted in it."""

import re
from dataclasses import dataclass

from cypresskit.kernels.products import blocks, make_product
from cypresskit.machine import KernelError

OPERAND = re.compile(r"\b([rl]\d+|cb0\[\d\]|x|y|z|w)\b")
OPCODES = ("mad", "add", "mul", "mov", "iadd", "min", "dadd", "ge", "whileloop", "endif", "sample")
PRODUCT = r"^\s*(?:mad|dmad|fma) r(?!.*(?:vWin|cb0))"
SOURCE = r", *r\d+\.(xy|zw|[xyzw])\b"
FETCH = r"^\s*(?:sample|load)_resource.*\.([xyzw]{2})00"
OFFSET = r"aoffimmi\((-?\d+,-?\d+)|g\[r\d+\.[xyzw]\+(\d+)\]"


def _replace(line, found, new):
    """The line with something new in the place of a match's group."""
    return line[: found.start(found.lastindex)] + new + line[found.end(found.lastindex) :]


# -- what a person types


def _letter(line, rng):
    place = rng.randrange(len(line) + 1)
    return [line[:place] + rng.choice("rxyzw0123.,_") + line[place:]]


def _operand(line, rng):
    found = [*OPERAND.finditer(line)]
    return [_replace(line, rng.choice(found), rng.choice(found)[1]) if found else line]


#: By kind, the lines that become of one; of two that are swapped, each takes the other's place.
EDITS = {
    "letter": _letter,
    "gone": lambda line, rng: [],
    "twice": lambda line, rng: [line, line],
    "swapped": lambda line, rng: [line],
    "operand": _operand,
    "opcode": lambda line, rng: [re.sub(r"[a-z]\w*", rng.choice(OPCODES), line, count=1)],
    "digit": lambda line, rng: [re.sub(r"\d", rng.choice("0123456789"), line, count=1)],
    "half typed": lambda line, rng: [line[: rng.randrange(len(line))]],
}


def mistype(text, rng, count):
    """A text after ``count`` edits of lines that aren't empty or comments."""
    lines = text.split("\n")
    for _ in range(count):
        working = [at for at, line in enumerate(lines) if line.strip() and line.strip()[0] != ";"]
        at, other = rng.choice(working), rng.choice(working)
        kind = rng.choice([*EDITS])
        if kind == "swapped":
            lines[at], lines[other] = lines[other], lines[at]
        lines[at : at + 1] = EDITS[kind](lines[at], rng)
    return "\n".join(lines)


# -- faults


def _component(line, rng):
    found = rng.choice([*re.finditer(SOURCE, line)][:2])
    pairs = {"xy": ["zw"], "zw": ["xy"]}
    others = pairs.get(found[1]) or [each for each in "xyzw" if each != found[1]]
    return [_replace(line, found, rng.choice(others))]


def _coordinate(line, rng):
    found = re.search(FETCH, line)
    x, y = found[1]
    others = [y + x, *(c + y for c in "xyzw" if c != x), *(x + c for c in "xyzw" if c != y)]
    return [_replace(line, found, rng.choice(others))]


def _offset(line, rng):
    found = re.search(OFFSET, line)
    if not found[1]:
        return [_replace(line, found, f"{int(found[2]) - 1}")]
    x, y = map(int, found[1].split(","))
    dx, dy = rng.choice([(1, 0), (-1, 0), (0, 1), (0, -1)])
    return [_replace(line, found, f"{x + dx},{y + dy}")]


#: By kind, the lines in which such a fault may be, and what becomes of one.
FAULTS = {
    "component": (f"{PRODUCT}.*{SOURCE}", _component),
    "coordinate": (FETCH, _coordinate),
    "repeated": (PRODUCT, lambda line, rng: [line, line]),
    "missing": (PRODUCT, lambda line, rng: [""]),
    "offset": (OFFSET, _offset),
}


@dataclass(frozen=True)
class Fault:
    """A text with a fault of a ``kind`` in ``line``, counted from 1."""

    kind: str
    line: int
    text: str


def plant(text, rng, kinds=(*FAULTS,)):
    """A fault of a random kind at a random place, or None if the text has no such place."""
    lines, kind = text.split("\n"), rng.choice(kinds)
    pattern, change = FAULTS[kind]
    places = [at for at, line in enumerate(lines) if re.search(pattern, line)]
    if not places:
        return None
    at = rng.choice(places)
    changed = change(lines[at], rng)
    lines[at : at + 1] = changed
    return Fault(kind, at + len(changed), "\n".join(lines))


def count_correct_share(kernel):
    """Return the share of C's elements that are correct, in a product of 2 x 3 blocks of C.

    It is 0 if the launch is refused or the kernel fails.
    """
    given = make_product(kernel, blocks(kernel, 2, 3, 3), 1.0, 0.0, seed=41, largest=9)
    try:
        result = given.run(engine="interpreter")
    except (KernelError, ValueError):
        return 0.0
    return float(1 - given.find_incorrect(result).mean())
