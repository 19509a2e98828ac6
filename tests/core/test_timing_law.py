"""What the timing model charges is what the code asks for, counted apart from it: `tools.fuzz.law`
on a few launches of each kind; tests/core/test_fuzz.py has any kernel, size and board.
"""

import random
from dataclasses import replace
from unittest.mock import patch

import pytest
from conftest import by_day, seeds

from cypresskit.compiler import compile
from cypresskit.devices import HD5850, HD5870
from cypresskit.kernels import KERNELS
from cypresskit.teach.l05_texture_cache.checks import unit_clocks
from cypresskit.teach.l12_contest.checks import generate_kernel
from cypresskit.timing import sampling, simulate
from tools.fuzz import law

LAUNCHES = [
    ("sgemm_tn", (72, 40, 30), {}),
    ("dgemm_nn", (40, 72, 24), {"quads_per_clock": 4}),
    ("ddgemm_tn_fma", (9, 33, 8), {"texture_banks": 2}),
    ("sgemm_64x64_lds_worst", (64, 128, 12), {}),
    (
        "sgemm_64x64_lds_rows",
        (128, 64, 12),
        {"lds_banks": 16, "lds_items_clock": 8},
    ),
    ("sgemm_nn_buffer", (64, 64, 16), {"memory_channels": 2}),
    ("sgemm_packed", (64, 64, 16), {"l1_bytes": 0}),
    ("dgemm_tn_stream", (64, 48, 16), {"line_bytes": 128}),
    ("sgemm_naive", (50, 70, 9), {"l2_bytes": 0, "texture_banks": 8}),
    (
        "sgemm_naive",
        (640, 640, 640),
        {},
    ),  # simulated in part, or it would be Uncounted
    (generate_kernel(8, 8, 3), (64, 64, 24), {"simd_engines": 3}),
]


def faults(kernel, size, board=HD5870, beta=0.0, wrong=()) -> list[str]:
    kernel = KERNELS[kernel] if isinstance(kernel, str) else kernel
    (m, n, k), code = size, compile(kernel.program, board)
    options = {"m": m, "k": k, "device": board, "beta": beta}
    with patch.multiple(sampling, SAMPLE_EFFORT=4e6, MAX_WHOLE_EFFORT=0, MAX_ERROR=1, MAX_SHARE=1):
        report = simulate(kernel, n, **options)
    report = replace(
        report, **{name: getattr(report, name) | of for name, of in dict(wrong).items()}
    )
    whole = simulate(kernel, n, **options, exact=True) if report.simulated < 1 else None
    return law.check(code, kernel.shape(m, n, k, 1.0, beta), report, whole)


@pytest.mark.parametrize("kernel, size, change", by_day(LAUNCHES, 6))
def test_units_are_busy_for_the_clocks_that_the_code_asks_for(kernel, size, change):
    assert faults(kernel, size, replace(HD5870, **change), beta=1.0) == []


@pytest.mark.parametrize("seed", seeds(4))
def test_so_they_are_in_a_program_of_any_accesses(seed):
    shape = law.accesses(random.Random(seed))
    code = compile(shape.program, HD5850)
    report = simulate(shape, device=HD5850)
    assert law.check(code, shape, report) == []


@pytest.mark.parametrize(
    "change, said",
    [
        ({"busy": {"ALU": 0.5}}, "ALU is busy for"),
        ({"busy": {"LDS": 0.9}}, "LDS is busy for"),
        ({"busy": {"DRAM": 0.9}}, "DRAM is busy for"),
        ({"bytes": {"DRAM": 64.0}}, "L2 hits are"),
        ({"hits": {"L1": 0.1}}, "L1 hits are 0.1"),
        ({"bytes": {"written": 64.0}}, "1.0 lines written"),
    ],
)
def test_a_report_that_breaks_the_law_is_reported(change, said):
    assert any(said in fault for fault in faults("sgemm_64x64_lds", (64, 64, 16), wrong=change))


@pytest.mark.parametrize("name", [name for name in KERNELS if "_lds" in name])
def test_an_iterations_clocks_are_those_that_lesson_07_counts(name):
    short, long = (simulate(name, 256, k=k) for k in (64, 128))
    for unit, clocks in unit_clocks(name).items():
        spent = [
            r.busy[unit] * r.clocks * r.device.simd_engines / r.wavefronts for r in (short, long)
        ]
        assert spent[1] - spent[0] == pytest.approx(clocks * (128 - 64) / KERNELS[name].k_step)
