"""The picture of prices says what the prices say."""

import re

import pytest
from said import said, shown

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.price import BARS, FRAMES, clause_of_events, room


@pytest.fixture(scope="module")
def prices():
    return ck.price(ck.simulate("sgemm_64x64_lds", 256, progress=False))


@pytest.fixture(scope="module")
def player(prices):
    return draw.price(prices)


def source(player, name):
    """The source of that name which is drawn; of several, the one that moves."""
    drawn = {r.data_source for f in player.figures for r in f.renderers}
    named = {source for source in drawn if source.name == name}
    moving = named & {track.source for track in player.tracks}
    (chosen,) = moving or named
    return chosen


def test_bars_are_as_long_as_work_and_price(player, prices):
    scale = BARS[1] / max(max(line.share, line.price) for line in prices.lines)
    for unit in ("ALU", "texture", "LDS"):
        work = shown(player, source(player, f"work {unit}"), -1)
        cost = shown(player, source(player, f"price {unit}"), -1)
        for words, wide, long in zip(work["words"], work["w"], cost["w"]):
            number = int(words.split(":")[0])
            (line,) = [line for line in prices.lines if line.line == number]
            assert line.unit == unit
            assert wide == pytest.approx(max(line.share * scale, 1), abs=1e-3)
            assert long == pytest.approx(max(line.price * scale, 0.01), abs=1e-2)


def test_prices_are_hidden_until_one_has_guessed(player, prices):
    first, last = ({s.text for s in said(player, frame)} for frame in (0, FRAMES - 1))
    dearest = f"Line {prices.dearest.line} is the dearest"
    assert not any(dearest in text for text in first if "Line" in text[:40] or "clock" in text)
    assert "Which line" in player.captions[0]
    assert dearest in player.captions[-1]
    assert f"{100 * prices.dearest.price:.1f} %" in player.captions[-1]
    for unit in ("ALU", "texture", "LDS"):
        assert max(shown(player, source(player, f"price {unit}"), 0)["w"]) < 0.1
    assert not any("price" in text and "%" in text for text in first)
    assert "price" not in repr(player).partition("\n")[2]
    assert any("price" in text and "%" in text for text in last)
    assert any(re.fullmatch(r"(~ )?-?\d+\.\d %", text) for text in last - first)


def test_a_line_lights_up_the_clauses_that_it_is_in(player, prices):
    report = prices.report
    controls = report.launch.code.controls
    clauses = clause_of_events(report)
    assert len(clauses) == len(report.timeline)
    for event, clause in zip(report.timeline, clauses):
        if event.kind == "ALU":
            assert controls[clause].bundles
        elif event.kind == "TEX":
            assert controls[clause].fetches
    drawn = [r.data_source for f in player.figures for r in f.renderers]
    (fetches,) = {s for s in drawn if s.name.startswith("clauses TEX") and "key" in s.data}
    (lines,) = {s for s in drawn if s.name == "work texture"}
    assert set(lines.data["key"]) == set(fetches.data["key"])


def test_waiting_for_data_is_seen_in_the_story_of_a_clause(player, prices):
    waits = dict.fromkeys(("unit", "data", "barrier"), 0.0)
    for line in prices.lines:
        for kind, clocks in line.work.waited.items():
            waits[kind] += clocks
    stories = [words[0][1] for words in player.about.values()]
    shares = [int(match) for s in stories for match in re.findall(r"(\d+) % for its data", s)]
    assert sum(shares) == pytest.approx(100 * waits["data"] / sum(waits.values()), abs=len(shares))


@pytest.mark.parametrize(
    "name, text",
    [
        ("sgemm_nn", "33 registers: room for 7; with 32, 1 fewer, for 8"),
        ("sgemm_tn", "25 registers: room for 10; with 23, 2 fewer, for 11"),
    ],
)
def test_room_for_another_wavefront_is_said(name, text):
    assert room(ck.simulate(name, 128)) == text


def test_a_kernel_is_priced_and_drawn():
    player = draw.price("sgemm_nn", 128)
    assert "sgemm_nn" in player.title and len(player.captions) == FRAMES
    dearest = ck.price(ck.simulate("sgemm_nn", 128, progress=False)).dearest
    assert f"Line {dearest.line} is the dearest" in player.captions[-1]
