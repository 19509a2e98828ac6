"""Register components as affine functions of a loop's turn: start + step * turn, for many
work-items at once.

An ``Affine`` is what one component of a register holds in all work-items. Outside of loops its step
is None, operations are the machine's own arithmetic. In a turn that stands for all turns of a loop,
operations that keep affine functions affine are done on start and step; everything else makes
``IRREGULAR``, which nobody may use. What memory gives is ``loaded``, as is all that is computed
from it.

Single precision is exact here: a float counts as affine only in steps of 1/256 and below 2^16, an
integer below 2^31. ``Exactness`` keeps for how many turns that holds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, reduce

import numpy as np

from cypresskit.compiler.assembly import Operation
from cypresskit.il.meaning import RELATION, SIGN, pair, scaled
from cypresskit.il.opcodes import RELATIONS

GRAIN = 256  # a float counts in steps of 1 / GRAIN
RANGE = {"float": 2.0**16, "int": 2.0**31}
EVERYBODY, NOBODY = np.ones(1, bool), np.zeros(1, bool)
#: Operations whose result is affine where no two operands that advance are multiplied.
LINEAR: dict[str, Callable] = {"ADD": np.add, "ADD_INT": np.add, "SUB_INT": np.subtract}
LINEAR |= dict.fromkeys(("MUL_IEEE", "MULLO_INT"), np.multiply)
LINEAR |= dict.fromkeys(("MULADD_IEEE", "FMA"), lambda a, b, c: a * b + c)
CONVERSIONS = ("INT_TO_FLT", "UINT_TO_FLT", "FLOOR", "FLT_TO_INT", "FLT_TO_UINT")


@dataclass(frozen=True, eq=False, slots=True)
class Affine:
    """``bits`` (1 or all work-items) in turn 0, of ``kind`` "float" or "int"; ``step`` (float64) or
    None; ``loaded``: who has it from memory, and by which instruction (``at``); ``test``: a
    comparison of affine words as (relation, start, step) of their difference to zero.
    """

    bits: np.ndarray
    kind: str = "int"
    step: np.ndarray | None = None
    loaded: np.ndarray = field(default_factory=lambda: NOBODY)
    at: int = -1
    test: tuple[str, np.ndarray, np.ndarray] | None = None

    @property
    def advances(self) -> bool:
        """Whether it may be another in the next turn."""
        return self.step is not None or self.test is not None

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


@cache
def from_memory(at: int) -> Affine:
    """The word that instruction ``at`` reads from memory: its value is unknown."""
    return Affine(ZERO.bits, loaded=EVERYBODY, at=at)


def to_bits(number: np.ndarray, kind: str) -> np.ndarray:
    """A register's bits for numbers."""
    narrow = (
        number.astype(np.float32) if kind == "float" else number.astype(np.int64).astype(np.int32)
    )
    return narrow.view(np.uint32)


def merge(new: Affine, old: Affine, active: np.ndarray) -> Affine:
    """``new`` for those who are ``active`` and ``old`` for the others."""
    if IRREGULAR in (new, old):
        return IRREGULAR
    if new.loaded is EVERYBODY and old.loaded is EVERYBODY:
        return new
    nobody = new.loaded is NOBODY and old.loaded is NOBODY
    loaded = NOBODY if nobody else np.where(active, new.loaded, old.loaded)
    bits = old.bits if new.loaded is EVERYBODY else np.where(active, new.bits, old.bits)
    return Affine(bits, new.kind, None, loaded, max(new.at, old.at))


class Exactness:
    """For how many turns affine words are exact."""

    def __init__(self) -> None:
        self.turns = np.inf

    def word(self, start: np.ndarray, step: np.ndarray, kind: str) -> Affine:
        """start + step * turn as a word, or IRREGULAR if it isn't exact."""
        grain = GRAIN if kind == "float" else 1
        if (
            (start * grain % 1).any()
            or (step * grain % 1).any()
            or (np.abs(start) >= RANGE[kind]).any()
        ):
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
    return (
        "int"
        if name.startswith(("SET", "FLT_TO")) or (kind == "int" and not name.endswith("TO_FLT"))
        else "float"
    )


def compute(
    parts: tuple[Operation, ...], words: list[Affine], low: list[Affine], exact: Exactness
) -> Affine:
    """The result of an operation on the words that its first slot reads; ``low``: its last slot's,
    for doubles.
    """
    first = parts[0]
    if first.name == "MOV" and first.omod == 1.0 and not first.clamp:
        return words[0]
    every = words + low
    at = max(w.at for w in every)
    if any(w.loaded is EVERYBODY for w in every):
        return from_memory(at)
    if any(w is IRREGULAR for w in every):
        return IRREGULAR
    if any(w.advances for w in every):
        return _advance(first, words, exact) if not low else IRREGULAR
    bits = [w.bits for w in words]
    if low:
        bits = [pair(a.bits, b) for a, b in zip(low, bits, strict=True)]
    assert first.row.meaning is not None
    found = scaled(first.row.meaning(*bits), first.omod, first.clamp)
    loaded = NOBODY if at < 0 else reduce(np.logical_or, (w.loaded for w in every))
    return Affine(found, result_kind(first), None, loaded, at)


def modified(word: Affine, neg: bool, absolute: bool) -> Affine:
    """The word as an operand's signs make it."""
    if not (neg or absolute) or word is IRREGULAR or word.loaded is EVERYBODY:
        return word
    if word.test or (word.step is not None and (absolute or word.kind != "float")):
        return IRREGULAR
    bits = word.bits & ~SIGN if absolute else word.bits
    step = None if word.step is None else -word.step
    return replace(word, bits=bits ^ SIGN if neg else bits, step=step, kind="float")


def _advance(first: Operation, words: list[Affine], exact: Exactness) -> Affine:
    """An operation on affine words."""
    name, kind = first.name, first.row.kind
    if first.omod != 1.0 or first.clamp:
        return IRREGULAR
    if any(w.test for w in words):
        if (
            name not in ("PRED_SETNE_INT", "PRED_SETE_INT")
            or words[1].advances
            or words[1].bits.any()
        ):
            return IRREGULAR
        assert words[0].test is not None
        relation, start, step = words[0].test
        relation = relation if name == "PRED_SETNE_INT" else RELATIONS[relation].negated
        return replace(words[0], test=(relation, start, step))
    if any(w.step is not None and w.kind != kind for w in words):
        return IRREGULAR
    numbers = [
        (replace(w, kind=kind).number(), 0.0 * ZERO.bits if w.step is None else w.step)
        for w in words
    ]
    start, step = numbers[0]
    if "UINT" in name or (name == "FLT_TO_INT" and (start % 1).any()):  # until a number passes zero
        if any((start < 0).any() for start, _ in numbers):
            return IRREGULAR
        for number, advance in numbers:
            exact.until(number, -advance)
    if first.row.relation:
        return Affine(
            ZERO.bits, test=(first.row.relation, start - numbers[1][0], step - numbers[1][1])
        )
    if name in CONVERSIONS and not (step % 1).any():
        return exact.word(np.floor(start), step, result_kind(first))
    if name == "LSHL_INT" and words[1].step is None:
        name, numbers[1] = "MULLO_INT", (2.0 ** (numbers[1][0] % 32), numbers[1][1])
    if name in LINEAR:
        zero, one, two = (
            LINEAR[name](*(start + turn * step for start, step in numbers)) for turn in range(3)
        )
        if (two - one == one - zero).all():
            return exact.word(zero, one - zero, result_kind(first))
    return IRREGULAR


def first_turn(word: Affine, wanted: bool) -> np.ndarray:
    """The first turn in which a test comes out as ``wanted``, for each work-item; infinite if it
    never does.
    """
    if word.test is None:
        return np.where((word.bits != 0) == wanted, 0.0, np.inf)
    relation, start, step = word.test
    with np.errstate(all="ignore"):
        cross = np.floor(np.where(step, -start / step, 0.0))
    turns = np.stack([np.zeros_like(cross), cross, cross + 1])  # where it may begin to
    comes = (RELATION[relation](start + step * turns, 0) == wanted) & (turns >= 0)
    return np.where(comes, turns, np.inf).min(axis=0)
