"""The registers of threads, and what instructions compute in them.

A register is an int64 array (blocks, warps, threads); an axis along which all have the same may
have one element, or be missing. Its 32 bits are a number from 0 on. What a kernel loads, and what
it computes from that, is ``UNKNOWN``, which is below 0.

Addresses lie below 4 GB, so their upper words are 0.
"""

import operator
from collections.abc import Callable
from functools import reduce

import numpy as np

from cypresskit.today.sass import PRODUCTS, SUMS, Operand, SassInstruction

MASK = 0xFFFFFFFF
ONE = np.int64(1)  # times an array of bools: int64 also where an int has 32 bits
SIGN = 0x80000000
UNKNOWN = -1
PREDICATES = "PT", *(f"P{n}" for n in range(8))
FIXED = dict.fromkeys(("RZ", "URZ", "SRZ"), 0) | {"PT": 1, "UPT": 1}
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
    """Return 32 bits as a number from -2**31 on."""
    return (value ^ SIGN) - SIGN


def following(name: str) -> str:
    """Return the name of the upper word's register."""
    letters = name.rstrip("0123456789")
    step = 4 if letters == "c" else 1
    return name if letters == name else f"{letters}{int(name[len(letters) :]) + step}"


def is_predicate(operand: Operand) -> bool:
    return isinstance(operand.value, str) and operand.value.lstrip("U") in PREDICATES


class Registers:
    """The registers and predicates of some threads, words of the constant bank ("c528"), and what
    `S2R` reads.

    Attributes
    ----------
    values
        By name. Any other is unknown.
    """

    def __init__(self, values: dict[str, Values]):
        self.values = values

    def word(self, name: str | int) -> Values:
        """Return a register, a predicate, a constant or a number, without the sign before it."""
        if isinstance(name, int):
            return np.array([name & MASK], np.int64)
        if name in FIXED:
            return np.array([FIXED[name]], np.int64)
        return self.values.get(name, np.array([UNKNOWN], np.int64))

    def read(self, operand: Operand) -> Values:
        """Return an operand's 32 bits, or its truth. The negative of a number has 33 bits: its
        carry is that of a subtraction.
        """
        value = self.word(operand.value)
        if operand.sign == "!":
            return 1 - value
        if operand.sign == "~":
            return MASK ^ value
        return (MASK ^ value) + 1 if operand.sign == "-" else value

    def pair(self, operand: Operand) -> Values:
        """Return the 64 bits of two registers, or a number."""
        sign, name = operand
        if isinstance(name, int):
            return np.array([name], np.int64)
        both = signed(self.word(following(name))) << 32 | self.word(name)
        return -both if sign == "-" else both

    def known(self, operand: Operand, on: np.ndarray, line: int) -> Values:
        """Return an operand that doesn't depend on data in the threads of a mask. Raises
        ``NotTimed``.
        """
        if (on & (self.word(operand.value) < 0)).any():
            raise NotTimed(
                f"line {line} has a branch or an index that depends on data: let these depend on"
                " sizes and thread numbers alone"
            )
        return self.read(operand)

    def write(self, name: str, value: Values, on: np.ndarray) -> None:
        """Set a register of the threads in a mask."""
        if name not in FIXED:
            self.values[name] = value if on.all() else np.where(on, value, self.word(name))


def split(one: SassInstruction) -> tuple[list[Operand], list[Operand]]:
    """Return an instruction's results, a register with the predicates before it or after it, and
    what it reads.
    """
    operands = list(one.operands)
    if one.name == "HFMA2":  # of zeros: a constant of two halves
        halves = [float(f"{each.sign}{each.value}") for each in operands[:2:-1]]
        return operands[:1], [Operand("", int(np.array(halves, np.float16).view(np.uint32)[0]))]
    if one.name in ("LOP3", "ULOP3") and is_predicate(operands[0]):
        operands[:2] = operands[1::-1]
    count = 1
    most = 2 if "PLOP3" in one.name else 3
    while count < min(len(operands), most) and is_predicate(operands[count]):
        count += 1
    return operands[:count], operands[count:]


def meaning_of(one: SassInstruction) -> str:
    """Return an instruction's name in ``MEANING``. Raises ``NotTimed`` for one that isn't there."""
    name = one.name[1:] if one.name[0] == "U" and one.name[1:] in MEANING else one.name
    is_known = name in REAL or (name in MEANING and MODIFIERS.issuperset(one.modifiers))
    if not is_known or (name == "HFMA2" and one.operands[2].value != "RZ"):
        cures = (cure for names, cure in CURES.items() if name in names.split())
        cure = next(cures, "write sums of products in single or double precision alone")
        written = ".".join((one.name, *one.modifiers))
        raise NotTimed(f"line {one.line} becomes `{written}`, which isn't followed: {cure}")
    return name


def compute(registers: Registers, one: SassInstruction, on: np.ndarray) -> None:
    """Execute an instruction for the threads of a mask."""
    name = meaning_of(one)
    results, sources = split(one)
    values = [registers.read(source) for source in sources]
    is_wide = "WIDE" in one.modifiers
    is_long = is_wide or "64" in one.modifiers or name == "CS2R"
    if is_long or (name == "IMAD" and "HI" in one.modifiers):
        at = 2 if name == "IMAD" else 0
        values[at] = registers.pair(sources[at])
    value = MEANING[name](one.modifiers, *values)
    carries = [ONE * (value >> 32 >= n) for n in range(1, len(results))]
    if is_wide and carries:
        carries = [ONE * (value.view(np.uint64) < values[2].view(np.uint64))]
    found = {str(to.value): result for to, result in zip(results, [value & MASK, *carries])}
    if is_long:
        found[following(str(results[0].value))] = value >> 32 & MASK
    words = [registers.word(source.value) for source in sources]
    least = reduce(np.minimum, words, np.array([UNKNOWN if name in REAL else 0], np.int64))
    for to, result in found.items():
        registers.write(to, np.where(least < 0, least, result), on)


Modifiers = tuple[str, ...]


def _add(modifiers: Modifiers, *values: Values) -> Values:
    return sum(values, np.array([0], np.int64))


def _lea(modifiers: Modifiers, value: Values, base: Values, *rest: Values) -> Values:
    """Shift, and add. The upper word of 64 bits has a carry."""
    if "SX32" in modifiers:
        rest = signed(value) >> 31, *rest
    if "HI" in modifiers:
        upper, shift, *carry = rest
        shifted = (upper << 32 | value) << shift >> 32
    else:
        shift, *carry = rest
        shifted = value << shift
    return (shifted & MASK) + base + sum(carry)


def _shift(modifiers: Modifiers, value: Values, count: Values, upper: Values) -> Values:
    both = signed(upper) << 32 | value
    count = count & 63
    if "L" in modifiers:
        both = both << count
    elif "S32" in modifiers or "S64" in modifiers:
        both = both >> count
    else:
        both = (both.view(np.uint64) >> count.view(np.uint64)).view(np.int64)
    return both >> 32 & MASK if "HI" in modifiers else both & MASK


def _logic(
    modifiers: Modifiers, first: Values, second: Values, third: Values, table: Values, *_: Values
) -> Values:
    """Return what a table has for each three bits. LOP3 also sets whether any is 1."""
    found = np.array([0], np.int64)
    for n in range(8):
        if table.flat[0] >> n & 1:
            terms = (first, 4), (second, 2), (third, 1)
            found = found | reduce(np.bitwise_and, (v if n & bit else ~v for v, bit in terms))
    return found & MASK | (found & MASK != 0) * (ONE << 32)


def _truths(modifiers: Modifiers, *values: Values) -> Values:
    """Return two predicates that tables have for three."""
    one, other = (_logic((), *values[:3], table) & 1 for table in values[3:])
    return one | other << 32


def integers(modifiers: Modifiers, *values: Values) -> list[Values]:
    """Return the numbers that 32 bits stand for: signed, unless U32 says otherwise."""
    bits = [value & MASK for value in values]
    return bits if "U32" in modifiers else [signed(value) for value in bits]


def _multiply(
    modifiers: Modifiers, first: Values, second: Values, added: Values, *carry: Values
) -> Values:
    first, second = integers(modifiers, first, second)
    value = first * second + added + sum(carry)
    return value >> 32 & MASK if "HI" in modifiers else value


def _compare(
    modifiers: Modifiers, first: Values, second: Values, other: Values, *lower: Values
) -> Values:
    """Compare, and combine with a predicate. EX continues a comparison of 64 bits."""
    first, second = integers(modifiers, first, second)
    order = np.sign(first - second)
    truth = getattr(operator, modifiers[0].lower())(order, 0)
    if "EX" in modifiers:
        truth = np.where(order == 0, lower[0] > 0, truth)
    combine = np.logical_or if "OR" in modifiers else np.logical_and
    one, complement = (combine(each, other > 0) for each in (truth, ~truth))
    return ONE * one | ONE * complement << 32


def _select(modifiers: Modifiers, first: Values, second: Values, choice: Values) -> Values:
    return np.asarray(np.where(choice > 0, first, second))


REAL = *PRODUCTS, *SUMS
MOVES = "MOV", "S2R", "S2UR", "R2UR", "CS2R", "LDC", "ULDC", "HFMA2"
MEANING: dict[str, Callable[..., Values]] = {
    "LEA": _lea,
    "SHF": _shift,
    "LOP3": _logic,
    "PLOP3": _truths,
    "IMAD": _multiply,
    "ISETP": _compare,
    "SEL": _select,
    "IADD3": _add,
    "VIADD": _add,
    **dict.fromkeys(REAL, lambda *_: np.array([0], np.int64)),
    **dict.fromkeys(MOVES, lambda _, value: value),
}
