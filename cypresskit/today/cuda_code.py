"""The machine code of a loop, as far as time depends on it.

NVIDIA's compiler decides how many iterations of a loop it does at once, in which order loads leave,
and where they are waited for. ``nearest`` finds the kernel in ``loops.json`` whose iteration is
most similar to a given one; ``generic`` makes code for anything else. ``tools/cuda/listing.py``
reads the code of a kernel.

A loop is a text of letters: f and d multiply-adds in single and double precision, a an instruction
of the arithmetic unit, m IMAD or VIADD and p a product of 64 bits, u one for the whole warp, o any
other; L a load, S and T a load and a store of shared memory, B a barrier; w waits for everything
loaded before, a dot is a clock for which the warp stalls. An inner loop is in brackets.
"""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from cypresskit.today.cuda_events import Action
from cypresskit.today.cuda_values import SLOW

MULTIPLY_ADDS = "fd"
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
