"""The dial: what it says is what the recorded grid holds, which is the model's own output."""

import sys

import numpy as np
from said import Rule, Said, assert_held, unheld

from cypresskit import draw
from cypresskit.draw.dial import grid, settings

REGISTERS = (16, 18, 20, 22, 25, 28, 31, 34, 37, 43, 51, 64)
WINDOW, POOL = 1500, 256


def rules() -> dict[str, Rule]:
    choices, points = list(settings()), grid()
    at = dict(zip(choices, points))

    def caption(say: Said, _):
        switch, latency, registers = choices[say.frame]
        speed, usual = points[say.frame].gflops, at[switch, latency, 25].gflops
        numbers = [registers, POOL // registers, speed]
        if speed == usual:
            return numbers
        return [*numbers, usual / speed if "slower" in say.text else speed / usual, 25]

    def share(working: int) -> Rule:
        def rule(say: Said, _):
            start, end, count = points[say.frame].alu.T
            return [100 * (end - start)[count == working].sum() / WINDOW]

        return rule

    def unit(say: Said, _):
        if say.where.startswith("TEX"):
            start, end, count = points[say.frame].texture.T
            return [100 * (end - start)[count == 1].sum() / WINDOW]
        one, two = (share(n)(say, ())[0] for n in (1, 2))
        return [two + one / 2]

    def number(say: Said, shown):
        """A row's number, or a tick of the chart."""
        if say.where.startswith("rows"):
            room = POOL // choices[say.frame][2]
            return [say.index] if say.index < room else []
        return shown if shown[0] in (*REGISTERS, *range(0, 2721, 680)) else []

    return {
        r"# registers: room for # wavefronts; # Gflop/s.*": caption,
        r"# registers": lambda say, _: [REGISTERS[say.index]],
        r"# clocks of a SIMD engine": lambda *_: [WINDOW],
        r"nobody # %": share(0),
        r"one computes # %": share(1),
        r"two compute # %": share(2),
        r"# %": unit,
        r"#": number,
    }


def test_every_number_is_the_grids():
    player = draw.dial()
    assert_held(player, rules(), frames=range(0, len(player), 5))


def test_the_speed_of_the_setting_beside_is_found(monkeypatch):
    module = sys.modules["cypresskit.draw.dial"]
    moved = [*grid()[1:], grid()[0]]
    monkeypatch.setattr(module, "grid", lambda: moved)
    faults = unheld(draw.dial(), rules(), frames=[0, 4, 100])
    assert len(faults) >= 3, np.array(faults)
