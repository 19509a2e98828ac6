"""Time matrix products in CUDA, with ``cypresskit.timing``'s chip and other units.

``simulate`` compiles the kernel (``cuda_compile``), follows its machine code for a few blocks
(``sass_trace``), refuses what is no matrix product (``product``), and runs
their warps (``clocked_launch``). Full rounds of blocks are alike; the last one, which fills the
chip in part, is run by itself.

- An access takes the load unit a clock for each word that the busiest of 32 banks delivers, or for
  four lines of 128 bytes; for each half of a warp if the source requests 8 bytes, for each quarter
  if 16. Shared memory is the same unit.
- Sectors of 32 bytes that miss in L1 come from slices of L2, in which they queue.
- Memory sends what L2 lacks. L2 serves a launch whose A and B it holds, as after an earlier launch.
"""

from dataclasses import replace
from typing import Any

from cypresskit.today.clocked_launch import ClockedLaunch
from cypresskit.today.cuda_report import CudaReport, report_on
from cypresskit.today.gpus import H200, SCHEDULERS
from cypresskit.today.grid_launch import GridLaunch, launch_of
from cypresskit.today.product import corners, find_product
from cypresskit.today.sass import SassCode
from cypresskit.today.sass_threads import NotTimed
from cypresskit.today.sass_trace import WARP, Tracer
from cypresskit.today.stored_code import machine_code

RESERVED_BYTES = 1024  # of shared memory, for each block
REGISTER_UNIT = 8  # registers that a thread gets at once


def occupancy(registers: int, threads: int, shared: int) -> tuple[int, str]:
    """Return how many blocks a multiprocessor holds, and what limits them. Each scheduler has a
    quarter of the registers.

    Raises ``ValueError`` for a block that doesn't fit.
    """
    warps = -(-threads // WARP)
    per_thread = -(-registers // REGISTER_UNIT) * REGISTER_UNIT
    fits = {
        f"its {H200.max_wavefronts} warps": H200.max_wavefronts // warps,
        "registers": SCHEDULERS * (H200.register_pool // SCHEDULERS // per_thread) // warps,
        f"its {H200.max_workgroups} blocks": H200.max_workgroups,
        "shared memory": H200.lds_bytes // (shared + RESERVED_BYTES),
    }
    limit = min(fits, key=lambda name: fits[name])
    if not fits[limit]:
        raise ValueError(
            f"a block of {threads:,} threads, with {registers} registers each and {shared:,} bytes"
            f" of shared memory, doesn't fit on a multiprocessor of the {H200.name}"
        )
    return fits[limit], limit


def simulate_code(code: SassCode, launch: GridLaunch) -> ClockedLaunch:
    """Follow a launch's machine code. Raises ``ValueError`` for what isn't timed."""
    together, limit = occupancy(code.registers, launch.group, code.shared_bytes)
    try:
        trace = Tracer(code, launch, corners(launch)).run()
        product = find_product(launch, trace)
    except NotTimed as error:
        raise NotTimed(f"this clock times matrix products; in {launch.name}, {error}") from None
    return ClockedLaunch(launch, code, trace, product, together, limit)


def simulate(
    kernel: Any,
    grid: int | tuple[int, ...],
    threads: int | tuple[int, ...],
    *arguments: Any,
    shared: int = 0,
) -> CudaReport:
    """Return how long a launch of a matrix product takes on an H200, and why.

    The time is modeled, without a GPU, from the kernel's own machine code, as numba and NVIDIA's
    assembler compile it. ``pip install 'cypresskit[cuda]'`` brings these tools;
    lesson 14's kernel needs none.

    Parameters
    ----------
    kernel
        A kernel below ``@cuda.jit`` whose threads compute elements of C = A B, or of products of
        transposes, in a loop over k.
    grid, threads
        The blocks of the launch, and the threads of a block: a number, (x, y) or (x, y, z).
    *arguments
        Those of the kernel: numbers, and arrays, of which only shape and dtype matter.
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
    launch = launch_of(kernel, grid, threads, arguments)
    code = machine_code(kernel, launch.arguments)
    requested = replace(code, shared_bytes=code.shared_bytes + shared)
    return report_on(simulate_code(requested, launch))
