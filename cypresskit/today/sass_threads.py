"""The registers of threads, and what instructions compute in them.

A register is an int64 array (blocks, warps, threads); an axis along which all have the same may
have one element, or be missing. Its 32 bits are a number from 0 on. What a kernel loads, and what
it computes from that, is ``UNKNOWN``, which is below 0.

Addresses lie below 4 GB, so their upper words are 0.
"""

import operator
import re
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import chain, repeat

import numpy as np

from cypresskit.today.sass import LOADS, NUMBER, PRODUCTS, SUMS, SassInstruction

MASK = 0xFFFFFFFF
SIGN = 0x80000000
UNKNOWN = np.array(-1, np.int64)
FIXED = {"RZ": 0, "URZ": 0, "SRZ": 0, "PT": 1, "UPT": 1}
#: What to try in place of instructions that aren't followed.
CURES = {
    "LDL STL": "it keeps an array in local memory: index it by constants and by loops of constant"
    " length",
    "P2R": "it has more conditions than there are predicates: let a thread do less",
    "CALL MUFU I2F F2I": "it divides by a number that is no constant (as a range with such a step"
    " does), takes a root or converts numbers: pass the result as an argument",
    "SHFL VOTE REDUX": "its threads exchange registers: use shared memory",
    "ATOM ATOMG ATOMS RED REDG": "it adds to memory atomically: store each part, as C[part, i, j]",
}
#: What may follow the names of instructions on whole numbers.
MODIFIERS = {
    *"32 64 U32 S32 U64 S64 SX32 WIDE HI X EX L R LUT".split(),
    *"AND OR LT LE GT GE EQ NE MOV SHL IADD MMA".split(),
}

Values = np.ndarray


class NotTimed(ValueError):
    """A kernel that isn't timed, with the reason."""


def signed(value: Values) -> Values:
    """Return the number from -2**31 on that 32 bits stand for."""
    return (value & MASK ^ SIGN) - SIGN


class Registers(dict[str, Values]):
    """The registers and predicates of some threads, words of the constant bank ("c132"), and what
    `S2R` reads, by name. Any other is unknown.
    """

    def word(self, operand: str) -> Values:
        """Return a register, a predicate, a constant or a number, without the sign before it."""
        name = operand.lstrip("-~!")
        if name in self:
            return self[name]
        is_number = re.fullmatch(NUMBER, name)
        return np.array([int(name, 0) if is_number else FIXED.get(name, UNKNOWN)], np.int64)

    def read(self, operand: str) -> Values:
        """Return an operand's 32 bits, or its truth. The negative of a number has 33 bits: its
        carry is that of a subtraction.
        """
        value = self.word(operand)
        if operand[0] == "!":
            return 1 - value
        if operand[0] == "~":
            return MASK ^ value
        return (MASK ^ value) + 1 if operand[0] == "-" else value

    def known(self, operand: str, on: np.ndarray, line: int) -> Values:
        """Return an operand that doesn't depend on data in the threads of a mask. Raises
        ``NotTimed``.
        """
        if (on & (self.word(operand) < 0)).any():
            raise NotTimed(
                f"line {line} has a branch or an index that depends on data: let these depend on"
                " sizes and thread numbers alone"
            )
        return self.read(operand)

    def write(self, name: str, value: Values, on: np.ndarray) -> None:
        """Set a register of the threads in a mask."""
        if name not in FIXED:
            self[name] = value if on.all() else np.where(on, value, self.word(name))


def compute(registers: Registers, one: SassInstruction, on: np.ndarray) -> None:
    """Execute an instruction for the threads of a mask. Raises ``NotTimed`` for one that isn't
    followed.
    """
    is_data = one.name in (*LOADS, *PRODUCTS, *SUMS)
    if one.name not in MEANING or not (is_data or MODIFIERS.issuperset(one.modifiers)):
        cures = (cure for names, cure in CURES.items() if one.name in names.split())
        cure = next(cures, "write sums of products in single or double precision alone")
        written = ".".join((one.name, *one.modifiers))
        raise NotTimed(f"line {one.line} becomes `{written}`, which isn't followed: {cure}")
    least = reduce(np.minimum, map(registers.word, one.sources))
    found = MEANING[one.name](one.modifiers, *map(registers.read, one.sources))
    values: Iterable[Values] = chain(found, repeat(UNKNOWN))
    for result, value in zip(one.results, values):
        registers.write(result, np.where(least < 0, UNKNOWN, value), on)


Modifiers = tuple[str, ...]
Results = tuple[Values, ...]


def _add(modifiers: Modifiers, *values: Values) -> Results:
    total = sum(values, np.zeros(1, np.int64))
    return total & MASK, total > MASK, total > 2 * MASK + 1


def _lea(modifiers: Modifiers, value: Values, base: Values, *rest: Values) -> Results:
    """Shift, and add. The upper word of 64 bits has a carry."""
    terms = list(rest)
    upper = np.zeros(1, np.int64)
    if "SX32" in modifiers:
        upper = signed(value) >> 31
    elif "HI" in modifiers:
        upper = terms.pop(0)
    (shifted,) = _shift(("L", *modifiers), value, terms[0], upper)
    return _add(modifiers, shifted, base, *terms[1:])


def _shift(modifiers: Modifiers, value: Values, count: Values, upper: Values) -> Results:
    both = signed(upper) << 32 | value
    count = count & 63
    if "L" in modifiers:
        both = both << count
    elif "S32" in modifiers or "S64" in modifiers:
        both = both >> count
    else:
        both = (both.view(np.uint64) >> count.view(np.uint64)).view(np.int64)
    return ((both >> 32 if "HI" in modifiers else both) & MASK,)


def _logic(
    modifiers: Modifiers, first: Values, second: Values, third: Values, table: Values, *_: Values
) -> Results:
    """Return what a table has for each three bits, and whether any is 1."""
    found = np.zeros(1, np.int64)
    for n in range(8):
        if table[0] >> n & 1:
            terms = (first, 4), (second, 2), (third, 1)
            found = found | reduce(np.bitwise_and, (v if n & bit else ~v for v, bit in terms))
    return found & MASK, found & MASK != 0


def _multiply(
    modifiers: Modifiers, first: Values, second: Values, low: Values, *rest: Values
) -> Results:
    """Multiply, and add 32 or 64 bits. The third result is the carry."""
    if "U32" not in modifiers:
        first, second = signed(first), signed(second)
    added, carry = low, rest
    if "WIDE" in modifiers or "HI" in modifiers:
        added, carry = signed(rest[0]) << 32 | low, rest[1:]
    total = first * second + added + sum(carry)
    words = total & MASK, total >> 32 & MASK, total.view(np.uint64) < added.view(np.uint64)
    return words[1:] if "HI" in modifiers else words


def _compare(
    modifiers: Modifiers, first: Values, second: Values, other: Values, *lower: Values
) -> Results:
    """Compare, and combine with a predicate. EX continues a comparison of 64 bits."""
    if "U32" not in modifiers:
        first, second = signed(first), signed(second)
    names = [f"__{name.lower()}__" for name in modifiers if name != "EX"]
    compare, combine = (getattr(operator, name) for name in (names[0], names[-1]))
    truth = compare(first, second)
    if lower:
        truth = np.where(first == second, lower[0] > 0, truth)
    return combine(truth, other > 0), combine(~truth, other > 0)


def _select(modifiers: Modifiers, first: Values, second: Values, choice: Values) -> Results:
    return (np.where(choice > 0, first, second),)


MOVES = "MOV", "S2R", "S2UR", "R2UR", "CS2R", "LDC"
MEANING: dict[str, Callable[..., Results]] = {
    "LEA": _lea,
    "SHF": _shift,
    "LOP3": _logic,
    "PLOP3": lambda *given: (_logic(*given)[0] & 1,),
    "IMAD": _multiply,
    "ISETP": _compare,
    "SEL": _select,
    "IADD3": _add,
    "VIADD": _add,
    **dict.fromkeys((*LOADS, *PRODUCTS, *SUMS), lambda *_: ()),
    **dict.fromkeys(MOVES, lambda _, *values: values),
}
MEANING |= {f"U{name}": meaning for name, meaning in MEANING.items()}
