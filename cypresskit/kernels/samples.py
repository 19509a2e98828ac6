"""Small recorded runs of catalogue kernels, for views that are called with a kernel's name."""

import numpy as np

from cypresskit.kernels import KERNELS, Kernel
from cypresskit.machine import launch
from cypresskit.machine.observer import Observer
from cypresskit.machine.record import Recorder, Recording
from cypresskit.machine.traffic import Traffic


def run(name: str, observer: Observer, m: int, n: int, k: int) -> Kernel:
    """Launch a kernel on small whole numbers (the same each time), m x n x k, and let ``observer`` listen."""
    kernel, rng = KERNELS[name], np.random.default_rng(8)
    pair = (2,) if kernel.precision == "double-double" else ()
    shapes = ((k, m) if kernel.trans_a else (m, k)), ((n, k) if kernel.trans_b else (k, n))
    a, b = (np.zeros((*shape, *pair), kernel.dtype) for shape in shapes)
    for x in (a, b):
        (x[..., 0] if pair else x)[...] = rng.integers(-3, 4, x.shape[:2])
    launch(kernel.program, **kernel.arguments(a, b, None, 1, 0), observers=[observer])
    return kernel


def recorded(what: Recording | str, item: int | tuple[int, int] = 0) -> Recording:
    """A recording as it is; for a kernel's name that of work-item ``item`` in a run of 2 x 3 blocks and four turns."""
    if isinstance(what, Recording):
        return what
    kernel, recorder = KERNELS[what], Recorder(item)
    run(what, recorder, 2 * kernel.tile[0], 3 * kernel.tile[1], 4 * kernel.k_step)
    return recorder.recording


def listened(what: Traffic | str, n: int = 64, k: int = 8) -> Traffic:
    """Traffic as it is; for a kernel's name that of wavefront 0 in a run with m = n and k."""
    if isinstance(what, Traffic):
        return what
    traffic = Traffic()
    run(what, traffic, n, n, k)
    return traffic
