"""``simulate``: how many clocks a kernel takes on a device, and why.

What is asked becomes a ``Question``; ``ask`` answers it with a ``Report``. The compiled code is
followed without data, which gives every wavefront's clauses and the cache lines of their accesses
(``walk``); the chip runs them (``engine``), all or as much as it takes to know the pace
(``sampling``, ``steady``). What explains a report is a function of it: ``prices.price`` and
``limits.what_if``.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from cypresskit.compiler import Code
from cypresskit.devices import HD5870, Device, check_device, is_whole
from cypresskit.il import Program
from cypresskit.il.errors import check_options
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.machine.shape import LaunchShape
from cypresskit.timing import stored
from cypresskit.timing.board import Board
from cypresskit.timing.launch_time import LaunchTime, find_time, hit_rate, time_from_plain
from cypresskit.timing.question import Question
from cypresskit.timing.report import Report, bound, read_only
from cypresskit.timing.timed_launch import TimedLaunch
from cypresskit.timing.units.l2 import l2_clocks
from cypresskit.timing.walk import forget_walks, keep

MAX_VECTOR = 1 << 20  # of a vector
KEPT_REPORTS = 64
_reports: dict[Question, Report] = {}
KEPT_TIMES = 16  # launches, for the same program under another name
_times: dict[tuple[Any, ...], LaunchTime] = {}


def simulate(
    kernel: Source | Code,
    n: int | None = None,
    *,
    m: int | None = None,
    k: int | None = None,
    device: Device = HD5870,
    launch: LaunchShape | None = None,
    layout: str = "linear",
    beta: float = 0.0,
    count: int = 1,
    flops: float | None = None,
    precision: str | None = None,
    exact: bool = False,
    progress: bool = True,
    **unknown: Any,
) -> Report:
    """Time a kernel on ``device``.

    Parameters
    ----------
    kernel
        a kernel of the catalogue or its name, or one of your own (``ck.load_kernel``, its text,
        file or program), with ``n``; or any program, assembled or compiled, with its ``launch``.
    n, m, k
        C is m x n, and k numbers are summed up for each of its elements; m and k are n where
        they aren't given. For GEMM kernels alone.
    device
        the board, one of ``cypresskit.devices.DEVICES`` or made from one by ``replace``.
    launch
        ``ck.LaunchShape(program, domain, textures, constants)``, for a program alone.
    layout
        how textures lie in memory, "linear" (rows) or "tiled" (8 x 8 texels).
    beta
        other than 0, C is read too.
    count
        products in one launch, for a packed kernel.
    flops
        floating-point operations of the launch, for Gflop/s; 2 m n k times ``count`` for a
        GEMM kernel.
    precision
        of a program's flops, "single" (if not given), "double" or "double-double", for per
        cent of peak. A GEMM kernel has its own.
    exact
        simulate every turn of every wavefront. Else a long launch is simulated in part; its
        report states by how much it may be off (``Report.error``: a bound for the worst of
        thousands of launches; most are off by about a hundredth of it). Where that is more than
        10 %, ``Report.steady`` is False. Such a launch is simulated whole all the same, if that
        takes no more than some five seconds.
    progress
        show a bar if it takes more than two seconds.

    Returns a ``Report``. A GEMM kernel's is kept, and given again to whoever asks for the
    same. Raises ``TypeError`` and ``ValueError`` for arguments that make no sense, and
    ``DataDependentError`` for a kernel whose addresses or branches depend on data.

        ck.simulate("sgemm_tn", 2048).gflops
    """
    check_options("simulate", unknown, ["n", *OPTIONS])
    _checked(kernel, n, device, launch, layout, beta, flops, precision)
    question = Question(
        kernel,  # type: ignore[arg-type]
        shape=launch,
        device=device,
        layout=layout,
        flops=flops or 0.0,
        precision=precision or "single",
        exact=exact,
        progress=progress,
    )
    if launch is not None:
        _check_left_out({"n": n, "m": m, "k": k, "count": count, "beta": beta})
        return ask(question)
    own = resolve(kernel)  # now: its file may have changed when another board is asked about
    size = _size(own, device, m, n, k, count)
    return ask(
        replace(
            question,
            kernel=own,
            size=size,
            beta=beta,
            count=count,
            flops=2.0 * count * math.prod(size) if flops is None else flops,
            precision=own.precision,
        )
    )


#: The options that ``simulate`` takes by name.
OPTIONS = tuple(simulate.__kwdefaults__ or ())


def ask(question: Question) -> Report:
    """The report on what is asked. That on a GEMM kernel is kept, and given again to whoever asks
    for the same.
    """
    by_kernel = question.shape is None
    kept = _reports.get(question) if by_kernel else None  # once: another thread may drop it
    if kept is not None:
        return kept
    launch = question.launch()
    _check_shape(launch.shape, question.device)
    _check_work(launch.code, question.name)
    lines = tuple(i.id for i in launch.code.program.body)
    code = launch.code.program, launch.code.controls, launch.code.gprs, lines
    part = question.exact, question.policy
    key = *code, launch.shape.domain, launch.surfaces.key, question.device, *part
    time = _times.get(key)
    if time is None:
        find = partial(find_time, question, launch)
        time = stored.kept("time", question, launch, find, LaunchTime.as_plain, time_from_plain)
    keep(_times, key, time, KEPT_TIMES)
    report = _report(question, launch, time)
    return keep(_reports, question, report, KEPT_REPORTS) if by_kernel else report


def forget_reports() -> None:
    """Forget what is kept of launches, which a process that sees many has no use for."""
    _reports.clear()
    _times.clear()
    forget_walks()


def _checked(
    kernel: Any,
    n: Any,
    device: Any,
    launch: Any,
    layout: str,
    beta: Any,
    flops: Any,
    precision: Any,
) -> None:
    """Arguments of other types and values that make no sense."""
    if not isinstance(kernel, (str, Path, Kernel, Program, Code)):
        raise TypeError(
            f"{type(kernel).__name__} can't be timed: pass a kernel's name, a Kernel, IL text, a"
            " file FILE.il, or a Program"
        )
    check_device(device)
    if layout not in ("linear", "tiled"):
        raise ValueError(f'layout is "linear" or "tiled", not {layout!r}')
    numbers = all(isinstance(value, Real) for value in (beta, 0 if flops is None else flops))
    if not numbers or not math.isfinite(beta) or (flops is not None and not 0 <= flops < math.inf):
        raise ValueError(
            f"beta {beta} and flops {flops} have to be finite numbers, flops not below 0"
        )
    if precision is not None:
        device.peak_gflops(precision)  # raises ValueError for one that there isn't
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
    program = kernel.program if isinstance(kernel, Code) else kernel
    if launch.program.body != program.body:
        raise ValueError(
            f"the launch is for {launch.program.name}, the code for {program.name}: two programs"
        )


def _check_left_out(given: dict[str, object]) -> None:
    """``ValueError`` for arguments of a GEMM kernel that are given beside a program's launch."""
    left_out = {"n": None, "m": None, "k": None, "count": 1, "beta": 0}
    extra = [f"{name} = {value!r}" for name, value in given.items() if value != left_out[name]]
    if extra:
        raise ValueError(
            "a program has its sizes and constants from its launch: leave out n, m and k, count"
            f" and beta; found {', '.join(extra)}"
        )


def _check_shape(shape: LaunchShape, device: Device) -> None:
    """``ValueError`` for a texture that the device can't have, or without work-items."""
    most = device.texture_side
    if not shape.wavefronts:
        raise ValueError(f"{shape.program.name}: the domain {shape.domain} is empty")
    for number, texture in shape.textures.items():
        if max(texture.width, texture.height) > most:
            size = f"{texture.height:,} rows of {texture.width:,} texels"
            limit = f"a texture of the {device.name} has at most {most:,} rows of {most:,} texels"
            raise ValueError(f"{shape.program.name}: textures[{number}] has {size}: {limit}")


def _check_work(code: Code, name: str) -> None:
    """``ValueError`` for code in which nothing is left to be timed."""
    if not any(control.operations or control.accesses for control in code.controls):
        raise ValueError(
            f"{name}: there is nothing to time, since nothing that it computes or fetches is"
            " stored. Write a result to o0 or g[]"
        )


def _size(
    kernel: Kernel, device: Device, m: Any, n: Any, k: Any, count: Any
) -> tuple[int, int, int]:
    """m, n and k: a matrix has at most as many rows or columns as the widest texture has numbers in
    a row.
    """
    if n is None:
        raise ValueError(f"{kernel.name}: pass n, the matrices' size (and m and k if they differ)")
    if not is_whole(count):
        raise ValueError(f"{kernel.name}: count = {count!r} has to be a whole number of at least 1")
    size = tuple(n if s is None else s for s in (m, 1 if kernel.vector else n, k))
    most = MAX_VECTOR if kernel.vector else 4 * device.texture_side
    if not all(is_whole(s, most) for s in size):
        raise ValueError(
            f"{kernel.name}: m, n, k = {size} have to be whole numbers from 1 to {most:,}"
        )
    return int(size[0]), int(size[1]), int(size[2])


def _report(question: Question, launch: TimedLaunch, time: LaunchTime) -> Report:
    """The report on a launch that takes so long."""
    device = launch.device
    active = launch.active
    wavefronts = launch.shape.wavefronts
    clocks, counts = time.clocks, time.counts
    busy = busy_shares(counts, clocks, device)
    occupied = time.lived_seen / (time.clocks_seen * device.simd_engines * active)
    rounds = wavefronts / (active * device.simd_engines)
    # Where nobody asks a cache, its hits are said to be none.
    levels = ("l1", "l2")
    hits = {level.upper(): float(np.nan_to_num(hit_rate(counts, level))) for level in levels}
    # A report may be given again, so nobody may change it: its tables are read-only.
    return Report(
        kernel=question.name,
        device=device,
        size=question.size,
        clocks=clocks,
        seconds=clocks / (device.clock_ghz * 1e9) + device.launch_overhead_us * 1e-6,
        flops=question.flops,
        peak_gflops=device.peak_gflops(question.precision),
        bound=bound(busy, occupied, rounds, time.channels),
        registers=launch.code.gprs,
        active=active,
        wavefronts=wavefronts,
        simulated=time.share,
        busy=read_only(busy),
        hits=read_only(hits),
        bytes=read_only(bytes_moved(counts, device)),
        error=time.error,
        lived=time.lived,
        use=time.use,
        events=time.events,
        question=question,
        launch=launch,
        seen=time.seen,
    )


def busy_shares(counts: Mapping[str, float], clocks: float, device: Board) -> dict[str, float]:
    """The share of the time, 0 to 1, in which each unit is busy, on average over its copies."""
    engines = clocks * device.simd_engines
    busy = {unit: counts[unit.lower()] / engines for unit in ("ALU", "texture", "LDS")}
    through = l2_clocks(counts["l2_asked"] + counts["l2_passed"], device)
    busy["L2"] = through / (clocks * device.l2_slices)
    channel_clocks = clocks * device.memory_channels
    busy["DRAM"] = counts["dram"] / channel_clocks
    busy["DRAM rows"] = counts["dram_rows"] / channel_clocks
    return busy


def bytes_moved(counts: Mapping[str, float], device: Board) -> dict[str, float]:
    """Bytes that L1, L2 and DRAM gave, and bytes written."""
    read = device.dram_lines * (counts["l2_missed"] + counts["l2_passed"])
    lines = {"L2": counts["l2_asked"], "DRAM": read, "written": counts["written"]}
    return {"L1": counts["delivered"]} | {
        level: count * device.line_bytes for level, count in lines.items()
    }
