"""Random matrices, and what their product has to be."""

import numpy as np

#: Whether A is transposed, and B.
FLAGS = [(False, False), (True, False), (False, True), (True, True)]
BOUND = {
    "single": 24,
    "double": 53,
    "double-double": 103,
}  # a rounding's share: 2 to the minus this
BITS = 256  # behind the point of an exact number here: whole numbers are faster than fractions


def size_of(kernel, m, n, k):
    """The size of a kernel's product: where B is a vector, n is 1."""
    return m, 1 if kernel.is_vector else n, k


def random_matrices(kernel, m, n, k, rng):
    """Random A, B, C as the kernel stores them, an infinity, a NaN and -0 among them."""
    m, n, k = size_of(kernel, m, n, k)
    pair = (2,) if kernel.precision == "double-double" else ()
    count = (3,) if kernel.convention.packed else ()
    shapes = [(k, m) if kernel.trans_a else (m, k), (n, k) if kernel.trans_b else (k, n), (m, n)]
    arrays = [rng.standard_normal(count + shape + pair).astype(kernel.dtype) for shape in shapes]
    arrays[0].flat[[0, -1]], arrays[1].flat[-1] = (np.inf, np.nan), -0.0
    return arrays


def whole_numbers(seed, *shapes, dtype=np.float32):
    """Matrices of small whole numbers, whose sums are exact."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]


def exact(matrix):
    """A matrix of whole numbers, 2^``BITS`` times as large."""
    result = np.zeros(matrix.shape, object)
    for at in np.ndindex(matrix.shape):
        number, whole = float(matrix[at]).as_integer_ratio()
        result[at] = (number << BITS) // whole
    return result.sum(axis=-1) if matrix.ndim == 3 else result


def products(a, b):
    """The exact product, and that of all sizes without signs."""
    a, b = exact(a), exact(b)
    return a.dot(b), abs(a).dot(abs(b)), a.shape[1]


def check_product(got, ab, c, alpha, beta):
    """Every element within (2 k + 3) roundings of the exact value, relative to the sum of the
    terms' sizes; ``ab`` as ``products`` gives it.
    """
    precision = "double-double" if got.ndim == 3 else {4: "single", 8: "double"}[got.itemsize]
    (alpha, beta), c = exact(np.array([alpha, beta])), exact(c) << BITS
    sums, sizes, k = ab
    want = alpha * sums + beta * c
    size = abs(alpha) * sizes + abs(beta) * abs(c)
    assert got.shape[:2] == want.shape
    error = abs((exact(got) << 2 * BITS) - want)
    assert (error << BOUND[precision] <= (2 * k + 3) * size).all()
