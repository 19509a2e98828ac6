"""The host's timelines: where their bars stand, and what is refused."""

import numpy as np
import pytest
from pages import drawn, frames, pipeline

from cypresskit import draw, host
from cypresskit.host import Task, run_tasks


def rows_of(player, name: str, run) -> dict[str, float]:
    """The y of a timeline's rows."""
    used = {row for span in run.spans for row in span.task.uses}
    return {row: drawn(player, f"row {row} {name}")["y"][0] for row in run.resources if row in used}


def test_bars_and_the_critical_path_stand_at_their_clocks_in_a_row_that_they_use():
    """On one axis for all timelines; the path is framed in the last frame, and in no other."""
    stages = {"four": host.four_stage, "five": host.five_stage}
    runs = {name: make(4096, 4096, 1024, host.Machine()) for name, make in stages.items()}
    player = draw.timeline(*runs.values(), names=tuple(runs))
    end = max(run.seconds for run in runs.values())
    for name, run in runs.items():
        head, rows = frames(player, f"head {name}", "x")[:, 0], rows_of(player, name, run)

        def to_x(seconds, head=head):
            return head[0] + np.array(seconds) / end * (head[-1] - head[0])

        path = [run.spans[number] for number in run.critical_path()]
        x = frames(player, f"path {name}", "x")
        assert np.isnan(x[:-1]).all()
        assert x[-1] == pytest.approx(to_x([(s.start + s.end) / 2 for s in path]), abs=0.1)
        for span, y in zip(path, drawn(player, f"path {name}")["y"], strict=True):
            assert any(np.isclose(rows[row], y) for row in rows if span.task.uses.get(row)), (
                span.task.name
            )
        bars = drawn(player, f"tasks {name} to come")
        for left, wide, y, key in zip(bars["x"] - bars["w"] / 2, bars["w"], bars["y"], bars["key"]):
            span = run.spans[key % 10_000]
            assert [left, left + wide] == pytest.approx(to_x([span.start, span.end]), abs=0.8)
            assert any(np.isclose(rows[row], y) for row in rows if span.task.uses.get(row))
        for row in rows.keys() & {"host memory", "PCIe to card", "PCIe to host"}:
            taken, room = (
                drawn(player, f"{one} {name}{more}")
                for one, more in ((row, " to come"), (f"row {row}", ""))
            )
            used = sum(span.task.uses.get(row, 0) for span in run.spans)
            full = np.ptp(to_x([0, used / run.resources[row]])) * 27
            assert 0.6 < np.sum(taken["w"] * taken["h"]) / full < 1.1, "a share is as high"
            assert (abs(taken["y"] - room["y"][0]) < 15).all()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_name_without_its_timeline_is_rejected(count):
    task = Task("mult", "mult", "chip 0", {"chip 0": 2.0})
    runs = [run_tasks([task], {"chip 0": 1.0})] * count
    names = ("mine", "yours", "hers")[: count + 1]
    with pytest.raises(ValueError, match=f"{count + 1} headings for {count} timelines"):
        draw.timeline(*runs, names=names)


def test_a_row_that_nothing_uses_is_refused():
    with pytest.raises(ValueError, match="no timeline uses 'chip 7': choose rows from bus, chip 0"):
        draw.timeline(pipeline(), rows=["chip 0", "chip 7"])
