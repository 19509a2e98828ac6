"""The wavefronts of an engine stand where its timeline says."""

import numpy as np
from pages import (
    company,
    drawn,
    frames,
)


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
