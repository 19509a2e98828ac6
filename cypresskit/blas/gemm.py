"""``gemm``: C = alpha op(A) op(B) + beta C on the simulated device, with the meaning that BLAS
gives it.

The arrays are padded with zeros to whole blocks, the kernel runs over every block, and the padding
is cut off again. beta = 0 never reads C, alpha = 0 (or k = 0) never reads A or B, so a NaN there
goes nowhere. Where the kernel wants a matrix the other way round, it is transposed first. ``gemv``
is a product with one column, ``gemm_batched`` several small products in one launch.
"""

import numbers
from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np

from cypresskit.blas.choice import choose_kernel, whether
from cypresskit.blas.dd import DD
from cypresskit.devices import HD5870, Device, check_device
from cypresskit.il.errors import check_options
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.machine.arguments import check_unmasked
from cypresskit.machine.engines import carry_out
from cypresskit.machine.launch import fitting

Matrix = TypeVar("Matrix", np.ndarray, DD)
Pair = tuple[float, float]  # a number as (high, low)
TYPES = {np.dtype(name): name for name in ("float32", "float64")}
LARGEST = {"single": float(np.finfo("f4").max)} | dict.fromkeys(
    ("double", "double-double"), float(np.finfo("f8").max)
)
MAX_K = 1 << 24  # the kernels count k in a float register, exact up to here


#: What a product passes on to ``ck.launch``; arrays and domain are its own to give.
LAUNCHING = ("engine", "max_instructions", "observers", "threads")


def check_launching(product: Callable[..., Any], given: Iterable[str]) -> None:
    """``TypeError`` for a keyword that a product neither takes nor passes on to ``ck.launch``."""
    if set(given) <= set(LAUNCHING):
        return
    taken = [name for name in signature(product).parameters if name != "launching"]
    check_options(product.__name__, given, [*taken, *LAUNCHING])


def gemm(
    a: Matrix,
    b: Matrix,
    c: Matrix | None = None,
    *,
    alpha: float | DD = 1.0,
    beta: float | DD = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    kernel: Source | None = None,
    device: Device = HD5870,
    **launching: Any,
) -> Matrix:
    """alpha op(a) op(b) + beta c as a new matrix of shape (m, n); op transposes where ``trans_a``,
    ``trans_b`` say so.

    A product larger than the card's memory is for ``ck.gemm_out_of_core``.

    Parameters
    ----------
    a
        (m, k), or (k, m) if ``trans_a``: a numpy array of float32 or float64, or double-doubles
        (``DD``), of any strides. No matrix is written to.
    b
        (k, n), or (n, k) if ``trans_b``, of the type of ``a``.
    c
        (m, n), of the type of ``a``; needed where beta is not 0.
    alpha, beta
        Numbers, with double-doubles also single ``DD``.
    trans_a, trans_b
        Whether ``a`` and ``b`` are stored transposed.
    kernel
        A kernel of ``ck.kernels`` or its name, or one of your own: its file, text or program, or
        what ``ck.load_kernel`` returns. By default what ``ck.choose_kernel`` finds fastest.
    device
        The board that the choice is for. Results may differ in the last bits, since boards choose
        kernels that sum in another order; pass ``kernel`` to fix it.
    launching
        ``engine``, ``max_instructions``, ``observers`` and ``threads`` go to ``ck.launch``.

    Returns
    -------
    A new matrix of the type of ``a``.

    Raises
    ------
    TypeError
        For other types and for keywords that don't exist.
    ValueError
        For shapes that don't fit and for numbers beyond the precision.
    KeyError
        For the name of no kernel.

    Examples
    --------
    >>> a = np.ones((2, 3), np.float32)
    >>> ck.gemm(a, a, trans_b=True)
    array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    check_launching(gemm, launching)
    check_device(device)
    a, b, c = map(plain, (a, b, c))
    precision, scale, old, (m, n, k) = checked(a, b, c, alpha, beta, trans_a, trans_b)
    trans_a, trans_b = bool(trans_a), bool(trans_b)
    if scale[0] == 0 or k == 0:
        scale = (0.0, 0.0)
        k = 0
        a = a[:0] if trans_a else a[:, :0]
        b = b[:, :0] if trans_b else b[:0]
    if kernel is None:
        chosen = choose_kernel(
            m, n, k, precision, trans_a=trans_a, trans_b=trans_b, device=device
        ).kernel
    else:
        chosen = _named(kernel, precision)
    pair: tuple[int, ...] = (2,) if precision == "double-double" else ()
    if not m or not n:
        return cast(Matrix, _matrix(np.zeros((m, n, *pair), chosen.dtype)))
    stored = _stored(a, trans_a != chosen.trans_a), _stored(b, trans_b != chosen.trans_b)
    old_c = None if c is None else _stored(c, False)
    result = _multiplied(chosen, *stored, old_c, scale, old, (m, n, k), launching)
    return cast(Matrix, _matrix(result.reshape(m, n, *pair)))


def _multiplied(
    kernel: Kernel,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    alpha: Pair,
    beta: Pair,
    size: tuple[int, int, int],
    launching: dict[str, Any],
) -> np.ndarray:
    """What a kernel leaves in C for checked matrices, as stored; of a packed one a stack."""
    m, n, k = size
    shape, arrays = kernel.laid_out(a, b, c, alpha, beta)
    most = launching.pop("max_instructions", None)
    if most is None:
        most = most_instructions(kernel, len(a) * k if kernel.convention.packed else k)
    checked = fitting(shape, most, **arrays)
    carry_out(checked, **launching)
    checked.write_back(arrays.get("outputs"), arrays.get("global_memory"))
    return kernel.result(arrays, m, n)


def most_instructions(kernel: Kernel, k: int) -> int:
    """No fewer instructions than a work-item of ``kernel`` issues for sums of ``k`` products: each
    turn of a loop takes at least one product further, and is at most as long as the kernel.

    A loop that issues more doesn't end: ``gemm`` gives this to ``launch`` as ``max_instructions``.
    """
    _, _, turns = kernel.convention.padded(1, 1, k)
    return len(kernel.program.body) * (turns + 1)


def checked(
    a: Any, b: Any, c: Any, alpha: Any, beta: Any, trans_a: bool = False, trans_b: bool = False
) -> tuple[str, Pair, Pair, tuple[int, int, int]]:
    """(precision, alpha, beta, (m, n, k)) of a product, alpha and beta as (high, low). Raises
    ``gemm``'s errors.
    """
    precision = precision_of({"a": a, "b": b} | ({} if c is None else {"c": c}), (2, 2, 2))
    alpha, beta = (
        _scalar(name, value, precision) for name, value in (("alpha", alpha), ("beta", beta))
    )
    trans_a, trans_b = (
        whether(name, value) for name, value in (("trans_a", trans_a), ("trans_b", trans_b))
    )
    m, n, k = sizes(a.shape, b.shape, trans_a, trans_b)
    if c is not None and c.shape != (m, n):
        raise ValueError(f"c has shape {c.shape}, the product has {(m, n)}")
    _check_beta(beta, "c", c)
    if k > MAX_K:
        raise ValueError(
            f"k is {k:,}: the kernels count it in single precision, exact up to {MAX_K:,}"
        )
    return precision, alpha, beta, (m, n, k)


def _check_beta(beta: tuple[float, float], name: str, matrix: Any) -> None:
    if matrix is None and beta[0] != 0:
        raise ValueError(f"beta is {beta[0]:g}, but there is no {name} to multiply with it")


def sizes(
    a: tuple[int, ...], b: tuple[int, ...], trans_a: bool, trans_b: bool
) -> tuple[int, int, int]:
    """m, n, k of a product of matrices stored in shapes ``a`` and ``b``; ``ValueError`` if they
    don't fit.
    """
    (m, k), (inner, n) = (a[::-1] if trans_a else a), (b[::-1] if trans_b else b)
    if k != inner:
        shapes = f"op(a) is {m} x {k} and op(b) is {inner} x {n}"
        raise ValueError(f"{shapes}: the inner sizes, {k} and {inner}, must be equal")
    return m, n, k


def gemv(
    a: Matrix,
    x: Matrix,
    y: Matrix | None = None,
    *,
    alpha: float | DD = 1.0,
    beta: float | DD = 0.0,
    trans: bool = False,
    kernel: Source | None = None,
    device: Device = HD5870,
    **launching: Any,
) -> Matrix:
    """alpha op(a) x + beta y as a new vector; op transposes if ``trans``.

    ``a`` (m, k), or (k, m) if ``trans``; ``x`` (k,); ``y`` (m,), needed where beta is not 0. Types,
    other keywords and errors as for ``gemm``. In single precision an SGEMV kernel computes it;
    otherwise a GEMM kernel pads the vector.
    """
    check_launching(gemv, launching)
    a, x, y = map(plain, (a, x, y))
    precision = precision_of({"a": a, "x": x} | ({} if y is None else {"y": y}), (2, 1, 1))
    m, k = a.shape[::-1] if whether("trans", trans) else a.shape
    for name, vector, length in (("x", x, k), ("y", y, m)):
        if vector is not None and len(vector) != length:
            raise ValueError(
                f"op(a) is {m} x {k}, so {name} has to have {length} elements, not {len(vector)}"
            )
    _check_beta(_scalar("beta", beta, precision), "y", y)
    column = None if y is None else y.reshape(m, 1)
    how = {"kernel": kernel, "device": device} | launching
    product = gemm(a, x.reshape(k, 1), column, alpha=alpha, beta=beta, trans_a=trans, **how)
    return cast(Matrix, product.reshape(-1))


def gemm_batched(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    **launching: Any,
) -> np.ndarray:
    """alpha a[i] b[i] + beta c[i] for every i, in one launch of ``sgemm_packed``: float32 of shape
    (count, m, n).

    ``a`` (count, m, k), ``b`` (count, k, n), ``c`` (count, m, n), needed where beta is not 0;
    errors as for ``gemm``.
    """
    check_launching(gemm_batched, launching)
    a, b, c = map(plain, (a, b, c))
    arrays = {"a": a, "b": b} | ({} if c is None else {"c": c})
    if precision_of(arrays, (3, 3, 3)) != "single":
        raise TypeError(f"packed matrices are float32, not {_kind('a', a)}")
    scale, old = (
        _scalar(name, value, "single") for name, value in (("alpha", alpha), ("beta", beta))
    )
    count, m, k = a.shape
    n = b.shape[2]
    if b.shape[:2] != (count, k) or (c is not None and c.shape != (count, m, n)):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"shapes are (count, m, k), (count, k, n) and (count, m, n); found {shapes}"
        )
    _check_beta(old, "c", c)
    if count * k > MAX_K:
        raise ValueError(
            f"{count} x k = {count * k:,}: the kernel counts rows exactly up to {MAX_K:,}"
        )
    if not count * m * n:
        return np.zeros((count, m, n), np.float32)
    if scale[0] == 0 or k == 0:
        scale = (0.0, 0.0)
        a = a[:, :, :0]
        b = b[:, :0]
    packed = KERNELS["sgemm_packed"]
    return _multiplied(packed, a, b, c, scale, old, (m, n, a.shape[2]), launching)


def plain(array: Any) -> Any:
    """A plain array in place of a numpy subclass such as ``np.matrix``, which reshapes and
    multiplies in its own way. Anything else, masked arrays included, comes back unchanged, to be
    refused later.
    """
    if isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray):
        return np.asarray(array)
    return array


def precision_of(arrays: dict[str, Any], dimensions: tuple[int, ...]) -> str:
    """The common precision of arrays, which must have these numbers of dimensions."""
    first, kind = next((name, _kind(name, array)) for name, array in arrays.items())
    for (name, array), count in zip(arrays.items(), dimensions):
        if _kind(name, array) != kind:
            raise TypeError(
                f"{name} is {_kind(name, array)} but {first} is {kind}: all must be of one type"
            )
        if array.ndim != count:
            wanted = {
                1: "vector has one dimension",
                2: "matrix has two dimensions",
                3: "stack has three dimensions",
            }
            raise ValueError(f"{name} has shape {array.shape}: a {wanted[count]}")
    return {"float32": "single", "float64": "double"}.get(kind, "double-double")


def _kind(name: str, array: Any) -> str:
    if isinstance(array, DD):
        return "DD"
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a numpy array or a DD, not {type(array).__name__}")
    check_unmasked(array, name)
    if array.dtype not in TYPES:
        raise TypeError(f"{name} has dtype {array.dtype}: gemm takes float32 or float64, or a DD")
    return TYPES[array.dtype]


def _scalar(name: str, value: Any, precision: str) -> tuple[float, float]:
    """A scalar as a (high, low) pair."""
    if isinstance(value, DD) and precision == "double-double" and not value.shape:
        return float(value.hi), float(value.lo)
    zero_d = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu"
    if zero_d or isinstance(value, numbers.Real):
        try:
            high, low = (
                DD(value).pairs.tolist() if precision == "double-double" else (float(value), 0.0)
            )
        except OverflowError:
            high = float("-inf" if value < 0 else "inf")
            low = 0.0
        if abs(high) > LARGEST[precision] and abs(value) != float("inf"):
            raise ValueError(
                f"{name} is beyond the largest number of {precision} precision,"
                f" {LARGEST[precision]:.3g}"
            )
        return high, low
    raise TypeError(f"{name} must be a real number, not {type(value).__name__}")


def _named(given: Source, precision: str) -> Kernel:
    kernel = resolve(given)
    if kernel.precision != precision:
        computes = f"the kernel {kernel.name} computes in {kernel.precision} precision"
        raise TypeError(f"{computes}, the matrices are {precision}")
    return kernel


def _stored(matrix: Any, transposed: bool) -> np.ndarray:
    """The array behind a matrix, or behind its transpose."""
    matrix = matrix.T if transposed else matrix
    return matrix.pairs if isinstance(matrix, DD) else matrix


def _matrix(result: np.ndarray) -> np.ndarray | DD:
    return DD.wrap(result) if result.ndim == 3 else result


DD.__matmul__ = gemm  # here, since double-doubles know nothing of kernels
