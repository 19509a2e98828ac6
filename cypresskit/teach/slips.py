"""Common slips in a GEMM kernel: what each leaves in C.

Each is computed in numpy and compared with what came out, so a slip is named only if it explains every element.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from cypresskit.kernels import Kernel


def mistakes(
    kernel: Kernel, a: np.ndarray, b: np.ndarray, old: np.ndarray, alpha: float, beta: float
) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Common slips and what each gives: ``a`` and ``b`` as stored, ``old`` what C held before, all float64."""
    left, right = (a.T if kernel.trans_a else a), (b.T if kernel.trans_b else b)
    (m, k), n = left.shape[:2], right.shape[1]
    rows, columns = kernel.block
    round_, texel = kernel.k_step, 16 // kernel.dtype.itemsize

    def whole(product: np.ndarray) -> np.ndarray:
        return alpha * product + beta * old

    def of_steps(steps: slice | np.ndarray) -> np.ndarray:
        return whole(left[:, steps] @ right[steps])

    def counted(times: np.ndarray) -> np.ndarray:
        return whole((left * times) @ right)

    def reads_a(by: int, axis: int) -> np.ndarray:
        return whole(_shifted(left, by, axis) @ right)

    def reads_b(by: int, axis: int) -> np.ndarray:
        return whole(left @ _shifted(right, by, axis))

    def blocks(order: str) -> np.ndarray:
        """C with block (y, x) in place of (Y, X), ``order`` saying which."""
        grid = (left @ right).reshape(m // rows, rows, n // columns, columns)
        return whole(np.einsum(order, grid, np.ones(m // rows)).reshape(m, n))

    yield "nothing is stored", lambda: old
    if alpha != 1:
        yield "alpha is forgotten", lambda: left @ right + beta * old
        yield "alpha is applied twice", lambda: alpha * alpha * (left @ right) + beta * old
    if beta != 0:
        yield "beta * C is forgotten", lambda: alpha * (left @ right)
        if beta != 1:
            yield "C is added without its beta", lambda: alpha * (left @ right) + old
        if alpha != 1:
            yield "alpha multiplies beta * C too", lambda: alpha * (left @ right + beta * old)
            yield "beta stands in alpha's place", lambda: beta * (left @ right + old)
            yield "alpha and beta are swapped", lambda: beta * (left @ right) + alpha * old
    if m == k:
        yield "A is taken for its transpose", lambda: whole(left.T @ right)
    if k == n:
        yield "B is taken for its transpose", lambda: whole(left @ right.T)
    if m == k == n:
        yield "both A and B are taken for their transposes", lambda: whole(left.T @ right.T)
        yield "A and B are swapped", lambda: whole(right @ left)
    if m == n:
        yield "C is stored transposed, rows for columns", lambda: whole((left @ right).T)
    if m % rows == n % columns == 0 and m // rows == n // columns:
        yield (
            "x and y of the work-item are swapped where C is stored, or in both fetches",
            partial(blocks, "yixj,x->xiyj"),
        )
        yield "A is read at the work-item's x in place of its y", partial(blocks, "xixj,y->yixj")
        yield "B is read at the work-item's y in place of its x", partial(blocks, "yiyj,x->yixj")
    yield "the sums are all 0 when C is stored", lambda: beta * old
    yield "every step of k is added twice", lambda: counted(np.full(k, 2))
    for count in sorted({1, round_}):
        part = "round" if count == round_ else "step of k"
        if count < k:
            first, last = np.arange(k) < count, np.arange(k) >= k - count
            yield f"the last {part} is missing", partial(counted, ~last)
            yield f"the first {part} is missing", partial(counted, ~first)
            yield f"only the first {part} is done", partial(counted, first)
            yield f"only the last {part} is kept, the block being cleared in the loop", partial(counted, last)
            yield f"the first {part} is done twice", partial(counted, 1 + first)
            yield f"the last {part} is done twice", partial(counted, 1 + last)
    if round_ > 1:
        within = np.arange(k) % round_
        for step in range(round_):
            yield f"step {step} of each round is missing", partial(counted, within != step)
        for step in range(1, round_):
            again = np.arange(k) - (within == step)
            yield f"step {step} of each round is step {step - 1} once more", partial(of_steps, again)
        yield f"the loop's counter advances by 1, not {round_}", lambda: counted(np.minimum(np.arange(k) + 1, round_))
    grains = texel if kernel.trans_a else 1, 1 if kernel.trans_b else texel  # numbers of a block that come together
    i, j = np.arange(m), np.arange(n)
    yield "every fetch of a block's rows of A is the first", lambda: whole(left[i - i % rows + i % grains[0]] @ right)
    yield (
        "every fetch of a block's columns of B is the first",
        lambda: whole(left @ right[:, j - j % columns + j % grains[1]]),
    )
    for text, count in {"one row": 1, "one texel": texel, f"a block ({rows} rows)": rows}.items():
        for way, by in {"down": count, "up": -count}.items():
            yield f"A is read {text} too far {way}", partial(reads_a, by, 0)
    for text, count in {"one column": 1, "one texel": texel, f"a block ({columns} columns)": columns}.items():
        for way, by in {"right": count, "left": -count}.items():
            yield f"B is read {text} too far {way}", partial(reads_b, by, 1)
    for way, by in {"late": 1, "early": -1}.items():
        yield f"A is read one step of k too {way}", partial(reads_a, by, 1)
        yield f"B is read one step of k too {way}", partial(reads_b, by, 0)


def _shifted(matrix: np.ndarray, by: int, axis: int) -> np.ndarray:
    """What is read at places ``by`` too far: 0 outside."""
    result = np.zeros_like(matrix)
    size = matrix.shape[axis]
    count = max(0, size - abs(by))
    source, target = (slice(by, None), slice(0, count)) if by > 0 else (slice(0, count), slice(-by, None))
    before = (slice(None),) * axis
    result[(*before, target)] = matrix[(*before, source)]
    return result
