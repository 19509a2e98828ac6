"""The machine code of a loop, as far as time depends on it.

NVIDIA's compiler decides how many iterations of a loop it unrolls, in which order loads start, and
where they are waited for. ``nearest`` finds the kernel in ``loops.json`` whose iteration is most
similar to a given one; ``generic`` makes code for anything else. ``tools/cuda/listing.py`` reads
the code of a kernel.

A loop is a text of letters:

- f, d: a multiply-add in single or double precision
- a: an instruction of the arithmetic unit; m: IMAD or VIADD; p: a product of 64 bits; u: an
  instruction for the whole warp; o: any other
- L: a load; S, T: a load and a store of shared memory; B: a barrier
- w: waits for data
- a dot: a clock for which the warp stalls after an instruction

An inner loop is in brackets. A scoreboard is one of six flags of a warp that a load sets until its
data arrive. The digit after a load is its scoreboard; the digits after ``w`` are those it waits
for. Without digits (assumed code, older listings), it waits for all loads of the iteration.
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

from cypresskit.today.cuda_count import FLOPS
from cypresskit.today.cuda_events import NOTHING, Action, What
from cypresskit.today.cuda_parts import CodePart
from cypresskit.today.cuda_values import FMA, SLOW

MULTIPLY_ADDS = "fd"
BRANCH = 15  # clocks of a warp's branch to a label: calibrated on single warps


@dataclass(frozen=True)
class Loop:
    """The main loop of a kernel.

    Attributes
    ----------
    name, registers
        The kernel's name, and the registers of a thread.
    text
        The code.
    fmas, loads, first, places, leaving, kind
        Of an iteration of the source: the multiply-adds, what ``places_of`` returns, and the kind
        of the loop.
    item
        Bytes of a number.
    unroll
        Iterations of the source in one of assumed code; 0 for code that was compiled.
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

    @property
    def is_complete(self) -> bool:
        """Whether this is code that can be run: letters, and something to compute or load."""
        is_code = re.fullmatch(r"([fdampuoLSTBw]\d*\.*|[\[\]])+", self.text) is not None
        return is_code and self.registers > 0 and bool({*"fdLS"} & {*self.text})

    @property
    def counts(self) -> tuple[float, ...]:
        """The counts that are compared."""
        return self.fmas, self.loads, self.first, self.places, self.leaving


def repeat_inner(text: str, fmas: float) -> str:
    """Return the text of a loop, with its inner loop repeated so often that it has ``fmas``
    multiply-adds.
    """
    head, _, rest = text.partition("[")
    inner, _, tail = rest.partition("]")
    once, outside = (sum(map(code.count, MULTIPLY_ADDS)) for code in (inner, head + tail))
    return head + inner * (round((fmas - outside) / once) if inner else 0) + tail


def places_of(actions: list[Action]) -> tuple[int, int, int, int]:
    """Describe the loads of an iteration.

    Returns
    -------
    loads, first
        How many there are, and how many of the first array.
    places
        How many don't lie beside the one before.
    leaving
        How many of these move elsewhere than one number on in the next iteration.
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


#: Instructions that numba adds to the source's, from the machine code of 44 everyday kernels: at
#: the start of a kernel, in an iteration of `range` or `while`, and for an index.
START = "o.o.o.o.a.p.o.a..a.b.o.a.o.a..a.a.o.a.a.o.a.m.a.m.a.a.a.m.a.a.a.o.a.a.m."
ITERATION = {"range": "a..a.m.a.", "while": "a."}
FIRST = {"range": "a..a.m.a..a.a.m.a.", "while": "", "": ""}  # more, for the first index
INDEX = {"": "a..p.m.a.m.a..m.a.", "range": "a..p.m.a..a.m.a..m.a.a.", "while": "a.m."}
BESIDE = "a."  # an index that differs from another by a constant
ACCESS = {"load": "L.", "store": "o.", "shared load": "S.", "shared store": "T.", "barrier": "B"}
SLOW_CODE = {4: 2 * "a.o.f.f.o.f.f.f." + 40 * ".", 8: "a.od.d.d.d.d.d.d.d.d.d.d.d." + 40 * "."}
REGISTERS = 32
UNROLL = 4  # iterations that numba's compiler unrolls
BATCH = 4  # loads that a loop waits for together
MAX_DISTANCE = 3.0  # from a loop to the most similar product, in doublings of a count


def generic(part: CodePart, free: What = NOTHING) -> Loop:
    """Return the code that is assumed where none is known, without arithmetic that is ``free``.

    Loads start together, and are waited for before arithmetic; a store, a barrier or a function
    ends a batch. A loop is unrolled, with a few loads per batch, unless its batches can't be
    combined.
    """
    actions, kind = part.actions, part.kind
    apart = any(a.kind in ("store", "shared store", "barrier", SLOW) for a in actions)
    loading = sum(a.kind.endswith("load") for a in actions)
    unroll = 1 if apart or not kind else UNROLL
    together = min(max(BATCH // max(loading, 1), 1), unroll)
    text = START if part.begins and not kind else ""
    for _ in range(unroll // together):
        text += _batch(actions, together, kind, free)
    text += "o" + "." * BRANCH if kind else ""
    name = "assumed, as numba compiles such kernels; index arithmetic takes no time"
    return Loop(name, REGISTERS, text, kind=kind, unroll=unroll)


def _batch(actions: list[Action], together: int, kind: str, free: What) -> str:
    """Return the code of some iterations whose loads start together."""
    text = loads = arithmetic = ""
    for _ in range(together):
        places: list[Any] = []
        loads += ITERATION.get(kind, "")
        for action in actions:
            if action.kind.endswith("load"):
                loads += _index(action, places, kind) + ACCESS[action.kind]
            elif action.kind in ACCESS:
                store = _index(action, places, kind) + ACCESS[action.kind]
                text += f"{loads}w{arithmetic}{store}"
                loads = arithmetic = ""
            elif action.what != free:
                short = "d..." if action.size == 8 else "f.."
                arithmetic += SLOW_CODE[action.size] if action.kind == SLOW else short
    return f"{text}{loads}w{arithmetic}"


def _index(action: Action, places: list[Any], kind: str) -> str:
    """Return the code of an index. It is short for shared memory, for a place that all threads
    share, and for one at a constant distance from another.
    """
    if action.kind == "barrier":
        return ""
    place = np.asarray(action.place)
    beside = not place.ndim or any(np.ptp((place - other)[action.on]) == 0 for other in places)
    if beside or action.kind.startswith("shared"):
        return BESIDE
    places.append(place)
    return FIRST[kind] * (len(places) == 1) + INDEX[kind]


@cache
def known() -> tuple[Loop, ...]:
    """Return the loops that come with the package."""
    text = Path(__file__).with_name("loops.json").read_text(encoding="utf-8")
    return tuple(Loop(**row) for row in json.loads(text))


def code_of(part: CodePart, has_local: bool) -> Loop:
    """Return the code of the most similar product, for a product with blocks in registers or shared
    memory, or else what numba's compiler makes of such code.
    """
    kinds = {action.kind for action in part.actions}
    is_blocked = FMA in kinds and ((has_local and "load" in kinds) or "shared load" in kinds)
    if part.kind and is_blocked and not kinds & {"store", SLOW}:
        loop, distance = nearest(described(part))
        if distance < MAX_DISTANCE:
            return loop
    return generic(part)


def described(part: CodePart) -> Loop:
    """Return a loop without code, as far as one that was compiled is compared with it."""
    sizes = [action.size for action in part.actions if action.kind in FLOPS]
    shared = "S" * any(action.kind == "shared load" for action in part.actions)
    counts = len(sizes), *places_of(part.actions)
    return Loop("", 0, shared, *counts, max(sizes), part.kind)


def nearest(like: Loop) -> tuple[Loop, float]:
    """Return the known loop whose iteration is most similar, and its distance in doublings of a
    count.
    """

    def distance(loop: Loop) -> float:
        other = ("S" in like.text) != ("S" in loop.text)
        differ = 4 * (loop.item != like.item) + (loop.kind != like.kind) + 100 * other
        both = zip(like.counts, loop.counts)
        return sum(abs(log2((1 + has) / (1 + wants))) for wants, has in both) + differ

    found = min(known(), key=distance)
    return found, distance(found)
