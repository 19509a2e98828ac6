"""Make ``cypresskit/today/record.json``: the workbook's experiments on this computer's GPU.

    python -m tools.cuda.experiments FILE

It needs a CUDA GPU and the extra ``gpu``. A GPU changes its clock with load and heat: the record
has the clock found at work.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cache
from importlib.metadata import distributions
from importlib.util import find_spec
from math import ceil
from statistics import median
from time import perf_counter

import numpy as np
from numba import config as config

from cypresskit.files.atomic import save_file
from cypresskit.today.cuda_kernels import as_written
from cypresskit.today.cuda_kernels import cuda as cuda
from tools.cuda.microbenchmarks import (
    EIGHT,
    LINE,
    STRIDE,
    access_pitched,
    chase_chain,
    double_double,
    load_from_l1,
    load_scattered,
    places,
)
from tools.cuda.tiles import blocked, tiled

PACKAGES = ("cypresskit", "numba", "numba-cuda", "numpy", "cupy-cuda13x", "cupy-cuda12x")
COUNT = "MULTIPROCESSOR_COUNT"  # its name for the driver
# Shared memory: its name for the driver; bytes of a workgroup, at most; what CUDA takes itself
SHARED = "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"
SHARED_MOST = 48 * 1024
SHARED_TAKEN = 1024
QUERY = {
    "device": "name",
    "driver": "driver_version",
    "highest clock": "clocks.max.sm",
    "clock at work": "clocks.sm",
}


@dataclass
class Experiments:
    """All experiments of the record, and the figures so far, as ``rows``.

    Each result is compared with numpy's: a wrong one raises ``ArithmeticError``. A figure is the
    median of several runs after a warm-up; its ``spread`` is the difference between the slowest and
    the fastest run, divided by the median.
    """

    n: int = 4096  # the size of most products
    sizes: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    megabytes: int = 256  # copied over the bus per call
    warm: int = 3  # runs of the warm-up
    runs: int = 9  # timed runs
    seconds: float = 0.05  # the least duration of a run, which repeats short calls
    side: int = 16  # threads along a workgroup of ``tiled``
    iterations: int = 20_000  # of a store and a load
    warps: int = 32  # that take turns on each multiprocessor
    rows: list[dict] = field(default_factory=list)

    def add(
        self, experiment: str, case: object, unit: str, amount: float, work: Callable, **more
    ) -> None:
        """Time ``work`` and add a row.

        Its value is ``amount`` divided by the seconds of a call; for the unit "ns", multiplied.
        """

        def each(calls: int) -> float:
            cuda.synchronize()
            start = perf_counter()
            for _ in range(calls):
                work()
            cuda.synchronize()
            return (perf_counter() - start) / calls

        calls = ceil(self.seconds / min(each(1), each(1)))
        times = [each(calls) for _ in range(self.warm + self.runs)][self.warm :]
        middle = median(times)
        value = float(f"{middle * amount if unit == 'ns' else amount / middle:.4g}")
        about = {"unit": unit, "spread": round((max(times) - min(times)) / middle, 4)} | more
        self.rows.append({"experiment": experiment, "case": str(case), "value": value} | about)

    def product(
        self,
        experiment: str,
        case: object,
        kernel,
        n: int,
        block: int,
        *,
        precision: str = "float32",
        transposed: bool = True,
        threads: int = 8,
        down: int = 0,
        shared: int = 0,
    ) -> None:
        """Check and time a product, C = A^T B or A B.

        Parameters
        ----------
        experiment, case
            The row's names.
        kernel
            A kernel; or, if ``block`` is 0, a library's function of three arrays.
        n
            The size.
        block
            Rows and columns of C per thread.
        precision
            The name of the elements' type.
        transposed
            Whether A is stored transposed.
        threads, down
            The threads of a thread block along both axes; ``down`` is ``threads`` by default.
        shared
            Bytes of shared memory that a thread block takes besides its own.
        """
        a, b = make_operands(n, precision)
        arrays = (
            cuda.to_device(a),
            cuda.to_device(b),
            cuda.to_device(np.full((n, n), np.nan, precision)),
        )
        grid, shape = launch_shape(n, block or n, threads, down or threads)

        def work() -> None:
            (kernel[grid, shape, 0, shared] if block else kernel)(*arrays)

        work()
        require_product(arrays[2].copy_to_host(), a, b, transposed)
        # A dict with one entry, since the kernel is compiled for one signature; a library has none.
        registers: dict = getattr(kernel, "get_regs_per_thread", dict)()
        self.add(experiment, case, "Gflop/s", 2e-9 * n**3, work, registers=sum(registers.values()))

    def products(self) -> None:
        """Time products with several blocks per thread, in both precisions; with A transposed or
        not; and of several sizes.
        """
        n = self.n
        for b in (1, 2, 4, 8):
            case = f"{b} x {b}"
            self.product("block", case, blocked(b, b), n, b)
            double = blocked(b, b, np.float64)
            self.product("double", case, double, n, b, precision="float64")
        self.product("layout", "NN", blocked(8, 8, transposed=False), n, 8, transposed=False)
        self.product("layout", "TN", blocked(8, 8), n, 8)
        self.product("layout", "TN, wide", blocked(8, 8, wide=True), n, 8)
        for size in self.sizes:
            self.product("size", size, blocked(8, 8), size, 8)

    def copies(self) -> None:
        """Time copies over the bus, from pageable and from pinned memory of the host."""
        numbers = self.megabytes * 2**20 // 4
        source = np.arange(numbers, dtype=np.float32)
        on_gpu = cuda.device_array(numbers, np.float32)
        for name, host in (
            ("pageable", np.empty_like(source)),
            ("pinned", cuda.pinned_array(numbers, np.float32)),
        ):
            host[:] = source
            self.add("bus", name, "GB/s", 4e-9 * numbers, lambda: on_gpu.copy_to_device(host))  # noqa: B023
            if not np.array_equal(on_gpu.copy_to_host(), source):
                raise ArithmeticError("the numbers on the GPU aren't those that were copied there")

    def tiles_and_warps(self) -> None:
        """Time a tile in shared memory; and few warps on a multiprocessor, held off by workgroups
        that take shared memory and never touch it.
        """
        n, side = self.n, self.side
        self.product("shared memory", f"{8 * side} x {8 * side}", tiled(side), n, 8, threads=side)
        for warps in (5, 6, 8, 10, 12, 16):
            shared = (attribute(SHARED) // warps - SHARED_TAKEN) // 128 * 128
            if shared <= SHARED_MOST:
                self.product("warps", warps, blocked(8, 8), n, 8, down=4, shared=max(shared, 0))

    def double_double(self) -> None:
        n = self.n // 2
        high = make_operands(n, "float64")
        low = [2.0**-54 * matrix * matrix[::-1] for matrix in high]
        arrays = [
            cuda.to_device(m)
            for m in (high[0], low[0], high[1], low[1], *np.full((2, n, n), np.nan))
        ]

        def work() -> None:
            double_double[(n // 8, n // 8), (8, 8)](*arrays, 0.0)

        work()
        exact = np.frompyfunc(Fraction, 1, 1)
        columns = [0, n // 3, n - 1]
        pairs = *zip(high, low), [matrix.copy_to_host() for matrix in arrays[4:]]
        a, b, c = (exact(high[:, columns]) + exact(low[:, columns]) for high, low in pairs)
        if np.any(
            np.abs(c[columns] - a.T @ b) > n * Fraction(2) ** -103 * (np.abs(a).T @ np.abs(b))
        ):
            raise ArithmeticError("the double-double product has lost digits")
        self.add("double-double", "1 x 1", "Gflop/s", 2e-9 * n**3, work)

    def pitches(self) -> None:
        """Time a store and a load of shared memory by a warp, on average of 32 on each
        multiprocessor.
        """
        iterations = self.iterations
        out = cuda.to_device(np.empty(32 * self.warps * attribute(COUNT), np.float32))
        for pitch in (1, 2, 4, 8, 16, 32, 33, 34, 36):
            self.add(
                "bank, 32 warps",
                pitch,
                "ns",
                1e9 / iterations / self.warps,
                lambda: access_pitched[out.size // 32, 32](out, pitch, iterations),  # noqa: B023
            )
            passed_on = (np.arange(out.size) + iterations) % 32
            require_equal(out, passed_on, f"shared memory at a pitch of {pitch} words")

    def loads_of_l1(self) -> None:
        """Time a warp's load from L1, on average of 32 warps on each multiprocessor: 32 words, or 8
        that four threads each ask for, at a pitch.
        """
        iterations = self.iterations
        numbers = np.resize(np.arange(7, dtype=np.float32), 2**11)  # whose sums are exact
        on_gpu = cuda.to_device(numbers)
        out = cuda.device_array(32 * self.warps * attribute(COUNT), np.float32)
        for words, pitches in ((32, (1, 2, 4, 8, 9, 16, 32, 33)), (8, (1, 8, 16, 32))):
            share = 32 // words
            for pitch in pitches:
                arguments = out, on_gpu, *places(on_gpu), share, pitch, 0, iterations
                self.add(
                    f"L1, {words} words",
                    pitch,
                    "ns",
                    1e9 / iterations / EIGHT / self.warps,
                    lambda: load_from_l1[out.size // 32, 32](*arguments),  # noqa: B023
                )
                first = pitch * (np.arange(out.size) % 32 // share)
                sums = sum(numbers[first + LINE * n] for n in range(EIGHT))
                require_equal(out, iterations * sums, f"L1 at a pitch of {pitch} words")

    def loads_of_l2(self) -> None:
        """Time loads that don't ask L1, by all multiprocessors: whole lines or lone sectors of 32
        bytes, from L2 and from memory; and sectors of a few places, for which all ask.
        """
        iterations = ceil(self.iterations / 40)
        numbers = np.resize(np.arange(7, dtype=np.float32), self.megabytes * 2**21)
        on_gpu = cuda.to_device(numbers)
        start, size = places(on_gpu)
        out = cuda.device_array(64 * self.warps * attribute(COUNT), np.float32)
        cases: list[tuple] = [
            (experiment, kind, words // apart, apart, pitch, sectors)
            for experiment, words in (("L2", numbers.size // 128), ("memory", numbers.size))
            for kind, apart, pitch, sectors in (("lines", 32, 1, 4), ("sectors", 1024, 32, 32))
        ]
        cases += [("slices", n, n, 64, 0, 1) for n in (1, 2, 4, 8, 16, 32)]
        for experiment, case, regions, apart, pitch, sectors in cases:
            steps = size * apart, size * apart * (regions - 1), size * pitch
            self.add(
                experiment,
                case,
                "GB/s",
                1e-9 * out.size * iterations * EIGHT * sectors,  # a warp's sectors are of 32 bytes
                lambda: load_scattered[out.size // 64, 64](out, on_gpu, start, *steps, iterations),  # noqa: B023
            )
            warp = out.size // 32 - 1  # the last
            loaded = np.arange(1, EIGHT * iterations + 1) + warp * (EIGHT * iterations + 1)
            first = apart * (STRIDE * loaded & (regions - 1))
            sums = numbers[first[:, np.newaxis] + pitch * np.arange(32)].sum(axis=0)
            require_equal(out[32 * warp :], sums, f"{experiment}, {case}")

    def latency(self, name: str, megabytes: float, apart: int) -> None:
        """Time a chain of loads, each of which waits for the one before, through places ``apart``
        bytes from each other.
        """
        places_apart = apart // 8
        following = cuda.device_array(int(megabytes * 2**17), np.uint64)
        start, size = places(following)
        order = np.random.default_rng(0).permutation(following.size // places_apart) * places_apart
        chain = np.zeros(following.size, np.uint64)
        chain[order] = start + size * np.roll(order, -1)
        following.copy_to_device(chain)
        at = cuda.to_device(chain[order[-1:]])
        steps = 20 * self.iterations
        walked = 0

        def work() -> None:
            nonlocal walked
            chase_chain[1, 1](following, steps, at)
            walked += steps

        self.add("latency", name, "ns", 1e9 / steps, work)
        require_equal(at, start + size * order[[walked % len(order)]], f"a chain through {name}")

    def latencies(self) -> None:
        """Time a load from L1, from L2 and from memory, on an idle GPU."""
        self.latency("L1", 1 / 32, 128)
        self.latency("L2", self.megabytes / 32, 128)
        self.latency("memory", 4 * self.megabytes, 1024)

    def exercise(self) -> None:
        """Time the kernel of lesson 14's exercise 1 in workgroups of several shapes."""
        for across, down in ((2, 2), (8, 4), (8, 8), (16, 16), (32, 1), (32, 8)):
            case = f"{across} x {down}"
            self.product("exercise", case, as_written, self.n, 8, threads=across, down=down)

    def library(self) -> None:
        """Time cuBLAS through CuPy, if that is installed; half precision runs on tensor cores."""
        if not find_spec("cupy"):
            return
        import cupy

        def multiply(a, b, c) -> None:  # as CuPy's arrays, without a copy
            cupy.matmul(cupy.asarray(a).T, cupy.asarray(b), out=cupy.asarray(c))

        for name, precision in (("single", "float32"), ("double", "float64"), ("half", "float16")):
            self.product("library", name, multiply, self.n, 0, precision=precision)

    def record(self) -> dict:
        """Run everything. Returns the GPU, its driver, the versions, and a row for each figure."""
        self.products()
        self.tiles_and_warps()
        gpu = query_driver()  # right after a product, before the clock falls
        for experiment in (
            self.exercise,
            self.double_double,
            self.pitches,
            self.loads_of_l1,
            self.loads_of_l2,
            self.latencies,
            self.copies,
            self.library,
        ):
            experiment()
        versions = {
            distribution.name: distribution.version
            for distribution in distributions()
            if distribution.name in PACKAGES
        }
        about = {
            "date": date.today().isoformat(),
            "versions": versions,
            "n": self.n,
            "runs": self.runs,
        }
        return gpu | about | {"multiprocessors": attribute(COUNT), "rows": self.rows}


def query_driver() -> dict[str, str]:
    """Return the answer of `nvidia-smi` on the measured GPU; empty on numba's simulated GPU."""
    if config.ENABLE_CUDASIM:
        return {}
    uuid = cuda.current_context().device.uuid  # the machine's first GPU may be another
    about = f"--query-gpu={','.join(QUERY.values())}", "--format=csv,noheader", f"--id={uuid}"
    done = subprocess.run(["nvidia-smi", *about], check=True, capture_output=True, text=True)
    return dict(zip(QUERY, done.stdout.strip().split(", "), strict=True))


def launch_shape(n: int, block: int, *threads: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the grid and the thread blocks of a product of n x n numbers, ``block`` x ``block`` of
    C for each thread, with so many threads along each axis or as many as C has blocks.
    """
    shape = tuple(min(along, n // block) for along in threads)
    return tuple(n // (block * along) for along in shape), shape


def attribute(name: str) -> int:
    """An attribute of the GPU; 1 if numba's simulator doesn't have it."""
    return getattr(cuda.current_context().device, name, 1)


@cache
def make_operands(n: int, precision: str) -> list[np.ndarray]:
    """Return random matrices A and B."""
    random = np.random.default_rng(n)
    return [(random.random((n, n)) - 0.5).astype(precision) for _ in range(2)]


def require_product(c: np.ndarray, a: np.ndarray, b: np.ndarray, transposed: bool) -> None:
    """Raise ``ArithmeticError`` unless sixteen rows of C agree with numpy's in double precision."""
    n = len(c)
    rows = np.random.default_rng(0).choice(n, min(n, 16), replace=False)
    left = (a[:, rows].T if transposed else a[rows]).astype(float)
    right = b.astype(float)
    off = np.max(np.abs(c[rows] - left @ right) / (np.abs(left) @ np.abs(right)))
    roundings = n if c.dtype != np.float16 else 1  # cuBLAS accumulates half precision in single
    if not off <= np.finfo(c.dtype).eps * roundings:
        raise ArithmeticError(
            f"a product of {n} x {n} in {c.dtype} has a relative error of {off:.2g}"
        )


def require_equal(on_gpu, numbers: np.ndarray, what: str) -> None:
    """Raise ``ArithmeticError`` unless the GPU's array equals ``numbers``."""
    if not np.array_equal(on_gpu.copy_to_host(), numbers):
        raise ArithmeticError(f"{what} returned wrong numbers")


if __name__ == "__main__":
    save_file(sys.argv[1], json.dumps(Experiments().record(), indent=1) + "\n")
