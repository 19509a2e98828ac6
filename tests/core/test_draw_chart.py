"""Charts: each mark is where its datum is, each label beside its thing, and no text on another."""

import random
import re
from collections import defaultdict
from string import Formatter

import numpy as np
import players
import pytest
from charted import WIDTHS, Charted, Point, assert_kinds_told
from sampling import seeded

import cypresskit as ck
from cypresskit import draw, published
from cypresskit.draw import theme
from cypresskit.draw.chart import NARROW, WIDE, Axes, Chart, Scale, number_text, spread
from cypresskit.draw.line_chart import scale_up
from cypresskit.draw.published_charts import CHARTS
from cypresskit.draw.stored_curves import stored

CURVES = [name for name, chart in CHARTS.items() if chart.y != "%"]


def random_series(seed):
    """Lines of any number, length and height, some of which end at one place."""
    rng = random.Random(seed)
    top = 10 ** rng.uniform(-2, 4)
    places = sorted(rng.sample(range(1, 5000), rng.randint(2, 30)))
    series = {}
    for n in range(rng.randint(1, 6)):
        xs = places if rng.random() < 0.7 else rng.sample(places, rng.randint(1, len(places)))
        name = "".join(rng.choices("abcdefgh ijk", k=rng.randint(1, 30))).strip() + f" {n}"
        series[name] = {x: top * rng.choice((rng.random(), 0.5, 1)) for x in xs}
    return series


def assert_numbered(drawn, mark, number):
    """Fail unless a number is beside its mark, in bold."""
    near = [
        label
        for label in drawn.labels
        if label.text.split(", ")[0].split(" ")[0] == number and "bold" in label.kind
        if label.away(mark) < 30
    ]
    assert near, (number, mark)


# -- positions


@WIDTHS
@pytest.mark.parametrize("name", CURVES)
def test_curves_and_rings_are_where_the_model_and_the_papers_are(name, width):
    chart = draw.published(name)
    drawn = Charted(chart, width)
    has_bands = any(line.startswith("band ") for line in drawn.lines)
    assert ("Bands: " in chart.about) == has_bands, "what is announced can be seen"
    for series, rows in stored()[name].items():
        widest, most = (max(values) for values in zip(*((y * error, y) for _, y, error in rows)))
        assert (f"band {series}" in drawn.lines) == (widest > 0.05 * most), series
        assert len(drawn.marks[series]) == len(rows) == len(drawn.lines[series])
        for (x, y, error), (left, down) in zip(rows, drawn.lines[series], strict=True):
            drawn.assert_shown(series, x, y)
            assert drawn.value("y", down) == pytest.approx(y, abs=drawn.step("y", down)), series
            assert drawn.value("x", left) == pytest.approx(x, abs=drawn.step("x", left)), series
            if f"band {series}" in drawn.lines:
                band = drawn.lines[f"band {series}"]
                at = band[np.abs(band[:, 0] - left) < 0.06][:, 1]
                ends = sorted(drawn.value("y", at))
                assert ends == pytest.approx([y * (1 - error), y * (1 + error)], rel=0.01)
    for series, (x, y, _) in CHARTS[name].points.items():
        drawn.assert_shown(f"published {series}", x, y)
        assert_numbered(drawn, drawn.marks[f"published {series}"][0], f"{y:,g}")
    curves = {series: {x: y for x, y, _ in rows} for series, rows in stored()[name].items()}
    for _, quoted, *_ in Formatter().parse(CHARTS[name].finding):
        if quoted:
            series, _, at = quoted.partition(" at ")
            curve = curves[series]
            x = float(at or max(curve, key=curve.get))
            dot = drawn.marks[series][[*curve].index(x)]
            assert_numbered(drawn, dot, number_text(curve[x]))
    for level in CHARTS[name].levels:
        (left, down), (right, other) = drawn.lines[f"level {level.series} {level.words}"]
        assert down == other
        assert drawn.value("y", down) == pytest.approx(level.y, abs=drawn.step("y", down))
        begin = level.least if level.extreme is min else 0
        told = [label for label in drawn.labels if f"{level.y:,g}" in label.text]
        assert not begin or min(label.away(Point(right, down, "")) for label in told) < 20
        assert not begin or drawn.value("x", left) == pytest.approx(begin, rel=0.01)
        assert 0 < right - left < drawn.width / (4 if begin else 1), (
            "short if it holds from there on"
        )


@WIDTHS
@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
@seeded(8)
def test_any_lines_are_where_their_numbers_are(seed, log, width):
    """And each is named at its end, in the order of their ends, or at its start if all ends meet;
    no text is on another.
    """
    series = {
        n: {x: y + 1e-3 for x, y in curve.items()} for n, curve in random_series(seed).items()
    }
    drawn = Charted(
        draw.line_chart(series, "x", "y", kind="modeled", about="any", log=log), width, log
    )
    for name, curve in series.items():
        for x, y in curve.items():
            drawn.assert_shown(name, x, y)
    assert not drawn.overlaps() and (width == NARROW or not drawn.texts_on_lines())
    if len(series) > 1 and len({curve[max(curve)] for curve in series.values()}) == 1:
        boxes = {label.text: label.box for label in drawn.labels if label.text in series}
        assert set(boxes) == set(series)
        for name, (left, top, right, bottom) in boxes.items():
            start = min(drawn.marks[name], key=lambda mark: mark.x)
            assert max(left - start.x, start.x - right, top - start.y, start.y - bottom) < 30
        return
    ends = {label.text: label.box for label in drawn.labels if label.kind == "end"}
    assert set(ends) == set(series)
    middles = {name: (box[1] + box[3]) / 2 for name, box in ends.items()}
    last = {name: max(marks, key=lambda mark: mark.x).y for name, marks in drawn.marks.items()}
    if width == WIDE:
        by_end = sorted(series, key=lambda name: (last[name], middles[name]))
        assert by_end == sorted(series, key=middles.__getitem__)
        assert all(abs(middles[name] - last[name]) <= 15 * len(series) for name in series)
    else:
        assert all(drawn.away(name, name) < 30 for name in series)


@WIDTHS
def test_a_roofline_has_its_roofs_and_kernels_where_they_are(width):
    """A block of b x b does b/4 flops for each byte; one of 4 x 8 as many as one of 16/3."""
    reports = [ck.simulate("sgemm_tn_stream", 128), ck.simulate("sgemm_tn", 256)]
    roofline = ck.teach.why_blocks.roofline
    chart = roofline(reports, "yours")
    drawn = Charted(chart, width)
    assert_kinds_told(drawn, f"{chart.title} {chart.about}")
    assert not drawn.texts_on_lines() and not drawn.overlaps()
    drawn.assert_shown("4 x 8", 4 / 3, reports[0].gflops)
    drawn.assert_shown("8 x 8", 2, reports[1].gflops)
    for roof, rate in (("texture units", 1088.0), ("L2 cache", 435.2), ("memory", 153.6)):
        for left, down in drawn.lines[f"roof {roof}"]:
            limit = min(2720.0, rate * drawn.value("x", left))
            assert drawn.value("y", down) == pytest.approx(limit, rel=0.02), roof
    printed = Charted(roofline(), width)
    for kernel in ("sgemm_tn", "sgemm_64x64_lds", "sgemm_64x64"):
        printed.assert_shown(kernel, 2, published.kernel(kernel)["gflops_max"])
    assert f"{reports[0].gflops:,.0f}, " in chart.title
    assert re.match("sgemm_tn does 2,014 .* 93 % .* 1,450, 67 %", roofline().title)
    for kernel, (mark,) in [*drawn.marks.items(), *printed.marks.items()]:
        gap = (drawn if kernel in drawn.marks else printed).lines[f"gap {kernel}"]
        assert gap[0] == pytest.approx((mark.x, mark.y), abs=0.1), "it begins at the kernel"


@WIDTHS
@seeded(20)
def test_a_noted_number_is_beside_its_point(seed, width):
    rng = random.Random(seed)
    heights = sorted(rng.uniform(1, 900) for _ in range(10))
    curve = dict(zip(range(0, 1000, 100), heights[:: rng.choice((-1, 1))]))
    at = {("a line", x): words for x, words in zip(rng.sample([*curve], 2), ("", "of them"))}
    drawn = Charted(
        draw.line_chart({"a line": curve}, "x", "y", kind="counted", about="one", notes=at), width
    )
    points = sorted(drawn.marks["a line"])
    for (_, x), words in at.items():
        assert_numbered(drawn, points[x // 100], number_text(curve[x]))
        text = f"{number_text(curve[x])} {words}".strip()
        (label,) = (label for label in drawn.labels if label.text == text)
        ways = [label.away(point) for point in points]
        assert min(ways) + 2.5 > ways[x // 100] or ways[x // 100] > 20, "nearest, or a line leads"


@WIDTHS
def test_two_noted_numbers_above_each_other_are_compared(width):
    """If they are of one kind."""
    lines, notes = {"a": {1: 200}, "b": {1: 50}}, {("a", 1): "", ("b", 1): ""}
    for kind in {"a": "modeled", "b": "modeled"}, {"a": "modeled", "b": "counted"}:
        chart = draw.line_chart(lines, *"xy", kind=kind, about="two", notes=notes)
        told = {label.text for label in Charted(chart, width).labels}
        assert ("4.00 x" in told) == (len({*kind.values()}) == 1)


def test_no_line_of_a_chart_ends_inside_of_a_quantity():
    told = theme.tied("8 x 8 at N = 9 does 7 Gflop/s, -1 % of it")
    assert told.replace("\xa0", "_") == "8_x_8_at N_=_9_does 7_Gflop/s, -1_% of it"


# -- kinds of numbers


@WIDTHS
@pytest.mark.parametrize("name", players.CHARTS)
def test_each_mark_says_of_which_kind_its_number_is_and_no_line_goes_through_a_text(name, width):
    """A label on another line would seem to be that line's."""
    chart = players.CHARTS[name]()
    drawn = Charted(chart, width)
    assert_kinds_told(drawn, f"{chart.title} {chart.about}")
    assert not drawn.texts_on_lines() and not drawn.overlaps()


def test_a_quotient_is_not_called_measured():
    """Of 37 registers the paper printed by how much they are slower, of 25 their speed."""
    speeds = {"sgemm_tn": 2100.0, "sgemm_tn_37": 1600.0}
    chart = ck.teach.build_the_clock.growing({"units": speeds, "pauses": speeds})
    drawn = Charted(chart, WIDE)
    assert_kinds_told(drawn, chart.about)
    assert [drawn.kinds[f"{name} published"] for name in speeds] == ["measured", "published"]
    assert "bars; sgemm_tn_37's from a published ratio" in chart.about


# -- labels


@WIDTHS
@seeded(20)
def test_rings_and_dots_have_their_numbers_beside_them_and_no_text_is_on_another(seed, width):
    """Anywhere on the axes, also at one place."""
    rng = random.Random(seed)
    across, up = Scale("N", 1, 1000, rng.random() < 0.5), Scale("Gflop/s", 1, 900)
    near = [(rng.uniform(5, 990), rng.uniform(5, 890)) for _ in range(2)]
    rings = [(x * rng.uniform(0.999, 1), y * rng.uniform(0.9, 1)) for x, y in near * 2]
    dots = [(rng.uniform(1, 1000), rng.uniform(1, 900)) for _ in range(3)]

    def paint(at):
        axes = Axes(at, across, up, ["one line", "another"])
        for n, (x, y) in enumerate(rings):
            axes.dot(f"ring {n}", x, y, "read", "measured", "said", f"r{n}: {y:.0f}", is_ring=True)
        for n, (x, y) in enumerate(dots):
            axes.dot(f"dot {n}", x, y, "c", "modeled", "said", f"d{n}: {y:.0f}")
        for name, y in (("one line", 400), ("another", 401)):
            axes.line(name, (1, 1000), (y, y), "soft", "counted")
            axes.end(y, name, "soft")
        return axes

    drawn = Charted(Chart("A finding", paint), width)
    assert not drawn.overlaps()
    for kind, points in (("ring", rings), ("dot", dots)):
        for n, (x, y) in enumerate(points):
            drawn.assert_shown(f"{kind} {n}", x, y)
            (mark,) = drawn.marks[f"{kind} {n}"]
            (label,) = (one for one in drawn.labels if one.text == f"{kind[0]}{n}: {y:.0f}")
            left, top, right, bottom = label.box
            assert max(left - mark.x, mark.x - right, 0) < 45, label
            assert max(top - mark.y, mark.y - bottom, 0) < 90, label


@WIDTHS
def test_a_part_of_a_bar_is_as_wide_as_it_says_and_is_beside_its_name(width):
    drawn, bars = Charted(draw.published("li_stages"), width), defaultdict(list)
    for mark in drawn.marks["shares"]:
        bars[mark.words.rsplit(", ", 2)[0]].append(mark)
    assert len({marks[0].x for marks in bars.values()}) == 1 < len(bars)
    for name, marks in bars.items():
        (label,) = (label for label in drawn.labels if label.text == name)
        assert label == min(drawn.labels, key=lambda label: label.away(marks[0]))
        assert [mark.x + mark.wide for mark in marks] == pytest.approx(
            [*(mark.x for mark in marks[1:]), drawn.width], abs=0.2
        )
        for mark in marks:
            percent = float(mark.words.split(": ")[1].removesuffix(" %"))
            whole = drawn.width - marks[0].x
            assert 100 * mark.wide / whole == pytest.approx(percent, abs=0.1)


@WIDTHS
def test_a_line_that_ends_early_has_its_label_at_its_end(width):
    lines = {"short": {2: 24, 10: 68}, "long": {5: 9, 16: 29}}
    kinds = {"short": "modeled", "long": "measured"}
    drawn = Charted(draw.line_chart(lines, "warps", "percent", kind=kinds, about="two"), width)
    (box,) = (label.box for label in drawn.labels if label.text == "short, modeled")
    end = drawn.marks["short"][-1]
    assert 0 < box[0] - end.x < 20 and box[1] < end.y < box[3]


@seeded(30)
def test_on_a_phone_a_label_is_beside_its_own_line_and_no_line_is_on_it(seed):
    """Straight lines, which may cross; their names have no room beside the axes."""
    rng = random.Random(seed)
    starts, ends = (rng.sample(range(0, 1001, 250), 3) for _ in range(2))
    lines = {f"a longer name, {n}": {0: starts[n], 9: ends[n]} for n in range(3)}
    drawn = Charted(draw.line_chart(lines, "x", "y", kind="counted", about="lines"), NARROW)
    assert not drawn.texts_on_lines() and not drawn.overlaps()
    for name in lines:
        assert all(drawn.away(name, name) < drawn.away(name, other) + 2.5 for other in lines)


@seeded(30)
def test_labels_that_are_spread_are_apart_in_order_and_as_near_as_can_be(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.uniform(-20, 320, rng.integers(0, 12))
    places = spread(wanted, 15, 300)
    assert (np.diff(np.sort(places)) > 14.999).all()
    assert (np.argsort(places, kind="stable") == np.argsort(wanted, kind="stable")).all()
    assert ((places >= 0) & (places <= 300)).all()
    for n in range(len(wanted)):
        for by in (-0.5, 0.5):
            other = places.copy()
            other[n] += by
            is_allowed = (np.diff(np.sort(other)) >= 14.999).all() and 0 <= other[n] <= 300
            nearer = ((other - wanted) ** 2).sum() < ((places - wanted) ** 2).sum() - 1e-6
            assert not (is_allowed and nearer), "it could be nearer"


@pytest.mark.parametrize(
    "heights", [[0.0, 0.0], [-3.0, -1.0], [-1.0, 2.0], [1.0, 3.0], [5e-07, 1000000000.0]]
)
def test_an_axis_holds_its_heights_and_at_most_seven_ticks(heights):
    scale = scale_up("y", heights)
    assert scale.low <= min(heights) and max(heights) <= scale.high
    assert 2 <= len(scale.numbers()) <= 7
    assert (
        "nan"
        not in draw.line_chart(
            {"a": dict(enumerate(heights))}, "x", "y", kind="counted", about="heights"
        ).to_svg()
    )
