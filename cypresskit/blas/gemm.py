"""``gemm``: C = alpha op(A) op(B) + beta C on the simulated device, with the meaning that BLAS gives it.

The arrays are padded with zeros to whole blocks, the kernel runs over every block, and the padding is cut off again.
beta = 0 never reads C, alpha = 0 (or k = 0) never reads A or B, so a NaN there goes nowhere. Where no kernel has the
transposes asked for, the host transposes the matrix that doesn't fit.
"""

import numbers

import numpy as np

from cypresskit.devices import HD5870, Device
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.machine import launch

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
MAX_K = 1 << 24  # the kernels count k in a float register, exact up to here


def gemm(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    kernel: str | Kernel | None = None,
    device: Device = HD5870,
    engine: str = "fast",
    observers=(),
) -> np.ndarray:
    """alpha op(a) op(b) + beta c as a new array of shape (m, n); op transposes where ``trans_a``, ``trans_b`` say so.

    ``a``: (m, k), or (k, m) if ``trans_a``. ``b``: (k, n), or (n, k) if ``trans_b``. ``c``: (m, n), needed where beta
    is not 0. All of one type, float32 or float64, of any strides; none is written to. ``kernel`` names a kernel of
    ``ck.kernels``; by default one whose transposes fit is taken. ``engine`` and ``observers`` go to ``ck.launch``.

    Raises ``TypeError`` for other types, ``ValueError`` for shapes that don't fit, ``KeyError`` for an unknown kernel.
    """
    dtype = _dtype(a, b, c)
    alpha, beta = _scalar("alpha", alpha), _scalar("beta", beta)
    m, k = a.shape[::-1] if trans_a else a.shape
    inner, n = b.shape[::-1] if trans_b else b.shape
    if k != inner:
        raise ValueError(
            f"op(a) is {m} x {k} and op(b) is {inner} x {n}: the inner sizes, {k} and {inner}, must be equal"
        )
    if c is not None and c.shape != (m, n):
        raise ValueError(f"c has shape {c.shape}, the product has {(m, n)}")
    if c is None and beta != 0:
        raise ValueError(f"beta is {beta:g}, but there is no c to multiply with it")
    if k > MAX_K:
        raise ValueError(f"k is {k:,}: the kernels count it in single precision, exact up to {MAX_K:,}")
    chosen = _kernel(kernel, dtype, trans_a)
    if not m or not n:
        return np.zeros((m, n), dtype)
    if alpha == 0 or k == 0:
        alpha, trans_a, trans_b = 0.0, False, False
        a, b = np.zeros((m, 0), dtype), np.zeros((0, n), dtype)
    a = a.T if trans_a != chosen.trans_a else a
    b = b.T if trans_b != chosen.trans_b else b
    arguments = chosen.arguments(a, b, c, alpha, beta)
    launch(chosen.program, **arguments, device=device, engine=engine, observers=observers)
    return arguments["global_memory"][:m, :n].copy()


def _dtype(a, b, c) -> np.dtype:
    """The common type of the matrices, which must be matrices."""
    matrices = {"a": a, "b": b} | ({} if c is None else {"c": c})
    for name, matrix in matrices.items():
        if not isinstance(matrix, np.ndarray):
            raise TypeError(f"{name} must be a numpy array, not {type(matrix).__name__}")
        if matrix.dtype not in DTYPES:
            raise TypeError(f"{name} has dtype {matrix.dtype}: gemm takes float32 or float64")
        if matrix.ndim != 2:
            raise ValueError(f"{name} has shape {matrix.shape}: a matrix has two dimensions")
        if matrix.dtype != a.dtype:
            raise TypeError(f"{name} is {matrix.dtype} but a is {a.dtype}: all must be of one type")
    return a.dtype


def _scalar(name: str, value) -> float:
    if isinstance(value, numbers.Real) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu"
    ):
        return float(value)
    raise TypeError(f"{name} must be a real number, not {type(value).__name__}")


def _kernel(kernel: str | Kernel | None, dtype: np.dtype, trans_a: bool) -> Kernel:
    if isinstance(kernel, str):
        kernel = KERNELS[kernel]
    if kernel is None:
        fitting = [k for k in KERNELS.values() if k.dtype == dtype and k.precision != "double-double"]
        if not fitting:
            raise TypeError(f"no kernel of the catalogue computes in {dtype}")
        return next((k for k in fitting if k.trans_a == trans_a), fitting[0])
    if kernel.dtype != dtype or kernel.precision == "double-double":
        raise TypeError(f"the kernel {kernel.name} computes in {kernel.precision} precision, the matrices are {dtype}")
    return kernel
