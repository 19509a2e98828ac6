"""Time kernels on this computer's GPU: each is checked against numpy, then timed.

A figure is the median of several runs after a warm-up; its ``spread`` is the difference between the
slowest and the fastest run, divided by the median. ``tools/cuda/experiments.py`` adds the other
experiments of the record.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from math import ceil
from statistics import median
from time import perf_counter

import numpy as np

from cypresskit.today.cuda_kernels import blocked, cuda


@dataclass
class Bench:
    """The figures of this GPU, as ``rows``. A wrong result raises ``ArithmeticError``."""

    n: int = 4096  # the size of most products
    sizes: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    megabytes: int = 256  # copied over the bus per call
    warm: int = 3  # runs of the warm-up
    runs: int = 9  # timed runs
    seconds: float = 0.05  # the least duration of a run, which repeats short calls
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
        shape = [min(along, n // (block or n)) for along in (threads, down or threads)]
        grid = [n // ((block or n) * along) for along in shape]

        def work() -> None:
            (kernel[tuple(grid), tuple(shape), 0, shared] if block else kernel)(*arrays)

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

    def record(self) -> dict:
        """Time products and the bus. Return the GPU's name, and a row for each figure."""
        self.products()
        self.copies()
        name = cuda.current_context().device.name
        device = name.decode() if isinstance(name, bytes) else name
        return {"device": device, "rows": self.rows}


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
