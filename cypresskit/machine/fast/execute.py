"""Runs a launch on compiled code: lays out its arrays, hands batches to host threads, makes a
``LaunchCounters`` of the counts.

The calling thread takes part; short launches it runs alone, since waking a worker would take
longer. Compiled code returns every few milliseconds, so that Ctrl-C is heard; a flag that every
loop of the kernel looks at is then cleared.
"""

import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import cache, partial, reduce
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
from cypresskit.progress import DELAY, is_watched
from cypresskit.threads import processors

SLICE = 2_000_000  # instructions after which compiled code returns: a millisecond or two
INTERRUPTIBLE = 0.1  # seconds of waiting at a time: on some hosts nothing interrupts a wait
LINE = 64  # bytes


def run(launch: Launch, threads: int | None = None) -> LaunchCounters | None:
    """Run a checked launch with ``threads`` host threads, by default one for each processor that
    this process may use; the results don't depend on their number, unless work-items race.

    Returns None if a barrier was reached by part of a group: another engine has to tell what that
    does. Raises ``KernelError`` for an endless loop or a store out of range, which is the first
    here, but need not be if all work-items run in step. If the kernel reads global memory, that is
    restored, so that the explaining engine can run the launch again; otherwise, partial stores
    remain.
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
        # Which one is reported must not depend on which thread is faster.
        _run(launch, kernel, 1)
    if failed:  # also if nothing failed this time, as may be where work-items race
        raise _failure(launch, failed[0])
    counts = reduce(np.add, [worker.counts for worker in workers])
    return tally(launch, "fast", counts[kernel.counters], int(counts[0]))


def _run_batches(launch: Launch, space: "_Workspace", threads: int) -> list["_Worker"]:
    """The workers that have run all batches: the caller, and others if it can't do that in two
    slices. A long launch shows its progress, where that can be watched.
    """
    batches = space.batches
    quick = launch.max_instructions <= MAX_INSTRUCTIONS  # no batch takes long
    first = _Worker(space.kernel, space.values)
    begun = first.call(SLICE, 0, batches) if quick else 0
    if first.status or begun == batches:
        return [first]
    from tqdm.auto import tqdm

    threads = 1 if batches - begun <= begun else min(threads, batches - begun)
    others = (_Worker(space.kernel, space.values) for _ in range(1, threads))
    workers = [first, *others]
    todo = deque(_pieces(begun, batches, threads))
    stop = partial(space.limit.fill, 0)
    hidden = not is_watched()
    with tqdm(
        total=batches, initial=begun, desc="running", delay=DELAY, leave=False, disable=hidden
    ) as bar:
        _do_all([partial(space.run, worker, todo, bar) for worker in workers], quick, stop)
    return workers


def _pieces(begun: int, batches: int, workers: int) -> Iterator[tuple[int, int]]:
    """Ranges of batches from ``begun`` on, (first, last + 1): each is a worker's share of half of
    the rest, so that all end at the same time.
    """
    while begun < batches:
        share = -(-(batches - begun) // (2 * workers)) if workers > 1 else batches
        yield begun, min(begun + share, batches)
        begun += share


def _failure(launch: Launch, worker: "_Worker") -> KernelError:
    """The error of an endless loop or of a store out of range."""
    at, item, place, _ = map(int, worker.report)
    if worker.status == ENDLESS:
        return launch.endless_error(at, item)
    return launch.store_error(at, item, place)


@cache
def _pool() -> ThreadPoolExecutor:
    """Host threads: as many as have been busy at once."""
    return ThreadPoolExecutor(max_workers=256, thread_name_prefix="cypresskit")


if hasattr(os, "register_at_fork"):
    # A child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _do_all(
    jobs: Sequence[Callable[[], object]], first_here: bool, stop: Callable[[], object]
) -> None:
    """Do all jobs in host threads; ``first_here``: the first of them in the caller's. If one fails,
    or the caller is interrupted, ``stop`` ends the others, which are waited for.
    """
    futures: list[Future] = []
    own_jobs = [jobs[0]] if first_here else []
    try:
        for job in jobs[len(own_jobs) :]:
            try:
                futures.append(_pool().submit(job))
            except RuntimeError:  # the interpreter is ending and starts no threads
                own_jobs.append(job)
        for job in own_jobs:
            job()
        pending: set[Future] = set(futures)
        while pending:
            done, pending = wait(pending, INTERRUPTIBLE, FIRST_EXCEPTION)
            for future in done:
                future.result()
    except BaseException:
        stop()
        for future in futures:
            future.cancel()
        wait(futures)
        raise


def address(array: np.ndarray) -> int:
    """The address of an array's first byte."""
    return array.__array_interface__["data"][0]  # half the time of array.ctypes.data


def aligned(size: int) -> np.ndarray:
    """Zeros (int64) of ``size`` bytes, a multiple of 8, that begin at a line of the cache."""
    memory = np.zeros((size + LINE) // 8, np.int64)
    start = -address(memory) % LINE // 8
    return memory[start : start + size // 8]


def _texels(texture: Surface) -> np.ndarray:
    """A texture's words, four a texel; missing ones read 0, 0, 1.0 of single-precision data."""
    height, width, words = texture.words.shape
    if words == 4:
        return texture.words
    texels = aligned(TEXEL * height * width).view(np.uint32).reshape(height, width, 4)
    texels[..., words:] = 0
    texels[..., 3] = ONE * texture.single
    texels[..., :words] = texture.words
    return texels


class _Workspace:
    """What a launch runs in: its arrays and sizes, by the names of the kernel's slots."""

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
            arrays[f"t{n}"] = _texels(texture)
            values |= {f"t{n}_w": texture.width, f"t{n}_h": texture.height}
        for n, output in launch.outputs.items():
            arrays[f"o{n}"] = output.words
            values[f"o{n}_words"] = output.words.shape[2]
        arrays |= {f"cb{n}": words for n, words in shape.constants.items()}
        self.arrays = arrays  # which have to live on
        self.values = values | {name: address(array) for name, array in arrays.items()}

    def run(self, worker: "_Worker", todo: deque[tuple[int, int]], bar: Any) -> None:
        """Have a worker take pieces of the launch until none is left or it ended badly."""
        while not worker.status:
            try:
                at, end = todo.popleft()
            except IndexError:
                return
            while at < end and not worker.status:
                begun = at
                at = worker.call(SLICE, at, end)
                bar.update(at - begun)
                if self.limit[0] == 0:  # another worker's end
                    worker.status = STOPPED
        self.limit[0] = 0


class _Worker:
    """The state of one host thread: its own context, counters, LDS and spill memory, and what the
    kernel reports.
    """

    def __init__(self, kernel: NativeCode, values: dict[str, int]):
        self.status = DONE
        memory = {name: aligned(size) for name, size in kernel.translation.sizes.items()}
        self.memory = memory  # which has to live on
        self.counts = memory["counts"]
        self.counts.fill(0)
        self.report = memory["report"]
        values = values | {name: address(array) for name, array in memory.items()}
        for name, slot in kernel.translation.slots.items():
            memory["context"][slot] = values[name]
        self.function = partial(kernel.call, values["context"], values["counts"], values["spill"])

    def call(self, budget: int, at: int, end: int) -> int:
        """Run batches from ``at`` on, as many as ``budget`` instructions make up; the first that
        is left.
        """
        self.status = self.function(budget, at, end)
        return int(self.report[NEXT])
