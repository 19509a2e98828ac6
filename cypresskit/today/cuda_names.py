"""What a traced kernel finds in `cuda`."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from cypresskit.today.cuda_events import WARP
from cypresskit.today.cuda_threads import Threads
from cypresskit.today.cuda_values import FMA, UNNAMED, Array, Axes, Local, Number, place_array


class CudaOfThreads:
    """`cuda` of traced threads, with CUDA's names. It refers to them, and they don't refer to it:
    their arrays are freed as soon as they aren't needed.
    """

    warpsize = WARP

    def __init__(self, threads: Threads):
        launch = threads.launch
        self.threads = threads
        self.threadIdx, self.blockIdx = threads.thread, threads.block
        self.blockDim = Axes(*map(np.int64, (*launch.threads, 1)))
        self.gridDim = Axes(*map(np.int64, (*launch.grid, 1)))

    def __getattr__(self, name: str) -> Any:
        if name in ("local", "shared"):
            return SimpleNamespace(array=getattr(self, f"_{name}_array"))
        raise self.threads.foreign(name)

    def grid(self, dimensions: int) -> Any:
        axes = zip(self.threadIdx, self.blockDim, self.blockIdx)
        return self._first([thread + size * block for thread, size, block in axes], dimensions)

    def gridsize(self, dimensions: int) -> Any:
        axes = zip(self.gridDim, self.blockDim)
        return self._first([count * size for count, size in axes], dimensions)

    def _first(self, axes: list, dimensions: int) -> Any:
        if dimensions not in (1, 2):
            raise self.threads.foreign("three")
        return tuple(axes[:2]) if dimensions == 2 else axes[0]

    def syncthreads(self) -> None:
        self.threads.loaded.clear()
        self.threads.note("barrier")

    def syncwarp(self, *_: Any) -> None:
        """Take no time, as fences do."""

    threadfence = threadfence_block = threadfence_system = syncwarp

    def fma(self, *_: Any) -> Number:
        self.threads.note(FMA, size=self.threads.item)
        return Number()

    def _local_array(self, *_: Any) -> Local:
        self.threads.has_local = True
        return Local()

    def _shared_array(self, shape: Any, dtype: Any) -> Array:
        """Return an array in shared memory. One without a size has what the launch has."""
        threads = self.threads
        kind = np.dtype(getattr(dtype, "name", dtype))
        lengths = tuple(map(int, shape if isinstance(shape, tuple) else (shape,)))
        is_sized = all(lengths)
        if not is_sized:
            lengths = (threads.launch.shared // kind.itemsize,)
        begin = threads.shared_arrays.setdefault(threads.frames[-1].line, threads.shared_bytes)
        like = SimpleNamespace(shape=lengths, dtype=kind)
        array, end = place_array(UNNAMED, begin, like, shared=True)
        if is_sized:
            threads.shared_bytes = max(threads.shared_bytes, end)
        return array
