"""The contest's leaderboard: kernels, and entries from files, judged, ranked, and shown as lines,
and as a page for a projector.

An entry's file is text: a kernel in IL below a head of comments, which ``contest.save`` writes,

    ; name: Ada
    ; block: 8 x 8
    ; steps: 2
    il_ps_2_0 ...

Nothing of it is run as Python. Each file is judged in a process of its own: a fault in one entry
is in its row, and the others are judged nevertheless. Each row names its file, which rows for
comparison don't have, so no entry can pass for the published figure.
"""

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template

from cypresskit import published, tables
from cypresskit.devices import HD5870, Device
from cypresskit.editing.steps import CLOSE
from cypresskit.isolated import NoResult, Raised, call
from cypresskit.isolated.answer import CallLimits
from cypresskit.isolated.process import ForkServer
from cypresskit.kernels import Kernel, generated
from cypresskit.teach.check import BROKEN, REPORT, use_seed
from cypresskit.teach.l12_contest import checks as contest

HEAD = re.compile(r"^;\s*(name|block|steps):[ \t]*(.*?)[ \t]*$", re.M)
MAX_CHARACTERS = 100_000  # characters of an entry
SECONDS = 120.0  # for an entry
MEGABYTES = 4_000  # likewise
MAX_NAME = 40  # characters of a name that a page shows
COLUMNS = "place", "name", "Gflop/s", "", "% of peak", "registers", "bound by"
HERE = Path(__file__).parent
PAGE = Template((HERE / "leaderboard.html").read_text(encoding="utf-8"))
MADE_BY = '<meta name="generator" content="cypresskit contest">'
LOOK = HERE.parents[1] / "draw/look.css"
END_REASONS = {
    "time": "it had not ended when its time was up",
    "clock": "it had not ended when its time by the clock was up",
    "memory": f"it needs more than {MEGABYTES:,} MB",
}


@dataclass(frozen=True)
class Row:
    """A line of the leaderboard; a wrong entry has 0 Gflop/s, and a verdict that says why."""

    name: str
    file: str = ""  # "" for a kernel that is no file's, and for rows to compare with
    gflops: float = 0.0
    percent: float = 0.0  # of the peak
    registers: int = 0
    bound: str = ""
    verdict: str = ""
    code: str = ""  # equal where programs are, whatever their comments


def read_entry(text: str, name: str = "entry") -> Kernel:
    """Return the entry in ``text``; ``name`` is used if it gives none. Raises ``ValueError`` for an
    incomplete head.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"an entry has at most {MAX_CHARACTERS:,} characters; this one has more")
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
    size = int(block[0]), int(block[1])
    return generated.make_entry(text, size, int(steps), head.get("name") or name)


def judge_text(text: str, file: str, n: int, seed: str) -> dict:
    """Return the fields of an entry's ``Row``, judged at n x n x n, on numbers that belong to
    ``seed``.
    """
    try:
        entry = read_entry(text, file)
    except ValueError as error:
        return {"name": file, "file": file, "verdict": explain_unjudged(file, str(error))}
    with use_seed(seed):
        return vars(make_row(entry, contest.judge(entry, n=n, exact=True), file))


def make_row(kernel: Kernel, score: contest.Score, file: str = "") -> Row:
    """Return the row of a kernel that was judged."""
    row = Row(score.name, file, verdict=str(score.verdict))
    report = score.report
    if not report:
        return row
    code = f"{kernel.block} {kernel.program.expanded}"
    return replace(
        row,
        gflops=report.gflops,
        percent=report.percent,
        registers=report.registers,
        bound=report.bound,
        code=sha256(code.encode()).hexdigest(),
    )


def explain_unjudged(file: str, why: str) -> str:
    """Return the message on an entry that can't be judged."""
    return f"Not yet. {file} can't be judged: {why}."


def row(
    text: str,
    file: str,
    n: int = contest.N,
    *,
    seed: str = "",
    server: ForkServer | None = None,
) -> Row:
    """Return the row of the entry in ``text``, judged in a process of its own. Never raises.

    n : it is timed at n x n x n.
    seed : what the judge's random numbers belong to; by default other ones each time.
    server : where the process comes from; by default a new one.
    """
    limits = CallLimits(SECONDS, 4 * SECONDS, MEGABYTES)
    where = "cypresskit.teach.l12_contest.leaderboard", "judge_text"
    own = server or ForkServer()
    try:
        fields = call(*where, text, file, n, seed or secrets.token_hex(), limits=limits, server=own)
        return Row(**fields)
    except NoResult as lost:
        return Row(
            file,
            file,
            verdict=explain_unjudged(file, END_REASONS.get(lost.reason, "its process ended")),
        )
    except (Raised, OSError, TypeError) as error:
        return Row(file, file, verdict=f"Not judged. {BROKEN.format(error)} {REPORT}")
    finally:
        if server is None:
            own.end()


def rank_rows(rows: Sequence[Row], n: int = contest.N) -> list[tuple[int | str, Row]]:
    """Return (place, row), the best first. Speeds less than half a percent apart share a place. The
    target and the published figure are among them, without a place.
    """
    beside = _target_row(n), _published_row()
    places: list[tuple[int | str, Row]] = []
    for row in sorted([*rows, *beside], key=lambda line: -line.gflops):
        faster = sum(other.gflops > CLOSE * row.gflops for other in rows)
        place = 1 + faster if row not in beside and row.gflops else ""
        places.append((place, row))
    return places


def _published_row() -> Row:
    """Return the row of the published figure."""
    paper = published.kernel("sgemm_tn")
    best = float(paper["gflops_max"])
    name = f"Nakasato 2010, measured at N = {paper['n_at_max']}"
    percent = 100 * best / HD5870.single_gflops
    return Row(name, "", best, percent, paper["gprs"], verdict="Published, not simulated.")


@cache
def _target_row(n: int) -> Row:
    """Return the row of the target, timed at n x n x n."""
    report = contest.time_kernel(contest.TARGET_KERNEL, n, exact=True)
    name = f"to beat: {contest.TARGET_KERNEL.name}"
    remark = "The fastest that contest.generate_kernel makes."
    return Row(name, "", report.gflops, report.percent, report.registers, report.bound, remark)


Entry = Kernel | str


def leaderboard(entries: Iterable[Entry | tuple[Entry, Device]], n: int = contest.N) -> str:
    """Kernels or their names, or pairs of one and a chip, judged and listed, the best first and
    equal lines once, with the published figure among them. Wrong ones come last, with the reason.
    It has neither the target nor shared places, which a class's page has (``rank_rows``).
    """
    pairs = [
        item if isinstance(item, tuple) and len(item) == 2 else (item, HD5870) for item in entries
    ]
    given = [(contest.find_kernel(it) if isinstance(it, str) else it, chip) for it, chip in pairs]
    rows = [_published_row()]
    for kernel, chip in given:
        row = make_row(kernel, contest.judge(kernel, chip, n))
        if chip is not HD5870:
            row = replace(row, name=f"{row.name}, {contest.format_name(chip)}")
        rows.append(row)
    rows.sort(key=lambda row: -row.gflops)
    return "\n".join([f"Gflop/s, simulated at N = {n}", *dict.fromkeys(map(line, rows))])


def line(row: Row) -> str:
    """Return a row as a line of text."""
    name = tables.elided(tables.one_line(row.name), 20)
    if not row.gflops:
        why = row.verdict.removeprefix("Not yet. ").partition("\nWhere to look:")[0]
        return f"     -  {name:20} {tables.elided(tables.one_line(why), 80)}"
    more = [f"{row.registers:3} registers", row.bound, row.file]
    return f"{row.gflops:6.0f}  {name:20} {', '.join(filter(None, more))}"


# -- the page


def page(rows: Sequence[Row], n: int = contest.N) -> str:
    """Return the leaderboard as a web page: a table, in which entries of the same program share a
    row, and below it the wrong ones. Bars begin at the slowest.
    """
    places = _merge_rows(rank_rows(rows, n))
    speeds = [row.gflops for _, row, _ in places if row.gflops]
    low = 100 * (min(speeds) // 100)
    lines = [
        _line(place, row, names, (row.gflops - low) / (max(speeds) - low or 1))
        for place, row, names in places
        if row.gflops
    ]
    heads = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    wrong = [(_cut_name(row.name), row.file, row.verdict) for _, row, _ in places if not row.gflops]
    below = f"<h2>Not yet</h2>{tables.table(('name', 'file', 'why'), wrong)}" if wrong else ""
    return PAGE.substitute(
        made_by=MADE_BY,
        n=n,
        low=f"{low:.0f}",
        high=f"{max(speeds):.0f}",
        look=LOOK.read_text(encoding="utf-8"),
        heads=heads,
        rows="".join(lines),
        below=below,
    )


def _merge_rows(places: list[tuple[int | str, Row]]) -> list[tuple[int | str, Row, list[str]]]:
    """Return (place, row, names); entries of the same program are one row with all their names."""
    rows: dict[str, tuple[int | str, Row, list[str]]] = {}
    for number, (place, row) in enumerate(places):
        key = row.code or str(number)
        rows.setdefault(key, (place, row, []))[2].append(f"{_cut_name(row.name)} ({row.file})")
    return list(rows.values())


def _cut_name(name: str) -> str:
    """Cut a name that would make its row higher."""
    return tables.elided(tables.one_line(name), MAX_NAME)


def _line(place: int | str, row: Row, names: list[str], share: float) -> str:
    """Return a row of the page; ``share`` of the bar is filled."""
    shown = ", ".join(names).replace(" ()", "")
    bar = f'<div class="bar"><b style="width: {100 * share:.1f}%"></b></div>'
    cells = [str(place), shown, f"{row.gflops:.0f}", bar, f"{row.percent:.0f}"]
    cells += [str(row.registers or ""), row.bound]
    texts = [cell if cell is bar else escape(cell) for cell in cells]
    return f"<tr>{''.join(f'<td>{text}</td>' for text in texts)}</tr>"
