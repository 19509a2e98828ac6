"""Run IL: ``launch``, and the fallback for launches that the compiled engine declines.

The engines are independent. The compiled one stops at a store out of range, and at a divergent
barrier, but doesn't know which work-item fails first in lockstep. Then the interpreter runs the
launch again.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from cypresskit.il import Program
from cypresskit.il.errors import ArgumentError
from cypresskit.il.host_llvm import HAS_LLVM
from cypresskit.machine import compiled, interpreter
from cypresskit.machine.counters import LaunchCounters
from cypresskit.machine.launch import Arrays, KernelError, Launch, prepare
from cypresskit.machine.observer import Observer

MAX_REPEATED = 4096  # most work-items of a launch that is repeated in lockstep


def launch(
    program: Program,
    domain: int | Sequence[int],
    *,
    inputs: Arrays | None = None,
    constants: Arrays | None = None,
    outputs: Arrays | None = None,
    global_memory: np.ndarray | None = None,
    engine: str = "compiled",
    observers: Iterable[Observer] = (),
    max_instructions: int | None = None,
) -> LaunchCounters:
    """Run ``program`` over ``domain`` on the simulated chip. Results don't depend on the board.

    Parameters
    ----------
    program
        An assembled kernel.
    domain
        (width, height) in pixel mode; the number of work-items in compute mode. If empty, as in
        (0, 8), nothing runs, and the counts are 0.
    inputs
        Resource number to texture: shape (height, width) or (height, width, components), dtype
        float32, float64, int32 or uint32, at most 128 bits per texel.
    constants
        Buffer number to an array whose bytes are its elements of four 32-bit words.
    outputs
        Stream number to an array (height, width[, components]) of the domain's size, written by
        ``oN``.
    global_memory
        An array whose bytes are the 128-bit elements of ``g[]``; read and written in place.
    engine
        "compiled", or "interpreter" (which has all registers).
    observers
        Objects that receive events; with any, the engine is "interpreter".
    max_instructions
        A loop that issues more is taken for infinite; 200,000 by default. Work-items that run
        together count as one. The interpreter runs the whole domain at once, so it counts both
        paths of a divergent branch.

    Returns
    -------
    ``LaunchCounters``. A fetch out of range gives 0 and is counted. Ctrl-C while results are copied
    back can leave some arrays new and others old. A card's limits on texture sizes and memory
    aren't checked.

    Raises
    ------
    ValueError, TypeError
        For arguments that don't fit the program, and for results that share memory.
    KernelError
        For a store out of range, an endless loop or a divergent barrier. All arrays are then
        unchanged.
    """
    checked = prepare(
        program,
        domain,
        inputs=inputs,
        constants=constants,
        outputs=outputs,
        global_memory=global_memory,
        max_instructions=max_instructions,
    )
    if engine not in ("compiled", "interpreter"):
        raise ArgumentError(f'engine is "compiled" or "interpreter", not {engine!r}')
    watching = tuple(observers) if isinstance(observers, Iterable) else (None,)
    if not all(isinstance(o, Observer) for o in watching):
        raise ArgumentError(
            "observers are objects of classes that extend ck.Observer, in a list; found"
            f" {observers!r}"
        )
    is_compiled = engine == "compiled" and not watching
    result = run(checked) if is_compiled else interpreter.run(checked, watching)
    checked.write_back(outputs, global_memory)
    return result


def run_batches(launch: Launch, batches: np.ndarray) -> None:
    """Run some ``LaunchShape.batches`` of a checked launch. Raises ``KernelError``."""
    if HAS_LLVM and compiled.run(launch, batches.tolist()):
        return
    items = launch.shape.items_of(batches)
    part = launch.part(items)
    interpreter.run(part)
    for n, output in part.outputs.items():
        launch.outputs[n].words.reshape(-1, output.texel // 4)[items] = output.words[0]


def run(launch: Launch) -> LaunchCounters:
    """Run a checked launch with the compiled engine, or with the interpreter if that declines or
    there is no LLVM.

    Raises ``KernelError``: for a failed store, the first one in lockstep, if there are at most
    ``MAX_REPEATED`` work-items.
    """
    try:
        return (compiled.run(launch) if HAS_LLVM else None) or interpreter.run(launch)
    except KernelError as error:
        if error.kind == "store" and launch.shape.items <= MAX_REPEATED:
            try:
                interpreter.run(launch)
            except KernelError as first:
                if first.kind in ("store", "barrier"):
                    raise first from None
        raise
