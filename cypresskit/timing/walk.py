"""The way of wavefronts through compiled code: clause after clause, with the addresses of each access.

The compiled operations are run as they are, for many wavefronts at once (``lanes``). Those that take different ways
are walked again, apart. A counting loop is run once for all its turns (``loops``).
"""

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import Control
from cypresskit.timing.affine import IRREGULAR
from cypresskit.timing.lanes import Lanes
from cypresskit.timing.loops import MOST_TURNS, can_count, endless_loop, loop_end, run_counted
from cypresskit.timing.surfaces import NotAffine, Surfaces
from cypresskit.timing.work import Clause, Path, combined_stores

Segments = list[tuple[tuple[Clause, ...], int]]


def walk(code: Code, surfaces: Surfaces, wavefronts: np.ndarray) -> list[Path]:
    """The paths of ``wavefronts`` (numbers in dispatch order), one for each group that takes the same way."""
    waiting: list[tuple[np.ndarray, frozenset[int]]] = [(wavefronts, frozenset())]
    done = []
    while waiting:
        group, stepped = waiting.pop()
        one = _Walk(code, surfaces, group, stepped)
        try:
            with np.errstate(all="ignore"):
                done.append(Path(group, tuple(one.run())))
        except _Diverged as diverged:
            waiting += [(group[some], stepped) for some in diverged.args]
        except NotAffine:  # a value that a counted loop couldn't tell is used behind it
            waiting.append((group, stepped | one.counted))
    return done


class _Diverged(Exception):
    """Wavefronts take different ways; ``args`` are the numbers (among those that are walked) of each group."""


class _Walk:
    """One group of wavefronts on its way; loops ``stepped`` are run turn by turn."""

    def __init__(self, code: Code, surfaces: Surfaces, wavefronts: np.ndarray, stepped: frozenset[int]):
        self.code, self.stepped = code, stepped
        self.counted: frozenset[int] = frozenset()  # loops that were run for several turns at once
        self.lanes = Lanes(code, surfaces, wavefronts)
        self.masks = self.lanes.masks
        self.turns: dict[int, int] = {}  # of each loop, since it was entered
        self.segments: Segments = []

    def run(self) -> Segments:
        """Follow the control flow; the segments of the path."""
        pc = 0
        while self.code.controls[pc].name != "END":
            pc = self._control(pc, self.code.controls[pc])
        self._flush()
        return self.segments

    def _any(self, lanes: np.ndarray) -> bool:
        """Whether any lane of a wavefront is among ``lanes``: the same for all wavefronts, or they part."""
        some = lanes.reshape(-1, 64).any(axis=1)
        if some.all() or not some.any():
            return bool(some.any())
        raise _Diverged(np.flatnonzero(some), np.flatnonzero(~some))

    def _flush(self, times: int = 1) -> None:
        """End a segment."""
        if self.lanes.clauses:
            self.segments.append((tuple(combined_stores(self.lanes.clauses)), times))
            self.lanes.clauses = []

    def _control(self, pc: int, control: Control) -> int:
        """Do one control-flow instruction; the next one's number."""
        name, masks = control.name, self.masks
        if control.bundles or control.fetches:
            return self._clause(pc, control)
        if control.store is not None:
            if masks.count:
                self.lanes.store(control.store)
        elif name == "LOOP_START_DX10":
            self._enter_loop(pc)
        elif name in ("LOOP_BREAK", "LOOP_CONTINUE"):
            masks.leave(masks.active, name == "LOOP_BREAK")
            return self._after_leaving(pc)
        elif name == "LOOP_END":
            return self._end_turn(pc)
        elif name in ("JUMP", "ELSE"):
            if name == "ELSE":
                masks.otherwise()
            if not self._any(masks.active):
                return control.target
        elif name == "POP":
            masks.close()
            return self._after_leaving(pc)
        return pc + 1

    def _clause(self, pc: int, control: Control) -> int:
        if not self.masks.count:
            return pc + 1
        test = self.lanes.clause(control)
        if test is None:
            return pc + 1
        predicate, word = test
        self.lanes.check(word, predicate.at)
        if word is IRREGULAR or word.test:
            raise NotAffine
        holds = np.broadcast_to(word.bits != 0, self.lanes.items)
        if control.name == "ALU_PUSH_BEFORE":
            self.masks.begin_if(holds)
            return pc + 1
        self.masks.leave(~holds, control.name == "ALU_BREAK")
        return self._after_leaving(pc)

    def _after_leaving(self, pc: int) -> int:
        """The next control, which is the loop's end if nobody is left in its turn."""
        if not self.masks.loops:
            return pc + 1
        loop = self.masks.loops[-1]
        if self._any(loop.running & ~loop.gone):
            return pc + 1
        while self.masks.stack[-1] is not loop:
            self.masks.stack.pop()
        return loop_end(self.code, loop.at)

    def _enter_loop(self, pc: int) -> None:
        self._flush()
        self.masks.begin_loop(pc)
        turns = run_counted(self.lanes, pc) if pc not in self.stepped and can_count(self.code, pc) else 0
        if turns:
            self.counted |= {pc}
            self._flush(turns)
        self.turns[pc] = turns

    def _end_turn(self, pc: int) -> int:
        loop = self.masks.loops[-1]
        more = self._any(loop.running)
        self.masks.next_iteration()
        if not more:
            self._flush()
            return pc + 1
        self.turns[loop.at] += 1
        if self.turns[loop.at] > MOST_TURNS:
            raise endless_loop(self.code, loop.at)
        return loop.at + 1
