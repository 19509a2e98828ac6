"""The choice of kernels."""

import pytest

import cypresskit as ck


def test_the_choice_matches_gemms_kernel_and_shows_padding():
    choice = ck.choose_kernel(1000, 1000, 1000, "double", trans_a=True)
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
    assert ck.choose_kernel(4096, 1, 4096).kernel.is_vector
    assert ck.choose_kernel(64, 64, 8192).kernel.convention.parts > 1
    assert ck.choose_kernel(4096, 4096, 512, trans_a=True).kernel.name == "sgemm_tn"


def test_padding_is_chosen_by_cost():
    """On 65 x 65 x 4096 a tile of 64 x 64 wastes three quarters."""
    choice = ck.choose_kernel(65, 65, 4096)
    assert choice.waste < 0.6
    assert ck.choose_kernel(0, 5, 3).waste == 0


@pytest.mark.slow
def test_stored_figures_match_compiler_and_timing_model():
    """If this fails after a change to either, `python -m tools.stored_figures` makes the file
    anew.
    """
    from cypresskit.blas.performance_table import read_performance
    from cypresskit.compiler import compile
    from tools.stored_figures import kernel_figures

    for name, kernel in ck.kernels.items():
        card, kept = compile(kernel.program).stats(), read_performance()[name]
        assert (name, kept.registers, kept.bundles) == (name, card.gprs, card.bundles_per_iteration)
    for name in ("sgemm_tn", "dgemm_nn", "sgemv_t"):
        kept, fresh = read_performance()[name], kernel_figures(ck.kernels[name])
        assert kept.gflops == pytest.approx(fresh.gflops, rel=0.02)
        assert kept.clocks(20, 1000) == pytest.approx(fresh.clocks(20, 1000), rel=0.05)


@pytest.mark.slow
def test_the_choices_estimate_is_close_to_the_timing_model():
    from cypresskit.timing.simulate import simulate

    for precision, m, n, k in (
        ("single", 300, 500, 400),
        ("double", 640, 640, 640),
        ("double-double", 100, 90, 80),
    ):
        for choice in (best := ck.choose_kernel(m, n, k, precision), *best.others):
            report = simulate(choice.kernel, n, m=m, k=k)
            assert choice.seconds == pytest.approx(report.clocks / 0.85e9, rel=0.5)
