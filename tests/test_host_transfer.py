"""The transfer model against the figures that its paper prints, and against the event model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(
    st.integers(1, 20000),
    st.floats(1e8, 2e10),
    st.floats(1e9, 3e12),
    st.sampled_from(["single", "double-double"]),
)
def test_the_event_model_measures_the_same(n, bandwidth, rate, precision):
    timeline = round_trip_timeline(n, bandwidth, rate, precision)
    timeline.check()
    assert timeline.gflops * 1e9 == pytest.approx(
        rate_with_transfers(n, bandwidth, rate, precision)
    )
