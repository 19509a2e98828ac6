"""gemm has the meaning that BLAS gives it, on data where a wrong index shows."""

import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest
from products import FLAGS, check_product, products, random_matrices
from sampling import each_of_six, seeded

import cypresskit as ck
from cypresskit.blas import to_fractions, to_pairs

pytestmark = pytest.mark.usefixtures("guard_pages")


def test_any_strides_are_read_and_nothing_is_written():
    rng = np.random.default_rng(3)
    base = rng.standard_normal((90, 90)).astype(np.float32)
    a, b, c = base[80:20:-2, 1:41:3], base[5:75:5, ::4], np.asfortranarray(base[:30, :23])
    before = base.copy(), c.copy()
    for view in (a, b, c):
        view.flags.writeable = False
    got = ck.gemm(a, b, c, beta=1.0)
    check_product(got, products(a, b), c, 1.0, 1.0)
    assert np.array_equal(base, before[0])
    assert np.array_equal(c, before[1])


def test_nan_and_infinity_stay_in_their_rows_and_columns():
    a, b = np.ones((20, 11), np.float32), np.ones((11, 30), np.float32)
    a[4, 2], b[3, 7] = np.nan, np.inf
    got = ck.gemm(a, b)
    want = a @ b
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.array_equal(got[:, 8:], want[:, 8:], equal_nan=True)
    assert (ck.gemm(a, b, alpha=0.0) == 0).all()


SINGLE, DOUBLE, PAIR = np.ones((1, 1), np.float32), np.ones((1, 1)), to_pairs([[1]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("one", "alpha"),  # kernels of pairs make NaN of infinity
    [(SINGLE, 1e38), (SINGLE, -np.inf), (DOUBLE, 1e300), (DOUBLE, -np.inf), (PAIR, 1e300)],
)
def test_scalars_up_to_the_largest_numbers(one, alpha):
    assert ck.gemm(one, one, alpha=alpha).flat[0] == one.dtype.type(alpha)


def test_double_double_matrices_and_scalars():
    third = Fraction(1, 3)
    a = to_pairs([[third, 2], [3, Fraction("0.1")]])
    got = ck.gemm(a, a, a, alpha=third, beta=-third, trans_b=True)
    exact = to_fractions(a)
    want = (exact.dot(exact.T) - exact) * third
    assert (abs(to_fractions(got) - want) < 1e-29).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@seeded(1)
def test_the_cases_of_the_reference_test_program(dtype, seed):
    """Sizes, scalars, transposes and leading dimensions as the level 3 test programs of the
    reference BLAS have them: every size from 0 to 9 that they use, alpha 0, 1, 0.7, beta 0, 1, 1.3,
    matrices inside larger ones. Each product has one of the nine pairs of scalars.
    """
    rng = np.random.default_rng(seed)
    whole = rng.uniform(-0.5, 0.5, (3, 12, 13)).astype(dtype)
    before = whole.copy()
    scalars = [*itertools.product((0.0, 1.0, 0.7), (0.0, 1.0, 1.3))]
    sizes = itertools.product((0, 1, 2, 3, 5, 9), repeat=3)
    for (m, n, k), (trans_a, trans_b) in itertools.product(sizes, FLAGS):
        alpha, beta = rng.choice(scalars).tolist()
        a = whole[0, : k if trans_a else m, : m if trans_a else k]
        b = whole[1, 1:, 2:][: n if trans_b else k, : k if trans_b else n]
        c = whole[2, 2 : m + 2, 1 : n + 1]
        got = ck.gemm(a, b, c, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b)
        check_product(got, products(a.T if trans_a else a, b.T if trans_b else b), c, alpha, beta)
    assert np.array_equal(whole, before)


# Long sums


@each_of_six
@pytest.mark.parametrize(("k", "slack"), [(1, np.inf), (8192, 100)])
def test_the_limit_of_instructions_follows_from_k_and_length(name, k, slack):
    """No work-item issues more, and not much less: a loop that doesn't end is found."""
    kernel = ck.kernels[name]
    m, n = kernel.convention.multiple
    a, b, _ = random_matrices(kernel, m, n, k, np.random.default_rng(1))
    arguments = kernel.arguments(a, b, None, 1.0, 0.0)
    limit = arguments["max_instructions"]
    run = ck.launch(kernel.program, **arguments)
    issued = run.executed.sum() / run.executed[0]
    assert issued <= limit <= slack * issued


ONE = np.ones((8, 8), np.float32)
LAUNCHING = {
    "gemm": lambda: ck.gemm(ONE, ONE),
    "gemm out of core": lambda: ck.host.gemm_out_of_core(ONE.astype(float), ONE.astype(float)),
    "verify": lambda: ck.verify("sgemm_tn", size=32),
    "trace": lambda: ck.trace_element("sgemm_tn"),
    "recording": ck.teach.register_block.small_run,
    "picture": lambda: ck.draw.register_block("sgemm_tn"),
}


@pytest.mark.parametrize("launching", LAUNCHING)
def test_every_launch_of_a_kernel_has_the_kernels_limit(launching, monkeypatch):
    """Not that of any program, with which the longest products would end."""
    monkeypatch.setattr(sys.modules["cypresskit.machine.launch"], "MAX_INSTRUCTIONS", 1)
    assert "has not ended" not in str(LAUNCHING[launching]())


def long_product(kernel, k):
    """The thinnest product of length k, of numbers that a kernel sums up exactly."""
    ones = [np.ones(shape, kernel.dtype) for shape in kernel.convention.stored(1, 1, k)]
    if kernel.precision == "double-double":
        ones = map(to_pairs, ones)
    flags = {"trans_a": kernel.trans_a, "trans_b": kernel.trans_b}
    assert ck.gemm(*ones, kernel=kernel, **flags).flat[0] == k


def test_a_kernel_without_instructions_has_a_limit_and_a_register():
    empty = ck.Kernel("empty", "il_ps_2_0\nend\n")
    assert empty.max_instructions(4) >= 1
    assert ck.compile(empty.program).gprs == 1


@pytest.mark.parametrize("name", ["sgemm_tn", "sgemm_64x64_lds"])
def test_products_that_the_usual_limit_of_a_launch_would_end(name):
    """Some kernels' loops are so long that 2 million instructions are a k of 66,000."""
    long_product(ck.kernels[name], 300_000)


def test_vectors_may_be_long():
    ones = np.ones((1, 1_000_000))
    assert ck.gemv(ones, ones[0]) == 1_000_000
