"""The way of wavefronts through compiled code: clause after clause, with the addresses of each
access.

How it works:

1. Nothing is computed of data: a ``Processor`` runs the code on words that say whether they came
   from memory (``words``), and a memory that notes where it is asked (``requests``). A test or an
   address from memory is an error.
2. All wavefronts go at once, as the lanes of one wavefront do: where they part, both ways are run,
   one after the other, each under the mask of those that go there. ``History`` notes each clause
   with its ``members``, the wavefronts that ran it, and makes the paths of that in the end.
3. A loop that only counts is run for all turns in which nobody leaves at once (``loops``), as one
   segment with a number of turns. What it can't tell of its registers is marked; whoever reads that
   behind the loop raises ``NotCounted``, and the walk begins anew with that loop run turn by turn.
4. A loop that doesn't end must be found before its turns fill the memory: after ``LONG`` of them,
   what decides branches is run on its own, as compiled code (``endless``).

What holds between any two control-flow instructions:

- ``loops`` has the loops that are being run turn by turn, the innermost last, and as many as
  ``processor.masks.loops``.
- In ``history``, what a wavefront ran since its last ``end_segment`` is run once. A segment ends
  where a loop begins and where a wavefront leaves it, for those wavefronts alone.

The laws are in tests/test_timing_walk.py: wavefronts that are walked together run what each runs
alone, counted loops are those run turn by turn, and a walk finds the endless loops of a launch.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cypresskit.compiler import Code
from cypresskit.machine import shape
from cypresskit.machine.launch import KernelError
from cypresskit.machine.vliw import Processor
from cypresskit.machine.wavefront import WAVEFRONT
from cypresskit.timing.clauses import ClauseMaker
from cypresskit.timing.endless import endless_loop
from cypresskit.timing.history import History
from cypresskit.timing.loops import CountedLoop, can_count, loop_body
from cypresskit.timing.requests import MemoryRequest, Requests
from cypresskit.timing.surfaces import Motion, Surfaces
from cypresskit.timing.words import MarkedWords, NotCounted
from cypresskit.timing.work import Path

MAX_BYTES = 4 << 30  # of a walk, and what the engine takes from it
BESIDES = 64 * 256  # bytes of a wavefront while it is walked, beside its accesses; measured
SMALL = 1500  # wavefronts of a walk that is kept for the next launch, at most: a few MB
KEPT_WALKS = 4  # such walks: of one launch, prices and lines are asked together
LONG = 64  # turns of a loop that are noted before it is asked whether it ends
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


class _Walk:
    """The walk of some wavefronts; loops ``stepped`` are run turn by turn, ``counted`` ones were
    run for several turns at once.
    """

    def __init__(
        self,
        code: Code,
        surfaces: Surfaces,
        wavefronts: np.ndarray,
        stepped: frozenset[int],
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
            code,
            shape.input_registers(surfaces.shape, x, y),
            surfaces.shape.constants,
            self.words,
            self.memory,
            exist,
        )
        self.history = History(len(wavefronts))
        self.clause_maker = ClauseMaker(code, surfaces, x, y)

        self.loops: list[_RunningLoop] = []

        # of the last question to `members`: most come in rows with the same lanes
        self._asked_lanes = np.zeros(0, bool)
        self._members = np.zeros(0, bool)

    def run(self) -> list[Path]:
        at = 0
        while at != len(self.code.controls) - 1:
            at = self._step(at)
        return self.history.paths(self.wavefronts)

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
            accesses = [(access, Motion()) for access in self.memory.noted]
            self._record(at, accesses, active, self.members(active))
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
            members = np.any(lanes.reshape(-1, WAVEFRONT), axis=1)
            if not np.array_equal(members, self._members):
                self._members = members  # one array for equal members, as History compares them
            self._asked_lanes = lanes
        return self._members

    # Loops

    def _enter(self, at: int) -> int:
        """Begin the loop at ``at``, and run at once the turns that can be counted."""
        masks = self.processor.masks
        members = self.members(masks.active)
        self.history.end_segment(members)
        following = self.processor.step(at)
        if masks.count and at not in self.stepped and can_count(self.code, at):
            self._count(at)
        self.loops.append(_RunningLoop(at, members))
        return following

    def _count(self, at: int) -> None:
        """Run a loop for all turns in which nobody leaves."""
        counted = CountedLoop(self.processor, at).run()
        if counted is None:
            return
        self.counted |= {at}
        members = counted.turns > 0
        active = self.processor.masks.active & np.repeat(members, WAVEFRONT)
        for n, accesses in counted.accesses.items():
            self._record(n, accesses, active, members)
        self.history.end_segment(members, counted.turns)

    def _end_turn(self, at: int) -> int:
        """End a turn of the innermost loop, at its ``LOOP_END``. Returns the instruction that
        follows: the loop's first, or the one behind it once all have left.
        """
        loop = self.loops[-1]
        self._let_go(loop)

        following = self.processor.step(at)
        if following > at:
            self.loops.pop()
            return following

        loop.turns += 1
        if loop.turns == LONG:
            self._check_that_it_ends()
        return following

    def _let_go(self, loop: _RunningLoop) -> None:
        """Note a segment's end for those that have left the loop in this turn."""
        running = self.members(self.processor.masks.loops[-1].loop_mask.copy())  # changes in place
        ended = loop.members & ~running
        if ended.any():
            self.history.end_segment(ended)
        loop.members = running

    def _check_that_it_ends(self) -> None:
        """Raise ``KernelError`` if a loop that never ends is the innermost that is run, or one
        around that has ended a turn: before, what it depends on may yet turn out to be data.
        """
        error = self._endless
        if error is None:
            return
        end = self.code.program.matching[error.at]
        for loop in self.loops:
            body = loop_body(self.code, loop.start)
            if all(error.at <= control.at <= end for control in body):
                if loop.turns:
                    raise error
                return

    @cached_property
    def _endless(self) -> KernelError | None:
        return endless_loop(self.surfaces.shape, self.wavefronts)
