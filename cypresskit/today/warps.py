"""What each warp does, for the engine: its machine code becomes clauses.

- Each warp belongs to one of four schedulers, which takes some clocks for an instruction of each
  kind (``gpus``). The control code's stalls hold up that warp alone.
- Loads that a warp starts within ``GROUP_CLOCKS`` of its own work leave together, with the first.
  It goes on once the load unit has served them, and waits for a scoreboard where the code waits.
- Warps that take other paths have clauses of their own.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.chip.units.state import SCOREBOARDS
from cypresskit.chip.work import ALU, BARRIER, TEX, WAIT, Clause, Stream, unit_stream
from cypresskit.today.cuda_access import load_clocks, memory_stream, quarters
from cypresskit.today.gpus import SCHEDULERS
from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.product import corners
from cypresskit.today.sass import PRODUCTS, SassCode
from cypresskit.today.sass_threads import NotTimed
from cypresskit.today.sass_trace import WARP, Segment, TraceStep

#: Calibrated on everyday kernels and a third of 326 products; 0, 8, 16 and 48 were tried.
GROUP_CLOCKS = 32
BRANCH = 15  # clocks of a warp's branch to a label: calibrated on single warps
STORED = SCOREBOARDS - 1  # set by stores to shared memory, for which barriers wait
OTHER = "other instructions"

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
    """The warps of a launch. All blocks do what the first one does, at addresses that grow evenly
    along the grid; guards at C's edges are ignored.

    Attributes
    ----------
    launch, code
        The launch, and its machine code.
    trace
        What the threads of its ``corners`` do.
    """

    launch: GridLaunch
    code: SassCode
    trace: list[Segment]

    @property
    def block_warps(self) -> int:
        """The warps of a block."""
        return -(-self.launch.group // WARP)

    def what_of(self, step: TraceStep) -> What:
        """Return what a step's cost is given for."""
        one = step.one
        if not one.is_access:
            return one.line, "multiply-adds" if one.name in PRODUCTS else OTHER
        array = "shared memory" if one.is_shared else self.launch.names[step.array]
        return one.line, f"{'loads' if one.is_load else 'stores'} of {array}"

    @property
    def paths(self) -> list[np.ndarray]:
        """The warps of a block, those on the same path together."""
        masks = [
            mask[0].any(axis=1)
            for segment in self.trace
            for step in segment.steps
            for mask in (step.active, step.on)
        ]
        _, path = np.unique(np.transpose(masks), axis=0, return_inverse=True)
        return [np.flatnonzero(path == n) for n in range(int(path.max()) + 1)]

    def clauses(
        self, segment: Segment, warps: np.ndarray, blocks: int, free: What = NOTHING
    ) -> tuple[Clause, ...]:
        """Return the clauses of an iteration of a segment by some warps on the same path, of the
        first blocks, without what is ``free``.
        """
        moves = [each for each in segment.moves() if each[0].active[0, warps[0]].any()]
        scoreboards = self.code.scoreboards
        set_by_loads = sum({1 << number for number in scoreboards.values()})
        made = _ClauseList()
        for n, (step, move) in enumerate(moves):
            one = step.one
            is_free = self.what_of(step) == free
            if mask := one.waits & set_by_loads:
                made.wait(mask)
            if one.name == "BAR":
                made.wait(1 << STORED)
                made.clauses.append(Clause(BARRIER))
            elif (one.is_load or one.is_shared) and not is_free:
                if step.on[0, warps].any():
                    stream = self._stream(step, move, warps, blocks)
                    made.load(scoreboards.get(one.index, STORED), one.line, stream)
            if one.is_access or not is_free:
                issue = one.issue_clocks
                is_taken = moves[(n + 1) % len(moves)][0].one.index != one.index + 1
                made.issue += issue
                made.alone += max(issue, one.stall, 1)
                made.alone += BRANCH * (one.name == "BRA" and is_taken)
        made.flush()
        return tuple(made.clauses)

    def load_clocks(self, step: TraceStep, warps: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return the clocks of the load unit for some warps of the first block."""
        one = step.one
        return load_clocks(step.value[0, warps], step.on[0, warps], one.size, one.is_shared)

    def _stream(self, step: TraceStep, move: int, warps: np.ndarray, blocks: int) -> Stream:
        """Return what a load, or an access of shared memory, requests."""
        if step.one.is_shared:
            return unit_stream(np.tile(quarters(self.load_clocks(step, warps)), blocks))
        address = self._addresses(step, blocks)[:, warps].reshape(-1, WARP)
        on = np.tile(step.on[0, warps], (blocks, 1))
        return memory_stream(address, on, step.one.size, move)

    def _addresses(self, step: TraceStep, blocks: int) -> np.ndarray:
        """Return the addresses of the first blocks. Raises ``NotTimed`` if they grow unevenly."""
        first = step.value[0]
        growth = step.value[4:7] - first
        even = first + np.tensordot(corners(self.launch), growth, 1)
        if np.any((step.value != even)[7:] & step.on[7:]):
            raise NotTimed(
                f"line {step.one.line} loads from addresses that don't grow evenly along the grid:"
                " let each block begin at its number times a size"
            )
        places = np.stack(np.unravel_index(np.arange(blocks), self.launch.grid, order="F"), axis=1)
        return np.asarray(first + np.tensordot(places, growth, 1))
