"""Runs a launch on compiled code: lays out its arrays, hands units to host threads, and makes a ``Run`` of the counts.

The caller works, too, and runs alone what ends before another thread would be awake. It leaves compiled code every few
milliseconds, so that Ctrl-C reaches it; it then clears a flag that every loop of the kernel looks at.
"""

import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from cypresskit.machine.fast.jit import NativeCode, compiled
from cypresskit.machine.fast.storage import DIVERGED, DONE, ENDLESS, FAILED, STOPPED, UNDERFLOWED, UNIT
from cypresskit.machine.fast.target import MODES, this_host
from cypresskit.machine.fast.texel_layout import address, aligned, pitch
from cypresskit.machine.fast.units import BAND
from cypresskit.machine.launch import MAX_INSTRUCTIONS, KernelError, Launch
from cypresskit.machine.run import Run, tally

MAX_SPARE, SPARE = 64 << 20, 16  # bytes of textures, and workspaces, kept for the next launch
SOON = 1_000_000  # instructions of quads that the caller runs before it thinks of others, some 0.2 ms
FEW = 6  # it also runs what is left, up to so many times as much: others take up to a millisecond to wake
OFTEN = 20 * SOON  # instructions after which compiled code returns, so that Ctrl-C isn't kept waiting
LARGE = 2 << 20  # bytes of textures from which on host threads lay them out
INTERRUPTIBLE = 0.1  # seconds of waiting at a time: on some hosts nothing interrupts a wait


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(launch: Launch, threads: int | None = None, seconds: float = math.inf) -> Run | KernelError | None:
    """Run a checked launch with ``threads`` host threads, by default one for each processor that this process may use;
    the results don't depend on their number, unless work-items race.

    Returns the error of a store out of range, which is the first one here, but need not be if work-items run in step;
    None if a barrier was reached by part of a group, or work-items wait for each other: another engine has to tell, and
    global memory is as it was if what it held matters. Raises ``KernelError`` for an endless loop, ``TimeoutError`` if
    it took ``seconds`` of processor time.
    """
    if not launch.items:
        return tally(launch, "fast", np.zeros(len(launch.program.body), np.int64), 0)
    return _run(launch, compiled(launch.program), threads or processors(), seconds)


def _run(launch: Launch, kernel: NativeCode, threads: int, seconds: float) -> Run | KernelError | None:
    space, memory = _workspace(launch, kernel), launch.memory
    space.fill(launch, threads)
    results = [memory, *(surface.words for surface in launch.outputs.values())]
    kept = [array.copy() for array in results if MODES[this_host().mode][3]]
    workers = _done(launch, space, threads, seconds)
    ends = {worker.status for worker in workers}
    if UNDERFLOWED in ends:
        for array, old in zip(results, kept, strict=True):
            array[...] = old
        return _run(launch, compiled(launch.program, soft=True), threads, seconds)
    if space.before is not None and ends & {DIVERGED, FAILED, ENDLESS}:
        memory[...] = space.before
    if DIVERGED in ends:
        return None
    if ends & {FAILED, ENDLESS}:  # which one is reported must not depend on which thread is faster
        return _run(launch, kernel, 1, seconds) if len(workers) > 1 else _failure(launch, workers[0])
    counts = np.sum([worker.counts for worker in workers], axis=0)
    space.give_back()
    return tally(launch, "fast", counts[kernel.counters], int(counts[0]))


def _done(launch: Launch, space: "_Workspace", threads: int, seconds: float) -> list["_Worker"]:
    """The workers that have run all units: the caller, and threads that it wakes if much is left."""
    units, quick = space.units, launch.max_instructions <= MAX_INSTRUCTIONS  # no unit takes long
    first = space.worker(0)
    begun = first.call(SOON, 0, units) if quick else 0
    if first.status or begun == units:
        return [first]
    threads = 1 if units - begun <= FEW * begun else min(threads, units - begun)
    workers = [first, *(space.worker(n) for n in range(1, threads))]
    column = BAND if launch.pixels else 1
    todo, lock = _pieces(begun, units, column, threads), threading.Lock()
    jobs = [partial(space.run, worker, todo, lock) for worker in workers]
    own = jobs.pop(0) if quick and seconds == math.inf else None
    _all(jobs, partial(space.limit.fill, 0), own, seconds)
    return workers


def _pieces(begun: int, units: int, column: int, workers: int) -> Iterator[tuple[int, int]]:
    """The units from ``begun`` on in pieces, (first, last + 1): half of what is left, shared equally, so that all
    workers end at the same time. Whole columns of a band of tiles, since these share columns of textures."""
    while begun < units:
        share = -(-(units - begun) // (2 * workers * column)) * column if workers > 1 else units
        yield begun, min(begun + share, units)
        begun += share


def _failure(launch: Launch, worker: "_Worker") -> KernelError:
    """The error of a store out of range; raises that of an endless loop."""
    body = launch.program.body
    at, item, element, _ = map(int, worker.told)
    if worker.status == ENDLESS:
        raise launch.endless_error(at, item)
    if body[at].op.kind == "lds":
        array = body[at].controls.id
        what = f"to byte {element} of LDS {array}, which has {launch.program.lds[array][1]}"
    else:
        what = f"to g[{element}], which has {len(launch.memory)} elements"
    return launch.store_error(at, item, what)


_idle: list[queue.SimpleQueue] = []  # host threads that wait for work, each by the queue that it takes it from
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a child has none of its parent's threads


def _begin(job: Callable[[], None]) -> None:
    """Have ``job`` done by a host thread that waits for work, or by a new one: to start one takes ten times as long."""
    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(jobs,), daemon=True, name="cypresskit").start()
    jobs.put(job)


def _serve(jobs: queue.SimpleQueue) -> None:
    while True:
        jobs.get()()
        _idle.append(jobs)


def _all(
    jobs: Sequence[Callable[[], object]],
    stop: Callable[[], object],
    own: Callable[[], object] | None = None,
    seconds: float = math.inf,
) -> None:
    """Have all jobs done by host threads, and ``own`` meanwhile by the caller. If one fails, the caller is interrupted,
    or ``seconds`` of processor time have passed (``TimeoutError``), the others are told to ``stop`` and waited for."""
    waiting, ended = list(jobs), list[BaseException | None]()
    over: queue.SimpleQueue[None] = queue.SimpleQueue()
    end = time.process_time() + seconds

    def work() -> None:  # whoever does a job counts it: an interrupt can come before the caller has
        with suppress(IndexError):  # the caller took the last back
            job, error = waiting.pop(), None
            try:
                job()
            except BaseException as failure:
                error = failure
            ended.append(error)
            over.put(None)

    try:
        for _ in jobs:
            _begin(work)
        if own:
            own()
        while len(ended) < len(jobs) and not any(ended):
            try:
                over.get(timeout=INTERRUPTIBLE)
            except queue.Empty:
                if time.process_time() > end:
                    raise TimeoutError from None
        for error in filter(None, ended):
            raise error
    except BaseException:
        stop()
        while waiting:
            work()
        while len(ended) < len(jobs):
            over.get()
        raise


# What earlier launches ran in, the latest first: to prepare it takes as long as a small product, and fresh pages cost
# as much as filling them. Threads share the list without a lock: each step on it is atomic, even in a Python without
# a global lock, and between any two of them other threads may take or give.
_spare: list["_Workspace"] = []


def _workspace(launch: Launch, kernel: NativeCode) -> "_Workspace":
    """What ``launch`` can run in: the workspace of an earlier one of that shape, or a new one."""
    shapes = [(n, surface.words.shape) for of in (launch.textures, launch.outputs) for n, surface in of.items()]
    key = kernel, launch.domain, len(launch.memory), *shapes
    for space in tuple(_spare):
        if space.key == key:
            with suppress(ValueError):  # another thread took it
                _spare.remove(space)
                return space
    return _Workspace(launch, kernel, key)


class _Workspace:
    """What launches of one kernel and shape, ``key``, run in, one at a time."""

    def __init__(self, launch: Launch, kernel: NativeCode, key: tuple):
        self.kernel, self.key = kernel, key
        self.limit = np.zeros(1, np.uint64)  # how many instructions a work-item may execute; 0 stops the kernel
        # global memory, to be restored if the launch fails
        self.before = np.empty_like(launch.memory) if kernel.translation.reads_global else None
        width, height, _ = launch.domain
        self.values = {"width": width, "height": height, "global_size": len(launch.memory)}
        self.values |= {"limit": address(self.limit), "literals": address(kernel.literals)}
        if launch.pixels:
            self.units = -(-width // kernel.translation.lanes) * height
        else:
            self.units = math.prod(launch.groups)
            self.values |= {f"groups_{axis}": size for axis, size in zip("xyz", launch.groups)}
        self.texels: dict[int, np.ndarray] = {}
        for n, layout in kernel.layouts.items():
            width, height = launch.textures[n].width, launch.textures[n].height
            self.texels[n] = layout.memory(height, width)
            self.values |= {f"t{n}": address(self.texels[n]), f"t{n}_pitch": pitch(height)}
            self.values |= {f"t{n}_w": width, f"t{n}_h": height}
        self.values |= {f"o{n}_words": surface.words.shape[2] for n, surface in launch.outputs.items()}
        self.size = sum(array.nbytes for array in (*self.texels.values(), self.before) if array is not None)
        self.workers: list[_Worker] = []
        self.arrays: dict[str, np.ndarray] = {}

    def fill(self, launch: Launch, threads: int) -> None:
        """Take over what a launch reads."""
        self.limit[0] = min(launch.max_instructions, 1 << 62)
        self.arrays = {f"cb{n}": words for n, words in launch.constants.items()} | {"global": launch.memory}
        self.arrays |= {f"o{n}": surface.words for n, surface in launch.outputs.items()}
        fills: list[Callable[[], object]] = []
        for n, memory in self.texels.items():
            surface = launch.textures[n]
            fills.append(partial(self.kernel.layouts[n].fill, memory, surface.words, surface.single))
        if self.before is not None:
            fills.append(partial(np.copyto, self.before, launch.memory))
        if threads > 1 and self.size > LARGE:
            _all(fills[1:], lambda: None, fills[0])  # none takes long
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

    def run(self, worker: "_Worker", todo: Iterator[tuple[int, int]], lock: threading.Lock) -> None:
        """Have a worker take pieces of the launch until none is left or it ended badly."""
        while not worker.status:
            with lock:
                at, end = next(todo, (0, 0))
            if at == end:
                return
            while at < end and not worker.status:
                at = worker.call(OFTEN, at, end)
                if self.limit[0] == 0:  # somebody else's end
                    worker.status = STOPPED
        self.limit[0] = 0

    def give_back(self) -> None:
        """Keep this for the next launch of its shape, but not what the last one wrote to."""
        self.arrays = {}
        _spare.insert(0, self)
        with suppress(IndexError):  # another thread threw away the last
            while len(_spare) > SPARE or sum(space.size for space in tuple(_spare)) > MAX_SPARE:
                _spare.pop()


class _Worker:
    """What one host thread uses: its own context, counters, LDS and spill memory, and what the kernel reports."""

    def __init__(self, kernel: NativeCode, values: dict[str, int]):
        self.kernel, self.status = kernel, DONE
        self.memory = {name: aligned(size) for name, size in kernel.sizes.items()}
        values = values | {name: address(memory) for name, memory in self.memory.items()}
        self.context, self.counts, self.told = (self.memory[name] for name in ("context", "counts", "report"))
        for name, value in values.items():
            self.set(name, value)
        self.function = partial(kernel.call, *(values[name] for name in ("context", "counts", "spill")))

    def set(self, name: str, value: int) -> None:
        """Set a value of the context, if the kernel asks for it."""
        if name in self.kernel.slots:
            self.context[self.kernel.slots[name]] = value

    def call(self, budget: int, at: int, end: int) -> int:
        """Run units from ``at`` on, as many as ``budget`` instructions of quads make up; the first that is left."""
        self.status = self.function(budget, at, end)
        return int(self.told[UNIT])
