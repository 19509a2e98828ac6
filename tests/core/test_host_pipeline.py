"""The pipelines: the same matrix as numpy whatever the order of events, and times against
hand-computed ones.
"""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from other_moments import at_other_moments, numpy_gemm
from products import whole_numbers
from pytest import approx
from sampling import ROWS

from cypresskit.devices import HD5970, XEON
from cypresskit.host import pipeline
from cypresskit.host.machine import Machine
from cypresskit.host.pipeline import Matrices, five_stage, four_stage
from cypresskit.host.tasks import Span, Task, Timeline

PIPELINES = {"four": four_stage, "five": five_stage}


@pytest.fixture
def fixed_rate(monkeypatch):
    """Kernels at 400 Gflop/s, so that times can be computed by hand."""
    monkeypatch.setattr(pipeline, "kernel_rate", lambda *_: 400e9)


def expected(held):
    return held.alpha * (held.a @ held.b) + (held.beta * held.c if held.beta else 0)


rates = st.floats(0.01, 100)


@given(
    which=st.sampled_from(list(PIPELINES)),
    sizes=st.tuples(st.integers(1, 36), st.integers(1, 36), st.integers(1, 20)),
    block=st.integers(1, 24),
    chips=st.integers(1, 2),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    beta=st.sampled_from([0.0, 0.5]),
    speeds=st.tuples(rates, rates, rates, rates),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25)
def test_any_rates_sizes_and_order_of_events_give_numpys_matrix(
    which, sizes, block, chips, share, beta, speeds, seed
):
    memory, dma, cpu, chip = speeds
    host = replace(
        XEON, memory_gb_s=memory, dma_gb_s=dma, pcie_gb_s=dma, copy_gb_s=dma, cpu_gflops=cpu
    )
    m, n, k = sizes
    drawn = whole_numbers(m * n + k, (m, k), (k, n), (m, n), dtype=np.float64)
    data = Matrices(*drawn, alpha=2.0, beta=beta)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "kernel_rate", lambda *_: chip * 1e9)
        patch.setattr(pipeline, "gemm", numpy_gemm)
        options, machine = {"block": block, "matrices": data}, Machine(HD5970, host, chips)
        timeline = PIPELINES[which](*sizes, machine, cpu_share=share, **options)
        timeline.check()
        data.result[:] = np.nan
        at_other_moments(timeline, seed).execute()
        assert np.array_equal(data.result, expected(data))


def test_five_stages_in_step(fixed_rate):
    timeline = five_stage(2048, 2048, 1024, Machine(use_chips=1))
    spans = {
        span.task.name: (round(span.start * 1e3, 2), round(span.end * 1e3, 2), *span.task.writes)
        for span in timeline.spans
    }
    assert all(
        spans[task] == tuple(times) for task, *times in ROWS["test_host_pipeline"]["five_stages"]
    )
    assert timeline.stages().keys() == {"load1", "load2", "mult1", "store1", "store2"}
    strip, piece = 2048 * 1024 * 8, 512 * 2048 * 8
    busy = {  # seconds
        "host memory": (2 * 3 * strip + 4 * piece + 2 * 3 * 2 * piece) / 31.2e9,  # loads, stores
        "PCIe to card": 2 * strip / 6e9,
        "PCIe to host": 4 * piece / 6e9,
        "CPU": 0,
        "chip 0": 2 * 2048**2 * 1024 / 400e9,
        "DMA 0": (2 * strip + 4 * piece) / 6e9,
        "thread 0": (2 * strip + 1.5 * 4 * piece) / 6e9,
    }
    assert {name: timeline.seconds * share for name, share in timeline.busy.items()} == approx(busy)
    assert timeline.bound == "chip 0"


def test_the_share_that_measured_rates_ask_for():
    # the CPU did a fifth in 1 s, the chips four fifths in 8 s: 0.2 against 0.1 a second
    ends = {"CPU": (0.5, 1), "chip 0": (3, 8)}
    spans = [Span(Task("mult", "mult", queue, {}), 0, end) for queue in ends for end in ends[queue]]
    for order in permutations(spans):
        assert pipeline.balanced_cpu_share(Timeline(order, {}), 0.2) == approx(2 / 3)


def test_the_adaptive_share_makes_both_end_together(fixed_rate):
    calls = pipeline.adapt_cpu_share(16384, 16384, 2048, Machine(), calls=5)
    share, timeline = calls[-1]
    assert calls[0][0] == approx(128 / (128 + 928))
    assert timeline.gflops >= calls[0][1].gflops
    assert pipeline.balanced_cpu_share(timeline, share) == approx(share, abs=0.003)
