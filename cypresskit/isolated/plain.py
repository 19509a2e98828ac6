"""Encode values as plain data, for messages that are safe to read from any sender.

A message (see ``subprocesses``) is JSON. Texts, numbers, True, False and None stay as they are. Any
other value is an object whose only key is its kind: ``{"tuple": [...]}``, ``{"array": ["<f8", [2,
3], "base64"]}``. Reading a message never runs the sender's code. A message of another form raises
``ValueError``.
"""

import base64
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np

from cypresskit.devices import HD5870, Device

MAX_BITS = 13_000  # of an integer: about 3,900 digits; Python's JSON reads at most 4,300
NUMBER_LIMIT = 2**63  # above all sizes, rates and counts
MAX_ITEMS = 2_000_000  # of a list
MAX_DEPTH = 50  # of nested lists
ARRAY_KINDS = "biuf"  # dtype kinds of arrays: booleans, integers, floats
MAX_TEXT = 60  # characters of a value that isn't plain data


@dataclass(frozen=True)
class Other:
    """A value that isn't plain data: the name of its type, and its text."""

    type: str
    text: str = ""

    def __str__(self) -> str:
        return self.text


def encode(value: Any, depth: int = 0) -> Any:
    """Return a value, nested in ``depth`` lists, tuples and dicts, as data for JSON.

    A board is sent as its fields, and any number that isn't whole as a float.
    """
    if depth > MAX_DEPTH:
        return {"other": ["list", "a list that is nested too deeply"]}
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
        if number.bit_length() > MAX_BITS:
            return {"other": ["int", "an integer of thousands of digits"]}
        return number
    if isinstance(value, Real | Decimal):
        with suppress(OverflowError, ValueError):  # of a fraction that is too large
            return float(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        plain = np.ascontiguousarray(value)
        data = base64.b64encode(plain.tobytes()).decode("ascii")
        return {"array": [plain.dtype.str, list(value.shape), data]}
    if isinstance(value, Other):
        return {"other": [value.type, value.text]}
    if isinstance(value, Device):
        return {"device": [encode(item, depth + 1) for item in vars(value).values()]}
    if isinstance(value, dict):
        return {"dict": [[encode(k, depth), encode(v, depth + 1)] for k, v in value.items()]}
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | np.ndarray):
        kind = "tuple" if isinstance(value, tuple) else "list"
        name = type(value).__name__
        items = [encode(item, depth + 1) for item in islice(value, MAX_ITEMS)]
        return {kind: items} if kind == name else {"items": [name, items]}
    return {"other": [type(value).__name__, _text(value)]}


def _text(value: Any) -> str:
    try:
        return repr(value)[:MAX_TEXT]
    except Exception:  # the student's class may do anything
        return ""


class Items(list):
    """The items of an iterable other than list or tuple. ``type`` is the name of its type."""

    type = "list"


def decode(data: Any, depth: int = 0) -> Any:
    """Return the value that ``encode`` encoded. Raises ``ValueError`` for anything else."""
    if depth > MAX_DEPTH + 5:
        raise ValueError("a message is nested too deeply")
    if data is None or isinstance(data, bool | int | float):
        return data
    if isinstance(data, str):
        return text(data)
    if not isinstance(data, dict) or len(data) != 1:
        raise ValueError("a message isn't plain data")
    ((kind, content),) = data.items()
    if kind == "array":
        return _array(content)
    if not isinstance(content, list):
        raise ValueError("a message isn't plain data")
    if kind == "tuple":
        return tuple(decode(item, depth + 1) for item in content)
    if kind == "list":
        return [decode(item, depth + 1) for item in content]
    if kind == "dict":
        return dict(_pair(pair, depth) for pair in content)
    if kind == "device":
        return _device([decode(item, depth + 1) for item in content])
    if len(content) != 2:
        raise ValueError(f"a message has an invalid {text(kind, 20)}")
    first, second = content
    if kind == "items" and isinstance(first, str) and isinstance(second, list):
        items = Items(decode(item, depth + 1) for item in second)
        items.type = text(first, MAX_TEXT)
        return items
    if kind == "other" and isinstance(first, str) and isinstance(second, str):
        return Other(text(first, MAX_TEXT), text(second, MAX_TEXT))
    raise ValueError(f"a message has an unknown part, {text(kind, 20)!r}")


def _pair(pair: Any, depth: int) -> tuple:
    if not isinstance(pair, list) or len(pair) != 2:
        raise ValueError("a message has a dict with invalid pairs")
    key, value = (decode(part, depth + 1) for part in pair)
    if not isinstance(key, str | int | float | bool | None):
        raise ValueError("a message has a dict with a key that is neither number nor text")
    return key, value


def _device(values: list) -> Device | Other:
    """Return the board with these fields, if they have the stock board's types (an int may stand
    for a float) and are below ``NUMBER_LIMIT``.
    """
    wrong = Other("Device with fields that have other types")
    given = dict(zip(vars(HD5870), values))
    fine = len(values) == len(vars(HD5870)) and all(
        is_below_limit(value)
        and (type(value) is type(own) or (isinstance(own, float) and type(value) is int))
        for value, own in zip(values, vars(HD5870).values())
    )
    try:
        return Device(**given) if fine else wrong
    except (TypeError, ValueError):
        return wrong


def is_below_limit(value: Any) -> bool:
    """Return whether no number in a value is too large for a size, a rate or a count."""
    if isinstance(value, list | tuple):
        return all(map(is_below_limit, value))
    return not isinstance(value, int | float) or abs(value) < NUMBER_LIMIT


def _array(content: Any) -> np.ndarray:
    try:
        name, shape, encoded = content
        dtype = np.dtype(str(name))
        if dtype.kind not in ARRAY_KINDS or not all(
            type(side) is int and side >= 0 for side in shape
        ):
            raise ValueError("its items aren't numbers")
        raw = base64.b64decode(encoded, validate=True)
        if math.prod(shape) * dtype.itemsize != len(raw):
            raise ValueError("its shape doesn't match its size")
        return np.frombuffer(raw, dtype).reshape(shape).copy()
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"not an array: {error}") from None


def text(value: Any, most: int | None = None) -> str:
    """Return the text of a value from a message, at most so many characters, as UTF-8 can encode
    it: lone surrogates become question marks.
    """
    return str(value).encode("utf-8", "replace").decode("utf-8")[:most]
