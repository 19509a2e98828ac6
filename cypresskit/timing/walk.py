"""The way of wavefronts through compiled code: clause after clause, with the addresses of each
access.

The compiled operations are run as they are, for many wavefronts at once (``lanes``). Those that
take different ways are walked again, apart. A counting loop is run once for all its turns
(``loops``).
"""

from typing import Any

import numpy as np

from cypresskit.compiler import Code
from cypresskit.timing.lanes import Lanes
from cypresskit.timing.loops import MOST_TURNS, can_count, endless_loop, loop_end, run_counted
from cypresskit.timing.surfaces import NotAffine, Surfaces
from cypresskit.timing.work import Clause, Path, combined_stores

KEPT, SMALL = 16, 1500  # so many walks are kept, of at most so many wavefronts: a few MB each
_walks: dict[tuple, list[Path]] = {}


def walk(code: Code, surfaces: Surfaces, wavefronts: np.ndarray) -> list[Path]:
    """The paths of ``wavefronts`` (numbers in dispatch order), one for each group that takes the
    same way. Boards that differ in nothing that is read here share the last ones.
    """
    if len(wavefronts) > SMALL:
        return _walked(code, surfaces, wavefronts)
    key = code.program, code.controls, surfaces.key, wavefronts.tobytes()
    return keep(_walks, key, _walks.get(key) or _walked(code, surfaces, wavefronts), KEPT)


def keep(kept: dict, key: tuple, result: Any, most: int) -> Any:
    """The result, which is kept under its key: the last ``most`` are."""
    kept[key] = result
    while len(kept) > most:
        kept.pop(next(iter([*kept])), None)  # a list, since other threads add theirs
    return result


def _walked(code: Code, surfaces: Surfaces, wavefronts: np.ndarray) -> list[Path]:
    waiting: list[tuple[np.ndarray, frozenset[int]]] = [(wavefronts, frozenset())]
    done = []
    while waiting:
        group, stepped = waiting.pop()
        way = _Way(code, surfaces, group, stepped)
        try:
            with np.errstate(all="ignore"):
                way.run()
            done.append(Path(group, tuple(way.segments)))
        except _Diverged as diverged:
            waiting += [(group[part], stepped) for part in diverged.args]
        except NotAffine:  # a value that a counted loop couldn't tell is used behind it
            waiting.append((group, stepped | way.counted))
    return done


class _Diverged(Exception):
    """Wavefronts take different ways; ``args`` are the numbers (among those that are walked) of
    each group.
    """


class _Way(Lanes):
    """The way of one group of wavefronts, in ``segments``; loops ``stepped`` are run turn by turn,
    ``counted`` ones were run for several turns at once.
    """

    def __init__(
        self, code: Code, surfaces: Surfaces, wavefronts: np.ndarray, stepped: frozenset[int]
    ):
        super().__init__(code, surfaces, wavefronts)
        self.stepped, self.counted = stepped, frozenset[int]()
        self.loop_turns: dict[int, int] = {}  # of each loop, since it was entered
        self.segments: list[tuple[tuple[Clause, ...], int]] = []

    def run(self) -> None:
        super().run()
        self._end_segment()

    def any(self, lanes: np.ndarray) -> bool:
        """Whether any lane of a wavefront is among ``lanes``: the same for all wavefronts, or they
        part.
        """
        some = lanes.reshape(-1, 64).any(axis=1)
        if some.all() or not some.any():
            return bool(some.any())
        raise _Diverged(np.flatnonzero(some), np.flatnonzero(~some))

    def _end_segment(self, times: int = 1) -> None:
        if self.clauses:
            self.segments.append((tuple(combined_stores(self.clauses)), times))
            self.clauses = []

    def after_leaving(self, at: int) -> int:
        """The next control: the loop's end if no lane is left in its turn."""
        if not self.masks.loops:
            return at + 1
        loop = self.masks.loops[-1]
        if self.any(loop.running & ~loop.gone):
            return at + 1
        while self.masks.stack[-1] is not loop:
            self.masks.stack.pop()
        return loop_end(self.code, loop.at)

    def begin_loop(self, at: int) -> None:
        self._end_segment()
        super().begin_loop(at)
        turns = run_counted(self, at) if at not in self.stepped and can_count(self.code, at) else 0
        if turns:
            self.counted |= {at}
            self._end_segment(turns)
        self.loop_turns[at] = turns

    def end_turn(self, start: int, more: bool) -> None:
        self.loop_turns[start] += more
        if not more:
            self._end_segment()
        elif self.loop_turns[start] > MOST_TURNS:
            raise endless_loop(self.code, start)
