"""What each warp does, for the engine: its machine code becomes clauses.

- Each warp belongs to one of four schedulers, which takes some clocks for an instruction of each
  kind (``gpus``). The control code's stalls hold up that warp alone.
- Loads that a warp starts within ``GROUP_CLOCKS`` of its own work leave together, with the first.
  It goes on once the load unit has served them, and waits for a scoreboard where the code waits.
- Warps that take other paths have clauses of their own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from cypresskit.chip.units.state import SCOREBOARDS
from cypresskit.chip.work import ALU, BARRIER, TEX, WAIT, Clause, Stream
from cypresskit.today.cuda_access import (
    WarpAccess,
    memory_streams,
    requests_of,
    shared_stream,
    warps_of,
)
from cypresskit.today.gpus import SCHEDULERS, CudaGpu
from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.sass import SassCode, SassInstruction
from cypresskit.today.sass_trace import PRIME, Iterations, TraceStep

#: Calibrated on everyday kernels and a third of 326 products; 0, 8, 16 and 48 were tried.
GROUP_CLOCKS = 32
BRANCH = 15  # clocks of a warp's branch to a label: calibrated on single warps
STORED = SCOREBOARDS - 1  # set by stores to shared memory, for which barriers wait
MULTIPLY_ADDS = "multiply-adds"
OTHER = "other instructions"

What = tuple[int, str]  # a line, and "loads of" or "stores of" an array, or kinds of instructions
NOTHING: What = 0, ""


@dataclass(frozen=True, eq=False)
class Executed:
    """A step in an iteration, the address of each thread, and the bytes by which addresses move
    with each iteration.
    """

    step: TraceStep
    address: Any = None
    move: int = 0


@dataclass(frozen=True, eq=False)
class Segment:
    """Steps that are repeated ``count`` times."""

    steps: list[Executed]
    count: int


def segments_of(items: list) -> list[Segment]:
    """Divide a trace into segments. Loops within loops are written out."""
    found: list[Segment] = []
    for item in items:
        if isinstance(item, Iterations):
            found.append(Segment(list(_written_out(item.items, item.later)), item.count))
            continue
        if not found or found[-1].count > 1:
            found.append(Segment([], 1))
        found[-1].steps.append(Executed(item, item.address))
    return found


def _written_out(items: list, later: list) -> Iterator[Executed]:
    """Yield the steps of an iteration, given those of the next one."""
    for item, after in zip_longest(items, later[: len(items)]):
        if isinstance(item, TraceStep):
            yield Executed(item, item.address, _move(item, after))
            continue
        inner = item.later or item.items
        outer = after.items if isinstance(after, Iterations) else item.items
        for n in range(item.count):
            moved = zip(_written_out(item.items, inner), _written_out(item.items, outer))
            for one, other in moved:
                address = one.address if one.address is None else one.address + n * one.move
                yield Executed(one.step, address, other.move)


def _move(step: TraceStep, after: Any) -> int:
    """Return by how many bytes most threads' address moves from one iteration to the next."""
    if step.address is None or not isinstance(after, TraceStep) or not step.on.any():
        return 0
    moves = np.sort((after.address - step.address)[step.on & after.on])
    return int(moves[len(moves) // 2]) if len(moves) else 0


def what_of(step: TraceStep, launch: GridLaunch) -> What:
    """Return what a step's cost is given for."""
    one = step.one
    if one.is_access:
        array = launch.names[step.array] if step.array >= 0 else "shared memory"
        return one.line, f"{'loads' if one.is_load else 'stores'} of {array}"
    return one.line, MULTIPLY_ADDS if step.factors else OTHER


class _ClauseList:
    """The clauses of an iteration, made from its instructions."""

    def __init__(self) -> None:
        self.clauses: list[Clause] = []
        self.issue = 0.0  # clocks of a scheduler that no clause has yet
        self.alone = 0.0  # clocks of the warp if it had the scheduler to itself
        self.loads: dict[int, list[tuple[int, Stream]]] = {}  # lines and requests, by scoreboard
        self.in_flight: dict[int, set[int]] = {}  # lines of loads, by scoreboard

    def compute(self, issue: float, alone: float) -> None:
        """Add the clocks of an instruction."""
        self.issue += issue
        self.alone += alone

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
    """The warps of traced blocks, with their code.

    Attributes
    ----------
    launch, code, board
        The launch, its code, and the board.
    segments
        What its threads do.
    group
        The threads of a block.
    """

    launch: GridLaunch
    code: SassCode
    board: CudaGpu
    segments: list[Segment]
    group: int

    def paths(self, warps: int) -> list[np.ndarray]:
        """Return the numbers of the first ``warps`` warps, those on the same path together."""
        found = np.zeros(warps, np.uint64)
        for segment in self.segments:
            for executed in segment.steps:
                step = executed.step
                active, on = (self._any(mask, warps) for mask in (step.active, step.on))
                here = np.uint64(4 * step.one.index + 1) + 2 * on.astype(np.uint64)
                found = np.where(active, found * PRIME + here, found)
        _, group = np.unique(found, return_inverse=True)
        return [np.flatnonzero(group == n) for n in range(int(group.max()) + 1)]

    def _any(self, mask: np.ndarray, warps: int) -> np.ndarray:
        return np.any(warps_of(mask, self.group)[:warps], axis=1)

    def clauses(
        self, segment: Segment, warps: np.ndarray, free: What = NOTHING
    ) -> tuple[Clause, ...]:
        """Return the clauses of an iteration of a segment by some warps on the same path, without
        what is ``free``.
        """
        first = int(warps[0])
        some = [one for one in segment.steps if warps_of(one.step.active, self.group)[first].any()]
        streams = self._streams(segment, some, warps, free)
        loading = 0
        for mask in self.code.scoreboards.values():
            loading |= mask
        made = _ClauseList()
        for n, executed in enumerate(some):
            step = executed.step
            one = step.one
            if mask := one.waits & loading:
                made.wait(mask)
            if one.name == "BAR":
                made.wait(1 << STORED)
                made.clauses.append(Clause(BARRIER))
            elif n in streams:
                mask = self.code.scoreboards.get(one.index, 1 << STORED)
                made.load(max(mask.bit_length() - 1, 0), one.line, streams[n])
            following = some[(n + 1) % len(some)].step.one.index
            self._compute(made, step, following, free)
        made.flush()
        return tuple(made.clauses)

    def _compute(self, made: _ClauseList, step: TraceStep, following: int, free: What) -> None:
        """Add the clocks of an instruction, given the number of the next one."""
        one = step.one
        issue = self.board.issue_clocks[one.kind]
        alone = max(issue, one.stall, 1)
        if not one.is_access and what_of(step, self.launch) == free:
            issue = alone = 0.0
        if one.name == "BRA" and following != one.index + 1:
            alone += BRANCH
        made.compute(issue, alone)

    def _streams(
        self, segment: Segment, some: list[Executed], warps: np.ndarray, free: What
    ) -> dict[int, Stream]:
        """Return what accesses request, by their number among the steps."""
        shared: dict[int, Stream] = {}
        memory: dict[int, WarpAccess] = {}
        each = -(-self.group // 32)
        for n, executed in enumerate(some):
            one = executed.step.one
            is_stored = one.is_access and not one.is_load and not one.is_shared
            if not one.is_access or is_stored or what_of(executed.step, self.launch) == free:
                continue
            on = warps_of(executed.step.on, self.group)[warps]
            if on.any():
                address = warps_of(executed.address, self.group)[warps]
                access = WarpAccess(one, address, on, executed.move)
                if one.is_shared:
                    shared[n] = shared_stream(access, each, self.board)
                else:
                    memory[n] = access
        found = memory_streams(list(memory.values()), segment.count > 1, self.board)
        return shared | dict(zip(memory, found))


def sectors_of(step: TraceStep, group: int, board: CudaGpu) -> tuple[int, int]:
    """Return the sectors that a step requests, and the number of warps that request any."""
    on = warps_of(step.on, group)
    found = requests_of(WarpAccess(step.one, warps_of(step.address, group), on), board)
    return len(found.sectors), int(np.count_nonzero(on.any(axis=1)))


def instructions_of(segments: list[Segment]) -> Iterator[tuple[SassInstruction, int]]:
    """Yield each instruction, and how often a warp executes it."""
    for segment in segments:
        for executed in segment.steps:
            yield executed.step.one, segment.count
