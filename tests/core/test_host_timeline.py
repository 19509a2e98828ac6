"""Max-min fair shares, the event simulation and the timeline's checks, against hand-computed
cases.
"""

from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import drawn_by_day, from_rows

import cypresskit as ck
from cypresskit import host
from cypresskit.host.resources import fair_shares
from cypresskit.host.tasks import Span, Task, TimelineError, run_tasks

BUS = {"bus": 6.0, "memory": 10.0}


demands = st.lists(
    st.builds(
        lambda parts: tuple((r, p / max(parts.values())) for r, p in parts.items()),
        st.dictionaries(st.integers(0, 3), st.floats(0.05, 1), min_size=1),
    ),
    min_size=1,
    max_size=7,
)


@given(demands)
def test_shares_are_max_min_fair(demands):
    """No demand exceeds a resource, and each has a full one on which no other has a larger share
    that could be cut for it.
    """
    shares = fair_shares(demands)
    load = {r: sum(s * dict(d).get(r, 0) for s, d in zip(shares, demands)) for r in range(4)}
    assert all(total <= 1 + 1e-9 for total in load.values())
    for share, demand in zip(shares, demands):
        assert 0 < share <= 1 + 1e-9
        full = [r for r, _ in demand if load[r] > 1 - 1e-9]
        assert any(
            all(s <= share * (1 + 1e-9) for s, d in zip(shares, demands) if r in dict(d))
            for r in full
        )


@from_rows
def test_a_plan_runs_as_by_hand(tasks, spans, busy):
    timeline = run_tasks([Task(*task) for task in tasks], BUS, flops=6e9)
    timeline.check()
    found = {span.task.name: [span.start, span.end] for span in timeline.spans}
    assert [*found] == [*spans] and [*found.values()] == [pytest.approx(s) for s in spans.values()]
    assert timeline.busy == pytest.approx(busy)
    assert timeline.bound == max(busy, key=busy.get)
    assert timeline.gflops == pytest.approx(6 / timeline.seconds)


def _shifted(**starts):
    """A writer of x (0 to 1), a reader of it (1 to 3) and its next writer (3 to 4), with other
    starts.
    """
    tasks = [
        Task("write", "a", "1", {"bus": 6.0}, {}, {"x": "old"}),
        Task("read", "a", "2", {"bus": 12.0}, {"x": "old"}),
        Task("rewrite", "a", "3", {"bus": 6.0}, {}, {"x": "new"}),
    ]
    timeline = run_tasks(tasks, BUS)
    timeline.check()
    begun = [starts.get(s.task.name, s.start) for s in timeline.spans]
    moved = [
        Span(s.task, start, start + s.end - s.start) for s, start in zip(timeline.spans, begun)
    ]
    return replace(timeline, spans=tuple(moved))


@from_rows
def test_check_reports_reads_of_nothing_and_overwriting_in_use(starts, message):
    with pytest.raises(TimelineError, match=message):
        _shifted(**starts).check()


# -- the critical path, and the same plan on other resources


def in_blocks(overlap):
    machine = host.Machine(ck.HD5870)
    return host.blocked_timeline(3584, 3584, 3584, machine, block=1792, overlap=overlap)


RUNS = {
    "five stages": lambda: host.five_stage(4096, 4096, 1024, host.Machine()),
    "with a CPU": lambda: host.five_stage(4096, 4096, 1024, host.Machine(), cpu_share=0.1),
    "waits": lambda: in_blocks(False),
    "overlaps": lambda: in_blocks(True),
    "a bus alone": lambda: run_tasks(
        [Task(str(n), "copy", str(n % 2), {"bus": 6.0 + n}) for n in range(5)], BUS
    ),
}


def on_bus(timeline, times):
    """The plan on another bus, as a machine that is built so would run it."""
    bus = [n for n in timeline.resources if n.startswith(("PCIe", "DMA", "bus"))]
    resources = {
        name: capacity * (times if name in bus else 1)
        for name, capacity in timeline.resources.items()
    }
    return run_tasks([span.task for span in timeline.spans], resources, timeline.flops)


def path_backwards(timeline):
    """Spans from the last one back: each time one that ended when this one began, on which it
    depends.
    """
    back = [max(timeline.spans, key=lambda span: span.end)]
    while back[-1].start > 1e-12:
        late = back[-1]
        touched = {*late.task.reads, *late.task.writes}
        early = [
            s
            for s in timeline.spans
            if abs(s.end - late.start) < 1e-12
            and (
                s.task.queue == late.task.queue
                or touched & set(s.task.writes)
                or set(s.task.reads) & set(late.task.writes)
            )
        ]
        back.append(early[0])
    return back[::-1]


@drawn_by_day(("name", "times"), product(RUNS, [0.5, 1.0, 8.0]), 2)
def test_the_critical_path_is_the_runs_time(name, times):
    """From its start to its end without a gap, found anew from the end back."""
    timed = on_bus(RUNS[name](), times)
    found = [timed.spans[number] for number in timed.critical_path()]
    assert found[0].start == 0 and found[-1].end == timed.seconds
    assert all(late.start == early.end for early, late in pairwise(found))
    for spans in (found, path_backwards(timed)):
        assert sum(span.end - span.start for span in spans) == pytest.approx(timed.seconds)


def test_a_bus_twice_as_fast_is_that_of_a_machine_built_so():
    """Against another host, planned and run anew: its threads copy as fast as before."""
    fast = replace(host.Machine().host, dma_gb_s=12.0, pcie_gb_s=16.0)
    built = host.five_stage(4096, 4096, 1024, host.Machine(host=fast))
    timeline = RUNS["five stages"]()
    bus = [name for name in timeline.resources if name.startswith(("PCIe", "DMA"))]
    assert timeline.faster(dict.fromkeys(bus, 2.0)).seconds == pytest.approx(built.seconds)
