"""The host's timelines: what is refused."""

import pytest
from players import pipeline

from cypresskit import draw
from cypresskit.host import Task, run_tasks


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
