"""The fuzzer behind `make fuzz`: programs that are valid, nearly valid and random, one seed each,
and each tried in a copy of this process, which may hang or crash.

A valid program must assemble, be silent in the checks for races, barriers and unset values,
compile, and give the same bits and counts on both engines. A nearly valid one is a valid one whose
text was damaged, and a random one any text: they may be refused, but only with the errors that are
meant for it. What is accepted must not crash or hang, and must give the same bits unless the checks
find in it what leaves them open (`OPEN`). A timed one is any launch on any board, whose report has
to keep the law (`law`).
"""

import copy
import random
import re
import time
import traceback
from collections import Counter
from itertools import count, takewhile

import numpy as np

import cypresskit as ck
from cypresskit.compiler import STYLES, CompileError, compile
from cypresskit.il import OPCODES
from cypresskit.machine.checks import check
from cypresskit.machine.launch import prepare
from cypresskit.machine.vliw import execute
from cypresskit.teach import apart
from tools.fuzz.law import Uncounted, timed
from tools.fuzz.programs import random_program

LIMIT = 60  # seconds of processor time for one program
STEPS = 3000  # instructions of a work-item
REFUSED = (ck.KernelError, ValueError, TypeError)  # ILError is a ValueError
#: Findings behind which engines may differ: races, and what keeps the checks from seeing a race on
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


class Wrong(Exception):
    """The fuzzer has found a fault."""


def run(seconds: float, seed: int = 0, say=print) -> int:
    """Fuzz for ``seconds``, with at least one program, from ``seed`` on. Returns how many went
    wrong.
    """
    end, wrong, counts = time.monotonic() + seconds, 0, Counter[str]()
    ck.simulate("sgemm_tn", 64)  # compiles the timing engine, for all copies of this process
    for n in takewhile(lambda n: n == seed or time.monotonic() < end, count(seed)):
        kind = ("valid", "nearly valid", "valid", "random", "timed")[n % 5]
        try:
            tried, fault = apart.call(told, kind, n, seconds=LIMIT)
        except apart.Lost as lost:
            tried, fault = kind, str(lost)
        if fault:
            say(
                f"seed {n} ({kind}), again with `python -m tools.fuzz --seconds 0 --seed"
                f" {n}`:\n{fault}"
            )
        counts[tried] += 1
        wrong += bool(fault)
    say(
        ", ".join(f"{number:,} {kind}" for kind, number in counts.items()) + f": {wrong} went wrong"
    )
    return wrong


def told(kind: str, seed: int) -> tuple[str, str]:
    """What a program is counted as, and the traceback of what goes wrong with it, or nothing."""
    try:
        KINDS[kind](random.Random(seed))
    except Uncounted:
        return f"{kind} but too long to be checked", ""
    except Exception:
        return kind, traceback.format_exc()
    return kind, ""


def valid(rng: random.Random) -> None:
    text, launch = random_program(rng, statements=rng.choice((5, 15, 30)))
    program = ck.assemble(text)
    findings = check(program, **launch)
    if SILENT & {finding.kind for finding in findings}:
        raise Wrong(f"the checks find a fault in a valid program:\n{findings}")
    agree(program, launch)


def nearly_valid(rng: random.Random) -> None:
    text, launch = random_program(rng, statements=rng.choice((5, 15)))
    text = damaged(rng, text)
    try:
        program = ck.assemble(text)
        findings = check(program, **launch, max_instructions=STEPS)
    except REFUSED as error:
        return in_words(error)
    str(findings)
    agree(program, launch, defined=not OPEN & {finding.kind for finding in findings})


def anything(rng: random.Random) -> None:
    text = "il_ps_2_0\n" + "".join(
        rng.choice(WORDS) + rng.choice(("", " ")) for _ in range(rng.randrange(600))
    )
    if rng.random() < 0.5:
        most = rng.choice((128, 256, 0x3000))
        text = "".join(chr(rng.randrange(most)) for _ in range(rng.randrange(4000)))
    try:
        ck.assemble(text)
    except ck.ILError as error:
        in_words(error)


KINDS = {"valid": valid, "nearly valid": nearly_valid, "random": anything, "timed": timed}


def damaged(rng: random.Random, text: str) -> str:
    """A text with one to three lines changed."""
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


def agree(program: ck.Program, launch: dict, defined: bool = True) -> None:
    """Run a program on both engines and, if its results are ``defined``, check that these end
    alike, with the same bits and counts. In either style the compiler then has to say why it
    refuses the program, or its code has to end as the program does, with the same bits.
    """
    ending, explained = ran(program, launch, "explain")
    fast_ending, fast = ran(program, launch, "fast")
    if not defined:
        return
    if ending != fast_ending:
        raise Wrong(f"the explaining engine ends with {ending}, the fast one with {fast_ending}")
    differ(explained, fast, "fast")
    for style in STYLES:
        prepared = prepare(program, **copy.deepcopy(launch), max_instructions=STEPS)
        try:
            execute(compile(program, style=style), prepared)
        except CompileError as error:
            in_words(error)
            continue
        except ck.KernelError:  # it may give up later or sooner: it counts bundles
            continue
        if isinstance(ending, int):
            raise Wrong("the compiled code ends, the program does not")
        assert prepared.global_memory is not None
        written = {f"o{n}": surface.words for n, surface in prepared.outputs.items()}
        differ(explained, written | {"g": prepared.global_memory}, f"compiled as {style}")


def ran(program: ck.Program, launch: dict, engine: str) -> tuple[list | int, dict[str, np.ndarray]]:
    """A launch's end (its counts, or the line of a fault) and the arrays that it leaves, as
    bits.
    """
    given = copy.deepcopy(launch)
    try:
        counts = ck.launch(program, **given, engine=engine, max_instructions=STEPS)
        ending: list | int = [*counts.executed.tolist(), counts.out_of_range]
    except ck.KernelError as error:
        ending = error.line
    arrays = {f"o{n}": array for n, array in given.get("outputs", {}).items()} | {
        "g": given["global_memory"]
    }
    return ending, {name: array.view(np.uint32) for name, array in arrays.items()}


def differ(explained: dict, others: dict, how: str) -> None:
    """Raise ``Wrong`` if the arrays differ."""
    for name, array in explained.items():
        if len(different := np.argwhere(array != others[name])):
            place = tuple(different[0].tolist())
            raise Wrong(
                f"{name}{list(place)}: {array[place]:#x} explained, {others[name][place]:#x} {how}"
            )


def in_words(error: Exception) -> None:
    if not str(error):
        raise Wrong("an error without words") from error
