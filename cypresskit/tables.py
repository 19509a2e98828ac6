"""Tables as HTML, Markdown and CSV, and other values that a notebook's cell shows; everything in
them is escaped.
"""

import csv
import re
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


def folded(line: str, text: str) -> str:
    """A line of HTML that unfolds to a longer text."""
    return f"<details><summary>{escape(line)}</summary><pre>{escape(text)}</pre></details>"


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
