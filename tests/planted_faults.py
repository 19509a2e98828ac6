"""Single faults planted in a kernel's text, as one makes them: a component, a coordinate or an
offset that is another, a ``mad`` that is there twice or not at all.
"""

import re
from dataclasses import dataclass

from cypresskit.kernels.products import blocks, make_product
from cypresskit.machine import KernelError

KINDS = ("component", "coordinate", "repeated", "missing", "offset")
MAD = re.compile(r"\s*(mad|dmad|fma) r")
FETCH = re.compile(r"\s*(sample|load)_resource")
COORDINATE = re.compile(r"\.([xyzw])([xyzw])00")
OFFSET = re.compile(r"aoffimmi\((-?\d+),(-?\d+)")
ELEMENT = re.compile(r"g\[r\d+\.[xyzw]\+(\d+)\]")


@dataclass(frozen=True)
class Fault:
    """A text with a fault of a ``kind`` in ``line``, counted from 1."""

    kind: str
    line: int
    text: str


def plant(text, rng):
    """A fault of a random kind at a random place, or None if the text has no such place."""
    lines = text.split("\n")
    kind = rng.choice(KINDS)
    places = [at for at, line in enumerate(lines) if _fits(kind, line)]
    if not places:
        return None
    at = rng.choice(places)
    if kind == "repeated":
        lines.insert(at + 1, lines[at])
        at += 1
    elif kind == "missing":
        lines[at] = ""
    else:
        change = {"component": _component, "coordinate": _coordinate, "offset": _offset}[kind]
        changed = change(lines[at], rng)
        if changed is None:
            return None
        lines[at] = changed
    return Fault(kind, at + 1, "\n".join(lines))


def _fits(kind, line):
    if kind == "coordinate":
        return bool(FETCH.match(line) and COORDINATE.search(line))
    if kind == "offset":
        return bool(OFFSET.search(line) or ELEMENT.search(line))
    return bool(MAD.match(line)) and "vWin" not in line and "cb0" not in line


def _component(line, rng):
    operands = line.split(";")[0].split(",")
    number = rng.choice([1, 2])
    found = re.search(r"\.([xyzw]+)", operands[number])
    if not found:
        return None
    letters = found[1]
    others = [c for c in "xyzw" if c != letters] if len(letters) == 1 else []
    others += {"xy": ["zw"], "zw": ["xy"]}.get(letters, [])
    if not others:
        return None
    operand = operands[number]
    operands[number] = operand[: found.start(1)] + rng.choice(others) + operand[found.end(1) :]
    return ",".join(operands)


def _coordinate(line, rng):
    found = COORDINATE.search(line)
    assert found
    x, y = found[1], found[2]
    changed = [y + x, *(c + y for c in "xyzw" if c != x), *(x + c for c in "xyzw" if c != y)]
    return line[: found.start(1)] + rng.choice(changed) + line[found.end(2) :]


def _offset(line, rng):
    if found := OFFSET.search(line):
        x, y = int(found[1]), int(found[2])
        dx, dy = rng.choice([(1, 0), (-1, 0), (0, 1), (0, -1)])
        return f"{line[: found.start()]}aoffimmi({x + dx},{y + dy}{line[found.end() :]}"
    found = ELEMENT.search(line)
    assert found
    return f"{line[: found.start(1)]}{int(found[1]) - 1}{line[found.end(1) :]}"


def count_correct_share(kernel):
    """Return the share of C's elements that are correct, in a product of 2 x 3 blocks of C.

    It is 0 if the launch is refused or the kernel fails.
    """
    given = make_product(kernel, blocks(kernel, 2, 3, 3), 1.0, 0.0, seed=41, largest=9)
    try:
        result = given.run(engine="interpreter")
    except (KernelError, ValueError):
        return 0.0
    return float(1 - given.wrong(result).mean())
