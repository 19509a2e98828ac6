"""Run a launch on compiled code: lay out its arrays, give batches to host threads, sum the counts.

The calling thread takes part; a short launch it runs alone, because waking a thread would take
longer. Compiled code returns every few milliseconds, so Ctrl-C is handled; then a flag that every
loop of the kernel tests is cleared.
"""

import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from ctypes import addressof, c_char
from functools import partial, reduce
from typing import Any

import numpy as np

from cypresskit.il.bits import ONE
from cypresskit.machine.fast.jit import NativeCode, compiled
from cypresskit.machine.fast.processor import FLAGGED, this_host
from cypresskit.machine.fast.translation import (
    DIVERGED,
    DONE,
    ENDLESS,
    FAILED,
    NEXT,
    STOPPED,
    TEXEL,
    UNDERFLOWED,
)
from cypresskit.machine.launch import MAX_INSTRUCTIONS, KernelError, Launch, Surface
from cypresskit.machine.run import LaunchCounters, tally
from cypresskit.machine.wavefront import TILE
from cypresskit.session import PROGRESS_DELAY, is_watched
from cypresskit.threads import processors

SLICE = 2_000_000  # instructions after which compiled code returns: a millisecond or two
PIECES = 16  # per thread: so all threads end at about the same time
INTERRUPTIBLE = 0.1  # seconds of one wait: on some hosts nothing interrupts a wait
LINE = 64  # bytes
NO_BYTES = c_char * 0


def run(launch: Launch, threads: int | None = None) -> LaunchCounters | None:
    """Run a checked launch.

    Parameters
    ----------
    launch
        The launch.
    threads
        Host threads; by default one for each processor that this process may use. Results don't
        depend on it, unless work-items race.

    Returns
    -------
    The counts, or None if only part of a group reached a barrier: the interpreter tells what
    happens then. If the kernel reads global memory, that is restored, so the launch can be run
    again; otherwise, partial stores remain.

    Raises
    ------
    KernelError
        For an endless loop or a store out of range: the first here, which need not be the first if
        all work-items run in step.
    """
    if not launch.shape.items:
        return tally(launch, "fast", np.zeros(len(launch.program.body), np.int64), 0)
    return _run(launch, compiled(launch.program), threads or processors())


def _run(launch: Launch, kernel: NativeCode, threads: int) -> LaunchCounters | None:
    memory = launch.memory
    results = [memory, *(surface.words for surface in launch.outputs.values())]
    saved = [array.copy() for array in results if this_host().mode in FLAGGED]
    before = memory.copy() if kernel.translation.reads_global else None
    workers = _run_batches(launch, _Workspace(launch, kernel), threads)
    ends = {worker.status for worker in workers}
    if UNDERFLOWED in ends:
        for array, old in zip(results, saved, strict=True):
            array[...] = old
        return _run(launch, compiled(launch.program, soft=True), threads)
    if before is not None and ends & {DIVERGED, FAILED, ENDLESS}:
        memory[...] = before
    if DIVERGED in ends:
        return None
    failed = [worker for worker in workers if worker.status in (FAILED, ENDLESS)]
    if failed and len(workers) > 1:
        # The reported failure must not depend on which thread is faster
        _run(launch, kernel, 1)
    if failed:  # also if nothing failed this time, which is possible if work-items race
        raise _failure(launch, failed[0])
    counts = reduce(np.add, [worker.counts for worker in workers])
    return tally(launch, "fast", counts[kernel.counters], int(counts[0]))


def _run_batches(launch: Launch, space: "_Workspace", threads: int) -> list["_Worker"]:
    """Run all batches. Return the workers that did: the caller alone if two slices are enough. A
    long launch shows its progress where that can be watched.
    """
    batches = space.batches
    quick = launch.max_instructions <= MAX_INSTRUCTIONS  # no batch takes long
    first = _Worker(space.kernel, space.values)
    begun = first.call(SLICE, 0, batches) if quick else 0
    if first.status or begun == batches:
        return [first]
    from tqdm.auto import tqdm

    left = batches - begun
    threads = 1 if left <= begun else min(threads, left)
    workers = [first, *(_Worker(space.kernel, space.values) for _ in range(1, threads))]
    size = -(-left // (PIECES * threads))
    todo = deque((at, min(at + size, batches)) for at in range(begun, batches, size))
    here = workers[:quick]
    with (
        tqdm(
            total=batches,
            initial=begun,
            desc="running",
            delay=PROGRESS_DELAY,
            leave=False,
            disable=not is_watched(),
        ) as bar,
        ThreadPoolExecutor(threads) as pool,
    ):
        try:
            others = [pool.submit(space.run, worker, todo, bar) for worker in workers[quick:]]
            for worker in here:
                space.run(worker, todo, bar)
            while wait(others, INTERRUPTIBLE).not_done:
                pass
        finally:
            space.limit.fill(0)  # stops the others, if the caller was interrupted
    for other in others:
        other.result()
    return workers


def _failure(launch: Launch, worker: "_Worker") -> KernelError:
    """Return the error of an endless loop or of a store out of range."""
    at, item, place, _ = map(int, worker.report)
    if worker.status == ENDLESS:
        return launch.endless_error(at, item)
    return launch.store_error(at, item, place)


def address(array: np.ndarray) -> int:
    """Return the address of a writable array, faster than numpy does."""
    return addressof(NO_BYTES.from_buffer(array.data))


def aligned(size: int) -> np.ndarray:
    """Return memory (int64) of ``size`` bytes, a multiple of 8, that begins at a cache line."""
    memory = np.empty((size + LINE) // 8, np.int64)
    start = -address(memory) % LINE // 8
    return memory[start : start + size // 8]


def _texels(texture: Surface) -> np.ndarray:
    """Return a texture's words, four per texel; missing ones are 0, 0, 1.0 of single-precision
    data. A cache line follows each row: without it, a column of rows of 2 KiB would share a few
    sets of the cache.
    """
    height, width, words = texture.words.shape
    pitch = width + LINE // TEXEL
    texels = aligned(TEXEL * height * pitch).view(np.uint32).reshape(height, pitch, 4)
    texels[:, :width, :words] = texture.words
    texels[:, :width, words:] = 0
    if words < 4:
        texels[:, :width, 3] = ONE * texture.single
    return texels


class _Workspace:
    """The arrays and sizes of a launch, by the names of the kernel's slots."""

    def __init__(self, launch: Launch, kernel: NativeCode):
        self.kernel = kernel
        # How many instructions a work-item may execute in a loop; 0 stops the kernel
        self.limit = np.array([min(launch.max_instructions, 1 << 62)], np.uint64)
        shape = launch.shape
        width, height, _ = shape.domain
        arrays = {"limit": self.limit, "literals": kernel.literals, "global": launch.memory}
        values = {"width": width, "height": height, "global_size": len(launch.memory)}
        if shape.pixels:
            values["tiles"] = tiles = -(-width // TILE)
            self.batches = tiles * -(-height // TILE)
        else:
            self.batches = math.prod(shape.groups)
            values |= {f"groups_{axis}": size for axis, size in zip("xyz", shape.groups)}
        for n, texture in launch.textures.items():
            texels = arrays[f"t{n}"] = _texels(texture)
            values |= {f"t{n}_w": texture.width, f"t{n}_h": texture.height}
            values[f"t{n}_pitch"] = texels.strides[0]
        for n, output in launch.outputs.items():
            arrays[f"o{n}"] = output.words
            values[f"o{n}_words"] = output.words.shape[2]
        arrays |= {f"cb{n}": words for n, words in shape.constants.items()}
        self.arrays = arrays  # keeps them alive
        self.values = values | {name: address(array) for name, array in arrays.items()}

    def run(self, worker: "_Worker", todo: deque[tuple[int, int]], bar: Any) -> None:
        """Run pieces of the launch until none is left or the worker failed."""
        while not worker.status:
            try:
                at, end = todo.popleft()
            except IndexError:
                return
            while at < end and not worker.status:
                begun = at
                at = worker.call(SLICE, at, end)
                bar.update(at - begun)
                if self.limit[0] == 0:  # another worker failed
                    worker.status = STOPPED
        self.limit[0] = 0


class _Worker:
    """The memory of one host thread: context, counters, LDS, spilled registers, report."""

    def __init__(self, kernel: NativeCode, values: dict[str, int]):
        self.status = DONE
        memory = {name: aligned(size) for name, size in kernel.translation.sizes.items()}
        self.memory = memory  # keeps it alive
        self.counts = memory["counts"]
        for name in ("counts", "spill"):
            memory[name].fill(0)
        self.report = memory["report"]
        values = values | {name: address(array) for name, array in memory.items()}
        for name, slot in kernel.translation.slots.items():
            memory["context"][slot] = values[name]
        self.function = partial(kernel.call, values["context"], values["counts"], values["spill"])

    def call(self, budget: int, at: int, end: int) -> int:
        """Run batches from ``at`` on, for ``budget`` instructions. Return the first batch left."""
        self.status = self.function(budget, at, end)
        return int(self.report[NEXT])
