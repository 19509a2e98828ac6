"""Kernels of the catalog compute the product, whatever flags, scalars and sizes are given. Each has
one text.
"""

from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest
from products import FLAGS, check_product, products, size_of
from sampling import SIX, drawn_by_day, each_of_six, seeded

import cypresskit as ck
from cypresskit.blas import to_fractions, to_pairs

pytestmark = pytest.mark.usefixtures("guard_pages")

KERNELS = list(ck.kernels.values())
#: Every kernel with transposes, and kernels of each structure with all of them.
ALL = [
    (kernel, flags)
    for n, kernel in enumerate(KERNELS)
    for flags in (FLAGS if kernel.name in SIX else [FLAGS[n % 4]])
]


def random_matrix(rng, precision, rows, columns, spread=0):
    """Numbers of about 10^+-spread; double-doubles have low parts that matter."""
    values = rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(
        -spread, spread + 1, (rows, columns)
    )
    if precision != "double-double":
        return values.astype(np.float32 if precision == "single" else np.float64)
    return np.stack([values, values * rng.uniform(-1, 1, values.shape) * 2.0**-54], -1)


def transposed(matrix, flag):
    return matrix.swapaxes(0, 1) if flag else matrix


@drawn_by_day(("kernel", "flags"), ALL, 6)
@seeded(1)
def test_flags_scalars_and_sizes_that_are_no_multiples(kernel, flags, seed):
    rng = np.random.default_rng((seed, FLAGS.index(flags)))
    for sizes in ((1, 1, 1), (13, 10, 7), tuple(rng.integers(1, 40, 3))):
        m, n, k = size_of(kernel, *sizes)
        a, b, c = (
            random_matrix(rng, kernel.precision, *shape) for shape in ((m, k), (k, n), (m, n))
        )
        ab = products(a, b)
        for alpha, beta in ((1.0, 0.0), (-1.5, 0.5)):
            stored = [transposed(x, flag) for x, flag in zip((a, b), flags, strict=True)]
            got = ck.gemm(
                *stored,
                c,
                alpha=alpha,
                beta=beta,
                trans_a=flags[0],
                trans_b=flags[1],
                kernel=kernel,
            )
            check_product(got, ab, c, alpha, beta)


@each_of_six
def test_zero_scalars_never_read_their_matrices(name):
    kernel = ck.kernels[name]
    m, n, k = size_of(kernel, 9, 10, 6)
    rng = np.random.default_rng(2)
    a, b = random_matrix(rng, kernel.precision, m, k), random_matrix(rng, kernel.precision, k, n)
    nan = random_matrix(rng, kernel.precision, m, n)
    nan[...] = np.nan
    nothing = np.zeros_like(nan)
    check_product(ck.gemm(a, b, nan, beta=0.0, kernel=kernel), products(a, b), nothing, 1, 0)
    a[...] = np.nan
    ones = np.zeros_like(nan)
    ones.reshape(m, n, -1)[..., 0] = 1
    assert np.array_equal(ck.gemm(a, b, ones, alpha=0.0, beta=2.0, kernel=kernel), 2 * ones)


@pytest.mark.parametrize("kernel", ["ddgemm_tn_fma", "ddgemm_nn_nofma"])
@seeded(1)
def test_double_double_of_ill_conditioned_sums(kernel, seed):
    """Terms of 10^20 that cancel to about 1: double has no digit right there, double-double must
    have 2 k 2^-104.
    """
    rng = np.random.default_rng(seed)
    m, n, half = 3, 2, 12
    a = random_matrix(rng, "double-double", m, half, spread=10)
    b = random_matrix(rng, "double-double", half, n, spread=10)
    a, b = np.hstack([a, -a]), to_fractions(np.vstack([b, b]))
    b = to_pairs(b + np.vectorize(Fraction)(rng.standard_normal(b.shape) * 1e-12))
    got = to_fractions(ck.gemm(a, b, kernel=kernel))
    fa, fb = to_fractions(a), to_fractions(b)
    want, size, k = fa.dot(fb), abs(fa).dot(abs(fb)), a.shape[1]
    assert (abs(got - want) <= 2 * k * Fraction(2) ** -104 * size).all()
    plain = np.vectorize(Fraction)(ck.gemm(a[..., 0], b[..., 0]))
    better = [
        abs(p - w) / max(abs(g - w), s * Fraction(2) ** -110)
        for p, g, w, s in zip(plain.flat, got.flat, want.flat, size.flat, strict=True)
    ]
    assert min(better) > 10**12


def test_every_kernel_of_the_catalog_has_one_text():
    names = [path.name for path in files("cypresskit.kernels").iterdir()]
    in_files = {name.removesuffix(".il") for name in names if name.endswith(".il")}
    assert in_files == set(ck.kernels)
    for kernel in KERNELS:
        assert kernel.program.mode == kernel.mode
        assert len(kernel.teaches) > 10
        assert (kernel.convention.group is not None) == (kernel.mode == "compute")
