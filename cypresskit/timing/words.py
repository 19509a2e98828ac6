"""Words whose data are unknown: the machine's arithmetic, and a mark on what came from memory.

A ``Value`` is what one component of a register holds in all work-items. Arithmetic on ids,
constants and counters is the machine's own. What memory gives is ``loaded``, as is all that is
computed from it: no address and no branch may depend on it (``DataDependentError``). ``UNKNOWN``
marks what a counted loop couldn't tell (``loops``): whoever depends on that has the loop run turn
by turn (``NotCounted``).
"""

from dataclasses import dataclass, field
from functools import cache, reduce
from typing import NamedTuple

import numpy as np

from cypresskit.compiler.assembly import Operation
from cypresskit.il import Program
from cypresskit.il.meaning import SIGN, pair, scaled, split

EVERYBODY, NOBODY = np.ones(1, bool), np.zeros(1, bool)
UNKNOWN = 1 << 30  # more than any instruction's number


class DataDependentError(ValueError):
    """A kernel that can't be timed without its data: its addresses or branches depend on them."""


class NotCounted(Exception):
    """A loop can't be run for all its turns at once: it has to be run turn by turn."""


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """``bits`` (of one or all work-items); ``loaded``: who has it from memory, and by which
    instruction (``at``, an index into ``Program.body``; -1 if nobody has).
    """

    bits: np.ndarray
    loaded: np.ndarray = field(default_factory=lambda: NOBODY)
    at: int = -1


class Comparison(NamedTuple):
    """A comparison that was made, and its operands."""

    operation: Operation
    left: Value
    right: Value


ZERO = Value(np.zeros(1, np.uint32))


@cache
def from_memory(at: int) -> Value:
    """The word that instruction ``at`` reads from memory: its value is unknown."""
    return Value(ZERO.bits, EVERYBODY, at)


class MarkedWords:
    """The arithmetic of a processor that runs ``program`` without data. ``compared``, if it is a
    list, takes each comparison.
    """

    poison = ZERO

    def __init__(self, program: Program):
        self.program = program
        self.compared: list[Comparison] | None = None

    def constant(self, bits: np.ndarray) -> Value:
        return Value(bits)

    def signed(self, word: Value, negated: bool, absolute: bool) -> Value:
        if word.loaded is EVERYBODY:
            return word
        bits = word.bits & ~SIGN if absolute else word.bits
        return Value(bits ^ SIGN if negated else bits, word.loaded, word.at)

    def compute(self, slots: tuple[Operation, ...], words: list[Value], low: list[Value]) -> Value:
        first = slots[0]
        if first.name == "MOV" and first.omod == 1.0 and not first.clamp:
            return words[0]
        if self.compared is not None and first.row.relation and not low:
            self.compared.append(Comparison(first, words[0], words[1]))
        at = -1
        everybody = False
        for word in words + low:
            at = max(at, word.at)
            everybody |= word.loaded is EVERYBODY
        if everybody:
            return from_memory(at)
        bits = [word.bits for word in words]
        if low:
            bits = [pair(a.bits, b) for a, b in zip(low, bits, strict=True)]
        assert first.row.meaning is not None
        result_bits = scaled(first.row.meaning(*bits), first.omod, first.clamp)
        if at < 0:
            return Value(result_bits)
        return Value(result_bits, reduce(np.logical_or, (word.loaded for word in words + low)), at)

    def halves(self, value: Value) -> tuple[Value, Value]:
        if value.bits.dtype != np.uint64:
            return value, value
        low, high = split(value.bits)
        return Value(low, value.loaded, value.at), Value(high, value.loaded, value.at)

    def merge(self, new: Value, old: Value, active: np.ndarray) -> Value:
        if new.loaded is EVERYBODY and old.loaded is EVERYBODY:
            return new
        known = new.loaded is NOBODY and old.loaded is NOBODY
        loaded = NOBODY if known else np.where(active, new.loaded, old.loaded)
        bits = old.bits if new.loaded is EVERYBODY else np.where(active, new.bits, old.bits)
        return Value(bits, loaded, max(new.at, old.at))

    def passed(self, predicate: Operation, value: Value, active: np.ndarray) -> np.ndarray:
        self.check(value, predicate.at, active)
        return np.broadcast_to(value.bits != 0, active.shape)

    def check(self, word: Value, user: int, active: np.ndarray) -> None:
        """Refuse an address or a branch, of instruction ``user``, that depends on what was read
        from memory.
        """
        if word.loaded is NOBODY or not (word.loaded & active).any():
            return
        if word.at == UNKNOWN:
            raise NotCounted
        program = self.program
        branch = bool(program.body[user].op.flow)
        what = "a branch" if branch else "an address"
        advice = (
            "The branch can go only where all work-items need the same: then choose between values"
            " with `cmov_logical`, `min` or `max`."
            if branch
            else "An address is known if it comes from the work-item's id, constants and counters."
        )
        raise DataDependentError(
            f"{program.where(program.body[word.at].line)}\n    reads data that {what} depends on,"
            f" the one in\n{program.where(program.body[user].line)}\n    Such a kernel runs"
            " (`ck.launch`) and is checked (`ck.check`), but has no clock: its time depends on its"
            f" data, and timing follows a launch's shape, without data. {advice}"
        )
