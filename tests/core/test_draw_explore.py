"""The journey from the chip to a register."""

import cypresskit as ck


def test_a_journey_leads_from_the_chip_to_a_register():
    """What leads on can be chosen, and leads to what is there."""
    journey = ck.draw.explore("sgemm_tn", 64)
    assert [len(level.links) > 0 for level in journey.levels] == [True, True, True, False]
    for level, below in zip(journey.levels, journey.levels[1:]):
        assert level.links.keys() <= level.player.about.keys()
        for link in level.links.values():
            assert 0 <= link.frame < len(below.player)
            assert link.key is None or link.key in below.player.about
    assert len(journey.bundle()["text/html"]) < 300_000
    assert repr(journey).count("\n") > 4
