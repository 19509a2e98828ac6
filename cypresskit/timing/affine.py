"""Register components as affine functions of a loop's turn: start + step * turn, for many work-items at once.

An ``Affine`` is what one component of a register holds in all work-items. Outside of loops its step is None, operations
are the machine's own arithmetic. In a turn that stands for all turns of a loop, operations that keep affine functions
affine are done on start and step; everything else makes ``IRREGULAR``, which nobody may use. What memory gives is
``loaded``, as is all that is computed from it.

Single precision is exact here: a float counts as affine only in steps of 1/256 and below 2^16, an integer below 2^31.
``Exactness`` keeps for how many turns that holds.
"""

from dataclasses import dataclass, replace

import numpy as np

from cypresskit.compiler.assembly import Operation
from cypresskit.il.meaning import SIGN, pair, scaled

GRAIN = 256  # a float counts in steps of 1 / GRAIN
RANGE = {"float": 2.0**16, "int": 2.0**31}
EVERYBODY = np.ones(1, bool)
RELATIONS = {"SETGT": "gt", "SETGE": "ge", "SETE": "eq", "SETNE": "ne"}  # to zero, of a difference
OPPOSITE = {"gt": ("ge", -1), "ge": ("gt", -1), "eq": ("ne", 1), "ne": ("eq", 1)}  # and the sign of that
Test = tuple[str, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False, slots=True)
class Affine:
    """``bits`` (1 or all work-items) in turn 0, of ``kind`` "float" or "int"; ``step`` (float64) or None; ``loaded``:
    who has it from memory, None for nobody, and by which instruction (``at``); ``test``: a comparison of affine words
    as (relation, start, step) of their difference to zero."""

    bits: np.ndarray
    kind: str = "int"
    step: np.ndarray | None = None
    loaded: np.ndarray | None = None
    at: int = -1
    test: Test | None = None

    def number(self) -> np.ndarray:
        """The number in turn 0."""
        return self.bits.view(np.float32 if self.kind == "float" else np.int32).astype(np.float64)

    def later(self, turn: int) -> "Affine":
        """The word in that turn, without a step."""
        if self.step is None:
            return IRREGULAR if self.test else self
        return replace(self, bits=to_bits(self.number() + self.step * turn, self.kind), step=None)


ZERO = Affine(np.zeros(1, np.uint32))
IRREGULAR = Affine(np.zeros(1, np.uint32))


def from_memory(at: int) -> Affine:
    """What instruction ``at`` has read."""
    return Affine(ZERO.bits, loaded=EVERYBODY, at=at)


def to_bits(number: np.ndarray, kind: str) -> np.ndarray:
    """A register's bits for numbers."""
    narrow = number.astype(np.float32) if kind == "float" else number.astype(np.int64).astype(np.int32)
    return narrow.view(np.uint32)


def merge(new: Affine, old: Affine, who: np.ndarray) -> Affine:
    """``new`` for those who are in ``who`` and ``old`` for the others."""
    if IRREGULAR in (new, old):
        return IRREGULAR
    if new.loaded is EVERYBODY and old.loaded is EVERYBODY:
        return new
    loaded = None
    if new.loaded is not None or old.loaded is not None:
        nobody = np.zeros(1, bool)
        loaded = np.where(who, *(nobody if w.loaded is None else w.loaded for w in (new, old)))
    bits = old.bits if new.loaded is EVERYBODY else np.where(who, new.bits, old.bits)
    return Affine(bits, new.kind, None, loaded, max(new.at, old.at))


class Exactness:
    """For how many turns affine words are exact."""

    def __init__(self) -> None:
        self.turns = np.inf

    def word(self, start: np.ndarray, step: np.ndarray, kind: str) -> Affine:
        """start + step * turn as a word, or IRREGULAR if it isn't exact."""
        grain = GRAIN if kind == "float" else 1
        if (start * grain % 1).any() or (step * grain % 1).any() or (np.abs(start) >= RANGE[kind]).any():
            return IRREGULAR
        self.until((RANGE[kind] - 1 - np.abs(start)), np.abs(step))
        return Affine(to_bits(start, kind), kind, step)

    def until(self, room: np.ndarray, step: np.ndarray) -> None:
        """It holds while ``step`` * turn is at most ``room``."""
        if (step > 0).any():
            room, step = np.broadcast_arrays(room, step)
            self.turns = min(self.turns, float(np.floor(room[step > 0] / step[step > 0]).min()))


def result_kind(operation: Operation) -> str:
    """Whether an operation gives floats or integers."""
    name, kind = operation.name, operation.row.kind
    return "int" if name.startswith(("SET", "FLT_TO")) or (kind == "int" and not name.endswith("TO_FLT")) else "float"


def compute(parts: tuple[Operation, ...], words: list[Affine], low: list[Affine], exact: Exactness) -> Affine:
    """The result of an operation on the words that its first slot reads; ``low``: its last slot's, for doubles."""
    first = parts[0]
    every = words + low
    loaded = [w for w in every if w.loaded is not None]
    if loaded:
        latest = max(loaded, key=lambda w: w.at)
        if any(w.loaded is EVERYBODY for w in loaded):
            return latest if latest.loaded is EVERYBODY else from_memory(latest.at)
    if any(w is IRREGULAR for w in every):
        return IRREGULAR
    if any(w.step is not None or w.test for w in every):
        return _advance(first, words, exact) if not low else IRREGULAR
    if first.name == "MOV" and first.omod == 1.0 and not first.clamp:
        return words[0]
    bits = [w.bits for w in words]
    if low:
        bits = [pair(a.bits, b) for a, b in zip(low, bits, strict=True)]
    assert first.row.meaning is not None
    found = first.row.meaning(*bits)
    if first.omod != 1.0 or first.clamp:
        found = scaled(found, first.omod, first.clamp)
    if loaded:
        who = np.any(np.broadcast_arrays(*(np.asarray(w.loaded) for w in loaded)), axis=0)
        return Affine(found, result_kind(first), None, who, latest.at)
    return Affine(found, result_kind(first))


def modified(word: Affine, neg: bool, absolute: bool) -> Affine:
    """The word as an operand's signs make it."""
    if not neg and not absolute:
        return word
    if word is IRREGULAR or word.loaded is EVERYBODY:
        return word
    if word.step is not None and (absolute or word.kind != "float"):
        return IRREGULAR
    bits = word.bits & ~SIGN if absolute else word.bits
    step = None if word.step is None else -word.step
    return replace(word, bits=bits ^ SIGN if neg else bits, step=step, kind="float", test=None)


def _advance(first: Operation, words: list[Affine], exact: Exactness) -> Affine:
    """An operation on affine words."""
    name, kind = first.name, first.row.kind
    if first.omod != 1.0 or first.clamp:
        return IRREGULAR
    if name == "MOV":
        return words[0]
    if any(w.test for w in words):
        if (test := words[0].test) and not words[1].bits.any() and name in ("PRED_SETNE_INT", "PRED_SETE_INT"):
            return replace(words[0], test=test if name == "PRED_SETNE_INT" else _opposite(test))
        return IRREGULAR
    if any(w.step is not None and w.kind != kind for w in words):
        return IRREGULAR
    numbers = [(replace(w, kind=kind).number(), 0.0 * ZERO.bits if w.step is None else w.step) for w in words]
    if relation := RELATIONS.get(name.removeprefix("PRED_").split("_")[0]):
        (a, da), (b, db) = numbers
        if name.endswith("UINT"):
            for start, step in numbers:
                if (start < 0).any():
                    return IRREGULAR
                exact.until(start, -step)
        return Affine(ZERO.bits, test=(relation, a - b, da - db))
    return _arithmetic(name, numbers, result_kind(first), exact)


def _arithmetic(name: str, numbers: list, kind: str, exact: Exactness) -> Affine:
    (a, da), (b, db) = (*numbers, (0.0 * ZERO.bits, 0.0 * ZERO.bits))[:2]
    if name in ("ADD", "ADD_INT"):
        return exact.word(a + b, da + db, kind)
    if name == "SUB_INT":
        return exact.word(a - b, da - db, kind)
    if name == "LSHL_INT" and not db.any():
        return exact.word(a * 2 ** (b % 32), da * 2 ** (b % 32), kind)
    if name in ("MUL_IEEE", "MULLO_INT", "MULADD_IEEE", "FMA") and not (da.any() and db.any()):
        product = exact.word(a * b, da * b + db * a, kind)
        if product is IRREGULAR or len(numbers) == 2:
            return product
        return exact.word(a * b + numbers[2][0], da * b + db * a + numbers[2][1], kind)
    if name in ("INT_TO_FLT", "UINT_TO_FLT", "FLOOR", "FLT_TO_INT", "FLT_TO_UINT") and not (da % 1).any():
        if (a % 1).any() or (name.endswith("UINT") or name.startswith("UINT")):
            if (a < 0).any() and name != "FLOOR":
                return IRREGULAR
            if name != "FLOOR":
                exact.until(a, -da)  # until it passes zero, where rounding turns round
        return exact.word(np.floor(a), da, kind)
    return IRREGULAR


def _opposite(test: Test) -> Test:
    relation, start, step = test
    other, sign = OPPOSITE[relation]
    return other, sign * start, sign * step


def first_turn(word: Affine, wanted: bool) -> np.ndarray:
    """The first turn in which a test comes out as ``wanted``, for each work-item; infinite if it never does."""
    if word.test is None:
        return np.where((word.bits != 0) == wanted, 0.0, np.inf)
    relation, start, step = word.test if wanted else _opposite(word.test)
    with np.errstate(all="ignore"):
        cross = -start / step
    if relation == "gt":
        return np.where(start > 0, 0, np.where(step > 0, np.floor(cross) + 1, np.inf))
    if relation == "ge":
        return np.where(start >= 0, 0, np.where(step > 0, np.ceil(cross), np.inf))
    if relation == "eq":
        return np.where(start == 0, 0, np.where((step != 0) & (cross > 0) & (cross % 1 == 0), cross, np.inf))
    return np.where(start != 0, 0, np.where(step != 0, 1, np.inf))
