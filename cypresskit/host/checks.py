"""Checks of arguments before anything runs. An error says what was written and what it has to
be.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cypresskit.devices import is_whole
from cypresskit.il.errors import shortened

LARGEST = 1 << 31  # rows or columns: far beyond every memory, and their products still are floats
UNITS = 100_000  # steps of a plan, some seconds of work for the event model


def _checker(good: Callable[[Any], bool], wanted: str) -> Callable[..., None]:
    """A function that raises ``ValueError`` unless each of its keyword arguments is ``good``."""

    def check(**values: Any) -> None:
        for name, value in values.items():
            if not good(value):
                raise ValueError(f"{name} = {shortened(value)} has to {wanted}")

    return check


def _number(value: Any) -> bool:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return real and bool(0 <= value <= sys.float_info.max)


check_whole = _checker(
    partial(is_whole, most=LARGEST), f"be a whole number of at least 1 and at most {LARGEST:,}"
)
check_positive = _checker(lambda value: _number(value) and value > 0, "be above 0 and finite")
check_amount = _checker(_number, "be 0 or more, and finite")
check_share = _checker(lambda value: _number(value) and value <= 1, "lie in 0 to 1")


def check_type(kind: type, **values: object) -> None:
    """Raise ``TypeError`` unless every value is of the class ``kind``."""
    for name, value in values.items():
        if not isinstance(value, kind):
            where = f"{kind.__module__}.{kind.__name__}".removeprefix("builtins.")
            raise TypeError(f"{name} has to be a {where}, not {shortened(value)}")


def check_precision(precision: str, where: str) -> None:
    """Raise ``TypeError`` for double-double: the papers' hosts moved single and double
    precision.
    """
    if precision == "double-double":
        raise TypeError(f"{where}, matrices are float32 or float64, not double-double")


def check_units(m: int, n: int, block: int, strips: int = 1) -> None:
    """Raise ``ValueError`` if there are too many blocks of C, each of so many strips of k, to
    plan.
    """
    units = -(-m // block) * -(-n // block) * strips
    if units > UNITS:
        units_text = f"{m} x {n} in blocks of {block} makes {units:,} units of work"
        raise ValueError(f"{units_text}, and {UNITS:,} are the most: try a larger block")
