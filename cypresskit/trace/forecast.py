"""Prove for how many iterations of a loop the current one stands.

At the start of an iteration, each register that has grown gets a ``Growth``: its number in any
later iteration, if it goes on so. The iteration then computes with growths as it does with bits. A
sum of growths is one, and so is a product with a number that stays the same; most other results are
``BENT``. If each register ends as the next iteration should start, all of this holds for the next
ones as well, up to a ``horizon``: until a float would be rounded, an integer that is compared,
converted or an address would change its sign, or a comparison may change its outcome. There are no
such iterations if an address or a branch depends on what is bent.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.compiler.assembly import Operation
from cypresskit.il.meaning import flushed
from cypresskit.trace.symbolic import BENT, NO_LANES, UNKNOWN, Growth, Value

#: (denominator, limit): floats in steps of 1 / denominator are exact below the limit.
EXACT_FLOATS = tuple((grain, 2.0**24 / grain) for grain in (1, 2, 16, 256))
MASK = 2**32 - 1
NO_ITERATIONS = -np.inf


@dataclass(eq=False)
class Forecast:
    """What the current iteration of a loop says about later ones.

    Attributes
    ----------
    lanes
        Mask of the lanes that run it.
    horizon
        How many further iterations do the same.
    """

    lanes: np.ndarray
    horizon: float = np.inf

    def expected(self, before: Value, now: Value) -> Growth | None:
        """Return how a register is expected to grow, given its values at the starts of the last
        iteration and of this one.
        """
        lanes = self.known(before, now)
        a, b = before.bits, now.bits
        if before is now or not of_lanes(a != b, lanes).any():
            return None
        x, y = flushed(a), flushed(b)
        if not of_lanes((x.view(np.uint32) != a) | (y.view(np.uint32) != b), lanes).any():
            end = y.astype(np.float64)
            found = self._exact(Growth(end, end - x), lanes)
            if found is not BENT:
                return found
        end = _integer(b)
        return Growth(end, _wrapped(end - _integer(a)))

    def is_next(self, start: Value, end: Value) -> bool:
        """Return whether a register, which had the value ``start`` at the start of the iteration,
        ends as the next one should start.
        """
        lanes = self.known(start, end)
        if start.growth is None or end.growth is None:
            return start.growth is end.growth and not of_lanes(start.bits != end.bits, lanes).any()
        (a, step), (b, other) = start.growth, end.growth
        if a.dtype != b.dtype or a.dtype == bool:
            return False
        return not of_lanes((_wrapped(a + step) != b) | (step != other), lanes).any()

    def is_loaded_alike(self, start: Value, end: Value) -> bool:
        """Return whether the same lanes of two values come from memory."""
        return not of_lanes(start.loaded != end.loaded, self.lanes).any()

    def later(self, value: Value, count: int) -> Value:
        """Return what a register is ``count`` iterations later; unknown if it is bent."""
        growth = value.growth
        if growth is None:
            return value
        if growth is BENT:
            return Value(value.bits, value.loaded | self.lanes, UNKNOWN)
        start, step = growth
        number = start + count * step
        bits = number.astype(np.float32 if number.dtype == float else np.int32).view(np.uint32)
        return Value(np.where(self.lanes & (step != 0), bits, value.bits), value.loaded, value.at)

    def known(self, *words: Value) -> np.ndarray:
        """Return the mask of the lanes in which none of the words comes from memory."""
        lanes = self.lanes
        for word in words:
            if word.loaded is not NO_LANES:
                lanes = lanes & ~word.loaded
        return lanes

    # Arithmetic

    def result(self, o: Operation, words: list[Value]) -> Growth | None:
        """Return how the result of an operation grows; None if it stays the same."""
        lanes = self.known(*words)
        terms = [_as_growth(o.row.kind == "float", word) for word in words]
        if any(term is BENT for term in terms):
            return BENT
        if o.row.relation:
            a, b = terms
            self._compare(o, a, b, lanes)
            return None
        match o.name, terms:
            case "ADD", (a, b):
                return self._exact(_sum(a, b), lanes)
            case "MUL_IEEE", (a, b):
                return self._exact(_product(a, b, lanes), lanes)
            case "MULADD_IEEE" | "FMA", (a, b, c):
                product = self._exact(_product(a, b, lanes), lanes)
                return product if product is BENT else self._exact(_sum(product, c), lanes)
            case "FLT_TO_INT", (a,):
                is_whole = not any((of_lanes(row, lanes) % 1).any() for row in a)
                return Growth(*(row.astype(np.int64) for row in a)) if is_whole else BENT
            case "INT_TO_FLT", (a,):
                self._keep_sign(a, lanes)
                return self._exact(Growth(*(row.astype(np.float64) for row in a)), lanes)
            case "ADD_INT", (a, b):
                return _sum(a, b)
            case "SUB_INT", (a, b):
                return _sum(a, Growth(-b.start, -b.step))
            case "MULLO_INT", (a, b):
                return _product(a, b, lanes)
            case "LSHL_INT", (a, b) if not of_lanes(b.step != 0, lanes).any():
                return _product(a, Growth(1 << (b.start & 31), b.step), lanes)
        return BENT

    def negated(self, word: Value) -> Growth:
        """Return how a float of the other sign grows."""
        growth = _as_growth(True, word)
        return growth if growth is BENT else Growth(-growth.start, -growth.step)

    def merged(self, new: Value, old: Value, active: np.ndarray) -> Growth | None:
        """Return how a register grows that is ``new`` in active lanes, and ``old`` in others."""
        if new.growth is old.growth or not (self.lanes & ~active).any():
            return new.growth
        growths = [word.growth for word in (new, old) if word.growth is not None]
        is_float = growths[0].start.dtype == float
        a, b = _as_growth(is_float, new), _as_growth(is_float, old)
        if a is BENT or b is BENT:
            return BENT
        return Growth(*(np.where(active, x, y) for x, y in zip(a, b)))

    # The horizon

    def end(self) -> None:
        """Note that no later iteration is known to do the same."""
        self.horizon = NO_ITERATIONS

    def access(self, word: Value, is_float: bool) -> None:
        """Note a word of an address."""
        growth = _as_growth(is_float, word)
        if growth is BENT:
            self.end()
        elif not is_float:
            self._keep_sign(growth, self.known(word))

    def _compare(self, o: Operation, a: Growth, b: Growth, lanes: np.ndarray) -> None:
        """Note a comparison: its outcome is the same until its operands cross."""
        if o.row.kind == "int":
            self._keep_sign(a, lanes)
            self._keep_sign(b, lanes)
        gap = a.start - b.start
        if "UINT" in o.name:
            gap = (a.start & MASK) - (b.start & MASK)
        step = a.step - b.step
        crosses = (step != 0) & (gap * np.sign(step) <= 0)
        self._limit(np.where(crosses, np.ceil(abs(gap) / abs(step)) - 1, np.inf), lanes)

    def _keep_sign(self, growth: Growth, lanes: np.ndarray) -> None:
        """Note an integer that has to keep its sign, in whatever type it is taken."""
        start, step = growth
        least = np.where(start < 0, np.int64(-(2**31)), 0)  # numpy's own may have 32 bits
        room = np.where(step > 0, least + 2**31 - 1 - start, start - least)
        self._limit(np.where(step != 0, room // np.maximum(abs(step), 1), np.inf), lanes)

    def _exact(self, growth: Growth, lanes: np.ndarray) -> Growth:
        """Return how a float grows, ``BENT`` if it may be rounded; note until when it isn't."""
        if growth is BENT:
            return BENT
        start, step = growth
        for denominator, limit in EXACT_FLOATS:
            if not any((of_lanes(row, lanes) * denominator % 1).any() for row in growth):
                room = np.where(step != 0, (limit - abs(start)) // abs(step), np.inf)
                if of_lanes(room < 1, lanes).any():
                    return BENT
                self._limit(room, lanes)
                return growth
        return BENT

    def _limit(self, most: np.ndarray, lanes: np.ndarray) -> None:
        """Note for how many iterations something holds, in some lanes."""
        self.horizon = min(self.horizon, of_lanes(most, lanes).min(initial=np.inf))


def _as_growth(is_float: bool, word: Value) -> Growth:
    """Return how a word grows, read as a float or an integer."""
    if word.growth is None:
        start = flushed(word.bits).astype(np.float64) if is_float else _integer(word.bits)
        return Growth(start, np.zeros(1, start.dtype))
    return word.growth if word.growth.start.dtype == (float if is_float else np.int64) else BENT


def _sum(a: Growth, b: Growth) -> Growth:
    return Growth(_wrapped(a.start + b.start), _wrapped(a.step + b.step))


def _product(a: Growth, b: Growth, lanes: np.ndarray) -> Growth:
    """Return how a product grows: ``BENT`` if both factors do."""
    if of_lanes((a.step != 0) & (b.step != 0), lanes).any():
        return BENT
    return Growth(_wrapped(a.start * b.start), _wrapped(a.start * b.step + a.step * b.start))


def _integer(bits: np.ndarray) -> np.ndarray:
    """Return bits as signed numbers, in int64."""
    return bits.view(np.int32).astype(np.int64)


def _wrapped(row: np.ndarray) -> np.ndarray:
    """Return what 32 bits hold of integers; floats as they are."""
    return row if row.dtype == float else row.astype(np.int32).astype(np.int64)


def of_lanes(row: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """Return some lanes of a row; a row of one element stands for all."""
    return np.broadcast_to(row, lanes.shape)[lanes]
