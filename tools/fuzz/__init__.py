"""Try random programs, one per seed, in child processes, which may hang or crash (`make fuzz`).

Each row of ``KINDS`` is a kind of program, and the function that writes and tries one:

- valid: it must assemble, cause no finding about races, barriers and unset values, compile, and
  give the same bits and counts on both engines (`programs`, `engines`).
- nearly valid, random: a damaged program, and any text. It may be refused, but only with the errors
  for that. An accepted one must not crash or hang, and must give the same bits unless a finding of
  ``OPEN`` explains the difference.
- timed: a launch of any program on any board; its report must obey the law (`law`).
- sampled: a launch that is partly simulated; its time must be correct within its error (`samples`).

To add a kind, write a function that takes a ``random.Random``, writes a program (`grammar` has the
common parts), calls ``note`` with its text, tries it, and raises ``Wrong`` or any other exception
if something is wrong. Add a row to ``KINDS``, and the kind to ``TURNS``.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from itertools import count, takewhile

import cypresskit as ck
from cypresskit.il import OPCODES
from cypresskit.machine.checks import check
from tools.fuzz.children import Children, note
from tools.fuzz.engines import STEPS, Wrong, agree, in_words
from tools.fuzz.law import Uncounted, timed
from tools.fuzz.programs import random_program
from tools.fuzz.samples import sampled

LIMIT = 60  # seconds of processor time for one program
REFUSED = (ck.KernelError, ValueError, TypeError)  # ILError is a ValueError
#: Findings after which engines may differ: races, and faults that hide a race on
#: the same address.
OPEN = {"race", "uninitialised", "unaligned"}
SILENT = {"race", "barrier", "uninitialised", "store outside", "endless loop"}
WORDS = [
    *OPCODES,
    "il_ps_2_0",
    "il_cs_2_0",
    "end",
    "mdef(0)_out(1)_in(1)",
    "mend",
    "r0",
    "r1.x",
    "l0",
    "cb0[1]",
    "o0",
    "g[r0.x]",
    "mem.xy",
    "vWinCoord0",
    "vaTid",
    ",",
    ".",
    "(",
    ")",
    "_",
    "[",
    "-1",
    "65535",
    "0x7fc00000",
    "1e39",
    "é",
    "\u2028",
    "\0",
    ";",
    "//",
    "_neg(xyzw)",
    "_sat",
    "_x2",
    "4294967296",
    "\n",
    "\n",
    "\t",
    " ",
]


def run(seconds: float, seed: int = 0, kind: str | None = None, say=print) -> int:
    """Fuzz for ``seconds``, from ``seed`` on, with at least one program.

    Parameters
    ----------
    kind
        The kind of all programs; by default all kinds in turn.

    Returns
    -------
    int
        How many programs failed.
    """
    end, wrong, counts = time.monotonic() + seconds, 0, Counter[str]()
    ck.simulate("sgemm_tn", 64)  # compiles the timing engine, for all children of this process
    with Children(LIMIT) as children:
        for n in takewhile(lambda n: n == seed or time.monotonic() < end, count(seed)):
            this = kind or TURNS[n % len(TURNS)]
            outcome = children.call(attempt, this, n)
            counts[outcome.result or this] += 1
            if outcome.fault:
                wrong += 1
                again = f"python -m tools.fuzz --seconds 0 --seed {n} --kind '{this}'"
                say(f"seed {n} ({this}), again with `{again}`:\n{outcome.note}\n{outcome.fault}")
    found = ", ".join(f"{number:,} {kind}" for kind, number in counts.items())
    say(f"{found}: {wrong} went wrong")
    return wrong


def attempt(kind: str, seed: int) -> str:
    """Write and try a program. Return the outcome under which it is counted."""
    try:
        KINDS[kind](random.Random(seed))
    except Uncounted:
        return f"{kind} but too long to be checked"
    return kind


def valid(rng: random.Random) -> None:
    """Try a valid program."""
    text, launch = random_program(rng, statements=rng.choice((5, 15, 30)))
    note(text)
    program = ck.assemble(text)
    findings = check(program, **launch)
    if SILENT & {finding.kind for finding in findings}:
        raise Wrong(f"the checks find a fault in a valid program:\n{findings}")
    agree(program, launch)


def nearly_valid(rng: random.Random) -> None:
    """Try a damaged program."""
    text, launch = random_program(rng, statements=rng.choice((5, 15)))
    text = damaged(rng, text)
    note(text)
    try:
        program = ck.assemble(text)
        findings = check(program, **launch, max_instructions=STEPS)
    except REFUSED as error:
        return in_words(error)
    str(findings)
    agree(program, launch, defined=not OPEN & {finding.kind for finding in findings})


def anything(rng: random.Random) -> None:
    """Try any text."""
    text = "il_ps_2_0\n" + "".join(
        rng.choice(WORDS) + rng.choice(("", " ")) for _ in range(rng.randrange(600))
    )
    if rng.random() < 0.5:
        most = rng.choice((128, 256, 0x3000))
        text = "".join(chr(rng.randrange(most)) for _ in range(rng.randrange(4000)))
    note(text)
    try:
        ck.assemble(text)
    except ck.ILError as error:
        in_words(error)


KINDS: dict[str, Callable[[random.Random], object]] = {
    "valid": valid,
    "nearly valid": nearly_valid,
    "random": anything,
    "timed": timed,
    "sampled": sampled,
}
TURNS = ("valid", "nearly valid", "sampled", "random", "timed", "valid")


def damaged(rng: random.Random, text: str) -> str:
    """Return a text with one to three lines changed."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(1, len(lines))
        line, other = lines[place], rng.choice(lines)
        column = rng.randrange(len(line) + 1)
        before, after = line[:column], line[column:]
        digit = re.sub("[0-9]", rng.choice("0123456789"), after, count=1)
        mixed = [before + rng.choice(WORDS) + after], [before + after[1:]], [before + digit]
        lines[place : place + 1] = rng.choice((lines[:0], [line, other], [other], *mixed))
        if len(lines) < 2:
            break
    return "\n".join(lines)
