"""Drift: what a loop's tests will compare, if its turns go on as two of them did.

A rehearsal runs a loop only to see whether it ends, turn by turn. Most loops that don't end drift:
each turn adds the same to what their tests depend on. From the ends of three turns follows what
these registers hold in any turn, and from the comparisons of two the turn in which one of them may
come out differently. Until then nothing new happens.

Left out: registers that turn in circles, or grow by a factor. Such loops are run to their limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cypresskit.machine.vliw import Processor
from cypresskit.timing.loops import NO_TURN, Moving, Register, Registers, meetings, number
from cypresskit.timing.words import UNKNOWN, Comparison, NotCounted

NEXT = 2  # the turn that follows on those that were watched, which are turns 0 and 1


class Comparisons(list[Comparison]):
    """Comparisons as ``processor`` makes them, each with the lanes that are active."""

    def __init__(self, processor: Processor):
        super().__init__()
        self.processor = processor

    def append(self, comparison: Comparison) -> None:
        super().append(comparison._replace(active=self.processor.masks.active))


@dataclass(frozen=True, eq=False)
class WatchedTurn:
    """The end of a turn: the ``registers`` that tests depend on, what was ``compared`` in it, and
    the lanes that are ``running`` (bool).
    """

    registers: Registers
    compared: Sequence[Comparison]
    running: np.ndarray
    issued: np.ndarray  # instructions of each wavefront, so far

    def like(self, other: "WatchedTurn") -> bool:
        """Whether the same lanes made the same comparisons, and are running."""
        if len(self.compared) != len(other.compared):
            return False
        for own, theirs in zip(self.compared, other.compared, strict=True):
            if own.operation is not theirs.operation:
                return False
            assert own.active is not None and theirs.active is not None
            if not np.array_equal(own.active, theirs.active):
                return False
        return np.array_equal(self.running, other.running)


class Drift:
    """The drift of a loop from the end of the turn before turn 0, of turn 0 and of turn 1. Raises
    ``NotCounted`` if they don't move evenly.
    """

    def __init__(self, before: WatchedTurn, first: WatchedTurn, second: WatchedTurn):
        self.first, self.second = first, second
        self.running = second.running
        if not (first.like(second) and np.array_equal(before.running, self.running)):
            raise NotCounted
        self.moving: dict[Register, Moving] = {}
        for place, word in second.registers.items():
            earlier = before.registers[place], first.registers[place]
            if all(word.same(other, self.running) for other in earlier):
                continue
            moving = self.moving[place] = Moving(*earlier, word, self.running)
            if moving.constant is not None and moving.constant.at == UNKNOWN:
                raise NotCounted

    @property
    def issued(self) -> int:
        """The instructions of a turn, of the wavefront that has most."""
        return int((self.second.issued - self.first.issued).max())

    def turns(self) -> float:
        """The first turn in which a comparison may come out differently, or a float is too large to
        be stepped exactly; ``NO_TURN``, perhaps.
        """
        limits = [moving.turns_below(self.running) for moving in self.moving.values()]
        for first, second in zip(self.first.compared, self.second.compared, strict=True):
            assert first.active is not None
            meet = meetings([first], [second], first.active)
            limits += [float(turn.min()) for turn in meet]
        return min(limits, default=NO_TURN)

    def registers(self, turn: int) -> Registers:
        """What moves, at the beginning of a turn."""
        return {place: moving.at(turn) for place, moving in self.moving.items()}

    def expects(self, turn: int, ran: WatchedTurn) -> bool:
        """Whether a turn that was run went as those before it."""
        if not ran.like(self.second):
            return False
        for place, expected in (self.second.registers | self.registers(turn + 1)).items():
            if not expected.same(ran.registers[place], self.running):
                return False
        rows = zip(self.first.compared, self.second.compared, ran.compared, strict=True)
        return all(self._goes_on(turn, *row) for row in rows)

    def _goes_on(self, turn: int, first: Comparison, second: Comparison, third: Comparison) -> bool:
        active = third.active
        for words in (
            (first.left, second.left, third.left),
            (first.right, second.right, third.right),
        ):
            if any((word.loaded & active).any() for word in words):
                return False
            start, then, now = (number(word, third.operation) for word in words)
            with np.errstate(all="ignore"):
                off = (start + turn * (then - start) != now) & active
            if off.any():
                return False
        return True
