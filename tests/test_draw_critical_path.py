"""The critical path and the dial of the bus: what they say is what runs of the model say."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pages
import pytest
from conftest import JS
from pages import at, frames, pipeline
from said import Rule, Said, assert_held, on_scale

import cypresskit as ck
from cypresskit import draw, host
from cypresskit.host import Resource, Task, Timeline, run

TIMES = (0.5, 1.0, 2.0, 4.0, 8.0)
RUNS = {
    "five stages": lambda: host.five_stage(4096, 4096, 1024, host.Machine()),
    "with a CPU": lambda: host.five_stage(4096, 4096, 1024, host.Machine(), cpu_share=0.1),
    "waits": lambda: in_blocks(False),
    "overlaps": lambda: in_blocks(True),
    "a bus alone": pipeline,
}


def in_blocks(overlap: bool) -> Timeline:
    machine = host.Machine(ck.HD5870)
    return host.blocked_time(3584, 3584, 3584, machine, block=1792, overlap=overlap)


def on_bus(timeline: Timeline, times: float) -> Timeline:
    """The plan on another bus, as a machine that is built so would run it."""
    bus = [n for n in timeline.resources if n.startswith(("PCIe", "DMA", "bus"))]
    resources = {
        name: Resource(name, r.capacity * (times if name in bus else 1), r.unit)
        for name, r in timeline.resources.items()
    }
    return run([span.task for span in timeline.spans], resources, timeline.flops)


def path(timeline: Timeline) -> list:
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


def stage_seconds(timeline: Timeline) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for span in timeline.critical_path():
        each = timeline.spans[span]
        seconds[each.task.stage] = seconds.get(each.task.stage, 0) + each.end - each.start
    return seconds


def rules(timeline: Timeline, player) -> dict[str, Rule]:
    runs = [on_bus(timeline, times) for times in TIMES]

    def caption(say: Said, shown):
        timed, times = runs[say.frame], TIMES[say.frame]
        true = [times] if times != 1 else []
        true += [1e3 * timed.seconds, timed.gflops]
        if times != 1:
            change = 100 * (timed.gflops / timeline.gflops - 1)
            true.append(change if "\u2212" in say.text else abs(change))
        stages = sorted(stage_seconds(timed).items(), key=lambda part: -part[1])[:3]
        assert re.findall(r"(\w+) \d+ %", say.text) == [stage for stage, _ in stages]
        return [*true, *(100 * seconds / timed.seconds for _, seconds in stages)]

    def speed(say: Said, _):
        number = runs[say.index].gflops
        return [number] if say.text.startswith("as it is") else [TIMES[say.index], number]

    def when(span) -> str:
        start, end = 1e3 * span.start, 1e3 * span.end
        return f": {start:.1f} to {end:.1f} ms, {end - start:.1f} long;"

    def task(say: Said, _):
        timed = runs[say.frame]
        on = {id(timed.spans[n].task) for n in timed.critical_path()}
        name = re.sub(r" \(.*?\)", "", say.text.split(": ")[0])
        same = [s for s in timed.spans if s.task.name == name and when(s) in say.text]
        path_said = say.text.endswith("on the critical path")
        return any((id(s.task) in on) == path_said for s in same) and all_places(say.text, same)

    def all_places(text: str, spans: list) -> bool:
        places = re.findall(r"(?:chip|unit|part|sub-block|strip) (\d+)", text.split(": ")[0])
        return not places or any(list(map(int, places)) == list(s.task.place) for s in spans)

    def part(say: Said, _):
        stage = say.text.strip("\u200b").split()[0]
        return [1e3 * stage_seconds(runs[say.frame])[stage]]

    def tick(say: Said, _):
        """By the tasks that are drawn."""
        boxes = {c: frames(player, "tasks", c)[say.frame] for c in ("x", "w")}
        timed = runs[say.frame]
        spans = {id(s.task): s for s in timed.spans}
        order = [spans[id(s.task)] for s in runs[0].spans]
        bars = [
            (x - w / 2, x + w / 2, span)
            for x, w, span in zip(boxes["x"], boxes["w"], order)
            if np.isfinite(x) and w > 3
        ]
        inside = [(left - 0.75, span.start) for left, _, span in bars]
        inside += [(right + 0.75, span.end) for _, right, span in bars]
        read = on_scale(*zip(*inside))
        return abs(1e3 * read(say.cell("x")) - float(say.text)) < 2e-3 * 1e3 * timed.seconds

    def name(say: Said, _):
        named = {s.task.name for s in timeline.spans} | {s.task.label for s in timeline.spans}
        return say.text.strip("\u200b") in named | set(timeline.resources)

    return {
        r"#": lambda say, n: tick(say, n) if "tick" in say.where else name(say, n),
        r"(# times as fast|as it is): #": speed,
        r"\w+ # ms": part,
        r".*: # to # ms, # long; .*": task,
        r".*, the bus .*": caption,
        r".*": name,
    }


@pytest.mark.parametrize("name", RUNS)
def test_every_number_is_a_runs(name):
    timeline = RUNS[name]()
    player = draw.critical_path(timeline, name=name)
    assert_held(player, rules(timeline, player), frames=range(len(TIMES)))


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("name", RUNS)
def test_the_path_is_the_runs_time(name, times):
    """From its start to its end without a gap, found anew from the end back."""
    timed = on_bus(RUNS[name](), times)
    found = [timed.spans[number] for number in timed.critical_path()]
    assert found[0].start == 0 and found[-1].end == timed.seconds
    assert all(late.start == early.end for early, late in pairwise(found))
    back = path(timed)
    assert sum(span.end - span.start for span in back) == pytest.approx(timed.seconds)
    assert sum(span.end - span.start for span in found) == pytest.approx(timed.seconds)


@pytest.mark.parametrize("name", RUNS)
def test_the_same_plan_on_the_same_resources_is_the_same_run(name):
    timeline = RUNS[name]()
    again = timeline.faster({})
    assert [(s.task, s.start, s.end) for s in again.spans] == [
        (s.task, s.start, s.end) for s in timeline.spans
    ]
    assert (again.on_card, again.card_bytes) == (timeline.on_card, timeline.card_bytes)


def test_a_bus_twice_as_fast_is_that_of_a_machine_built_so():
    """The dial against another host, planned and run anew, whose threads copy as fast."""
    fast = replace(host.Machine().host, dma_gb_s=12.0, pcie_gb_s=16.0, naive_gb_s=4.0)
    built = host.five_stage(4096, 4096, 1024, host.Machine(host=fast))
    timeline = host.five_stage(4096, 4096, 1024, host.Machine())
    bus = [name for name in timeline.resources if name.startswith(("PCIe", "DMA"))]
    assert timeline.faster(dict.fromkeys(bus, 2.0)).seconds == pytest.approx(built.seconds)


def test_the_path_of_two_tasks_by_hand():
    tasks = [
        Task("send", "load2", "DMA 0", {"DMA 0": 2.0}, {}, {"a": "a"}),
        Task("other", "load2", "DMA 1", {"DMA 1": 1.0}, {}, {"b": "b"}),
        Task("mult", "mult", "chip 0", {"chip 0": 3.0}, {"a": "a", "b": "b"}),
    ]
    resources = {n: Resource(n, 1.0, "seconds") for n in ("DMA 0", "DMA 1", "chip 0")}
    timeline = run(tasks, resources, 1e9)
    assert [timeline.spans[n].task.name for n in timeline.critical_path()] == ["send", "mult"]
    assert timeline.faster({"DMA 0": 4.0}).seconds == 4.0, "then it is the other that is waited for"


def test_the_picture_opens_on_the_run_as_it_is():
    player = draw.critical_path(in_blocks(True))
    assert "the bus as it is" in player.captions[player.still_frame]
    assert f"{in_blocks(True).gflops:.0f} Gflop/s" in player.captions[player.still_frame]


def test_what_has_no_bus_is_rejected():
    timeline = ck.teach.pipelines.by_hand([2, 3, 1], units=2)
    with pytest.raises(ValueError, match="no bus"):
        draw.critical_path(timeline)
    with pytest.raises(ValueError, match="1, the bus as it is"):
        draw.critical_path(in_blocks(True), times=(2, 4))
    with pytest.raises(ValueError, match="name resources"):
        in_blocks(True).faster({"bus": 2.0})
    with pytest.raises(ValueError, match="numbers above 0"):
        in_blocks(True).faster({"DMA 0": 0.0})


def test_the_dial_turns_the_bus(show):
    """In Chromium: the dial's keys, and text that can be read in any window."""
    player = draw.critical_path(in_blocks(True), name="overlapped")
    page = show(player)
    assert at(page)["frame"] == 1, "it opens on the run as it is"
    page.locator("label input").nth(0).press("ArrowRight")
    assert "the bus 2 times as fast" in at(page)["words"]
    for width, height in ((1366, 768), (1093, 614), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(JS.settled)
        for frame in (1, len(player) - 1):
            page.evaluate(JS.steps, [frame])
            assert page.evaluate(JS.faults) == [], f"frame {frame} at {width} x {height}"
    assert not pages.axe_finds(page)
