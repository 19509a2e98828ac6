"""Small recorded runs of catalogue kernels, for views that are given a kernel's name."""

import numpy as np

from cypresskit.il import Program
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.machine import Run, launch
from cypresskit.machine.observer import Observer
from cypresskit.machine.record import Recorder, Recording
from cypresskit.machine.traffic import Traffic


def run(
    kernel: Kernel, m: int, n: int, k: int, *observers: Observer, program: Program | None = None
) -> Run:
    """The counts of a launch of ``kernel``, or of a ``program`` in its place, on small whole
    numbers (the same each time), m x k by k x n, with ``observers``. Raises ``ArithmeticError`` if
    C isn't numpy's.
    """
    rng, words = np.random.default_rng(8), 2 if kernel.precision == "double-double" else 1
    a, b = (np.zeros((*shape, words), kernel.dtype) for shape in kernel.stored(m, n, k))
    for x in (a, b):
        x[..., 0] = rng.integers(-3, 4, x.shape[:2])
    stored = (a, b) if words == 2 else (a[..., 0], b[..., 0])
    arguments = kernel.arguments(stored[0], stored[1], None, 1, 0)
    counts = launch(program or kernel.program, **arguments, observers=observers)
    left, right = kernel.operands(a[..., 0], b[..., 0])
    if not np.array_equal(
        kernel.result(arguments, m, n).reshape(m, n, words)[..., 0], left @ right
    ):
        raise ArithmeticError(f"{(program or kernel.program).name} computed a wrong product")
    return counts


def recorded(run_or_name: Recording | str, item: int | tuple[int, int] = 0) -> Recording:
    """The recording, or for a kernel's name, that of work-item ``item`` in a run of 2 x 3 blocks
    and four turns.
    """
    if isinstance(run_or_name, Recording):
        return run_or_name
    kernel, recorder = KERNELS[run_or_name], Recorder(item)
    run(kernel, 2 * kernel.multiple[0], 3 * kernel.multiple[1], 4 * kernel.k_step, recorder)
    return recorder.recording


def listened(traffic_or_name: Traffic | str, n: int = 64, k: int = 8) -> Traffic:
    """The traffic, or for a kernel's name, that of wavefront 0 in a run with m = n and k."""
    if isinstance(traffic_or_name, Traffic):
        return traffic_or_name
    traffic = Traffic()
    run(KERNELS[traffic_or_name], n, n, k, traffic)
    return traffic
