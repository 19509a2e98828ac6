"""Time a part of a launch: its machine code becomes clauses, which the engine runs.

The warps that the chip holds at once run for some iterations, and for twice as many. The others are
extrapolated from the difference.

- Each warp belongs to one of four schedulers, which takes some clocks for an instruction of each
  kind (``gpus``). Stalls for a warp's own results (dots in ``cuda_code``) hold up that warp alone.
- Loads of the source start where the code has loads, or with the first of their group. A warp goes
  on once the load unit has served them, and waits for a scoreboard where the code waits.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.units.state import SCOREBOARDS
from cypresskit.chip.work import ALU, BARRIER, TEX, WAIT, Clause, Stream, WavefrontPath, pack
from cypresskit.timing.launch_time import Use, busy_shares, use_of
from cypresskit.today.cuda_access import requested, streams_of
from cypresskit.today.cuda_code import MULTIPLY_ADDS, Loop, generic, repeat_inner
from cypresskit.today.cuda_count import FLOPS, Totals
from cypresskit.today.cuda_events import NOTHING, WARP, What
from cypresskit.today.cuda_parts import CodePart
from cypresskit.today.gpus import SCHEDULERS, CudaGpu

MAX_EFFORT = 1_000_000  # sectors and clauses of a run
MIN_ITERATIONS = 12  # of a run
#: Calibrated on everyday kernels and a third of the measured products; 0, 8, 16 and 48 were tried.
GROUP_CLOCKS = 32
STORED = SCOREBOARDS - 1  # set by stores to shared memory, for which barriers wait
LETTERS = {"L": "load", "S": "shared load", "T": "shared store"}
#: The units of a report on a kernel in CUDA, and the engine's names for them.
UNITS = {"issue": "ALU", "L1": "texture", "L2": "L2", "DRAM": "DRAM"}

Loads = list[tuple[int, Stream]]  # lines of the source, and what they request


@dataclass(frozen=True, eq=False)
class TracedLaunch:
    """A launch whose trace and machine code are known, on a board.

    Attributes
    ----------
    name, source
        The kernel's, and its file.
    groups, threads
        Blocks of the launch, and threads of one.
    array_bytes
        Bytes of each array, by its name.
    totals
        What the launch does.
    board, shares
        The board, and the number of equal shares that it is divided into; one is run.
    together, limit
        How many blocks a multiprocessor holds, and what limits them.
    rounds
        (times, blocks): how many blocks run at once, and how often.
    parts
        The parts, each with its machine code.
    is_assumed
        Whether the main part's code isn't the kernel's own.
    """

    name: str
    source: str
    groups: int
    threads: int
    array_bytes: dict[str, int]
    totals: Totals
    board: CudaGpu
    shares: int
    together: int
    limit: str
    rounds: list[tuple[float, int]]
    parts: list[tuple[CodePart, Loop]]
    is_assumed: bool

    @property
    def warps(self) -> int:
        """The warps of a workgroup."""
        return -(-self.threads // WARP)

    def on_a_share(self, least: int) -> "TracedLaunch":
        """Return the launch on one of ``least`` equal shares of the board, or of more."""
        shares = max(self.shares, least)
        rounds = [(times, -(-blocks * self.shares // shares)) for times, blocks in self.rounds]
        first = rounds[0][1] * self.threads
        parts = [
            (replace(part, actions=[action.of_first(first) for action in part.actions]), loop)
            for part, loop in self.parts
        ]
        return replace(self, shares=shares, rounds=rounds, parts=parts)

    @property
    def fits_in_l2(self) -> bool:
        """Whether all arrays do."""
        return sum(self.array_bytes.values()) <= self.board.l2_bytes

    @cached_property
    def loaded_bytes(self) -> int:
        """Bytes that a round of workgroups loads."""
        return self.shares * sum(part.loaded_bytes for part, _ in self.parts)

    @cached_property
    def share(self) -> CudaGpu:
        """The share of the board that is run, in quarters of a clock."""
        board, shares = self.board, self.shares
        share = replace(
            board,
            simd_engines=board.simd_engines // shares,
            l2_slices=max(board.l2_slices // shares, 1),
            l2_bytes=board.l2_bytes // shares,
            memory_channels=max(board.memory_channels // shares, 1),
            memory_gb_s=board.memory_gb_s / shares,
        )
        return share.in_quarters

    @cached_property
    def served_share(self) -> CudaGpu:
        """That share, where L2 serves all loads."""
        l2_clocks = SCHEDULERS * self.board.l2_clocks
        return replace(self.share, dram_clocks=l2_clocks, memory_gb_s=1e6)


class _ClauseList:
    """The clauses of an iteration, made from its instructions. Loads leave together, with the first
    of a group, which ends once the warp has computed for ``GROUP_CLOCKS`` since then.
    """

    def __init__(self) -> None:
        self.clauses: list[Clause] = []
        self.issue = 0.0  # clocks of a scheduler that no clause has yet
        self.alone = 0.0  # clocks of the warp if it had the scheduler to itself
        self.loads: dict[int, Loads] = {}  # of the group, by scoreboard
        self.in_flight: dict[int, set[int]] = {}  # lines of loads, by scoreboard

    def compute(self, issue: float, alone: float) -> None:
        """Add the clocks of an instruction."""
        self.issue += issue
        self.alone += alone

    def load(self, scoreboard: int, some: Loads) -> None:
        """Add loads that set a scoreboard."""
        if not self.loads or self.alone >= GROUP_CLOCKS:
            self.flush()
        self.loads[scoreboard] = self.loads.get(scoreboard, []) + some

    def flush(self) -> None:
        """Add the clauses of the loads, and of what the warp computes after the first of them."""
        for scoreboard, loads in self.loads.items():
            if loads:
                lines, requests = zip(*loads)
                mask = 1 << scoreboard
                self.clauses.append(Clause(TEX, 0, requests, sources=lines, scoreboards=mask))
                self.in_flight.setdefault(scoreboard, set()).update(lines)
        self.loads = {}
        if slots := round(self.issue):
            pause = max(round(SCHEDULERS * (self.alone - slots)), 0)
            self.clauses.append(Clause(ALU, slots, pause=pause))
            self.issue, self.alone = self.issue - slots, 0.0

    def wait(self, scoreboards: tuple[int, ...]) -> None:
        """Wait for these scoreboards; without any, for all loads of this iteration in flight."""
        self.flush()
        scoreboards = scoreboards or tuple(self.in_flight.keys() - {STORED})
        lines = {line for one in scoreboards for line in self.in_flight.pop(one, ())}
        if mask := sum(1 << one for one in scoreboards):
            self.clauses.append(Clause(WAIT, scoreboards=mask, sources=tuple(sorted(lines))))


@dataclass(frozen=True, eq=False)
class TimedPart:
    """A part of a launch, with its machine code, which is run when its clocks are needed.

    Clocks, and what units do, are those of the whole launch. Stores are sent after all else.
    """

    part: CodePart
    loop: Loop
    launch: TracedLaunch

    def clauses(self, blocks: int, free: What = NOTHING) -> tuple[tuple[Clause, ...], int]:
        """Return an iteration of the machine code by the first ``blocks`` workgroups, without what
        is ``free``, and how many of the source it does.
        """
        text, unroll, weight = self._text(free)
        streams = {letter: self._streams(blocks, text, unroll, letter, free) for letter in LETTERS}
        issue_clocks = self.launch.board.issue_clocks
        made = _ClauseList()
        for letter, scoreboards, stall in re.findall(r"([^\d.])(\d*)(\.*)", text):
            if letter == "w":
                made.wait(tuple(map(int, scoreboards)))
                continue
            if letter == "B":
                made.wait((STORED,))
                made.clauses.append(Clause(BARRIER))
            elif letter in LETTERS:
                scoreboard = STORED if letter == "T" else int(scoreboards or 0)
                made.load(scoreboard, next(streams[letter]))
            share = weight if letter in MULTIPLY_ADDS else 1.0
            issue = issue_clocks.get(letter, 0.0)
            made.compute(share * issue, share * max(issue, 1 + len(stall)))
        made.flush()
        return tuple(made.clauses), unroll

    def _text(self, free: What) -> tuple[str, int, float]:
        """Return the letters of an iteration of the code, the iterations of the source in it, and
        the share of a multiply-add of the source that each one of the code computes.
        """
        if self.loop.unroll:
            return generic(self.part, free).text, self.loop.unroll, 1.0
        computing = [action.what for action in self.part.actions if action.kind in FLOPS]
        own = self.loop.fmas or len(computing)
        text = repeat_inner(self.loop.text, own)
        count = sum(letter in MULTIPLY_ADDS for letter in text)
        unroll = max(round(count / own), 1)
        computed = len(computing) - computing.count(free)
        return text, unroll, computed * unroll / max(count, 1)

    def _streams(
        self, blocks: int, text: str, unroll: int, letter: str, free: What
    ) -> Iterator[Loads]:
        """Yield for each letter of the code what it requests, with the line: loads leave as
        multiply-adds need them, the first of each array first; in assumed code, in the order of the
        source.
        """
        threads, board = self.launch.threads, self.launch.board
        kind = LETTERS[letter]
        own = [one.of_first(blocks * threads) for one in self.part.actions if one.kind == kind]
        if not self.loop.unroll:
            arrays = [action.array for action in own]
            ranks = [arrays[:n].count(array) for n, array in enumerate(arrays)]
            own = [own[n] for n in np.argsort(ranks, kind="stable")]
        all_of = [(action, iteration) for iteration in range(unroll) for action in own]
        count = max(text.count(letter), 1)
        bounds = [round(len(all_of) * n / count) for n in range(count + 1)]
        accesses = [
            [access for access in all_of[first:end] if access[0].what != free]
            for first, end in pairwise(bounds)
        ]
        some = [access for access in accesses if access]
        is_loop = bool(self.part.kind)
        streams = iter(streams_of(some, unroll, is_loop, threads, board) if some else ())
        for access in accesses:
            yield [(access[0][0].line, next(streams))] if access else []

    @cached_property
    def cold(self) -> float:
        """The share of its rounds that wait for memory: none if L2 holds all arrays; if it holds
        what a round loads, as many as load the arrays once.
        """
        launch = self.launch
        if launch.fits_in_l2 or launch.loaded_bytes > launch.board.l2_bytes:
            return float(not launch.fits_in_l2)
        names = {action.array for action in self.part.actions if action.kind == "load"}
        once = sum(launch.array_bytes[name] for name in names)
        rounds = int(sum(times for times, _ in launch.rounds))
        first = math.ceil(once / max(launch.shares * self.part.loaded_bytes, 1))
        return min(first / rounds, 1.0)

    @property
    def share(self) -> CudaGpu:
        """The share of the board on which most rounds run."""
        return self.launch.share if self.cold >= 0.5 else self.launch.served_share

    @property
    def effort(self) -> float:
        """The clauses and sectors of a loop's iteration, in all phases, for each workgroup."""
        if not self.part.kind:
            return 0.0
        blocks = len(self.part.actions[0].on) // self.launch.threads
        clauses, _ = self.clauses(blocks)
        lines = sum(len(stream.line) for clause in clauses for stream in clause.streams)
        return len(clauses) * self.launch.warps + lines / blocks

    def round(self, blocks: int, free: What = NOTHING, some: int = 0) -> tuple[float, Outcome]:
        """Return the clocks of the first ``blocks`` workgroups at once, on average over cold and
        other rounds, and a run of ``some`` of their iterations, or of as many as effort allows.
        """
        clauses = self.clauses(blocks, free)
        runs = [
            (share, *self._round(board, blocks, *clauses, some))
            for share, board in (
                (self.cold, self.launch.share),
                (1 - self.cold, self.launch.served_share),
            )
            if share
        ]
        most = max(runs, key=lambda run: run[0])
        return sum(share * clocks for share, clocks, _ in runs), most[2]

    def _round(
        self,
        board: CudaGpu,
        blocks: int,
        clauses: tuple[Clause, ...],
        unroll: int,
        some: int,
    ) -> tuple[float, Outcome]:
        iterations = -(-self.part.count // unroll)
        streams = [stream for clause in clauses for stream in clause.streams]
        each = len(clauses) * blocks + sum(len(s.line) / s.phases for s in streams)
        phases = max((stream.phases for stream in streams), default=1)
        some = some or max(int(MAX_EFFORT // max(each, 1)), MIN_ITERATIONS)
        some = -(-some // phases) * phases
        if iterations <= 2 * some:
            out = self._run(board, clauses, iterations, blocks)
            return out.end_clock / SCHEDULERS, out
        short, long = (self._run(board, clauses, n, blocks) for n in (some, 2 * some))
        slope = (long.end_clock - short.end_clock) / some
        return (short.end_clock + slope * (iterations - some)) / SCHEDULERS, long

    def _run(
        self, board: CudaGpu, clauses: tuple[Clause, ...], iterations: int, blocks: int
    ) -> Outcome:
        launch = self.launch
        path = WavefrontPath(np.arange(blocks * launch.warps), ((clauses, iterations),))
        return run(pack([path], launch.warps), board, launch.together * launch.warps)

    @cached_property
    def _rounds(self) -> tuple[float, Outcome]:
        """Its clocks without stores, and the simulation of some iterations of a full round."""
        runs = [(times, self.round(blocks)) for times, blocks in self.launch.rounds]
        return sum(times * clocks for times, (clocks, _) in runs), runs[0][1][1]

    @property
    def clocks(self) -> float:
        """Its clocks without stores."""
        return self._rounds[0]

    @property
    def out(self) -> Outcome:
        """The simulation of some iterations of a full round of workgroups."""
        return self._rounds[1]

    @property
    def pictured(self) -> tuple[np.ndarray, Use]:
        """The simulation's events, and what each part of the chip did, in clocks."""
        events = self.out.timeline.copy()
        events[:, 3:] /= SCHEDULERS
        use = use_of(self.out, self.share)
        wavefronts = use.wavefronts / (1, SCHEDULERS, SCHEDULERS)
        return events, replace(use, clocks=use.clocks / SCHEDULERS, wavefronts=wavefronts)

    @property
    def repeats(self) -> float:
        """How many times the whole launch repeats the simulation."""
        return self.clocks * SCHEDULERS / self.out.end_clock

    @property
    def counts(self) -> dict[str, float]:
        """Counters of the whole launch."""
        counts = {name: self.repeats * count for name, count in self.out.counts.items()}
        return counts | {"l2_misses": self.cold * counts["l2_misses"]}

    @property
    def resident_clocks(self) -> float:
        """The sum of the clocks that each warp of the launch is on the chip."""
        return self.out.resident_clocks * self.repeats / SCHEDULERS

    @cached_property
    def stored(self) -> dict[What, tuple[float, int]]:
        """The sectors that each line's stores request, and their bytes."""
        stored = {}
        for (kind, line, size, array), n in self.launch.totals.amounts.items():
            what = line, f"{kind}s of {array}"
            own = [one for one in self.part.actions if kind == "store" and one.what == what]
            if own:
                found = [
                    requested([(one, 0)], self.launch.threads, self.launch.board) for one in own
                ]
                sectors = sum(len(some) for _, some, _ in found)
                each = sectors * n / max(sum(int(one.on.sum()) for one in own), 1)
                stored[what] = each, n * size
        return stored

    @cached_property
    def busy(self) -> dict[str, float]:
        """Clocks for which each unit is busy."""
        launch, board = self.launch, self.launch.board
        sectors, written = (sum(each) for each in zip(*self.stored.values(), (0, 0)))
        total = launch.totals.busy_count
        most = -(-total // board.simd_engines)  # workgroups of a multiprocessor
        bytes_clock = board.memory_gb_s * board.dram_efficiency / board.clock_ghz
        storing = {
            "issue": 0.0,
            "L1": board.stored_sector_clocks * sectors * most / total,
            "L2": board.l2_stored_sector_clocks * sectors,
            "DRAM": 0.0 if launch.fits_in_l2 else written / bytes_clock,
        }
        shares = busy_shares(self.out.counts, self.out.end_clock, self.share)
        return {unit: shares[UNITS[unit]] * self.clocks + storing[unit] for unit in UNITS}

    @property
    def all_clocks(self) -> float:
        """Its clocks with stores."""
        return max(self.clocks, *self.busy.values())
