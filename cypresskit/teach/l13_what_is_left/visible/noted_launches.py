"""What the launches of a CUDA kernel do, in numba's simulator.

``run_noted(product, a, b)`` calls a reader's ``product(a, b)``. Before each launch of a kernel in
it, one thread block runs alone, because a kernel whose threads each compute more than their block
gives the right C, too. Left out: device arrays in streams, and kernels that aren't functions.
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


def run_noted(product: Callable, a: np.ndarray, b: np.ndarray) -> tuple[Any, list[list[int]]]:
    """Return what ``product(a, b)`` returns; and of each launch in it how many numbers a thread
    block changes, and its threads.
    """
    noted: list[list[int]] = []

    def launch(kernel: Any, configuration: tuple, *arguments: Any) -> None:
        before = [_host_array(argument) for argument in arguments]
        alone = [
            argument if array is None else array.copy()
            for argument, array in zip(arguments, before)
        ]
        grid, threads, *more = configuration
        one = (1,) * len(grid) if isinstance(grid, tuple) else 1
        kernel[(one, threads, *more)](*alone)
        pairs = [(now, array) for now, array in zip(alone, before) if array is not None]
        changed = sum(np.count_nonzero(now != array) for now, array in pairs)
        noted.append([int(changed), int(np.prod(threads))])
        kernel[configuration](*arguments)

    with compiled(launch):
        result = product(a, b)
    return result, noted


def _host_array(argument: Any) -> np.ndarray | None:
    """Return a copy of an argument's array: numpy's, the simulator's, or that of ``cuda.In``,
    ``Out`` or ``InOut``.
    """
    for array in argument, getattr(argument, "_ary", None), getattr(argument, "value", None):
        if isinstance(array, np.ndarray):
            return array.copy()
    return None


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
