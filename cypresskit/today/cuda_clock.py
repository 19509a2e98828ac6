"""Time CUDA kernels with ``cypresskit.timing``'s chip and other units.

``simulate`` traces the kernel (``cuda_trace``), divides it into parts (``cuda_parts``), orders
their instructions as machine code does (``cuda_code``), and runs the warps that the chip holds at
once (``cuda_part_clock``). Parts add up. The last round of workgroups, which fills the chip in
part, is run by itself. Totals are those of the whole grid (``cuda_count``).

- An access takes the load unit a clock for each word that the busiest of 32 banks delivers, or for
  four lines of 128 bytes; for each half of a warp if the source requests 8 bytes, for each quarter
  if 16. Shared memory is the same unit.
- Sectors of 32 bytes that miss in L1 come from slices of L2, in which they queue.
- Memory sends what L2 lacks. L2 serves a launch whose arrays it holds, as after an earlier launch;
  and where it holds what a round of workgroups loads, the rounds that load the arrays again.
- Stores take the load unit ``stored_sector_clocks`` per sector, after all else.
- The chip starts a workgroup each ``workgroup_clocks``.

Not modeled: tensor cores, asynchronous copies, the iterations that an unrolled loop leaves over,
and what a loop or an earlier launch leaves in a cache, but for that.
"""

import math
from dataclasses import replace
from inspect import isfunction
from typing import Any

import numpy as np

from cypresskit.il.errors import shorten
from cypresskit.today.cuda_access import sectors_per_warp, warps_of
from cypresskit.today.cuda_code import Loop, code_of
from cypresskit.today.cuda_count import Totals, totals_of
from cypresskit.today.cuda_events import (
    WARP,
    ActionKey,
    GridLaunch,
    Untraceable,
    executions,
    function_of,
)
from cypresskit.today.cuda_foreign import refusal
from cypresskit.today.cuda_part_clock import TimedPart, TracedLaunch
from cypresskit.today.cuda_parts import CodePart, parts_of
from cypresskit.today.cuda_report import CudaReport, report_on
from cypresskit.today.cuda_threads import MAX_PLACES
from cypresskit.today.cuda_trace import Tracer
from cypresskit.today.cuda_values import SLOW
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu

MAX_THREADS = 1024  # of a workgroup
MAX_DOWN = 65_535  # workgroups of a grid
MAX_SHARED_BYTES = 48 << 10  # in arrays whose sizes the kernel has
RESERVED_BYTES = 1024  # of shared memory, for each workgroup
REGISTER_UNIT = 8  # registers that a thread gets at once
MAX_ROUNDS = 8  # of workgroups, one after the other, in a run of straight code
MAX_SHARES = 16  # of a board
SCATTERED_SECTORS = WARP / 2  # of a warp's load; with more, threads walk rows of their own
MAX_UNLIKE = 1.2  # times what a warp does
MIN_THREADS = 4_096  # of a trace that represents a chip
MAX_LOOP_EFFORT = 500_000  # clauses and sectors of an iteration that a share of a board runs


class NothingToTime(ValueError):
    """A kernel that neither computes nor loads nor stores."""


def occupancy(board: CudaGpu, registers: int, threads: int, shared: int) -> tuple[int, str]:
    """Return how many blocks a multiprocessor holds, and what limits them. Each scheduler has a
    quarter of the registers.

    Raises ``ValueError`` for a block that doesn't fit.
    """
    warps = -(-threads // WARP)
    per_thread = -(-max(registers, 1) // REGISTER_UNIT) * REGISTER_UNIT
    fits = {
        f"its {board.max_wavefronts} warps": board.max_wavefronts // warps,
        "registers": SCHEDULERS * (board.register_pool // SCHEDULERS // per_thread) // warps,
        f"its {board.max_workgroups} blocks": board.max_workgroups,
        "shared memory": board.lds_bytes // (shared + RESERVED_BYTES),
    }
    limit = min(fits, key=lambda name: fits[name])
    if not fits[limit]:
        raise ValueError(
            f"a block of {threads:,} threads, with {registers} registers each and {shared:,} bytes"
            f" of shared memory, doesn't fit on a multiprocessor of the {board.name}"
        )
    return fits[limit], limit


def simulate(
    kernel: Any,
    grid: int | tuple[int, ...],
    threads: int | tuple[int, ...],
    *arguments: Any,
    board: CudaGpu = H200,
    code: Loop | None = None,
    shared: int = 0,
) -> CudaReport:
    """Return how long a launch of a ``cuda.jit`` kernel takes on ``board``, and why.

    The time is modeled, without a GPU, as numba compiles the kernel.

    Parameters
    ----------
    kernel
        The function below ``@cuda.jit``.
    grid, threads
        The blocks of the launch, and the threads of a block: a number, or (x, y).
    *arguments
        Those of the kernel: numbers, and arrays, of which only shape, dtype and strides matter.
    board
        The GPU.
    code
        The machine code of the main loop, as ``tools/cuda/listing.py`` reads it. By default it is
        that of the most similar product, or assumed.
    shared
        Bytes of shared memory that the launch requests.

    Raises
    ------
    Untraceable
        A ``ValueError`` with the line, for control flow or indices that depend on data, and for
        what else isn't modeled.
    ValueError
        For a launch that CUDA rejects.

    Examples
    --------
    >>> ck.today.simulate(kernel, (64, 64), (8, 8), a, b, c)
    """
    if not isinstance(board, CudaGpu):
        raise TypeError(f"board must be a CudaGpu, such as ck.today.H200, not {board!r}")
    if code is not None and not (isinstance(code, Loop) and code.is_complete):
        raise ValueError(f"code is a Loop that tools/cuda/listing.py reads, not {shorten(code)}")
    if not isfunction(function_of(kernel)):
        raise TypeError(
            f"{shorten(kernel)} is no kernel: pass the function below @cuda.jit, then its grid and"
            " threads"
        )
    sizes = _sizes("threads", threads)
    count = math.prod(sizes)
    if count > MAX_THREADS:
        raise ValueError(f"a block has at most {MAX_THREADS:,} threads, not {count:,}")
    launch = GridLaunch(kernel, _sizes("grid", grid), sizes, arguments, shared)
    if launch.grid[1] > MAX_DOWN:
        raise ValueError(f"a grid has at most {MAX_DOWN:,} blocks in y, not {launch.grid[1]:,}")
    totals = totals_of(launch)
    if totals.shared_bytes > MAX_SHARED_BYTES:
        raise ValueError(
            f"arrays in shared memory have at most {MAX_SHARED_BYTES:,} bytes, not"
            f" {totals.shared_bytes:,}: declare one of size 0, and pass its bytes as `shared=`"
        )
    if not totals.busy.any():
        raise NothingToTime(f"{launch.name} neither computes nor loads nor stores")
    return report_on(_traced(launch, totals, board, code))


def _sizes(name: str, given: Any) -> tuple[int, int]:
    """Return ``grid`` or ``threads`` as (across, down). Raises ``ValueError``."""
    sizes = list(given) if isinstance(given, tuple | list) else [given]
    sizes = sizes[:2] if sizes[2:] == [1] else sizes
    are_sizes = all(isinstance(size, int | np.integer) and size > 0 for size in sizes)
    if not are_sizes or not 1 <= len(sizes) <= 2:
        hint = f"; {refusal('three')}" if len(sizes) == 3 else ""
        found = shorten(given)
        raise ValueError(f"{name} must be one or two whole numbers from 1 on, not {found}{hint}")
    across, down = (*map(int, sizes), 1)[:2]
    return across, down


def _coded(items: list, given: Loop | None, has_local: bool) -> list[tuple[CodePart, Loop]]:
    """Return the parts of a trace, each with its machine code; the main one's may be given."""
    parts = parts_of(items)
    main = max(parts, key=lambda part: part.size)
    return [(part, given if given and part is main else code_of(part, has_local)) for part in parts]


def _rounds(groups: int, full: int, straight: int) -> list[tuple[float, int]]:
    """Return how often how many workgroups run at once: full rounds, and the last.

    Straight code runs in one piece of up to ``straight`` workgroups, if that isn't 0.
    """
    if straight:
        blocks = min(groups, MAX_ROUNDS * full, straight)
        return [(groups / blocks, blocks)]
    whole, rest = divmod(groups, full)
    return [(times, blocks) for times, blocks in ((whole, full), (1, rest)) if times * blocks]


def _traced(launch: GridLaunch, totals: Totals, board: CudaGpu, code: Loop | None) -> TracedLaunch:
    """Trace the blocks that are run. Raises ``ValueError`` for one that doesn't fit."""
    threads = math.prod(launch.threads)
    parts = _coded(totals.items, code, totals.has_local)
    registers = max(loop.registers for _, loop in parts)
    together, limit = occupancy(board, registers, threads, totals.shared_bytes + launch.shared)
    function = function_of(launch.kernel).__code__
    arrays = dict(zip(function.co_varnames, launch.arguments))
    traced = TracedLaunch(
        name=launch.name,
        source=function.co_filename,
        groups=math.prod(launch.grid),
        threads=threads,
        array_bytes={
            name: math.prod(array.shape) * np.dtype(array.dtype).itemsize
            for name, array in arrays.items()
            if getattr(array, "shape", ())
        },
        totals=replace(totals, items=[]),
        board=board,
        shares=1,
        together=together,
        limit=limit,
        rounds=[],
        parts=parts,
        is_assumed=code is None,
    )
    shares, rounds = _shares_and_rounds(traced)
    items = Tracer(launch, *totals.busy_blocks(rounds[0][1])).run()
    parts = _coded(items, code, totals.has_local)
    traced = replace(traced, shares=shares, rounds=rounds, parts=parts)
    for part, _ in parts:
        _refuse_rows(part, traced)
    done = executions(items)
    return replace(traced, parts=[(_repeated(part, done, traced), loop) for part, loop in parts])


def _repeated(part: CodePart, done: dict[ActionKey, np.ndarray], traced: TracedLaunch) -> CodePart:
    """Return a loop with as many iterations as the average warp of the launch does, or the longest
    one if all run at once. Those of the longest traced warp stay if they are near.
    """
    totals, threads = traced.totals, traced.threads
    keys = {action.key for action in part.actions}
    each = np.sum([action.on for action in part.actions], axis=0)
    if sum(times for times, _ in traced.rounds) > 1:
        own = np.sum([done[key] for key in keys], axis=0)
        most, once = (warps_of(numbers, threads).max(axis=1) for numbers in (own, each))
        in_step = (most / np.maximum(once, 1)).mean() / own.sum()  # lanes wait for each other
        average = sum(totals.amounts.get(key, 0) for key in keys) / totals.busy_count
        count = in_step * average * len(each) / threads
    else:
        count = sum(totals.peaks[key] for key in keys) / each.max()
    if not part.kind or 1 / MAX_UNLIKE < count / part.count < MAX_UNLIKE:
        return part
    return replace(part, count=max(round(count), 1))


def _shares_and_rounds(traced: TracedLaunch) -> tuple[int, list[tuple[float, int]]]:
    """Return the shares of the board of which one can be traced and run soon enough, and its
    rounds, given the trace of a few workgroups. Raises ``Untraceable``.
    """
    threads, parts, engines = traced.threads, traced.parts, traced.board.simd_engines
    most = int(MAX_PLACES / max(traced.totals.places, 1) / threads)  # workgroups, of a trace
    if most * threads < MIN_THREADS:
        raise Untraceable(
            f"{traced.name} has too much code, or iterations that differ too much, to be traced:"
            " write loops over sizes, whose limits all threads share"
        )
    effort = max(TimedPart(part, loop, traced).effort for part, loop in parts)
    shares = 1
    full = traced.together * engines
    while shares < MAX_SHARES and (full > most or full * effort > MAX_LOOP_EFFORT):
        shares *= 2
        full = traced.together * (engines // shares)
    groups = -(-traced.totals.busy_count // shares)
    is_straight = len(parts) == 1 and not parts[0][0].kind
    return shares, _rounds(groups, full, most if is_straight else 0)


def _refuse_rows(part: CodePart, traced: TracedLaunch) -> None:
    """Raise ``Untraceable`` for a loop whose measured launches the model misses by far."""
    is_slow = part.kind and any(action.kind == SLOW for action in part.actions)
    for load in (action for action in part.actions if is_slow and action.kind == "load"):
        if sectors_per_warp(load, traced.threads, traced.board) > SCATTERED_SECTORS:
            raise Untraceable(f"line {load.line} of {traced.name}: {refusal('rows')}")
