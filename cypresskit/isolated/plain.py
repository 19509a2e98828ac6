"""Values as plain data, for messages that are safe to read whoever wrote them.

A message (see ``child``) is JSON. Texts, finite and infinite numbers, True, False and
None are themselves; everything else is an object with one name, which says what it is:
``{"tuple": [...]}``, ``{"array": ["<f8", [2, 3], "base64"]}``. Reading a message runs no code of
its writer's: what is not of this form raises ``ValueError``.
"""

import base64
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np

BITS = 13_000  # of a whole number: some 3,900 digits; Python reads no more than 4,300
ITEMS = 2_000_000  # of a list
DEPTH = 50  # of lists in lists
KINDS = "biuf"  # of numbers in an array: truth values, whole numbers, floats
SHOWN = 60  # characters of a value that is no plain data


@dataclass(frozen=True)
class Other:
    """What stands for a value that is no plain data: the name of its type, and its text."""

    type: str
    text: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Described:
    """An object as its fields, from which the reader may build one: of ``kind`` "Device", say."""

    kind: str
    fields: dict[str, Any]


Describe = Callable[[Any], Described | None]


def encode(value: Any, describe: Describe = lambda _: None, depth: int = 0) -> Any:
    """``value`` as what JSON can hold; ``describe`` may give the fields of an object."""
    if depth > DEPTH:
        return {"other": ["list", "a list, too deep"]}
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        number = int(value)
        if number.bit_length() > BITS:
            return {"other": ["int", "a whole number of thousands of digits"]}
        return number
    if isinstance(value, Decimal):
        value = Fraction(value) if value.is_finite() else float(value)
    if isinstance(value, Real) and not isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Fraction):
        return {"fraction": [value.numerator, value.denominator]}
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS:
        plain = np.ascontiguousarray(value)
        data = base64.b64encode(plain.tobytes()).decode("ascii")
        return {"array": [plain.dtype.str, list(value.shape), data]}
    if isinstance(value, Other):
        return {"other": [value.type, value.text]}
    if described := describe(value):
        fields = {
            name: encode(item, describe, depth + 1) for name, item in described.fields.items()
        }
        return {"described": [described.kind, fields]}
    if isinstance(value, dict):
        pairs = [
            [encode(k, describe, depth + 1), encode(v, describe, depth + 1)]
            for k, v in value.items()
        ]
        return {"dict": pairs}
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | np.ndarray):
        kind = "tuple" if isinstance(value, tuple) else "list"
        name = type(value).__name__
        items = [encode(item, describe, depth + 1) for item in islice(value, ITEMS)]
        return {kind: items} if kind == name else {"items": [name, items]}
    return {"other": [type(value).__name__, _text(value)]}


def _text(value: Any) -> str:
    try:
        return repr(value)[:SHOWN]
    except Exception:  # its class is the student's
        return ""


class Items(list):
    """The items of what wasn't a list: ``type`` is the name of what it was."""

    type = "list"


def decode(data: Any, depth: int = 0) -> Any:
    """The value of what ``encode`` made. Raises ``ValueError`` for anything else."""
    if depth > DEPTH + 5:
        raise ValueError("a message is too deep")
    if data is None or isinstance(data, bool | int | float):
        return data
    if isinstance(data, str):
        return clean(data)
    if not isinstance(data, dict) or len(data) != 1:
        raise ValueError("a message is no plain data")
    ((kind, content),) = data.items()
    if kind == "array":
        return _array(content)
    if not isinstance(content, list):
        raise ValueError("a message is no plain data")
    if kind == "tuple":
        return tuple(decode(item, depth + 1) for item in content)
    if kind == "list":
        return [decode(item, depth + 1) for item in content]
    if kind == "dict":
        return dict(_pair(pair, depth) for pair in content)
    if len(content) != 2:
        raise ValueError(f"a message has a {clean(str(kind))[:20]} that is none")
    first, second = content
    if kind == "fraction":
        if type(first) is not int or type(second) is not int or not second:
            raise ValueError("a fraction that is none")
        return Fraction(first, second)
    if kind == "items" and isinstance(first, str) and isinstance(second, list):
        items = Items(decode(item, depth + 1) for item in second)
        items.type = clean(first)[:SHOWN]
        return items
    if kind == "other" and isinstance(first, str) and isinstance(second, str):
        return Other(clean(first)[:SHOWN], clean(second)[:SHOWN])
    if kind == "described" and isinstance(first, str) and isinstance(second, dict):
        return Described(
            first, {str(name): decode(item, depth + 1) for name, item in second.items()}
        )
    raise ValueError(f"a message has an unknown part, {clean(str(kind))[:20]!r}")


def _pair(pair: Any, depth: int) -> tuple:
    if not isinstance(pair, list) or len(pair) != 2:
        raise ValueError("a dict whose pairs are none")
    key, value = (decode(part, depth + 1) for part in pair)
    if not isinstance(key, str | int | float | bool | None):
        raise ValueError("a dict with a key that is no number or text")
    return key, value


def _array(content: Any) -> np.ndarray:
    try:
        name, shape, text = content
        dtype = np.dtype(str(name))
        if dtype.kind not in KINDS or not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError("an array of no numbers")
        raw = base64.b64decode(text, validate=True)
        if math.prod(shape) * dtype.itemsize != len(raw):
            raise ValueError("an array of another size")
        return np.frombuffer(raw, dtype).reshape(shape).copy()
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"not an array: {error}") from None


def clean(text: str) -> str:
    """A text that can be written as UTF-8: surrogates become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
