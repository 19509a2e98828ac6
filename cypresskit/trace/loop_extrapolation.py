"""Fast-forward loops whose iterations do the same.

Most kernels spend nearly all of their time in loops of the form ``for k in range(n)``. Running such
a loop one iteration at a time would make the timing model's trace slow. A ``RunningLoop`` joins
iterations that do the same in one segment, and skips most of them.

1. Iterations do the same if they run the same instructions in the same lanes, and each memory
   access moves by a constant step from one to the next. They are joined. Where single ones don't,
   as with two buffers in turn, two, three or four together may count as an iteration.
2. After two, the next one is run with a ``Forecast``. It proves for how many more all comparisons
   have the same outcome, and all addresses and registers grow by constant steps. These are skipped,
   but for the last, which is run and has to do the same.
3. What can't be known of the registers after them is marked. If it is used later,
   ``NotExtrapolable`` is raised, and the caller traces the launch again, one iteration at a time.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from cypresskit.devices import FIRST_TEMPORARY
from cypresskit.trace.forecast import NO_ITERATIONS, Forecast, of_lanes
from cypresskit.trace.memory_requests import MemoryRequest
from cypresskit.trace.symbolic import BENT, ZERO, Growth, NotExtrapolable, Value
from cypresskit.trace.vliw import Processor

MAX_TRIP_COUNT = 1 << 22  # what goes on for longer is taken for a loop without an end
MAX_PERIOD = 4  # iterations that are taken together
MAX_JOIN_ATTEMPTS = 4  # to join iterations before another number of them is taken together

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
    before, begins
        The registers at the start of the iteration before the current one, and of this one.
    bent
        Registers that didn't grow as expected, in these iterations.
    is_even
        Whether these iterations may prove that others do the same.
    is_ahead
        Whether iterations were skipped just before the current one.
    period, part
        How many iterations are taken together as one, and how many of these have been run.
    alone
        How many times in a row no more than two iterations were joined.
    """

    start: int
    members: np.ndarray
    is_joined: bool
    before: Registers
    begins: Registers = field(default_factory=dict)
    run: int = 0
    executed: list[Executed] = field(default_factory=list)
    first: list[Executed] = field(default_factory=list)
    steps: list[tuple[int, ...]] = field(default_factory=list)
    count: int = 0
    bent: set[RegisterComponent] = field(default_factory=set)
    is_even: bool = True
    is_ahead: bool = False
    period: int = 1
    part: int = 0
    alone: int = 0

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
        if self.count > 2:  # any two that run the same instructions are joined
            self.alone = 0
        return True

    def restart(self) -> None:
        """Make the current iteration the first of those that do the same."""
        self.first, self.count, self.bent, self.is_even = self.executed, 1, set(), True
        self.alone += 1
        if self.alone > MAX_JOIN_ATTEMPTS:
            self.period, self.alone = self.period % MAX_PERIOD + 1, 0

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
                gone = [of_lanes(row, now.active) for row in gone]
                if any((row != row[0]).any() or row[0] % request.grain for row in gone):
                    return None
                moves.append(tuple(int(row[0]) for row in gone))
        return moves

    def end_iteration(self, processor: Processor) -> None:
        """At the end of an iteration, skip those that will do the same, if it has proved this. If
        it hasn't, let the next one try.
        """
        words, lanes = processor.words, processor.masks.active
        ends, forecast = processor.registers, words.forecast
        forget_growths(processor)
        now = processor.registers
        if self.count > 2 and forecast is not None and np.array_equal(forecast.lanes, lanes):
            if self._is_proven(forecast, ends) and 1 < forecast.horizon <= MAX_TRIP_COUNT:
                skipped = int(forecast.horizon) - 1
                now = {place: forecast.later(value, skipped) for place, value in ends.items()}
                self.count += skipped
                self.is_ahead = True
            self.is_even = forecast.horizon != NO_ITERATIONS  # else it never proves anything
        processor.registers = now
        if self.count > 1 and self.is_even and not self.is_ahead:
            words.forecast = forecast = Forecast(lanes)
            processor.registers = {
                place: replace(value, growth=self._expected(place, value, forecast))
                for place, value in now.items()
            }
        self.before, self.begins = now, processor.registers

    def _expected(
        self, place: RegisterComponent, value: Value, forecast: Forecast
    ) -> Growth | None:
        """Return how a register is expected to grow in the iteration that begins."""
        return (
            BENT if place in self.bent else forecast.expected(self.before.get(place, ZERO), value)
        )

    def _is_proven(self, forecast: Forecast, ends: Registers) -> bool:
        """Return whether all registers ended as the next iteration should start. Those that didn't
        are bent from now on.
        """
        begins = {
            place: self.begins.get(place, ZERO) for place in ends if place[0] < FIRST_TEMPORARY
        }
        wrong = {
            place for place, start in begins.items() if not forecast.is_next(start, ends[place])
        }
        is_proven = wrong <= self.bent and all(
            forecast.is_loaded_alike(start, ends[place]) for place, start in begins.items()
        )
        self.bent |= wrong
        return is_proven


def forget_growths(processor: Processor) -> None:
    """End a forecast."""
    processor.words.forecast = None
    processor.registers = {
        place: value if value.growth is None else replace(value, growth=None)
        for place, value in processor.registers.items()
    }
