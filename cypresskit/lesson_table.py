"""The table of a lesson: rows of values, or of a function's results.

A number stands under a number: a column has as many decimals in every row. Notebooks show it in
HTML; ``str()``, nbval and screen readers have its text.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import product
from math import floor, isfinite, log10
from typing import Any

from cypresskit.tables import aligned

LOOK = "font-variant-numeric: tabular-nums; border-collapse: collapse; margin: 4px 0"
BOLD = ' style="font-weight: 600"'


class Table:
    """A table.

    Parameters
    ----------
    heads
        The heads of the columns, with their units.
    rows
        The values: numbers, texts, or None for a value that there isn't.
    keys
        The number of columns that say what a row is: these are written as they are.
    bold
        The value, in one of these, of the row that matters.
    note
        What to see, as a sentence below.

    Raises
    ------
    ValueError
        If a row hasn't as many values as there are heads.

    Examples
    --------
    >>> ck.Table(["kernel", "Gflop/s"], [["sgemm_nn", 1407.2], ["sgemm_tn", 1845.0]])
    kernel    Gflop/s
    sgemm_nn    1,407
    sgemm_tn    1,845
    """

    def __init__(
        self,
        heads: Sequence[str],
        rows: Iterable[Sequence[Any]],
        keys: int = 1,
        *,
        bold: Any = None,
        note: str = "",
    ) -> None:
        self.heads, self.note = [str(head) for head in heads], note
        self.values = [list(row) for row in rows]
        for row in self.values:
            if len(row) != len(self.heads):
                raise ValueError(f"a row has {len(row)} values: {row}, and {len(self.heads)} heads")
        columns = [[row[n] for row in self.values] for n in range(len(self.heads))]
        self.is_number = [any(map(_is_number, column)) for column in columns]
        written = [
            list(map(str, column)) if n < keys else _written(column)
            for n, column in enumerate(columns)
        ]
        self.rows = list(zip(*written))
        self.is_bold = [bold is not None and bold in row[:keys] for row in self.values]

    def __str__(self) -> str:
        columns = "  ".join("<>"[right] for right in self.is_number)
        lines = aligned(columns, [self.heads, *self.rows])
        return "\n".join(filter(None, [*lines, self.note]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sides = ["right" if right else "left" for right in self.is_number]
        head = "".join(map(_head, self.heads, sides))
        body = "".join(
            f"<tr{BOLD * is_bold}>{''.join(map(_cell, row, sides))}</tr>"
            for is_bold, row in zip(self.is_bold, self.rows)
        )
        note = f"<div>{escape(self.note)}</div>" if self.note else ""
        table = f'<table style="{LOOK}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        return f"<div>{table}{note}</div>"


def table(
    function: Callable[..., Any], *, bold: Any = None, note: str = "", **given: Iterable[Any]
) -> Table:
    """Call a function with all combinations of values, and return the results as a table.

    Parameters
    ----------
    function
        If it returns a dict, each combination is a row, and the dict's keys are heads. If it
        returns a number, the last parameter's values are the heads.
    bold, note
        As for ``Table``.
    given
        The values of each parameter.

    Raises
    ------
    TypeError
        If a parameter's values aren't a list, or there is no function.
    ValueError
        If a parameter has no value.

    Examples
    --------
    >>> def run(kernel, n):
    ...     return ck.simulate(kernel, n).gflops
    >>> ck.table(run, kernel=("sgemm_nn", "sgemm_tn"), n=(256, 1024))  # doctest: +SKIP
    """
    for name, choices in given.items():
        if isinstance(choices, str) or not isinstance(choices, Iterable):
            raise TypeError(f"table takes a list of values, as in {name}=[{choices!r}]")
    if not callable(function):
        raise TypeError(f"table takes a function first, not {function!r}")
    values = {name: list(choices) for name, choices in given.items()}
    if not values or not all(values.values()):
        raise ValueError("a table needs the values of each parameter, as in n=[256, 1024]")
    keys = list(product(*values.values()))
    results = [function(**dict(zip(values, key))) for key in keys]
    if isinstance(results[0], Mapping):
        rows = [[*key, *result.values()] for key, result in zip(keys, results)]
        return Table([*values, *results[0]], rows, len(values), bold=bold, note=note)
    *down, across = values
    wide = len(values[across])
    written = _written(results)  # with as many decimals in all columns
    lines = [[*keys[n][:-1], *written[n : n + wide]] for n in range(0, len(keys), wide)]
    heads = [f"{across} = {value}" if _is_number(value) else value for value in values[across]]
    made = Table([*down, *heads], lines, len(down), bold=bold, note=note)
    made.is_number[len(down) :] = [any(map(_is_number, results))] * wide
    return made


def _head(text: str, side: str) -> str:
    return f'<th style="text-align: {side}">{escape(text)}</th>'


def _cell(text: str, side: str) -> str:
    return f'<td style="text-align: {side}">{escape(text)}</td>'


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, bool)


def _written(column: Sequence[Any]) -> list[str]:
    """Write a column's values, its numbers with as many decimals as the largest needs for three
    digits; whole ones with none.
    """
    numbers = [abs(float(value)) for value in column if _is_number(value)]
    most = max(filter(isfinite, numbers), default=0.0)
    is_whole = all(number % 1 == 0 for number in numbers if isfinite(number))
    decimals = 0 if is_whole else max(0, 2 - floor(log10(most)))
    return [
        f"{value:,.{decimals}f}" if _is_number(value) else "" if value is None else str(value)
        for value in column
    ]
