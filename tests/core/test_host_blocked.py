"""Blocks larger than the card: real products, the block that fits, what overlap and padding
bring.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from other_moments import at_other_moments, numpy_gemm
from products import whole_numbers
from sampling import from_rows

from cypresskit.devices import HD5870
from cypresskit.host import blocked
from cypresskit.host.blocked import (
    blocked_timeline,
    card_bytes,
    choose_block,
    count_strips,
    gemm_out_of_core,
    largest_block,
)
from cypresskit.host.machine import Machine

ONE = Machine(HD5870)


@pytest.fixture(autouse=True)
def fixed_rate(monkeypatch):
    """Kernels at 470 Gflop/s, so that times can be computed by hand."""
    monkeypatch.setattr(blocked, "kernel_rate", lambda *_: 470e9)


@given(
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40)),
    block=st.integers(5, 24),
    depth=st.integers(5, 24),
    beta=st.sampled_from([0.0, 0.5]),
    transposed=st.tuples(st.booleans(), st.booleans()),
    speed=st.floats(1e-3, 1e5),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=20)
def test_any_rates_sizes_and_order_of_events_give_numpys_matrix(
    sizes, block, depth, beta, transposed, speed, seed
):
    m, n, k = sizes
    a, b, c = whole_numbers(1, (m, k), (k, n), (m, n), dtype=np.float64)
    a, b = (
        x.T.copy().T if turned else x for x, turned in zip((a, b), transposed)
    )  # as `gemm` passes a transpose

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocked, "kernel_rate", lambda *_: speed * 1e9)
        patch.setattr(blocked, "gemm", numpy_gemm)
        result, timeline = gemm_out_of_core(a, b, c, alpha=2.0, beta=beta, block=block, depth=depth)
        assert np.array_equal(result, 2 * (a @ b) + beta * c)
        timeline.check()
        rows, columns, chunks = -(-m // block), -(-n // block), -(-k // depth)
        strips = [each.task for each in timeline.spans if each.task.stage == "load2"]
        sent = sum(task.matrix in ("A", "B") for task in strips)
        assert sent == count_strips(rows, columns, chunks)
        result[:] = np.nan  # once more, with every task taking effect at another moment
        at_other_moments(timeline, seed).execute()
    assert np.array_equal(result, 2 * (a @ b) + beta * c)


def test_matrices_larger_than_a_small_card():
    card = replace(HD5870, memory_bytes=2 << 20)
    a, b, c = whole_numbers(0, (600, 520), (520, 600), (600, 600), dtype=np.float64)
    assert a.nbytes > card.memory_bytes
    result, timeline = gemm_out_of_core(a, b, c, alpha=-1.0, beta=2.0, device=card, depth=256)
    assert np.array_equal(result, 2 * c - a @ b)
    assert (
        sum(span.task.stage == "mult" for span in timeline.spans) == 5 * 5 * 3
    )  # blocks of 128, strips of 256


def test_1792_is_the_largest_block_that_1_gb_allows():
    assert largest_block(HD5870) == 1792
    assert sum(card_bytes(1792).values()) <= HD5870.memory_bytes < sum(card_bytes(1920).values())
    assert largest_block(replace(HD5870, memory_bytes=2 << 30)) > 1792
    shallow = replace(HD5870, texture_side=4096)
    assert largest_block(shallow) == largest_block(HD5870, 4096) > 1792


@from_rows
def test_chooses_the_block_that_pads_little_and_hides_the_bus(n, block):
    assert choose_block(n, n, n, ONE) == block


def test_overlap_hides_the_bus():
    n = 8 * 1792
    together, apart = (blocked_timeline(n, n, n, ONE, overlap=overlap) for overlap in (True, False))
    together.check()
    assert together.bound == apart.bound == "chip 0"
    assert together.busy["chip 0"] > 0.95
    # one after the other: the kernels at 470, the strips of A and B (64 + 8 - 7 kept) and C both
    # ways at 3 GB/s
    strip, c = 1792 * n * 8, n * n * 8
    loads = sum(span.task.bytes for span in apart.spans if span.task.stage == "load2")
    assert loads == pytest.approx((1 + 64 - 7) * strip + c)
    assert apart.seconds == pytest.approx(2 * n**3 / 470e9 + (loads + c) / 3e9)
