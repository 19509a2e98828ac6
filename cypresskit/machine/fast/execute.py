"""Runs a launch on compiled code: lays out its arrays, hands units to host threads, and makes a ``Run`` of the counts.

Compiled code runs in worker threads, never in the caller's: so Ctrl-C reaches the caller at once, who then clears a
flag that every loop of the kernel looks at.
"""

import ctypes
import math
import struct
import threading
import time

import numpy as np

from cypresskit.machine.fast.branches import DIVERGED, ENDLESS, STOPPED
from cypresskit.machine.fast.jit import Kernel, compiled
from cypresskit.machine.fast.units import BAND
from cypresskit.machine.launch import KernelError, Launch
from cypresskit.machine.run import Run, tally

NONE = (1 << 64) - 1  # the key of "no store has failed"
MAX_SPARE = 64 << 20  # bytes of texture memory kept for the next launch
EXPLAINED, REPEATED = 200_000_000, 50_000_000  # instructions that the explaining engine may do in this one's place
CHUNKS = 4  # units are handed out in so many pieces a thread, so that none waits long for the others


def run(launch: Launch, threads: int = 1, seconds: float = math.inf) -> Run:
    """Run a checked launch with ``threads`` host threads; the results don't depend on their number.

    Raises ``KernelError`` for a store out of range, an endless loop, or a barrier that only part of a group reaches,
    and ``TimeoutError`` if it took ``seconds`` of processor time.
    """
    if not launch.items:
        return tally(launch, "fast", np.zeros(len(launch.program.body), np.int64), 0)
    execution = _Execution(launch, compiled(launch.program))
    try:
        return execution.run(threads, time.process_time() + seconds)
    finally:
        _spare[:0] = execution.lent
        while sum(memory.nbytes for memory in _spare) > MAX_SPARE:
            _spare.pop()


_spare: list[np.ndarray] = []  # memory of earlier textures: fresh pages cost as much as filling them


def _take(words: int) -> np.ndarray:
    """Memory for a texture, used before if there is some of fitting size."""
    for k, memory in enumerate(_spare):
        if words <= len(memory) <= 2 * words:
            return _spare.pop(k)
    return np.empty(words, np.uint32)


class _Execution:
    def __init__(self, launch: Launch, kernel: Kernel):
        self.launch, self.kernel, self.translation = launch, kernel, kernel.translation
        # how many instructions a work-item may execute; 0 stops the kernel
        self.limit = np.array([min(launch.max_instructions, 1 << 62)], np.uint64)
        self.kept: list[np.ndarray] = []  # arrays that compiled code reads
        self.lent: list[np.ndarray] = []  # those of them that go back to _spare
        self.shared = self._context()

    # Arrays

    def _address(self, array: np.ndarray) -> int:
        self.kept.append(array)
        return array.ctypes.data

    def _context(self) -> dict[str, int]:
        """Every context value that is the same for all threads; floats as their bits."""
        launch, lanes = self.launch, self.translation.lanes
        width, height, _ = launch.domain
        values = {
            "width": width,
            "height": height,
            "tile_columns": -(-width // (lanes // 2)),
            "tile_rows": -(-height // 2),
            "limit": self._address(self.limit),
            "zeros": self._address(np.zeros(16, np.uint32)),
            "literals": self._address(np.array(self.translation.literals or (0,), np.uint32)),
        }
        if launch.program.mode == "compute":
            values |= {f"groups{axis}": size for axis, size in zip("xyz", launch.groups, strict=True)}
        for n, words in launch.constants.items():
            values[f"cb{n}"] = self._address(words)
        for n, surface in launch.textures.items():
            if f"t{n}" in self.translation.slots:
                values |= self._texture(n, surface)
        for n, surface in launch.outputs.items():
            values |= {f"o{n}": self._address(surface.words), f"o{n}_words": surface.words.shape[2]}
        if launch.global_memory is not None:
            values |= {"global": self._address(launch.global_memory), "global_size": len(launch.global_memory)}
        return values

    def _texture(self, n: int, surface) -> dict[str, int]:
        """The texture in panels of four 128-bit texels; see ``access``. One row more keeps panels off the same sets of
        the host's cache."""
        height, width, words = surface.words.shape
        panels, rows = -(-width // 4), height + 1
        memory = _take(panels * rows * 16 + 16)
        self.lent.append(memory)
        start = -memory.ctypes.data % 64 // 4
        layout = memory[start : start + panels * rows * 16].reshape(panels, rows, 4, 4)
        if words == 4 and width % 4 == 0:
            lines = layout.reshape(-1).view("V64").reshape(panels, rows)
            lines[:, :height] = surface.words.reshape(-1).view("V64").reshape(height, panels).T
        else:
            layout[...] = 0
            full = np.zeros((height, 4 * panels, 4), np.uint32)
            full[:, :width, :words] = surface.words
            if surface.single and words < 4:
                full[..., 3] = 0x3F800000
            layout[:, :height] = full.reshape(height, panels, 4, 4).transpose(1, 0, 2, 3)
        return {
            f"t{n}": layout.ctypes.data,
            f"t{n}_pitch": rows * 64,
            f"t{n}_width": _bits(width),
            f"t{n}_height": _bits(height),
        }

    # Running

    def run(self, threads: int, end: float) -> Run:
        launch = self.launch
        units = self._units()
        memory = launch.global_memory
        read = self.translation.divides or any(s.register.kind == "g" for i in launch.program.body for s in i.sources)
        before = memory.copy() if read and memory is not None else None
        workers = [_Worker(self) for _ in range(min(threads, units))]
        share = -(-units // (len(workers) * (CHUNKS if len(workers) > 1 else 1)))
        if launch.program.mode == "pixel" and len(workers) > 1:
            band = self.shared["tile_columns"] * BAND
            share = -(-share // band) * band
        todo = iter([(first, min(first + share, units)) for first in range(0, units, share)])
        lock = threading.Lock()
        started = []
        try:
            for worker in workers:
                threading.Thread(target=worker.run, args=(todo, lock), daemon=True).start()
                started.append(worker)
            self._wait(started, end)
        except BaseException:
            self.limit[0] = 0
            self._wait(started)
            raise
        if any(worker.status == DIVERGED for worker in workers):
            return self._explained(before, EXPLAINED)
        self._raise(workers, before)
        counts = np.sum([worker.counts for worker in workers], axis=0)
        executed = np.zeros(len(launch.program.body), np.int64)
        for segment, times in zip(self.translation.segments, counts[1:], strict=False):
            executed[list(segment)] += times
        return tally(launch, "fast", executed, int(counts[0]))

    def _explained(self, memory: np.ndarray | None, most: int) -> Run:
        """What the explaining engine makes of the launch, ``memory`` being what global memory held before; after
        ``most`` instructions of all work-items it takes a loop for endless."""
        from cypresskit.machine.explain import run as explain

        if memory is not None and self.launch.global_memory is not None:
            self.launch.global_memory[...] = memory
        return explain(self.launch, most=most)

    @staticmethod
    def _wait(workers: list["_Worker"], end: float = math.inf) -> None:
        for worker in workers:
            while not worker.done.wait(0.1):  # not longer: on some hosts nothing interrupts a wait
                if time.process_time() > end:
                    raise TimeoutError

    def _units(self) -> int:
        if self.launch.program.mode == "pixel":
            return self.shared["tile_columns"] * self.shared["tile_rows"]
        return math.prod(self.launch.groups)

    def _raise(self, workers: list["_Worker"], memory: np.ndarray | None) -> None:
        launch, body = self.launch, self.launch.program.body
        failed = [worker for worker in workers if int(worker.error[0]) != NONE]
        endless = [worker for worker in workers if worker.status == ENDLESS]
        if failed:
            key, at, element = min(tuple(map(int, worker.error[:3])) for worker in failed)
            item = key & ((1 << 28) - 1)
            element = element - (1 << 64) if element >> 63 else element
            if body[at].op.kind == "lds":
                block = int(body[at].control("id"))
                what = f"to byte {element} of LDS {block}, which has {launch.program.lds[block][1]}"
            else:
                size = len(launch.global_memory) if launch.global_memory is not None else 0
                what = f"to g[{element}], which has {size} elements"
            error = launch.store_error(at, item, what)
            if launch.items * len(body) <= REPEATED:  # which fails first if all work-items run in step?
                try:
                    self._explained(memory, REPEATED)
                except KernelError as first:
                    if not any(i.line == first.line and i.op.flow == "loop" for i in body):
                        error = first
            raise error
        if endless:
            raise launch.endless_error(*min((worker.place, worker.item) for worker in endless))


def _bits(number: float) -> int:
    return struct.unpack("<q", struct.pack("<d", float(number)))[0]


class _Worker:
    """One host thread: its own counters, LDS, spill memory and report of a failed store."""

    def __init__(self, execution: _Execution):
        launch, translation = execution.launch, execution.translation
        self.execution = execution
        self.counts = np.zeros(1 + len(translation.segments), np.int64)
        self.error = np.array([NONE, 0, 0, 0, 0], np.uint64)
        self.lds = np.zeros(sum(size // 4 + 12 for _, size in launch.program.lds.values()) + 4, np.uint32)
        self.nowhere = np.zeros(8, np.uint32)
        quads = -(-math.prod(launch.program.group) // translation.lanes) if launch.program.mode == "compute" else 1
        spill = np.zeros(translation.spill * quads + 64, np.uint8)
        self.spill = spill[-spill.ctypes.data % 64 :]
        own = {"error": self.error.ctypes.data, "lds": self.lds.ctypes.data, "nowhere": self.nowhere.ctypes.data}
        context = np.zeros(len(translation.slots) + 1, np.int64)
        for name, slot in translation.slots.items():
            context[slot] = (execution.shared | own)[name]
        self.context = context
        self.status, self.place, self.item = 0, 0, 0
        self.done = threading.Event()

    def run(self, todo, lock: threading.Lock) -> None:
        """Take pieces of the launch until none is left or this one ended badly."""
        call = self.execution.kernel.call
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (self.context, self.counts, self.spill)]
        try:
            while not self.status:
                with lock:
                    piece = next(todo, None)
                if piece is None:
                    return
                self.status = call(*pointers, *piece)
            if self.execution.limit[0] == 0:  # somebody else's end
                self.status = STOPPED
            self.execution.limit[0] = 0
            self.place, self.item = map(int, self.error[3:])
        finally:
            self.done.set()
