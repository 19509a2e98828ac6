"""Fast-forward through counting loops.

Most kernels spend nearly all of their time in loops of the form ``for k in range(n)``. Running such
a loop one iteration at a time would make the timing model's trace slow. ``ExtrapolatedLoop`` runs a
few iterations instead and extrapolates the others.

How it works
------------
1. The first two iterations are run. A register that gains the same amount in both is taken for an
   *induction variable*: its value at the start of any later iteration is extrapolated linearly.
2. The operands of each comparison are extrapolated in the same way. Where they cross, a lane may
   leave the loop. Running those iterations gives the *trip count*: the number of iterations that
   all lanes complete.
3. The extrapolation is verified where comparisons cross, at a sample of other iterations
   (``SAMPLED_FRACTIONS``) and at the last one. Each is run from extrapolated registers and has to
   end with the registers that the next iteration should start with. No lane may leave early, and
   each memory access must have moved by its constant step.
4. If every sample agrees, the first iteration stands for all of them. Otherwise ``NotExtrapolable``
   is raised, and the caller runs the loop one iteration at a time.

A loop whose wavefronts have different trip counts is run one iteration at a time.

Limitations
-----------
Sampling is a check, not a proof. A loop whose behavior differs in iterations that are not sampled
would be timed incorrectly. It would have to select them without a branch, and without a comparison
of numbers that change by constant steps: loops with branches of their own aren't eligible
(``can_extrapolate``).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import TEMPORARY, Control, Operation
from cypresskit.devices import WAVEFRONT
from cypresskit.trace.memory_layout import Motion
from cypresskit.trace.memory_requests import MemoryRequest, RequestRecorder
from cypresskit.trace.symbolic import (
    ALL_LANES,
    NO_LANES,
    UNKNOWN,
    ZERO,
    Comparison,
    NotExtrapolable,
    SymbolicWords,
    Value,
    unknown_value,
)
from cypresskit.trace.vliw import Processor

MAX_TRIP_COUNT = 1 << 22  # longer loops are run one iteration at a time
#: (denominator, limit): floats in steps of 1 / denominator are exact below the limit.
EXACT_FLOATS = tuple((grain, 2.0**24 / grain) for grain in (1, 2, 16, 256))
SAMPLED_FRACTIONS = (0.1, 0.382, 0.5, 0.854)  # of the trip count
MAX_EXIT_CANDIDATES = 16  # iterations that are tried as a possible loop exit
#: A loop body may hold clauses, stores and breaks. A conditional break is an ALU_BREAK clause, or
#: the sequence of four instructions below. Other control flow can't be extrapolated.
EXTRAPOLABLE_BODY = re.compile(
    r"(ALU |TEX |ALU_BREAK |ALU_PUSH_BEFORE JUMP LOOP_BREAK POP |EXPORT |MEM_\w+ )*"
)

RegisterComponent = tuple[int, int]  # register number, channel
Registers = dict[RegisterComponent, Value]
Extrapolated = Callable[[int], Value]  # a value by an iteration number
#: The memory accesses of the first iteration, by the index of their control-flow instruction, each
#: with its motion from one iteration to the next.
Accesses = dict[int, list[tuple[MemoryRequest, Motion]]]


def loop_body(code: Code, start: int) -> tuple[Control, ...]:
    """Return the control-flow instructions between a loop's start and its end."""
    return code.controls[start + 1 : code.controls[start].target - 1]


def can_extrapolate(code: Code, start: int) -> bool:
    """Return whether a loop body consists only of clauses, stores and breaks."""
    names = "".join(f"{control.name} " for control in loop_body(code, start))
    return EXTRAPOLABLE_BODY.fullmatch(names) is not None


@dataclass(eq=False)
class _Iteration:
    """One iteration that was run.

    Attributes
    ----------
    departed
        Mask of the lanes that left the loop in it (bool, one per lane).
    accesses
        Its memory accesses, by the index of their control-flow instruction.
    comparisons
        Its comparisons, in program order.
    registers
        The registers at its end.
    """

    departed: np.ndarray
    accesses: dict[int, list[MemoryRequest]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    registers: Registers = field(default_factory=dict)


class ExtrapolatedLoop:
    """A loop that the processor has just entered and that may be fast-forwarded.

    Parameters
    ----------
    processor
        Runs on ``SymbolicWords`` and ``RequestRecorder``: without data, recording addresses.
    start
        Index of the loop's LOOP_START among the code's control-flow instructions.

    Attributes
    ----------
    first, second
        The first two iterations.
    induction
        The registers that change, extrapolated.
    trip_count
        How many iterations all lanes complete.
    moving
        The accesses of the first iteration, each with its motion from one iteration to the next.
    """

    def __init__(self, processor: Processor, start: int):
        assert isinstance(processor.words, SymbolicWords)
        assert isinstance(processor.memory, RequestRecorder)
        self.processor = processor
        self.words = processor.words
        self.memory = processor.memory
        self.start = start
        self.body = loop_body(processor.code, start)
        self.before = dict(processor.registers)
        self.entry_mask = processor.masks.active

    def run(self) -> tuple[int, Accesses] | None:
        """Fast-forward all iterations that every lane completes.

        Afterwards the processor's registers are those at the end of the last of them. The active
        mask is unchanged.

        Returns
        -------
        tuple or None
            How many iterations were fast-forwarded, and their accesses. None if the loop can't be
            fast-forwarded; the processor is then unchanged.
        """
        masks = self.processor.masks
        self.processor.masked = False
        try:
            accesses, after = self._fast_forward()
        except NotExtrapolable:
            return None
        finally:
            self.processor.masked = True
            self.processor.registers = self.before
            masks.set(self.entry_mask)
        active = self.entry_mask
        all_active = np.count_nonzero(active) == self.processor.existing
        for component, value in after.items():
            old = self.before.get(component, ZERO)
            if value is not old:
                value = value if all_active else self.words.merge(value, old, active)
                self.processor.registers[component] = value
        return self.trip_count, accesses

    def _fast_forward(self) -> tuple[Accesses, Registers]:
        """Extrapolate the loop from its first two iterations, and verify the result. Return its
        accesses, and the registers after the last fast-forwarded iteration.

        Raises
        ------
        NotExtrapolable
            If a lane leaves in the first iteration, or the loop does not behave as extrapolated.
        """
        first = self.first = self._run_iteration(self.before)
        if (first.departed & self.entry_mask).any():
            raise NotExtrapolable
        second = self.second = self._run_iteration(first.registers)
        self.induction = {
            component: extrapolated(
                self.before.get(component, ZERO), first.registers[component], value, self.entry_mask
            )
            for component, value in second.registers.items()
            if component[0] < TEMPORARY and value is not self.before.get(component)
        }
        trip_count = self.trip_count = self._trip_count()
        accesses = {
            control: [
                (now, self._motion(now, then))
                for now, then in zip(of_control, second.accesses[control], strict=True)
            ]
            for control, of_control in first.accesses.items()
        }
        if trip_count <= 2:  # these were run
            return accesses, (first, second)[trip_count - 1].registers
        self.moving = [*chain.from_iterable(accesses.values())]
        sampled = {int(trip_count * fraction) for fraction in SAMPLED_FRACTIONS}
        sampled |= {n for n in self._crossings()[:MAX_EXIT_CANDIDATES] if n < trip_count}
        for iteration in sampled:
            self._verify(iteration)
        return accesses, self._verify(trip_count - 1).registers

    def _registers_at(self, iteration: int) -> Registers:
        """Return the registers at the start of an iteration, extrapolated."""
        return self.before | {
            component: variable(iteration) for component, variable in self.induction.items()
        }

    def _run_iteration(self, registers: Registers) -> _Iteration:
        """Run the loop body once from ``registers``, without leaving the loop.

        Lanes that would leave are only recorded, in ``departed``: the active mask stays the same.
        """
        processor, memory = self.processor, self.memory
        active = processor.masks.active
        iteration = _Iteration(np.zeros(len(active), bool))
        processor.registers = dict(registers)
        self.words.compared = iteration.comparisons
        try:
            for n, control in enumerate(self.body, self.start + 1):
                memory.noted = []
                if control.bundles or control.fetches:
                    predicate = processor.clause(control)
                    if predicate is not None:
                        passed = self.words.passed(*predicate, active)
                        # ALU_BREAK leaves where its test fails, ALU_PUSH_BEFORE where it passes.
                        iteration.departed |= passed == (control.name == "ALU_PUSH_BEFORE")
                elif control.store is not None:
                    processor.store(control.store)
                iteration.accesses[n] = memory.noted
        finally:
            self.words.compared = None
        iteration.registers = processor.registers
        return iteration

    def _trip_count(self) -> int:
        """Return how many iterations all lanes complete.

        The candidates for a loop exit are the iterations in which the operands of a comparison
        cross. They are run in ascending order, until a lane leaves.

        Raises
        ------
        NotExtrapolable
            If a lane leaves in none of the first ``MAX_EXIT_CANDIDATES`` candidates, or not one of
            each wavefront in the same: an endless loop, or an exit that can't be extrapolated.
        """
        left = self._left(self.second)
        trip_count = 1
        for candidate in self._crossings()[:MAX_EXIT_CANDIDATES]:
            if left.any():
                break
            trip_count = candidate
            left = self._left(self._run_iteration(self._registers_at(candidate)))
        if not left.any() or (left != any_lane(self.entry_mask)).any():
            raise NotExtrapolable
        return trip_count

    def _left(self, iteration: _Iteration) -> np.ndarray:
        """Return a mask of the wavefronts of which a lane left the loop in an iteration."""
        return any_lane(iteration.departed & self.entry_mask)

    def _crossings(self) -> list[int]:
        """Return the iterations in which a comparison may change its outcome, in ascending order.

        The operands are extrapolated linearly from iterations 0 and 1. Depending on the relation,
        the outcome changes in the iteration in which they meet or in the one after it.
        """
        crossings: set[int] = set()
        for now, then in zip(self.first.comparisons, self.second.comparisons, strict=True):
            operands = now.left, now.right, then.left, then.right
            if any(value.loaded is not NO_LANES for value in operands):
                continue
            left, right, later_left, later_right = (
                _as_float64(value, now.operation) for value in operands
            )
            start = left - right
            step = later_left - later_right - start
            with np.errstate(all="ignore"):
                crossing = np.floor(np.where(step != 0, -start / step, 0))
            crossing = _active_values(crossing, self.entry_mask)
            found = crossing[(crossing >= 1) & (crossing <= MAX_TRIP_COUNT)]
            for crossing in np.unique(found).astype(int).tolist():
                crossings |= {crossing, crossing + 1}
        return sorted(n for n in crossings if n >= 2)

    def _motion(self, now: MemoryRequest, then: MemoryRequest) -> Motion:
        """Return how an access moves from the first iteration (``now``) to the second (``then``).

        Raises
        ------
        NotExtrapolable
            If lanes move by different steps, or by a step that isn't a multiple of the grain.
        """
        steps = [0, 0]
        for n, (a, b) in enumerate(zip(now.rows, then.rows, strict=True)):
            if a is b or self.trip_count == 1:
                continue
            step = _active_values(now.numbers(b) - now.numbers(a), self.entry_mask)
            if not (step == step[0]).all() or step[0] % now.grain:
                raise NotExtrapolable
            steps[n] = int(step[0])
        x, y = steps
        return Motion(x, y, self.trip_count)

    def _verify(self, iteration: int) -> _Iteration:
        """Run one iteration from extrapolated registers, and compare it with the extrapolation.

        Raises
        ------
        NotExtrapolable
            If a lane leaves, or a register or an access is not where it should be.
        """
        lanes = self.entry_mask
        iteration = max(iteration, 1)  # that the first one agrees is given
        result = self._run_iteration(self._registers_at(iteration))
        if self._left(result).any():
            raise NotExtrapolable
        for component, variable in self.induction.items():
            expected = variable(iteration + 1)
            actual = result.registers[component]
            if expected.loaded is NO_LANES and not (
                actual.loaded is NO_LANES and ((expected.bits == actual.bits) | ~lanes).all()
            ):
                raise NotExtrapolable
        requests = chain.from_iterable(result.accesses.values())
        for now, (then, motion) in zip(requests, self.moving, strict=True):
            for a, b, step in zip(now.rows, then.rows, motion):
                if a is b and not step:
                    continue
                if ((now.numbers(a) != now.numbers(b) + iteration * step) & lanes).any():
                    raise NotExtrapolable
        return result


def extrapolated(first: Value, second: Value, third: Value, active: np.ndarray) -> Extrapolated:
    """Return a register component as a function of the number of an iteration, at its start. It
    isn't called for the first iteration.

    Parameters
    ----------
    first, second, third
        Its values at the start of the first three iterations.
    active
        Mask of the lanes for which the extrapolation has to hold.

    Notes
    -----
    The value is one of: the same in each iteration; the start value plus a step per iteration, in
    float32 or int32; or unknown. A float grows exactly only up to a limit (``EXACT_FLOATS``);
    beyond it, the value is unknown, too. A loop that uses an unknown value raises
    ``NotExtrapolable``.
    """
    if third.loaded is ALL_LANES or first is second is third:
        return lambda iteration: third
    if any(value.loaded is not NO_LANES for value in (first, second, third)):
        return lambda iteration: unknown_value(UNKNOWN)
    for narrow, wide in ((np.float32, np.float64), (np.int32, np.int64)):
        a, b, c = (value.bits.view(narrow).astype(wide) for value in (first, second, third))
        if not _active_values(c - b == b - a, active).all():
            continue
        if narrow is np.int32:
            return lambda iteration: Value((a + iteration * (b - a)).astype(np.uint32))
        for grain, limit in EXACT_FLOATS:
            if not any((_active_values(row, active) * grain % 1).any() for row in (a, b)):
                return partial(_exact_float, a, b - a, limit)
    return lambda iteration: unknown_value(UNKNOWN)


def _exact_float(start: np.ndarray, step: np.ndarray, limit: float, iteration: int) -> Value:
    """Return a float at the start of an iteration, unknown from the ``limit`` on."""
    number = start + iteration * step
    bits = number.astype(np.float32).view(np.uint32)
    inexact = np.abs(number) >= limit
    return Value(bits, inexact, UNKNOWN) if inexact.any() else Value(bits)


def _as_float64(value: Value, comparison: Operation) -> np.ndarray:
    """Return an operand as a comparison interprets its bits: float, signed or unsigned."""
    if comparison.row.kind == "float":
        return value.bits.view(np.float32).astype(np.float64)
    integer = np.uint32 if "UINT" in comparison.name else np.int32
    return value.bits.view(integer).astype(np.float64)


def _active_values(row: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the active lanes of a row; a row of one element stands for all lanes."""
    return row[active] if row.size > 1 else row


def any_lane(lanes: np.ndarray) -> np.ndarray:
    """Reduce a mask of lanes to a mask of the wavefronts that have any of them."""
    return np.any(lanes.reshape(-1, WAVEFRONT), axis=1)
