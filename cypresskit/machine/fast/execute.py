"""Runs a launch on compiled code: lays out its arrays, hands units to host threads, and makes a ``Run`` of the counts.

The caller works, too, and runs alone what ends before another thread would be awake. It leaves compiled code every few
milliseconds, so that Ctrl-C reaches it; it then clears a flag that every loop of the kernel looks at.
"""

import math
import os
import queue
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from cypresskit.machine.fast.grains import coarse
from cypresskit.machine.fast.jit import ALIGN, NativeCode, compiled
from cypresskit.machine.fast.storage import DIVERGED, DONE, ENDLESS, FAILED, STOPPED, UNDERFLOWED, UNIT
from cypresskit.machine.fast.target import MODES, this_host
from cypresskit.machine.fast.texel_layout import TexelLayout, pitch
from cypresskit.machine.fast.units import BAND
from cypresskit.machine.launch import MAX_INSTRUCTIONS, KernelError, Launch, Surface
from cypresskit.machine.run import Run, tally

MAX_SPARE = 64 << 20  # bytes of texture memory kept for the next launch
SOON = 1_000_000  # instructions of quads that the caller runs before it thinks of others, some 0.2 ms
FEW = 6  # so many times as much is left to it, too: others are awake after up to a millisecond
OFTEN = 20 * SOON  # those after which compiled code returns: so long Ctrl-C may take
LARGE = 1 << 19  # words of textures from which on host threads lay them out
INTERRUPTIBLE = 0.1  # seconds of waiting at a time: on some hosts nothing interrupts a wait


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(launch: Launch, threads: int | None = None, seconds: float = math.inf) -> Run | KernelError | None:
    """Run a checked launch with ``threads`` host threads, by default one for each processor that this process may use;
    the results don't depend on their number, unless work-items race.

    Returns the error of a store out of range, which is the first one here, but need not be if work-items run in step;
    None if a barrier was reached by part of a group, or work-items wait for each other: global memory is then as it
    was, and another engine has to tell. Raises ``KernelError`` for an endless loop, ``TimeoutError`` if it took
    ``seconds`` of processor time.
    """
    if not launch.items:
        return tally(launch, "fast", np.zeros(len(launch.program.body), np.int64), 0)
    kernel = compiled(launch.program)
    if kernel.translation.coarse and not all(coarse(surface.words) for surface in launch.textures.values()):
        kernel = compiled(launch.program, soft=True)
    execution = _Execution(launch, kernel, threads or processors())
    try:
        return execution.run(seconds)
    finally:
        _spare[:0] = execution.lent
        with suppress(IndexError):  # another thread threw away the last
            while sum(memory.nbytes for memory in _spare) > MAX_SPARE:
                _spare.pop()


# Memory of earlier textures: fresh pages cost as much as filling them. Threads share it without a lock: each step on
# the list is whole, with or without the global lock of Python, and between any two others may take or give.
_spare: list[np.ndarray] = []


def _take(words: int) -> np.ndarray:
    """Memory for a texture, used before if there is some of fitting size."""
    for _ in range(len(_spare)):
        try:
            memory = _spare.pop(0)
        except IndexError:  # another thread took the last
            break
        if words <= len(memory) <= 2 * words:
            return memory
        _spare.append(memory)
    return np.empty(words, np.uint32)


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
    over: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    running, end = 0, time.process_time() + seconds

    def finished(job: Callable[[], object]) -> None:
        try:
            job()
            over.put(None)
        except BaseException as error:
            over.put(error)

    try:
        for job in jobs:
            _begin(partial(finished, job))
            running += 1
        if own:
            own()
        while running:
            try:
                error = over.get(timeout=INTERRUPTIBLE)
                running -= 1
                if error:
                    raise error
            except queue.Empty:
                if time.process_time() > end:
                    raise TimeoutError from None
    except BaseException:
        stop()
        while running:
            over.get()
            running -= 1
        raise


class _Execution:
    def __init__(self, launch: Launch, kernel: NativeCode, threads: int):
        self.launch, self.kernel, self.translation, self.threads = launch, kernel, kernel.translation, threads
        # how many instructions a work-item may execute; 0 stops the kernel
        self.limit = np.array([min(launch.max_instructions, 1 << 62)], np.uint64)
        self.kept: list[np.ndarray] = []  # arrays that compiled code reads
        self.lent: list[np.ndarray] = []  # those of them that go back to _spare
        self.before = launch.memory  # to be restored if the launch fails
        self.shared = self._context()

    # Arrays

    def _kept(self, array: np.ndarray) -> int:
        self.kept.append(array)
        return _address(array)

    def _context(self) -> dict[str, int]:
        """Every context value that is the same for all threads; floats as their bits."""
        launch, lanes = self.launch, self.translation.lanes
        width, height, _ = launch.domain
        values = {
            "width": width,
            "height": height,
            "tile_columns": -(-width // lanes),
            "tile_rows": height,
            "limit": self._kept(self.limit),
            "literals": _address(self.kernel.literals),
        }
        if launch.program.mode == "compute":
            values |= {f"groups_{axis}": size for axis, size in zip("xyz", launch.groups, strict=True)}
        for n, words in launch.constants.items():
            values[f"cb{n}"] = self._kept(words)
        used = {n: surface for n, surface in launch.textures.items() if f"t{n}" in self.translation.slots}
        fills: list[Callable[[], object]] = [partial(self._texture, values, *texture) for texture in used.items()]
        if self.translation.reads_global:  # in memory that was used before: fresh pages cost more than the copy
            self.lent.append(_take(launch.memory.size))
            self.before = self.lent[-1][: launch.memory.size].reshape(launch.memory.shape)
            fills.append(partial(np.copyto, self.before, launch.memory))
        if self.threads > 1 and sum(surface.words.size for surface in used.values()) > LARGE:
            _all(fills[1:], lambda: None, fills[0])  # none takes long
        else:
            for fill in fills:
                fill()
        for n, surface in launch.outputs.items():
            values |= {f"o{n}": self._kept(surface.words), f"o{n}_words": surface.words.shape[2]}
        if launch.global_memory is not None:
            values |= {"global": self._kept(launch.global_memory), "global_size": len(launch.global_memory)}
        return values

    def _texture(self, values: dict[str, int], n: int, surface: Surface) -> None:
        layout = TexelLayout(*self.translation.layouts.get(f"t{n}", ()))
        memory = _take(layout.words_needed(surface.height, surface.width))
        self.lent.append(memory)
        texels = layout.fill(memory, surface.words, surface.single)
        values[f"t{n}"], values[f"t{n}_pitch"] = _address(texels), pitch(surface.height)
        values[f"t{n}_w"], values[f"t{n}_h"] = _bits(surface.width), _bits(surface.height)

    # Running

    def run(self, seconds: float) -> Run | KernelError | None:
        launch, memory = self.launch, self.launch.memory
        results = [memory, *(surface.words for surface in launch.outputs.values())]
        kept = [array.copy() for array in results if MODES[this_host().mode][3]]
        workers = self._done(seconds)
        if any(worker.status == UNDERFLOWED for worker in workers):
            for array, old in zip(results, kept, strict=True):
                array[...] = old
            again = _Execution(launch, compiled(launch.program, soft=True), self.threads)
            self.lent += again.lent
            return again.run(seconds)
        ended = [worker for worker in workers if worker.status in (FAILED, ENDLESS)]
        diverged = any(worker.status == DIVERGED for worker in workers)
        if diverged or ended:
            memory[...] = self.before
        if diverged:
            return None
        if ended and len(workers) > 1:  # which one is reported must not depend on which thread is faster
            self.limit[0] = min(launch.max_instructions, 1 << 62)
            self.threads = 1
            return self.run(seconds)
        if ended:
            return self._failure(ended[0])
        counts = np.sum([worker.counts for worker in workers], axis=0)
        executed = np.zeros(len(launch.program.body), np.int64)
        executed[self.kernel.counted] = counts[1:][self.kernel.counters]
        return tally(launch, "fast", executed, int(counts[0]))

    def _done(self, seconds: float) -> list["_Worker"]:
        """The workers that have run all units: the caller, and threads that it wakes if much is left."""
        units = self._units()
        first, begun, quick = _Worker(self), 0, self.launch.max_instructions <= MAX_INSTRUCTIONS  # no unit takes long
        if quick:
            begun = first.begin(units)
            if first.status or begun == units:
                return [first]
        threads = 1 if units - begun <= FEW * begun else min(self.threads, units - begun)
        workers = [first, *(_Worker(self) for _ in range(threads - 1))]
        todo, lock = self._pieces(begun, units, len(workers)), threading.Lock()
        jobs = [partial(worker.run, todo, lock) for worker in workers]
        own = jobs.pop(0) if quick and seconds == math.inf else None
        _all(jobs, partial(self.limit.fill, 0), own, seconds)
        return workers

    def _pieces(self, begun: int, units: int, workers: int) -> Iterator[tuple[int, int]]:
        """The units from ``begun`` on in pieces, (first, last + 1): half of what is left, shared equally, so that all
        workers end at the same time. Whole columns of a band of tiles, since these share columns of textures."""
        column = BAND if self.launch.program.mode == "pixel" else 1
        while begun < units:
            share = -(-(units - begun) // (2 * workers * column)) * column if workers > 1 else units
            yield begun, min(begun + share, units)
            begun += share

    def _units(self) -> int:
        if self.launch.program.mode == "pixel":
            return self.shared["tile_columns"] * self.shared["tile_rows"]
        return math.prod(self.launch.groups)

    def _failure(self, worker: "_Worker") -> KernelError:
        """The error of a store out of range; raises that of an endless loop."""
        launch, body = self.launch, self.launch.program.body
        at, item, element, _ = map(int, worker.told)
        at = self.translation.places[at]
        if worker.status == ENDLESS:
            raise launch.endless_error(at, item)
        if body[at].op.kind == "lds":
            array = body[at].controls.id
            what = f"to byte {element} of LDS {array}, which has {launch.program.lds[array][1]}"
        else:
            what = f"to g[{element}], which has {len(launch.memory)} elements"
        return launch.store_error(at, item, what)


def _bits(number: float) -> int:
    return struct.unpack("<q", struct.pack("<d", float(number)))[0]


class _Worker:
    """What one host thread uses: its own counters, LDS and spill memory, and what the kernel reports."""

    def __init__(self, execution: _Execution):
        self.execution = execution
        offsets, size = execution.kernel.layout
        self.block = np.zeros(size, np.int64)
        start = -_address(self.block) % ALIGN // 8
        places = {name: start + offset for name, offset in offsets.items()}
        address = _address(self.block)
        here = execution.shared | {name: address + 8 * place for name, place in places.items()} | {"budget": SOON}
        slots = execution.translation.slots
        self.context = self.block[places["context"] :][: len(slots)]
        self.context[:] = [here[name] for name in slots]
        self.counts = self.block[places["counts"] :][: 1 + execution.translation.segments]
        self.told = self.block[places["report"] :][:4]
        self.arrays = [here[name] for name in ("context", "counts", "spill")]
        self.status = DONE

    def begin(self, units: int) -> int:
        """Run units from the first one on, in this thread and not for long; the number of those that are done."""
        self.status = self.execution.kernel.call(*self.arrays, 0, units)
        return int(self.told[UNIT])

    def run(self, todo: Iterator[tuple[int, int]], lock: threading.Lock) -> None:
        """Take pieces of the launch until none is left or this one ended badly."""
        self.context[self.execution.translation.slots.index("budget")] = OFTEN
        while not self.status:
            with lock:
                at, end = next(todo, (0, 0))
            if at == end:
                return
            while at < end and not self.status:
                self.status = self.execution.kernel.call(*self.arrays, at, end)
                at = int(self.told[UNIT])
        if self.execution.limit[0] == 0:  # somebody else's end
            self.status = STOPPED
        self.execution.limit[0] = 0


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]  # half the time of array.ctypes.data
