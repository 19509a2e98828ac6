"""The road: what it says is what was timed for it."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import JS, ROOT
from pages import drawn, frames
from said import Rule, Said, assert_held, unheld

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.road import FIGURES, FOOT, LINE, ROOF, RUNGS, Figure, RoadLaunch
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.generated import block_kernel, write
from cypresskit.teach import climb
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
        if say.text in ("1000", "2000"):
            foot = FOOT + LINE * say.index
            gflops = (foot - say.cell("y")) / (FOOT - ROOF) * ck.HD5870.peak_gflops("single")
            return round(gflops) == int(say.text)
        if re.fullmatch(r"\d+", say.text):
            return [RUNGS[say.index].lesson]
        lines = {line for rung in RUNGS for line in (*rung.phrase.split("\n"), *rung.under)}
        lines |= {
            "The climb: Gflop/s at N = 2048",
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


@pytest.mark.parametrize("lesson", [None, *range(14)])
def test_every_number_is_the_figures(lesson):
    player = draw.road(lesson)
    assert_held(player, rules())


def test_a_ceiling_in_place_of_a_speed_is_found(monkeypatch):
    module = sys.modules["cypresskit.draw.road"]
    swapped = {
        launch: Figure(ceiling, gflops, unit) for launch, (gflops, ceiling, unit) in FIGURES.items()
    }
    monkeypatch.setattr(module, "FIGURES", swapped)
    assert unheld(draw.road(), rules())


def test_the_roads_figures_are_the_models():
    pars = {RoadLaunch(*step.good) for step in climb.STEPS.values()}
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
    shown = source.read_text().count(f"\nck.draw.road({lesson}, ")
    assert shown == (lesson in (0, 2, 12, 13))


def test_own_bars_stand_behind_the_climb_with_their_figures():
    first = ck.simulate(write(4, 4, 1), 512)
    second = ck.kernel(write(8, 8, 2).text, name="better")
    player = draw.road(1, mine={"Ada's first": first, "better": second})
    speed = ck.simulate(second, 2048).gflops
    gain = speed / first.gflops
    naive = FIGURES[RoadLaunch("sgemm_naive")].gflops
    own = [line.replace("**", "") for line in player.captions[0].split("\n") if "Yours" in line]
    assert own[0].startswith(f"Yours: Ada's first (N = 512): {first.gflops:.0f} Gflop/s, ")
    assert f"which does {naive:.0f}" in own[0]
    assert len(own) == 1, "the other belongs to lesson 02, or 12"
    better = next(words[0][1] for words in player.about.values() if "better" in words[0][1])
    assert f"{speed:.0f} Gflop/s, {gain:.3g} times as fast as your last" in better
    for mine in (first, [first], {"": first}):
        assert "Yours" in draw.road(3, mine=mine).captions[0]


def test_what_is_no_bar_of_one_s_own_is_rejected():
    with pytest.raises(TypeError, match=r"mine is the name of a kernel .* not 7"):
        draw.road(0, mine=[7])
    with pytest.raises(KeyError, match="Did you mean `sgemm_tn`"):
        draw.road(0, mine="sgemm_tnn")
    with pytest.raises(TypeError, match="idle's has no flops"):
        draw.road(1, mine=replace(ck.simulate("sgemm_naive", 64), kernel="idle", flops=0))


@pytest.mark.parametrize("own", [0, 3])
def test_every_rung_is_on_the_stage(own, monkeypatch):
    seen: dict = {}
    stage, boxes = Sheet.stage, Sheet.boxes

    def staged(self, label, width, *more, **how):
        seen["width"] = width
        return stage(self, label, width, *more, **how)

    def boxed(self, name, x, y, w, *more, **how):
        seen[name] = np.asarray(x) - np.asarray(w) / 2, np.asarray(x) + np.asarray(w) / 2
        return boxes(self, name, x, y, w, *more, **how)

    monkeypatch.setattr(Sheet, "stage", staged)
    monkeypatch.setattr(Sheet, "boxes", boxed)
    draw.road(13, mine=[ck.simulate("sgemm_tn", 128)] * own)
    left, right = seen["rungs"]
    assert len(left) == len(RUNGS) + own
    assert left.min() >= 0 and right.max() <= seen["width"]


def own_bars() -> dict:
    """A bar for each step of the climb that keeps one."""
    blocks = {side: ck.simulate(block_kernel(side, side), 2048) for side in (2, 4, 8)}
    eights = {f"my {n:02}": blocks[8] for n in (2, 3, 4, 5)}
    names = {"00": "sgemm_naive", "06": "dgemm_tn", "07": "sgemm_64x64_lds", "12": "sgemm_tn"}
    reports = {f"my {n}": ck.simulate(name, 2048) for n, name in names.items()}
    larger = {"my contest": reports["my 12"], "my larger N": ck.simulate("sgemm_tn", 4352)}
    return reports | eights | {"my 01 2x2": blocks[2], "my 01": blocks[4]} | larger


def test_own_bars_stand_beside_the_books_of_their_step():
    player = draw.road(13, mine=own_bars())
    x = drawn(player, "rungs")["x"]
    order = np.lexsort((x, frames(player, "rungs", "y")[0] > LINE))
    is_own = {n for n in range(len(x)) if player.about[n][-1][1].startswith("**Yours")}
    assert len(is_own) == 12
    beside = {}
    book = ""
    for n in order:
        name = re.match(r"\*\*(?:Yours|Lesson \d+): (.*?)\*\*", player.about[n][-1][1])[1]
        if n in is_own:
            beside[name] = book
        else:
            book = name
    assert beside == {
        "my 00": "no block",
        "my 01 2x2": "4 x 4 block",
        "my 01": "4 x 4 block",
        **{f"my {n:02}": "8 x 8 block" for n in (2, 3, 4, 5)},
        "my 06": "double",
        "my 07": "NN by the LDS",
        "my 12": "two steps a turn",
        "my contest": "two steps a turn",
        "my larger N": "a larger N",
    }
    assert player.figures[0].x_range.end <= 1060, "it fits a notebook's column"


@pytest.mark.parametrize(("width", "high"), [(1366, 768), (1040, 700)])
@pytest.mark.parametrize("lesson", [0, 12])
@pytest.mark.parametrize("mine", [False, True])
def test_no_words_collide_and_all_stays_under_the_roof(page, show, width, high, lesson, mine):
    player = draw.road(lesson, mine=own_bars() if mine else ())
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
