"""What the timing model charges is what the code asks for, counted apart from it: `tools.fuzz.law` on a few launches of
each kind. `make fuzz` does the same with any kernel, size, board and style."""

import pytest

from cypresskit.kernels import KERNELS
from cypresskit.teach.l07_lds import clocks_of_turn
from cypresskit.timing import simulate


@pytest.mark.parametrize("name", [name for name in KERNELS if "_lds" in name])
def test_a_turns_clocks_are_those_that_lesson_07_counts(name):
    short, long = (simulate(name, 256, k=k) for k in (64, 128))
    for unit, clocks in clocks_of_turn(name).items():
        spent = [r.busy[unit] * r.clocks * r.device.simd_engines / r.wavefronts for r in (short, long)]
        assert spent[1] - spent[0] == pytest.approx(clocks * (128 - 64) / KERNELS[name].k_step)
