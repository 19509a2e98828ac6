"""What the timing model charges is what the code asks for, counted apart from it: `tools.fuzz.law`
on a few launches of each kind; tests/core/test_fuzz.py has any kernel, size and board.
"""

from dataclasses import replace

import pytest
from kept import sampled
from sampling import from_rows

from cypresskit.compiler import compile
from cypresskit.devices import HD5870
from cypresskit.kernels import KERNELS
from cypresskit.teach.l05_texture_cache.checks import unit_clocks
from cypresskit.teach.l12_contest.checks import generate_kernel
from cypresskit.timing import simulate
from tools.fuzz import law


def faults(kernel, size, board=HD5870, beta=0.0):
    kernel = KERNELS.get(kernel) or generate_kernel(8, 8, 3)
    (m, n, k), code = size, compile(kernel.program, board)
    options = {"m": m, "k": k, "device": board, "beta": beta}
    with sampled(effort=4e6):
        report = simulate(kernel, n, **options)
    whole = simulate(kernel, n, **options, exact=True) if report.simulated < 1 else None
    return law.check(code, kernel.shape(m, n, k, 1.0, beta), report, whole)


@from_rows(drawn=6)
def test_units_are_busy_for_the_clocks_that_the_code_asks_for(kernel, size, change):
    assert faults(kernel, size, replace(HD5870, **change), beta=1.0) == []


@pytest.mark.parametrize("name", [name for name in KERNELS if "_lds" in name])
def test_an_iterations_clocks_are_those_that_lesson_07_counts(name):
    short, long = (simulate(name, 256, k=k) for k in (64, 128))
    for unit, clocks in unit_clocks(name).items():
        spent = [
            r.busy[unit] * r.clocks * r.device.simd_engines / r.wavefronts for r in (short, long)
        ]
        assert spent[1] - spent[0] == pytest.approx(clocks * (128 - 64) / KERNELS[name].k_step)
