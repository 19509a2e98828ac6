"""The registers of threads, and what instructions compute in them.

A register holds 32 bits as a number from 0 on: a Python number if all threads have the same, else
an int64 array with an element for each. What a kernel loads, and what it computes from that, is
``Loaded``, whose bits aren't known. Addresses lie below 4 GB, so their upper words are 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cypresskit.today.sass import Operand, SassInstruction

MASK = 0xFFFFFFFF
SIGN = 0x80000000
TRUE = {"PT": True, "UPT": True}
PREDICATES = "PT", *(f"P{n}" for n in range(8))
ZERO = dict.fromkeys(("RZ", "URZ", "SRZ", "PR"), 0)


class NotTimed(ValueError):
    """A kernel that isn't timed, with the reason."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """Bits that aren't known.

    Attributes
    ----------
    load
        The access that has loaded them; None for what is computed from several.
    is_product
        Whether they are a product of elements of two loads, or a sum of such products.
    factors
        The two loads of a product.
    """

    load: Any = None
    is_product: bool = False
    factors: tuple = ()


@dataclass(frozen=True, eq=False)
class Partly:
    """A register that has data in some threads.

    Attributes
    ----------
    data
        The data.
    lanes
        Mask of the threads that have them.
    known
        The bits of the others.
    """

    data: Loaded
    lanes: np.ndarray
    known: Any

    def of(self, chosen: np.ndarray) -> "Partly":
        """Return the register of some threads."""
        known = self.known[chosen] if isinstance(self.known, np.ndarray) else self.known
        return Partly(self.data, self.lanes[chosen], known)


def signed(value: Any) -> Any:
    """Return 32 bits as a number from -2**31 on."""
    return (value ^ SIGN) - SIGN


def _unsigned(value: Any) -> Any:
    return value.view(np.uint64) if isinstance(value, np.ndarray) else value & (1 << 64) - 1


def _words(value: Any) -> tuple[Any, Any]:
    """Return the lower and the upper word of 64 bits."""
    return value & MASK, value >> 32 & MASK


def _pair(lower: Any, upper: Any) -> Any:
    return signed(upper) << 32 | lower


class Registers:
    """The registers and predicates of some threads.

    Attributes
    ----------
    values
        By name. A register that was never set is 0.
    constants
        Words of the constant bank, by byte: sizes of the launch, and arguments.
    special
        What `S2R` reads.
    """

    def __init__(self, values: dict[str, Any], constants: dict[int, int], special: dict[str, Any]):
        self.values = values
        self.constants = constants
        self.special = special
        self.on: np.ndarray | None = None  # mask of the threads that read and write; None is all

    def read(self, operand: Operand) -> Any:
        """Return an operand's 32 bits, or its truth. The negative of a number has 33 bits: its
        carry is that of a subtraction.
        """
        sign, name = operand
        if isinstance(name, int):
            return name & MASK
        value = self.word(name)
        if not sign or isinstance(value, Loaded):
            return value
        if sign == "!":
            return ~value if isinstance(value, np.ndarray) else not value
        if sign == "|":
            return abs(signed(value))
        return (MASK ^ value) + (sign == "-")

    def word(self, name: str) -> Any:
        """Return the value of a register, a predicate or a constant."""
        if name in ZERO:
            return 0
        if name in TRUE:
            return True
        if name[0] == "c":
            return self.constants.get(int(name[1:]), 0)
        if name.startswith("SR_"):
            return self.special.get(name, 0)
        value = self.values.get(name, 0 if "P" not in name else False)
        if not isinstance(value, Partly):
            return value
        has_data = self.on is None or bool((value.lanes & self.on).any())
        return value.data if has_data else value.known

    def pair(self, operand: Operand) -> Any:
        """Return the 64 bits of two registers."""
        if isinstance(operand.value, int):
            return operand.value
        lower = self.word(operand.value)
        upper = self.word(following(operand.value))
        if isinstance(lower, Loaded) or isinstance(upper, Loaded):
            return lower if isinstance(lower, Loaded) else upper
        value = _pair(lower, upper)
        return -value if operand.sign == "-" else value

    def write(self, name: str, value: Any) -> None:
        """Set a register of the threads in the mask."""
        if name in ZERO or name in TRUE:
            return
        if self.on is not None:
            value = _merge(self.on, value, self.values.get(name, False if "P" in name else 0))
        self.values[name] = value


def _merge(on: np.ndarray, new: Any, old: Any) -> Any:
    """Return a register that the threads of a mask have set."""
    known = [old.known if isinstance(old, Partly) else old, new]
    lanes = old.lanes if isinstance(old, Partly) else np.zeros_like(on)
    if isinstance(old, Loaded):
        known[0] = 0
        lanes = np.ones_like(on)
    if isinstance(new, Loaded):
        return Partly(new, lanes | on, known[0])
    merged = np.where(on, new, known[0])
    lanes = lanes & ~on
    if not lanes.any():
        return merged
    return Partly(old if isinstance(old, Loaded) else old.data, lanes, merged)


def following(name: str) -> str:
    """Return the name of the upper word's register."""
    letters = name.rstrip("0123456789")
    if letters == name:
        return name
    step = 4 if letters == "c" else 1
    return f"{letters}{int(name[len(letters) :]) + step}"


def is_predicate(operand: Operand) -> bool:
    return isinstance(operand.value, str) and operand.value.lstrip("U") in PREDICATES


Results = list[tuple[str, Any]]  # names and values


def compute(registers: Registers, one: SassInstruction) -> Results:
    """Return what an instruction sets. Raises ``NotTimed`` for one that isn't known."""
    name = one.name[1:] if one.name[0] == "U" and one.name[1:] in MEANING else one.name
    meaning = MEANING.get(name)
    if meaning is None:
        raise NotTimed(f"`{one.name}`, an instruction of its machine code, isn't timed")
    return meaning(registers, one)


def _split(one: SassInstruction) -> tuple[list[Operand], list[Operand]]:
    """Return an instruction's results, a register with the predicates after it or before it, and
    what it reads.
    """
    operands = list(one.operands)
    count = 1
    while count < len(operands) and count < 3 and is_predicate(operands[count]):
        count += 1
    return operands[:count], operands[count:]


def _with_data(values: list[Any]) -> Loaded | None:
    """Return the data among the values: the only ones, or new ones made of several."""
    some = [value for value in values if isinstance(value, Loaded)]
    if not some:
        return None
    is_product = any(value.is_product for value in some)
    return some[0] if all(one is some[0] for one in some) else Loaded(None, is_product)


def _whole(function: Callable) -> Callable:
    """Make the meaning of an instruction on whole numbers: ``function(modifiers, values)`` returns
    a word, the carry of which is 1 or 2 above it.
    """

    def meaning(registers: Registers, one: SassInstruction) -> Results:
        results, sources = _split(one)
        values = [registers.read(source) for source in sources]
        data = _with_data(values)
        if data is not None:
            return [(str(result.value), data) for result in results]
        value = function(one.modifiers, values)
        carries = [(str(to.value), value >> 32 >= n) for n, to in enumerate(results[1:], 1)]
        return [(str(results[0].value), value & MASK), *carries]

    return meaning


def _add(modifiers: tuple[str, ...], values: list[Any]) -> Any:
    first, second, third, *carries = [*values, 0]
    return first + second + third + sum(1 * carry for carry in carries)


def _lea(modifiers: tuple[str, ...], values: list[Any]) -> Any:
    value, base, *rest = values
    carry = 1 * rest.pop() if "X" in modifiers else 0
    if "HI" not in modifiers:
        return ((value << rest[-1]) & MASK) + base + carry
    upper = rest[0] if "SX32" not in modifiers else (value >> 31) * MASK
    shifted = _words(_pair(value, upper) << rest[-1])[1]
    return shifted + base + carry


def _shift(modifiers: tuple[str, ...], values: list[Any]) -> Any:
    value, count, upper = values
    count = count & 63
    both = _pair(value, upper)
    if "L" in modifiers:
        both = both << count
    elif "S32" in modifiers or "S64" in modifiers:
        both = both >> count
    else:
        both = _unsigned(both) >> (np.uint64(count) if isinstance(both, np.ndarray) else count)
        both = both.view(np.int64) if isinstance(both, np.ndarray) else both
    return _words(both)["HI" in modifiers]


def _logic(modifiers: tuple[str, ...], values: list[Any]) -> Any:
    first, second, third, table = values[:4]
    found: Any = 0
    for n in range(8):
        if table >> n & 1:
            terms = (
                value if n & bit else MASK ^ value
                for value, bit in ((first, 4), (second, 2), (third, 1))
            )
            found = found | next(terms) & next(terms) & next(terms)
    return found


def _permute(modifiers: tuple[str, ...], values: list[Any]) -> Any:
    lower, selector, upper = values
    result: Any = 0
    for n in range(4):
        at = selector >> 4 * n & 7
        byte = np.where(at < 4, lower >> 8 * (at & 3), upper >> 8 * (at & 3)) & 255
        result = result | byte.astype(np.int64) << 8 * n
    return result if np.ndim(result) else int(result)


def _least(modifiers: tuple[str, ...], values: list[Any]) -> Any:
    first, second, is_least = values
    order = [value if "U32" in modifiers else signed(value) for value in (first, second)]
    is_first = (order[0] < order[1]) == is_least
    return np.where(is_first, first, second) if np.ndim(is_first) else (second, first)[is_first]


def _multiply(registers: Registers, one: SassInstruction) -> Results:
    """IMAD: a product and a sum, of 32 or 64 bits."""
    results, sources = _split(one)
    modifiers = one.modifiers
    target = str(results[0].value)
    is_wide = "WIDE" in modifiers or "HI" in modifiers
    factors = [registers.read(source) for source in sources[:2]]
    added = (registers.pair if is_wide else registers.read)(sources[2])
    data = _with_data([*factors, added])
    if data is not None:
        return [(target, data)] + [(following(target), data)] * ("WIDE" in modifiers)
    first, second = (factor & MASK for factor in factors)
    carry = 1 * registers.read(sources[3]) if "X" in modifiers else 0
    if not is_wide:
        return [(target, (first * second + added + carry) & MASK)]
    if "U32" not in modifiers:
        first, second = signed(first), signed(second)
    value = first * second + added + carry
    lower, upper = _words(value)
    if "HI" in modifiers:
        return [(target, upper)]
    carries = [(str(to.value), _unsigned(value) < _unsigned(added)) for to in results[1:]]
    return [(target, lower), (following(target), upper), *carries]


def _compare(registers: Registers, one: SassInstruction) -> Results:
    """ISETP: compare, and combine with a predicate. EX continues a comparison of 64 bits."""
    result, other, *sources = one.operands
    first, second, *conditions = [registers.read(source) for source in sources]
    data = _with_data([first, second, *conditions])
    if data is not None:
        return [(str(result.value), data)]
    if "U32" not in one.modifiers:
        first, second = signed(first & MASK), signed(second & MASK)
    else:
        first, second = first & MASK, second & MASK
    truth = _ORDER[one.modifiers[0]](first, second)
    if "EX" in one.modifiers:
        equal = first == second
        is_equality = one.modifiers[0] in ("EQ", "NE")
        strict = truth & _not(equal) if not is_equality else _ORDER["NE"](first, second)
        lower = conditions[1]
        truth = equal & lower if one.modifiers[0] == "EQ" else strict | (equal & lower)
    combine = "OR" if "OR" in one.modifiers else "XOR" if "XOR" in one.modifiers else "AND"
    chosen = {
        "AND": lambda value: value & conditions[0],
        "OR": lambda value: value | conditions[0],
        "XOR": lambda value: value ^ conditions[0],
    }[combine]
    return [(str(result.value), chosen(truth)), (str(other.value), chosen(_not(truth)))]


_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
}


def _not(truth: Any) -> Any:
    return ~truth if isinstance(truth, np.ndarray) else not truth


def _select(registers: Registers, one: SassInstruction) -> Results:
    target, *sources = one.operands
    first, second, choice = [registers.read(source) for source in sources]
    data = _with_data([first, second, choice])
    if data is not None:
        return [(str(target.value), data)]
    if isinstance(choice, np.ndarray):
        return [(str(target.value), np.where(choice, first & MASK, second & MASK))]
    return [(str(target.value), (first if choice else second) & MASK)]


def _logic_or_truth(registers: Registers, one: SassInstruction) -> Results:
    """LOP3: a register, and whether it isn't 0."""
    operands = list(one.operands)
    truths = [operands.pop(0)] if is_predicate(operands[0]) else []
    values = [registers.read(operand) for operand in operands[1:5]]
    data = _with_data(values)
    value = _logic(one.modifiers, values) if data is None else data
    found = [(str(operands[0].value), value)]
    return found + [(str(to.value), value != 0 if data is None else data) for to in truths]


def _combine_truths(registers: Registers, one: SassInstruction) -> Results:
    first, second, *sources = one.operands
    values = [registers.read(source) for source in sources]
    data = _with_data(values[:3])
    if data is not None:
        return [(str(first.value), data), (str(second.value), data)]
    truths = [value * MASK for value in values[:3]]
    tables = zip((first, second), values[3:])
    return [(str(to.value), _logic((), [*truths, table]) != 0) for to, table in tables]


def _move(registers: Registers, one: SassInstruction) -> Results:
    """MOV, S2R, LDC and their like, of 32 or 64 bits."""
    target = str(one.operands[0].value)
    source = one.operands[1]
    found = [(target, registers.read(source))]
    if "64" in one.modifiers or (one.name == "CS2R" and "32" not in one.modifiers):
        found.append((following(target), registers.word(following(str(source.value)))))
    return found


def _halves(registers: Registers, one: SassInstruction) -> Results:
    """HFMA2.MMA of zeros: a constant of two halves."""
    target, first, second, *numbers = one.operands
    if {first.value, second.value} != {"RZ"}:
        return _data(registers, one)
    upper, lower = (int(np.float16(float(each.value)).view(np.uint16)) for each in numbers[:2])
    signs = [0x8000 * (each.sign == "-") for each in numbers[:2]]
    return [(str(target.value), (upper ^ signs[0]) << 16 | lower ^ signs[1])]


def _pack(registers: Registers, one: SassInstruction) -> Results:
    """P2R: the predicates of a mask in the bits of a byte of a register."""
    target, _, base, mask = one.operands
    byte = next((8 * int(name[1]) for name in one.modifiers if name[0] == "B"), 0)
    bits = int(mask.value)
    found = registers.read(base) & MASK & ~(bits << byte)
    for n in range(7):
        truth = registers.word(f"P{n}")
        if bits >> n & 1 and not isinstance(truth, Loaded):
            found = found | (truth * 1) << n + byte
    return [(str(target.value), found)]


def _float_of(bits: Any) -> Any:
    return np.asarray(bits, np.int64).astype(np.uint32).view(np.float32)


def _bits_of(number: Any) -> Any:
    found = np.asarray(number, np.float32).view(np.uint32).astype(np.int64)
    return found if found.ndim else int(found)


def _convert(registers: Registers, one: SassInstruction) -> Results:
    """I2F, F2I and MUFU.RCP, as divisions of whole numbers use them."""
    target = str(one.operands[0].value)
    source = one.operands[-1]
    is_long = "U64" in one.modifiers or "S64" in one.modifiers
    value = registers.pair(source) if is_long and one.name == "I2F" else registers.read(source)
    if isinstance(value, Loaded):
        return [(target, Loaded()), (following(target), Loaded())][: 1 + is_long]
    with np.errstate(all="ignore"):
        if one.name == "MUFU":
            return [(target, _bits_of(np.float32(1) / _float_of(value)))]
        if one.name.startswith("I2F"):
            exact = np.asarray(value).astype(np.float64)
            near = exact.astype(np.float32)
            up = np.nextafter(near, np.float32(np.inf))
            return [
                (target, _bits_of(np.where(("RP" in one.modifiers) & (near < exact), up, near)))
            ]
        whole = np.trunc(_float_of(value).astype(np.float64))
        top = 2.0**64 if is_long else 2.0**32
        whole = np.clip(whole, 0, np.nextafter(top, 0)).astype(np.uint64).view(np.int64)
    lower, upper = _words(whole if whole.ndim else int(whole))
    return [(target, lower), (following(target), upper)][: 1 + is_long]


def _data(registers: Registers, one: SassInstruction) -> Results:
    """An operation on real numbers."""
    target, *sources = one.operands
    values = [registers.read(source) for source in sources if not is_predicate(source)]
    if is_predicate(target):
        return [(str(to.value), Loaded()) for to in one.operands[:2]]
    factors = [value for value in values[:2] if isinstance(value, Loaded)]
    loads = tuple(value.load for value in factors if value.load is not None)
    added = [value for value in values[2:] if isinstance(value, Loaded)]
    is_product = one.name in PRODUCTS and len(loads) == 2 and factors[0] is not factors[1]
    is_sum = any(value.is_product for value in (*factors, *added))
    if len(factors) == 1 and not added:
        data = Loaded(None, True) if factors[0].is_product else factors[0]
    else:
        data = Loaded(None, is_product or is_sum, loads if is_product else ())
    is_double = one.name[0] == "D" or one.modifiers[:1] == ("F64",)
    results = [(str(target.value), data)]
    return results + [(following(str(target.value)), data)] * is_double


def _nothing(registers: Registers, one: SassInstruction) -> Results:
    return []


PRODUCTS = "FFMA", "DFMA", "FMUL", "DMUL"
MEANING: dict[str, Callable[[Registers, SassInstruction], Results]] = {
    "IADD3": _whole(_add),
    "VIADD": _whole(_add),
    "LEA": _whole(_lea),
    "SHF": _whole(_shift),
    "PRMT": _whole(_permute),
    "IMNMX": _whole(_least),
    "VIMNMX": _whole(_least),
    "IABS": _whole(lambda _, values: abs(signed(values[0]))),
    "IMAD": _multiply,
    "ISETP": _compare,
    "LOP3": _logic_or_truth,
    "PLOP3": _combine_truths,
    "SEL": _select,
    "HFMA2": _halves,
    "P2R": _pack,
    **dict.fromkeys(("I2F", "I2FP", "F2I", "MUFU"), _convert),
    **dict.fromkeys(("MOV", "S2R", "S2UR", "R2UR", "CS2R", "LDC", "ULDC"), _move),
    **dict.fromkeys((*PRODUCTS, "FADD", "DADD", "F2F", "FSETP", "DSETP", "FSEL"), _data),
    **dict.fromkeys(("FMNMX", "FCHK"), _data),
    **dict.fromkeys(("BSSY", "BSYNC", "BAR", "NOP", "WARPSYNC", "YIELD", "MEMBAR"), _nothing),
}
