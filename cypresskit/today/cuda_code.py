"""The machine code of a loop on a GPU of today, as far as time hangs on it.

NVIDIA's compiler decides how many turns of a loop it does at once, in which order loads leave,
and where they are waited for. ``read_listing`` finds that in a listing of `nvdisasm -hex -c`.
``nearest`` is for a kernel without one: the code of that kernel in
``loops.json`` (``tools.cuda.loops`` makes it, without a GPU) whose turn is most like this one's.

A loop is a text of letters: f and d multiply-adds in single and double, a an instruction of the
arithmetic unit, m IMAD or VIADD and p a product of 64 bits, u one for the whole warp, o any
other; L a load, S and T a load and a store of shared memory, B a barrier; w waits for all that was
loaded, a dot is a clock for which the warp stalls. An inner loop stands in brackets. Stalls and
waits are the control codes that stand in each instruction: stall in bits 105 to 108, the barrier
that it sets in bits 110 to 112, and those that it waits for in bits 116 to 121 (Z. Jia and
colleagues, "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", 2018).
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from cypresskit.today.cuda_trace import Action
from cypresskit.today.cuda_values import SLOW

LETTERS = {"FFMA": "f", "DFMA": "d", "FMUL": "f", "FADD": "f", "DMUL": "d", "DADD": "d"} | {
    "LDG": "L", "LD": "L", "LDS": "S", "STS": "T", "BAR": "B", "IMAD": "m", "VIADD": "m"
}  # fmt: skip
ARITHMETIC = "IADD3 LOP3 LEA SHF SEL ISETP PRMT MOV IABS IMNMX FSETP FSEL PLOP3".split()
LETTERS |= dict.fromkeys(ARITHMETIC, "a")
MULTIPLY_ADDS = "fd"
CONTROL = 41  # bits of an instruction's second word below its control code
BRANCH = 15  # clocks of a warp until it goes on at a label: calibrated on warps that are alone


@dataclass(frozen=True)
class Loop:
    """The loop that computes, of a kernel whose threads have so many ``registers``. ``fmas``,
    what ``places_of`` tells of its loads, and ``kind`` are those of a turn of the source.
    """

    name: str
    registers: int
    text: str
    fmas: float = 0
    loads: float = 0
    first: float = 0
    places: float = 0
    leaving: float = 0
    item: int = 4
    kind: str = "while"
    unroll: int = 0


def read_listing(listing: str, name: str = "this kernel", registers: int = 0) -> Loop:
    """The innermost loop with the most multiply-adds, and what is around it if that is a loop."""
    code: list[tuple[str, int]] = []  # operation, control code
    labels: dict[str, int] = {}
    jumps: list[tuple[int, int]] = []
    for line in listing.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(code)
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([\w.]+)", line):
            code.append((found[1], -1))
            target = re.search(r"BRA.*\((\.L_\w+)\)", line)
            if target and labels.get(target[1], len(code)) < len(code):
                jumps.append((labels[target[1]], len(code)))
        elif found := re.match(r"\s*/\* 0x([0-9a-f]{16}) \*/", line):
            code[-1] = code[-1][0], int(found[1], 16) >> CONTROL
    letters = [_letter(operation) for operation, _ in code]

    def fmas(loop: tuple[int, int]) -> int:
        return sum(letter in MULTIPLY_ADDS for letter in letters[slice(*loop)])

    loops = [loop for loop in jumps if fmas(loop)]
    if not loops:
        raise ValueError(f"the listing of {name} has no loop with multiply-adds")
    inner = max(loops, key=lambda loop: (fmas(loop), loop[0] - loop[1]))
    around = [loop for loop in loops if loop[0] <= inner[0] and inner[1] < loop[1]]
    outer = min(around, key=lambda loop: loop[1] - loop[0], default=inner)
    if any(control < 0 for _, control in code[slice(*outer)]):
        raise ValueError(
            f"the listing of {name} lacks control codes: `nvdisasm -hex -c` prints them"
        )
    text = ""
    loaded = 0  # barriers that data on their way will set
    for n in range(*outer):
        control = code[n][1]
        letter = letters[n]
        if loaded & control >> 11 & 63 or (letter == "B" and loaded):
            text += "w"
            loaded = 0
        if letter in "LS":
            loaded |= 1 << (control >> 5 & 7)
        if n == inner[0] != outer[0]:
            text += "["
        text += letter + "." * max((control & 15) - 1, 0)
        if n in (inner[1] - 1, outer[1] - 1):
            text += "." * BRANCH
        if n == inner[1] - 1 and inner != outer:
            text += "]"
    return Loop(name, registers, text)


def _letter(operation: str) -> str:
    name = operation.split(".")[0]
    if name == "IMAD" and "WIDE" in operation:
        return "p"
    return LETTERS.get(name, "u" if name[0] == "U" and name != "ULDC" else "o")


def places_of(actions: list[Action]) -> tuple[int, int, int, int]:
    """How many loads a turn has, how many of the array that it asks first, in how many places they
    lie, but for those beside the load before, and how many of these the next turn leaves for others
    than those beside them.
    """
    last: dict[str, Action] = {}
    loads: Counter = Counter()
    count = leaving = 0
    for action in actions:
        if "load" in action.kind:
            before = last.get(action.array)
            beside = before is not None and np.all(action.place == before.place + before.size)
            count += not beside
            leaving += not beside and action.step != action.size
            last[action.array] = action
            loads[action.array] += 1
    return loads.total(), next(iter(loads.values()), 0), count, leaving


#: Instructions that numba adds to the source's, from the machine code of 44 everyday kernels: where
#: a kernel begins, in an iteration of `range` or `while`, and for an index of its own.
START = "o.o.o.o.a.p.o.a..a.b.o.a.o.a..a.a.o.a.a.o.a.m.a.m.a.a.a.m.a.a.a.o.a.a.m."
ITERATION = {"range": "a..a.m.a.", "while": "a."}
FIRST = {"range": "a..a.m.a..a.a.m.a.", "while": "", "": ""}  # more of the first index
INDEX = {"": "a..p.m.a.m.a..m.a.", "range": "a..p.m.a..a.m.a..m.a.a.", "while": "a.m."}
BESIDE = "a."  # an index that differs from another by a constant
ACCESS = {"load": "L.", "store": "o.", "shared load": "S.", "shared store": "T."}
SLOW_CODE = {4: 2 * "a.o.f.f.o.f.f.f." + 40 * ".", 8: "a.od.d.d.d.d.d.d.d.d.d.d.d." + 40 * "."}
REGISTERS = 32
UNROLL = 4  # iterations that numba's compiler does at once
BATCH = 4  # loads that a loop waits for at once


def generic(actions: list[Action], kind: str, begins: bool = True) -> Loop:
    """Machine code that is assumed where none is known: loads leave together, and are waited for
    before arithmetic; a store, a barrier or a function ends a batch. A loop is unrolled, a few of
    its loads at once, unless batches of its iterations can't meet. ``begins``: with the kernel's
    first instructions.
    """
    apart = any(a.kind in ("store", "shared store", "barrier", SLOW) for a in actions)
    loading = sum(a.kind.endswith("load") for a in actions)
    unroll = 1 if apart or not kind else UNROLL
    together = min(max(BATCH // max(loading, 1), 1), unroll)
    text = START if begins and not kind else ""
    for _ in range(unroll // together):
        text += _batch(actions, together, kind)
    text += "." * BRANCH if kind else ""
    return Loop("loads, arithmetic, stores", REGISTERS, text, kind=kind, unroll=unroll)


def _batch(actions: list[Action], together: int, kind: str) -> str:
    """The code of some iterations whose loads leave together."""
    text = loads = arithmetic = ""
    for _ in range(together):
        places: list[Any] = []
        loads += ITERATION.get(kind, "")
        for action in actions:
            if action.kind == SLOW:
                arithmetic += SLOW_CODE[action.size]
            elif action.kind not in ACCESS and action.kind != "barrier":
                arithmetic += "d..." if action.size == 8 else "f.."
            elif action.kind.endswith("load"):
                loads += _index(action, places, kind) + ACCESS[action.kind]
            else:
                store = _index(action, places, kind) + ACCESS.get(action.kind, "B")
                text += f"{loads}w{arithmetic}{store}"
                loads = arithmetic = ""
    return f"{text}{loads}w{arithmetic}"


def _index(action: Action, places: list[Any], kind: str) -> str:
    """The code of an index, by what it differs from others of the iteration; of shared memory and
    of the same places by all threads it is short.
    """
    if action.kind == "barrier":
        return ""
    place = np.asarray(action.place)
    beside = not place.ndim or any(np.ptp(place - other) == 0 for other in places)
    if beside or action.kind.startswith("shared"):
        return BESIDE
    places.append(place)
    return FIRST[kind] * (len(places) == 1) + INDEX[kind]


@cache
def known() -> tuple[Loop, ...]:
    """The loops that come with the package."""
    text = Path(__file__).with_name("loops.json").read_text(encoding="utf-8")
    return tuple(Loop(**row) for row in json.loads(text))


def nearest(
    counts: tuple[float, float, float, float, float], item: int, kind: str, shared: bool = False
) -> tuple[Loop, float]:
    """The known loop whose iteration is most like one with these ``counts``, multiply-adds and what
    ``places_of`` tells of its loads, of ``shared`` memory, too, or not; and how far it is, in
    doublings of a count.
    """

    def far(loop: Loop) -> float:
        both = zip(counts, (loop.fmas, loop.loads, loop.first, loop.places, loop.leaving))
        other = shared != ("S" in loop.text)
        differ = 4 * (loop.item != item) + (loop.kind != kind) + 100 * other
        return sum(abs(log2((1 + has) / (1 + wants))) for wants, has in both) + differ

    found = min(known(), key=far)
    return found, far(found)
