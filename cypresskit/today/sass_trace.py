"""Follow a kernel's machine code for the threads of some blocks: which instructions each warp
issues, and which addresses it accesses.

Threads whose paths differ take turns: those at the lowest instruction go on, until they meet the
others. Once three iterations of a loop do the same, and registers grow evenly, iterations are
skipped until a comparison has another result (``even_iterations``). The one after them is followed,
and has to be at the expected addresses. Data aren't known: a branch or an address that depends on
data is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.sass import CONTROL_FLOW, STORES, SassCode, SassInstruction
from cypresskit.today.sass_threads import (
    MASK,
    NotTimed,
    Registers,
    Values,
    compute,
    signed,
)

WARP = 32
SHARED_BASE = 1024  # the first byte of a block's shared memory
MAX_STEPS = 15_000  # instructions of a loop that are followed
MAX_SKIPPED = 1 << 20  # iterations


@dataclass(eq=False)
class TraceStep:
    """An instruction that is executed.

    Attributes
    ----------
    one
        The instruction.
    active, on
        Masks of the threads that are there, and of those that execute it: (blocks, warps, threads).
    value
        Of an access, its first byte for each thread; of a comparison, by how much the first number
        is larger.
    array
        Of an access of memory: the array, the number of an argument.
    """

    one: SassInstruction
    active: np.ndarray
    on: np.ndarray
    value: Any = None
    array: int = -1


@dataclass(eq=False)
class Segment:
    """Iterations of a loop that do the same, or what lies between loops.

    Attributes
    ----------
    steps, later, apart
        The steps of an iteration, those of the last one, and how many iterations later that is.
    is_loop
        Whether it is in a loop.
    count
        How many iterations there are.
    """

    steps: list[TraceStep]
    later: list[TraceStep]
    apart: int = 1
    is_loop: bool = False
    count: int = 1

    def moves(self) -> Iterator[tuple[TraceStep, int]]:
        """Yield each step, and by how many bytes most addresses move with each iteration."""
        for step, later in zip(self.steps, self.later):
            move = 0
            if step.one.is_access and step.on.any():
                move = int(np.median((later.value - step.value)[step.on])) // self.apart
            yield step, move


def signature(steps: list[TraceStep]) -> list[tuple]:
    """Return what two iterations that do the same have in common."""
    return [
        (
            step.one.index,
            step.array,
            step.active.tobytes(),
            step.one.name != "BRA" and step.on.tobytes(),
        )
        for step in steps
    ]


def steps_of(segments: list[Segment]) -> Iterator[tuple[TraceStep, int]]:
    """Yield each step of a trace, and how often it is repeated."""
    for segment in segments:
        for step in segment.steps:
            yield step, segment.count


def even_iterations(segment: Segment) -> int:
    """Return for how many more iterations all comparisons have the same result."""
    count = MAX_SKIPPED
    for step, later in zip(segment.steps, segment.later):
        if "ISETP" in step.one.name:
            growth = (later.value - step.value) // segment.apart
            ends = later.on & (growth != 0) & (later.value * growth <= 0)
            left = (abs(later.value[ends]) - 1) // abs(growth[ends])
            count = min([count, *left.tolist()])
    return max(count, 0)


def moves_on(segment: Segment, steps: list[TraceStep], apart: int) -> bool:
    """Return whether steps that do the same as a loop's last iteration access what they should:
    they are those of the iteration ``apart`` after it.
    """
    return segment.count == 1 or all(
        np.array_equal(
            segment.apart * (now.value - later.value)[now.on],
            apart * (later.value - step.value)[now.on],
        )
        for step, later, now in zip(segment.steps, segment.later, steps)
        if now.one.is_access
    )


class Tracer:
    """Threads that follow a kernel's machine code, in whole warps: the last one of a block may have
    threads that are never active.

    Parameters
    ----------
    code, launch
        The code, and its launch.
    blocks
        For each block that is followed, its place in the grid: (x, y, z) in rows.
    """

    def __init__(self, code: SassCode, launch: GridLaunch, blocks: np.ndarray):
        self.code, self.launch = code, launch
        numbers = np.arange(-(-launch.group // WARP) * WARP, dtype=np.int64).reshape(-1, WARP)
        given = {f"c{n}": np.array([word], np.int64) for n, word in launch.constants.items()}
        given["SR_CgaCtaId"] = np.array([0], np.int64)
        places = np.unravel_index(numbers % launch.group, launch.threads, order="F")
        for axis, place, block in zip("XYZ", places, blocks.T):
            given[f"SR_TID.{axis}"] = place.astype(np.int64)
            given[f"SR_CTAID.{axis}"] = block[:, np.newaxis, np.newaxis]
        self.registers = Registers(given)
        everyone = np.tile(numbers < launch.group, (len(blocks), 1, 1))
        self.pending = {0: everyone}  # the threads that go on at each instruction
        self.segments: list[Segment] = []

    def run(self) -> list[Segment]:
        """Return the trace. Raises ``NotTimed``."""
        loops = self.code.loops
        while self.pending:
            at = min(self.pending)
            if at in loops:
                self._follow_loop(at, loops[at] + 1)
            else:
                ends = [header for header in loops if header > at]
                steps = self._follow(min(ends, default=len(self.code.instructions)))
                self.segments.append(Segment(steps, steps))
        return self.segments

    def _follow(self, end: int, header: int = -1) -> list[TraceStep]:
        """Follow threads until all are at a loop's header, or at an instruction from ``end`` on."""
        steps = [self._step()]
        while self.pending and header < min(self.pending) < end:
            steps.append(self._step())
        return steps

    def _follow_loop(self, header: int, end: int) -> None:
        """Follow a loop until no thread is in it."""
        values = self.registers
        followed = skipped = 0
        segment = None
        growth: dict[str, Values] = {}  # of registers in the last iteration
        while header in self.pending:
            before = dict(values)
            steps = self._follow(end, header)
            is_same = segment is not None and signature(segment.later) == signature(steps)
            if segment and is_same and not moves_on(segment, steps, 1 + skipped):
                if skipped:
                    raise NotTimed(
                        f"line {steps[0].one.line} is in a loop whose addresses don't grow evenly:"
                        " let each be a multiple of k, plus what doesn't depend on k"
                    )
                is_same = False
            if segment and is_same:
                segment.steps, segment.later = segment.later, steps
                segment.apart = 1 + skipped
                segment.count += 1
            else:
                segment = Segment(steps, steps, is_loop=True)
                self.segments.append(segment)
            earlier, growth = growth, {name: values[name] - value for name, value in before.items()}
            is_even = all(np.all(grown == earlier.get(name, 0)) for name, grown in growth.items())
            skipped = 0
            if segment.count >= 3 and is_even:
                skipped = max(even_iterations(segment) - 1, 0)
                segment.count += skipped
                for name, grown in growth.items():
                    later = values[name] + skipped * grown & MASK
                    values[name] = np.where(grown, later, values[name])
            followed += len(steps)
            if followed > MAX_STEPS:
                raise NotTimed(
                    f"iterations of its loop over k don't repeat within {MAX_STEPS:,} instructions:"
                    " let all of them do the same, and more threads share the work"
                )

    # -- single instructions

    def _step(self) -> TraceStep:
        """Execute the first instruction at which threads are, and note where they go on."""
        at = min(self.pending)
        active = on = self.pending.pop(at)
        one = self.code.instructions[at]
        for condition in one.conditions:
            on = on & (self.registers.known(condition, on, one.line) > 0)
        step = TraceStep(one, active, on)
        if one.is_access:
            self._access(step)
        elif "ISETP" in one.name:
            first, second = map(self.registers.read, one.sources[:2])
            step.value = np.broadcast_to(signed(first - second), on.shape)
        if one.name not in CONTROL_FLOW + STORES:
            compute(self.registers, one, on)
        if one.name == "BRA":
            self._go(one.target, on)
        leaves = on if one.name in ("BRA", "EXIT") else np.zeros_like(on)
        self._go(at + 1, active & ~leaves)
        return step

    def _go(self, at: int, some: np.ndarray) -> None:
        if some.any():
            self.pending[at] = self.pending.get(at, some) | some

    def _access(self, step: TraceStep) -> None:
        """Note the address of an access, and its array. Raises ``ValueError`` outside of arrays."""
        one = step.one
        terms = [self.registers.known(source, step.on, one.line) for source in one.sources]
        step.value = np.broadcast_to(sum(terms) & MASK, step.on.shape)
        some = step.value[step.on]
        if not len(some):
            return
        first = int(some.min())
        last = int(some.max()) + one.size
        if not one.is_shared:
            step.array = self.launch.array_at(one.line, first, last)
        elif first < SHARED_BASE or last > SHARED_BASE + self.code.shared_bytes:
            raise NotTimed(f"line {one.line} accesses an element outside its shared array")
