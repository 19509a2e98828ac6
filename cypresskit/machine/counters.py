"""Count what a launch did: instructions, flops, fetches, stores.

An engine only counts how many work-items executed each instruction, and how many accesses were out
of range. All other counts follow from what each instruction does. Left out: time.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from cypresskit.il import Program
from cypresskit.il.dataflow import lds_words


@dataclass(frozen=True)
class LaunchCounters:
    """The counts of a run, over work-items that were active.

    ``instructions`` IL instructions; ``arithmetic`` results computed (a mad on four components
    counts 4); ``flops`` single or double floating-point operations (a mad is 2); ``fetches`` and
    ``fetch_bytes`` texture reads; ``out_of_range`` fetches and loads outside their array, which
    gave 0; ``lds_reads``, ``lds_writes`` 32-bit words; ``global_reads``, ``global_writes`` 128-bit
    elements; ``output_writes`` stores to o registers; ``fences`` passed.
    """

    engine: str
    work_items: int
    wavefronts: int
    instructions: int
    arithmetic: int
    flops: int
    fetches: int
    fetch_bytes: int
    out_of_range: int
    lds_reads: int
    lds_writes: int
    global_reads: int
    global_writes: int
    output_writes: int
    fences: int
    executed: np.ndarray = field(repr=False, compare=False)


COUNTED = (
    "instructions",
    "arithmetic",
    "flops",
    "fetches",
    "lds_reads",
    "lds_writes",
    "global_reads",
    "global_writes",
    "output_writes",
    "fences",
)


def tally(launch: Any, engine: str, executed: np.ndarray, out_of_range: int) -> LaunchCounters:
    """Return the counts of a run of ``launch``. ``executed``: int64, how many work-items executed
    each instruction of ``Program.body``.
    """
    weights, resources = _weights(launch.program)
    sums = (executed @ weights).tolist()
    fetched = zip(sums[len(COUNTED) :], resources)
    return LaunchCounters(
        engine,
        launch.shape.items,
        launch.shape.wavefronts,
        **dict(zip(COUNTED, sums)),
        fetch_bytes=sum(count * launch.textures[n].texel for count, n in fetched),
        out_of_range=out_of_range,
        executed=executed,
    )


@lru_cache(maxsize=256)
def _weights(program: Program) -> tuple[np.ndarray, list[int]]:
    """Return by how much one execution of each instruction raises each of ``COUNTED``, and the
    fetches from each resource: int64, (instructions, counts); and the resources.
    """
    resources = sorted({i.controls.resource for i in program.body if i.op.kind == "fetch"})
    rows = np.zeros((len(program.body), len(COUNTED) + len(resources)), np.int64)
    for row, i in zip(rows, program.body, strict=True):
        op = i.op
        kind = i.dest.register.kind if i.dest else ""
        adds = {
            "instructions": 1,
            "global_reads": sum(s.register.kind == "g" for s in i.sources),
            "global_writes": kind == "g",
            "output_writes": kind == "o",
            "fetches": op.kind == "fetch",
            "fences": op.kind == "fence",
        }
        if op.kind == "alu":
            adds["arithmetic"] = results = 1 if op.vector or not i.dest else len(i.dest.written)
            adds["flops"] = results * op.flops
        elif op.kind == "lds":
            adds["lds_writes" if op.store else "lds_reads"] = len(lds_words(i))
        fetched = [op.kind == "fetch" and i.controls.resource == n for n in resources]
        row[:] = [adds.get(name, 0) for name in COUNTED] + fetched
    return rows, resources
