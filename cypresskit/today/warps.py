"""What each warp does, for the engine: its machine code becomes clauses.

- Each warp belongs to one of four schedulers, which takes some clocks for an instruction of each
  kind (``gpus``). The control code's stalls hold up that warp alone.
- Loads that a warp starts within ``GROUP_CLOCKS`` of its own work leave together, with the first.
  It goes on once the load unit has served them, and waits for a scoreboard where the code waits.
- Warps that take other paths have clauses of their own.
"""

import math
from dataclasses import dataclass

import numpy as np

from cypresskit.chip.units.state import SCOREBOARDS
from cypresskit.chip.work import ALU, BARRIER, TEX, WAIT, Clause, Stream, unit_stream
from cypresskit.today.cuda_access import WARP, memory_stream, quarters, requests_of, warps_of
from cypresskit.today.gpus import SCHEDULERS, CudaGpu
from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.sass import SassCode
from cypresskit.today.sass_trace import Segment, TraceStep

#: Calibrated on everyday kernels and a third of 326 products; 0, 8, 16 and 48 were tried.
GROUP_CLOCKS = 32
BRANCH = 15  # clocks of a warp's branch to a label: calibrated on single warps
STORED = SCOREBOARDS - 1  # set by stores to shared memory, for which barriers wait
MULTIPLY_ADDS = "multiply-adds"
OTHER = "other instructions"
PRIME = np.uint64(1_000_003)

What = tuple[int, str]  # a line, and "loads of" or "stores of" an array, or kinds of instructions
NOTHING: What = 0, ""


class _ClauseList:
    """The clauses of an iteration, made from its instructions."""

    def __init__(self) -> None:
        self.clauses: list[Clause] = []
        self.issue = 0.0  # clocks of a scheduler that no clause has yet
        self.alone = 0.0  # clocks of the warp if it had the scheduler to itself
        self.loads: dict[int, list[tuple[int, Stream]]] = {}  # lines and requests, by scoreboard
        self.in_flight: dict[int, set[int]] = {}  # lines of loads, by scoreboard

    def load(self, scoreboard: int, line: int, requests: Stream) -> None:
        """Add a load that sets a scoreboard."""
        if not self.loads or self.alone >= GROUP_CLOCKS:
            self.flush()
        self.loads.setdefault(scoreboard, []).append((line, requests))

    def flush(self) -> None:
        """Add the clauses of the loads, and of what the warp computes after the first of them."""
        for scoreboard, loads in self.loads.items():
            lines, requests = zip(*loads)
            mask = 1 << scoreboard
            self.clauses.append(Clause(TEX, 0, requests, sources=lines, scoreboards=mask))
            self.in_flight.setdefault(scoreboard, set()).update(lines)
        self.loads = {}
        if slots := round(self.issue):
            pause = max(round(SCHEDULERS * (self.alone - slots)), 0)
            self.clauses.append(Clause(ALU, slots, pause=pause))
            self.issue, self.alone = self.issue - slots, 0.0

    def wait(self, mask: int) -> None:
        """Wait for the scoreboards of a mask."""
        self.flush()
        some = [one for one in range(SCOREBOARDS) if mask >> one & 1]
        lines = {line for one in some for line in self.in_flight.pop(one, ())}
        self.clauses.append(Clause(WAIT, scoreboards=mask, sources=tuple(sorted(lines))))


@dataclass(frozen=True, eq=False)
class Warps:
    """The warps of blocks that were followed.

    Attributes
    ----------
    launch, code, board
        The launch, its machine code, and the board.
    trace
        What the threads do.
    """

    launch: GridLaunch
    code: SassCode
    board: CudaGpu
    trace: list[Segment]

    @property
    def group(self) -> int:
        """The threads of a block."""
        return math.prod(self.launch.threads)

    @property
    def block_warps(self) -> int:
        return -(-self.group // WARP)

    def what_of(self, step: TraceStep) -> What:
        """Return what a step's cost is given for."""
        one = step.one
        if not one.is_access:
            return one.line, MULTIPLY_ADDS if step.factors else OTHER
        names = [self.launch.names[number] for number in step.arrays]
        array = "shared memory" if one.is_shared else "".join(names)
        return one.line, f"{'loads' if one.is_load else 'stores'} of {array}"

    def paths(self, warps: int) -> list[np.ndarray]:
        """Return the numbers of the first ``warps`` warps, those on the same path together."""
        found = np.zeros(warps, np.uint64)
        for segment in self.trace:
            for step in segment.steps:
                active, on = (
                    warps_of(mask, self.group)[:warps].any(axis=1)
                    for mask in (step.active, step.on)
                )
                here = np.uint64(4 * step.one.index + 1) + 2 * on.astype(np.uint64)
                found = np.where(active, found * PRIME + here, found)
        _, path = np.unique(found, return_inverse=True)
        return [np.flatnonzero(path == n) for n in range(int(path.max()) + 1)]

    def clauses(
        self, segment: Segment, warps: np.ndarray, free: What = NOTHING
    ) -> tuple[Clause, ...]:
        """Return the clauses of an iteration of a segment by some warps on the same path, without
        what is ``free``.
        """
        first = int(warps[0])
        moves = [
            (step, move)
            for step, move in segment.moves()
            if warps_of(step.active, self.group)[first].any()
        ]
        loading = 0
        for mask in self.code.scoreboards.values():
            loading |= mask
        made = _ClauseList()
        for n, (step, move) in enumerate(moves):
            one = step.one
            is_free = self.what_of(step) == free
            if mask := one.waits & loading:
                made.wait(mask)
            if one.name == "BAR":
                made.wait(1 << STORED)
                made.clauses.append(Clause(BARRIER))
            elif (one.is_load or one.is_shared) and not is_free:
                stream = self._stream(step, move, warps)
                mask = self.code.scoreboards.get(one.index, 1 << STORED)
                if stream is not None:
                    made.load(max(mask.bit_length() - 1, 0), one.line, stream)
            if one.is_access or not is_free:
                issue = self.board.issue_clocks[one.kind]
                is_taken = moves[(n + 1) % len(moves)][0].one.index != one.index + 1
                made.issue += issue
                made.alone += max(issue, one.stall, 1)
                made.alone += BRANCH * (one.name == "BRA" and is_taken)
        made.flush()
        return tuple(made.clauses)

    def _stream(self, step: TraceStep, move: int, warps: np.ndarray) -> Stream | None:
        """Return what a load, or an access of shared memory, requests; None if all warps skip it.
        In shared memory, all blocks do what the first one does.
        """
        on = warps_of(step.on, self.group)
        address = warps_of(step.address, self.group)
        if not on[warps].any():
            return None
        if not step.one.is_shared:
            return memory_stream(address[warps], on[warps], step.one.size, move, self.board)
        each = self.block_warps
        found = requests_of(address[:each], on[:each], step.one.size, self.board)
        return unit_stream(quarters(found.clocks)[warps % each])
