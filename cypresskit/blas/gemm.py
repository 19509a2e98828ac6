"""Compute C = alpha op(A) op(B) + beta C on the simulated device, with the semantics of BLAS.

Matrices are padded with zeros to whole blocks, and transposed if the kernel expects that;
the result's padding is removed. C is not read if beta is 0, and A and B are not read if alpha or k
is 0, so NaNs in them have no effect. ``gemv`` multiplies by a vector.
"""

import math
import numbers
from typing import Any

import numpy as np

from cypresskit.blas.dd import to_pairs
from cypresskit.kernels.own import Source, resolve
from cypresskit.machine.arguments import check_unmasked
from cypresskit.machine.engines import launch

Pair = tuple[float, float]  # a number as (high, low)
TYPES = {np.dtype("float32"): "single", np.dtype("float64"): "double"}
MAX_SIDE = {"single": float(np.finfo("f4").max)} | dict.fromkeys(
    ("double", "double-double"), float(np.finfo("f8").max)
)
#: The name of the usual kernel, by precision; its letters are the transposes.
USUAL = {"single": "sgemm_{}", "double": "dgemm_{}", "double-double": "ddgemm_{}_fma"}
MAX_K = 1 << 24  # the kernels count k in a float register, exactly up to here


def gemm(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    kernel: Source | None = None,
) -> np.ndarray:
    """Return alpha op(a) op(b) + beta c as a new matrix of shape (m, n).

    op transposes a matrix if ``trans_a`` or ``trans_b`` is set. For matrices that are larger than
    the card's memory, use ``ck.gemm_out_of_core``.

    Parameters
    ----------
    a
        (m, k), or (k, m) if ``trans_a``: a numpy array of float32 or float64, with any strides.
        Double-doubles are float64 with a last axis (high, low).
    b
        (k, n), or (n, k) if ``trans_b``, of the precision of ``a``.
    c
        (m, n), of the precision of ``a``; required unless beta is 0. It isn't changed.
    alpha, beta
        Numbers; with double-doubles also a ``Fraction``.
    trans_a, trans_b
        Whether ``a`` and ``b`` are stored transposed.
    kernel
        A kernel of ``ck.kernels`` or its name; or your own kernel: its file, source or program, or
        the result of ``ck.load_kernel``. By default the catalog's usual kernel for this precision
        and these transposes, such as ``sgemm_tn``. For small and thin products another may be
        faster: ``ck.simulate`` tells.

    Returns
    -------
    ndarray
        A new matrix of the precision of ``a``.

    Raises
    ------
    TypeError
        For other types.
    ValueError
        For shapes that don't match, and for numbers out of the precision's range.
    KeyError
        For an unknown kernel.

    Examples
    --------
    >>> a = np.ones((2, 3), np.float32)
    >>> ck.gemm(a, a, trans_b=True)
    array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    precision, scale, old, (m, n, k) = check_product(a, b, c, alpha, beta, trans_a, trans_b)
    trans_a, trans_b = bool(trans_a), bool(trans_b)
    if scale[0] == 0 or k == 0:
        scale = (0.0, 0.0)
        k = 0
        a = a[:0] if trans_a else a[:, :0]
        b = b[:, :0] if trans_b else b[:0]
    if kernel is None:
        kernel = USUAL[precision].format("nt"[trans_a] + "nt"[trans_b])
    chosen = resolve(kernel)
    if chosen.precision != precision:
        computes = f"the kernel {chosen.name} computes in {chosen.precision} precision"
        raise TypeError(f"{computes}, the matrices are {precision}")
    pair = a.shape[2:]
    if not m or not n:
        return np.zeros((m, n, *pair), chosen.dtype)
    if trans_a != chosen.trans_a:
        a = a.swapaxes(0, 1)
    if trans_b != chosen.trans_b:
        b = b.swapaxes(0, 1)
    arguments = chosen.arguments(a, b, c, scale, old)
    launch(chosen.program, **arguments)
    return chosen.result(arguments, m, n).reshape(m, n, *pair)


def check_product(
    a: Any, b: Any, c: Any, alpha: Any, beta: Any, trans_a: bool = False, trans_b: bool = False
) -> tuple[str, Pair, Pair, tuple[int, int, int]]:
    """Check the arguments of a product.

    Returns
    -------
    precision
        "single", "double" or "double-double".
    alpha, beta
        The scalars as (high, low).
    size
        m, n, k.

    Raises the errors of ``gemm``.
    """
    precision = precision_of({"a": a, "b": b} | ({} if c is None else {"c": c}), (2, 2, 2))
    alpha = _scalar("alpha", alpha, precision)
    beta = _scalar("beta", beta, precision)
    trans_a = require_bool("trans_a", trans_a)
    trans_b = require_bool("trans_b", trans_b)
    (m, k), (inner, n) = (
        x.shape[1::-1] if t else x.shape[:2] for x, t in ((a, trans_a), (b, trans_b))
    )
    if k != inner:
        shapes = f"op(a) is {m} x {k} and op(b) is {inner} x {n}"
        raise ValueError(f"{shapes}: the inner sizes, {k} and {inner}, must be equal")
    if c is not None and c.shape[:2] != (m, n):
        raise ValueError(f"c has shape {c.shape}, the product has {(m, n)}")
    if c is None and beta[0] != 0:
        raise ValueError(f"beta is {beta[0]:g}, but there is no c to multiply with it")
    if k > MAX_K:
        raise ValueError(
            f"k is {k:,}: the kernels count it in single precision, exact up to {MAX_K:,}"
        )
    return precision, alpha, beta, (m, n, k)


def require_bool(name: str, value: object) -> bool:
    """Return an argument as a bool. Raise ``TypeError`` if it isn't True or False."""
    if not isinstance(value, (bool, np.bool_, int)):  # BLAS's letter N would count as true
        raise TypeError(f"{name} is True or False, not {value!r}")
    return bool(value)


def gemv(a: np.ndarray, x: np.ndarray, *, kernel: Source | None = None) -> np.ndarray:
    """Return a x, a new vector of shape (m,).

    In single precision ``sgemv_n`` computes it, otherwise a GEMM kernel, with a padded vector.
    Types and errors are those of ``gemm``.

    Parameters
    ----------
    a
        (m, k).
    x
        (k,).
    kernel
        As for ``gemm``.
    """
    precision = precision_of({"a": a, "x": x}, (2, 1))
    if kernel is None and precision == "single":
        kernel = "sgemv_n"
    return gemm(a, x[:, np.newaxis], kernel=kernel)[:, 0]


def precision_of(arrays: dict[str, Any], dimensions: tuple[int, ...]) -> str:
    """Return the common precision of arrays, and check their numbers of dimensions."""
    found = {
        name: _precision(name, array, count)
        for (name, array), count in zip(arrays.items(), dimensions)
    }
    first, precision = next(iter(found.items()))
    for name, other in found.items():
        if other != precision:
            why = "".join(
                f": {each} has shape {arrays[each].shape}, and a last axis of 2 is (high, low)"
                for each in (first, name)
                if found[each] == "double-double"
            )
            raise TypeError(f"{name} is {other} but {first} is {precision}: all must be alike{why}")
    return precision


def _precision(name: str, array: Any, dimensions: int) -> str:
    """Return the precision of a vector or matrix."""
    if not isinstance(array, np.ndarray) or isinstance(array, np.matrix):
        raise TypeError(f"{name} must be a numpy array, not {type(array).__name__}")
    check_unmasked(array, name)
    if array.dtype not in TYPES:
        raise TypeError(f"{name} has dtype {array.dtype}: gemm takes float32 or float64")
    precision = TYPES[array.dtype]
    if precision == "double" and array.shape[dimensions:] == (2,):
        return "double-double"
    if array.ndim != dimensions:
        wanted = {1: "vector has one dimension", 2: "matrix has two dimensions"}
        raise ValueError(f"{name} has shape {array.shape}: a {wanted[dimensions]}")
    return precision


def _scalar(name: str, value: Any, precision: str) -> Pair:
    """Return a scalar as a (high, low) pair."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}")
    try:
        high = float(value)
    except OverflowError:
        high = math.inf
    if abs(high) > MAX_SIDE[precision] and abs(value) != math.inf:
        raise ValueError(
            f"{name} is beyond the largest number of {precision} precision,"
            f" {MAX_SIDE[precision]:.3g}"
        )
    if precision != "double-double":
        return high, 0.0
    try:
        high, low = to_pairs(value).tolist()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return high, low
