"""Count what a launch did: instructions, flops, fetches, stores.

An engine only counts how many work-items executed each instruction. All other counts follow from
that, and from what each instruction does. Left out: time.
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
    instructions: int = 0
    arithmetic: int = 0
    flops: int = 0
    fetches: int = 0
    fetch_bytes: int = 0
    out_of_range: int = 0
    lds_reads: int = 0
    lds_writes: int = 0
    global_reads: int = 0
    global_writes: int = 0
    output_writes: int = 0
    fences: int = 0
    executed: np.ndarray = field(
        default_factory=lambda: np.zeros(0, np.int64), repr=False, compare=False
    )


COUNTED = (
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
    counts: dict[str, Any] = dict(zip(COUNTED, sums)) | {
        "instructions": int(executed.sum()),
        "out_of_range": out_of_range,
    }
    fetched = zip(sums[len(COUNTED) :], resources)
    counts["fetch_bytes"] = sum(
        count * launch.textures[resource].texel for count, resource in fetched
    )
    return LaunchCounters(
        engine, launch.shape.items, launch.shape.wavefronts, **counts, executed=executed
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
            "global_reads": sum(s.register.kind == "g" for s in i.sources),
            "fences": op.kind == "fence",
        }
        adds |= {
            "fetches": op.kind == "fetch",
            "global_writes": kind == "g",
            "output_writes": kind == "o",
        }
        if op.kind == "alu":
            adds["arithmetic"] = results = 1 if op.vector or not i.dest else len(i.dest.written)
            adds["flops"] = results * op.flops
        elif op.kind == "lds":
            adds["lds_writes" if op.store else "lds_reads"] = len(lds_words(i))
        fetched = [op.kind == "fetch" and i.controls.resource == n for n in resources]
        row[:] = [adds.get(name, 0) for name in COUNTED] + fetched
    return rows, resources
