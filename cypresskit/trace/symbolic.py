"""Arithmetic without data: values that record whether they come from memory.

A ``Value`` is one component of a register in all work-items. Arithmetic on ids, constants and
counters is the machine's own. What is loaded from memory, and everything computed from it, is
unknown: no address and no branch may depend on it (``DataDependentError``). A value may also be
unknown because a loop was extrapolated (``UNKNOWN``). If anything depends on that, the loop has to
be run one iteration at a time (``NotExtrapolable``).
"""

from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np

from cypresskit.compiler.assembly import Operation
from cypresskit.il import Program
from cypresskit.il.errors import ArgumentError
from cypresskit.il.meaning import SIGN, pair, split

ALL_LANES, NO_LANES = np.ones(1, bool), np.zeros(1, bool)
UNKNOWN = 1 << 30  # larger than the index of any instruction


class DataDependentError(ArgumentError):
    """A kernel that can't be timed without its data: its addresses or branches depend on them."""


class NotExtrapolable(Exception):
    """A loop can't be extrapolated: it has to be run one iteration at a time."""


class Growth(NamedTuple):
    """How a number grows: ``start + n * step`` in the n-th iteration of a loop from the current one
    on. Rows of float64, or of int64 for a number modulo 2^32.
    """

    start: np.ndarray
    step: np.ndarray


BENT = Growth(NO_LANES, NO_LANES)  # it changes in another way


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """One component of a register, in one or all work-items.

    Attributes
    ----------
    bits
        Its bits; any where it is unknown.
    loaded
        Mask of the lanes in which it is unknown.
    at
        The instruction that loaded it, as an index into ``Program.body``; ``UNKNOWN`` after an
        extrapolated loop; -1 if it is known.
    growth
        How it grows in a loop that is forecast; None if it stays the same.
    """

    bits: np.ndarray
    loaded: np.ndarray = field(default_factory=lambda: NO_LANES)
    at: int = -1
    growth: Growth | None = None


ZERO = Value(np.zeros(1, np.uint32))


@cache
def unknown_value(at: int) -> Value:
    """Return the value that instruction ``at`` loads from memory."""
    return Value(ZERO.bits, ALL_LANES, at)


class SymbolicWords:
    """The arithmetic of a processor that runs ``program`` without data.

    Attributes
    ----------
    forecast
        Of the loop that is run, a ``Forecast``, or None: then no value grows.
    """

    poison = ZERO

    def __init__(self, program: Program):
        self.program = program
        self.forecast: Any = None

    def constant(self, bits: np.ndarray) -> Value:
        """Return a word that isn't computed: an input, a constant or a literal."""
        return Value(bits)

    def negated(self, word: Value) -> Value:
        """Return a word as a float of the other sign."""
        growth = word.growth and self.forecast.negated(word)
        return Value(word.bits ^ SIGN, word.loaded, word.at, growth)

    def compute(self, slots: tuple[Operation, ...], words: list[Value], low: list[Value]) -> Value:
        """Return the result of an operation on the words that its first slot reads. ``low``: the
        words of its last slot, for doubles.
        """
        first = slots[0]
        if first.name == "MOV":
            return words[0]
        at = -1
        all_unknown = False
        for word in words + low:
            at = max(at, word.at)
            all_unknown |= word.loaded is ALL_LANES
        if all_unknown:
            return unknown_value(at)
        bits = [word.bits for word in words]
        if low:
            bits = [pair(a.bits, b) for a, b in zip(low, bits, strict=True)]
        assert first.row.meaning is not None
        result_bits = first.row.meaning(*bits)
        growth = None
        if any(word.growth is not None for word in words + low):
            growth = BENT if low else self.forecast.result(first, words)
        if at < 0:
            return Value(result_bits, growth=growth)
        loaded = reduce(np.logical_or, (word.loaded for word in words + low))
        return Value(result_bits, loaded, at, growth)

    def halves(self, value: Value) -> tuple[Value, Value]:
        """Return the low and high words of a double; any other value twice."""
        if value.bits.dtype != np.uint64:
            return value, value
        low_word, high_word = (replace(value, bits=bits) for bits in split(value.bits))
        return low_word, high_word

    def merge(self, new: Value, old: Value, active: np.ndarray) -> Value:
        """Return ``new`` in the active lanes, ``old`` in the others."""
        if new.loaded is ALL_LANES and old.loaded is ALL_LANES:
            return new
        known = new.loaded is NO_LANES and old.loaded is NO_LANES
        loaded = NO_LANES if known else np.where(active, new.loaded, old.loaded)
        bits = old.bits if new.loaded is ALL_LANES else np.where(active, new.bits, old.bits)
        growth = self.forecast and self.forecast.merged(new, old, active)
        return Value(bits, loaded, max(new.at, old.at), growth)

    def passed(self, predicate: Operation, value: Value, active: np.ndarray) -> np.ndarray:
        """Return the mask of lanes in which a test passes."""
        self.check(value, predicate.at, active)
        if value.growth is not None:
            self.forecast.end()
        return np.broadcast_to(value.bits != 0, active.shape)

    def check(self, word: Value, user: int, active: np.ndarray) -> None:
        """Check that an address or a branch, of instruction ``user``, is known in all active lanes.

        Raises
        ------
        DataDependentError
            If it depends on data.
        NotExtrapolable
            If it depends on what an extrapolated loop left unknown.
        """
        if word.loaded is NO_LANES or not (word.loaded & active).any():
            return
        if word.at == UNKNOWN:
            raise NotExtrapolable
        program = self.program
        branch = bool(program.body[user].op.flow)
        what = "a branch" if branch else "an address"
        advice = (
            "Replace the branch by `cmov_logical`, `min` or `max`, which choose between values, if"
            " every work-item can compute both."
            if branch
            else "An address is known if it comes from the work-item's id, constants and counters."
        )
        raise DataDependentError(
            f"{program.where(program.body[word.at].line)}\n    reads data that {what} depends on,"
            f" the one in\n{program.where(program.body[user].line)}\n    Such a kernel can"
            " be run (`ck.launch`) and checked (`ck.check`), but not timed: its time depends on its"
            f" data, and timing knows only a launch's shape. {advice}"
        )
