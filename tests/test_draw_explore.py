"""The journey from the chip to a register."""

import sys

import pytest

import cypresskit as ck


@pytest.fixture(scope="module")
def journey():
    return ck.draw.explore("sgemm_tn", 64)


def test_a_journey_leads_from_the_chip_to_a_register(journey):
    chip, _, loop, block = journey.levels
    assert [len(level.links) > 0 for level in journey.levels] == [True, True, True, False]
    for level, below in zip(journey.levels, journey.levels[1:]):
        assert level.links.keys() <= level.player.about.keys(), "what leads on can be chosen"
        for link in level.links.values():
            assert 0 <= link.frame < len(below.player)
            assert link.key is None or link.key in below.player.about
    line, link = next(iter(loop.links.items()))
    assert f"line {line}:" in block.player.captions[link.frame], "where the line runs first"
    assert len(journey.bundle()["text/html"]) < 300_000
    assert journey.still() == chip.player.still() and repr(journey).count("\n") > 20


def test_a_journey_is_drawn_from_one_simulation_and_one_run(monkeypatch):
    module, calls = sys.modules["cypresskit.draw.explore"], []

    def noted(name: str, real):
        return lambda *given, **more: (calls.append(name), real(*given, **more))[1]

    for name in ("simulate", "run"):
        monkeypatch.setattr(module, name, noted(name, getattr(module, name)))
    ck.draw.explore("sgemm_tn", 64)
    assert calls == ["simulate", "run"]
