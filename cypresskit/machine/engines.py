"""Running IL: ``launch``, and the fallback for launches that the fast engine declines.

The engines don't know each other. The fast one stops at a store out of range, and at a divergent
barrier, without knowing which work-item comes first when all run in step. The explaining one then
runs the launch again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cypresskit.devices import is_whole
from cypresskit.il import Program
from cypresskit.il.host_llvm import HAS_LLVM
from cypresskit.machine import explain, fast
from cypresskit.machine.launch import KernelError, Launch, prepare
from cypresskit.machine.observer import Observer
from cypresskit.machine.run import LaunchCounters

REPEATED = 50_000_000  # instructions that are stepped through to find which work-item fails first


def launch(
    program: Program,
    domain: int | Sequence[int],
    *,
    inputs: Mapping[int, np.ndarray] | None = None,
    constants: Mapping[int, np.ndarray] | None = None,
    outputs: Mapping[int, np.ndarray] | None = None,
    global_memory: np.ndarray | None = None,
    engine: str = "fast",
    observers: Iterable[Observer] = (),
    max_instructions: int | None = None,
    threads: int | None = None,
    in_place: bool = False,
) -> LaunchCounters:
    """Run ``program`` over ``domain`` on the simulated chip; which board makes no difference to
    results.

    Parameters
    ----------
    program
        An assembled kernel.
    domain
        (width, height) in pixel mode; work-items along x or (x, y, z) in compute mode. In an empty
        one, (0, 8), nothing is run, and the counts are 0.
    inputs
        Resource number to texture: shape (height, width) or (height, width, components), dtype
        float32, float64, int32 or uint32, at most 128 bits a texel. A 1-D resource takes (width,)
        or (width, components).
    constants
        Buffer number to an array whose bytes are its elements of four 32-bit words. Plain Python
        floats become float32.
    outputs
        Stream number to an array (height, width[, components]) of the domain's size, written by
        ``oN``.
    global_memory
        An array whose bytes are the 128-bit elements of ``g[]``; read and written in place.
    engine
        "fast" (compiled) or "explain" (steps with every register known).
    observers
        Objects that hear what happens; with any, the engine is "explain".
    max_instructions
        A loop in which more have been issued is taken for endless (2 million by default).
        Work-items that run together count as one, so both ways of a divergent branch count in the
        explaining engine, which steps through the whole domain at once. It takes no more than
        50,000 by default, and fewer for large domains.
    threads
        Host threads of the fast engine; None takes one for each processor that this process may
        use. Results don't depend on it, unless work-items race for the same memory.
    in_place
        Compute in the arrays for results themselves, which saves copies; an error may then leave
        some of the results in them. An input that shares their memory is read as it was before the
        launch, here too.

    Returns a ``LaunchCounters``. Raises ``ValueError``/``TypeError`` for arguments that don't
    fit the program, and for results that share memory; ``KernelError`` for a store out of range or
    an endless loop: all arrays are then as they were, but for those of ``in_place``. A fetch out of
    range gives 0 and is counted.
    Ctrl-C while results are copied back can leave some arrays new and others old. The limits of a
    card, on texture sizes and memory, aren't checked.
    """
    arrays: dict[str, Any] = {
        "inputs": inputs,
        "constants": constants,
        "outputs": outputs,
        "global_memory": global_memory,
    }
    checked = prepare(
        program, domain, **arrays, max_instructions=max_instructions, in_place=in_place
    )
    result = carry_out(checked, engine=engine, observers=observers, threads=threads)
    checked.write_back(outputs, global_memory)
    return result


def carry_out(
    checked: Launch,
    *,
    engine: str = "fast",
    observers: Iterable[Observer] = (),
    threads: int | None = None,
) -> LaunchCounters:
    """Run a checked launch; arguments and errors as for ``launch``."""
    if engine not in ("fast", "explain"):
        raise ValueError(f'engine is "fast" or "explain", not {engine!r}')
    if threads is not None and not is_whole(threads):
        raise ValueError(f"threads is a whole number of at least 1, not {threads!r}")
    watching = tuple(observers) if isinstance(observers, Iterable) else (None,)
    if not all(isinstance(o, Observer) for o in watching):
        raise TypeError(
            "observers are objects of classes that extend ck.Observer, in a list; found"
            f" {observers!r}"
        )
    if engine == "fast" and not watching:
        return run(checked, threads)
    return explain.run(checked, watching)


def run(launch: Launch, threads: int | None = None) -> LaunchCounters:
    """Run a checked launch with the fast engine, or with the explaining one where that declines or
    there is no LLVM.
    Raises ``KernelError``: of a failed store, the one that comes first if all work-items run in
    step.
    """
    try:
        return (fast.run(launch, threads) if HAS_LLVM else None) or explain.run(launch)
    except KernelError as error:
        if error.kind == "store" and launch.shape.items * len(launch.program.body) <= REPEATED:
            try:
                explain.run(launch, most=REPEATED)
            except KernelError as first:
                if first.kind in ("store", "barrier"):
                    raise first from None
            except ValueError:  # too many work-items
                pass
        raise
