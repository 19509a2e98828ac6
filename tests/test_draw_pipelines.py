"""The host's timelines: what they say is what the spans of their tasks say."""

import random
import re

import numpy as np
import pytest
from pages import (
    drawn,
    frames,
    pipeline,
    view,
)
from said import Rule, Said, assert_held, on_scale

import cypresskit as ck
from cypresskit import draw, host
from cypresskit.host import Resource, Task, Timeline, run_tasks

FRAMES = 240


def rules(runs: dict[str, Timeline], player) -> dict[str, Rule]:
    """What the numbers of timelines with these headings have to be. Names of tasks are told apart,
    so a text with another task's name has no rule.
    """
    end = max(run.seconds for run in runs.values())
    head = frames(player, f"head {next(iter(runs))}", "x")[:, 0]
    milliseconds = on_scale(head, np.linspace(0, 1e3 * end, FRAMES))
    paces = {name: pace(run) for name, run in runs.items()}
    fastest = min((p for p in paces.values() if p), default=0)

    def named(words: str) -> str:
        """The heading of the timeline that a source belongs to."""
        return max((n for n in runs if words.removesuffix(" to come").endswith(f" {n}")), key=len)

    def tip(span, name: str) -> str:
        slower = ""
        if span.task.stage in ("mult", "mult1", "cpu") and paces[name] > 1.05 * fastest > 0:
            slower = f", a kernel {paces[name] / fastest:.1f} times slower per flop"
        start, over = 1e3 * span.start, 1e3 * span.end
        moved = f"{span.task.bytes / 1e6:.1f} MB"
        when = f"{start:.1f} to {over:.1f} ms, {over - start:.1f} long"
        return f"{span.task.name}{spelled(span.task)}: {when}, {moved}{slower}"

    def spelled(task: Task) -> str:
        """The numbers of a pipeline's unit, each with its name."""
        if task.matrix not in ("AB", "C") or len(task.place) not in (3, 4):
            return ""
        names = ["chip", "unit", "part", "sub-block"]
        parts = [f"{name} {number}" for name, number in zip(names, task.place)]
        return f" ({', '.join(parts)})"

    def task(say: Said, _):
        """A bar's words are those of a task that is drawn in such a row."""
        run, row = runs[named(say.where)], say.where.removeprefix("tip ").removesuffix(" to come")
        row = row.removesuffix(f" {named(say.where)}")
        own = [s for s in run.spans if row == "tasks" or s.task.uses.get(row)]
        texts = {tip(span, named(say.where)) for span in own}
        return say.text in texts

    def about(say: Said, _):
        number, at = divmod(say.index, 10_000)
        name = list(runs)[number]
        run = runs[name]
        span = run.spans[at]
        close = 1e-9 * max(1.0, end)
        before = [s for s in run.spans if s is not span and abs(s.end - span.start) < close]
        behind = [s for s in run.spans if s is not span and abs(s.start - span.end) < close]
        waited = [s.task.name for s in before if depends(span.task, s.task)]
        waits = [s.task.name for s in behind if depends(s.task, span.task)]
        text = f"{tip(span, name)}. It waited for: {', '.join(waited) or 'nothing'}."
        words = re.sub(r"\*\*(.*?)\*\*, ", "", say.text)
        return words == f"{text} What waited for it: {', '.join(waits) or 'nothing'}."

    def caption(say: Said, shown):
        now = end * say.frame / (FRAMES - 1)
        lines = re.sub(r"^At [\d.]+ ms\. ", "", say.text).split("\n")
        race = len(runs) > 1 and len({run.flops for run in runs.values()}) == 1
        winner: list[float] = []
        if race and say.frame == FRAMES - 1:
            order = sorted(runs, key=lambda name: runs[name].seconds)
            assert lines.pop().startswith(f"**{order[0]}** ends first: ")
            winner = [runs[order[-1]].seconds / runs[order[0]].seconds]
        for line, (name, timed) in zip(lines, runs.items(), strict=True):
            running = {s.task.name for s in timed.spans if s.start <= now + 1e-12 < s.end}
            said = line.removeprefix(f"**{name}**: ")
            told = {part.split(": ", 1)[-1].split(", a kernel")[0] for part in said.split("; ")}
            told, _, more = (
                {re.sub(r" and \d+ more$", "", t) for t in told},
                *said.rpartition(" and ")[1:],
            )
            left_out = int(more.split()[0]) if more.endswith(" more") else 0
            if now >= timed.seconds - 1e-12:
                path = (
                    f". Its critical path: {path_parts(timed)}" if say.frame == FRAMES - 1 else ""
                )
                assert said == f"done{path}", line
            elif not running:
                assert said == "idle", line
            else:
                assert told <= running and len(running) == min(4, len(running)) + left_out, line
        told = shown[1 : len(shown) - len(winner)]
        return [1e3 * now, *told, *winner]

    def worked(say: Said, _):
        run = runs[named(say.where)]
        now = min(end * say.frame / (FRAMES - 1), run.seconds)
        row = list(run_rows(run, runs))[say.index]
        done = sum(
            s.task.uses.get(row, 0) * np.clip((now - s.start) / (s.end - s.start), 0, 1)
            for s in run.spans
        )
        return [100 * done / run.resources[row].capacity / max(now, 1e-12)]

    def finish(say: Said, _):
        run = runs[named(say.where)]
        said = f"{1e3 * run.seconds:.1f} ms, {run.gflops:.0f} Gflop/s, busiest: {run.bound}, "
        return say.text.endswith(f"{said}{100 * run.busy[run.bound]:.0f} %")

    def label(say: Said, _):
        """A bar's name, or a row's: of a task, or a resource and stages."""
        spans = [s for run in runs.values() for s in run.spans]
        if say.where.startswith("labels"):
            middle = milliseconds(say.cell("x")) / 1e3
            spans = [s for s in spans if abs((s.start + s.end) / 2 - middle) < 1e-4 * end]
        tasks = [s.task for s in spans]
        texts = {t.name for t in tasks} | {t.label for t in tasks}
        rows = {name for run in runs.values() for name in run.resources}
        return say.text.strip("\u200b").split(": ")[0] in texts | rows | set(runs)

    def tick(say: Said, shown):
        return [milliseconds(say.cell("x"))]

    return {
        r"At # ms\. .*(\n.*)*": caption,
        r".*: # to # ms, # long, # MB(, a kernel # times slower per flop)?": task,
        r".*: # to # ms, .* It waited for: .*": about,
        r"# %": worked,
        r"# ms, # Gflop/s, busiest: .*, # %": finish,
        r"#": lambda say, shown: (tick if say.where == "tick names" else label)(say, shown),
        r"[\w =]*#.*|[\w ]*[ABC]+\[.*": label,
    }


def pace(run: Timeline) -> float:
    """Seconds of the chips for each flop; 0 with a CPU beside them."""
    products = [s.task for s in run.spans if s.task.stage in ("mult", "mult1", "cpu")]
    if not run.flops or any(task.stage == "cpu" for task in products):
        return 0.0
    return sum(task.uses.get(task.queue, 0.0) for task in products) / run.flops


def path_parts(timed: Timeline) -> str:
    """The path's seconds by stage, the longest three first, in percent of the run's."""
    seconds: dict[str, float] = {}
    for span in (timed.spans[number] for number in timed.critical_path()):
        seconds[span.task.stage] = seconds.get(span.task.stage, 0) + span.end - span.start
    longest = sorted(seconds, key=lambda stage: -seconds[stage])[:3]
    return ", ".join(f"{stage} {100 * seconds[stage] / timed.seconds:.0f} %" for stage in longest)


def depends(late, early) -> bool:
    touched = {*late.reads, *late.writes}
    again = touched & set(early.writes) or set(early.reads) & set(late.writes)
    return early.queue == late.queue or bool(again)


def run_rows(run: Timeline, runs: dict[str, Timeline]) -> list[str]:
    """The rows of a timeline: resources in the order of their first use, shared ones last."""

    def shared(of: Timeline, name: str) -> bool:
        queues = {s.task.queue for s in of.spans if s.task.uses.get(name)}
        return len(queues) > 1 or bool((queues - {name}) & set(of.resources))

    first = {}
    for span in sorted(run.spans, key=lambda s: s.start):
        for name, amount in span.task.uses.items():
            if amount:
                first.setdefault(name, span.start)
    rows = sorted(first, key=lambda name: (first[name], name))
    together = {n for of in runs.values() for n in of.resources if shared(of, n)}
    return sorted(rows, key=lambda name: name in together)


def in_blocks(n: int, block: int, overlap: bool = True) -> Timeline:
    return host.blocked_timeline(n, n, n, host.Machine(ck.HD5870), block=block, overlap=overlap)


RUNS = {
    "two queues": lambda: {"one": pipeline(), "two": pipeline()},
    "four and five stages": lambda: {
        "four": host.four_stage(4096, 4096, 1024, host.Machine()),
        "five": host.five_stage(4096, 4096, 1024, host.Machine()),
    },
    "with a CPU": lambda: {
        "hybrid": host.five_stage(4096, 4096, 1024, host.Machine(), cpu_share=0.1)
    },
    "blocks": lambda: {"waits": in_blocks(3584, 1792, False), "overlaps": in_blocks(3584, 1792)},
    "round trips": lambda: {
        f"N = {n}": host.round_trip_timeline(n, 3e9, 450e9) for n in (600, 2400)
    },
    "by hand": lambda: {"by hand": ck.teach.pipelines.by_hand([2, 3, 1], units=4)},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", RUNS)
def test_every_number_is_the_timelines(name):
    runs = RUNS[name]()
    matrices = {s.task.matrix for each in runs.values() for s in each.spans}
    assert matrices <= {"A", "B", "C", "AB", ""}
    player = draw.timeline(*runs.values(), names=tuple(runs))
    assert_held(player, rules(runs, player))


@pytest.mark.parametrize("seed", range(12))
def test_a_row_says_how_much_of_its_capacity_was_used(seed):
    """Tasks that a full bus slows down: a row's number isn't how much of its time it was at work,
    its heading says so, and the end tells the busiest's by the same number.
    """
    chance = random.Random(seed)
    bus, rates = chance.choice([4.0, 8.0, 16.0]), [chance.choice([4.0, 8.0]) for _ in range(2)]
    resources = {f"DMA {n}": Resource(f"DMA {n}", rate, "bytes") for n, rate in enumerate(rates)}
    resources |= {"bus": Resource("bus", bus, "bytes"), "chip 0": Resource("chip 0", 1.0, "s")}
    tasks = []
    for n in range(chance.randrange(1, 6)):
        moved = chance.choice([1.0, 2.0, 3.0])
        uses = {f"DMA {n % 2}": moved, "bus": moved}
        tasks.append(Task(f"send {n}", "send", f"DMA {n % 2}", uses, {}, {f"A{n}": "a"}))
    tasks.append(Task("mult", "mult", "chip 0", {"chip 0": chance.choice([1.0, 3.0])}, {"A0": "a"}))
    timed = run_tasks(tasks, resources, 1e9)
    player = draw.timeline(timed, names=("one",))
    rows = [row.strip() for row in player._text.splitlines()[2:]]
    shown = dict(zip(rows, frames(player, "worked one", "value")[-1].tolist(), strict=True))
    for row, number in shown.items():
        assert abs(number - 100 * timed.busy[row]) < 0.501, row
    drawings = [getattr(m, "data", {}) for m in player.figures[0].references()]
    headings = {text for data in drawings for text in data.get("text", ())}
    assert "of capacity" in headings and "worked" not in headings
    finish = next(t.names[-1] for t in player.tracks if t.source.name.startswith("finish"))
    assert finish.endswith(f"busiest: {timed.bound}, {shown[timed.bound]} %")


@pytest.mark.parametrize("size", [600, 800, 1200, 1600, 2400, 4800, 9600])
def test_a_stage_has_one_share_in_its_row_and_in_the_sentence(size):
    """Products of lesson 09, one task after the other: some shares lie at the middle between two
    whole numbers.
    """
    timed = host.round_trip_timeline(size, 3e9, 450e9)
    player = draw.timeline(timed, names=("one",))
    shown = sorted(frames(player, "worked one", "value")[-1].tolist())
    told = sorted(int(n) for n in re.findall(r"(\d+) %", player.captions[-1]))
    assert shown == told


def test_a_run_with_an_idle_chip_is_not_called_bound():
    run = in_blocks(3584, 1792, overlap=False)
    assert run.bound == "chip 0" and run.busy["chip 0"] < 0.6
    player = draw.timeline(run)
    finish = next(t.names[-1] for t in player.tracks if t.source.name.startswith("finish"))
    assert finish.endswith("busiest: chip 0, 57 %") and "bound" not in finish + repr(run)


def test_the_timeline_says_what_runs():
    player = view("timeline")
    rows = player._text.splitlines()
    rows = [
        row.strip()
        for row in rows[rows.index(next(r for r in rows if r.startswith("one:"))) + 1 :][:2]
    ]
    worked = dict(zip(rows, frames(player, "worked one", "value")[-1]))
    assert worked == {row: round(100 * pipeline().busy[row]) for row in rows}
    for moment, caption in zip(np.linspace(0, pipeline().seconds, len(player)), player.captions):
        for span in pipeline().spans:
            runs_now = span.start <= moment + 1e-9 < span.end - 1e-9
            assert (f"{span.task.queue}: {span.task.name}" in caption) == runs_now


@pytest.mark.parametrize("name", RUNS)
def test_the_last_frame_frames_the_critical_path_and_no_other_does(name):
    """A box from the start to the end of each of its tasks, in that task's row."""
    runs = RUNS[name]()
    player = draw.timeline(*runs.values(), names=tuple(runs))
    end = max(run.seconds for run in runs.values())
    for heading, timed in runs.items():
        head = frames(player, f"head {heading}", "x")[:, 0]
        path = [timed.spans[number] for number in timed.critical_path()]
        middles = np.array([(span.start + span.end) / 2 for span in path]) / end
        x = frames(player, f"path {heading}", "x")
        assert np.isnan(x[:-1]).all()
        np.testing.assert_allclose(x[-1], head[0] + middles * (head[-1] - head[0]), atol=0.1)
        rows = drawn(player, f"head {heading}")["y"]
        order = list(run_rows(timed, runs))
        down = drawn(player, f"path {heading}")["y"]
        for span, y in zip(path, down, strict=True):
            assert span.task.uses[order[np.abs(rows - y).argmin()]], span.task.name


def test_a_click_on_a_task_shows_what_it_waited_for():
    player = view("timeline")
    names = [span.task.name for span in pipeline().spans]
    about = dict(player.figures[0].tags[0]["about"])
    for n, span in enumerate(pipeline().spans):
        waited = re.search(r"It waited for: (.*?)\. What", about[n])[1]
        ends = {s.task.name for s in pipeline().spans if abs(s.end - span.start) < 1e-9}
        assert set(waited.split(", ")) <= (ends or {"nothing"}) | {"nothing"}
    store = names.index("store 1")
    assert "It waited for: mult 1." in about[store]


def test_a_tasks_bar_is_in_its_own_row_alone():
    """A kernel that writes its result over the bus meanwhile: its bar is in the chip's row, not in
    the bus'.
    """
    task = Task("mult", "mult", "chip 0", {"chip 0": 2.0, "bus": 2.0}, {}, {"c": "c"})
    resources = {
        "chip 0": Resource("chip 0", 1.0, "seconds"),
        "bus": Resource("bus", 10.0, "bytes"),
    }
    player = draw.timeline(run_tasks([task], resources, 1e9), names=("one",))
    assert len(drawn(player, "tasks one")["shade"]) == len(drawn(player, "bus one")["shade"]) == 1
    assert frames(player, "worked one", "value")[-1].tolist() == [100, 10]


@pytest.mark.slow
def test_lesson_11_reads_its_answers_off_the_picture():
    """Answers 1 to 3: a mult is four times as long as a mult1 for twice the work, store1 runs
    beside mult1, and what is full is the bus.
    """
    both_chips = host.Machine(ck.HD5970)
    made = [stages(6144, 6144, 2048, both_chips) for stages in (host.four_stage, host.five_stage)]
    player = draw.timeline(*made, names=("four", "five"))
    long = {name: drawn(player, f"tasks {name} to come") for name in ("four", "five")}
    chip = {
        name: np.array(data["w"])[np.array(data["shade"]) >= 3] + 0.7 for name, data in long.items()
    }
    assert (len(chip["four"]), len(chip["five"])) == (24, 48)
    longer = np.median(chip["four"]) / np.median(chip["five"])
    assert 3.5 < longer < 4.5
    assert f"mult AB[0.0.0.0], a kernel {longer / 2:.1f} times slower per flop" in " ".join(
        player.captions
    )
    assert [(np.array(data["shade"]) == 4).sum() for data in long.values()] == [
        24,
        0,
    ], "gray: the slower kernel"
    rows = np.unique(drawn(player, "tasks four")["y"])
    assert np.diff(rows).min() * 899 / 1100 > 12, "there is room for names"
    full = {
        m.name
        for m in player.figures[0].references()
        if "full" in str(m.name) and "to come" not in m.name
    }
    assert full == {"PCIe to card full four", "PCIe to card full five", "PCIe to host full five"}
    spans = {
        stage: [s for s in made[1].spans if s.task.stage == stage]
        for stage in ("store1", "mult1", "load2")
    }

    def both(a: str, b: str) -> float:
        pairs = [(s, t) for s in spans[a] for t in spans[b] if s.task.chip == t.task.chip]
        return 1e3 * sum(max(0, min(s.end, t.end) - max(s.start, t.start)) for s, t in pairs)

    whole = 1e3 * sum(s.end - s.start for s in spans["store1"])
    assert both("store1", "load2") < 1e-6 and both("store1", "mult1") > 0.8 * whole


def test_lesson_10_reads_its_answers_off_the_picture():
    """The chip binds in both runs; overlapped, it is idle only before its first product and after
    its last.
    """
    machine = host.Machine(ck.HD5870)
    made = [
        host.blocked_timeline(3584, 3584, 3584, machine, block=1792, overlap=overlap)
        for overlap in (False, True)
    ]
    player = draw.timeline(*made, names=("waits", "overlaps"))
    assert "**overlaps** ends first: 1.44 times as fast" in player.captions[-1]
    for name, one, gaps in zip(("waits", "overlaps"), made, (3, 0)):
        assert one.bound == "chip 0"
        rows = [row.strip() for row in player._text.split(f"{name}:")[1].splitlines()[1:]]
        bars = drawn(player, f"tasks {name} to come")
        chip = [
            (x - w / 2, x + w / 2 + 0.7)
            for x, w, m in zip(bars["x"], bars["w"], bars["shade"])
            if m == 3
        ]
        assert (np.diff(np.ravel(chip))[1::2] > 1).sum() == gaps, "pixels between products"
        worked = frames(player, f"worked {name}", "value")[-1][rows.index("chip 0")]
        assert worked == round(100 * one.busy["chip 0"]) and (worked < 60) == (name == "waits")


def test_the_labels_of_blocks_are_whole():
    """A prime counts the sums of a block so far; the legend has red only where something is
    full.
    """
    tasks = [
        Task(f"mult {name}", "mult", "chip 0", {"chip 0": 9.0})
        for name in ("C[0,0]'", "AB[0.1.0.1]", "A[3]")
    ]
    player = draw.timeline(
        run_tasks(tasks, {"chip 0": Resource("chip 0", 1.0, "seconds")}, 1e9), names=("one",)
    )
    said = {name for track in player.tracks for name in track.names}
    said |= {
        word
        for m in player.figures[0].references()
        for word in getattr(m, "data", {}).get("text", ())
    }
    assert {"mult C[0,0]'", "mult AB[0.1.0.1]", "mult A[3]", "chip 0: mult", "of capacity"} <= said
    assert (
        "the product<" in player.html and "full:" not in player.html and "slower" not in player.html
    )


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_name_without_its_timeline_is_rejected(count):
    task = Task("mult", "mult", "chip 0", {"chip 0": 2.0})
    runs = [run_tasks([task], {"chip 0": Resource("chip 0", 1.0, "s")})] * count
    names = ("mine", "yours", "hers")[: count + 1]
    with pytest.raises(ValueError, match=f"{count + 1} headings for {count} timelines"):
        draw.timeline(*runs, names=names)


@pytest.mark.parametrize("seed", range(4))
def test_chosen_rows_are_those_of_the_whole_picture(seed):
    """Each row alone has the bars, shares and words that it has among all."""
    machine = host.Machine()
    runs = [stages(2048, 2048, 1024, machine) for stages in (host.four_stage, host.five_stage)]
    whole = draw.timeline(*runs, names=("four", "five"))
    used = sorted({row for timed in runs for row in run_rows(timed, dict(enumerate(runs)))})
    rows = random.Random(seed).sample(used, 1 + seed)
    player = draw.timeline(*runs, names=("four", "five"), rows=rows)
    for name, timed in zip(("four", "five"), runs):
        every = list(run_rows(timed, dict(enumerate(runs))))
        mine = [row for row in every if row in rows]
        shown = frames(player, f"worked {name}", "value")
        places = [every.index(row) for row in mine]
        assert np.array_equal(shown, frames(whole, f"worked {name}", "value")[:, places])
    assert player.about == whole.about and player.captions == whole.captions


def test_a_row_that_nothing_uses_is_refused():
    with pytest.raises(ValueError, match="no timeline uses 'chip 7': choose rows from bus, chip 0"):
        draw.timeline(pipeline(), rows=["chip 0", "chip 7"])
