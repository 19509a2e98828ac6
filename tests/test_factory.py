"""The matrix factory: results, accounted memory, and errors that say what holds it; and the choice
of kernels.
"""

from dataclasses import replace

import numpy as np
import pytest

import cypresskit as ck


def matrix(precision, rows, columns, seed=1):
    values = np.random.default_rng(seed).integers(-9, 10, (rows, columns)).astype(np.float64)
    return {"single": values.astype(np.float32), "double": values, "double-double": ck.DD(values)}[
        precision
    ]


@pytest.mark.parametrize("precision", ["single", "double", "double-double"])
def test_matrices_stay_on_the_card_between_operations(precision):
    x, y = matrix(precision, 13, 21), matrix(precision, 21, 13, seed=2)
    with ck.open(ck.HD5870) as gpu:
        a, b = gpu.upload(x), gpu.upload(y)
        product = gpu.multiply(a, b, alpha=2.0)
        square = gpu.multiply(product, product, trans_a=True)
        twice = gpu.multiply(a, b, square, beta=-1.0)
        results = [np.asarray(gpu.download(m), float) for m in (product, square, twice)]
        assert type(gpu.download(twice)) is type(x)
    whole = 2 * np.asarray(x, float) @ np.asarray(y, float)
    assert np.array_equal(results[0], whole)
    assert np.array_equal(results[1], whole.T @ whole)
    assert np.array_equal(results[2], whole / 2 - whole.T @ whole)
    assert product.choice.kernel.precision == precision


def test_memory_is_accounted_with_padding():
    with ck.open() as gpu:
        assert repr(gpu) == "             0  bytes of 1,073,741,824 on the HD 5870"
        a = gpu.upload(np.ones((9, 65), np.float32), "a")
        assert a.bytes == 16 * 128 * 4  # rows to 8, columns to 64
        b = gpu.upload(np.ones((1, 1)), "b")
        assert b.bytes == 8 * 64 * 8
        assert gpu.used == a.bytes + b.bytes
        gpu.free(a)
        assert gpu.used == b.bytes
        with pytest.raises(ValueError, match="a is not on this card"):
            gpu.download(a)
    assert gpu.used == 0


def test_running_out_says_what_holds_the_memory():
    with ck.open(replace(ck.HD5870, memory_bytes=100_000)) as gpu:
        gpu.upload(np.ones((64, 256), np.float32), "weights")
        with pytest.raises(
            ck.CardMemoryError,
            match=r"(?s)too_much .64 x 192 single. needs 49,152 bytes.*65,536  weights",
        ):
            gpu.upload(np.ones((64, 192), np.float32), "too_much")
        assert gpu.used == 65_536


def test_a_product_that_does_not_fit_leaves_the_card_as_it_was():
    with ck.open(replace(ck.HD5870, memory_bytes=100_000)) as gpu:
        a = gpu.upload(np.ones((64, 256), np.float32), "a")
        with pytest.raises(ck.CardMemoryError):
            gpu.multiply(a, a, trans_a=True)
        with pytest.raises(ValueError, match="inner sizes"):
            gpu.multiply(a, a)
        assert gpu.used == a.bytes


def test_the_choice_matches_gemms_kernel_and_shows_padding():
    choice = ck.choose(1000, 1000, 1000, "double", trans_a=True)
    assert (choice.kernel.name, choice.padded, choice.transposed) == (
        "dgemm_tn",
        (1000, 1000, 1000),
        "",
    )
    assert choice.waste == 0
    assert 300 < choice.gflops < 544
    assert len(choice.others) == 3
    assert all(choice.seconds <= other.seconds for other in choice.others)
    assert str(choice).startswith(
        "dgemm_tn: 1000 x 1000 x 1000 as 1000 x 1000 x 1000, 0.0 % padding, "
    )


def test_vectors_and_thin_shapes_get_kernels_of_their_own():
    assert ck.choose(4096, 1, 4096).kernel.vector
    assert ck.choose(64, 64, 8192).kernel.convention.parts > 1
    assert ck.choose(4096, 4096, 512, trans_a=True).kernel.name == "sgemm_tn"


def test_padding_is_chosen_by_cost():
    """On 65 x 65 x 4096 a tile of 64 x 64 wastes three quarters."""
    choice = ck.choose(65, 65, 4096)
    assert choice.waste < 0.6
    assert ck.choose(0, 5, 3).waste == 0


@pytest.mark.slow
def test_stored_figures_match_compiler_and_timing_model():
    """If this fails after a change to either, `python -m cypresskit.blas.modelled` makes the file
    anew.
    """
    from cypresskit.blas.choice import figures
    from cypresskit.blas.modelled import modelled
    from cypresskit.compiler import compile

    for name, kernel in ck.kernels.items():
        card, kept = compile(kernel.program).card(), figures(kernel)
        assert (name, kept.registers, kept.bundles) == (name, card.gprs, card.loop_bundles)
    for name in ("sgemm_tn", "dgemm_nn", "sgemv_t"):
        kept, fresh = figures(ck.kernels[name]), modelled(ck.kernels[name])
        assert kept.gflops == pytest.approx(fresh.gflops, rel=0.02)
        assert kept.clocks(20, 1000) == pytest.approx(fresh.clocks(20, 1000), rel=0.05)


def test_the_choices_estimate_is_close_to_the_timing_model():
    from cypresskit.timing.simulate import simulate

    for precision, m, n, k in (
        ("single", 300, 500, 400),
        ("double", 640, 640, 640),
        ("double-double", 100, 90, 80),
    ):
        for choice in (best := ck.choose(m, n, k, precision), *best.others):
            report = simulate(choice.kernel, n, m=m, k=k)
            assert choice.seconds == pytest.approx(report.clocks / 0.85e9, rel=0.5)


@pytest.mark.parametrize("make", [np.zeros, lambda shape: ck.DD(np.zeros(shape))])
def test_empty_matrices_are_multiplied(make):
    with ck.open() as gpu:
        empty = gpu.upload(make((0, 5)))
        assert gpu.download(gpu.multiply(empty, empty, trans_a=True)).shape == (5, 5)


def test_a_result_that_fails_gives_its_room_back(monkeypatch):
    with ck.open() as gpu:
        a = gpu.upload(np.ones((4, 4)))
        before = gpu.used
        monkeypatch.setattr("cypresskit.blas.factory.gemm", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            gpu.multiply(a, a)
        assert gpu.used == before
