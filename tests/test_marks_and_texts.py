"""One law for every picture, without a browser: at its first, middle and last frame all marks lie
inside their figure, no two texts overlap, and columns stand where the report's numbers say.
"""

import importlib
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import said
from bokeh.core.property.vectorization import Field, Value
from bokeh.models import (
    ColumnDataSource,
    GlyphRenderer,
    LogScale,
    Plot,
    Rect,
    Scatter,
    Segment,
    Text,
)
from pages import IN_LESSONS, VIEWS, company, frames, reports

import cypresskit as ck
from cypresskit import host
from cypresskit.draw import svg_export, theme
from cypresskit.draw.player import Player
from cypresskit.kernels import samples
from cypresskit.machine.traffic import Traffic
from cypresskit.timing import simulate
from tools import gallery

LETTER = 0.47  # the width of a letter, in sizes of letters: less than that of most
#: The part of a text that stands before its point, and of a letter's height above it.
BEFORE = {"left": 0, "center": 0.5, "right": 1}
ABOVE = {"middle": 0.4, "top": 0, "bottom": 0.8}
MARGIN = 2.0  # pixels by which edges and estimates may be off


def players() -> dict:
    """What makes each picture that plays: those of the site, of the tests and of the lessons."""
    made = {name: make for name, (_, make) in gallery.VIEWS.items()}
    made |= VIEWS | {f"{name} in its lesson": make for name, make in IN_LESSONS.items()}
    return {name: make for name, make in made.items() if name not in ("lds_pitch", "bundle_game")}


PLAYERS = players()


@cache
def player(name: str) -> Player | None:
    shown = PLAYERS[name]()
    return shown if isinstance(shown, Player) else None


class Boxes(NamedTuple):
    """Boxes in pixels of a figure, from the upper left: their ends, and what each is."""

    left: np.ndarray
    top: np.ndarray
    right: np.ndarray
    foot: np.ndarray
    names: list[str]


class Frame:
    """A figure at a frame of its player, in its own pixels."""

    def __init__(self, shown: Player, figure: Plot, number: int) -> None:
        self.figure = figure
        self.columns: dict[str, dict] = {}
        for track in shown.tracks:
            values = track.frames[number]
            columns = self.columns.setdefault(track.source.id, {})
            columns[track.column] = values
            if track.text:
                columns[track.text] = [track.text_of(value) for value in values.tolist()]
        self.fitted = {glyph.id: (part, most) for _, glyph, part, most in shown._colors.fitted}
        self.unit = 1.0
        x, y = figure.x_range, figure.y_range
        if figure.below:  # a chart, with axes
            self.width = figure.width - figure.min_border_left - figure.min_border_right
            self.height = figure.height - figure.min_border_top - figure.min_border_bottom
        else:
            wide, high = abs(x.end - x.start), abs(y.end - y.start)
            is_stage = "min-width" in figure.styles  # whose unit is a pixel
            self.unit = 1 if is_stage else min(svg_export.WIDTH / wide, theme.HIGH / high)
            self.width, self.height = self.unit * wide, self.unit * high

    def place(self, values, side: str) -> np.ndarray:
        """Numbers of an axis in pixels."""
        ends, scale = (
            (self.figure.x_range, self.figure.x_scale)
            if side == "x"
            else (self.figure.y_range, self.figure.y_scale)
        )
        ticks = np.array([ends.start, ends.end, *np.atleast_1d(values)], float)
        if isinstance(scale, LogScale):
            ticks = np.log10(ticks)
        part = (ticks[2:] - ticks[0]) / (ticks[1] - ticks[0])
        return part * self.width if side == "x" else part * self.height

    def column(self, renderer, name: str):
        """A glyph's property for each of its points, or one for all."""
        spec = getattr(renderer.glyph, name)
        data = dict(renderer.data_source.data) | self.columns.get(renderer.data_source.id, {})
        field = spec.field if isinstance(spec, Field) else spec
        if isinstance(field, str) and field in data:
            return np.asarray(data[field])
        return spec.value if isinstance(spec, Value) else spec

    def sources(self) -> Iterator[list]:
        """The columns of each source: what they have for each of its marks."""
        for renderer in self.figure.renderers:
            data = renderer.data_source.data
            yield [*(data | self.columns.get(renderer.data_source.id, {})).values()]

    def _renderers(self, standing: bool) -> Iterator[GlyphRenderer]:
        """What draws in the figure; or of that what stays in one place."""
        for renderer in self.figure.renderers:
            tracked = self.columns.get(renderer.data_source.id, {})
            if not standing or tracked.keys().isdisjoint("xywh"):
                yield renderer

    def marks(self, standing: bool = False) -> Iterator[Boxes]:
        """The boxes, points and lines that are drawn, by source."""
        for renderer in self._renderers(standing):
            name = renderer.data_source.name or type(renderer.glyph).__name__
            if isinstance(renderer.glyph, Rect):
                x, y, w, h = (
                    np.asarray(self.column(renderer, side), float)
                    for side in ("x", "y", "width", "height")
                )
                x, y, w, h = np.broadcast_arrays(x, y, w, h)
                ends = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
            elif isinstance(renderer.glyph, Scatter):
                x, y = (np.asarray(self.column(renderer, side), float) for side in "xy")
                ends = (x, y, x, y)
            elif isinstance(renderer.glyph, Segment):
                ends = tuple(
                    np.asarray(self.column(renderer, side), float)
                    for side in ("x0", "y0", "x1", "y1")
                )
            else:
                continue
            left, top, right, foot = np.broadcast_arrays(
                *(self.place(end, side) for end, side in zip(ends, "xyxy"))
            )
            yield Boxes(
                np.minimum(left, right),
                np.minimum(top, foot),
                np.maximum(left, right),
                np.maximum(top, foot),
                [name] * left.size,
            )

    def texts(self, standing: bool = False) -> Boxes:
        """The texts that are drawn."""
        found: list[tuple[float, float, float, float, str]] = []
        for renderer in self._renderers(standing):
            glyph = renderer.glyph
            if not isinstance(glyph, Text):
                continue
            texts = np.atleast_1d(self.column(renderer, "text"))
            x = self.place(self.column(renderer, "x"), "x")
            y = self.place(self.column(renderer, "y"), "y")
            align = np.atleast_1d(self.column(renderer, "text_align"))
            size = float(str(self.column(renderer, "text_font_size")).removesuffix("px"))
            if glyph.id in self.fitted:
                part, most = self.fitted[glyph.id]
                size = min(most, part * self.unit)
            base = str(self.column(renderer, "text_baseline"))
            count = max(len(texts), len(x), len(y))
            for n in range(count):
                text = str(texts[n % len(texts)]).strip("\N{ZERO WIDTH SPACE} ")
                across = x[n % len(x)]
                down = y[n % len(y)]
                if not text or not np.isfinite([across, down]).all():
                    continue
                long = LETTER * size * len(text)
                left = across - BEFORE[str(align[n % len(align)])] * long
                top = down - ABOVE.get(base, 0.8) * size
                found.append((left, top, left + long, top + 0.8 * size, text))
        columns = list(zip(*found)) or [()] * 5
        left, top, right, foot = (np.array(column, float) for column in columns[:4])
        return Boxes(left, top, right, foot, list(columns[4]))


def outside(frame: Frame, boxes: Boxes, margin: float) -> list[str]:
    """What of some boxes isn't inside the figure."""
    is_out = (
        (boxes.left < -margin)
        | (boxes.top < -margin)
        | (boxes.right > frame.width + margin)
        | (boxes.foot > frame.height + margin)
    )
    return sorted({boxes.names[n] for n in np.flatnonzero(is_out)})


def overlapping(texts: Boxes) -> list[tuple[str, str]]:
    """Pairs of texts that stand in each other's way."""
    pairs = []
    for n in range(len(texts.names)):
        later = slice(n + 1, None)
        across = np.minimum(texts.right[n], texts.right[later]) - np.maximum(
            texts.left[n], texts.left[later]
        )
        down = np.minimum(texts.foot[n], texts.foot[later]) - np.maximum(
            texts.top[n], texts.top[later]
        )
        for m in np.flatnonzero((across > MARGIN) & (down > MARGIN)):
            pair = texts.names[n], texts.names[n + 1 + m]
            if pair[0] != pair[1]:  # a mark that stands twice
                pairs.append(pair)
    return pairs


def crossing(texts: Boxes, marks: Boxes) -> list[tuple[str, str]]:
    """Texts that run into a box or out of it, with the box' name; a line may be written over."""
    pairs = []
    for n, text in enumerate(texts.names):
        left, right = texts.left[n], texts.right[n]
        down = np.minimum(texts.foot[n], marks.foot) - np.maximum(texts.top[n], marks.top)
        is_beside = down > 0.4 * (texts.foot[n] - texts.top[n])
        into = (left < marks.left - MARGIN) & (right > marks.left + MARGIN)
        out = (left < marks.right - MARGIN) & (right > marks.right + MARGIN)
        is_wide = marks.right - marks.left > 2 * MARGIN
        if np.any(is_beside & is_wide & (into | out)):
            pairs.append((text, marks.names[0]))
    return pairs


def looked_at(name):
    """Each figure of a player at its first, middle and last frame, with the frame's number."""
    shown = player(name)
    if shown is None:
        return
    last = len(shown.captions) - 1
    for number in sorted({0, last // 2, last}):
        for figure in shown.figures:
            yield number, Frame(shown, figure, number)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", PLAYERS)
def test_no_text_runs_into_a_box(name):
    for number, frame in looked_at(name):
        texts = frame.texts(standing=True)
        for marks in frame.marks(standing=True):
            assert not crossing(texts, marks), f"frame {number}"


@pytest.mark.parametrize("name", PLAYERS)
def test_marks_lie_inside_their_figure_and_no_texts_overlap(name):
    for number, frame in looked_at(name):
        assert all(len({*map(len, columns)}) <= 1 for columns in frame.sources()), f"frame {number}"
        for marks in frame.marks():
            assert not outside(frame, marks, MARGIN), f"frame {number}"
        texts = frame.texts()
        assert not outside(frame, texts, 3 * MARGIN), f"frame {number}"
        assert not overlapping(texts), f"frame {number}"


# -- columns stand where the report's numbers say


def source_named(shown: Player, name: str) -> ColumnDataSource:
    """The source of that name which is drawn."""
    return next(
        renderer.data_source
        for figure in shown.figures
        for renderer in figure.renderers
        if renderer.data_source.name == name
    )


def box_ends(shown: Player, name: str, number: int) -> Boxes:
    """The boxes of a source at a frame, in the units of its figure."""
    source = source_named(shown, name)
    glyph = next(
        renderer.glyph
        for figure in shown.figures
        for renderer in figure.renderers
        if renderer.data_source is source and isinstance(renderer.glyph, Rect)
    )
    data = said.shown(shown, source, number)
    x, y = np.asarray(data["x"], float), np.asarray(data["y"], float)
    wide, high = (
        np.asarray(data["w" if size == "width" else "h"], float)
        if isinstance(getattr(glyph, size), str | Field)
        else float(getattr(glyph, size))
        for size in ("width", "height")
    )
    words = [str(text) for text in data.get("words", [""] * len(x))]
    return Boxes(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2, words)


def heights_of_texts(shown: Player, *texts: str) -> list[float]:
    """The y of the only list of texts that has these, in order."""
    (heights,) = (
        renderer.data_source.data["y"]
        for renderer in shown.figures[0].renderers
        if isinstance(renderer.glyph, Text)
        and list(renderer.data_source.data.get("text", [])) == list(texts)
    )
    return list(heights)


def moments_of(shown: Player) -> list[int]:
    last = len(shown.captions) - 1
    return sorted({0, last // 3, last})


def assert_same_spans(boxes: Boxes, y, spans) -> None:
    """The boxes stand, in any order, at heights ``y`` from the left to the right of some ``spans``,
    but for the gap that is left between two.
    """
    middle = (boxes.top + boxes.foot) / 2
    drawn = np.column_stack([middle, boxes.left, boxes.right])
    true = np.column_stack([y, np.reshape(spans, (-1, 2))])
    drawn, true = (np.array(sorted(rows.round(1).tolist())) for rows in (drawn, true))
    assert drawn.shape == true.shape
    away = np.abs(drawn - true).max(axis=0, initial=0)
    assert (away < [0.2, 0.5, 0.9]).all(), f"{away} pixels off in y, left and right"


@pytest.mark.parametrize("number", [0, 1])
def test_rows_of_wavefronts_stand_at_their_slots_and_clocks(number):
    reports, shown = company()
    report = reports[number]
    name = f"{report.kernel} {number}" if number else report.kernel
    head = frames(shown, f"head {name}", "x")[:, 0]

    def x_of(clock):
        return head[0] + (np.asarray(clock) - 3000) / 3000 * (head[-1] - head[0])

    slots = heights_of_texts(shown, *map(str, range(report.active_wavefronts)))
    for frame in moments_of(shown):
        now = 3000 + 3000 * frame / (len(head) - 1)
        for kind, words, first, last in (
            ("ALU", "computes", "start", "end"),
            ("TEX", "is in the texture unit", "start", "served"),
            ("TEX", "waits for data", "served", "end"),
        ):
            events = [event for event in report.timeline if event.kind == kind]
            spans = [(getattr(e, first), getattr(e, last), slots[e.slot]) for e in events]
            seen = [span for span in spans if span[1] > 3000 and span[0] < 6000]
            y = [height for _, _, height in seen]
            clocks = np.clip([span[:2] for span in seen], 3000, 6000)
            whole = box_ends(shown, f"{words} {name} to come", frame)
            assert_same_spans(whole, y, x_of(clocks))
            passed = np.column_stack([clocks[:, 0], np.clip(now, *clocks.T)])
            assert_same_spans(box_ends(shown, f"{words} {name}", frame), y, x_of(passed))


@pytest.mark.parametrize("number", [0, 100, 215])
def test_the_dial_s_bars_stand_at_their_clocks_and_its_dot_at_its_speed(number):
    dial = importlib.import_module("cypresskit.teach.l04_registers.dial")
    shown = player("dial")
    point = dial.grid()[number]
    *_, registers = list(dial.settings())[number]
    pixels = (dial.RIGHT - dial.LEFT) / dial.LONG
    labels = said.shown(shown, source_named(shown, "rows"), number)
    slots = [y for y, text in zip(labels["y"], labels["text"]) if text]
    assert len(slots) == ck.HD5870.register_pool // registers
    kinds = ("ALU start", "TEX start", "TEX served")
    for name, bars in zip(kinds, point.bars, strict=True):
        boxes = box_ends(shown, name, number)
        seen = np.isfinite(boxes.left)
        boxes = Boxes(*(np.asarray(side)[seen] for side in boxes[:4]), [])
        y = [slots[int(slot)] for slot in bars[:, 0]]
        assert_same_spans(boxes, y, dial.LEFT + bars[:, 1:] * pixels)
    dot = said.shown(shown, source_named(shown, "dot"), number)
    assert (dot["x"][0], dot["y"][0]) == (registers, point.gflops)
    curve = said.shown(shown, source_named(shown, "points speed"), number)
    assert curve["y"][list(curve["x"]).index(registers)] == point.gflops


@pytest.mark.parametrize("name", ["chip", "chip_sizes"])
def test_dots_tiles_and_bars_of_the_chip_stand_where_its_report_says(name):
    """A dot in a slot of its wavefront's engine, a tile where its part of C is, a bar as high as
    its unit is busy.
    """
    shown = player(name)
    runs = {"chip_sizes": reports(), "chip": reports()[1:]}[name]
    count = len(shown.captions) // len(runs)
    engines = box_ends(shown, "engines", 0)
    slots = box_ends(shown, "slots", 0)
    middles = {
        (round(float(left + right), 2), round(float(top + foot), 2))
        for left, right, top, foot in zip(slots.left, slots.right, slots.top, slots.foot)
    }
    for scene, report in enumerate(runs):
        use = report.use
        for step in (0, count // 3, count // 2 - 1, count // 2, count - 1):
            frame = scene * count + step
            clock = use.clocks[-1] * (step / (count - 1))  # in the last frame its very end
            engine, start, end = use.wavefronts.T
            under_way = (start < clock) & (end > clock)
            dots = box_ends(shown, "dots", frame)
            seen = np.isfinite(dots.left) & (dots.right - dots.left > 1)
            x, y = ((low + high)[seen] / 2 for low, high in ((dots.left, dots.right), dots[1::2]))
            assert {
                (round(float(2 * a), 2), round(float(2 * b), 2)) for a, b in zip(x, y)
            } <= middles
            inside = [
                np.count_nonzero((left < x) & (x < right) & (top < y) & (y < foot))
                for left, top, right, foot in zip(*engines[:4])
            ]
            assert inside == np.bincount(engine[under_way].astype(int), minlength=20).tolist()

            tiles = said.shown(shown, source_named(shown, "map"), frame)
            over = np.bincount(tiles["shade"][np.isfinite(tiles["x"])], minlength=3)
            per_tile = -(-report.wavefronts // 1024)
            if per_tile == 1:
                assert over[2] == int((end <= clock).sum())
                assert over[1] == under_way.sum()
            for unit in ("ALU", "texture"):
                bars, room = (box_ends(shown, n, frame) for n in (unit, f"room {unit}"))
                percent = said.shown(shown, source_named(shown, unit), frame)["percent"]
                high = np.maximum(percent, 0.5) / 100 * (room.foot - room.top)
                np.testing.assert_allclose(bars.foot, room.foot, atol=0.1)
                np.testing.assert_allclose(bars.foot - bars.top, high, atol=0.1)
                np.testing.assert_allclose(bars.left, room.left, atol=0.1)
                assert ((room.left > engines.left) & (room.right < engines.right)).all()


def test_tiles_of_the_chip_s_map_lie_as_c_does():
    shown, report = player("chip"), reports()[1]
    tiles = said.shown(shown, source_named(shown, "map"), 0)
    across = report.size[1] // (8 * report.gemm_kernel.block[1])
    size = float(tiles["w"][0]) + 1
    for number, (x, y) in enumerate(zip(tiles["x"], tiles["y"])):
        row, column = divmod(number, across)
        assert x - tiles["x"][0] == pytest.approx(column * size, abs=0.1)
        assert y - tiles["y"][0] == pytest.approx(row * size, abs=0.1)


@pytest.mark.parametrize("number", [0, 1])
def test_tasks_of_a_timeline_stand_in_their_rows_at_their_times(number):
    shown = player("timeline_default")
    run = (host.four_stage, host.five_stage)[number](8192, 8192, 2048, host.Machine())
    called = ("four stages, without the texture cache", "five stages, with it")[number]
    head = frames(shown, f"head {called}", "x")
    longest = max(
        each(8192, 8192, 2048, host.Machine()).seconds
        for each in (host.four_stage, host.five_stage)
    )

    def x_of(seconds):
        return head[0, 0] + np.asarray(seconds) / longest * (head[-1, 0] - head[0, 0])

    rows = {}
    for renderer in shown.figures[0].renderers:
        name = renderer.data_source.name or ""
        if name.startswith("row ") and name.endswith(called):
            boxes = box_ends(shown, name, 0)
            rows[name[4 : -len(called) - 1]] = float(boxes.top[0] + boxes.foot[0]) / 2
    ticks = said.shown(shown, source_named(shown, "tick names"), 0)
    np.testing.assert_allclose(ticks["x"], x_of(np.array(ticks["text"], float) / 1e3), atol=0.5)

    own = [s for s in run.spans if s.task.queue in rows and s.task.uses.get(s.task.queue)]
    assert own
    spans = x_of([(s.start, s.end) for s in own])
    y = [rows[s.task.queue] for s in own]
    for frame in moments_of(shown):
        assert_same_spans(box_ends(shown, f"tasks {called} to come", frame), y, spans)

    for name in run.resources.keys() & {"host memory", "PCIe to card", "PCIe to host"}:
        taken = box_ends(shown, f"{name} {called} to come", 0)
        room = box_ends(shown, f"row {name} {called}", 0)
        work = sum(s.task.uses.get(name, 0) for s in run.spans) / run.resources[name].capacity
        full = (x_of(work) - x_of(0)) * (room.foot - room.top)[0]
        area = np.sum((taken.right - taken.left) * (taken.foot - taken.top))
        assert 0.7 < area / full < 1, f"{name}: a share of what it can do is as high"


def test_texels_lines_and_flights_of_a_reduction_stand_where_they_were_fetched():
    reduction = importlib.import_module("cypresskit.teach.l08_small.reduction")
    shown = player("reduction")
    helped = ck.kernels["sgemv_n_reduce4"]
    rows, k = 64 // helped.convention.parts * helped.block[0], reduction.ITERATIONS * helped.k_step
    for name, working in (("sgemv_n", 64 // helped.convention.parts), ("sgemv_n_reduce4", 64)):
        traffic = Traffic()
        samples.run(ck.kernels[name], rows, 1, k, traffic)
        steps = [a for a in traffic.accesses if a.kind != "fetch" or a.resource == 0]
        texels = box_ends(shown, f"texels {name}", 0)
        place = {words: n for n, words in enumerate(texels.names)}
        # A's texels tile its map, row by row
        across = (texels.left + texels.right)[: k // 4] / 2
        down = (texels.top + texels.foot)[:: k // 4] / 2
        for steps_between in (np.diff(across), np.diff(down)):
            np.testing.assert_allclose(steps_between, steps_between[0], atol=0.01)
        for frame in sorted({1, len(steps) // 2, len(steps) - 1}):
            access = steps[frame - 1]
            if access.x is None:
                continue
            is_on = access.active & (np.arange(64) < working)
            fetched = {(int(y), int(x)) for y, x in zip(access.y[is_on], access.x[is_on])}
            lines = box_ends(shown, f"lines {name}", frame)
            seen = np.isfinite(lines.left)
            drawn = set(zip(lines.left[seen].round(), lines.right[seen].round(), lines.top[seen]))
            wanted = {
                (
                    round(float(texels.left[place[f"A: row {y}, texel {x // 4 * 4}"]] - 1)),
                    round(float(texels.right[place[f"A: row {y}, texel {x // 4 * 4 + 3}"]] + 1)),
                )
                for y, x in fetched
            }
            assert {(left, right) for left, right, _ in drawn} == wanted
            flights = box_ends(shown, f"flights {name}", frame - 1)
            taken = [place[f"A: row {y}, texel {x}"] for y, x in fetched]
            centres = np.column_stack(
                [(texels.left + texels.right)[taken] / 2, (texels.top + texels.foot)[taken] / 2]
            )
            flying = np.column_stack(
                [(flights.left + flights.right) / 2, (flights.top + flights.foot) / 2]
            )
            away = np.abs(flying[np.newaxis] - centres[:, np.newaxis]).max(axis=2)
            assert (np.nanmin(away, axis=1) < 0.1).all(), "each texel sets out from its place"


def test_each_way_of_a_journey_leads_to_what_was_clicked():
    shown = ck.draw.explore("sgemm_tn", 64)
    chip, engine, loop, registers = shown.levels
    report = simulate("sgemm_tn", 64)
    first = min(key for key in engine.player.about if report.use.wavefronts[key, 0] == 0)
    assert chip.links[max(chip.links)].key == first
    last = len(engine.player) - 1
    assert all(link.key in (key, first) for key, link in chip.links.items())
    assert {link.frame for link in chip.links.values()} == {last}, "the whole window is colored"
    code = ck.compile(ck.kernels["sgemm_tn"].program)
    lengths = [len(clause.bundles) for clause in code.main_loop]
    longest = sum(lengths[: lengths.index(max(lengths))])
    assert {link.frame for link in engine.links.values()} == {longest}
    assert all(link.key in loop.player.about for link in engine.links.values())
    for line, link in loop.links.items():
        told = [f"line {line}:" in caption for caption in registers.player.captions]
        assert told.index(True) == link.frame
