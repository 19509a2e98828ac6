"""The contest's leaderboard: entries from files, each judged in a process of its own, as a table;
``leaderboard_page`` shows it.

An entry's file is text: a kernel in IL below a head of comments, which ``contest.save`` writes,

    ; name: Ada
    ; block: 8 x 8
    ; steps: 2
    il_ps_2_0 ...

or just ``(rows, columns, steps)``, for which ``contest.write`` makes the kernel. With ``; chip:
register_pool 288, lds_bytes 0`` in its head an entry runs on a chip of its own, in a table of its
own. Nothing of it is run as Python. A fault in one entry stands in its row; the others are judged
all the same. Each row names its file, which rows for comparison don't have, so nobody can pass for
the published figure.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from secrets import token_hex
from typing import Any

from cypresskit import published, tables
from cypresskit.devices import HD5870, Device
from cypresskit.isolated import Lost, Raised, call
from cypresskit.isolated.process import CallLimits, Family
from cypresskit.kernels import generated
from cypresskit.kernels.text_kernel import TextKernel
from cypresskit.teach.check import BROKEN, REPORT, seeded
from cypresskit.teach.climb import CLOSE
from cypresskit.teach.l12_contest import checks as contest
from cypresskit.timing.report import Report

HEAD = re.compile(r"^;\s*(name|block|steps|chip):[ \t]*(.*?)[ \t]*$", re.M)
SIZE = re.compile(rf"({'|'.join(contest.FREE)})\s+(\d{{1,9}})")  # of a chip
SHAPE = re.compile(r"\s*\(?\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*,\s*(-?\d{1,3})\s*\)?\s*")
LONGEST = 100_000  # characters of an entry
SECONDS = 120.0  # for an entry
MEGABYTES = 4_000  # likewise
UNITS = "ALU", "texture", "LDS", "L2", "DRAM"  # that may set a ceiling
ENDS = {
    "time": "it had not ended when its time was up",
    "clock": "it had not ended when its time by the clock was up",
    "memory": f"it needs more than {MEGABYTES:,} MB",
}


@dataclass(frozen=True)
class Row:
    """A line of the leaderboard; a wrong entry has 0 Gflop/s, and a verdict that says why."""

    name: str
    file: str
    gflops: float = 0.0
    percent: float = 0.0  # of the peak
    registers: int = 0
    wavefronts: int = 0
    bound: str = ""
    verdict: str = ""
    chip: str = ""  # what it changes of the HD 5870
    code: str = ""  # equal where programs and chips are, whatever their comments
    note: str = ""
    ceilings: dict[str, float] = field(default_factory=dict)  # see ``ceilings``


def read(text: str, name: str = "entry") -> tuple[TextKernel, Device]:
    """The entry in ``text``, and its chip; ``name`` is used if it gives none. Raises ``ValueError``
    for a head that lacks something.
    """
    if len(text) > LONGEST:
        raise ValueError(f"an entry has at most {LONGEST:,} characters; this one has more")
    if shape := SHAPE.fullmatch(text):
        return generated.write(*map(int, shape.groups())), HD5870
    if not text.strip():
        raise ValueError("the file is empty")
    comments = "\n".join(
        line for line in text.split("il_ps", 1)[0].splitlines() if line.startswith(";")
    )
    head = dict(HEAD.findall(comments))
    block = re.findall(r"\d+", head.get("block", ""))
    steps = head.get("steps", "")
    if len(block) != 2 or not steps.isdecimal() or len(steps) > 3:
        raise ValueError(
            "its head lacks `; block: 8 x 8` or `; steps: 2`, lines that contest.save(...) writes"
        )
    sizes = []
    if "chip" in head:
        sizes = [SIZE.fullmatch(part) for part in re.split(r"\s*,\s*", head["chip"])]
    if not all(sizes):
        raise ValueError(
            f"`; chip: {head['chip']}`: a chip is sizes of {', '.join(contest.FREE)}, such as"
            " lds_bytes 0"
        )
    changes: dict[str, Any] = {size[1]: int(size[2]) for size in sizes if size}
    chip = replace(HD5870, **changes)
    return (
        generated.entry(text, (int(block[0]), int(block[1])), int(steps), head.get("name") or name),
        chip,
    )


def judged(text: str, file: str, n: int, seed: str) -> dict:
    """The fields of an entry's ``Row``, judged at n x n x n, on numbers that belong to ``seed``."""
    try:
        entry, chip = read(text, file)
    except ValueError as error:
        return {"name": file, "file": file, "verdict": cannot(file, str(error))}
    with seeded(seed):
        score = contest.judge(entry, chip, n, exact=True)
    row: dict = {
        "name": entry.name,
        "file": file,
        "verdict": str(score.verdict),
        "chip": contest.changes(chip),
    }
    if report := score.report:
        row["code"] = sha256(
            f"{row['chip']} {entry.block} {entry.program.expanded}".encode()
        ).hexdigest()
        row |= {"gflops": report.gflops, "percent": report.percent, "registers": report.registers}
        row |= {"wavefronts": report.active, "bound": report.bound}
        row["ceilings"] = ceilings(report)
    return row


def ceilings(report: Report) -> dict[str, float]:
    """The Gflop/s that each unit of the chip would allow if it worked all the time, by its name:
    of those that work for a tenth of the time or more.
    """
    return {
        unit: min(report.gflops / share, report.peak_gflops)
        for unit, share in report.busy.items()
        if share >= 0.1 and unit in UNITS
    }


def cannot(file: str, why: str) -> str:
    """The words on an entry that can't be judged."""
    return f"Not yet. {file} can't be judged: {why}."


def row(
    text: str,
    file: str,
    n: int = contest.N,
    *,
    seconds: float = SECONDS,
    seed: str = "",
    family: Family | None = None,
) -> Row:
    """The row of the entry in ``text``, judged in a process of its own. It never raises.

    n : it is timed at n x n x n.
    seconds : of processor time that it may take; by the clock, four times that.
    seed : what the judge's random numbers belong to; by default other ones each time.
    family : where the process comes from; by default a new one.
    """
    limits = CallLimits(seconds, 4 * seconds, MEGABYTES)
    where = "cypresskit.teach.leaderboard", "judged"
    own = family or Family()
    try:
        fields = call(*where, text, file, n, seed or token_hex(), limits=limits, family=own)
        return Row(**fields)
    except Lost as lost:
        return Row(file, file, verdict=cannot(file, ENDS.get(lost.reason, "its process ended")))
    except (Raised, OSError, TypeError) as error:
        return Row(file, file, verdict=f"Not judged. {BROKEN.format(error)} {REPORT}")
    finally:
        if family is None:
            own.end()


def ranked(rows: list[Row], n: int = contest.N) -> list[tuple[int | str, Row]]:
    """(place, row), the best first, entries with a chip of their own last. Speeds less than half a
    per cent apart share a place. The bar and the published figure stand among them without one.
    """
    paper = published.kernel("sgemm_tn")
    best = float(paper["gflops_max"])
    name = f"Nakasato 2010, measured at N = {paper['n_at_max']}"
    percent = 100 * best / HD5870.single_gflops
    remark = "Published, not simulated."
    nakasato = Row(name, "", best, percent, paper["gprs"], verdict=remark)
    bar = _bar(n)
    places: list[tuple[int | str, Row]] = []
    for own in (False, True):
        group = [row for row in _noted(rows) if bool(row.chip) == own]
        for row in sorted(
            [*group, *([bar, nakasato] if group or not own else [])], key=lambda line: -line.gflops
        ):
            faster = sum(other.gflops > CLOSE * row.gflops for other in group)
            shown = row if row.file else replace(row, chip="HD 5870" * own)
            places.append((1 + faster if row.file and row.gflops else "", shown))
    return places


@cache
def _bar(n: int) -> Row:
    """The row of the bar, timed at n x n x n."""
    report = contest.timed(contest.BAR, n, exact=True)
    name = f"to beat: {contest.BAR.name}"
    remark = "The fastest that contest.write makes."
    speed = report.gflops, report.percent, report.registers, report.active, report.bound
    return Row(name, "", *speed, remark, ceilings=ceilings(report))


def _noted(rows: list[Row]) -> list[Row]:
    """The rows, with a note where another file has the same program or name."""
    noted = []
    for row in rows:
        others = [other for other in rows if other is not row]
        notes = [
            f"same program as in {earlier.file}"
            for earlier in others
            if row.code and earlier.code == row.code
        ][:1]
        notes += [
            f"same name as in {earlier.file}"
            for earlier in others
            if earlier.name.casefold() == row.name.casefold()
        ][:1]
        noted.append(replace(row, note=", ".join(notes)))
    return noted


def table(rows: list[Row], n: int = contest.N) -> str:
    """The leaderboard as CSV, for a course's system."""
    shown = []
    for place, row in ranked(rows, n):
        cells = {"place": place} | {
            name: cell for name, cell in vars(row).items() if name not in ("code", "ceilings")
        }
        shown.append(
            {
                name: f"{cell:.1f}" if isinstance(cell, float) else cell or ""
                for name, cell in cells.items()
            }
        )
    return tables.as_csv(shown)
