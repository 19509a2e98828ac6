"""A CUDA kernel run a second time, on other numbers, in numba's simulator.

The second run stops three answers that leave the right C: the host computes C, and the kernel
copies it or does nothing; one thread computes all of C; a thread reads and writes whole arrays,
which the simulator allows and a GPU doesn't.

``run_twice(product, a, b)`` calls a reader's ``product(a, b)``. Each launch of a kernel in it is
repeated with other numbers in place of ``a`` and ``b``. Left out: device arrays in streams, and
kernels that are no Python functions.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread
from typing import Any

import numpy as np

Launch = tuple[
    np.ndarray, np.ndarray, np.ndarray, int
]  # other a and b, their C, and the most numbers that one thread wrote
PLAIN = "shape", "ndim", "size", "dtype"
ONE_BY_ONE = "on a GPU a thread reads and writes an array number by number, not as a whole"


class Numbers:
    """An array as a thread of a GPU sees it: numbers by their place. ``writes`` counts those that
    each thread wrote.
    """

    def __init__(self, array: np.ndarray, writes: Counter) -> None:
        self._array = array
        self._writes = writes

    def __getattr__(self, name: str) -> Any:
        if name in PLAIN:
            return getattr(self._array, name)
        raise AttributeError(f"{ONE_BY_ONE}: `.{name}` isn't there")

    def __len__(self) -> int:
        return len(self._array)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError(ONE_BY_ONE)

    def __getitem__(self, place: Any) -> Any:
        value = self._array[place]
        return Numbers(value, self._writes) if isinstance(value, np.ndarray) else value

    def __setitem__(self, place: Any, value: Any) -> None:
        if np.ndim(self._array[place]):
            raise TypeError(ONE_BY_ONE)
        thread = current_thread()
        index = getattr(thread, "blockIdx", None), getattr(thread, "threadIdx", None)
        self._writes[str(index)] += 1
        self._array[place] = value


class Repeated:
    """A simulated kernel whose launches are repeated; ``launches`` has what came out."""

    def __init__(self, kernel: Any, given: tuple, rng: np.random.Generator, launches: list) -> None:
        self.kernel = kernel
        self.given = given
        self.rng = rng
        self.launches = launches

    def __getitem__(self, configuration: Any) -> Callable[..., None]:
        def launch(*arguments: Any) -> None:
            hosts = [_host_array(argument) for argument in arguments]
            before = [None if host is None else host.copy() for host in hosts]
            self.kernel[configuration](*arguments)
            self._repeat(configuration, arguments, before)

        return launch

    def _repeat(self, configuration: Any, arguments: tuple, before: list) -> None:
        a, b = (self.rng.integers(1, 8, array.shape).astype(array.dtype) for array in self.given)
        writes: Counter = Counter()
        others = []
        written = []
        for argument, host in zip(arguments, before, strict=True):
            if host is None:
                others.append(argument)
                continue
            array = self._exchanged(host, a, b)
            if array is host:
                written.append(array)
            others.append(Numbers(array, writes))
        self.kernel[configuration](*others)
        most = max(writes.values(), default=0)
        self.launches += [(a, b, array, most) for array in written]

    def _exchanged(self, host: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The other numbers for what holds a or b, as it is or transposed; else the array."""
        for given, other in zip(self.given, (a, b), strict=True):
            if host.shape == given.shape and np.array_equal(host, given):
                return other
            if host.shape == given.T.shape and np.array_equal(host, given.T):
                return other.T.copy()
        return host


def _host_array(argument: Any) -> np.ndarray | None:
    """The array of an argument: one of numpy's, the simulator's, or a hint of which way it goes."""
    for array in argument, getattr(argument, "_ary", None), getattr(argument, "value", None):
        if isinstance(array, np.ndarray):
            return array
    return None


def run_twice(product: Callable, a: np.ndarray, b: np.ndarray, seed: int) -> tuple[Any, list[list]]:
    """What ``product(a, b)`` returns, and of each second run of a kernel in it the other a, the
    other b, what it left in each array that is neither, and how many numbers one thread wrote at
    most. The other numbers belong to ``seed``.
    """
    rng = np.random.default_rng(seed)
    launches: list[Launch] = []
    with compiled(lambda made: Repeated(made, (a, b), rng, launches)):
        result = product(a, b)
    return result, [list(launch) for launch in launches]


@contextmanager
def compiled(change: Callable[[Any], Any]) -> Iterator[None]:
    """``cuda.jit``, with or without arguments, hands each kernel that it compiles through
    ``change``.
    """
    from numba import cuda

    compile_kernel = cuda.jit

    def jit(given: Any = None, **options: Any) -> Any:
        made = compile_kernel(given, **options)
        if options.get("device"):
            return made
        if callable(given):
            return change(made)
        return lambda function: change(made(function))

    cuda.jit = jit
    try:
        yield
    finally:
        cuda.jit = compile_kernel
