"""The transfer model against the figures that its paper prints, and against the event model."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cypresskit as ck
from cypresskit.host.pipeline import Matrices
from cypresskit.host.tasks import run_tasks
from cypresskit.host.transfer import (
    n_balance,
    rate_with_transfers,
    round_trip_timeline,
    transfer_seconds,
)

B, F = 3e9, 450e9


def test_other_precisions_scale_with_their_bytes():
    assert n_balance(B, F, "single") == pytest.approx(1200)
    assert n_balance(B, F, "double-double") == pytest.approx(4800)
    assert transfer_seconds(1000, 32e6) == pytest.approx(1)


@given(st.integers(1, 20000), st.floats(1e8, 2e10), st.floats(1e9, 3e12))
def test_the_event_model_measures_the_same(n, bandwidth, rate):
    timeline = round_trip_timeline(n, bandwidth, rate)
    timeline.check()
    assert timeline.gflops * 1e9 == pytest.approx(rate_with_transfers(n, bandwidth, rate))


@given(st.integers(1, 60), st.floats(-2, 2), st.floats(-2, 2), st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_real_matrices_travel_over_the_bus_and_back(n, alpha, beta, seed):
    a, b, c = np.random.default_rng(seed).standard_normal((3, n, n))
    work = Matrices(a, b, c, alpha=alpha, beta=beta)
    timeline = round_trip_timeline(n, B, F, matrices=work)
    assert np.isnan(work.result).all(), "nothing has travelled yet"
    timeline.execute()
    assert ck.compare(work.result, a, b, c, alpha=alpha, beta=beta)
    assert timeline.seconds == round_trip_timeline(n, B, F).seconds
    with pytest.raises(ValueError, match=f"n is {n + 1}, but the matrices are {n} x {n}"):
        round_trip_timeline(n + 1, B, F, matrices=work)


@pytest.mark.parametrize("products", [2, 3, 8])
@pytest.mark.parametrize("n", [1200, 1800, 2400, 4800])
def test_what_lesson_09_says_of_several_products(n, products):
    """If the bus brings the next ones' matrices meanwhile, the chip pauses before the first kernel
    and after the last; also between them, if three matrices take longer than a kernel.
    """
    tasks = [
        replace(
            span.task,
            name=f"{span.task.name} {number}",
            queue=span.task.stage,
            reads={f"{buffer} {number}": text for buffer, text in span.task.reads.items()},
            writes={f"{buffer} {number}": text for buffer, text in span.task.writes.items()},
        )
        for number in range(products)
        for span in round_trip_timeline(n, B, F).spans
    ]
    spans = run_tasks(tasks, round_trip_timeline(n, B, F).resources).spans
    kernels = [span for span in spans if span.task.stage == "mult"]
    transfer = 8 * n**2 / B
    between = sum(after.start - before.end for before, after in pairwise(kernels))
    assert kernels[0].start == pytest.approx(3 * transfer)
    assert max(span.end for span in spans) - kernels[-1].end == pytest.approx(transfer)
    lacking = max(0, 3 * transfer - 2 * n**3 / F)
    assert between == pytest.approx((products - 1) * lacking, abs=1e-9)
