"""The dial: what it says is what the recorded grid holds, which is the model's own output."""

import pytest
from pages import (
    at,
)

import cypresskit as ck
from cypresskit.teach.l04_registers.dial import grid, settings
from tools.stored_figures import dial_point, dial_report


@pytest.mark.parametrize("registers", [20, 37])
def test_the_dials_grid_is_what_the_model_gives(registers):
    setting = (40, 320, registers)
    kept, made = grid()[list(settings()).index(setting)], dial_point(dial_report(*setting))
    assert made.gflops == pytest.approx(kept.gflops, rel=0.005), (
        "make it anew: python -m tools.stored_figures"
    )
    assert [len(part) for part in made.bars] == [len(part) for part in kept.bars]
    assert made.alu[:, 2].tolist() == kept.alu[:, 2].tolist()


def test_the_dial_finds_the_measured_ratio():
    """Lesson 04's task: from 25 registers to 37 the steady state loses nearly the 1.3 that was
    measured.
    """
    speed = {one: there.gflops for one, there in zip(settings(), grid())}
    assert speed[40, 320, 25] / speed[40, 320, 37] == pytest.approx(1.3, abs=0.03)


def test_a_dial_that_is_turned_changes_rows_and_dot(show):
    page = show(ck.teach.registers.dial())
    before = at(page)
    for _ in range(4):
        page.locator("label input").nth(0).press("ArrowRight")
    after = at(page)
    assert after["frame"] == before["frame"] + 4 and "37 registers" in after["words"]
    assert [sum(t != "" for t in seen["data"]["rows"]["text"]) for seen in (before, after)] == [
        10,
        6,
    ]
    dial = page.locator("label input").nth(2)
    dial.click(position={"x": 2, "y": 5})
    page.keyboard.press("ArrowRight")
    now = at(page)["frame"], dial.get_attribute("aria-valuetext")
    assert now == (after["frame"] - 72, "20"), "the keys are the dial's that the mouse turned"
