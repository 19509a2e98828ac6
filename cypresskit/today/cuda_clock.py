"""Time matrix products in CUDA, with ``cypresskit.timing``'s chip and other units.

``simulate`` compiles the kernel (``cuda_compile``), follows its machine code for the blocks that
the chip holds at once (``sass_trace``), refuses what is no matrix product (``product``), and runs
their warps (``warps``). Full rounds of blocks are alike; the last one, which fills the chip in
part, is run by itself.

- An access takes the load unit a clock for each word that the busiest of 32 banks delivers, or for
  four lines of 128 bytes; for each half of a warp if the source requests 8 bytes, for each quarter
  if 16. Shared memory is the same unit.
- Sectors of 32 bytes that miss in L1 come from slices of L2, in which they queue.
- Memory sends what L2 lacks. L2 serves a launch whose arrays it holds, as after an earlier launch;
  and where it holds what a round of blocks loads, the rounds that load the arrays again.
- Stores take the load unit ``stored_sector_clocks`` per sector, beside all else.
- The chip starts a block each ``workgroup_clocks``.
"""

import math
from dataclasses import replace
from inspect import isfunction
from typing import Any

import numpy as np

from cypresskit.il.errors import shorten
from cypresskit.today import stored_code
from cypresskit.today.clocked_launch import ClockedLaunch, Totals
from cypresskit.today.cuda_access import WARP
from cypresskit.today.cuda_compile import code_of
from cypresskit.today.cuda_report import CudaReport, report_on
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu
from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.product import MatrixProduct, find_product
from cypresskit.today.sass import SassCode
from cypresskit.today.sass_threads import NotTimed
from cypresskit.today.sass_trace import Tracer, steps_of

MAX_THREADS = 1024  # of a block
MAX_DOWN = 65_535  # blocks of a grid in y and z
RESERVED_BYTES = 1024  # of shared memory, for each block
REGISTER_UNIT = 8  # registers that a thread gets at once
MAX_SHARES = 16  # of a board
MAX_LOOP_EFFORT = 500_000  # clauses and sectors of an iteration that a share of a board runs
MAX_TRACED = 1 << 17  # threads
SAMPLED_THREADS = 1 << 16  # along an axis of the grid, that show which blocks do something


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


def launch_of(
    kernel: Any, grid: Any, threads: Any, arguments: tuple, shared: int = 0
) -> GridLaunch:
    """Return a launch of a kernel. Raises ``ValueError`` for one that CUDA rejects."""
    function = function_of(kernel)
    if not isfunction(function):
        raise TypeError(
            f"{shorten(kernel)} is no kernel: pass the function below @cuda.jit, then its grid and"
            " threads"
        )
    written = function.__code__
    names = written.co_varnames[: written.co_argcount]
    if len(names) != len(arguments):
        raise TypeError(f"{function.__name__} takes {len(names)} arguments, not {len(arguments)}")
    launch = GridLaunch(
        name=function.__name__,
        names=names,
        source=written.co_filename,
        grid=_sizes("grid", grid),
        threads=_sizes("threads", threads),
        arguments=arguments,
        shared=shared,
    )
    count = math.prod(launch.threads)
    if count > MAX_THREADS:
        raise ValueError(f"a block has at most {MAX_THREADS:,} threads, not {count:,}")
    if max(launch.grid[1:]) > MAX_DOWN:
        raise ValueError(f"a grid has at most {MAX_DOWN:,} blocks in y and in z")
    return launch


def function_of(kernel: Any) -> Any:
    """Return the Python function of a kernel; anything else as it is."""
    return getattr(kernel, "py_func", kernel)


def _sizes(name: str, given: Any) -> tuple[int, int, int]:
    """Return ``grid`` or ``threads`` as (x, y, z). Raises ``ValueError``."""
    sizes = list(given) if isinstance(given, tuple | list) else [given]
    are_sizes = all(isinstance(size, int | np.integer) and size > 0 for size in sizes)
    if not are_sizes or not 1 <= len(sizes) <= 3:
        found = shorten(given)
        raise ValueError(f"{name} must be one to three whole numbers from 1 on, not {found}")
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z


def simulate_code(code: SassCode, launch: GridLaunch, board: CudaGpu = H200) -> ClockedLaunch:
    """Follow a launch's machine code. Raises ``ValueError`` for what isn't timed."""
    group = math.prod(launch.threads)
    together, limit = occupancy(board, code.registers, group, code.shared_bytes + launch.shared)
    tracer = Tracer(code, launch, np.zeros((1, 3), np.int64))
    try:
        items = tracer.run()
    except NotTimed as error:
        raise NotTimed(f"{launch.name}: {error}") from None
    product = find_product(launch, items, [*tracer.shared.values()], slice(0, group))
    totals = _totals(code, launch, product)
    first = ClockedLaunch(
        launch, code, product, totals, board, 1, together, limit, [(1.0, 1)], items
    )
    paths = first.clauses(1)
    at = first.warps.segments.index(first.main)
    effort = 0.0
    for warps, clauses in paths:
        lines = sum(len(stream.line) for clause in clauses[at] for stream in clause.streams)
        effort += len(clauses[at]) * len(warps) + lines
    shares = 1
    full = together * board.simd_engines
    while shares < MAX_SHARES and (full * group > MAX_TRACED or full * effort > MAX_LOOP_EFFORT):
        shares *= 2
        full = together * (board.simd_engines // shares)
    whole, rest = divmod(-(-totals.blocks // shares), full)
    rounds = [(float(n), blocks) for n, blocks in ((whole, full), (1, rest)) if n * blocks]
    numbers = np.arange(rounds[0][1])
    x, y, _ = totals.grid
    blocks = np.stack([numbers % x, numbers // x % y, numbers // (x * y)], axis=1)
    items = Tracer(code, launch, blocks).run()
    return replace(first, shares=shares, rounds=rounds, items=items)


def _totals(code: SassCode, launch: GridLaunch, product: MatrixProduct) -> Totals:
    """Return what all blocks do, from those along each axis of the grid."""
    group = math.prod(launch.threads)
    stored, busy = [], []
    first = 0.0
    for axis, count in enumerate(launch.grid):
        most = max(SAMPLED_THREADS // group, 8)
        places = np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
        blocks = np.zeros((len(places), 3), np.int64)
        blocks[:, axis] = places
        items = Tracer(code, launch, blocks).run()
        numbers = np.zeros(len(places))
        for step, times in steps_of(items):
            if step.is_result:
                each = step.on.reshape(-1, group).sum(axis=1)
                numbers += times * each * step.one.size
        every = np.interp(np.arange(count), places, numbers)
        first = every[0]
        stored.append(every.sum() / max(first, 1))
        busy.append(max(int(np.count_nonzero(every)), 1))
    c = launch.arguments[product.result]
    item = np.dtype(c.dtype).itemsize
    elements = first * math.prod(stored) / item
    k = product.multiply_adds / max(first / item, 1)
    return Totals((busy[0], busy[1], busy[2]), elements, 2 * elements * _length(launch, product, k))


def _length(launch: GridLaunch, product: MatrixProduct, followed: float) -> float:
    """Return the length of k: that of matrices of such sizes, if a block's loop goes a little
    beyond it, or else what the loop does.
    """
    a, b, c = (
        math.prod(launch.arguments[number].shape) for number in (*product.factors, product.result)
    )
    length = math.sqrt(a * b / c)
    return length if 0.9 * followed < length <= followed else followed


def simulate(
    kernel: Any,
    grid: int | tuple[int, ...],
    threads: int | tuple[int, ...],
    *arguments: Any,
    board: CudaGpu = H200,
    shared: int = 0,
) -> CudaReport:
    """Return how long a launch of a matrix product takes on ``board``, and why.

    The time is modeled, without a GPU, from the kernel's own machine code, as numba and NVIDIA's
    assembler compile it for an H200. ``pip install 'cypresskit[cuda]'`` brings these tools;
    lesson 14's kernel needs none.

    Parameters
    ----------
    kernel
        A kernel below ``@cuda.jit`` whose threads compute elements of C = A B, or of products of
        transposes, in a loop over k.
    grid, threads
        The blocks of the launch, and the threads of a block: a number, (x, y) or (x, y, z).
    *arguments
        Those of the kernel: numbers, and arrays, of which only shape, dtype and strides matter.
    board
        The GPU. The machine code is that of an H200 or H100.
    shared
        Bytes of shared memory that the launch requests.

    Returns
    -------
    CudaReport
        The time, the speed, what binds, and how sure that is.

    Raises
    ------
    NotTimed
        A ``ValueError`` for what is no matrix product, or depends on data.
    NoTools
        If the kernel's machine code isn't known, and the tools are missing.
    ValueError
        For a launch that CUDA rejects, and a kernel that numba can't compile.

    Examples
    --------
    >>> ck.today.simulate(kernel, (64, 64), (8, 8), a, b, c)
    """
    if not isinstance(board, CudaGpu):
        raise TypeError(f"board must be a CudaGpu, such as ck.today.H200, not {board!r}")
    launch = launch_of(kernel, grid, threads, arguments, shared)
    code = stored_code.find(kernel, arguments)
    if code is None:
        options = dict(getattr(kernel, "targetoptions", {}))
        code = code_of(function_of(kernel), options, arguments)
    return report_on(simulate_code(code, launch, board))
