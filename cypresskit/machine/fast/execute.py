"""Runs a launch on compiled code: lays out its arrays, hands batches to host threads, makes a
``Run`` of the counts.

The calling thread takes part; short launches it runs alone, since waking a worker would take
longer. Compiled code returns every few milliseconds, so that Ctrl-C is heard; a flag that every
loop of the kernel looks at is then cleared.
"""

import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache, partial, reduce

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
from cypresskit.machine.run import Run, tally
from cypresskit.machine.wavefront import TILE
from cypresskit.threads import processors

SLICE = 2_000_000  # instructions after which compiled code returns: a millisecond or two
INTERRUPTIBLE = 0.1  # seconds of waiting at a time: on some hosts nothing interrupts a wait
SPARE = 4  # workspaces kept for later launches
MAX_SPARE = 16 << 20  # bytes of each of them, at most
LINE = 64  # bytes
LARGE = 2 << 20  # bytes of textures from which on several threads lay them out


def run(launch: Launch, threads: int | None = None) -> Run | None:
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


def _run(launch: Launch, kernel: NativeCode, threads: int) -> Run | None:
    space = _workspace(launch, kernel)
    memory = launch.memory
    space.fill(launch, threads)
    results = [memory, *(surface.words for surface in launch.outputs.values())]
    kept = [array.copy() for array in results if this_host().mode in FLAGGED]
    workers = _run_batches(launch, space, threads)
    ends = {worker.status for worker in workers}
    if UNDERFLOWED in ends:
        for array, old in zip(results, kept, strict=True):
            array[...] = old
        return _run(launch, compiled(launch.program, soft=True), threads)
    if space.before is not None and ends & {DIVERGED, FAILED, ENDLESS}:
        memory[...] = space.before
    if DIVERGED in ends:
        return None
    failed = [worker for worker in workers if worker.status in (FAILED, ENDLESS)]
    if failed and len(workers) > 1:
        # Which one is reported must not depend on which thread is faster.
        _run(launch, kernel, 1)
    if failed:  # also if nothing failed this time, as may be where work-items race
        raise _failure(launch, failed[0])
    counts = reduce(np.add, [worker.counts for worker in workers])
    space.give_back()
    return tally(launch, "fast", counts[kernel.counters], int(counts[0]))


def _run_batches(launch: Launch, space: "_Workspace", threads: int) -> list["_Worker"]:
    """The workers that have run all batches: the caller, and others if it can't do that in two
    slices.
    """
    batches = space.batches
    quick = launch.max_instructions <= MAX_INSTRUCTIONS  # no batch takes long
    first = space.worker(0)
    begun = first.call(SLICE, 0, batches) if quick else 0
    if first.status or begun == batches:
        return [first]
    threads = 1 if batches - begun <= begun else min(threads, batches - begun)
    workers = [first, *(space.worker(n) for n in range(1, threads))]
    todo = deque(_pieces(begun, batches, threads))
    _do_all(
        [partial(space.run, worker, todo) for worker in workers],
        quick,
        partial(space.limit.fill, 0),
    )
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


# What earlier launches ran in, the latest first: to prepare it takes as long as a small product,
# and fresh pages cost as much as filling them. Each step on it is atomic; between two of them other
# threads may take or give.
_spare: deque["_Workspace"] = deque(maxlen=SPARE)


def _workspace(launch: Launch, kernel: NativeCode) -> "_Workspace":
    """A workspace for ``launch``: that of an earlier one of its shape, or a new one."""
    surfaces = (*launch.textures.items(), *launch.outputs.items())
    shapes = [(n, surface.words.shape) for n, surface in surfaces]
    key = kernel, launch.shape.domain, len(launch.memory), *shapes
    for space in tuple(_spare):
        if space.key == key:
            with suppress(ValueError):  # another thread took it
                _spare.remove(space)
                return space
    return _Workspace(launch, kernel, key)


def address(array: np.ndarray) -> int:
    """The address of an array's first byte."""
    return array.__array_interface__["data"][0]  # half the time of array.ctypes.data


def aligned(size: int) -> np.ndarray:
    """Zeros (int64) of ``size`` bytes, a multiple of 8, that begin at a line of the cache."""
    memory = np.zeros((size + LINE) // 8, np.int64)
    start = -address(memory) % LINE // 8
    return memory[start : start + size // 8]


def _complete(memory: np.ndarray, texture: Surface) -> None:
    """Copy texels to ``memory``; missing components of single-precision ones read 0, 0, 1.0."""
    words = texture.words.shape[2]
    memory[..., words:] = 0
    memory[..., 3] = ONE * texture.single
    memory[..., :words] = texture.words


class _Workspace:
    """The memory that launches of one kernel and shape, ``key``, run in, one at a time."""

    def __init__(self, launch: Launch, kernel: NativeCode, key: tuple):
        self.kernel, self.key = kernel, key
        # How many instructions a work-item may execute; 0 stops the kernel.
        self.limit = np.zeros(1, np.uint64)
        # Global memory, to be restored if the launch fails.
        self.before = np.empty_like(launch.memory) if kernel.translation.reads_global else None
        shape = launch.shape
        width, height, _ = shape.domain
        self.values = {"width": width, "height": height, "global_size": len(launch.memory)}
        self.values |= {"limit": address(self.limit), "literals": address(kernel.literals)}
        if shape.pixels:
            self.values["tiles"] = tiles = -(-width // TILE)
            self.batches = tiles * -(-height // TILE)
        else:
            self.batches = math.prod(shape.groups)
            self.values |= {f"groups_{axis}": size for axis, size in zip("xyz", shape.groups)}
        # Textures of fewer than four words a texel, with all of them
        self.texels: dict[int, np.ndarray] = {}
        for n, texture in launch.textures.items():
            self.values |= {f"t{n}_w": texture.width, f"t{n}_h": texture.height}
            if texture.texel < TEXEL:
                words = aligned(TEXEL * texture.width * texture.height).view(np.uint32)
                self.texels[n] = words.reshape(texture.height, texture.width, 4)
        for n, surface in launch.outputs.items():
            self.values[f"o{n}_words"] = surface.words.shape[2]
        self.size = sum(texels.nbytes for texels in self.texels.values())
        if self.before is not None:
            self.size += self.before.nbytes
        self.workers: list[_Worker] = []
        self.arrays: dict[str, np.ndarray] = {}

    def fill(self, launch: Launch, threads: int) -> None:
        """Copy a launch's textures in, and note its other arrays."""
        self.limit[0] = min(launch.max_instructions, 1 << 62)
        self.arrays = {f"cb{n}": words for n, words in launch.shape.constants.items()}
        self.arrays["global"] = launch.memory
        self.arrays |= {f"o{n}": surface.words for n, surface in launch.outputs.items()}
        self.arrays |= {f"t{n}": surface.words for n, surface in launch.textures.items()}
        self.arrays |= {f"t{n}": words for n, words in self.texels.items()}
        fills: list[Callable[[], object]] = []
        for n, memory in self.texels.items():
            fills.append(partial(_complete, memory, launch.textures[n]))
        if self.before is not None:
            fills.append(partial(np.copyto, self.before, launch.memory))
        if threads > 1 and self.size > LARGE:
            _do_all(fills, True, lambda: None)  # none takes long
        else:
            for fill in fills:
                fill()

    def worker(self, number: int) -> "_Worker":
        """One of those that run a launch, ready to begin."""
        if number == len(self.workers):
            self.workers.append(_Worker(self.kernel, self.values))
        worker = self.workers[number]
        for name, array in self.arrays.items():
            worker.set(name, address(array))
        worker.counts.fill(0)
        return worker

    def run(self, worker: "_Worker", todo: deque[tuple[int, int]]) -> None:
        """Have a worker take pieces of the launch until none is left or it ended badly."""
        while not worker.status:
            try:
                at, end = todo.popleft()
            except IndexError:
                return
            while at < end and not worker.status:
                at = worker.call(SLICE, at, end)
                if self.limit[0] == 0:  # somebody else's end
                    worker.status = STOPPED
        self.limit[0] = 0

    def give_back(self) -> None:
        """Keep this for the next launch of its shape, but not what the last one wrote to."""
        self.arrays = {}
        if self.size <= MAX_SPARE:
            _spare.appendleft(self)


class _Worker:
    """The state of one host thread: its own context, counters, LDS and spill memory, and what the
    kernel reports.
    """

    def __init__(self, kernel: NativeCode, values: dict[str, int]):
        self.slots = kernel.translation.slots
        self.status = DONE
        self.memory = {name: aligned(size) for name, size in kernel.translation.sizes.items()}
        values = values | {name: address(memory) for name, memory in self.memory.items()}
        self.context, self.counts = self.memory["context"], self.memory["counts"]
        self.report = self.memory["report"]
        for name, value in values.items():
            self.set(name, value)
        self.function = partial(kernel.call, values["context"], values["counts"], values["spill"])

    def set(self, name: str, value: int) -> None:
        """Set a value of the context, if the kernel asks for it."""
        if name in self.slots:
            self.context[self.slots[name]] = value

    def call(self, budget: int, at: int, end: int) -> int:
        """Run batches from ``at`` on, as many as ``budget`` instructions of gangs make up; the
        first that is left.
        """
        self.status = self.function(budget, at, end)
        return int(self.report[NEXT])
