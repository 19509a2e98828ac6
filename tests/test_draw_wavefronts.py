"""The wavefronts of an engine stand where its timeline says; and the lines of waiting."""

import numpy as np
import pytest
from pages import (
    company,
    drawn,
    frames,
)

import cypresskit as ck


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


def test_each_clause_stands_in_its_slot_at_its_clocks():
    (report, _), player = company()
    bars = drawn(player, "computes sgemm_tn to come")
    (rows,) = (
        m.data["y"]
        for m in player.figures[0].references()
        if list(getattr(m, "data", {}).get("text", ())) == [str(n) for n in range(10)]
    )
    head = frames(player, "head sgemm_tn", "x")[[0, -1], 0]
    left = np.interp([e.start for e in report.timeline], [3000, 6000], head)
    seen = {(round(x), y) for x, y in zip(bars["x"] - bars["w"] / 2, bars["y"])}
    inside = [
        (x, e)
        for x, e in zip(left, report.timeline)
        if e.kind == "ALU" and e.end > 3000 and e.start < 6000
    ]
    assert {(round(x), rows[e.slot]) for x, e in inside} == seen
