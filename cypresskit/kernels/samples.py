"""Record small runs of kernels, for pictures of them."""

from cypresskit.kernels import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.products import make_product
from cypresskit.machine import LaunchCounters, launch
from cypresskit.machine.observer import Observer
from cypresskit.machine.record import Recorder, Recording
from cypresskit.machine.traffic import Traffic


def run(kernel: Kernel, m: int, n: int, k: int, *observers: Observer) -> LaunchCounters:
    """Launch a kernel on small integers, the same each time, and return its counters.

    Parameters
    ----------
    kernel
        The kernel.
    m, n, k
        Size of the product.
    observers
        Observers of the launch.
    """
    if kernel.is_vector and n > 1:
        raise ValueError(
            f"{kernel.name} multiplies a matrix by a vector: this picture shows products of two"
            " matrices. ck.draw.bundles and ck.draw.wavefronts draw any kernel."
        )
    given = make_product(kernel, (m, n, k), 1.0, 0.0, seed=8, largest=3)
    return launch(kernel.program, **given.arguments(), observers=observers)


def record_work_item(given: Recording | Source) -> Recording:
    """Return a recording as it is, or record work-item 0 of a kernel.

    The kernel runs on 2 x 3 blocks of C, for four iterations.
    """
    if isinstance(given, Recording):
        return given
    kernel = resolve(given)
    recorder = Recorder()
    rows, columns = kernel.convention.multiple
    run(kernel, 2 * rows, 3 * columns, 4 * kernel.k_step, recorder)
    return recorder.recording


def record_traffic(given: Traffic | Source, n: int = 64, k: int = 8) -> Traffic:
    """Return traffic as it is, or record the traffic of a kernel's wavefront 0, for m = n and k."""
    if isinstance(given, Traffic):
        return given
    traffic = Traffic()
    run(resolve(given), n, n, k, traffic)
    return traffic
