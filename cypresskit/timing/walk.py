"""The way of wavefronts through compiled code: clause after clause, with the addresses of each
access.

How it works:

1. Only what addresses and branches depend on is computed: a ``Processor`` runs that slice of the
   code (``slicing``) on words that say whether they came from memory (``words``), and a memory that
   notes where it is asked (``requests``). A test or an address from memory is an error.
2. All wavefronts go at once, as the lanes of one wavefront do: where they part, both ways are run,
   one after the other, each under the mask of those that go there. ``History`` notes each clause
   with its ``members``, the wavefronts that ran it, and makes the paths of that in the end.
3. A loop that only counts is run for all turns in which nobody leaves at once (``loops``), as one
   segment with a number of turns. What it can't tell of its registers is marked; whoever reads that
   behind the loop raises ``NotCounted``, and the walk begins anew with that loop run turn by turn.
4. A loop that doesn't end must be found before it fills the memory. After ``REHEARSED`` turns, its
   end is looked for by a rehearsal, which notes nothing: first for one wavefront alone, then for
   all that are in it. A rehearsal leaps over turns that go by evenly (``drift``).

What holds between any two control-flow instructions:

- ``loops`` has the loops that are being run turn by turn, the innermost last, and as many as
  ``processor.masks.loops``.
- In ``history``, what a wavefront ran since its last ``end_segment`` is run once. A segment ends
  where a loop begins and where a wavefront leaves it, for those wavefronts alone.
- ``issued`` counts each wavefront's instructions but for those of counted loops. It bounds the work
  of any walk, by ``MAX_INSTRUCTIONS``.
- A rehearsal changes nothing: ``_comes_back`` restores whatever running code changes.

The laws are in tests/test_timing_walk.py: wavefronts that are walked together run what each runs
alone, counted loops are those run turn by turn, and rehearsals end where the loop does.
"""

import copy
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import Control, FetchInstruction, Operation, StoreInstruction
from cypresskit.machine import shape
from cypresskit.machine.launch import MAX_INSTRUCTIONS, KernelError
from cypresskit.machine.vliw import Processor
from cypresskit.timing.clauses import ClauseMaker
from cypresskit.timing.drift import NEXT, Comparisons, Drift, WatchedTurn
from cypresskit.timing.history import History
from cypresskit.timing.loops import (
    BETWEEN,
    CountedLoop,
    EndlessError,
    can_count,
    loop_body,
    loop_end,
)
from cypresskit.timing.requests import MemoryRequest, Requests
from cypresskit.timing.slicing import address_slice, branch_registers
from cypresskit.timing.surfaces import Motion, Surfaces
from cypresskit.timing.words import ZERO, MarkedWords, NotCounted, Value
from cypresskit.timing.work import Path

MAX_BYTES = 4 << 30  # of a walk, and what the engine takes from it
BESIDES = 64 * 256  # bytes of a wavefront while it is walked, beside its accesses; measured
SMALL = 1500  # wavefronts of a walk that is kept for the next launch, at most: a few MB
KEPT_WALKS = 4  # such walks: of one launch, prices and lines are asked together
REHEARSED = 64  # turns of a loop, after which its end is looked for before more is noted
_walks: dict[tuple, list[Path]] = {}


def walk(code: Code, surfaces: Surfaces, wavefronts: np.ndarray) -> list[Path]:
    """The paths of ``wavefronts`` (numbers in dispatch order), one for each group that takes the
    same way. Boards of one geometry share the last ones. Raises ``ValueError`` for so many that
    they would take more than ``MAX_BYTES``.
    """
    if len(wavefronts) > SMALL:
        check_memory(code, surfaces, wavefronts)
        return _walked(code, surfaces, wavefronts)
    key = code.program, code.controls, surfaces.key, wavefronts.tobytes()
    return keep(_walks, key, _walks.get(key) or _walked(code, surfaces, wavefronts), KEPT_WALKS)


def check_memory(code: Code, surfaces: Surfaces, wavefronts: np.ndarray) -> None:
    """Raise ``ValueError`` for a walk that would take more than ``MAX_BYTES``, by what a few of its
    wavefronts take.
    """
    if len(wavefronts) * BESIDES * 8 < MAX_BYTES:
        return
    numbers = np.unique(np.linspace(0, len(wavefronts) - 1, 64).astype(np.int64))
    with np.errstate(all="ignore"):
        sample = _Walk(code, surfaces, wavefronts[numbers], frozenset())
        sample.run()
    needed = len(wavefronts) * (BESIDES + 2 * sample.history.bytes // len(numbers))
    if needed > MAX_BYTES:
        raise ValueError(
            f"{code.program.name}: to simulate all of its {len(wavefronts):,} wavefronts would take"
            f" {needed >> 20:,} MB: take a smaller launch, or leave out exact=True if it is given"
        )


def forget_walks() -> None:
    """Forget the walks that are kept."""
    _walks.clear()


def keep(kept: dict, key: Hashable, result: Any, most: int) -> Any:
    """The result, which is kept under its key: the last ``most`` are."""
    kept[key] = result
    while len(kept) > most:
        kept.pop(next(iter([*kept])), None)  # a list, since other threads add theirs
    return result


def _walked(code: Code, surfaces: Surfaces, wavefronts: np.ndarray) -> list[Path]:
    """The paths of a walk. It is tried with all loops counted that can be; where that left a value
    open which is needed later, again with these loops run turn by turn.
    """
    stepped: frozenset[int] = frozenset()
    while True:
        attempt = _Walk(code, surfaces, wavefronts, stepped)
        try:
            with np.errstate(all="ignore"):
                return attempt.run()
        except NotCounted:  # a value that a counted loop couldn't tell is used behind it
            assert attempt.counted - stepped
            stepped |= attempt.counted


@dataclass(eq=False)
class _RunningLoop:
    """A loop that is being run turn by turn, from the control-flow instruction ``start``."""

    start: int
    members: np.ndarray  # the wavefronts (bool) that are still in it
    turns: int = 0
    # Of an earlier turn: the registers that tests depend on, and the active lanes (bool)
    earlier: dict[tuple[int, int], Value] = field(default_factory=dict)
    active: np.ndarray | None = None
    watched: list[WatchedTurn] = field(default_factory=list)  # by a rehearsal: the last turns


class _Walk:
    """The walk of some wavefronts; loops ``stepped`` are run turn by turn, ``counted`` ones were
    run for several turns at once. Not ``recording``, it is a rehearsal, and only finds loops that
    don't end.
    """

    def __init__(
        self,
        code: Code,
        surfaces: Surfaces,
        wavefronts: np.ndarray,
        stepped: frozenset[int],
        recording: bool = True,
    ):
        self.code = code
        self.surfaces = surfaces
        self.wavefronts = wavefronts
        self.stepped = stepped
        self.counted = frozenset[int]()

        x, y, exist = shape.lanes(surfaces.shape, wavefronts)
        self.words = MarkedWords(code.program)
        self.memory = Requests(self.words)
        self.processor = Processor(
            address_slice(code),
            shape.input_registers(surfaces.shape, x, y),
            surfaces.shape.constants,
            self.words,
            self.memory,
            exist,
        )
        self.recording = self.memory.noting = recording
        self.history = History(len(wavefronts))
        self.clause_maker = ClauseMaker(code, surfaces, x, y)

        self.tested = branch_registers(code)
        self.instructions = [_instructions(control) for control in code.controls]
        self.issued = np.zeros(len(wavefronts), np.int64)  # instructions, turn by turn
        self.loops: list[_RunningLoop] = []

        # of the last question to `members`: most come in rows with the same lanes
        self._asked_lanes = np.zeros(0, bool)
        self._members = np.zeros(0, bool)

    def run(self) -> list[Path]:
        self._run(0, len(self.code.controls) - 1)
        return self.history.paths(self.wavefronts)

    def _run(self, at: int, until: int) -> None:
        while at != until:
            at = self._step(at)

    def _step(self, at: int) -> int:
        """Do control-flow instruction ``at``. Returns the number of the one that follows."""
        name = self.code.controls[at].name
        if name == "LOOP_START_DX10":
            return self._enter(at)
        if name == "LOOP_END":
            return self._end_turn(at)

        masks = self.processor.masks
        active = masks.active
        somebody = masks.count > 0
        self.memory.noted = []
        following = self.processor.step(at)
        if somebody:
            members = self.members(active)
            self.issued[members] += self.instructions[at]
            if self.recording:
                accesses = [(access, Motion()) for access in self.memory.noted]
                self._record(at, accesses, active, members)
        return following

    def _record(
        self,
        at: int,
        accesses: list[tuple[MemoryRequest, Motion]],
        active: np.ndarray,
        members: np.ndarray,
    ) -> None:
        clauses = self.clause_maker.clauses(at, accesses, active, members)
        if clauses:
            self.history.add(members, clauses)

    def members(self, lanes: np.ndarray) -> np.ndarray:
        """Which wavefronts (bool) have one of these lanes."""
        if lanes is not self._asked_lanes:
            members = np.any(lanes.reshape(-1, 64), axis=1)
            if not np.array_equal(members, self._members):
                self._members = members  # one array for equal members, as History compares them
            self._asked_lanes = lanes
        return self._members

    # Loops

    def _enter(self, at: int) -> int:
        """Begin the loop at ``at``, and run at once the turns that can be counted."""
        masks = self.processor.masks
        members = self.members(masks.active)
        if self.recording:
            self.history.end_segment(members)
        following = self.processor.step(at)
        watched = self.words.compared is not None  # each turn, by a rehearsal around this loop
        if masks.count and at not in self.stepped and not watched and can_count(self.code, at):
            self._count(at)
        self.loops.append(_RunningLoop(at, members))
        return following

    def _count(self, at: int) -> None:
        """Run a loop for all turns in which nobody leaves."""
        turn = sum(self.instructions[at : loop_end(self.code, at) + 1])
        try:
            counted = CountedLoop(self.processor, at, MAX_INSTRUCTIONS // turn).run()
        except EndlessError:
            raise self._endless(at) from None
        if counted is None:
            return
        self.counted |= {at}
        if not self.recording:
            return
        members = counted.turns > 0
        active = self.processor.masks.active & np.repeat(members, 64)
        for n, accesses in counted.accesses.items():
            self._record(n, accesses, active, members)
        self.history.end_segment(members, counted.turns)

    def _end_turn(self, at: int) -> int:
        """End a turn of the innermost loop, at its ``LOOP_END``. Returns the instruction that
        follows: the loop's first, or the one behind it once all have left.
        """
        loop = self.loops[-1]
        if not self.recording:
            self._watch(loop, at)
        self._let_go(loop)

        following = self.processor.step(at)
        if following > at:
            if loop.watched:
                self.words.compared = None
            self.loops.pop()
            return following

        loop.turns += 1
        if self.issued.max() > MAX_INSTRUCTIONS:
            raise self._endless(loop.start)
        self._check_that_tests_change(loop)
        if loop.turns == REHEARSED and self.recording:
            self._rehearse(loop, following, at + 1)
        return following

    def _let_go(self, loop: _RunningLoop) -> None:
        """Note a turn's end, and a segment's for those that have left the loop in it."""
        running = self.members(self.processor.masks.loops[-1].running.copy())  # changes in place
        if self.recording:
            self.history.end_turn(loop.members)
            ended = loop.members & ~running
            if ended.any():
                self.history.end_segment(ended)
        loop.members = running

    # Loops that don't end

    def _endless(self, start: int) -> KernelError:
        what = f"this loop has not ended after {MAX_INSTRUCTIONS:,} instructions of a work-item"
        return endless_loop(self.code, start, what)

    def _tested_now(self) -> dict[tuple[int, int], Value]:
        """What the registers hold that tests depend on."""
        registers = self.processor.registers
        return {place: registers.get(place, ZERO) for place in self.tested}

    def _check_that_tests_change(self, loop: _RunningLoop) -> None:
        """Raise ``KernelError`` if all that tests depend on is as it was in an earlier turn, with
        the same lanes active: every later turn would then be like one before.

        Of the turns 1, 2, 4, 8, ... the last is kept for that, so that a circle of any length is
        found once the distance to it is longer.
        """
        active = self.processor.masks.active
        now = self._tested_now()
        if loop.active is not None and np.array_equal(loop.active, active):
            for place, word in loop.earlier.items():
                if not now[place].same(word, active):
                    loop.earlier = {place: word} | loop.earlier  # asked first the next time
                    break
            else:
                what = "this loop never ends: its turns change nothing that a break depends on"
                raise endless_loop(self.code, loop.start, what)
        if _is_power_of_two(loop.turns):
            loop.earlier = now
            loop.active = active

    def _rehearse(self, loop: _RunningLoop, at: int, until: int) -> None:
        """See whether a loop ends, before its turns fill the memory: run it from ``at`` to
        ``until``, behind it, without noting anything, and come back.
        """
        alone = self.wavefronts[np.flatnonzero(loop.members)[:1]]
        _Walk(self.code, self.surfaces, alone, self.stepped, recording=False).run()
        if not self._has_accesses(loop.start):
            return
        with self._comes_back():
            self.recording = self.memory.noting = False
            self._run(at, until)

    def _has_accesses(self, start: int) -> bool:
        """Whether the loop at ``start`` has anything in it whose addresses would be kept."""
        body = loop_body(self.code, start)
        lds = any(o.row.kind == "lds" for c in body for o in c.operations)
        return lds or any(c.fetches or c.store is not None for c in body)

    @contextmanager
    def _comes_back(self) -> Iterator[None]:
        """What is run in this context leaves no trace, but for what ``words`` compared."""
        processor = self.processor
        registers = processor.registers
        masks = processor.masks
        queue = [*processor.queue]
        issued = self.issued.copy()
        loops = [replace(loop) for loop in self.loops]
        recording = self.recording
        processor.registers = dict(registers)
        processor.masks = copy.deepcopy(masks)
        try:
            yield
        finally:
            processor.registers = registers
            processor.masks = masks
            processor.queue = queue
            self.issued = issued
            self.loops = loops
            self.recording = self.memory.noting = recording

    # Rehearsals that leap

    def _watch(self, loop: _RunningLoop, at: int) -> None:
        """Watch three turns of a loop that has run for long, at whose end ``at`` it is, and leap
        over those that go by as they did. Loops inside it aren't watched meanwhile.
        """
        if not loop.watched:
            long = loop.turns >= REHEARSED and _is_power_of_two(loop.turns)
            inside_another = self.words.compared is not None
            if inside_another or not long:
                return
        loop.watched.append(self._turn_now())
        self.words.compared = Comparisons(self.processor)
        if len(loop.watched) == 3:
            watched = loop.watched
            loop.watched = []
            self._leap(watched, loop.start, at)
            self.words.compared = None

    def _turn_now(self) -> WatchedTurn:
        """The turn that ends here."""
        running = self.processor.masks.loops[-1].running.copy()
        compared = self.words.compared or Comparisons(self.processor)
        return WatchedTurn(self._tested_now(), compared, running, self.issued.copy())

    def _leap(self, watched: list[WatchedTurn], start: int, at: int) -> None:
        """Pass over the turns of a drifting loop in which no comparison comes out differently: only
        what its tests depend on is moved. Some of these turns are run, for a check.
        """
        try:
            drift = Drift(*watched)
        except NotCounted:
            return
        if not drift.running.any():
            return

        left = (MAX_INSTRUCTIONS - int(self.issued.max())) // drift.issued + 1
        turns = int(min(drift.turns() - 1, NEXT + left))
        if turns <= NEXT + len(BETWEEN):
            return
        checked = [int(NEXT + share * (turns - NEXT)) for share in BETWEEN]
        for turn in [*checked, turns - 1]:
            if not drift.expects(turn, self._tried(drift, turn, start, at)):
                return

        self._move(drift, turns)
        self.issued += (turns - NEXT) * (watched[2].issued - watched[1].issued)

    def _tried(self, drift: Drift, turn: int, start: int, at: int) -> WatchedTurn:
        """A turn of the loop from ``start`` to ``at``, which is run and taken back."""
        with self._comes_back():
            self.processor.masks.next_iteration()
            self._move(drift, turn)
            self.words.compared = Comparisons(self.processor)
            self._run(start + 1, at)
            turn_run = self._turn_now()
        return turn_run

    def _move(self, drift: Drift, turn: int) -> None:
        """Set what tests depend on to what it is at the beginning of a turn."""
        registers = self.processor.registers
        for place, word in drift.registers(turn).items():
            registers[place] = self.words.merge(word, registers.get(place, ZERO), drift.running)


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _instructions(control: Control) -> int:
    """The instructions of the program that a control-flow instruction and its clause stand for."""
    parts: list[Operation | FetchInstruction | StoreInstruction] = [
        *control.operations,
        *control.fetches,
    ]
    if control.store is not None:
        parts.append(control.store)
    return len({control.at, *(part.at for part in parts)})


def endless_loop(code: Code, start: int, what: str) -> KernelError:
    """The error for a loop that is run for longer than anyone means it to."""
    program = code.program
    inside = code.controls[loop_end(code, start)].at
    around = [
        at
        for at, i in enumerate(program.body)
        if i.op.flow == "loop" and at <= inside <= program.matching[at]
    ]
    at = max(around, default=inside)
    line = program.body[at].line
    advice = "Does its break condition ever become true?"
    message = f"{program.where(line)}\n    {what}. {advice}"
    return KernelError(message, line, kind="endless", at=at)
