"""gemm has the meaning that BLAS gives it, on data where a wrong index shows."""

import itertools

import numpy as np
import pytest

import cypresskit as ck

EPS = {np.float32: 2.0**-24, np.float64: 2.0**-53}
FLAGS = [(False, False), (True, False), (False, True), (True, True)]


def matrices(rng, m, n, k, trans_a, trans_b, dtype=np.float32):
    a = rng.standard_normal((k, m) if trans_a else (m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if trans_b else (k, n)).astype(dtype)
    return a, b, rng.standard_normal((m, n)).astype(dtype)


def check(got, a, b, c, alpha, beta, trans_a, trans_b):
    """Every element within the error bound of a sum of k products, each rounded, then scaled and added to beta c."""
    dtype = got.dtype.type
    wide = [x.astype(np.longdouble) for x in (a.T if trans_a else a, b.T if trans_b else b, c)]
    alpha, beta = dtype(alpha), dtype(beta)
    want = alpha * (wide[0] @ wide[1]) + beta * wide[2]
    size = abs(alpha) * (abs(wide[0]) @ abs(wide[1])) + abs(beta) * abs(wide[2])
    k = wide[0].shape[1]
    assert got.shape == want.shape
    assert (abs(got - want) <= (k + 3) * EPS[dtype] * size + np.finfo(dtype).tiny).all()


def test_a_thousand_random_shapes_in_all_four_transposes():
    rng = np.random.default_rng(2009)
    for n_th in range(1000):
        m, n, k = rng.integers(1, 201, 3)
        trans_a, trans_b = FLAGS[n_th % 4]
        alpha, beta = rng.choice([1.0, -0.5, 3.0], 2) * rng.choice([1, 1, 0], 2)
        a, b, c = matrices(rng, m, n, k, trans_a, trans_b)
        got = ck.gemm(a, b, c, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b)
        check(got, a, b, c, alpha, beta, trans_a, trans_b)


def test_any_strides_are_read_and_nothing_is_written():
    rng = np.random.default_rng(3)
    base = rng.standard_normal((90, 90)).astype(np.float32)
    a, b, c = base[80:20:-2, 1:41:3], base[5:75:5, ::4], np.asfortranarray(base[:30, :23])
    before = base.copy(), c.copy()
    for view in (a, b, c):
        view.flags.writeable = False
    got = ck.gemm(a, b, c, beta=1.0)
    check(got, a, b, c, 1.0, 1.0, False, False)
    assert np.array_equal(base, before[0])
    assert np.array_equal(c, before[1])


def test_beta_zero_never_reads_c_and_alpha_zero_never_reads_a_or_b():
    one, nan = np.ones((9, 9), np.float32), np.full((9, 9), np.nan, np.float32)
    assert (ck.gemm(one, one, nan, beta=0.0) == 9).all()
    assert (ck.gemm(nan, nan, one, alpha=0.0, beta=2.0) == 2).all()
    assert (ck.gemm(nan, nan, alpha=0.0) == 0).all()


def test_nan_and_infinity_stay_in_their_rows_and_columns():
    a, b = np.ones((20, 11), np.float32), np.ones((11, 30), np.float32)
    a[4, 2], b[3, 7] = np.nan, np.inf
    got = ck.gemm(a, b)
    want = a @ b
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.array_equal(got[:, 8:], want[:, 8:], equal_nan=True)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 3), (5, 0, 3), (0, 0, 0), (4, 5, 0)])
def test_empty_matrices_as_blas_has_them(m, n, k):
    a, b, c = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.full((m, n), 3, np.float32)
    got = ck.gemm(a, b, c, alpha=np.nan, beta=2.0) if k == 0 else ck.gemm(a, b, c, beta=2.0)
    assert got.shape == (m, n)
    assert (got == 6).all()


GOOD = np.ones((4, 4), np.float32)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1.0]], GOOD), TypeError, "a must be a numpy array or a DD, not list"),
        ((GOOD, GOOD.astype(int)), TypeError, "b has dtype int64: gemm takes float32 or float64"),
        ((GOOD, GOOD.astype(float)), TypeError, "b is float64 but a is float32"),
        ((GOOD, GOOD, GOOD.astype(float)), TypeError, "c is float64 but a is float32"),
        ((GOOD[0], GOOD), ValueError, "a matrix has two dimensions"),
        ((GOOD, GOOD[:3]), ValueError, r"the inner sizes, 4 and 3, must be equal"),
        ((GOOD, GOOD, GOOD[:3]), ValueError, r"c has shape \(3, 4\), the product has \(4, 4\)"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        ck.gemm(*arguments)


def test_numpys_own_truth_values_are_taken():
    assert (ck.gemm(GOOD, GOOD, trans_a=np.True_, trans_b=np.False_) == GOOD.T @ GOOD).all()


def test_scalars_and_kernel_names_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="there is no c to multiply"):
        ck.gemm(GOOD, GOOD, beta=1.0)
    with pytest.raises(TypeError, match="alpha must be a real number, not complex"):
        ck.gemm(GOOD, GOOD, alpha=1j)
    with pytest.raises(TypeError, match="trans_a is True or False, not 'N'"):
        ck.gemm(GOOD, GOOD, trans_a="N")
    with pytest.raises(TypeError, match=r"kernel is the name of one in ck\.kernels, or a Kernel, not 3"):
        ck.gemm(GOOD, GOOD, kernel=3)
    with pytest.raises(TypeError, match=r"device is a Device, such as ck\.HD5870, not 'HD5850'"):
        ck.gemm(GOOD, GOOD, device="HD5850")
    with pytest.raises(KeyError, match="no kernel 'sgem'; the catalogue has sgemm_tn"):
        ck.gemm(GOOD, GOOD, kernel="sgem")


def test_the_catalogue_says_what_is_in_it():
    assert "sgemm_tn" in repr(ck.kernels)
    assert ck.kernels["sgemm_tn"].padded(9, 17, 3) == (16, 24, 4)
    assert ck.kernels["sgemm_tn"].domain(16, 24) == (3, 2)


def test_double_double_matrices_and_scalars():
    third = ck.DD("1/3")
    a = ck.DD([["1/3", 2], [3, "0.1"]])
    got = ck.gemm(a, a, a, alpha=third, beta=-third, trans_b=True)
    exact = a.fractions()
    want = (exact.dot(exact.T) - exact) * third.fractions()
    assert (abs(got.fractions() - want) < 1e-29).all()
    with pytest.raises(TypeError, match="b is DD but a is float64"):
        ck.gemm(np.ones((2, 2)), a)
    with pytest.raises(TypeError, match="computes in single precision, the matrices are double-double"):
        ck.gemm(a, a, kernel="sgemm_tn")


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gemv_is_the_product_with_a_column(trans, dtype):
    rng = np.random.default_rng(4)
    for rows, columns in ((1, 1), (70, 33), (5, 300)):
        a = rng.standard_normal((rows, columns)).astype(dtype)
        m, k = (columns, rows) if trans else (rows, columns)
        x, y = rng.standard_normal(k).astype(dtype), rng.standard_normal(m).astype(dtype)
        got = ck.gemv(a, x, y, alpha=2.0, beta=0.5, trans=trans)
        check(got[:, np.newaxis], a, x[:, np.newaxis], y[:, np.newaxis], 2.0, 0.5, trans, False)


@pytest.mark.parametrize(
    ("arguments", "more", "error", "message"),
    [
        ((GOOD, GOOD), {}, ValueError, "x has shape .*: a vector has one dimension"),
        ((GOOD[0], GOOD[0]), {}, ValueError, "a has shape .*: a matrix has two dimensions"),
        ((GOOD, None), {}, TypeError, "x must be a numpy array or a DD, not NoneType"),
        ((GOOD, GOOD[0].astype(float)), {}, TypeError, "x is float64 but a is float32"),
        ((GOOD, GOOD[0], GOOD[0].astype(float)), {}, TypeError, "y is float64 but a is float32"),
        ((GOOD[:3], GOOD[0, :3]), {}, ValueError, r"op\(a\) is 3 x 4, so x has to have 4 elements, not 3"),
        ((GOOD[:3], GOOD[0]), {"trans": True}, ValueError, r"op\(a\) is 4 x 3, so x has to have 3 elements, not 4"),
        ((GOOD[:3], GOOD[0], GOOD[0]), {}, ValueError, r"op\(a\) is 3 x 4, so y has to have 3 elements, not 4"),
        ((GOOD, GOOD[0]), {"beta": 1}, ValueError, "beta is 1, but there is no y to multiply with it"),
        ((GOOD, GOOD[0]), {"beta": "1"}, TypeError, "beta must be a real number, not str"),
        ((GOOD, GOOD[0]), {"trans": "T"}, TypeError, "trans is True or False, not 'T'"),
        ((GOOD, GOOD[0]), {"trans_b": True}, TypeError, "unexpected keyword argument 'trans_b'"),
    ],
)
def test_vectors_that_do_not_fit_are_refused_by_their_own_names(arguments, more, error, message):
    with pytest.raises(error, match=message):
        ck.gemv(*arguments, **more)


def test_packed_products_are_those_of_the_pairs():
    rng = np.random.default_rng(5)
    for count, m, n, k in ((1, 3, 4, 5), (4, 70, 65, 9), (3, 64, 64, 64)):
        a, b, c = (rng.standard_normal((count, *s)).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
        got = ck.gemm_packed(a, b, c, alpha=-1.0, beta=2.0)
        for i in range(count):
            check(got[i], a[i], b[i], c[i], -1.0, 2.0, False, False)


def test_packed_products_as_blas_has_them():
    nan = np.full((2, 3, 3), np.nan, np.float32)
    ones = np.ones((2, 3, 3), np.float32)
    assert (ck.gemm_packed(ones, ones, nan) == 3).all()
    assert (ck.gemm_packed(nan, nan, ones, alpha=0.0, beta=2.0) == 2).all()
    assert ck.gemm_packed(ones[:0], ones[:0]).shape == (0, 3, 3)
    assert (ck.gemm_packed(ones[:, :, :0], ones[:, :0]) == 0).all()
    with pytest.raises(ValueError, match="shapes are"):
        ck.gemm_packed(ones, ones[:1])
    with pytest.raises(TypeError, match="packed matrices are float32"):
        ck.gemm_packed(ones.astype(float), ones.astype(float))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_cases_of_the_reference_test_program(dtype):
    """Sizes, scalars, transposes and leading dimensions as the level 3 test programs of the reference BLAS have them:
    every size from 0 to 9 that they use, alpha 0, 1, 0.7, beta 0, 1, 1.3, matrices inside larger ones."""
    rng = np.random.default_rng(90)
    whole = rng.uniform(-0.5, 0.5, (3, 12, 13)).astype(dtype)
    before = whole.copy()
    for m, n, k in itertools.product((0, 1, 2, 3, 5, 9), repeat=3):
        for (trans_a, trans_b), alpha, beta in itertools.product(FLAGS, (0.0, 1.0, 0.7), (0.0, 1.0, 1.3)):
            a = whole[0, : k if trans_a else m, : m if trans_a else k]
            b = whole[1, 1:, 2:][: n if trans_b else k, : k if trans_b else n]
            c = whole[2, 2 : m + 2, 1 : n + 1]
            got = ck.gemm(a, b, c, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b)
            check(got, a, b, c, alpha, beta, trans_a, trans_b)
    assert np.array_equal(whole, before)


@pytest.mark.parametrize("flags", FLAGS)
def test_out_of_core_gives_the_same_product(flags):
    rng = np.random.default_rng(11)
    a, b, c = matrices(rng, 150, 133, 40, *flags, dtype=np.float64)
    got = ck.gemm(a, b, c, alpha=2.0, beta=-1.0, trans_a=flags[0], trans_b=flags[1], out_of_core=True)
    check(got, a, b, c, 2.0, -1.0, *flags)


def test_a_launch_of_matrices_that_do_not_fit_the_kernel_is_refused():
    ones = np.ones((8, 16), np.float32)
    with pytest.raises(ValueError, match="sgemm_nn takes A as m x k and B as k x n; found 8 x 16 and 8 x 16"):
        ck.kernels["sgemm_nn"].arguments(ones, ones, None, 1, 0)
    with pytest.raises(TypeError, match="B has dtype float64: sgemm_tn takes float32"):
        ck.kernels["sgemm_tn"].arguments(ones, ones.astype(float), None, 1, 0)
