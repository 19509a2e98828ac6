"""``simulate``: how many clocks a kernel takes on a device, and why.

A ``TimingRequest`` describes what is timed; ``run_request`` returns its ``Report``. The compiled
code is traced without data, which gives every wavefront's clauses and the cache lines of their
accesses (``tracing``). The chip runs them (``engine``), all or as many as it takes to know the pace
(``sampling``). ``costs`` and ``limits`` explain a report.
"""

import math
from dataclasses import replace
from functools import lru_cache, partial
from numbers import Real
from pathlib import Path
from typing import Any

from cypresskit.compiler import Code
from cypresskit.devices import CHIP_ALONE, HD5870, Device, System, check_device, is_whole
from cypresskit.il import Program
from cypresskit.il.errors import check_options
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.machine.shape import LaunchShape
from cypresskit.timing import result_cache
from cypresskit.timing.report import Report
from cypresskit.timing.sampling import time_launch
from cypresskit.timing.timed_launch import TimingRequest

MAX_VECTOR = 1 << 20  # elements
CACHED_REPORTS = 64


def simulate(
    kernel: Source | Code,
    n: int | None = None,
    *,
    m: int | None = None,
    k: int | None = None,
    device: Device = HD5870,
    system: System = CHIP_ALONE,
    launch: LaunchShape | None = None,
    beta: float = 0.0,
    count: int = 1,
    flops: float | None = None,
    precision: str | None = None,
    exact: bool = False,
    **unknown: Any,
) -> Report:
    """Time a kernel on a device.

    Parameters
    ----------
    kernel
        A GEMM kernel with its ``n``: a kernel of the catalog or its name, or your own
        (``ck.load_kernel``, its source, file or program). Or any program, assembled or compiled,
        with its ``launch``.
    n, m, k
        Of a GEMM kernel: C is m x n, and k products are summed for each element. m and k are n by
        default.
    device
        The board: one of ``cypresskit.devices.DEVICES``, or made from one by ``replace``.
    system
        The computer whose launch overhead is added to the time: ``ck.NAKASATO`` or ``ck.ASHRAF``,
        on which kernels were measured, or your own ``System``. By default nothing is added: the
        time is the chip's, from the first wavefront's start to the last store's end.
    launch
        Of any other program: ``ck.LaunchShape(program, domain, textures, constants)``.
    beta
        If it isn't 0, C is read as well.
    count
        The number of products in one launch, for a packed kernel.
    flops
        Floating-point operations of the launch, for Gflop/s. 2 m n k times ``count`` for a GEMM
        kernel by default.
    precision
        Of a program's flops: "single" (the default), "double" or "double-double". A GEMM kernel has
        its own.
    exact
        Whether all iterations of all wavefronts are simulated. By default, a long launch is
        simulated in part, and its report states by how much it may be off: ``Report.error``, a
        bound for the worst of thousands of launches; most are off by far less. A launch that takes
        at most about ten seconds is simulated whole if its error would be above 3 %, and any launch
        of which more than a quarter has to be simulated anyway.

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
    request = TimingRequest(
        kernel,  # type: ignore[arg-type]
        shape=launch,
        device=device,
        system=system,
        beta=beta,
        flops=0.0 if flops is None else flops,
        precision="single" if precision is None else precision,
        exact=exact,
    )
    _check(request, n, precision)
    if launch is not None:
        _check_left_out({"n": n, "m": m, "k": k, "count": count, "beta": beta})
        return run_request(request)
    own = resolve(kernel)  # now, since its file may change before another board is timed
    size = _size(own, device, m, n, k, count)
    count = int(count)
    return run_request(
        replace(
            request,
            kernel=own,
            size=size,
            count=count,
            flops=2.0 * count * math.prod(size) if flops is None else flops,
            precision=own.precision,
        )
    )


#: The options that ``simulate`` takes by name.
OPTIONS = tuple(simulate.__kwdefaults__ or ())


def run_request(request: TimingRequest) -> Report:
    """Return the report on a launch. That on a GEMM kernel is cached."""
    return _report(request) if request.shape is None else _report.__wrapped__(request)


@lru_cache(maxsize=CACHED_REPORTS)
def _report(request: TimingRequest) -> Report:
    launch = request.launch()
    _check_shape(launch.shape, request.device)
    _check_work(launch.code, request.name)
    compute = partial(time_launch, launch, exact=request.exact)
    time = result_cache.load_or_compute("time", request, launch, compute)
    return Report(
        **vars(time),
        kernel=request.name,
        device=launch.device,
        size=request.size,
        flops=request.flops,
        peak_gflops=launch.device.peak_gflops(request.precision),
        registers=launch.code.gprs,
        active_wavefronts=launch.active_wavefronts,
        wavefronts=launch.wavefronts,
        request=request,
        launch=launch,
    )


def forget_reports() -> None:
    """Clear the cache of reports, for processes that time many."""
    _report.cache_clear()


def _check(request: TimingRequest, n: Any, precision: Any) -> None:
    """Raise an error for arguments that make no sense; ``precision`` as it was given."""
    kernel: Any = request.kernel
    launch = request.shape
    beta: Any = request.beta
    flops: Any = request.flops
    if not isinstance(kernel, (str, Path, Kernel, Program, Code)):
        raise TypeError(
            f"{type(kernel).__name__} can't be timed: pass a kernel's name, a Kernel, IL text, a"
            " file FILE.il, or a Program"
        )
    check_device(request.device)
    if not isinstance(request.system, System):
        raise TypeError(
            f"system is a computer with a launch overhead, such as ck.NAKASATO, not"
            f" {request.system!r}"
        )
    numbers = isinstance(beta, Real) and isinstance(flops, Real)
    if not numbers or not math.isfinite(beta) or not 0 <= flops < math.inf:
        raise ValueError(
            f"beta {beta} and flops {flops} have to be finite numbers, flops not below 0"
        )
    request.device.peak_gflops(request.precision)  # raises ValueError for an unknown one
    if not isinstance(kernel, (Program, Code)) or (
        isinstance(kernel, Program) and launch is None and n is not None
    ):
        if precision is not None:
            raise ValueError("a GEMM kernel has its own precision: leave it out")
        if launch is not None:
            raise ValueError("a GEMM kernel has its own launch: pass n, or its program")
        return
    if not isinstance(launch, LaunchShape):
        raise ValueError(
            "a program needs its launch: pass launch=ck.LaunchShape(program, domain, textures,"
            " constants), or n if it is a GEMM kernel"
        )
    program = request.program
    of_launch = launch.program
    if (of_launch.mode, of_launch.expanded) != (program.mode, program.expanded):
        raise ValueError(
            f"the launch is for {of_launch.name}, the code for {program.name}: two programs"
        )


def _check_left_out(given: dict[str, object]) -> None:
    """Raise ``ValueError`` for arguments of a GEMM kernel in addition to a program's launch."""
    usual = simulate.__kwdefaults__ or {}  # without n, which is None
    extra = [f"{name} = {value!r}" for name, value in given.items() if value != usual.get(name)]
    if extra:
        raise ValueError(
            "a program has its sizes and constants from its launch: leave out n, m and k, count"
            f" and beta; found {', '.join(extra)}"
        )


def _check_shape(shape: LaunchShape, device: Device) -> None:
    """Raise ``ValueError`` for an empty domain, or a texture that is too large for the device."""
    most = device.texture_side
    if not shape.wavefronts:
        raise ValueError(f"{shape.program.name}: the domain {shape.domain} is empty")
    for number, texture in shape.textures.items():
        if max(texture.width, texture.height) > most:
            size = f"{texture.height:,} rows of {texture.width:,} texels"
            limit = f"a texture of the {device.name} has at most {most:,} rows of {most:,} texels"
            raise ValueError(f"{shape.program.name}: textures[{number}] has {size}: {limit}")


def _check_work(code: Code, name: str) -> None:
    """Raise ``ValueError`` for code that neither computes nor accesses anything."""
    if not any(control.operations or control.accesses for control in code.controls):
        raise ValueError(
            f"{name}: there is nothing to time, since nothing that it computes or fetches is"
            " stored. Write a result to o0 or g[]"
        )


def _size(
    kernel: Kernel, device: Device, m: Any, n: Any, k: Any, count: Any
) -> tuple[int, int, int]:
    """Return m, n and k, checked. A row or column has at most as many elements as a row of the
    largest texture.
    """
    if n is None:
        raise ValueError(f"{kernel.name}: pass n, the matrices' size (and m and k if they differ)")
    if not is_whole(count):
        raise ValueError(f"{kernel.name}: count = {count!r} has to be a whole number of at least 1")
    size = tuple(n if s is None else s for s in (m, 1 if kernel.is_vector else n, k))
    most = MAX_VECTOR if kernel.is_vector else 4 * device.texture_side
    if not all(is_whole(s, most) for s in size):
        raise ValueError(
            f"{kernel.name}: m, n, k = {size} have to be whole numbers from 1 to {most:,}"
        )
    m, n, k = map(int, size)  # numpy's integers would wrap
    return m, n, k
