"""The teacher's decisions: points and remarks, which overrule everything.

They are in tables, as the page ``review.html`` saves them or a spreadsheet program does. A row has
a student's ``id``, an ``exercise``, ``points`` and a ``remark``. The exercise is ``09.1`` for an
answer (0 to 1), ``09.1 why`` for its explanation (0 to 2), or ``09`` for the lesson (points that
are added to its 100, or taken off). With a key in ``seen``, a decision holds for what the teacher
saw; without, for whatever is handed in.
"""

import csv
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cypresskit.tables import FORMULA, read_csv

COLUMNS = "id", "exercise", "points", "remark"
FILES = "decisions*.csv"  # a browser names a second one "decisions (1).csv"


class Decision(NamedTuple):
    """A teacher's decision."""

    points: float | None = None
    remark: str = ""
    seen: str = ""


def limits(what: str) -> tuple[int, int]:
    """Return the least and the most points for an answer, an explanation or a lesson."""
    return (-100, 100) if "." not in what else (0, 2 if what.endswith(" why") else 1)


def read_decisions(folder: Path) -> dict[tuple[str, str], Decision]:
    """Read all tables of decisions in a folder. In a newer one, a row replaces an older one's.

    Raises
    ------
    ValueError
        If one can't be read, or has points that don't exist; the message names the row.
    """
    found: dict[tuple[str, str], Decision] = {}
    for sheet in sorted(folder.glob(FILES), key=lambda path: path.stat().st_mtime):
        reader = read_csv(sheet.read_bytes())
        if missing := {*COLUMNS} - {*(reader.fieldnames or ())}:
            raise ValueError(f"{sheet} lacks a column: {', '.join(sorted(missing))}")
        try:
            for row in reader:
                what = " ".join((row["exercise"] or "").split())
                where = f"{sheet}, row {reader.line_num} ({row['id']}, {what})"
                points = _read_points(row["points"] or "", what, where)
                remark = _unescaped(row["remark"] or "")
                decision = Decision(points, remark, row.get("seen") or "")
                found[_unescaped(row["id"] or ""), what] = decision
        except csv.Error as error:
            line = reader.reader.line_num
            raise ValueError(f"{sheet}, line {line}: {error}. Is a quote not closed?") from None
    return found


def as_points(points: float | None) -> str:
    """Return points as they stand in a table."""
    return "" if points is None else f"{points:g}"


def safe(text: str) -> str:
    """Return a text with an apostrophe before what a spreadsheet would run as a formula."""
    return FORMULA.sub(r"\1'", text)


def _unescaped(text: str) -> str:
    """Return a text without the apostrophe of ``safe``."""
    plain = text.removeprefix("'")
    return plain if safe(plain) == text else text


def _read_points(entered: str, what: str, where: str) -> float | None:
    if not entered.strip():
        return None
    least, most = limits(what)
    with suppress(ValueError):
        value = float(entered.strip().removeprefix("'").replace(",", "."))
        if least <= value <= most:
            return value
    raise ValueError(f"{where}: `{entered}` isn't a number of points from {least} to {most}")
