"""The card's memory: what it says is what the tasks write, read and move."""

import re

import numpy as np
import pytest
from pages import (
    blocked,
    drawn,
    frames,
    view,
)
from said import Rule, Said, assert_held, on_scale

import cypresskit as ck
from cypresskit import host
from cypresskit.draw.player import Player
from cypresskit.host import Timeline

FRAMES = 240


def sizes(run: Timeline) -> dict[str, float]:
    """Bytes of each buffer on the card: of the largest part that is moved into or out of it."""
    return {
        buffer: max(s.task.bytes for s in run.spans if buffer in {**s.task.reads, **s.task.writes})
        for buffer in sorted(run.on_card)
    }


def parts_on_card(run: Timeline, now: float) -> set[str]:
    """What lies in the buffers: written, and neither overwritten nor fetched by a DMA since."""
    held: dict[str, str] = {}
    for time, after, span in sorted(
        [(s.end, True, n) for n, s in enumerate(run.spans)]
        + [(s.start, False, n) for n, s in enumerate(run.spans)]
    ):
        task = run.spans[span].task
        if time > now:
            break
        if after and task.stage == "store1":
            held = {b: c for b, c in held.items() if b not in task.reads}
        for buffer, content in task.writes.items():
            if buffer in run.on_card and (after or buffer not in task.reads):
                if after:
                    held[buffer] = content.rstrip("'")
                else:
                    held.pop(buffer, None)
    return set(held.values())


def rules(run: Timeline, card: float, player: Player) -> dict[str, Rule]:
    buffers = sizes(run)
    milliseconds = on_scale(
        frames(player, "head", "x")[:, 0], np.linspace(0, 1e3 * run.seconds, FRAMES)
    )
    tasks = [span.task for span in run.spans]

    def caption(say: Said, shown):
        now = np.linspace(0, run.seconds, FRAMES)[say.frame]
        _, on_card, running = say.text.split(". ")
        assert say.frame < FRAMES - 1
        told = set(on_card.removeprefix("On the card: ").replace("], ", "]; ").split("; "))
        assert told == (parts_on_card(run, now) or {"nothing"}), say.text
        names = [s.task.name for s in run.spans if s.start <= now < s.end]
        words = running.removeprefix("Running: ").removesuffix(".").replace("], ", "]; ")
        assert words == ("; ".join(names) or "nothing"), say.text
        return [1e3 * now, *shown[1:]]

    def last(say: Said, shown):
        """The last caption: what lies on the card, and then what the timeline comes to."""
        assert say.frame == FRAMES - 1
        on_card = re.search(r"On the card: (.*)\.\n", say.text)[1].replace("], ", "]; ")
        assert set(on_card.split("; ")) == parts_on_card(run, run.seconds), say.text
        products = [task for task in tasks if task.stage == "mult"]
        blocks = {task.place for task in products}
        strips = [task for task in tasks if re.match(r"load2 [AB]", task.name)]
        indices = shown[1 : 1 + 2 * on_card.count("[")]
        chip = 100 * run.busy["chip 0"]
        sums = [len(blocks), run.gflops, chip, len(strips), len(products), 2 * len(products)]
        return [1e3 * run.seconds, *indices, *sums]

    def buffer(say: Said, _):
        name, _, size = say.text.partition(", ")
        return name in buffers and size in ("", f"{buffers[name] / 1e6:.0f} MB")

    def size(say: Said, _):
        return [list(buffers.values())[say.index] / 1e6]

    def part(say: Said, _):
        where = say.where.removeprefix("tip ")
        names = {t.label.rstrip("'") for t in tasks if where[-1] in ("s", t.matrix)}
        names |= {t.label for t in tasks if where == "labels tasks"}
        return say.text.strip("\u200b") in names

    return {
        r"At # ms\. On the card: .*": caption,
        r"At # ms\. On the card: .*\nDone: .*": last,
        r"Buffers on the card: # MB of #": lambda *_: [sum(buffers.values()) / 1e6, card / 1e6],
        r"card # [ABC]\d(, # MB)?": buffer,
        r"# MB": size,
        r"#": lambda say, _: [milliseconds(say.cell("x"))],
        r"[ABC]\[#,#\]'*": part,
        r"\w+ [ABC]\[#,#\]'*": lambda say, _: say.text.strip("\u200b") in [t.name for t in tasks],
        r"(thread|DMA|chip) #": lambda say, _: say.text in {t.queue for t in tasks},
    }


RUNS = {
    "384": blocked,
    "two strips deep": lambda: host.blocked_time(
        1024, 1024, 40_000, host.Machine(ck.HD5870), block=512
    ),
    "of the lesson": lambda: host.blocked_time(
        5376, 5376, 3584, host.Machine(ck.HD5870), block=1792
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_number_is_the_timelines(name):
    run = RUNS[name]()
    player = ck.teach.larger.card_memory(run)
    assert_held(player, rules(run, ck.HD5870.memory_bytes, player))


def test_it_is_the_machines_card():
    half = ck.devices.HD5870
    half = type(half)(**{**vars(half), "memory_bytes": half.memory_bytes // 2})
    run = host.blocked_time(512, 512, 256, host.Machine(half), block=128)
    player = ck.teach.larger.card_memory(run)
    assert_held(player, rules(run, half.memory_bytes, player))


def test_what_a_kernel_reads_lies_on_the_card():
    """Lesson 10's questions, of the picture: a strip of A stays for a row of blocks; the path goes
    forth and back.
    """
    player, timeline = view("card_memory"), blocked()
    moments = np.linspace(0, timeline.seconds, len(player))
    names = {name: drawn(player, f"matrix {name}")["words"] for name in "ABC"}
    states = {
        n: frames(player, f"matrix {kind}", "shade")[:, i]
        for kind in "ABC"
        for i, n in enumerate(names[kind])
    }
    mults = [s for s in timeline.spans if s.task.stage == "mult"]
    for n, moment in enumerate(moments):
        running = [
            content.rstrip("'")
            for s in mults
            if s.start <= moment < s.end
            for content in s.task.reads.values()
        ]
        assert {name for name, state in states.items() if state[n] == 3} == set(running)
    path = [s.task.place for s in mults]
    assert path == [(i, j) for i in range(3) for j in (range(3), range(2, -1, -1))[i % 2]]
    assert np.isfinite(frames(player, "path", "x1")[-1]).sum() == 8
    assert (frames(player, "matrix C", "done")[-1] > 0).all()
    assert sum(s.task.name == "load2 A[1,0]" for s in timeline.spans) == 1, (
        "it comes once, for three blocks"
    )
