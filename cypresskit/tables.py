"""Format values for notebooks, documents and files: tables in HTML, Markdown and CSV; quantities;
durations.

HTML and CSV are escaped, so that no browser or spreadsheet executes them.
"""

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from io import StringIO
from itertools import chain
from typing import Any

#: What precedes a formula's first symbol: a cell's start or a separator, then spaces and quotes.
FORMULA = re.compile(r"""((?:^|[;\t\r\n])[\s"]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def table(names: Sequence[str], rows: Iterable[Iterable[Any]], caption: str = "") -> str:
    """Return an HTML table with a row of headings."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(value))}</td>' for value in row)}</tr>" for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def aligned(columns: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines of text. ``columns`` is the template of a line: an "<" or ">" for each
    column, to the left or to the right, and what is between them.
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows)]
    template = re.sub("[<>]", r"{:\g<0>{}}", columns)
    return [template.format(*chain(*zip(row, widths))).rstrip() for row in rows]


def elided(text: str, letters: int) -> str:
    """Return a text of at most ``letters`` characters; a longer one ends in an ellipsis."""
    return text if len(text) <= letters else text[: letters - 1] + "\N{HORIZONTAL ELLIPSIS}"


def markdown(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table."""
    head, *lines = ["| " + " | ".join(map(str, row)) + " |" for row in (names, *rows)]
    return "\n".join([head, "|" + "---|" * len(names), *lines])


def as_csv(
    rows: Iterable[Mapping[str, object]], order: Callable[[str], str] = lambda name: ""
) -> str:
    """Return CSV with the columns of all rows.

    In rows, an apostrophe precedes what a spreadsheet would run as a formula, even if it
    splits cells at semicolons, tabs or line breaks.

    Parameters
    ----------
    rows
        The rows, by column.
    order
        The key by which columns are sorted.
    """
    rows = list(rows)
    text = StringIO(newline="")
    writer = csv.DictWriter(
        text, sorted(dict.fromkeys(name for row in rows for name in row), key=order)
    )
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                name: FORMULA.sub(r"\1'", value) if isinstance(value, str) else value
                for name, value in row.items()
            }
        )
    return text.getvalue()


def read_csv(data: bytes) -> "csv.DictReader[str]":
    """Return a reader of a CSV file as any spreadsheet program saves it.

    Cells may be separated by commas, semicolons or tabs; the encoding may be UTF-8, UTF-16 or
    Windows-1252. The reader raises ``csv.Error`` if a quote isn't closed.
    """
    encodings = ("utf-16",) if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else ("utf-8-sig", "cp1252")
    try:
        text = data.decode(encodings[0])
    except UnicodeDecodeError:
        text = data.decode(encodings[-1], "replace")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    csv.field_size_limit(1 << 24)
    return csv.DictReader(StringIO(text, newline=""), delimiter=delimiter, strict=True)


def folded(line: str, text: str) -> str:
    """Return HTML that shows a line, and on click a longer text."""
    return f"<details><summary>{escape(line)}</summary>{in_columns(text)}</details>"


def in_columns(text: str) -> str:
    """Return text as HTML in a monospaced font, which nbconvert doesn't use for a plain ``pre``."""
    return f'<pre style="font-family: monospace">{escape(text)}</pre>'


def quantity(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 line``, ``1,200 lines``."""
    return f"{count:,} {plural(noun, count)}"


def plural(noun: str, count: int) -> str:
    """Return a noun's singular for a count of 1, else its plural."""
    return noun if count == 1 else f"{noun}s"


def listed(values: Sequence[Any]) -> str:
    """Return values as in a sentence: "1", "1 and 2", "1, 2 and 3"."""
    *others, last = map(str, values)
    return f"{', '.join(others)} and {last}" if others else last


def ranged(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text: "3 to 7" if they follow each other and are three or more,
    else as ``listed``.
    """
    first, last = numbers[0], numbers[-1]
    follow = len(numbers) > 2 and last - first == len(numbers) - 1
    return f"{first} to {last}" if follow else listed(numbers)


def named_lines(numbers: Sequence[int], verb: str = "") -> str:
    """Return lines of a text, perhaps as the subject of a verb: "line 3", "lines 3 and 5 read"."""
    many = len(numbers) > 1
    return f"line{'s' * many} {ranged(numbers)} {verb}{'' if many or not verb else 's'}".rstrip()


def duration(seconds: float) -> str:
    """Return a time in ns, \N{MICRO SIGN}s, ms or s, whichever suits, with three digits."""
    for unit, scale in (("ns", 1e9), ("\N{MICRO SIGN}s", 1e6), ("ms", 1e3)):
        if seconds * scale < 999.5:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)


def one_line(text: str) -> str:
    """Return a text on one line, with line breaks and unprintable characters escaped."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in clean)
