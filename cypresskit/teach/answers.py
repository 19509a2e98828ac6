"""Is it C = alpha op(A) op(B) + beta C? Runs a GEMM kernel with every check on and compares what it leaves in C.

Where C is wrong, ``mistakes`` has what common slips give in its place: each is computed in numpy and compared with what
came out, so a slip is named only if it explains every element. Left out: kernels that write C through output streams or
read their matrices from a buffer, and those in double-double.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from cypresskit.il import Program
from cypresskit.kernels import Kernel
from cypresskit.machine.checks import Findings, check

NAMES = {0: "A", 1: "B", "g": "C"}


def check_gemm(
    kernel: Kernel,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    program: Program | None = None,
    budgets: Mapping[str, float] | None = None,
) -> Findings:
    """Findings of ``kernel`` on matrices as stored (see ``Kernel.arguments``), or of a student's ``program`` that is
    launched like it. ``budgets`` as for ``ck.check``. Raises ``ValueError`` for kernels that this doesn't know."""
    if kernel.precision not in ("single", "double") or kernel.streams or kernel.buffer or kernel.packed:
        raise ValueError(f"check_gemm takes kernels that fetch A and B and store C to g[]; {kernel.name} does not")
    arguments = kernel.arguments(a, b, c, alpha, beta)
    stored = [arguments["inputs"][n].astype(np.float64) for n in (0, 1)]
    big_a, big_b = (matrix.reshape(len(matrix), -1) for matrix in stored)
    left, right = (big_a.T if kernel.trans_a else big_a), (big_b.T if kernel.trans_b else big_b)
    old = arguments["global_memory"].astype(np.float64)
    rounding = float(np.finfo(kernel.dtype).eps)
    steps = left.shape[1] + 4
    size = abs(alpha) * (np.abs(left) @ np.abs(right)) + abs(beta) * np.abs(old)
    return check(
        program or kernel.program,
        **arguments,
        names=NAMES,
        budgets=budgets,
        expected=(alpha * (left @ right) + beta * old).astype(kernel.dtype),
        tolerance=rounding * steps * size,
        mistakes=dict(mistakes(kernel, big_a, big_b, old, alpha, beta)),
    )


def mistakes(
    kernel: Kernel, a: np.ndarray, b: np.ndarray, old: np.ndarray, alpha: float, beta: float
) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Common slips and what each gives: ``a`` and ``b`` as stored, ``old`` what C held before, all float64."""
    left, right = (a.T if kernel.trans_a else a), (b.T if kernel.trans_b else b)
    (m, k), n = left.shape[:2], right.shape[1]

    def whole(product: np.ndarray) -> np.ndarray:
        return alpha * product + beta * old

    def of_steps(steps: slice | np.ndarray) -> np.ndarray:
        return whole(left[:, steps] @ right[steps])

    def twice(steps: slice) -> np.ndarray:
        return whole(left @ right + left[:, steps] @ right[steps])

    def reads_a(by: int, axis: int) -> np.ndarray:
        return whole(_shifted(left, by, axis) @ right)

    def reads_b(by: int, axis: int) -> np.ndarray:
        return whole(left @ _shifted(right, by, axis))

    def stores(by: int, axis: int) -> np.ndarray:
        return _stored(whole(left @ right), old, by, axis)

    yield "nothing is stored", lambda: old
    if alpha != 1:
        yield "alpha is forgotten", lambda: left @ right + beta * old
    if beta != 0:
        yield "beta * C is forgotten", lambda: alpha * (left @ right)
        if beta != 1:
            yield "C is added without its beta", lambda: alpha * (left @ right) + old
        if alpha != 1:
            yield "alpha multiplies beta * C too", lambda: alpha * (left @ right + beta * old)
            yield "alpha and beta are swapped", lambda: beta * (left @ right) + alpha * old
    if m == k:
        yield "A is taken for its transpose", lambda: whole(left.T @ right)
    if k == n:
        yield "B is taken for its transpose", lambda: whole(left @ right.T)
    if m == k == n:
        yield "both A and B are taken for their transposes", lambda: whole(left.T @ right.T)
        yield "A and B are swapped", lambda: whole(right @ left)
    if m == n:
        yield "C is stored transposed", lambda: whole((left @ right).T)
    for count in sorted({1, kernel.k_step}):
        part = "round" if count == kernel.k_step else "step of k"
        if count < k:
            first, last = slice(0, count), slice(k - count, k)
            yield f"the last {part} is missing", partial(of_steps, slice(0, k - count))
            yield f"the first {part} is missing", partial(of_steps, slice(count, k))
            yield f"only the first {part} is done", partial(of_steps, first)
            yield f"only the last {part} is kept, the block being cleared in the loop", partial(of_steps, last)
            yield f"the last {part} is done twice", partial(twice, last)
    if kernel.k_step > 1:
        for step in range(kernel.k_step):
            yield f"step {step} of each round is missing", partial(of_steps, np.arange(k) % kernel.k_step != step)
    rows, columns = kernel.block
    for text, count in {"one row": 1, f"a block ({rows} rows)": rows}.items():
        for way, by in {"down": count, "up": -count}.items():
            yield f"A is read {text} too far {way}", partial(reads_a, by, 0)
            yield f"C is stored {text} too far {way}", partial(stores, by, 0)
    texel = 16 // kernel.dtype.itemsize
    for text, count in {"one column": 1, "one texel": texel, f"a block ({columns} columns)": columns}.items():
        for way, by in {"right": count, "left": -count}.items():
            yield f"B is read {text} too far {way}", partial(reads_b, by, 1)
            yield f"C is stored {text} too far {way}", partial(stores, by, 1)
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


def _stored(result: np.ndarray, old: np.ndarray, by: int, axis: int) -> np.ndarray:
    """``result`` stored ``by`` places too far; what is not reached keeps ``old``. Rows run over into the next."""
    flat = old.reshape(-1).copy()
    step = by * (result.shape[1] if axis == 0 else 1)
    count = max(0, flat.size - abs(step))
    target, source = (slice(step, None), slice(0, count)) if step > 0 else (slice(0, count), slice(-step, None))
    flat[target] = result.reshape(-1)[source]
    return flat.reshape(old.shape)
