"""Make random edits of catalog kernels, like a person typing: letters, lines, operands, opcodes."""

import random
import re

import cypresskit as ck

OPERAND = re.compile(r"\b([rl]\d+|cb0\[\d\]|x|y|z|w)\b")
OPCODES = ("mad", "add", "mul", "mov", "iadd", "min", "dadd", "ge", "whileloop", "endif", "sample")


def random_edits(seed, count):
    """Yield ``count`` pairs: the name of a kernel, and its text after one to three edits."""
    rng = random.Random(seed)
    names = list(ck.kernels)
    for _ in range(count):
        name = rng.choice(names)
        yield name, edited(ck.kernels[name].text, rng, rng.choice((1, 1, 1, 2, 3)))


def edited(text, rng, count):
    """Return a kernel's text after ``count`` edits."""
    lines = text.split("\n")
    for _ in range(count):
        _edit(lines, rng)
    return "\n".join(lines)


def _edit(lines, rng):
    """Edit a line that isn't empty or a comment."""
    working = [n for n, line in enumerate(lines) if line.strip() and line.strip()[0] != ";"]
    at = rng.choice(working)
    kind = rng.choice(("letter", "gone", "twice", "swap", "operand", "operand", "opcode", "typed"))
    line = lines[at]
    if kind == "letter":
        place = rng.randrange(len(line) + 1)
        lines[at] = line[:place] + rng.choice("rxyzw0123.,_") + line[place:]
    elif kind == "gone":
        del lines[at]
    elif kind == "twice":
        lines.insert(at, line)
    elif kind == "swap":
        other = rng.choice(working)
        lines[at], lines[other] = lines[other], line
    elif kind == "operand":
        found = list(OPERAND.finditer(line))
        if found:
            old, new = rng.choice(found), rng.choice(found)
            lines[at] = line[: old.start()] + new[0] + line[old.end() :]
    elif kind == "opcode":
        lines[at] = re.sub(r"[a-z]\w*", rng.choice(OPCODES), line, count=1)
    else:
        lines[at] = line[: rng.randrange(len(line))]  # half typed
