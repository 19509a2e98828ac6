"""Common slips in a GEMM kernel, and what C each would give.

A slip is named only if it explains every element. All but exchanged blocks have the form p X Y + q
C: one table has the wrong scalars p and q, another what is multiplied in place of A and B.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from cypresskit.kernels import Kernel

Slip = tuple[str, Callable[[], np.ndarray]]
Whole = Callable[[np.ndarray], np.ndarray]  # of A B: what a launch leaves in C
Factors = Iterator[tuple[str, np.ndarray, np.ndarray]]


def mistakes(
    kernel: Kernel, left: np.ndarray, right: np.ndarray, old: np.ndarray, alpha: float, beta: float
) -> Iterator[Slip]:
    """(words, function that gives the C) for each common slip. ``left`` and ``right`` are op(A) and
    op(B), ``old`` is C before the launch, all float64.
    """

    def result(x: np.ndarray, y: np.ndarray, p: float = alpha, q: float = beta) -> np.ndarray:
        c: np.ndarray = p * (x @ y) + q * old
        return c

    for words, p, q in _scalars(alpha, beta):
        yield words, partial(result, left, right, p, q)
    for words, x, y in (
        *_exchanged(left, right),
        *_steps(left, right, kernel.k_step),
        *_misread(kernel, left, right),
    ):
        if x.shape[1] == y.shape[0] and (len(x), y.shape[1]) == old.shape:
            yield words, partial(result, x, y)
    yield from _blocks(kernel, left, right, lambda product: alpha * product + beta * old)


def _scalars(alpha: float, beta: float) -> Iterator[tuple[str, float, float]]:
    """(words, p, q) for wrong scalars in p A B + q C, each pair once."""
    wrong = {
        "nothing is stored": (0.0, 1.0),
        "alpha is forgotten": (1.0, beta),
        "alpha is applied twice": (alpha * alpha, beta),
        "beta * C is forgotten": (alpha, 0.0),
        "C is added without its beta": (alpha, 1.0),
        "the sums are all 0 when C is stored": (0.0, beta),
        "alpha multiplies beta * C too": (alpha, alpha * beta),
        "beta stands in alpha's place": (beta, beta),
        "alpha and beta are swapped": (beta, alpha),
    }
    first = {pair: words for words, pair in reversed(wrong.items()) if pair != (alpha, beta)}
    for words, pair in wrong.items():
        if first.get(pair) == words:
            yield words, *pair


def _exchanged(left: np.ndarray, right: np.ndarray) -> Factors:
    """Matrices taken for each other, or for their transposes; ``mistakes`` drops those whose shapes
    don't fit.
    """
    yield "A is taken for its transpose", left.T, right
    yield "B is taken for its transpose", left, right.T
    yield "both A and B are taken for their transposes", left.T, right.T
    yield "A and B are swapped", right, left
    yield "C is stored transposed, rows for columns", right.T, left.T


def _blocks(kernel: Kernel, left: np.ndarray, right: np.ndarray, whole: Whole) -> Iterator[Slip]:
    """Blocks of C computed or stored in another's place; only if there are as many blocks down as
    across.
    """
    rows, columns = kernel.block
    m = len(left)
    n = right.shape[1]
    if m % rows or n % columns or m // rows != n // columns:
        return

    def given(order: str) -> np.ndarray:
        grid = (left @ right).reshape(m // rows, rows, n // columns, columns)
        return whole(np.einsum(order, grid, np.ones(m // rows)).reshape(m, n))

    for words, order in (
        (
            "x and y of the work-item are swapped where C is stored, or in both fetches",
            "yixj,x->xiyj",
        ),
        ("A is read at the work-item's x in place of its y", "xixj,y->yixj"),
        ("B is read at the work-item's y in place of its x", "yiyj,x->yixj"),
    ):
        yield words, partial(given, order)


def _steps(left: np.ndarray, right: np.ndarray, turn: int) -> Factors:
    """Steps of k done twice or not at all; ``turn`` of them are one turn of the loop."""
    k = np.arange(len(right))
    times: dict[str, np.ndarray] = {"every step of k is added twice": np.full(len(k), 2)}
    for count in sorted({1, turn} & set(range(1, len(k)))):
        part = "turn" if count == turn else "step of k"
        first = k < count
        last = k >= len(k) - count
        times |= {
            f"the last {part} is missing": ~last,
            f"the first {part} is missing": ~first,
            f"only the first {part} is done": first,
            f"only the last {part} is kept, the block being cleared in the loop": last,
            f"the first {part} is done twice": 1 + first,
            f"the last {part} is done twice": 1 + last,
        }
    for step in range(turn) if turn > 1 else ():
        times[f"step {step} of each turn is missing"] = k % turn != step
    for words, counts in times.items():
        yield words, left * counts, right
    for step in range(1, turn):
        again = k - (k % turn == step)
        yield (
            f"step {step} of each turn is step {step - 1} once more",
            left[:, again],
            right[again],
        )
    if turn > 1:
        yield f"the loop's counter advances by 1, not {turn}", left * np.minimum(k + 1, turn), right


def _misread(kernel: Kernel, left: np.ndarray, right: np.ndarray) -> Factors:
    """A or B read at a wrong place, with zeros beyond the edges."""
    rows, columns = kernel.block
    texel = 16 // kernel.dtype.itemsize
    # Numbers of a block that come together
    grains = (
        texel if kernel.trans_a else 1,
        1 if kernel.trans_b else texel,
    )
    i = np.arange(len(left))
    j = np.arange(right.shape[1])
    if rows > grains[0]:
        yield (
            "a block's texels of A are all the same, its first",
            left[i - i % rows + i % grains[0]],
            right,
        )
    if columns > grains[1]:
        yield (
            "a block's texels of B are all the same, its first",
            left,
            right[:, j - j % columns + j % grains[1]],
        )
    high = {"one row": 1, "one texel": texel, f"a block ({rows} rows)": rows}
    widths = {"one column": 1, "one texel": texel, f"a block ({columns} columns)": columns}
    for sign, down, across, late in ((1, "down", "right", "late"), (-1, "up", "left", "early")):
        for text, by in high.items():
            yield f"A is read {text} too far {down}", _shifted(left, sign * by, 0), right
        for text, by in widths.items():
            yield f"B is read {text} too far {across}", left, _shifted(right, sign * by, 1)
        yield f"A is read one step of k too {late}", _shifted(left, sign, 1), right
        yield f"B is read one step of k too {late}", left, _shifted(right, sign, 0)


def _shifted(matrix: np.ndarray, by: int, axis: int) -> np.ndarray:
    """The matrix read ``by`` places too far along an axis, with zeros beyond its edge."""
    places = np.arange(matrix.shape[axis]) + by
    inside = (0 <= places) & (places < len(places))
    return np.take(matrix, places * inside, axis) * np.expand_dims(inside, 1 - axis)
