"""The road: what it says is what was timed for it."""

import re

import numpy as np
import pytest
from conftest import JS, ROOT
from pages import drawn, frames
from said import Rule, Said, assert_held

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.road import FIGURES, FOOT, LEAST, LINE, ROOF, RUNGS, SCALE, RoadLaunch
from cypresskit.editing.steps import STEPS
from tools import clip, stored_figures


def sentence(rung) -> str:
    """What a rung says, from the figures alone."""
    gflops, ceiling, unit = FIGURES[rung.launch]
    kernel, n = rung.launch.kernel, rung.launch.n
    than = ""
    if rung.before:
        old = FIGURES[rung.before][0]
        other, size = rung.before.kernel, rung.before.n
        faster = gflops > old
        gain = gflops / old if faster else old / gflops
        there = "" if size == n else f" at N = {size}"
        than = f", {gain:.3g} times {'as fast as' if faster else 'slower than'}"
        than += f" {other}{there}, which does {old:.0f}"
    head = f"Lesson {rung.lesson:02}: {rung.name} ({kernel}, N = {n}): {gflops:.0f} Gflop/s{than}."
    return f"{head} Its busiest part, {unit}, would allow {ceiling:.0f}."


def rules() -> dict[str, Rule]:
    def spoken(say: Said, _):
        return all(line in map(sentence, RUNGS) for line in say.text.replace("*", "").split("\n"))

    def about(say: Said, _):
        rung = RUNGS[say.index]
        later = f"Lesson {rung.lesson:02}: {rung.name}. Its figures come with the lesson."
        return say.text.replace("*", "") in (sentence(rung), later)

    def figure(say: Said, _):
        return [FIGURES[RUNGS[say.index].launch][0]]

    def label(say: Said, shown):
        """A rung's number, or a line of its name or of what runs there; or the scale's."""
        if say.text in map(str, SCALE):
            part = (FOOT + LINE * say.index - say.cell("y")) / (FOOT - ROOF)
            gflops = LEAST * (ck.HD5870.peak_gflops("single") / LEAST) ** part
            return round(gflops) == int(say.text)
        if re.fullmatch(r"\d+", say.text):
            return [RUNGS[say.index].lesson]
        lines = {line for rung in RUNGS for line in (*rung.phrase.split("\n"), *rung.under)}
        lines |= {
            "The climb: Gflop/s at N = 2048, on a logarithmic scale",
            f"the roof: the chip's peak, {ck.HD5870.peak_gflops('single'):.0f} Gflop/s",
        }
        return say.text in lines | {f"{rung.lesson:02}" for rung in RUNGS}

    return {
        r"Lesson #: .*would allow #\.(\n.*)*": lambda say, shown: (
            about(say, shown) if say.where == "about" else spoken(say, shown)
        ),
        r"Lesson #: .* Its figures come with the lesson\.": about,
        r"#": lambda say, shown: (
            figure(say, shown) if say.where == "figures" else label(say, shown)
        ),
        r".*#.*": label,
    }


@pytest.mark.few
@pytest.mark.parametrize("lesson", [None, *range(14)])
def test_every_number_is_the_figures(lesson):
    player = draw.road(lesson)
    assert_held(player, rules())


@pytest.mark.slow
def test_the_roads_figures_are_the_models():
    pars = {RoadLaunch(step.good, step.n) for step in STEPS.values()}
    assert set(FIGURES) == pars | {
        launch for rung in RUNGS for launch in (rung.launch, rung.before) if launch
    }
    for launch in (
        RoadLaunch("sgemm_naive"),
        RoadLaunch("block_4x4"),
        RoadLaunch("block_8x8"),
        RoadLaunch("sgemm_tn_37"),
        RoadLaunch("sgemm_tn", style="best"),
        RoadLaunch("round_trip"),
    ):
        gflops, ceiling, unit = stored_figures.road(launch)
        assert [gflops, ceiling] == pytest.approx(FIGURES[launch][:2], rel=0.005), (
            "make it anew: python -m tools.stored_figures"
        )
        assert gflops <= ceiling and unit == FIGURES[launch][2]
    for name, picture in clip.STILLS.items():
        assert (ROOT / f"docs/pictures/{name}.svg").read_text() == picture().still(), (
            "make it anew: make clip"
        )


@pytest.mark.parametrize("lesson", range(14))
def test_a_lessons_road_hides_later_ones(lesson):
    road = draw.road(lesson)
    lit = np.flatnonzero(frames(road, "lit rung", "on")[0]).tolist()
    assert lit == [
        n
        for n, rung in enumerate(RUNGS)
        if f"{min(lesson, 12):02}: {rung.name}** (" in road.captions[0]
    ]
    shown = np.flatnonzero(frames(road, "figures", "value")[0]).tolist()
    assert shown == [n for n, rung in enumerate(RUNGS) if rung.lesson <= lesson]
    assert (
        str(road.about.values()).count("Gflop/s") == len(shown) == len(repr(road).splitlines()) - 1
    )
    (source,) = (ROOT / "notebooks/source").glob(f"{lesson:02}_*.md")
    shown = source.read_text().count(f"\nck.draw.road({lesson})")
    assert shown == (lesson in (0, 2, 12, 13))


def test_bars_are_as_high_as_their_figures_on_the_scale():
    """Equal heights are equal factors, as the scale's lines have it."""
    player = draw.road()
    height = drawn(player, "rungs")["h"]
    foot = np.nanmax(frames(player, "rungs", "y"), axis=0) + height / 2
    lines = [drawn(player, f"scale {gflops}")["y"] for gflops in SCALE]
    high = foot - np.array(lines)  # (lines, rungs)
    for n, rung in enumerate(RUNGS):
        slope = np.log(SCALE[-1] / SCALE[0]) / (high[-1, n] - high[0, n])
        read = SCALE[0] * np.exp(slope * (height[n] - high[0, n]))
        assert read == pytest.approx(FIGURES[rung.launch].gflops, rel=0.01)


@pytest.mark.parametrize(("width", "high"), [(1366, 768), (1040, 700)])
@pytest.mark.parametrize("lesson", [0, 12])
def test_no_words_collide_and_all_stays_under_the_roof(page, show, width, high, lesson):
    player = draw.road(lesson)
    page.set_viewport_size({"width": width, "height": high})
    show(player)
    page.evaluate(JS.settled)
    assert page.evaluate(JS.faults) == []
    assert page.evaluate(JS.outside) == []
    box = page.locator(".picture").first
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    tops = frames(player, "rungs", "y")[0] - drawn(player, "rungs")["h"] / 2
    roof = np.array(drawn(player, "roof")["y"])
    assert (tops[np.isfinite(tops)] > roof[np.isfinite(tops)]).all()
