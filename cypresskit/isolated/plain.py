"""Encode values as plain data, for messages that are safe to read from any sender.

A message (see ``subprocesses``) is JSON. Texts, numbers, True, False and None stay as they are. Any
other value is an object whose key is its kind: ``{"tuple": [...]}``, ``{"dict": [keys, values]}``,
``{"array": ["<f8", [2, 3], "base64"]}``. Reading a message never runs the sender's code. A message
of another form raises ``ValueError``.
"""

import base64
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np

from cypresskit.devices import HD5870, Device

MAX_BITS = 13_000  # of an integer: about 3,900 digits; Python's JSON reads at most 4,300
NUMBER_LIMIT = 2**63  # above all sizes, rates and counts
MAX_ITEMS = 2_000_000  # of a list
MAX_DEPTH = 50  # of nested lists
#: The types of arrays: booleans, integers and floats, in this machine's order of bytes.
DTYPES = {np.dtype(code).str for code in "?" + np.typecodes["AllInteger"] + np.typecodes["Float"]}
MAX_TEXT = 60  # characters of a value that isn't plain data
Key = str | int | float | None  # what a dict's keys are


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
    inner = partial(encode, depth=depth + 1)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | None):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int(value)
        if number.bit_length() > MAX_BITS:
            return {"other": ["int", "an integer of thousands of digits"]}
        return number
    if isinstance(value, Real | Decimal):
        with suppress(OverflowError, ValueError):  # of a fraction that is too large
            return float(value)
    if isinstance(value, np.ndarray) and value.dtype.str in DTYPES:
        plain = np.ascontiguousarray(value)
        data = base64.b64encode(plain.tobytes()).decode("ascii")
        return {"array": [plain.dtype.str, list(value.shape), data]}
    if isinstance(value, Other):
        return {"other": [value.type, value.text]}
    if isinstance(value, Device):
        return {"device": [*map(inner, vars(value).values())]}
    if isinstance(value, dict):
        keys = [encode(key, depth) for key in value]
        if all(isinstance(key, Key) for key in keys):  # else its keys are sent, as items
            return {"dict": [keys, [*map(inner, value.values())]]}
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | np.ndarray):
        kind = "tuple" if isinstance(value, tuple) else "list"
        name = type(value).__name__
        items = [*map(inner, islice(value, MAX_ITEMS))]
        return {kind: items} if kind == name else {"items": [name, items]}
    return {"other": [type(value).__name__, _text(value)]}


def _text(value: Any) -> str:
    try:
        return repr(value)[:MAX_TEXT]
    except Exception:  # the student's class may do anything
        return ""


class Items(list):
    """The items of an iterable other than list or tuple. ``type`` is the name of its type."""

    def __init__(self, items: Iterable, type: str) -> None:
        super().__init__(items)
        self.type = type


def decode(data: Any, depth: int = 0) -> Any:
    """Return the value that ``encode`` encoded. Raises ``ValueError`` for anything else."""
    if depth > MAX_DEPTH + 5:
        raise ValueError("a message is nested too deeply")
    inner = partial(decode, depth=depth + 1)
    match data:
        case dict() if len(data) > 1:
            pass
        case None | bool() | int() | float():
            return data
        case str():
            return text(data)
        case {"tuple": [*items]}:
            return tuple(map(inner, items))
        case {"list": [*items]}:
            return [*map(inner, items)]
        case {"items": [str(kind), [*items]]}:
            return Items(map(inner, items), text(kind, MAX_TEXT))
        case {"dict": [[*keys], [*values]]} if all(isinstance(key, Key) for key in keys):
            return dict(zip(map(inner, keys), map(inner, values), strict=True))
        case {"other": [str(kind), str(shown)]}:
            return Other(text(kind, MAX_TEXT), text(shown, MAX_TEXT))
        case {"device": [*fields]}:
            return _device([*map(inner, fields)])
        case {"array": [str(dtype), [*shape], str(content)]} if dtype in DTYPES:
            return _array(dtype, shape, content)
    raise ValueError("a message isn't plain data")


def _device(values: list) -> Device | Other:
    """Return the board with these fields, if they have the stock board's types (an int may stand
    for a float) and are below ``NUMBER_LIMIT``.
    """
    wrong = Other("Device with fields that have other types")
    given = dict(zip(vars(HD5870), values))
    fine = len(values) == len(vars(HD5870)) and all(
        is_below_limit(value)
        and (type(value) is type(stock) or (isinstance(stock, float) and type(value) is int))
        for value, stock in zip(values, vars(HD5870).values())
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


def _array(dtype: str, shape: list, content: str) -> np.ndarray:
    items = np.frombuffer(base64.b64decode(content, validate=True), dtype)
    try:
        return items.reshape(shape).copy()
    except (TypeError, OverflowError) as error:
        raise ValueError(f"not the shape of an array: {error}") from None


def text(value: Any, most: int | None = None) -> str:
    """Return the text of a value from a message, at most so many characters, as UTF-8 can encode
    it: lone surrogates become question marks.
    """
    return str(value).encode("utf-8", "replace").decode("utf-8")[:most]
