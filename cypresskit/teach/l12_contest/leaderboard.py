"""The contest's leaderboard: kernels, and entries from files, judged and ranked.

An entry's file is a kernel in IL, whose first line states its block (``kernels.statement``). Its
name is the file's, so no entry can pass for the published figure. Nothing of it is run as Python.
Each file is judged in a process of its own: a fault in one entry is in its row, and the others are
judged nevertheless.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cypresskit import published, tables
from cypresskit.devices import CHIP_ALONE, HD5870, Device
from cypresskit.isolated import NoResult, Raised, call
from cypresskit.isolated.answer import CallLimits
from cypresskit.isolated.process import ForkServer
from cypresskit.kernels import Kernel
from cypresskit.kernels.statement import EXAMPLE, read_statement
from cypresskit.lesson_table import Table
from cypresskit.teach.check import BROKEN, REPORT, use_seed
from cypresskit.teach.l12_contest import checks as contest
from cypresskit.threads import map_in_threads

MAX_CHARACTERS = 100_000  # characters of an entry
SECONDS = 240.0  # for an entry
MEGABYTES = 4_000  # likewise
MAX_NAME = 40  # characters of a name
HEADS = "entry", "Gflop/s", "registers", "bound by, or why it has no speed"
END_REASONS = {
    "time": "it had not ended when its time was up",
    "memory": f"it needs more than {MEGABYTES:,} MB",
}


@dataclass(frozen=True)
class Row:
    """A row of the leaderboard; a wrong entry has 0 Gflop/s, and a verdict that says why."""

    name: str
    gflops: float = 0.0
    registers: int = 0
    bound: str = ""
    verdict: str = ""


def read_entry(text: str, name: str) -> Kernel:
    """Return the entry in ``text``. Raises ``ValueError`` if it doesn't state its block."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"an entry has at most {MAX_CHARACTERS:,} characters; this one has more")
    if not text.strip():
        raise ValueError("the file is empty")
    convention = read_statement(text, name)
    if convention is None:
        raise ValueError(f"its first line lacks what it computes, as in `il_ps_2_0  {EXAMPLE}`")
    return Kernel(name, text, convention)


def judge_text(text: str, name: str, n: int, seed: str) -> dict:
    """Return the fields of an entry's ``Row``, judged at n x n x n, on numbers that belong to
    ``seed``.
    """
    try:
        entry = read_entry(text, name)
    except ValueError as error:
        return {"name": name, "verdict": explain_unjudged(name, str(error))}
    with use_seed(seed):
        return vars(make_row(contest.judge(entry, n=n, exact=True)))


def make_row(score: contest.Score) -> Row:
    """Return the row of a kernel that was judged."""
    report = score.report
    if not report:
        return Row(score.name, verdict=str(score.verdict))
    return Row(score.name, report.gflops, report.registers, report.bound, str(score.verdict))


def explain_unjudged(name: str, why: str) -> str:
    """Return the message on an entry that can't be judged."""
    return f"Not yet. {name} can't be judged: {why}."


def row(text: str, name: str, n: int, server: ForkServer) -> Row:
    """Return the row of the entry in ``text``, judged at n x n x n in a process of its own, on
    random numbers that are other ones each time. Never raises.
    """
    limits = CallLimits(SECONDS, MEGABYTES)
    where = "cypresskit.teach.l12_contest.leaderboard", "judge_text"
    try:
        seed = secrets.token_hex()
        return Row(**call(*where, text, name, n, seed, limits=limits, server=server))
    except NoResult as lost:
        why = END_REASONS.get(lost.reason, "its process ended")
        return Row(name, verdict=explain_unjudged(name, why))
    except (Raised, OSError, TypeError) as error:
        return Row(name, verdict=f"Not judged. {BROKEN.format(error)} {REPORT}")


def board(rows: Iterable[Row], n: int = contest.N) -> Table:
    """Return a table of rows, the best first and equal ones once, with the published figure among
    them. Wrong ones come last, with the reason.
    """
    ranked = sorted([*rows, _published_row()], key=lambda row: -row.gflops)
    note = f"Simulated at N = {n}, {CHIP_ALONE.name}."
    return Table(HEADS, dict.fromkeys(map(cells, ranked)), note=note)


def _published_row() -> Row:
    """Return the row of the published figure."""
    paper = published.kernel("sgemm_tn")
    name = f"Nakasato 2010, as published, N = {paper['n_at_max']}"
    return Row(name, float(paper["gflops_max"]), paper["gprs"])


Entry = Kernel | str


def leaderboard(entries: Iterable[Entry | tuple[Entry, Device]], n: int = contest.N) -> Table:
    """Return the board of kernels or their names, or of pairs of one and a chip, all judged."""
    pairs = [
        item if isinstance(item, tuple) and len(item) == 2 else (item, HD5870) for item in entries
    ]
    given = [(contest.find_kernel(it) if isinstance(it, str) else it, chip) for it, chip in pairs]
    scores = map_in_threads(lambda pair: contest.judge(*pair, n), given)
    rows = []
    for (_, chip), score in zip(given, scores):
        row = make_row(score)
        if chip is not HD5870:
            row = replace(row, name=f"{row.name}, {contest.format_name(chip)}")
        rows.append(row)
    return board(rows, n)


def cells(row: Row) -> tuple[str, float | None, int | None, str]:
    """Return a row's cells in the table."""
    name = tables.elided(tables.one_line(row.name), MAX_NAME)
    if row.gflops:
        return name, round(row.gflops), row.registers, row.bound
    why = row.verdict.removeprefix("Not yet. ").partition("\nWhere to look:")[0]
    return name, None, None, tables.elided(tables.one_line(why), 80)
