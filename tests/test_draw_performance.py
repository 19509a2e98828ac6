"""Speed over the size of a product."""

import re
from dataclasses import replace

import pytest
from pages import (
    drawn,
    reports,
    view,
)
from said import Said, assert_held, tick

import cypresskit as ck
from cypresskit import draw
from cypresskit.timing import simulate


def test_performance_separates_rows_of_other_boards_or_shapes():
    row = simulate("sgemm_tn", 64).row() | {
        "kernel": "a",
        "busy_ALU": 1,
        "busy_texture": 0,
        "gflops": 100.0,
    }
    row |= {"seconds": 1e-3, "clocks": 850_000}
    others = {
        "a, HD 5850": {"device": "HD 5850"},
        "a, HD 5870, k = 8": {"k": 8},
        "a, HD 5870, m = 8": {"m": 8},
        "a, HD 5870 (2)": {"gflops": 99.0},
    }
    text = str(
        draw.performance([row, *(row | {"gflops": 50.0} | change for change in others.values())])
    )
    for number, name in enumerate(("a, HD 5870", *others)):
        assert f"{name}: ceiling {'100' if not number else '99' if '(2)' in name else '50'}" in text
    vectors = draw.performance([row | {"m": n, "n": 1, "k": n} for n in (64, 128)])
    assert [caption[:9] for caption in vectors.captions] == ["N = 64. *", "N = 128. "]
    with pytest.raises(ValueError, match=r"rows of timing\.sweep"):
        draw.performance([{"kernel": "a", "n": 64, "gflops": 1.0, "bound": "bus", "busy_bus": 1.0}])


def test_published_points_are_the_hd_5870s():
    row = simulate("sgemm_tn", 64).row()
    assert "published 2014" in str(draw.performance([row, row | {"device": "HD 5850"}]))
    assert "published" not in str(draw.performance([row | {"device": "HD 5850"}]))


def test_performance_uses_the_clock_of_its_rows_device():
    fast = replace(
        ck.HD5870, clock_ghz=1.7, memory_gb_s=307.2
    )  # twice of both, under the same name
    texts = [str(draw.performance(["sgemm_tn"], [512], device)) for device in (ck.HD5870, fast)]
    ceilings = [int(text.partition("ceiling ")[2].partition(";")[0]) for text in texts]
    assert ceilings[1] == 2 * ceilings[0]


def test_performance_draws_rows_ceilings_and_published_points():
    player, (small, report) = view("performance"), reports()
    text, row, models = repr(player), report.row(), player.figures[0].references()
    assert f"N 512: {report.gflops:.0f}" in text and "published 2014 at N = 4352" in text
    why = f"{report.registers} registers, room for {report.active} wavefronts an engine"
    assert why in player.captions[-1] and why in drawn(player, "points sgemm_tn")["words"][1]
    assert "; 1 byte fetched for a multiply-add" in player.captions[-1], (
        "8 x 8: two words for eight"
    )
    runs = report.clocks / 0.85e9 * max(row["busy_ALU"], row["busy_texture"])
    assert f"ceiling {report.flops / runs / 1e9:.0f}" in text
    lines = [
        m
        for m in models
        if type(m).__name__ == "GlyphRenderer" and type(m.glyph).__name__ == "Line"
    ]
    with_launch, dotted = (
        next(m for m in lines if m.glyph.line_width == wide).data_source.data["y"][1]
        for wide in (1, 1.5)
    )
    assert with_launch / dotted == pytest.approx(runs / (runs + 225e-6), rel=1e-3), (
        "with the launch"
    )
    assert "never paused, without the launch" in player.html and "the same with it" in player.html
    assert small.bound == "too few wavefronts"
    picture = draw.performance([small.row()]).still()
    assert "; texture allows" in picture, "a unit has a ceiling, and too few wavefronts are none"
    ticks = re.findall(r'text-anchor="(?:middle|end)">(\d+)<', player.still())
    assert len(ticks) > 6 and all(len(tick.rstrip("0")) < 3 for tick in ticks), (
        "a still's axes have round numbers"
    )


def test_nothing_sticks_to_the_edge_of_a_chart_that_grew(show, page):
    page.set_viewport_size({"width": 60, "height": 600})
    show(view("performance"))
    for width in (120, 40, 1000):
        page.set_viewport_size({"width": width, "height": 600})
        page.wait_for_timeout(300)
    painted = page.evaluate(
        """() => [...Bokeh.documents[0].all_models].filter(m => m.type === "Plot").map(m => {
        const {canvas, ctx} = Bokeh.index.get_one(m).canvas_view.primary
        return ctx.getImageData(0, 0, 1, canvas.height).data.filter(part => part > 0).length
    })"""
    )
    assert painted == [0]


def test_what_its_points_say_are_the_reports_figures():
    of = {report.size[0]: report for report in reports()}

    def point(say: Said, shown):
        report = of[shown[0]]
        loads = report.bytes["L1"] / (report.flops / 2)
        room = [report.registers, report.active, report.wavefronts]
        assert f"bound by {report.bound};" in say.text
        return [shown[0], report.gflops, report.percent, *room, loads]

    def printed(say: Said, _):
        return [ck.published.kernels()["sgemm_tn"]["gflops_max"]]

    def ceiling(say: Said, _):
        """What the busiest unit would allow, without the launch, at the largest size."""
        report = reports()[1]
        busy = max(report.busy[unit] for unit in ("ALU", "texture", "LDS"))
        return [report.flops / (report.clocks * busy / 0.85e9) / 1e9]

    player = draw.performance([r.row() for r in reports()])
    rules = {
        r"N = #\. @: # Gflop/s, .*": point,
        r"@, simulated; \w+ allows #": ceiling,
        r"@, published #": printed,
        r"#": tick,
    }
    assert_held(player, rules)


def test_an_unsteady_launch_says_by_how_much_it_may_be_off():
    row = simulate("sgemm_tn", 64).row()
    steady, unsteady = (draw.performance([row | {"error": error}]) for error in (0.004, 0.071))
    assert "±" not in str(steady) + "".join(steady.captions)
    assert " ± 7 %" in str(unsteady)
    assert "Gflop/s ± 7 %" in unsteady.captions[0]
