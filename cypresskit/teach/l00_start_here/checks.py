"""Lesson 00: the checks of its exercises: the peak, an update on the card, half of the peak."""

from functools import partial
from typing import Any

import numpy as np

from cypresskit.blas import gemm
from cypresskit.devices import HD5850, HD5870, HD5970
from cypresskit.isolated import Answer, Other
from cypresskit.kernels.convention import adds_c
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import Observer
from cypresskit.teach.check import (
    CheckStopped,
    Verdict,
    call_answer,
    exercise,
    require,
    type_with_article,
)
from cypresskit.teach.formula import formula_exercise
from cypresskit.timing.simulate import simulate


@formula_exercise(
    [
        (b.simd_engines, b.thread_processors, b.processing_elements, b.clock_ghz)
        for b in (HD5870, HD5970, HD5850)
    ]
    + [(1, 1, 1, 0.85)],
    {
        "a multiply-add is two operations.": lambda e, p, u, g: e * p * u * g,
        "a thread processor has several units, and each of them works.": lambda e, p, u, g: (
            2 * e * p * g
        ),
        "10^9 is in GHz and in Gflop/s already.": lambda e, p, u, g: 2e9 * e * p * u * g,
        "10^9 is in GHz and in Gflop/s already, and a multiply-add is two operations.": (
            lambda e, p, u, g: 1e9 * e * p * u * g
        ),
        "this is in Tflop/s. Return Gflop/s.": lambda e, p, u, g: 2 * e * p * u * g / 1000,
        "that counts the units: how many times a second does each of them work?": (
            lambda e, p, u, g: 2 * e * p * u
        ),
    },
    "how many units has the chip in all, and how many flops does each do per second?",
    " Gflop/s",
)
def check_peak(e, p, u, g):
    """Exercise 1: ``peak(engines, processors, units, clock_ghz)`` in Gflop/s."""
    return 2 * e * p * u * g


class Products:
    """The card's products: it computes them for an answer, and counts its launches."""

    def __init__(self) -> None:
        self.launches = 0
        self.constants: Any = None  # of the first launch

    def gemm(self, a, b, c=None, **options) -> np.ndarray:
        for matrix in (a, b, c):
            if max(np.shape(matrix), default=0) > LARGEST:
                raise ValueError(f"this check's card takes matrices of up to {LARGEST} rows")
        launches = Launches()
        result = gemm(a, b, c, observers=[launches], **options)
        self.launches += len(launches)
        if self.constants is None and launches:
            self.constants = launches[0].shape.constants[0]
        return result


class Launches(list[Launch], Observer):
    """Collects launches."""

    def start(self, launch: Launch) -> None:
        self.append(launch)


LARGEST = 64  # rows or columns of a matrix that exercise 2's card takes


@partial(exercise, services=["gemm"])
def check_update(update: Answer) -> Verdict:
    """Exercise 2: ``update(c, a, b)`` returns c - a b, by one launch on the card; tried at three
    shapes.
    """
    rng = np.random.default_rng(5870)
    for m, n, k in ((5, 24, 16), (8, 8, 8), (40, 16, 3)):
        a, b, c = (
            rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n))
        )
        card = Products()
        update.services["gemm"] = card.gemm
        call = f"it was called with c of {m} x {n}, a of {m} x {k}, b of {k} x {n}."
        returned, after = call_answer("update(c, a, b)", update.with_arguments, c, a, b, hint=call)
        result = call_answer("update(c, a, b)", _as_matrix, returned, hint=call)
        unassigned = card.launches > 0 and np.array_equal(result, c)
        require(
            not unassigned,
            "The card computed, but update returns c as it was.",
            "ck.gemm changes nothing; it returns its result: `result = ck.gemm(...)`.",
        )
        _is_difference(result, c, a @ b, f"For c of {m} x {n} and k = {k}")
        same = all(np.array_equal(x, y) for x, y in zip(after, (c, a, b)))
        require(
            same, "update changes what it was given.", "return a new matrix; ck.gemm makes one."
        )
        times = f"was used {card.launches} times" if card.launches else "did nothing"
        require(
            card.launches == 1,
            f"The numbers are right, but the card {times}.",
            "one call of ck.gemm does it all.",
        )
        message = "The numbers are right, but the card only multiplied: numpy subtracted."
        require(
            adds_c(card.constants),
            message,
            "give ck.gemm the c as well: beta * c is its part too.",
        )
    return Verdict(True, "c - a b at three shapes, each in one launch on the card.")


def _as_matrix(returned) -> np.ndarray:
    """Return the result of update as an array; a result that is no matrix as an array that holds
    it.
    """
    if isinstance(returned, dict | Other):
        return np.array(returned, dtype=object)
    return np.asarray(returned)


def _is_difference(result: np.ndarray, c: np.ndarray, product: np.ndarray, case: str) -> None:
    """End the check unless the result is c - product."""
    if not result.shape and result.dtype.kind in "OU":
        returned = "nothing" if result.item() is None else "no matrix"
        if result.dtype.kind == "U":
            returned = "a text, not a matrix"
        raise CheckStopped(f"update returns {returned}.", "`return` the matrix that ck.gemm makes.")
    require(
        result.shape == c.shape,
        f"{case} the result has shape {result.shape}.",
        "it has the shape of c.",
    )
    if np.array_equal(result, c - product):
        return
    unread = "with beta = 0, which it is unless you say so, c is not read."
    places = "multiply the product by alpha, and c by beta."
    for values, returned, hint in (
        (c, "c as it was", "nothing was subtracted yet."),
        (product, "a b", unread),
        (-product, "-a b", unread),
        (c + product, "c + a b", "which alpha subtracts?"),
        (product - c, "a b - c", places),
    ):
        require(not np.array_equal(result, values), f"{case} it is {returned}, not c - a b.", hint)
    place = tuple(np.argwhere(result != c - product)[0].tolist())
    raise CheckStopped(
        f"{case} element {place} is {result[place]:g} and should be {(c - product)[place]:g}.",
        places,
    )


@exercise
def check_half(half: float, step: int = 128) -> Verdict:
    """Exercise 3: the smallest multiple of 128 at which the model's ``sgemm_tn`` reaches half of
    the peak.
    """
    whole = isinstance(half, int | np.integer) and not isinstance(half, bool)
    message = f"half is {half!r}" + f", of type {type(half).__name__}" * (not whole)
    if isinstance(half, Other):
        message = f"half is {type_with_article(half)}"
    multiple = whole and half >= step and half % step == 0
    if whole and half >= step:
        message = f"{half} is no multiple of {step}"
    hint = f"it should be a whole number, a positive multiple of {step}."
    if isinstance(half, float):
        hint = "write a whole number without a point: `int(half)`."
    require(multiple, f"{message}.", hint)
    require(half <= 4096, f"N = {half} is larger than it has to be.", "look between 512 and 4096.")

    def percent(n: int) -> float:
        return simulate("sgemm_tn", n).percent if n else 0.0

    before = percent(int(half) - step)
    share = percent(int(half))
    hint = "larger matrices give the chip more to do."
    require(share >= 50, f"At N = {half} it reaches {share:.1f} % of the peak.", hint)
    message = (
        f"N = {half} reaches {share:.1f} %, but N = {half - step} reaches {before:.1f} % already."
    )
    require(before < 50, message, "go down in steps of 128.")
    return Verdict(
        True,
        f"N = {half} reaches {share:.1f} % of the peak, N = {half - step} only {before:.1f} %.",
    )
