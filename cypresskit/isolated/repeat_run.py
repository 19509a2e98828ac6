"""A CUDA kernel run a second time, on other numbers and by one thread block, in numba's simulator.

The second run stops answers that leave the right C: the host computes C, and the kernel copies it
or does nothing; or a thread computes more of C than its own block.

``run_twice(product, a, b)`` calls a reader's ``product(a, b)``. Each launch of a kernel in it is
repeated with other numbers in place of ``a`` and ``b``. Left out: device arrays in streams, and
kernels that are no Python functions.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np


class Launcher:
    """A compiled kernel whose launches are done by ``act``: it gets the kernel, how it is launched,
    and the arguments.
    """

    def __init__(self, kernel: Any, act: Callable[..., None]) -> None:
        self.kernel, self.act = kernel, act

    def __getitem__(self, configuration: tuple) -> Callable[..., None]:
        return partial(self.act, self.kernel, configuration)


def run_twice(product: Callable, a: np.ndarray, b: np.ndarray, seed: int) -> tuple[Any, list[list]]:
    """Return what ``product(a, b)`` returns, and of each second run of a kernel in it the other a
    and b, what it left in each array that is neither, and how many threads ran. The other numbers
    belong to ``seed``.
    """
    rng = np.random.default_rng(seed)
    others = [rng.integers(1, 8, array.shape).astype(array.dtype) for array in (a, b)]
    seconds: list[list] = []

    def launch(kernel: Any, configuration: tuple, *arguments: Any) -> None:
        before = [_host_array(argument) for argument in arguments]
        second = [_exchanged(array, (a, b), others) for array in before]
        kernel[configuration](*arguments)
        grid, threads, *more = configuration
        one = (1,) * len(grid) if isinstance(grid, tuple) else 1
        given = [arg if array is None else array for arg, array in zip(arguments, second)]
        kernel[(one, threads, *more)](*given)
        ran = int(np.prod(threads))
        written = [now for now, array in zip(second, before) if now is not None and now is array]
        seconds.extend([*others, array, ran] for array in written)

    with compiled(launch):
        result = product(a, b)
    return result, seconds


def _host_array(argument: Any) -> np.ndarray | None:
    """Return a copy of an argument's array: numpy's, the simulator's, or one with a hint of which
    way it goes.
    """
    for array in argument, getattr(argument, "_ary", None), getattr(argument, "value", None):
        if isinstance(array, np.ndarray):
            return array.copy()
    return None


def _exchanged(array: Any, given: tuple, others: list[np.ndarray]) -> Any:
    """Return the other numbers for what holds a or b, as it is or transposed; else the array."""
    for known, other in zip(given, others):
        if np.array_equal(array, known):
            return other
        if np.array_equal(array, known.T):
            return other.T.copy()
    return array


@contextmanager
def compiled(act: Callable[..., None]) -> Iterator[None]:
    """Let ``act`` do the launches of the kernels that ``cuda.jit`` compiles."""
    from numba import cuda

    compile_kernel = cuda.jit

    def jit(given: Any = None, **options: Any) -> Any:
        made = compile_kernel(given, **options)
        if options.get("device"):
            return made
        return Launcher(made, act) if callable(given) else lambda f: Launcher(made(f), act)

    cuda.jit = jit
    try:
        yield
    finally:
        cuda.jit = compile_kernel
