"""The way of wavefronts through compiled code: clause after clause, with the addresses of each
access.

The slice of the code that addresses and branches depend on (``slicing``) is run by a ``Processor``,
for many wavefronts at once: where they take different ways, both are run, each with those that go
there, as a wavefront does with its lanes. A counting loop is run once for all its turns
(``loops``). A loop that doesn't end is an error, once it has executed as much as a launch may, or
a turn has changed nothing that any test depends on.
"""

import copy
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import Control, FetchInstruction, Operation, StoreInstruction
from cypresskit.machine import shape
from cypresskit.machine.launch import MAX_INSTRUCTIONS, KernelError
from cypresskit.machine.vliw import Processor
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
from cypresskit.timing.work import ALU, BARRIER, WRITE, Clause, Path, Stream, fetch_clause

MAX_BYTES = 4 << 30  # of a walk, and what the engine takes from it
BESIDES = 64 * 256  # bytes of a wavefront while it is walked, beside its accesses; measured
KEPT, SMALL = 16, 1500  # so many walks are kept, of at most so many wavefronts: a few MB each
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
    return keep(_walks, key, _walks.get(key) or _walked(code, surfaces, wavefronts), KEPT)


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
            f" {needed >> 20:,} MB: leave out exact=True, or take a smaller launch"
        )


def keep(kept: dict, key: tuple, result: Any, most: int) -> Any:
    """The result, which is kept under its key: the last ``most`` are."""
    kept[key] = result
    while len(kept) > most:
        kept.pop(next(iter([*kept])), None)  # a list, since other threads add theirs
    return result


def _walked(code: Code, surfaces: Surfaces, wavefronts: np.ndarray) -> list[Path]:
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
    """A loop that is being run: its wavefronts that are still in it, how many turns they have run
    one by one, and what they last held in the registers that tests depend on. While its turns are
    ``watched``, the last of them.
    """

    start: int
    members: np.ndarray
    turns: int = 0
    seen: dict[tuple[int, int], Value] = field(default_factory=dict)
    active: np.ndarray | None = None
    watched: list[WatchedTurn] = field(default_factory=list)


class _Walk:
    """The walk of some wavefronts; loops ``stepped`` are run turn by turn, ``counted`` ones were
    run for several turns at once. Not ``recording``, it only finds loops that don't end.
    """

    def __init__(
        self,
        code: Code,
        surfaces: Surfaces,
        wavefronts: np.ndarray,
        stepped: frozenset[int],
        recording: bool = True,
    ):
        self.code, self.surfaces, self.wavefronts = code, surfaces, wavefronts
        self.stepped, self.counted = stepped, frozenset[int]()
        self.x, self.y, exist = shape.lanes(surfaces.shape, wavefronts)
        ids = shape.input_registers(surfaces.shape, self.x, self.y)
        words = self.words = MarkedWords(code.program)
        self.memory = Requests(words)
        self.processor = Processor(
            address_slice(code), ids, surfaces.shape.constants, words, self.memory, exist
        )
        self.tested = branch_registers(code)
        self.history = History(len(wavefronts))
        self.recording = self.memory.noting = recording
        self.instructions = [_instructions(control) for control in code.controls]
        alone = surfaces.shape.group_wavefronts == 1  # and waits for nobody
        self.barriers = [[] if alone else _bundles_with("sync", c) for c in code.controls]
        self.asking = [_bundles_with("lds", control) for control in code.controls]
        self.issued = np.zeros(len(wavefronts), np.int64)  # instructions, turn by turn
        self.loops: list[_RunningLoop] = []
        self._active, self._members = np.zeros(0, bool), np.zeros(0, bool)

    def run(self) -> list[Path]:
        self._run(0, len(self.code.controls) - 1)
        return self.history.paths(self.wavefronts)

    def _run(self, at: int, until: int) -> None:
        while at != until:
            at = self._step(at)

    def _step(self, at: int) -> int:
        """Do control-flow instruction ``at``. Returns the number of the one that follows."""
        control = self.code.controls[at]
        masks = self.processor.masks
        if control.name == "LOOP_START_DX10":
            return self._enter(at)
        if control.name == "LOOP_END":
            return self._end_turn(at)
        active = masks.active
        ran = masks.count > 0
        self.memory.noted = []
        following = self.processor.step(at)
        if ran:
            members = self.members(active)
            self.issued[members] += self.instructions[at]
            if self.recording:
                accesses = [(access, Motion()) for access in self.memory.noted]
                clauses = self._clauses(at, accesses, active, members)
                if clauses:
                    self.history.add(members, clauses)
        return following

    def members(self, lanes: np.ndarray) -> np.ndarray:
        """Which wavefronts (bool) have one of these lanes."""
        if lanes is not self._active:
            members = np.any(lanes.reshape(-1, 64), axis=1)
            if not np.array_equal(members, self._members):
                self._members = members
            self._active = lanes
        return self._members

    # Loops

    def _enter(self, at: int) -> int:
        masks = self.processor.masks
        members = self.members(masks.active)
        if self.recording:
            self.history.end_segment(members)
        following = self.processor.step(at)
        watched = self.words.compared is not None
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
            clauses = self._clauses(n, accesses, active, members)
            if clauses:
                self.history.add(members, clauses)
        self.history.end_segment(members, counted.turns)

    def _end_turn(self, at: int) -> int:
        masks = self.processor.masks
        loop = self.loops[-1]
        if not self.recording:
            self._watch(loop, at)
        running = self.members(masks.loops[-1].running.copy())  # which changes in place
        if self.recording:
            self.history.end_turn(loop.members)
            ended = loop.members & ~running
            if ended.any():
                self.history.end_segment(ended)
        loop.members = running
        following = self.processor.step(at)
        if following > at:
            if loop.watched:
                self.words.compared = None
            self.loops.pop()
            return following
        loop.turns += 1
        if self.issued.max() > MAX_INSTRUCTIONS:
            raise self._endless(loop.start)
        self._compare(loop)
        if loop.turns == REHEARSED and self.recording:
            alone = self.wavefronts[np.flatnonzero(running)[:1]]
            _Walk(self.code, self.surfaces, alone, self.stepped, recording=False).run()
            if self._accesses(loop.start):
                self._rehearse(following, at + 1)
        return following

    def _watch(self, loop: _RunningLoop, at: int) -> None:
        """Watch three turns of a loop that has run for long, at whose end ``at`` it is, and leap
        over those that go by as they did.
        """
        begun = loop.turns >= REHEARSED and loop.turns & (loop.turns - 1) == 0
        if not loop.watched and (self.words.compared is not None or not begun):
            return
        loop.watched.append(self._turn_now())
        self.words.compared = Comparisons(self.processor)
        if len(loop.watched) == 3:
            watched = loop.watched
            loop.watched = []
            self._leap(watched, loop.start, at)
            self.words.compared = None

    def _turn_now(self) -> WatchedTurn:
        processor = self.processor
        registers = {place: processor.registers.get(place, ZERO) for place in self.tested}
        running = processor.masks.loops[-1].running.copy()
        compared = self.words.compared or Comparisons(processor)
        return WatchedTurn(registers, compared, running, self.issued.copy())

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
        for turn in [*(int(NEXT + share * (turns - NEXT)) for share in BETWEEN), turns - 1]:
            if not drift.expects(turn, self._tried(drift, turn, start, at)):
                return
        self._move(drift, turns)
        self.issued += (turns - NEXT) * (watched[2].issued - watched[1].issued)

    def _tried(self, drift: Drift, turn: int, start: int, at: int) -> WatchedTurn:
        """A turn of the loop from ``start`` to ``at``, which is run and taken back."""
        processor = self.processor
        registers = processor.registers
        queue = [*processor.queue]
        masks = processor.masks
        issued = self.issued.copy()
        loops = [replace(loop) for loop in self.loops]
        processor.registers, processor.masks = dict(registers), copy.deepcopy(masks)
        processor.masks.next_iteration()
        self._move(drift, turn)
        self.words.compared = Comparisons(self.processor)
        self._run(start + 1, at)
        turn_run = self._turn_now()
        processor.registers, processor.queue, processor.masks = registers, queue, masks
        self.issued, self.loops = issued, loops
        return turn_run

    def _move(self, drift: Drift, turn: int) -> None:
        """Set what tests depend on to what it is at the beginning of a turn."""
        registers = self.processor.registers
        for place, word in drift.registers(turn).items():
            registers[place] = self.words.merge(word, registers.get(place, ZERO), drift.running)

    def _endless(self, start: int) -> KernelError:
        what = f"this loop has not ended after {MAX_INSTRUCTIONS:,} instructions of a work-item"
        return endless_loop(self.code, start, what)

    def _compare(self, loop: _RunningLoop) -> None:
        """Refuse a loop whose tests depend on nothing that has changed since an earlier turn."""
        registers = self.processor.registers
        active = self.processor.masks.active
        now: dict[tuple[int, int], Value] = {
            place: registers.get(place, ZERO) for place in self.tested
        }
        if loop.active is not None and np.array_equal(loop.active, active):
            for place, word in loop.seen.items():
                if not now[place].same(word, active):
                    loop.seen = {place: word} | loop.seen  # which is asked first the next time
                    break
            else:
                what = "this loop never ends: its turns change nothing that a break depends on"
                raise endless_loop(self.code, loop.start, what)
        if loop.turns & (loop.turns - 1) == 0:
            loop.seen, loop.active = now, active

    def _accesses(self, start: int) -> bool:
        body = loop_body(self.code, start)
        lds = any(o.row.kind == "lds" for c in body for o in c.operations)
        return lds or any(c.fetches or c.store is not None for c in body)

    def _rehearse(self, at: int, until: int) -> None:
        """Run on to the loop's end and come back, without noting anything: a loop that doesn't end
        fills no memory.
        """
        processor = self.processor
        registers = processor.registers
        queue = [*processor.queue]
        masks = processor.masks
        issued = self.issued.copy()
        loops = [replace(loop) for loop in self.loops]
        processor.registers, processor.masks = dict(registers), copy.deepcopy(masks)
        self.recording = self.memory.noting = False
        self._run(at, until)
        self.recording = self.memory.noting = True
        processor.registers, processor.queue, processor.masks = registers, queue, masks
        self.issued, self.loops = issued, loops

    # Clauses

    def _clauses(
        self,
        at: int,
        accesses: list[tuple[MemoryRequest, Motion]],
        active: np.ndarray,
        members: np.ndarray,
    ) -> list[Clause]:
        """The clauses that control-flow instruction ``at`` is for the timing."""
        control = self.code.controls[at]
        streams = self._streams(accesses, active, members)
        sources = tuple(access.instruction.at for access, _ in accesses)
        if control.store is not None:
            return [Clause(WRITE, 0, tuple(streams), at, 0, sources)]
        if control.fetches:
            return [replace(fetch_clause(streams), control=at, sources=sources)]
        return self._pieces(at, tuple(streams), sources)

    def _pieces(
        self, at: int, streams: tuple[Stream, ...], sources: tuple[int, ...]
    ) -> list[Clause]:
        """The clause of bundles at ``at``, cut where its workgroup waits at a barrier. Each LDS
        access is in the piece that has its bundle.
        """
        count = len(self.code.controls[at].bundles)
        asking = self.asking[at]  # for one access each, in this order
        assert len(asking) == len(streams)
        clauses = []
        for first, end in pairwise([0, *self.barriers[at], count]):
            if first < end:
                own = slice(bisect_left(asking, first), bisect_left(asking, end))
                clauses.append(Clause(ALU, end - first, streams[own], at, first, sources[own]))
            if end < count:
                clauses.append(Clause(BARRIER, 0, (), at, end))
        return clauses

    def _streams(
        self, accesses: list[tuple[MemoryRequest, Motion]], active: np.ndarray, members: np.ndarray
    ) -> list[Stream]:
        if not accesses:
            return []
        if members.all():
            pixels = self.x, self.y
            return [self.surfaces.stream(a, pixels, active, motion) for a, motion in accesses]

        def cut(row: Any) -> Any:
            if np.size(row) == 1:
                return row
            return row.reshape(-1, 64)[members].ravel()

        streams = []
        pixels = (cut(self.x), cut(self.y))
        for access, motion in accesses:
            few = replace(access, rows=tuple(cut(row) for row in access.rows))
            moved = motion._replace(turns=cut(motion.turns))
            streams.append(self.surfaces.stream(few, pixels, cut(active), moved))
        return streams


def _bundles_with(kind: str, control: Control) -> list[int]:
    """The numbers of the bundles that have an operation of this kind."""
    bundles = enumerate(control.bundles)
    return [n for n, bundle in bundles if any(o.row.kind == kind for o in bundle.operations)]


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
