"""The wavefronts of an engine and the lines of waiting: what they say is what the report's timeline
says.
"""

from itertools import pairwise

import numpy as np
import pytest
from pages import (
    company,
    frames,
)
from said import Rule, Said, assert_held

import cypresskit as ck
from cypresskit import draw
from cypresskit.compiler import compile
from cypresskit.kernels import KERNELS
from cypresskit.timing import Report, simulate

FRAMES, WINDOW = 150, (2000.0, 6000.0)


def under_way(spans, clock: float) -> int:
    return sum(start <= clock < end for start, end in spans)


def gaps(report: Report) -> list[tuple[int, float, float]]:
    """(wavefront, from, to) between two of its clauses."""
    clauses: dict[int, list] = {}
    for event in report.timeline:
        clauses.setdefault(event.wavefront, []).append(event)
    return [
        (wavefront, before.end, after.start)
        for wavefront, events in clauses.items()
        for before, after in pairwise(events)
    ]


def rules(reports: list[Report], window: tuple[float, float] = WINDOW) -> dict[str, Rule]:
    def clock(say: Said) -> float:
        return window[0] + (window[1] - window[0]) * say.frame / FRAMES

    def caption(say: Said, _):
        now, numbers = clock(say), [clock(say)]
        for report in reports:
            switch = report.device.clause_switch_clocks
            between = [(start, min(start + switch, end)) for _, start, end in gaps(report)]
            waits = [(min(start + switch, end), end) for _, start, end in gaps(report)]
            kinds = {
                kind: [(e.start, e.end) for e in report.timeline if e.kind == kind]
                for kind in ("ALU", "TEX")
            }
            numbers += [
                under_way(part, now) for part in (kinds["ALU"], kinds["TEX"], waits, between)
            ]
        return numbers

    def turns(*_):
        return [window[1], *(ended(report, window[1]) for report in reports)]

    def ended(report: Report, now: float) -> int:
        """Turns of the loop, each with one clause of its longest kind in these kernels."""
        code = compile(KERNELS[report.kernel].program)
        bundles = max(len(clause.bundles) for clause in code.main_loop)
        longest = report.device.clause_overhead_clocks + report.device.alu_latency_clocks * bundles
        clauses = [e for e in report.timeline if e.kind == "ALU"]
        over = [e.end for e in clauses if abs(e.end - e.start - longest) < 0.5]
        return sum(window[0] < end <= now for end in over)

    def story(say: Said, _):
        report, number = reports[say.index // 100_000], say.index % 100_000
        switch, spent = (
            report.device.clause_switch_clocks,
            dict.fromkeys(
                ("computes", "fetches", "stores", "switches clauses", "waits for a unit"), 0.0
            ),
        )
        doing = {"ALU": "computes", "TEX": "fetches", "WRITE": "stores"}
        parts = [(doing[e.kind], e.start, e.end) for e in report.timeline if e.wavefront == number]
        for wavefront, start, end in gaps(report):
            if wavefront == number:
                ready = min(start + switch, end)
                parts += [("switches clauses", start, ready), ("waits for a unit", ready, end)]
        for name, start, end in parts:
            spent[name] += max(0.0, min(end, window[1]) - max(start, window[0]))
        order = sorted((say.text.find(name), name) for name in spent if name in say.text)
        left_out = [name for name in spent if name not in say.text and spent[name] > 0]
        assert not left_out, f"{left_out} isn't said"
        return [number, window[1] - window[0], *(spent[name] for _, name in order)]

    def clause(kind: str, first: str, last: str) -> Rule:
        def rule(say: Said, shown):
            number, start, end = shown
            of = report_of(say)
            found = [
                (getattr(e, first), getattr(e, last))
                for e in of.timeline
                if e.kind == kind and e.wavefront == number
            ]
            nearest = min(found, key=lambda span: abs(span[0] - start) + abs(span[1] - end))
            return [number, *nearest]

        return rule

    names = [f"{r.kernel} {n}" if n else r.kernel for n, r in enumerate(reports)][::-1]
    reports_of = dict(zip(names, reports[::-1]))

    def report_of(say: Said) -> Report:
        return next(
            report
            for name, report in reports_of.items()
            if f"{name} to come" in f"{say.where} to come"
        )

    def strip(working: int | None) -> Rule:
        """The strip's spans: somewhere in the middle of each so many are at work, and at its ends
        that changes, or the window ends.
        """

        def rule(say: Said, shown):
            start, end = shown
            report = report_of(say)
            first, last = ("start", "served") if working is None else ("start", "end")
            kind, wanted = ("TEX", 1) if working is None else ("ALU", working)
            spans = [
                (getattr(e, first), getattr(e, last)) for e in report.timeline if e.kind == kind
            ]
            marks = sorted({*window, *(t for span in spans for t in span)})
            inside = [
                a
                for a, b in pairwise(marks)
                if b - a > 1.01 and a >= start - 0.5 and b <= end + 0.5
            ]
            held = all(min(under_way(spans, a + 0.5), 2) == wanted for a in inside)
            near = [min(marks, key=lambda t, s=shown_at: abs(t - s)) for shown_at in shown]
            return near if held and start <= end else [np.nan]

        return rule

    def share(working: int) -> Rule:
        def rule(say: Said, _):
            report, now = report_of(say), clock(say)
            spans = [(e.start, e.end) for e in report.timeline if e.kind == "ALU"]
            marks = [
                t
                for t in sorted({*window, now, *(t for span in spans for t in span)})
                if window[0] <= t <= now
            ]
            pieces = pairwise(marks)
            did = sum(b - a for a, b in pieces if min(under_way(spans, (a + b) / 2), 2) == working)
            return [100 * did / max(now - window[0], 1e-9)]

        return rule

    def unit(say: Said, _):
        report, now = report_of(say), clock(say)
        if say.where.startswith("ALU"):
            one, two = (share(n)(say, ())[0] for n in (1, 2))
            return [two + one / 2]
        spans = [(e.start, e.served) for e in report.timeline if e.kind == "TEX"]
        did = sum(max(0, min(end, now) - max(start, window[0])) for start, end in spans)
        return [100 * did / max(now - window[0], 1e-9)]

    def number(say: Said, shown):
        return [ended(report_of(say), clock(say))] if say.where.startswith("turns") else [say.index]

    def room(_, shown):
        return next([r.registers, r.active_wavefronts] for r in reports if r.registers == shown[0])

    def of_all(say: Said, shown):
        registers, wavefronts = room(say, shown)
        return [registers, reports[0].device.register_pool, wavefronts]

    return {
        r"Clock #\. @: .* switch clauses\.": caption,
        r"Clock #\. Finished iterations of the loop: .*": turns,
        r"Wavefront # of @ in these # clocks: .*": story,
        r"wavefront # computes: clocks # to #": clause("ALU", "start", "end"),
        r"wavefront # is in the texture unit: clocks # to #": clause("TEX", "start", "served"),
        r"wavefront # waits for data: clocks # to #": clause("TEX", "served", "end"),
        r"wavefront # stores: clocks # to #": clause("WRITE", "start", "end"),
        r"idle: clocks # to #": strip(0),
        r"one computes: clocks # to #": strip(1),
        r"two compute: clocks # to #": strip(2),
        r"the texture unit is busy: clocks # to #": strip(None),
        r"idle # %": share(0),
        r"one computes # %": share(1),
        r"two compute # %": share(2),
        r"# %": unit,
        r"#": number,
        r"@: # registers, # wavefront slots": room,
        r"@: # of # registers per wavefront, # wavefront slots": of_all,
    }


@pytest.mark.slow
@pytest.mark.parametrize("n", [256, 1024])
def test_every_number_is_the_reports(n):
    reports = [simulate(kernel, n) for kernel in ("sgemm_tn", "sgemm_tn_37")]
    assert_held(draw.wavefronts(*reports), rules(reports))


def test_a_wavefront_that_is_alone_waits_for_nobody():
    """It switches clauses, but never waits for a unit."""
    report = simulate("sgemm_tn", 256)
    assert (report.use.wavefronts[:, 0] == 0).sum() == 1
    player = draw.wavefronts(report)
    assert all("0 wait for a unit" in caption for caption in player.captions[:-1])
    assert any("1 switch clauses" in caption for caption in player.captions[:-1])
    assert not any("waits for a unit" in str(words) for words in player.about.values())


@pytest.mark.parametrize("compute", [1, 2, 3, 4])
@pytest.mark.parametrize("wait", [2, 4, 6, 8, 12])  # what lesson 04's control offers, and all of it
def test_the_lines_of_waiting_count_as_one_counts_by_hand(compute, wait):
    """Clock by clock: whoever has waited its time and comes first computes; the share is that of
    the clocks in which somebody does.
    """
    lines = ck.teach.registers.waiting(compute, wait).splitlines()[2:]
    end = 5 * (compute + wait)
    for wavefronts, line in enumerate(lines, 1):
        ready, free, who = [0] * wavefronts, 0, -1
        by_hand = ""
        for now in range(end):
            if now >= free and min(ready) <= now:
                who = ready.index(min(ready))
                ready[who], free = now + compute + wait, now + compute
            by_hand += "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[who] if now < free else "."
        share = round(100 * (1 - by_hand.count(".") / end))
        assert line == f"{wavefronts:2}  {by_hand}  busy {share} %"
    assert "." not in lines[-1].split()[1], "the last keeps it busy"


def test_the_strip_shows_when_nobody_computes():
    """Question 3 of lesson 04, asked of the picture: fewer wavefronts, more clocks with nobody or
    one at the ALU.
    """
    (made, player), window = company(), np.arange(3000, 6000) + 0.5
    shown = {}
    for number, report in enumerate(made):
        name = f"{report.kernel} {number}" if number else report.kernel
        count = sum(
            (e.start <= window) & (window < e.end) for e in report.timeline if e.kind == "ALU"
        )
        for n in range(3):
            shown[name, n] = frames(player, f"share {n} {name}", "value")[-1, 0]
            assert shown[name, n] == pytest.approx(100 * np.mean(np.minimum(count, 2) == n), abs=1)
    assert [shown["sgemm_tn", n] for n in range(3)] == [0, 0, 100], "the folded answer says so"
    assert [shown["sgemm_tn_37 1", n] for n in range(3)] == [18, 24, 58]
    ends = {
        of: [
            frames(player, f"{of} {name}", "value")[-1, 0] for name in ("sgemm_tn", "sgemm_tn_37 1")
        ]
        for of in ("ALU", "TEX", "turns")
    }
    assert ends == {"ALU": [100, 70], "TEX": [100, 75], "turns": [23, 16]}
    assert 1 / 0.70 == pytest.approx(1.43, abs=0.005) and "** 16." in player.captions[-1]


@pytest.mark.parametrize("kernel", ["sgemm_tn", "sgemm_tn_37", "dgemm_nn"])
def test_the_strips_add_up_to_the_reports_busy_clocks(kernel):
    """Over a whole launch: the busy clocks of SIMD engine 0, and the turns of the loops that its
    wavefronts ran.
    """
    n, board = 256, ck.HD5870
    report = simulate(kernel, n)
    window = (0.0, float(report.use.clocks[-1]))
    player = draw.wavefronts(report, window=window)
    busy = {unit: report.use.shares[unit][:, 0].mean() for unit in ("ALU", "texture")}
    setup = (
        sum(e.kind == "ALU" for e in report.timeline) * board.clause_overhead_clocks / 2 / window[1]
    )
    shown = {
        unit: frames(player, f"{unit} {kernel}", "value")[-1, 0] for unit in ("ALU", "TEX", "turns")
    }
    assert shown["ALU"] == pytest.approx(100 * (busy["ALU"] + setup), abs=0.51)
    assert shown["TEX"] == pytest.approx(100 * busy["texture"], abs=0.51)
    card = ck.kernel_stats(kernel)
    mine = (report.use.wavefronts[:, 0] == 0).sum()
    assert shown["turns"] == mine * n // card.k_per_iteration
