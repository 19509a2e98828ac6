"""The memory channels: what they say is what the reports say."""

import numpy as np
import pytest
from pages import (
    frames,
    view,
)
from said import Rule, Said, assert_held, on_scale, unheld

from cypresskit import draw
from cypresskit.timing import Report, simulate

FRAMES = 120
KERNELS = [f"sgemv_{kind}" for kind in ("n", "t_reduce4", "n_reduce2", "n_reduce4")]


def rules(reports: list[Report], player) -> dict[str, Rule]:
    of = {report.kernel: report for report in reports}
    end = max(report.use.clocks[-1] for report in reports)
    longest = max(reports, key=lambda report: report.use.clocks[-1]).kernel
    head = frames(player, f"head {longest}", "x")[:, 0]
    thousands = on_scale(head, np.linspace(0, end / 1000, FRAMES))

    def report(say: Said) -> Report:
        return of[say.where.split(" ")[-1]]

    def caption(say: Said, _):
        now = end * say.frame / (FRAMES - 1)
        done = [name for name, r in of.items() if r.use.clocks[-1] <= now + 1e-6]
        said, _, winner = say.text.partition(" **")
        assert said.endswith(f"Done: {', '.join(done) or 'none'}."), say.text
        if say.frame < FRAMES - 1 or len(of) < 2:
            return [now]
        order = sorted(of, key=lambda name: of[name].clocks)
        assert winner.startswith(f"{order[0]}** ") and winner.endswith(f" as {order[-1]}.")
        return [now, of[order[-1]].clocks / of[order[0]].clocks]

    def tick(say: Said, _):
        """A tick of the axis of time, in thousands of clocks, where the play head is then."""
        return [thousands(say.cell("x"))]

    def share(unit: str) -> Rule:
        return lambda say, _: [100 * report(say).use.shares[unit][say.index].mean()]

    def finish(say: Said, _):
        r = report(say)
        return [r.clocks, 100 * r.busy["DRAM"], 100 * r.busy["DRAM rows"]]

    return {
        r"Clock #\. Done: .*": caption,
        r"sending for # % of the channels' time": share("DRAM"),
        r"waiting for rows to open for # % of the channels' time": share("DRAM rows"),
        r"SIMD engine #": lambda say, _: [say.index],
        r"wavefronts: #": lambda _, shown: (
            shown if shown[0] in [r.wavefronts for r in reports] else []
        ),
        r"done at clock #: channels sent for # % of it, waited for rows for # %": finish,
        r"#": tick,
    }


def made(n: int = 2048) -> list[Report]:
    return [simulate(kernel, n) for kernel in KERNELS]


def test_every_number_is_the_reports():
    player = draw.channels(made())
    assert_held(player, rules(made(), player))


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_interval_has_more_than_all_of_the_channels_time(kernel):
    report = simulate(kernel, 2048)
    together = report.use.shares["DRAM"] + report.use.shares["DRAM rows"]
    assert together.mean(axis=1).max() <= 1 + 1e-9


def test_an_engine_that_had_work_shows_it_when_all_is_done():
    player = draw.channels(made())
    for report in made():
        state = next(
            t.frames
            for t in player.tracks
            if (t.source.name, t.column) == (f"engines {report.kernel}", "shade")
        )
        had_work = np.isin(np.arange(report.device.simd_engines), report.use.wavefronts[:, 0])
        assert ((state[-1] == 2) == had_work).all() and not (state[0] == 2).any()


def test_another_launchs_figures_are_found():
    player = draw.channels(made())
    assert unheld(player, rules(made(1024), player))


def test_the_channels_strips_are_the_reports_shares():
    """Lesson 08's question: twice the wavefronts are a quarter faster. They fill what the others
    left empty of the channels' time, and half of it goes by while rows open.
    """
    player = view("channels")
    filled = {}
    for name in ("sgemv_n_reduce2", "sgemv_n_reduce4"):
        report = simulate(name, 2048)
        tall = [frames(player, f"{unit} {name}", "h") / 62 for unit in ("DRAM", "DRAM rows")]
        assert np.isnan(tall)[:, 0].all(), "nothing is told before it is played"
        sums = [high[-1].mean() for high in tall]
        assert sums == pytest.approx([report.busy["DRAM"], report.busy["DRAM rows"]], rel=0.02)
        filled[name] = sum(sums)
    # Two work-items to a result leave a quarter of the time empty, so only four are held to a full
    # one.
    assert filled["sgemv_n_reduce4"] > 0.95
    assert 0.70 < filled["sgemv_n_reduce2"] < 0.76
    assert report.bound == "DRAM rows" and sums[1] == pytest.approx(0.5, abs=0.05)
    assert (
        "16 wavefronts on 16 engines" in player.figures[0].tags[0]["question"]
        and player.figures[0].tags[0]["right"] == "a quarter faster"
    )
