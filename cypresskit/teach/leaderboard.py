"""The contest's leaderboard: entries from files, each judged in a process of its own, as a page and as a table.

An entry's file is text: a kernel in IL below a head of comments, which ``contest.save`` writes,

    ; name: Ada
    ; block: 8 x 8
    ; steps: 2
    il_ps_2_0 ...

or just ``(rows, columns, steps)``, for which ``contest.write`` makes the kernel. Nothing of it is run as Python.
What is wrong with one entry stands in its row; the others are judged all the same.
"""

import csv
import io
import re
from dataclasses import dataclass, fields
from html import escape

from cypresskit import published
from cypresskit.devices import HD5870
from cypresskit.teach import l12_contest as contest
from cypresskit.teach.apart import SECONDS, Lost, call
from cypresskit.teach.kernels import Written

HEAD = re.compile(r"^;\s*(name|block|steps):[ \t]*(.*?)[ \t]*$", re.M)
SHAPE = re.compile(r"\s*\(?\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*,\s*(-?\d{1,3})\s*\)?\s*")
LONGEST = 100_000  # characters of an entry


@dataclass(frozen=True)
class Row:
    """A line of the leaderboard: 0 Gflop/s for an entry that is wrong, and why."""

    name: str
    file: str
    gflops: float = 0.0
    percent: float = 0.0  # of the peak
    registers: int = 0
    wavefronts: int = 0
    bound: str = ""
    verdict: str = ""


def read(text: str, name: str = "entry") -> Written:
    """The entry in ``text``; ``name`` is for one that doesn't give its own. ``ValueError`` says what its head lacks."""
    if len(text) > LONGEST:
        raise ValueError(f"an entry has at most {LONGEST:,} characters; this one has {len(text):,}")
    if shape := SHAPE.fullmatch(text):
        return contest.write(*map(int, shape.groups()))
    if not text.strip():
        raise ValueError("the file is empty")
    comments = "\n".join(line for line in text.split("il_ps", 1)[0].splitlines() if line.startswith(";"))
    head = dict(HEAD.findall(comments))
    block, steps = re.findall(r"\d+", head.get("block", "")), head.get("steps", "")
    if len(block) != 2 or not steps.isdecimal() or len(steps) > 3:
        raise ValueError("its head lacks `; block: 8 x 8` or `; steps: 2`, lines that contest.save(...) writes")
    return contest.entry(text, (int(block[0]), int(block[1])), int(steps), head.get("name") or name)


def judged(text: str, file: str, n: int) -> dict:
    """The fields of the ``Row`` of an entry at n x n x n."""
    entry = read(text, file)
    name = entry.name if HEAD.search(text) else f"{file}: {entry.name}"
    score = contest.judge(entry, n=n)
    row: dict = {"name": name, "file": file, "verdict": str(score.verdict)}
    if of := score.report:
        row |= {"gflops": of.gflops, "percent": of.percent, "registers": of.registers}
        row |= {"wavefronts": of.active, "bound": of.bound}
    return row


def row(text: str, file: str, n: int = contest.N, seconds: float = SECONDS) -> Row:
    """The row of the entry in ``text``, judged in a process of its own. It never raises."""
    try:
        return Row(**call("cypresskit.teach.leaderboard:judged", text, file, n, seconds=seconds))
    except Lost as lost:
        return Row(file, file, verdict=f"Not yet. {file} can't be judged: {str(lost).removeprefix('ValueError: ')}.")


def ranked(rows: list[Row], n: int = contest.N) -> list[tuple[int | str, Row]]:
    """The rows with their places, the best first (who is as fast shares a place); among them, without a place, the bar
    and what was published."""
    paper = published.kernel("sgemm_tn")
    best, name = float(paper["gflops_max"]), f"Nakasato 2010, measured at N = {paper['n_at_max']}"
    percent, said = 100 * best / HD5870.single_gflops, "Published, not simulated."
    nakasato = Row(name, "", best, percent, paper["gprs"], verdict=said)
    of = contest.timed(contest.BAR, n)
    name, said = f"to beat: {contest.BAR.name}", "What the lesson shows."
    bar = Row(name, "", of.gflops, of.percent, of.registers, of.active, of.bound, said)
    best_first = sorted([*rows, bar, nakasato], key=lambda each: -each.gflops)
    faster = {each.gflops: sum(other.gflops > each.gflops for other in rows) for each in rows}
    return [(1 + faster[each.gflops] if each.file and each.gflops else "", each) for each in best_first]


def table(rows: list[Row], n: int = contest.N) -> str:
    """The leaderboard as CSV, for a course's system; no cell of it is a formula to a spreadsheet."""
    out = io.StringIO()
    sheet = csv.writer(out)
    names = [field.name for field in fields(Row)]
    sheet.writerow(["place", *names])
    for place, each in ranked(rows, n):
        cells = [getattr(each, name) for name in names]
        cells = [f"{cell:.1f}" if isinstance(cell, float) else cell or "" for cell in cells]
        safe = [f"'{c}" if isinstance(c, str) and c[:1] in tuple("=+-@\t\r") else c for c in cells]
        sheet.writerow([place, *safe])
    return out.getvalue()


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Beat the paper</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root {{ color-scheme: light dark; }} .wide {{ width: 40%; }}
body {{ max-width: 60em; margin: 2em auto; padding: 0 1em; font: 16px/1.5 sans-serif; }}
table {{ border-collapse: collapse; width: 100%; }} td, th {{ padding: 4px 10px; text-align: left; }}
tr + tr {{ border-top: 1px solid #8886; }} .number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.bar {{ display: block; height: 6px; background: #0072b2; border-radius: 3px; }} .paper .bar {{ background: #d55e00; }}
.paper {{ font-style: italic; }} pre {{ white-space: pre-wrap; margin: 0; }}</style></head>
<body><h1>Beat the paper</h1><p>SGEMM on a simulated Radeon HD 5870 at N = {n}, whose peak is {peak:.0f} Gflop/s. Each
entry was checked before it was timed: a wrong result has no speed.
Rows without a place are for comparison.</p>
<table><tr><th>place</th><th>name</th><th class="number">Gflop/s</th><th></th><th class="number">registers</th>
<th>bound by</th></tr>{rows}</table>{wrong}</body></html>
"""


def page(rows: list[Row], n: int = contest.N) -> str:
    """The leaderboard as a web page that needs nothing else."""
    lines, wrong = [], ""
    for place, of in ranked(rows, n):
        if not of.gflops:
            wrong += f"<tr><td>{escape(of.name)}</td><td><pre>{escape(of.verdict)}</pre></td></tr>"
            continue
        bar = f'<span class="bar" style="width: {min(of.percent, 100):.1f}%"></span>'
        cells = [(place, "number"), (escape(of.name), ""), (f"{of.gflops:.0f}", "number"), (bar, "wide")]
        cells += [(of.registers or "", "number"), (escape(of.bound), "")]
        kind = "" if of.file else ' class="paper"'
        lines.append(f"<tr{kind}>" + "".join(f'<td class="{c}">{text}</td>' for text, c in cells) + "</tr>")
    wrong = wrong and f"<h2>Not yet</h2><table>{wrong}</table>"
    return PAGE.format(n=n, peak=HD5870.single_gflops, rows="".join(lines), wrong=wrong)
