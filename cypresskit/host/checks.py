"""What is asked of arguments before anything runs: one error that says what was written and what it has to be."""

import sys
from reprlib import repr as short
from typing import Any

import numpy as np

LARGEST = 1 << 31  # rows or columns: far beyond every memory, and their products still are floats
UNITS = 100_000  # steps of a plan, some seconds of work for the event model


def check_whole(**sizes: Any) -> None:
    """``ValueError`` unless every size is a whole number of at least 1, and no absurd one."""
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or not 1 <= size <= LARGEST:
            raise ValueError(f"{name} = {short(size)} has to be a whole number of at least 1 and at most {LARGEST:,}")


def check_positive(**values: Any) -> None:
    """``ValueError`` unless every value is a number above 0 and finite."""
    for name, value in values.items():
        if not _number(value) or value == 0:
            raise ValueError(f"{name} = {short(value)} has to be above 0 and finite")


def check_amount(**values: Any) -> None:
    """``ValueError`` unless every value is a number of 0 or more, and finite."""
    for name, value in values.items():
        if not _number(value):
            raise ValueError(f"{name} = {short(value)} has to be 0 or more, and finite")


def check_share(**values: Any) -> None:
    """``ValueError`` unless every value is a number from 0 to 1."""
    for name, value in values.items():
        if not _number(value) or value > 1:
            raise ValueError(f"{name} = {short(value)} has to lie in 0 to 1")


def check_type(kind: type, **values) -> None:
    """``TypeError`` unless every value is of the class ``kind``."""
    for name, value in values.items():
        if not isinstance(value, kind):
            where = f"{kind.__module__}.{kind.__name__}".removeprefix("builtins.")
            raise TypeError(f"{name} has to be a {where}, not {short(value)}")


def check_units(m: int, n: int, block: int, strips: int = 1) -> None:
    """``ValueError`` if blocks of C, each of so many strips of k, are too many to be planned."""
    units = -(-m // block) * -(-n // block) * strips
    if units > UNITS:
        raise ValueError(
            f"{m} x {n} in blocks of {block} makes {units:,} units of work, and {UNITS:,} are the most: try a larger"
            " block"
        )


def _number(value: Any) -> bool:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return real and bool(0 <= value <= sys.float_info.max)
