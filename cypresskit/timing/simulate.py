"""``simulate``: how many clocks a kernel takes on a device, and why.

A ``TimedLaunch`` describes what is timed; ``report_on`` returns its ``Report``. The compiled
code is traced without data, which gives every wavefront's clauses and the cache lines of their
accesses (``tracing``). The chip runs them (``engine``), all or as many as it takes to know the pace
(``sampling``). ``costs`` and ``limits`` explain a report.
"""

import math
from functools import lru_cache, partial
from typing import Any

from cypresskit.compiler import Code
from cypresskit.devices import CHIP_ALONE, HD5870, Device, Range, System, check_device, is_whole
from cypresskit.files import result_cache
from cypresskit.il.errors import ArgumentError, check_options
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.machine.shape import LaunchShape
from cypresskit.timing.report import Report
from cypresskit.timing.sampling import time_launch
from cypresskit.timing.timed_launch import TimedLaunch

MAX_VECTOR = 1 << 20  # elements
CACHED_REPORTS = 64
PRODUCTS_TOLERANCE = 0.002  # the share of a launch's products that counting some may miss


def simulate(
    kernel: Source | Code | LaunchShape,
    n: int | None = None,
    *,
    m: int | None = None,
    k: int | None = None,
    device: Device = HD5870,
    system: System = CHIP_ALONE,
    beta: float = 0.0,
    count: int = 1,
    exact: bool = False,
    **unknown: Any,
) -> Report:
    """Time a kernel on a device.

    Parameters
    ----------
    kernel
        A GEMM kernel with its ``n``: a kernel of the catalog or its name, or your own
        (``ck.load_kernel``, its source, file or program), or its code by LLVM (``ck.compile``). Or
        the launch of any other program: ``ck.LaunchShape(program, domain, textures, constants)``.
    n, m, k
        Of a GEMM kernel: C is m x n, and k products are summed for each element. m and k are n by
        default.
    device
        The board: one of ``cypresskit.devices.DEVICES``, or made from one by ``replace``.
    system
        The computer whose launch overhead is added to the time: ``ck.NAKASATO`` or ``ck.ASHRAF``,
        on which kernels were measured, or your own ``System``. By default nothing is added: the
        time is the chip's, from the first wavefront's start to the last store's end.
    beta
        If it isn't 0, C is read as well.
    count
        The number of products in one launch, for a packed kernel.
    exact
        Whether all wavefronts are simulated. By default, a long launch is
        simulated in part, and its report states by how much it may be off: ``Report.error``, a
        bound for the worst of thousands of launches; most are off by far less. A launch that takes
        at most about ten seconds is simulated whole if its error would be above 3 %, any launch if
        it would be above 10 %, after a notice, and any of which more than a quarter has to be
        simulated anyway.

    Returns
    -------
    Report
        That on a GEMM kernel is cached.

    Raises
    ------
    TypeError, ValueError
        For arguments that make no sense.
    DataDependentError
        For a kernel whose addresses or branches depend on data.

    Examples
    --------
    >>> ck.simulate("sgemm_tn", 2048).gflops  # doctest: +SKIP
    """
    check_options("simulate", unknown, ["n", *OPTIONS])
    check_device(device)
    if not isinstance(system, System):
        raise ArgumentError(
            f"system is a computer with a launch overhead, such as ck.NAKASATO, not {system!r}"
        )
    if isinstance(kernel, LaunchShape):
        if (n, m, k, beta, count) != (None, None, None, 0.0, 1):
            raise ArgumentError(
                "a launch has its sizes and constants: leave out n, m and k, count and beta"
            )
        return report_on(TimedLaunch(kernel, device=device, system=system, exact=exact))
    if n is None:
        raise ArgumentError(
            "pass n, the matrices' size (and m and k if they differ); for a program that doesn't"
            " multiply matrices, pass ck.LaunchShape(program, domain, textures, constants) alone"
        )
    compiled = kernel if isinstance(kernel, Code) else None
    # Now, since its file may change before another board is timed
    own = resolve(kernel if compiled is None else compiled.program)
    if not Range(least=-math.inf).has(beta, whole=False):
        raise ArgumentError(f"beta {beta} has to be a finite number")
    size = _size(own, device, m, n, k, count)
    return report_on(TimedLaunch(own, size, device, system, beta, int(count), exact, compiled))


#: The options that ``simulate`` takes by name.
OPTIONS = tuple(simulate.__kwdefaults__ or ())


def report_on(launch: TimedLaunch) -> Report:
    """Return the report on a launch. That on a GEMM kernel is cached."""
    return _report(launch) if launch.size else _report.__wrapped__(launch)


@lru_cache(maxsize=CACHED_REPORTS)
def _report(launch: TimedLaunch) -> Report:
    _check_shape(launch.shape, launch.device)
    if isinstance(launch.kernel, Kernel) and launch.size:
        launch.kernel.check_memory(launch.size, launch.count, launch.device)
    time = result_cache.load_or_compute(launch.key("time"), partial(time_launch, launch))
    _check_products(launch, time.products)
    return Report(
        **vars(time),
        kernel=launch.name,
        device=launch.device,
        size=launch.size,
        flops=launch.flops,
        peak_gflops=launch.device.peak_gflops(launch.precision),
        wavefronts=launch.wavefronts,
        launch=launch,
    )


def forget_reports() -> None:
    """Clear the cache of reports, for processes that time many."""
    _report.cache_clear()


def _check_shape(shape: LaunchShape, device: Device) -> None:
    """Raise ``ValueError`` for an empty domain, or a texture that is too large for the device."""
    most = device.texture_side
    if not shape.wavefronts:
        raise ArgumentError(f"{shape.program.name}: the domain {shape.domain} is empty")
    for number, texture in shape.textures.items():
        if max(texture.width, texture.height) > most:
            size = f"{texture.height:,} rows of {texture.width:,} texels"
            limit = f"a texture of the {device.name} has at most {most:,} rows of {most:,} texels"
            raise ArgumentError(f"{shape.program.name}: textures[{number}] has {size}: {limit}")


def _check_products(launch: TimedLaunch, made: float) -> None:
    """Raise ``ValueError`` for a GEMM kernel that can't make all m n k products of its C, nor one
    that does with fewer, as Strassen's. It is no part of a launch's time, which may be cached.
    """
    share = 2 * made / launch.flops if launch.flops else 1.0
    if share < 1 - PRODUCTS_TOLERANCE:
        size = " x ".join(map(str, launch.size or ()))
        raise ArgumentError(
            f"{launch.name} leaves out products, so C is incorrect at {size}: it makes"
            f" at most {math.ceil(1000 * share) / 10:g} % of them"
        )


def _size(
    kernel: Kernel, device: Device, m: Any, n: Any, k: Any, count: Any
) -> tuple[int, int, int]:
    """Return m, n and k, checked. A row or column has at most as many elements as a row of the
    largest texture.
    """
    if not is_whole(count):
        raise ArgumentError(
            f"{kernel.name}: count = {count!r} has to be a whole number of at least 1"
        )
    size = tuple(n if s is None else s for s in (m, 1 if kernel.is_vector else n, k))
    most = MAX_VECTOR if kernel.is_vector else 4 * device.texture_side
    if not all(is_whole(s, most) for s in size):
        raise ArgumentError(
            f"{kernel.name}: m, n, k = {size} have to be whole numbers from 1 to {most:,}"
        )
    m, n, k = map(int, size)  # numpy's integers would wrap
    return m, n, k
