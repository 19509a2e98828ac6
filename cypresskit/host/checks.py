"""Check arguments before anything runs. Errors state what was given and what is allowed."""

from functools import partial
from typing import Any

from cypresskit.devices import Range, plain
from cypresskit.il.errors import shorten

MAX_NUMBER = 1 << 31  # rows or columns: far beyond any memory, and floats hold their products
MAX_UNITS = 100_000  # steps of a plan: some seconds of work for the event model


def _check(allowed: Range, whole: bool, /, **values: Any) -> Any:
    """Return the values as Python's numbers: numpy's integers would wrap. One is returned alone.

    Raises ``ValueError`` unless each value is in a range.
    """
    for name, value in values.items():
        if not allowed.has(value, whole):
            raise ValueError(f"{name} = {shorten(value)} has to be {allowed.words(whole)}")
    numbers = [plain(value) for value in values.values()]
    return numbers if len(numbers) > 1 else numbers[0]


check_whole = partial(_check, Range(least=1, most=MAX_NUMBER), True)
check_positive = partial(_check, Range(above=0), False)
check_share = partial(_check, Range(most=1), False)


def check_type(kind: type, **values: object) -> None:
    """Raise ``TypeError`` unless each value is of the class ``kind``."""
    for name, value in values.items():
        if not isinstance(value, kind):
            where = f"{kind.__module__}.{kind.__name__}".removeprefix("builtins.")
            raise TypeError(f"{name} has to be a {where}, not {shorten(value)}")


def check_double(precision: str, where: str) -> None:
    """Raise ``TypeError`` for all but doubles, which the papers' hosts moved."""
    if precision != "double":
        raise TypeError(f"{where}, matrices are float64; these are in {precision} precision")


def check_units(m: int, n: int, block: int, strips: int = 1) -> None:
    """Raise ``ValueError`` if there are too many blocks of C, each with ``strips`` along k."""
    units = -(-m // block) * -(-n // block) * strips
    if units > MAX_UNITS:
        raise ValueError(
            f"{m} x {n} in blocks of {block} makes {units:,} units of work, and {MAX_UNITS:,} are"
            " the most: try a larger block"
        )
