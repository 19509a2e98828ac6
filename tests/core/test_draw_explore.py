"""The journey from the chip to a register."""

import pytest

import cypresskit as ck
from cypresskit.timing import simulate


@pytest.fixture(scope="module")
def journey():
    return ck.draw.explore("sgemm_tn", 64)


def test_a_journey_leads_from_the_chip_to_a_register(journey):
    """What leads on can be chosen, and leads to what is there."""
    assert [len(level.links) > 0 for level in journey.levels] == [True, True, True, False]
    for level, below in zip(journey.levels, journey.levels[1:]):
        assert level.links.keys() <= level.player.about.keys()
        for link in level.links.values():
            assert 0 <= link.frame < len(below.player)
            assert link.key is None or link.key in below.player.about
    assert len(journey.bundle()["text/html"]) < 300_000
    assert repr(journey).count("\n") > 4


def test_a_tile_leads_to_its_wavefront_or_to_the_first_of_the_engine(journey):
    """Whose whole window is colored."""
    chip, engine, *_ = journey.levels
    report = simulate("sgemm_tn", 64)
    first = min(key for key in engine.player.about if report.use.wavefronts[key, 0] == 0)
    assert chip.links[max(chip.links)].key == first
    assert all(link.key in (key, first) for key, link in chip.links.items())
    assert {link.frame for link in chip.links.values()} == {len(engine.player) - 1}


def test_a_clause_leads_to_the_longest_of_the_loop(journey):
    _, engine, *_ = journey.levels
    lengths = [len(clause.bundles) for clause in ck.compile("sgemm_tn").main_loop]
    longest = sum(lengths[: lengths.index(max(lengths))])
    assert {link.frame for link in engine.links.values()} == {longest}


def test_a_line_leads_to_where_it_runs_first(journey):
    *_, loop, block = journey.levels
    for line, link in loop.links.items():
        told = [f"line {line}:" in caption for caption in block.player.captions]
        assert told.index(True) == link.frame
