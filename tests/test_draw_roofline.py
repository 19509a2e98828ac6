"""The roofline: what each memory allows, and kernels below it."""

import pytest
from pages import drawn, view

import cypresskit as ck
from cypresskit import published
from cypresskit.teach.l02_why_blocks import checks as why_blocks


def points(player, name: str) -> dict[float, float]:
    """The points of a curve, as they are drawn."""
    data = drawn(player, f"points {name}")
    return dict(zip(data["x"], data["y"]))


def test_the_roofs_are_the_data_sheets():
    """64 bytes a clock from each engine's texture unit; four slices of L2; eight channels."""
    rates = {"texture units": 1088.0, "L2 cache": 435.2, "memory": 153.6}
    for memory, rate in rates.items():
        shown = points(view("roofline"), memory)
        want = {b: min(2720.0, rate * b / 4) for b in (1, 2, 4, 8, 10, 16)}
        assert shown == pytest.approx(want)
    texture = points(view("roofline"), "texture units")
    assert texture[10] == pytest.approx(2720) and texture[8] < 2720, "flat from b = 10"


def test_published_kernels_stand_at_their_blocks_below_the_roof():
    for name in ("sgemm_tn", "sgemm_64x64_lds", "sgemm_64x64"):
        (shown,) = points(view("roofline"), f"{name}, measured").items()
        assert ck.kernels[name].block == (shown[0], shown[0])
        assert shown[1] == published.kernel(name)["gflops_max"]
        assert shown[1] < 2720


def test_a_block_falls_off_the_roof_for_want_of_wavefronts():
    """Lesson 02's experiment, asked of the picture: 8 x 8 is the fastest, and 16 x 16 loses two
    fifths; the published kernels give no hint of it.
    """
    paces = {b: why_blocks.simulate_block(b, 768) for b in (4, 8, 16)}
    player = ck.teach.why_blocks.roofline(paces)
    shown = points(player, "plain kernels, modeled")
    assert shown == pytest.approx({b: report.gflops for b, report in paces.items()})
    assert (
        max(shown, key=shown.__getitem__) == 8
        and paces[16].active_wavefronts < paces[8].active_wavefronts
    )
    assert "measured" not in repr(player)
