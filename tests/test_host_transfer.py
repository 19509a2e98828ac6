"""The transfer model against the figures that its paper prints, and against the event model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cypresskit as ck
from cypresskit.host.pipeline import Matrices
from cypresskit.host.transfer import (
    n_balance,
    rate_with_transfers,
    round_trip_timeline,
    transfer_seconds,
)

B, F = 3e9, 450e9


def test_balance_is_the_papers():
    assert n_balance(B, F) == pytest.approx(2400)
    assert rate_with_transfers(2400, B, F) == pytest.approx(F / 2)


def test_other_precisions_scale_with_their_bytes():
    assert n_balance(B, F, "single") == pytest.approx(1200)
    assert n_balance(B, F, "double-double") == pytest.approx(4800)
    assert transfer_seconds(1000, 32e6) == pytest.approx(1)


def test_rates_with_transfers_are_the_papers():
    assert rate_with_transfers(2048, B, F) == pytest.approx(200e9, rel=0.05)
    assert min(rate_with_transfers(n, 10e9, F) for n in range(2048, 5121, 128)) >= 300e9


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
