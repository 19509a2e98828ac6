"""Run a launch on compiled code: lay out its arrays, give batches to host threads, sum the counts.

The calling thread takes part. It runs a short launch alone, because waking a thread would take
longer. Compiled code returns every few milliseconds, so that Ctrl-C is handled. To stop the other
threads, their limit of instructions is set to 0, which every loop of the kernel tests.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from ctypes import addressof, c_char
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from cypresskit.devices import TILE
from cypresskit.il.bits import ONE
from cypresskit.machine.compiled.jit import NativeCode, compiled
from cypresskit.machine.compiled.processor import FLAGGED, HostProcessor, this_host
from cypresskit.machine.compiled.translation import (
    DIVERGED,
    DONE,
    ENDLESS,
    FAILED,
    LINE,
    NEXT,
    STOPPED,
    TEXEL,
    UNDERFLOWED,
)
from cypresskit.machine.counters import LaunchCounters, tally
from cypresskit.machine.launch import MAX_INSTRUCTIONS, Launch, Surface, endless_error
from cypresskit.session import PROGRESS_DELAY, is_progress_shown
from cypresskit.threads import processors

LONG = 2048  # bytes of a row that a cache line follows
SLICE = 2_000_000  # instructions after which compiled code returns: a millisecond or two
PIECES = 16  # per thread: so all threads end at about the same time
INTERRUPTIBLE = 0.1  # seconds of one wait: on some hosts nothing interrupts a wait
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
    The counts; or None if work-items that have to wait for each other came to different places (a
    barrier that part of a group doesn't reach, say), so the interpreter has to run the launch. If
    the kernel reads global memory, that is restored first; otherwise, partial
    stores remain.

    Raises
    ------
    KernelError
        For an endless loop or a store out of range: the first here, which need not be the first if
        all work-items run in step.
    """
    return _run(launch, this_host(), threads or processors())


def _run(launch: Launch, host: HostProcessor, threads: int) -> LaunchCounters | None:
    kernel = compiled(launch.program, host)
    results = [launch.memory] if kernel.translation.reads_global else []
    if host.mode in FLAGGED:
        results = [launch.memory, *(surface.words for surface in launch.outputs.values())]
    saved = [array.copy() for array in results]
    workers = _run_batches(launch, _Workspace(launch, kernel), threads)
    ends = {worker.status for worker in workers}
    if ends & {UNDERFLOWED, DIVERGED, FAILED, ENDLESS}:
        for array, old in zip(results, saved, strict=True):
            array[...] = old
    if UNDERFLOWED in ends:
        return _run(launch, replace(host, mode="soft"), threads)
    if DIVERGED in ends:
        return None
    failed = [worker for worker in workers if worker.status in (FAILED, ENDLESS)]
    if failed and len(workers) > 1:
        # The reported failure must not depend on which thread is faster
        _run(launch, host, 1)
    if failed:  # also if nothing failed this time, which is possible if work-items race
        at, item, element = failed[0].report[:NEXT].tolist()
        if failed[0].status == ENDLESS:
            raise endless_error(launch.shape, at, launch.max_instructions, item)
        raise launch.store_error(at, item, element)
    counts = reduce(np.add, [worker.counts for worker in workers])
    return tally(launch, "compiled", counts[kernel.counters], int(counts[0]))


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
    with (
        tqdm(
            total=batches,
            initial=begun,
            desc="running",
            delay=PROGRESS_DELAY,
            leave=False,
            disable=not is_progress_shown(),
        ) as bar,
        ThreadPoolExecutor(threads) as pool,
    ):
        try:
            others = [pool.submit(space.run, worker, todo, bar) for worker in workers[quick:]]
            for worker in workers[:quick]:
                space.run(worker, todo, bar)
            while wait(others, INTERRUPTIBLE).not_done:
                pass
        finally:
            space.limit.fill(0)  # stops the others, if the caller was interrupted
    for other in others:
        other.result()
    return workers


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
    data. Other words are copied only to be aligned, or to have a cache line after each long row:
    without it, a column of rows of 2 KiB would share a few sets of the cache.
    """
    height, width, words = texture.words.shape
    is_long = TEXEL * width >= LONG
    is_aligned = texture.words.flags.writeable and address(texture.words) % TEXEL == 0
    if words == 4 and not is_long and is_aligned:
        return texture.words
    pitch = width + LINE // TEXEL * is_long
    texels = aligned(TEXEL * height * pitch).view(np.uint32).reshape(height, pitch, 4)
    texels[:, :width, :words] = texture.words
    if words < 4:
        texels[:, :width, words:] = (0, 0, 0, ONE * texture.single)[words:]
    return texels


class _Workspace:
    """The arrays and sizes of a launch, by the names of the context's entries."""

    def __init__(self, launch: Launch, kernel: NativeCode):
        self.kernel = kernel
        # How many instructions a work-item may execute in a loop; 0 stops the kernel
        self.limit = np.array([min(launch.max_instructions, 1 << 62)], np.uint64)
        shape = launch.shape
        width, height, _ = shape.domain
        across, down = -(-width // TILE), -(-height // TILE)
        self.batches = across * down if shape.pixels else shape.group_count
        arrays: dict[str, np.ndarray] = {"limit": self.limit, "literals": kernel.literals}
        arrays["global"] = launch.memory
        values = {"width": width, "height": height, "groups_x": across}
        values["global_bytes"] = launch.memory.nbytes
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
        entries, places = kernel.translation.entries, kernel.translation.places
        memory = aligned(places["end"])
        memory.fill(0)
        start = address(memory)
        values = values | {name: start + byte for name, byte in places.items()}
        memory[: len(entries)] = [values[name] for name in entries]
        report = places["report"] // 8
        self.counts = memory[places["counts"] // 8 : report]
        self.report = memory[report:]
        self.function = partial(kernel.call, values["context"], values["counts"], values["spill"])

    def call(self, budget: int, at: int, end: int) -> int:
        """Run batches from ``at`` on, for ``budget`` instructions. Return the first batch left."""
        self.status = self.function(budget, at, end)
        return int(self.report[NEXT])
