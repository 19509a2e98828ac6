"""The host's timelines: what they say is what the spans of their tasks say."""

import re
import sys

import numpy as np
import pytest
from pages import pipeline
from said import Rule, Said, assert_held, unheld

import cypresskit as ck
from cypresskit import draw, host
from cypresskit.host import Timeline

FRAMES = 240


def rules(runs: dict[str, Timeline]) -> dict[str, Rule]:
    """What the numbers of timelines with these headings have to be. Names of tasks are told apart,
    so a text with another task's name has no rule.
    """
    end = max(run.seconds for run in runs.values())
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
        return f"{span.task.name}: {when}, {moved}{slower}"

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
        text = f"{tip(span, name)}. Waited for: {', '.join(waited) or 'nothing'}. Waits for it:"
        words = re.sub(r"\*\*(.*?)\*\*, ", "", say.text)
        return words == f"{text} {', '.join(waits) or 'nothing'}."

    def caption(say: Said, shown):
        now = end * say.frame / (FRAMES - 1)
        lines = re.sub(r"^At [\d.]+ ms\. ", "", say.text).split("\n")
        for line, (name, run) in zip(lines, runs.items(), strict=True):
            running = {s.task.name for s in run.spans if s.start <= now + 1e-12 < s.end}
            said = line.removeprefix(f"**{name}**: ")
            told = {part.split(": ", 1)[-1].split(", a kernel")[0] for part in said.split("; ")}
            told, _, more = (
                {re.sub(r" and \d+ more$", "", t) for t in told},
                *said.rpartition(" and ")[1:],
            )
            left_out = int(more.split()[0]) if more.endswith(" more") else 0
            if now >= run.seconds - 1e-12:
                assert said == "done", line
            elif not running:
                assert said == "idle", line
            else:
                assert told <= running and len(running) == min(4, len(running)) + left_out, line
        return [1e3 * now, *shown[1:]]

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
        """A bar's name, a block's on the road, or a row's: of a task, or a resource and stages."""
        tasks = [s.task for run in runs.values() for s in run.spans]
        texts = {t.name for t in tasks} | {t.label for t in tasks}
        rows = {name for run in runs.values() for name in run.resources}
        return say.text.strip("\u200b").split(": ")[0] in texts | rows | set(runs)

    def tick(say: Said, shown):
        ticks = 1e3 * end
        return shown if 0 <= shown[0] <= ticks else [np.nan]

    return {
        r"At # ms\. .*(\n.*)*": caption,
        r".*: # to # ms, # long, # MB(, a kernel # times slower per flop)?": task,
        r".*: # to # ms, .* Waited for: .*": about,
        r"# %": worked,
        r"# ms, # Gflop/s, busiest: .*, # %": finish,
        r"#": lambda say, shown: tick(say, shown) if not say.where else label(say, shown),
        r"[\w =]*#.*|[\w ]*[ABC]+\[.*": label,
    }


def pace(run: Timeline) -> float:
    """Seconds of the chips for each flop; 0 with a CPU beside them."""
    products = [s.task for s in run.spans if s.task.stage in ("mult", "mult1", "cpu")]
    if not run.flops or any(task.stage == "cpu" for task in products):
        return 0.0
    return sum(task.uses.get(task.queue, 0.0) for task in products) / run.flops


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


def blocked(n: int, block: int, overlap: bool = True) -> Timeline:
    return host.blocked_time(n, n, n, host.Machine(ck.HD5870), block=block, overlap=overlap)


RUNS = {
    "two queues": lambda: {"one": pipeline(), "two": pipeline()},
    "four and five stages": lambda: {
        "four": host.four_stage(4096, 4096, 1024, host.Machine()),
        "five": host.five_stage(4096, 4096, 1024, host.Machine()),
    },
    "with a CPU": lambda: {
        "hybrid": host.five_stage(4096, 4096, 1024, host.Machine(), cpu_share=0.1)
    },
    "blocks": lambda: {"waits": blocked(3584, 1792, False), "overlaps": blocked(3584, 1792)},
    "round trips": lambda: {f"N = {n}": host.round_trip(n, 3e9, 450e9) for n in (600, 2400)},
    "by hand": lambda: {"by hand": ck.teach.pipelines.by_hand([2, 3, 1], units=4)},
}


@pytest.mark.parametrize("name", RUNS)
def test_every_number_is_the_timelines(name):
    runs = RUNS[name]()
    for run in runs.values():
        assert {s.task.matrix for s in run.spans} <= {"A", "B", "C", "AB", ""}
    assert_held(draw.timeline(*runs.values(), names=tuple(runs)), rules(runs))


def test_tooltips_that_are_ten_times_off_are_found(monkeypatch):
    chart = sys.modules["cypresskit.draw.pipelines"]._Chart
    true = chart._tip

    def off(self, span):
        return re.sub(
            r"([\d.]+) MB", lambda found: f"{10 * float(found[1]):.1f} MB", true(self, span)
        )

    monkeypatch.setattr(chart, "_tip", off)
    runs = RUNS["two queues"]()
    assert unheld(draw.timeline(*runs.values(), names=tuple(runs)), rules(runs))


def test_a_run_whose_chip_is_idle_for_half_of_the_time_is_not_called_bound():
    run = blocked(3584, 1792, overlap=False)
    assert run.bound == "chip 0" and run.busy["chip 0"] < 0.6
    player = draw.timeline(run)
    finish = next(t.names[-1] for t in player.tracks if t.source.name.startswith("finish"))
    assert finish.endswith("busiest: chip 0, 57 %") and "bound" not in finish + repr(run)
