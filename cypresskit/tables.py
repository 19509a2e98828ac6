"""Tables as HTML, Markdown and CSV, and other values that a notebook's cell shows; everything in
them is escaped.
"""

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any

#: What begins a formula, in whatever cell: its mark, and what stands before it there.
FORMULA = re.compile(r"""((?:^|[;\t\r\n])[\s"]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def table(names: Sequence[str], rows: Iterable[Iterable[Any]], caption: str = "") -> str:
    """An HTML table: a row of headings, then ``rows``."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(value))}</td>' for value in row)}</tr>" for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def elided(text: str, letters: int) -> str:
    """Cut a text to at most ``letters``, the last of them an ellipsis, where it is longer."""
    return text if len(text) <= letters else text[: letters - 1] + "\N{HORIZONTAL ELLIPSIS}"


def markdown(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table."""
    head, *lines = ["| " + " | ".join(map(str, row)) + " |" for row in (names, *rows)]
    return "\n".join([head, "|" + "---|" * len(names), *lines])


def as_csv(
    rows: Iterable[Mapping[str, object]], order: Callable[[str], str] = lambda name: ""
) -> str:
    """CSV with the columns of all rows, in ``order``. A mark goes before what a spreadsheet would
    run as a formula, also where it takes semicolons, tabs or lines for the ends of cells.
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
    """The rows of a CSV file, however a spreadsheet saved it: with commas, semicolons or tabs; in
    UTF-8, UTF-16 or the letters of Western Europe. Who reads them gets ``csv.Error`` where a quote
    isn't closed.
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
    """A line of HTML that unfolds to a longer text."""
    return f"<details><summary>{escape(line)}</summary>{in_columns(text)}</details>"


def in_columns(text: str) -> str:
    """Text as HTML in equal letters, which nbconvert's pages don't give a plain ``pre``."""
    return f'<pre style="font-family: monospace">{escape(text)}</pre>'


def quantity(count: int, noun: str) -> str:
    """A number with its noun: ``1 line``, ``1,200 lines``."""
    return f"{count:,} {plural(noun, count)}"


def plural(noun: str, count: int) -> str:
    """A noun as it stands beside a number: ``line`` for 1, else ``lines``."""
    return noun if count == 1 else f"{noun}s"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)


def one_line(text: str) -> str:
    """A text on one line, for a terminal or a table: what isn't printable, a line's end or a change
    of the direction of writing, is escaped.
    """
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in clean)
