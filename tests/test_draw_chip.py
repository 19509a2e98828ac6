"""The chip: each number in the picture is the report's, of launches that were simulated whole and
of such as weren't.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from pages import (
    frames,
    reports,
    view,
)
from said import Rule, Said, assert_held, parts, value

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.chip_scene import ENGINE_KEYS, SCENE_KEYS
from cypresskit.timing import Report, simulate

FRAMES = 120
#: What the control of lesson 00 offers, and the launches of lesson 12.
CHOICES = [
    (kernel, n)
    for kernel in ("sgemm_tn", "dgemm_tn", "sgemm_naive")
    for n in (256, 512, 1024, 2048)
]


class Scene:
    """A report, as the picture should tell it, computed from the report alone."""

    def __init__(self, report: Report) -> None:
        self.report, self.use = report, report.use
        self.engine, self.start, self.end = report.use.wavefronts.T
        self.clocks = np.linspace(0, report.use.clocks[-1], FRAMES)
        self.skipped = report.wavefronts - len(self.engine)

    def clock(self, frame: int) -> float:
        """The clock in the simulated time."""
        return float(self.clocks[frame])

    def now(self, frame: int) -> np.ndarray:
        return (self.start < self.clock(frame)) & (self.end > self.clock(frame))

    def counts(self, frame: int) -> tuple[float, int, int, int]:
        """Clock, wavefronts that run, engines, and wavefronts that are done."""
        now = self.now(frame)
        done = int((self.end <= self.clock(frame)).sum())
        return self.clock(frame), int(now.sum()), len(set(self.engine[now])), done

    def share(self, unit: str, frame: int, part: int) -> float:
        """A unit's share in percent: in the frame's interval, in the last of the whole time.

        All parts of a kind are on average as busy as the report says.
        """
        shares = self.use.shares[unit][:, part]
        if frame == FRAMES - 1:
            busy = self.use.shares[unit].mean(axis=0)
            if self.skipped and busy.any():
                busy = busy * self.report.busy[unit] / busy.mean()
            return 100 * min(busy[part], 1)
        interval = np.searchsorted(self.use.clocks, self.clock(frame), "right") - 1
        return 0 if frame == 0 else 100 * np.nan_to_num(shares[interval])


def rules(reports: list[Report]) -> dict[str, Rule]:
    """What the picture's numbers have to be."""
    scenes = [Scene(report) for report in reports]
    device = reports[0].device

    def at(say: Said) -> tuple[Scene, int]:
        return scenes[say.frame // FRAMES], say.frame % FRAMES

    def caption(say: Said, _):
        scene, frame = at(say)
        r, (clock, now, engines, done) = scene.report, scene.counts(frame)
        sampled = [] if r.simulated == 1 else [100 * r.simulated]
        if scene.skipped:
            sampled = [len(scene.engine), r.wavefronts, r.clocks]
        bound = [value(n) for n in parts(r.bound)[1]]  # of a channel
        over = [r.gflops, r.percent, *bound] if frame == FRAMES - 1 else []
        rest = [now, engines, device.simd_engines, done]
        return [*r.size, clock, scene.clocks[-1], *sampled, *rest, *over]

    def wavefront(say: Said, shown):
        scene, number = scenes[say.index // SCENE_KEYS], say.index % SCENE_KEYS
        if shown[0] != number:
            return [number]
        when = [scene.start[number], scene.end[number]]
        return [number, *scene.report.size[:1], scene.engine[number], *when]

    def engine(say: Said, shown):
        scene, number = scenes[say.index // SCENE_KEYS], say.index % SCENE_KEYS - ENGINE_KEYS
        ran = np.flatnonzero(scene.engine == number).tolist()
        more = [len(ran) - 12] if len(ran) > 12 else []
        size = [scene.report.size[0]]
        return [number, *size, *ran[:12], *more]

    def unit(of: str) -> Rule:
        def rule(say: Said, _):
            scene, frame = at(say)
            return [say.index, scene.share(of, frame, say.index)]

        return rule

    def busy(say: Said, _):
        scene, frame = at(say)
        return [say.index, (scene.engine[scene.now(frame)] == say.index).sum()]

    fit = max(report.active_wavefronts for report in reports) * device.simd_engines
    return {
        r"@ # x # x # on the @\. Clock .*": caption,
        r"Wavefront # of N = #: runs on SIMD engine # from clock # to #\.": wavefront,
        r"SIMD engine # at N = #: .*": engine,
        r"SIMD engine #: # wavefronts": busy,
        r"SIMD engine #, ALU: busy # %": unit("ALU"),
        r"SIMD engine #, texture: busy # %": unit("texture"),
        r"L2 slice #: busy # %": unit("L2"),
        r"memory channel #: busy # %": unit("DRAM"),
        r"engine #|L2 #|channel #|#": lambda say, _: [say.index],
        r"running wavefronts \(at most #\)": lambda *_: [fit],
        r"(?:[Cy]|Simulated): one tile per # wavefronts": lambda say, _: [
            -(-len(at(say)[0].engine) // 1024)
        ],
    }


@pytest.mark.few
@pytest.mark.parametrize(("kernel", "n"), CHOICES)
def test_every_number_is_the_reports(kernel, n):
    report = simulate(kernel, n)
    player = draw.chip([report])
    assert_held(player, rules([report]))
    last, ran = player.captions[-1], len(report.use.wavefronts)
    assert f"{report.clocks:,.0f}" in last, "it ends as the report"
    assert f" {ran} are done: {report.gflops:.0f} Gflop/s" in last


def test_every_number_is_its_scenes_reports():
    reports = [simulate("sgemm_tn", n) for n in (128, 1024, 2048)]
    assert_held(draw.chip(reports), rules(reports))


@pytest.mark.parametrize(("kernel", "n"), CHOICES)
def test_the_last_frame_has_the_whole_launchs_shares(kernel, n):
    report = simulate(kernel, n)
    player = draw.chip([report])
    for unit, shown in (("ALU", "ALU"), ("texture", "texture"), ("L2", "L2"), ("DRAM", "DRAM")):
        percent = next(
            t.frames for t in player.tracks if t.source.name == shown and t.column == "percent"
        )
        assert percent[-1].mean() == pytest.approx(100 * report.busy[unit], abs=1), unit


def test_a_vectors_chip_says_so():
    player = draw.chip(simulate("sgemv_n_reduce4", 256))
    assert (
        "y: one tile per wavefront" in player.still()
        and "**sgemv_n_reduce4 256 x 256**" in player.captions[0]
    )
    assert len(np.unique(frames(player, "map", "x"))) == 2, "four tiles are no column"


def test_the_chip_shows_each_wavefront_where_and_when_it_ran():
    """Question 1 of lesson 00, asked of the picture: at N = 128 four engines have something to
    do.
    """
    player = view("chip_sizes")
    works, wide = frames(player, "engines", "shade"), frames(player, "dots", "w")
    counts = [
        re.search(r"(\d+) wavefronts are running .* (\d+) are done", c) for c in player.captions
    ]
    running, done = (np.array([int(count[n]) for count in counts]) for n in (1, 2))
    for n, report in enumerate(reports()):
        engine, start, end = report.use.wavefronts.T
        scene = slice(120 * n, 120 * n + 120)
        assert works[scene].max(axis=0).sum() == len(set(engine)) == (4, 20)[n]
        for frame, clock in enumerate(np.linspace(0, report.use.clocks[-1], 120)):
            now = (start < clock) & (end > clock)
            assert (running[scene][frame], done[scene][frame]) == (now.sum(), (end <= clock).sum())
            assert np.flatnonzero(works[scene][frame]).tolist() == sorted(
                {int(e) for e in engine[now]}
            )
            assert (wide[scene][frame] > 1).sum() == now.sum(), (
                "as many dots as wavefronts run, and no other"
            )
    assert player.figures[0].tags[0]["scenes"] == [[0, 120], [120, 120]]


def test_the_chips_bars_are_the_reports_shares():
    use = reports()[1].use
    at = np.clip(
        np.searchsorted(use.clocks, np.linspace(0, use.clocks[-1], 120), "right") - 1,
        0,
        len(use.clocks) - 2,
    )
    for name in ("ALU", "texture", "L2", "DRAM"):
        assert np.array_equal(
            frames(view("chip"), name, "percent")[1:-1], np.round(100 * use.shares[name][at])[1:-1]
        )
    assert len(np.unique(frames(view("chip"), "texture", "percent")[60])) > 1, (
        "each engine has its own"
    )


@pytest.mark.parametrize("engines", [2, 20, 24, 40, 120])
def test_the_chip_has_room_for_all_its_engines(engines):
    board = replace(ck.HD5870, simd_engines=engines)
    fig = draw.chip(simulate("sgemm_tn", 64, device=board)).figures[0]
    boxes = next(r for r in fig.renderers if r.data_source.name == "engines")
    (x, y), box = (boxes.data_source.data[axis] for axis in "xy"), boxes.glyph
    assert len(x) == len({*zip(x, y)}) == engines
    assert (
        x.max() + box.width / 2 < fig.x_range.end and y.max() + box.height / 2 < fig.y_range.start
    )


@pytest.mark.parametrize("kernel", ["sgemm_tn", "sgemm_64x64_lds", "dgemm_nn"])
def test_use_over_time_adds_up_to_the_reports_shares(kernel):
    report = simulate(kernel, 640)
    assert report.simulated == 1 and report.use.clocks[-1] == report.clocks
    for unit, share in report.busy.items():
        assert report.use.shares[unit].mean() == pytest.approx(share, abs=0.002)
    small = simulate(kernel, 128)
    assert (
        small.wavefronts < 20
        and (small.use.shares["ALU"].max(axis=0) > 0).sum() == small.wavefronts
    )
