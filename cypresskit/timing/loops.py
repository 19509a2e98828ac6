"""Counting loops, run once for all turns in which nobody leaves.

Two turns are run. What the second adds to a register is taken for what every turn adds, so that the
registers of any turn can be written down; and where the operands of a comparison meet if they go on
like that says in which turn somebody may leave. Turns between the two and that one are then *run*,
from such registers: the one in the middle, the last one, the one in which somebody leaves, and
three more by a fixed rule. If each ends with the registers of the turn behind it, nobody leaves
before the last, and every access has moved as far as it should, the first turn stands for all.
Else the loop is run turn by turn: ``NotCounted``.

It is a check at some turns, not a proof: a kernel that does something else in a single turn in
between, which none of these is, would be timed wrong. What it did there would have to be a branch
without a jump, since loops with branches of their own aren't tried.

Wavefronts may leave in different turns: each has its own count.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import TEMPORARY, Control, Operation
from cypresskit.machine.vliw import Processor
from cypresskit.machine.wavefront import WAVEFRONT
from cypresskit.timing.requests import MemoryRequest, Requests
from cypresskit.timing.surfaces import Motion
from cypresskit.timing.words import (
    EVERYBODY,
    NOBODY,
    UNKNOWN,
    ZERO,
    Comparison,
    MarkedWords,
    NotCounted,
    Value,
    from_memory,
)

MOST_TURNS = 1 << 22  # in which a loop is counted
NO_TURN = float(1 << 40)  # a turn that no loop reaches
#: Whole floats are exact below 2^24, those in steps of 1 / 2 below 2^23, and so on.
GRAINS = tuple((grain, 2.0**24 / grain) for grain in (1, 2, 16, 256))
BETWEEN = (0.1, 0.382, 0.5, 0.854)  # of all turns: where four of them are run, the middle one too
TRIES = 16  # turns in which somebody may leave that are tried
#: Clauses, stores and breaks: also breaks under a condition, where these aren't an ALU_BREAK.
COUNTABLE = re.compile(
    r"(ALU |TEX |ALU_BREAK |ALU_PUSH_BEFORE JUMP LOOP_BREAK POP |EXPORT |MEM_\w+ )*"
)

Place = tuple[int, int]  # number, channel
Registers = dict[Place, Value]
Turns = int | np.ndarray  # the same for all lanes, or of each lane


def loop_body(code: Code, start: int) -> tuple[Control, ...]:
    """The controls between a loop's start and its end."""
    return code.controls[start + 1 : loop_end(code, start)]


def loop_end(code: Code, start: int) -> int:
    """The LOOP_END of the loop that starts at control ``start``."""
    return code.controls[start].target - 1


def can_count(code: Code, start: int) -> bool:
    """Whether a loop has nothing in it but clauses, stores and breaks."""
    names = "".join(f"{control.name} " for control in loop_body(code, start))
    return COUNTABLE.fullmatch(names) is not None


@dataclass(frozen=True, eq=False)
class Counted:
    """The ``turns`` that each wavefront takes at once (0: none), the ``accesses`` of the first of
    them, by control, and how each of these moves.
    """

    turns: np.ndarray
    accesses: dict[int, list[tuple[MemoryRequest, Motion]]]


@dataclass(eq=False)
class _Turn:
    """A turn that was run: its accesses, by control; who ``departed`` (bool, by lane);
    its comparisons; and the registers at its end.
    """

    departed: np.ndarray
    accesses: dict[int, list[MemoryRequest]] = field(default_factory=dict)
    compared: list[Comparison] = field(default_factory=list)
    registers: Registers = field(default_factory=dict)

    @property
    def all_accesses(self) -> Iterator[MemoryRequest]:
        return (access for accesses in self.accesses.values() for access in accesses)


class CountedLoop:
    """The loop at control ``start``, which ``processor`` has just entered."""

    def __init__(self, processor: Processor, start: int):
        assert isinstance(processor.words, MarkedWords)
        assert isinstance(processor.memory, Requests)
        self.processor = processor
        self.words = processor.words
        self.memory = processor.memory
        self.start = start
        self.body = loop_body(processor.code, start)
        self.before = dict(processor.registers)
        self.entered = processor.masks.active

    def run(self) -> Counted | None:
        """Run at once all turns in which no lane of a wavefront leaves the loop: registers are then
        as after the last of them. None if that can't be done; then nothing has changed.
        """
        masks = self.processor.masks
        self.processor.masked = False
        try:
            counted, after = self._counted()
        except NotCounted:
            counted = None
            after = self.before
        finally:
            self.processor.masked = True
            self.processor.registers = self.before
            masks.set(self.entered)
        if counted is None:
            return None
        active = self.entered & _by_lane(counted.turns > 0)
        everybody = np.count_nonzero(active) == self.processor.existing
        for place, word in after.items():
            old = self.before.get(place, ZERO)
            if word is not old:
                word = word if everybody else self.words.merge(word, old, active)
                self.processor.registers[place] = word
        return counted

    def _counted(self) -> tuple[Counted | None, Registers]:
        first = self._turn(self.before)
        stay = self.entered & ~_by_lane(_wavefronts(first.departed & self.entered))
        if not stay.any():
            return None, self.before
        self.processor.masks.set(stay)
        second = self._turn(first.registers)
        moving = {
            place: Moving(self.before.get(place, ZERO), first.registers[place], word, stay)
            for place, word in second.registers.items()
            if place[0] < TEMPORARY and word is not self.before.get(place)
        }

        def registers(turn: Turns) -> Registers:
            return self.before | {place: word.at(turn) for place, word in moving.items()}

        turns = self._turns(first, second, registers, stay)
        motions = [
            self._motion(a, b, turns, stay)
            for a, b in zip(first.all_accesses, second.all_accesses, strict=True)
        ]

        def check(turn: Turns) -> _Turn:
            return self._check(first, motions, moving, registers, turn, turns)

        for turn in _between(turns):
            check(turn)
        last = check(turns - 1)
        after = self._after(first, second, last, turns)
        by_control: dict[int, list[tuple[MemoryRequest, Motion]]] = {}
        remaining_motions = iter(motions)
        for control, accesses in first.accesses.items():
            by_control[control] = [(access, next(remaining_motions)) for access in accesses]
        counts = np.broadcast_to(turns, stay.shape).reshape(-1, WAVEFRONT).max(axis=1)
        return Counted(counts * _wavefronts(stay), by_control), after

    def _after(self, first: _Turn, second: _Turn, last: _Turn, turns: Turns) -> Registers:
        """The registers behind the last turn of each lane."""
        after = dict(last.registers)
        for count, turn in ((1, first), (2, second)):
            if isinstance(turns, int):
                if turns == count:
                    return turn.registers
            elif (turns == count).any():
                after = {
                    place: self.words.merge(word, after.get(place, ZERO), turns == count)
                    for place, word in turn.registers.items()
                }
        return after

    def _turn(self, registers: Registers) -> _Turn:
        """Run the loop's clauses once, from ``registers`` on; no lane leaves it."""
        processor, memory = self.processor, self.memory
        active = processor.masks.active
        turn = _Turn(np.zeros(len(active), bool))
        processor.registers = dict(registers)
        self.words.compared = turn.compared
        try:
            for n, control in enumerate(self.body, self.start + 1):
                memory.noted = []
                if control.bundles or control.fetches:
                    predicate = processor.clause(control)
                    if predicate is not None:
                        passed = self.words.passed(*predicate, active)
                        turn.departed |= passed == (control.name == "ALU_PUSH_BEFORE")
                elif control.store is not None:
                    processor.store(control.store)
                turn.accesses[n] = memory.noted
        finally:
            self.words.compared = None
        turn.registers = processor.registers
        return turn

    def _turns(self, first: _Turn, second: _Turn, registers, stay: np.ndarray) -> Turns:
        """The number of turns that each lane's wavefront takes before one of its lanes leaves."""
        used = _wavefronts(stay)
        turns = np.where(_wavefronts(second.departed & stay) | ~used, 1.0, NO_TURN)
        meeting_turns = _meetings(first.compared, second.compared, stay)
        tried = np.ones(len(turns))
        for _ in range(TRIES):
            following = [
                np.where(m > tried[:, np.newaxis], m, NO_TURN).min(axis=1) for m in meeting_turns
            ]
            tried = np.minimum.reduce([np.full(len(turns), NO_TURN), *following])
            undecided = (turns == NO_TURN) & (tried < NO_TURN)
            if not undecided.any():
                break
            now = _of_lanes(np.where(undecided, tried, 2), undecided)
            departed = self._turn(registers(now)).departed
            leaves = _wavefronts(departed & stay) & undecided
            turns[leaves] = tried[leaves]
        if turns.max() == NO_TURN:  # nobody leaves, or in a turn that this can't tell
            raise NotCounted
        return _of_lanes(turns, used)

    def _motion(
        self, now: MemoryRequest, then: MemoryRequest, turns: Turns, stay: np.ndarray
    ) -> Motion:
        """How an access moves from the first turn (``now``) to the second."""
        later = stay & (turns > 1)
        steps = [0, 0]
        for n, (a, b) in enumerate(zip(now.rows, then.rows, strict=True)):
            if a is b or not later.any():
                continue
            step = np.broadcast_to(now.numbers(b) - now.numbers(a), later.shape)[later]
            if not (step == step[0]).all() or step[0] % now.grain:
                raise NotCounted
            steps[n] = int(step[0])
        x, y = steps
        return Motion(x, y, turns)

    def _check(
        self,
        first: _Turn,
        motions: list[Motion],
        moving: "dict[Place, Moving]",
        registers,
        turn: Turns,
        turns: Turns,
    ) -> _Turn:
        """Run a turn between the second and the last one, or that, and check what it does. Lanes
        that have fewer than three turns are left out.
        """
        lanes = self.processor.masks.active & (turns > 2)
        if not lanes.any():
            return first
        turn = int(turn) if isinstance(turn, int) else np.maximum(turn, 1)
        ran = self._turn(registers(turn))
        if (ran.departed & lanes & (turn < turns)).any():
            raise NotCounted
        for place, word in moving.items():
            expected = word.at(turn + 1)
            held = ran.registers[place]
            if expected.loaded is NOBODY and not (
                held.loaded is NOBODY and ((expected.bits == held.bits) | ~lanes).all()
            ):
                raise NotCounted
        for now, then, motion in zip(ran.all_accesses, first.all_accesses, motions, strict=True):
            for a, b, step in zip(now.rows, then.rows, motion):
                if a is b and not step:
                    continue
                if ((now.numbers(a) != now.numbers(b) + turn * step) & lanes).any():
                    raise NotCounted
        return ran


def _meetings(
    first: Sequence[Comparison], second: Sequence[Comparison], stay: np.ndarray
) -> list[np.ndarray]:
    """The turns in which a comparison of lanes that ``stay`` may come out differently from the turn
    before, from those of turns 0 and 1: arrays that have a row for each wavefront, or one for all.
    """
    turns_met = []
    for now, then in zip(first, second, strict=True):
        words = now.left, now.right, then.left, then.right
        if any(word.loaded is not NOBODY for word in words):
            continue
        left, right, later_left, later_right = (_number(word, now.operation) for word in words)
        start = left - right
        step = later_left - later_right - start
        with np.errstate(all="ignore"):
            meet = np.floor(np.where(step != 0, -start / step, NO_TURN))
        for turn in (meet, meet + 1):
            turn = np.where((turn >= 2) & (turn <= MOST_TURNS), turn, NO_TURN)
            if turn.size > 1:
                turn = np.where(stay, turn, NO_TURN).reshape(-1, WAVEFRONT)
            turns_met.append(turn.reshape(turn.size // WAVEFRONT or 1, -1))
    return turns_met


class Moving:
    """What a register holds at the beginning of any turn but the first, from what it holds at the
    beginning of the first three.
    """

    def __init__(self, first: Value, second: Value, third: Value, active: np.ndarray):
        self.constant: Value | None = None
        self.start: np.ndarray = np.zeros(1)
        self.step: np.ndarray = np.zeros(1)
        self.float = False
        self.below = np.inf
        if third.loaded is EVERYBODY:
            self.constant = third
            return
        self.constant = from_memory(UNKNOWN)
        if any(word.loaded is not NOBODY for word in (first, second, third)):
            return
        if first is second is third:
            self.constant = third
            return
        for kind, dtype in ((np.float32, np.float64), (np.int32, np.int64)):
            a, b, c = (word.bits.view(kind).astype(dtype) for word in (first, second, third))
            if not _of_active(c - b == b - a, active).all():
                continue
            self.float = kind is np.float32
            if self.float:
                grains = [
                    limit
                    for grain, limit in GRAINS
                    if not any((_of_active(row, active) * grain % 1).any() for row in (a, b))
                ]
                if not grains:
                    continue
                self.below = grains[0]
            self.start = a
            self.step = b - a
            self.constant = None
            return

    def at(self, turn: Turns) -> Value:
        """The word at the beginning of that turn."""
        if self.constant is not None:
            return self.constant
        number = self.start + turn * self.step
        if not self.float:
            return Value(number.astype(np.uint32))
        bits = number.astype(np.float32).view(np.uint32)
        far = np.abs(number) >= self.below
        return Value(bits, far, UNKNOWN) if far.any() else Value(bits)


def _number(word: Value, o: Operation) -> np.ndarray:
    """The numbers that a comparison takes the word for."""
    if o.row.kind == "float":
        return word.bits.view(np.float32).astype(np.float64)
    whole = np.uint32 if "UINT" in o.name else np.int32
    return word.bits.view(whole).astype(np.float64)


def _between(turns: Turns) -> list[Turns]:
    """The turns that are run between the first two and the last."""
    if isinstance(turns, int):
        return sorted({int(turns * share) for share in BETWEEN} & set(range(2, turns - 1)))
    return [(turns * share).astype(np.int64) for share in BETWEEN]


def _of_lanes(values: np.ndarray, used: np.ndarray) -> Turns:
    """A value of each wavefront for each of its lanes, or one for all if the ``used`` wavefronts
    have the same; of others it is 1.
    """
    if (values[used] == values[used][0]).all():
        return int(values[used][0])
    return np.repeat(np.where(used, values, 1), WAVEFRONT).astype(np.int64)


def _of_active(row: np.ndarray, active: np.ndarray) -> np.ndarray:
    """What the active lanes have of a row that may be the same for all."""
    return row[active] if row.size > 1 else row


def _wavefronts(lanes: np.ndarray) -> np.ndarray:
    """Which wavefronts have a lane among these (bool)."""
    return np.any(lanes.reshape(-1, WAVEFRONT), axis=1)


def _by_lane(wavefronts: np.ndarray) -> np.ndarray:
    """A value of each wavefront for each of its lanes."""
    return np.repeat(wavefronts, WAVEFRONT)
