"""The teacher's decisions: points and remarks, which overrule everything.

They are in tables, as the page ``review.html`` saves them or a spreadsheet program does. A row has
a student's ``id``, an ``exercise``, ``points`` and a ``remark``. The exercise is ``09.1 answer`` (0
to 1), ``09.1 why`` for its explanation (0 to 2), or ``09 added``: points that are added to the 100
of the lesson, or taken off. (A spreadsheet would take ``09.1`` for a number or a date.) With a key
in ``seen``, a decision holds for what the teacher saw; without, for whatever is handed in. The
newest row counts, by the time in ``when``, or else its file's.
"""

import csv
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cypresskit.tables import read_csv

COLUMNS = "id", "exercise", "points", "remark"
LIMITS = {"answer": (0, 1), "why": (0, 2), "added": (-100, 100)}
EXERCISE = re.compile(r"\d\d(\.\d+ (answer|why)| added)")
#: What begins like a formula of a spreadsheet, or like what ``safe`` has marked.
MARKED = re.compile(r"\s*['=+\-@\uff1d\uff0b\uff0d\uff20]")
FILES = "decisions*.csv"  # a browser names a second one "decisions (1).csv"


class Decision(NamedTuple):
    """A teacher's decision."""

    points: float | None = None
    remark: str = ""
    seen: str = ""
    when: str = ""  #: in UTC, as JavaScript writes it


def limits(what: str) -> tuple[int, int]:
    """Return the least and the most points for an answer, an explanation or a lesson."""
    return LIMITS[what.partition(" ")[2]]


def read_decisions(folder: Path) -> dict[tuple[str, str], Decision]:
    """Read all tables of decisions in a folder. A newer row replaces an older one.

    Raises
    ------
    ValueError
        If one can't be read, or has exercises or points that don't exist; the message names the
        row.
    """
    found: dict[tuple[str, str], Decision] = {}
    for sheet in sorted(folder.glob(FILES), key=lambda path: path.stat().st_mtime):
        saved = f"{datetime.fromtimestamp(sheet.stat().st_mtime, UTC):%Y-%m-%dT%H:%M:%S}"
        reader = read_csv(sheet.read_bytes())
        if missing := {*COLUMNS} - {*(reader.fieldnames or ())}:
            raise ValueError(f"{sheet} lacks a column: {', '.join(sorted(missing))}")
        try:
            for row in reader:
                if not any(row.values()):
                    continue  # a spreadsheet's empty row
                what = " ".join((row["exercise"] or "").split())
                where = f"{sheet}, row {reader.line_num} ({row['id']}, {what})"
                if not EXERCISE.fullmatch(what):
                    raise ValueError(f"{where}: write 09.1 answer, 09.1 why or 09 added")
                points = _read_points(row["points"] or "", what, where)
                remark, seen, when = (row.get(key) or "" for key in ("remark", "seen", "when"))
                decision = Decision(points, unescaped(remark), seen, when or saved)
                key = unescaped(row["id"] or ""), what
                if key not in found or found[key].when <= decision.when:
                    found[key] = decision
        except csv.Error as error:
            line = reader.reader.line_num
            raise ValueError(f"{sheet}, line {line}: {error}. Is a quote not closed?") from None
    return found


def as_points(points: float | None) -> str:
    """Return points as they stand in a table."""
    return "" if points is None else f"{points:g}"


def safe(text: str) -> str:
    """Return a cell's text with an apostrophe before it if a spreadsheet would run it as a formula,
    or if it begins with an apostrophe itself.
    """
    return f"'{text}" if MARKED.match(text) else text


def unescaped(text: str) -> str:
    """Return the text that ``safe`` was given."""
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
