"""The journey from the chip to a register."""

import pytest

import cypresskit as ck
from cypresskit.timing import simulate


@pytest.fixture(scope="module")
def journey():
    return ck.draw.explore("sgemm_tn", 64)


def test_a_journey_leads_from_the_chip_to_a_register(journey):
    chip, engine, loop, block = journey.levels
    assert [len(level.links) > 0 for level in journey.levels] == [True, True, True, False]
    for level, below in zip(journey.levels, journey.levels[1:]):
        assert level.links.keys() <= level.player.about.keys(), "what leads on can be chosen"
        for link in level.links.values():
            assert 0 <= link.frame < len(below.player)
            assert link.key is None or link.key in below.player.about
    report = simulate("sgemm_tn", 64)
    first = min(key for key in engine.player.about if report.use.wavefronts[key, 0] == 0)
    assert chip.links[max(chip.links)].key == first
    assert all(link.key in (key, first) for key, link in chip.links.items())
    last = len(engine.player) - 1
    assert {link.frame for link in chip.links.values()} == {last}, "the whole window is colored"
    lengths = [
        len(clause.bundles) for clause in ck.compile(ck.kernels["sgemm_tn"].program).main_loop
    ]
    longest = sum(lengths[: lengths.index(max(lengths))])
    assert {link.frame for link in engine.links.values()} == {longest}
    for line, link in loop.links.items():
        told = [f"line {line}:" in caption for caption in block.player.captions]
        assert told.index(True) == link.frame, "where the line runs first"
    assert len(journey.bundle()["text/html"]) < 300_000
    assert repr(journey).count("\n") > 4
