"""Fast-forward loops whose iterations do the same.

Most kernels spend nearly all of their time in loops of the form ``for k in range(n)``. Running such
a loop one iteration at a time would make the timing model's trace slow. A ``RunningLoop`` joins
iterations that do the same in one segment, and skips most of them.

How it works
------------
1. Iterations do the same if they run the same instructions in the same lanes, and each memory
   access moves by a constant step from one to the next.
2. A register that gains the same amount in two such iterations is taken for an *induction
   variable*: its value at the start of any later iteration is extrapolated linearly.
3. The operands of each comparison are extrapolated in the same way. Until they cross, no lane
   leaves the loop, and all iterations are taken to do the same. They are skipped, but at most
   ``SKIPPED`` times as many at once as there were before, and not the last one.
4. The iteration after the skipped ones is run, from extrapolated registers. It has to do the same,
   at the addresses that it should have by then. Otherwise, and if a register that can't be
   extrapolated is used, ``NotExtrapolable`` is raised, and the caller traces the launch again, one
   iteration at a time.

Limitations
-----------
Running some iterations is a check, not a proof. A loop whose behavior differs in iterations that
are skipped would be timed incorrectly. It would have to select them without a comparison of numbers
that change by constant steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from cypresskit.compiler.assembly import TEMPORARY, Operation
from cypresskit.trace.memory_requests import MemoryRequest
from cypresskit.trace.symbolic import (
    ALL_LANES,
    NO_LANES,
    UNKNOWN,
    ZERO,
    Comparison,
    NotExtrapolable,
    Value,
    unknown_value,
)
from cypresskit.trace.vliw import Processor

MAX_TRIP_COUNT = 1 << 22  # longer loops are run one iteration at a time
SKIPPED = 15  # times as many iterations as have passed
LEAST_FLOAT = np.finfo(np.float32).tiny

RegisterComponent = tuple[int, int]  # register number, channel
Registers = dict[RegisterComponent, Value]


@dataclass(frozen=True, eq=False)
class Executed:
    """A control-flow instruction that was executed.

    Attributes
    ----------
    at
        Its index.
    active, members
        Masks of the lanes that executed it, and of their wavefronts.
    requests
        Its accesses to memory.
    """

    at: int
    active: np.ndarray
    members: np.ndarray
    requests: list[MemoryRequest]


@dataclass(eq=False)
class RunningLoop:
    """A loop that is being run, and its last iterations that did the same.

    Attributes
    ----------
    start
        Its LOOP_START among the control-flow instructions.
    members
        Mask of the wavefronts that are still in it.
    is_joined
        Whether iterations that do the same are joined.
    run
        The number of iterations that were run.
    executed
        The instructions of the current iteration.
    first, steps, count
        The instructions of the first iteration of those that did the same; the steps of each
        access, in texels, elements or bytes; and the number of these iterations.
    ends
        The registers at the end of some of them, which follow one another.
    comparisons
        Those of the last two.
    is_ahead
        Whether iterations were skipped just before the current one.
    """

    start: int
    members: np.ndarray
    is_joined: bool
    ends: list[Registers]
    run: int = 0
    executed: list[Executed] = field(default_factory=list)
    first: list[Executed] = field(default_factory=list)
    steps: list[tuple[int, ...]] = field(default_factory=list)
    count: int = 0
    comparisons: list[list[Comparison]] = field(default_factory=list)
    is_ahead: bool = False

    def continues(self) -> bool:
        """Return whether the current iteration does the same as those before, and count it.

        Raises
        ------
        NotExtrapolable
            If it doesn't, and iterations were skipped just before it.
        """
        moves = self._moves() if self.count else None
        if self.count == 1 and moves is not None:
            self.steps = moves
        if moves is None or moves != [tuple(self.count * n for n in step) for step in self.steps]:
            if self.is_ahead:
                raise NotExtrapolable
            return False
        self.count += 1
        self.is_ahead = False
        return True

    def _moves(self) -> list[tuple[int, ...]] | None:
        """Return by how much each access has moved since the first iteration; None if other
        instructions were executed, or if lanes move by different steps, or by a step that isn't a
        multiple of the grain.
        """
        if len(self.executed) != len(self.first):
            return None
        moves = []
        for now, then in zip(self.executed, self.first):
            if now.at != then.at or not np.array_equal(now.active, then.active):
                return None
            for request, earlier in zip(now.requests, then.requests):
                rows = zip(request.rows, earlier.rows)
                gone = [request.numbers(row) - request.numbers(before) for row, before in rows]
                gone = [_active_values(row, now.active) for row in gone]
                if any((row != row[0]).any() or row[0] % request.grain for row in gone):
                    return None
                moves.append(tuple(int(row[0]) for row in gone))
        return moves

    def skip(self, processor: Processor, comparisons: list[Comparison]) -> None:
        """Skip iterations that will do the same, at the end of one: change the processor's
        registers. ``comparisons`` has those of this iteration.
        """
        masks, now = processor.masks, processor.registers
        self.ends = [*self.ends[-2:], now]
        self.comparisons = [*self.comparisons[-1:], comparisons]
        if self.count < 2 or len(self.ends) < 3:
            return
        most = min(SKIPPED * self.count, MAX_TRIP_COUNT - self.count)
        skipped = min(most, self._even_iterations(masks.active) - 1)
        if skipped < 1:
            return
        later = dict(now)
        for component, value in now.items():
            values = [end.get(component, ZERO) for end in self.ends]
            if component[0] < TEMPORARY and value is not values[0]:
                later[component] = extrapolated(values, masks.active, 2 + skipped)
                if masks.count < processor.existing:
                    merge = processor.words.merge
                    later[component] = merge(later[component], value, masks.active)
        processor.registers = later
        self.ends, self.comparisons = [later], []
        self.count += skipped
        self.is_ahead = True

    def _even_iterations(self, lanes: np.ndarray) -> int:
        """Return for how many more iterations all comparisons have the same outcome in some lanes,
        extrapolated linearly from the last two.
        """
        count = MAX_TRIP_COUNT
        for earlier, later in zip(*self.comparisons, strict=True):
            operands = later.left, later.right, earlier.left, earlier.right
            left, right, *others = (_as_float64(value, later.operation) for value in operands)
            gap = left - right
            growth = gap - (others[0] - others[1])
            unknown = reduce(np.logical_or, (value.loaded for value in operands))
            ends = lanes & ~unknown & (growth != 0) & (growth * gap <= 0)
            further = np.broadcast_to(np.ceil(abs(gap) / abs(growth)) - 1, ends.shape)
            count = min(count, int(further[ends].min(initial=count)))
        return count


def extrapolated(values: Sequence[Value], active: np.ndarray, iteration: int) -> Value:
    """Return a register component at the end of an iteration.

    Parameters
    ----------
    values
        Its values at the ends of iterations 0, 1 and 2.
    active
        Mask of the lanes for which the extrapolation has to hold.
    iteration
        The number of the iteration.

    Notes
    -----
    The value is one of: the same in each iteration; the first value plus a step per iteration, in
    float32 or int32; or unknown. A float that grows exactly to two iterations that follow one
    another was never rounded. A loop that uses an unknown value raises ``NotExtrapolable``.
    """
    if values[2].loaded is ALL_LANES:
        return values[2]
    kinds = (np.float32, np.float64), (np.int32, np.int64)
    for narrow, wide in kinds if all(value.loaded is NO_LANES for value in values) else ():
        a, b, c = (value.bits.view(narrow).astype(wide) for value in values)
        step = b - a
        later = a + iteration * step
        is_good = c - b == step
        if narrow is np.float32:  # subnormal ones are integers
            for number in (a, b):
                is_good = is_good & ((number == 0) | (abs(number) >= LEAST_FLOAT))
        if not _active_values(is_good, active).all():
            continue
        for end in (later, later + step) if narrow is np.float32 else ():
            if _active_values(end.astype(narrow) != end, active).any():
                return unknown_value(UNKNOWN)
        return Value(later.astype(narrow).view(np.uint32))
    return unknown_value(UNKNOWN)


def _as_float64(value: Value, comparison: Operation) -> np.ndarray:
    """Return an operand as a comparison interprets its bits: float, signed or unsigned."""
    if comparison.row.kind == "float":
        return value.bits.view(np.float32).astype(np.float64)
    integer = np.uint32 if "UINT" in comparison.name else np.int32
    return value.bits.view(integer).astype(np.float64)


def _active_values(row: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the active lanes of a row; a row of one element stands for all lanes."""
    return row[active] if row.size > 1 else row
