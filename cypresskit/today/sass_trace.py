"""Follow a kernel's machine code for many threads at once: which instructions each warp issues, and
which addresses it accesses.

Threads whose paths differ take turns: those at the lowest instruction go on, until they meet the
others. A loop's first three iterations are followed. If all that its instructions compute grows
evenly, the iterations up to the first one that differs are skipped (``Tracer._skip``). Data aren't
known: a branch or an address that depends on data is refused.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.sass import SassCode, SassInstruction
from cypresskit.today.sass_threads import (
    LOADED,
    MASK,
    MEANING,
    PRODUCT,
    PRODUCTS,
    NotTimed,
    Registers,
    Values,
    are_factors,
    compute,
    following,
    meaning_of,
)

SHARED_BASE = 1024  # the first byte of a block's shared memory
MAX_RUNS = 40  # of unlike iterations of a loop
MAX_STEPS = 15_000  # instructions that are followed
TRIED = 2048  # iterations that are tried at once
TRIED_THREADS = 24
AXES = "XYZ"


@dataclass(eq=False)
class TraceStep:
    """An instruction that is executed.

    Attributes
    ----------
    one
        The instruction.
    active, on
        Masks of the threads that are there, and of those that execute it.
    read
        What it reads, if that is known; of an access, the terms of its address.
    address
        Of an access: the first byte for each thread.
    arrays
        The arrays that it accesses, or whose elements shared memory has: numbers of arguments.
    factors
        Of a multiply-add of two elements: the steps that loaded them.
    is_result
        Of a store: whether it stores sums of products.
    """

    one: SassInstruction
    active: np.ndarray
    on: np.ndarray
    read: list[Values]
    address: Any = None
    arrays: frozenset[int] = frozenset()
    factors: tuple = ()
    is_result: bool = False

    @property
    def signature(self) -> tuple:
        """What two iterations that do the same have in common."""
        on = b"" if self.one.name == "BRA" else self.on.tobytes()
        return self.one.index, self.active.tobytes(), on


@dataclass(eq=False)
class Segment:
    """Iterations of a loop that do the same, or what lies between loops.

    Attributes
    ----------
    loop
        The loop's first instruction; -1 between loops.
    iterations
        The steps of the first three.
    count
        How many there are.
    """

    loop: int
    iterations: list[list[TraceStep]]
    count: int = 1

    @property
    def steps(self) -> list[TraceStep]:
        """The steps of an iteration: registers have their usual values from the second one on."""
        return self.iterations[-2:][0]

    def moves(self) -> Iterator[tuple[TraceStep, int]]:
        """Yield each step, and by how many bytes most addresses move with each iteration."""
        for step, later in zip(self.steps, self.iterations[-1]):
            move = 0
            if step.address is not None and step.on.any():
                moves = np.sort((later.address - step.address)[step.on])
                move = int(moves[len(moves) // 2])
            yield step, move


def signature(steps: list[TraceStep]) -> tuple:
    return tuple(step.signature for step in steps)


def steps_of(segments: list[Segment]) -> Iterator[tuple[TraceStep, int]]:
    """Yield each step of a trace, and how often it is repeated."""
    for segment in segments:
        for step in segment.steps:
            yield step, segment.count


class Tracer:
    """Threads that follow a kernel's machine code.

    Parameters
    ----------
    code, launch
        The code, and its launch.
    blocks
        For each block that is followed, its place in the grid: (x, y, z) in rows.
    """

    def __init__(self, code: SassCode, launch: GridLaunch, blocks: np.ndarray):
        self.code, self.launch = code, launch
        group = math.prod(launch.threads)
        places = np.unravel_index(np.arange(group), launch.threads, order="F")
        given = {f"c{byte}": np.array([word]) for byte, word in launch.constants.items()}
        given["SR_CgaCtaId"] = np.array([0])
        for n, axis in enumerate(AXES):
            given[f"SR_TID.{axis}"] = np.tile(places[n], len(blocks))
            given[f"SR_CTAID.{axis}"] = np.repeat(blocks[:, n], group)
        self.registers = Registers(given)
        everyone = np.ones(group * len(blocks), bool)
        self.pending = {0: everyone}  # the threads that go on at each instruction
        self.segments: list[Segment] = []
        self.steps: list[TraceStep] = []  # since the last segment
        self.loop = -1
        #: A loop's last three iterations, and registers and threads at the beginning of each
        self.recent: list[list[TraceStep]] = []
        self.states: list[tuple[dict[str, Values], np.ndarray]] = []
        self.loads: list[TraceStep] = []
        self.stored: set[tuple[int, int, frozenset[int]]] = set()  # bytes of shared memory, arrays

    def run(self) -> list[Segment]:
        """Return the trace. Raises ``NotTimed``."""
        for _ in range(MAX_STEPS):
            if not self.pending:
                self._end()
                return self.segments
            at = min(self.pending)
            if self.loop >= 0 and not self.loop <= at <= self.code.loops[self.loop]:
                self._end()
                self.loop = -1
            active = self.pending.pop(at)
            if at in self.code.loops:
                self._begin_iteration(at, active)
            self._follow(self.code.instructions[at], active)
        raise NotTimed(
            f"iterations of its loop over k don't repeat within {MAX_STEPS:,} instructions: let all"
            " of them do the same, and more threads share the work"
        )

    # -- single instructions

    def _follow(self, one: SassInstruction, active: np.ndarray) -> None:
        """Execute an instruction, and note where its threads go on."""
        on = active
        conditions = [one.guard] if one.guard else []
        if one.name == "BRA":
            conditions += one.operands[:-1]
        for condition in conditions:
            on = on & (self.registers.known(condition, on, one.line) > 0)
        step = TraceStep(one, active, on, [])
        self.steps.append(step)
        if one.name == "BRA":
            self._go(int(one.operands[-1].value), on)
        elif one.name != "EXIT":
            self._execute(step)
        leaves = on if one.name in ("BRA", "EXIT") else np.zeros_like(on)
        self._go(one.index + 1, active & ~leaves)

    def _go(self, at: int, some: np.ndarray) -> None:
        if some.any():
            self.pending[at] = self.pending.get(at, some) | some

    def _execute(self, step: TraceStep) -> None:
        one = step.one
        if one.is_access:
            self._access(step)
            return
        if one.name in ("BSSY", "BSYNC", "BAR", "NOP", "WARPSYNC"):
            return
        if one.name in PRODUCTS:
            first, second = (self.registers.word(factor.value) for factor in one.operands[1:3])
            both = np.broadcast_to(are_factors(first, second), step.on.shape) & step.on
            if both.any():
                marks = (np.broadcast_to(word, step.on.shape)[both][0] for word in (first, second))
                step.factors = tuple(self.loads[LOADED - mark] for mark in marks)
        step.read = compute(self.registers, one, step.on)

    def _access(self, step: TraceStep) -> None:
        """Note the address of an access, and load or store."""
        one = step.one
        operands = list(one.operands)
        data = operands.pop(0 if one.is_load else -1)
        step.read = [self.registers.known(operand, step.on, one.line) for operand in operands]
        step.address = np.broadcast_to(sum(step.read) & MASK, step.on.shape)
        some = step.address[step.on]
        if not len(some):
            return
        first = int(some.min())
        last = int(some.max()) + one.size
        if one.is_shared:
            end = SHARED_BASE + self.code.shared_bytes + self.launch.shared
            if first < SHARED_BASE or last > end:
                raise NotTimed(f"line {one.line} accesses an element outside its shared array")
        else:
            step.arrays = frozenset([self.launch.array_at(one.line, first, last)])
        if one.is_load:
            self._load(step, str(data.value), first, last)
        else:
            self._store(step, self.registers.word(data.value), first, last)

    def _load(self, step: TraceStep, name: str, first: int, last: int) -> None:
        if step.one.is_shared:
            there = (arrays for begin, end, arrays in self.stored if begin < last and first < end)
            step.arrays = frozenset().union(*there)
        mark = np.array([LOADED - len(self.loads)])
        self.loads.append(step)
        for _ in range(-(-step.one.size // 4)):
            self.registers.write(name, mark, step.on)
            name = following(name)

    def _store(self, step: TraceStep, stored: Values, first: int, last: int) -> None:
        marks = np.unique(np.broadcast_to(stored, step.on.shape)[step.on])
        step.is_result = PRODUCT in marks
        if step.one.is_shared:
            loads = marks[(marks > PRODUCT) & (marks <= LOADED)]
            arrays = frozenset().union(*(self.loads[LOADED - mark].arrays for mark in loads))
            self.stored.add((first, last, arrays))

    # -- loops

    def _begin_iteration(self, header: int, active: np.ndarray) -> None:
        """Begin an iteration of a loop, or skip to a later one."""
        self._end()
        if self.loop != header:
            self.loop = header
            self.recent, self.states = [], []
        self.states = [*self.states[-2:], (dict(self.registers.values), active)]
        self._skip()

    def _end(self) -> None:
        """End an iteration, or what lies between loops: its steps become those of a segment."""
        steps, self.steps = self.steps, []
        if not steps:
            return
        last = self.segments[-1] if self.segments else None
        is_same = last is not None and last.loop == self.loop >= 0
        if last is not None and is_same and signature(last.iterations[-1]) == signature(steps):
            last.count += 1
            last.iterations = [*last.iterations, steps][:3]
            self.recent = [*self.recent[-2:], steps]
            return
        self.recent = [steps]
        self.segments.append(Segment(self.loop, [steps]))
        if sum(segment.loop == self.loop for segment in self.segments) > MAX_RUNS:
            raise NotTimed(
                f"line {steps[0].one.line} is in a loop whose iterations differ: let all of them do"
                " the same"
            )

    def _skip(self) -> None:
        """Skip iterations of a loop that do what the last three did."""
        if len(self.recent) < 3 or len(self.states) < 3:
            return
        if not np.array_equal(self.states[0][1], self.states[2][1]):
            return
        count = count_even(self.recent)
        before, after = self.states[1][0], self.states[2][0]
        for name, value in after.items():
            earlier = before.get(name, value)
            if value.min() >= 0 and earlier.min() >= 0:
                self.registers.values[name] = value + count * (value - earlier) & MASK
        self.segments[-1].count += count
        self.recent, self.states = [], []


def count_even(iterations: list[list[TraceStep]]) -> int:
    """Return for how many more iterations all that instructions compute grows as it did in these
    three, up to ``TRIED``: some threads compute them at once.
    """
    count = TRIED
    later = np.arange(-1, TRIED + 1)
    for steps in zip(*iterations):
        one = steps[0].one
        if not all(step.read for step in steps) or not any(step.on.any() for step in steps):
            continue
        lanes = np.flatnonzero(steps[0].on)
        lanes = lanes[np.linspace(0, len(lanes) - 1, TRIED_THREADS).astype(int)]
        total = len(steps[0].on)
        first, second, third = (
            np.stack([np.broadcast_to(value, total)[lanes] for value in step.read])
            for step in steps
        )
        growth = third - second
        if np.any(second - first != growth):
            return 0
        if one.is_access or not growth.any():
            continue
        values = third[..., np.newaxis] + growth[..., np.newaxis] * later
        is_word = (third >= 0) & (third <= MASK)
        values = np.where(is_word[..., np.newaxis], values & MASK, values)
        found = MEANING[meaning_of(one)](one.modifiers, *values)
        even = found[:, :1] + (found[:, 1:2] - found[:, :1]) * (later + 1)
        others = np.flatnonzero((found != even).any(axis=0))
        count = min([count, *others[:1] - 2])
    return max(int(count), 0)
