"""The clock of CUDA kernels: ``cypresskit.timing``'s chip with other units.

``simulate`` traces the kernel (``cuda_trace``), divides it into parts (``cuda_parts``), takes the
order of their instructions from machine code (``cuda_code``), and runs the warps that the chip
holds at once (``cuda_part_clock``). Parts add up. The last round of workgroups, which fills the
chip in part, has a run of its own. Totals are those of the whole grid (``cuda_count``).

- An access takes the load unit a clock for each word that the busiest of 32 banks has to give, or
  four lines of 128 bytes, and ``access_clocks`` at least; half a warp's at once if the source
  requests 8 bytes, a quarter's if 16. Shared memory is the same unit.
- Sectors of 32 bytes that L1 hasn't got come from slices of L2, in which they queue.
- What is stored takes the load unit ``stored_sector_clocks``, after all else.
- The chip starts a workgroup each ``workgroup_clocks``.

Left out: tensor cores, copies that run by themselves, iterations that a loop leaves over, and L2
kept from launch to launch but where all arrays fit in.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from inspect import isfunction
from typing import Any

import numpy as np

from cypresskit.il.errors import shortened
from cypresskit.timing.launch_time import bound, bytes_moved, read_only
from cypresskit.today.cuda_access import requested, sectors_per_warp
from cypresskit.today.cuda_code import Loop, generic, nearest, places_of
from cypresskit.today.cuda_count import FLOPS, Totals, totals_of
from cypresskit.today.cuda_events import WARP, GridLaunch, Untraceable, function_of
from cypresskit.today.cuda_foreign import refusal
from cypresskit.today.cuda_part_clock import Ran, TimedPart
from cypresskit.today.cuda_parts import CodePart, max_blocks, parts_of, trace_parts
from cypresskit.today.cuda_report import CudaReport
from cypresskit.today.cuda_values import SLOW
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu

MOST_THREADS = 1024  # of a workgroup
TAKEN = 1024  # bytes of shared memory that each workgroup costs beside its own
ROUNDS = 8  # of workgroups, one after the other, in a run of straight code
SCATTERED = WARP / 2  # sectors of a warp's load, from which on threads walk rows of their own
FAR = 3.0  # doublings of a count to the most similar loop, beyond which none is assumed


class NothingToTime(ValueError):
    """A kernel that neither computes nor loads nor stores."""


def occupancy(board: CudaGpu, registers: int, threads: int, shared: int) -> int:
    """Workgroups that share a multiprocessor. Each scheduler has a quarter of the registers, and
    gives a warp eight for each thread at a time.
    """
    warps = -(-threads // WARP)
    of_a_warp = -(-max(registers, 1) // 8) * 8
    room = SCHEDULERS * (board.register_pool // SCHEDULERS // of_a_warp), board.max_wavefronts
    least = min(min(room) // warps, board.max_workgroups, board.lds_bytes // (shared + TAKEN))
    if not least:
        raise ValueError(
            f"a workgroup of {threads} threads with {registers} registers each and {shared:,} bytes"
            f" of shared memory has no room on a multiprocessor of the {board.name}"
        )
    return least


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

    The time is modelled, without a GPU, as numba compiles the kernel. ``grid`` and ``threads`` are
    a number each, or (across, down). ``arguments`` are the kernel's: arrays, of which only shape,
    dtype and strides count, and numbers. ``shared``: bytes of shared memory that the launch
    requests. ``code``: the machine code of its main loop, as ``tools/cuda/listing.py`` reads it;
    without it, the code of the most similar product is assumed, or loads, then arithmetic, then
    stores.

    Raises ``Untraceable``, a ``ValueError`` that names the line, for a kernel whose control flow or
    indices depend on data, and ``ValueError`` for a workgroup that doesn't fit a multiprocessor.

    >>> ck.today.simulate(kernel, (64, 64), (8, 8), a, b, c)
    """
    if not isinstance(board, CudaGpu):
        raise TypeError(f"board is a GPU that runs CUDA, such as ck.today.H200, not {board!r}")
    if not isfunction(function_of(kernel)):
        raise TypeError(
            f"{shortened(kernel)} is no kernel: give the function below @cuda.jit and, separately,"
            " its grid and threads"
        )
    grid = _sizes("grid", grid)
    threads = _sizes("threads", threads)
    if math.prod(threads) > MOST_THREADS:
        found = math.prod(threads)
        raise ValueError(f"a workgroup has {MOST_THREADS:,} threads at most, not {found:,}")
    launch = GridLaunch(kernel, grid, threads, arguments, shared)
    totals = totals_of(launch)
    if not totals.busy.any():
        raise NothingToTime(f"{launch.name} neither computes nor loads nor stores")
    return _Timing(launch, totals, board).report(code)


def _codes(parts: list[CodePart], known: Loop | None, blocked: bool) -> tuple[list[Loop], int, str]:
    """The machine code of each part, which part is the main one, and what is said of its code."""
    sizes = [part.count * len(part.actions) for part in parts]
    main = max(range(len(parts)), key=sizes.__getitem__)
    codes = [_assumed(part, blocked, part is parts[0]) for part in parts]
    if known:
        codes[main] = known
        return codes, main, ""
    similar = codes[main].unroll == 0
    return codes, main, "that of the most similar product known, " if similar else "assumed: "


def _assumed(part: CodePart, blocked: bool, begins: bool) -> Loop:
    """The code of the most similar product, of which threads keep a block or from shared memory, or
    what numba's compiler makes of such code.
    """
    kinds = Counter(action.kind for action in part.actions)
    fmas = sum(kinds[kind] for kind in FLOPS)
    slow = kinds["store"] + kinds["function"]
    loads = kinds["load"] + kinds["shared load"]
    blocked = blocked or bool(kinds["shared load"])
    if part.kind and kinds["multiply-add"] and loads and blocked and not slow:
        item = max(action.size for action in part.actions if action.kind in FLOPS)
        counts = fmas, *places_of(part.actions)
        loop, far = nearest(counts, item, part.kind, bool(kinds["shared load"]))
        if far < FAR:
            return loop
    return generic(part.actions, part.kind, begins)


@dataclass(frozen=True, eq=False)
class _Timing:
    """What a launch is timed with."""

    launch: GridLaunch
    totals: Totals
    board: CudaGpu

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return math.prod(self.launch.threads)

    def report(self, code: Loop | None) -> CudaReport:
        """Time each part. Raises ``ValueError`` for a workgroup that doesn't fit."""
        launch, totals = self.launch, self.totals
        most = max_blocks(launch, totals)
        parts = list(parts_of(totals.items))
        codes, _, _ = _codes(parts, code, totals.has_local)
        registers = max(each.registers for each in codes)
        shared = totals.shared_bytes + launch.shared
        together = occupancy(self.board, registers, self.threads, shared)
        share, shares = self._share(together, most)
        groups = -(-totals.busy_count // shares)
        straight = len(parts) == 1 and not parts[0].kind
        rounds = _rounds(groups, together * share.simd_engines, most if straight else 0)
        blocks = rounds[0][1]
        parts = trace_parts(launch, totals, blocks)
        self._refuse_rows(parts)
        codes, main, assumed = _codes(parts, code, totals.has_local)
        ran = tuple(
            self._run(TimedPart(part, own, share, self.threads, together), rounds)
            for part, own in zip(parts, codes, strict=True)
        )
        return self._report(ran, main, assumed, blocks)

    def _refuse_rows(self, parts: list[CodePart]) -> None:
        """Raise ``Untraceable`` for a loop whose measured launches the model misses by far."""
        for part in parts:
            is_slow = any(action.kind == SLOW for action in part.actions)
            for action in part.actions if part.kind and is_slow else ():
                if action.kind != "load":
                    continue
                if sectors_per_warp(action, self.threads, self.board) > SCATTERED:
                    where = f"line {action.line} of {self.launch.name}"
                    raise Untraceable(f"{where}: {refusal('rows')}")

    def _share(self, together: int, most: int) -> tuple[CudaGpu, int]:
        """A board that is one of a number of equal shares of this one, so that ``most`` workgroups
        fill it, and that number.
        """
        board = self.board
        shares = 1
        while together * (board.simd_engines // shares) > most and shares < 16:
            shares *= 2
        share = replace(
            board,
            simd_engines=board.simd_engines // shares,
            l2_slices=max(board.l2_slices // shares, 1),
            l2_bytes=board.l2_bytes // shares,
            memory_channels=max(board.memory_channels // shares, 1),
            memory_gb_s=board.memory_gb_s / shares,
        )
        if self.fits_in_l2:
            share = replace(share, dram_clocks=board.l2_clocks, memory_gb_s=1e6)
        return share, shares

    @property
    def fits_in_l2(self) -> bool:
        """Whether all arrays do."""
        arrays = [array for array in self.launch.arguments if getattr(array, "shape", ())]
        size = sum(math.prod(array.shape) * np.dtype(array.dtype).itemsize for array in arrays)
        return size <= self.board.l2_bytes

    def _run(self, timed: TimedPart, rounds: list[tuple[float, int]]) -> Ran:
        """Run a part in ``rounds`` of workgroups: how often, and how many."""
        board, total = self.board, self.totals.busy_count
        runs = [(times, timed.round(blocks)) for times, blocks in rounds]
        clocks = sum(times * took for times, (took, _) in runs)
        stored = self._stored_sectors(timed.part)
        sectors = sum(stored.values())
        written = sum(
            n * size
            for (kind, line, size, array), n in self.totals.amounts.items()
            if kind == "store" and (line, f"stores of {array}") in stored
        )
        most = -(-total // board.simd_engines)  # workgroups of a multiprocessor
        bytes_clock = board.memory_gb_s * board.dram_efficiency / board.clock_ghz
        storing = {
            "L1": board.stored_sector_clocks * sectors * most / total,
            "L2": board.l2_stored_sector_clocks * sectors,
            "DRAM": 0.0 if self.fits_in_l2 else written / bytes_clock,
        }
        return Ran(timed, clocks, *runs[0][1], stored, storing)

    def _stored_sectors(self, part: CodePart) -> dict[tuple[int, str], float]:
        """Return the sectors that a part's stores request in the whole launch, by line."""
        sectors: Counter = Counter()
        threads: Counter = Counter()
        for action in part.actions:
            if action.kind == "store":
                _, some, _ = requested([(action, 0)], 0, self.threads, self.board)
                sectors[action.what] += len(some)
                threads[action.what] += int(action.on.sum())
        stores = {
            (line, f"{kind}s of {array}"): n
            for (kind, line, _, array), n in self.totals.amounts.items()
        }
        return {what: sectors[what] * stores[what] / max(n, 1) for what, n in threads.items()}

    def _report(self, parts: tuple[Ran, ...], main: int, assumed: str, blocks: int) -> CudaReport:
        """The report on parts that have run; ``main`` is the number of the longest."""
        launch, board, totals = self.launch, self.board, self.totals
        longest = parts[main]
        parts_clocks = sum(part.all_clocks for part in parts)
        clocks = max(parts_clocks, board.workgroup_clocks * math.prod(launch.grid))
        busy = _busy(parts, clocks)
        warps = -(-self.threads // WARP)
        scale = board.simd_engines / longest.timed.board.simd_engines
        events, use = longest.pictured
        return CudaReport(
            kernel=launch.name,
            device=board,
            clocks=clocks,
            flops=float(totals.flops),
            peak_gflops=board.peak_gflops(totals.item),
            bound=self._bound(longest, busy),
            registers=max(part.timed.loop.registers for part in parts),
            active_wavefronts=longest.timed.together * warps,
            wavefronts=math.prod(launch.grid) * warps,
            simulated=min(1.0, 1 / max(longest.runs, 1e-9)),
            busy=read_only(busy),
            hits=read_only(_hits(parts)),
            bytes=read_only(
                _bytes_read(parts, scale)
                | {"L1": totals.bytes("load"), "written": totals.bytes("store")}
            ),
            resident_clocks=sum(part.out.resident_clocks * part.runs for part in parts)
            * scale
            / SCHEDULERS,
            events=events,
            use=use,
            loop=longest.timed.loop,
            assumed=assumed,
            source=function_of(launch.kernel).__code__.co_filename,
            parts=parts,
            blocks=blocks,
        )

    def _bound(self, longest: Ran, busy: dict[str, float]) -> str:
        """The bottleneck of the launch, as ``longest`` has its multiprocessors filled."""
        together = longest.timed.together
        slots = together * -(-self.threads // WARP) * longest.timed.board.simd_engines
        occupied = longest.out.resident_clocks / (longest.out.end_clock * slots)
        rounds = self.totals.busy_count / (together * self.board.simd_engines)
        return bound(busy, occupied, rounds, wavefront="warp")


def _busy(parts: tuple[Ran, ...], clocks: float) -> dict[str, float]:
    """The share of ``clocks`` for which each unit is busy."""
    amounts: Counter = Counter()
    for part in parts:
        amounts.update(part.busy)
    return {unit: min(amount / clocks, 1.0) for unit, amount in amounts.items()}


def _rounds(groups: int, full: int, straight: int) -> list[tuple[float, int]]:
    """How often how many workgroups run at once, of which ``full`` fill the chip: full rounds, and
    the last. Straight code runs in one piece of up to ``straight`` workgroups, if any.
    """
    if straight:
        blocks = min(groups, ROUNDS * full, straight)
        return [(groups / blocks, blocks)]
    whole, rest = divmod(groups, full)
    return [(times, blocks) for times, blocks in ((whole, full), (1, rest)) if times * blocks]


def _hits(parts: tuple[Ran, ...]) -> dict[str, float]:
    """The share of the sectors requested from each cache that it has."""
    counts: Counter = Counter()
    for part in parts:
        counts.update({name: part.runs * n for name, n in part.out.counts.items()})
    return {
        name.upper(): 1 - counts[f"{name}_misses"] / max(counts[f"{name}_requests"], 1e-9)
        for name in ("l1", "l2")
    }


def _bytes_read(parts: tuple[Ran, ...], scale: float) -> dict[str, float]:
    """Bytes that L1, L2 and DRAM gave in the whole launch, ``scale`` times what has run."""
    read: dict[str, float] = defaultdict(float)
    for part in parts:
        moved = bytes_moved(part.out.counts, part.timed.board.in_quarters)
        for name, amount in moved.items():
            read[name] += amount * part.runs * scale
    return dict(read)


def _sizes(name: str, given: Any) -> tuple[int, int]:
    """``grid`` or ``threads``, across and down. Raises ``ValueError``."""
    sizes = list(given) if isinstance(given, tuple | list) else [given]
    whole = all(isinstance(size, int | np.integer) and size > 0 for size in sizes)
    if not whole or not 1 <= len(sizes) <= 2:
        hint = f"; {refusal('three')}" if len(sizes) == 3 else ""
        found = shortened(given)
        raise ValueError(f"{name} has one or two whole numbers from 1 on, not {found}{hint}")
    across, down = (*map(int, sizes), 1)[:2]
    return across, down
