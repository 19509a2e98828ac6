"""Lesson 00: the checks of its exercises: the peak, an update on the card, half of the peak."""

from collections.abc import Callable

import numpy as np

from cypresskit.devices import HD5850, HD5870, HD5970
from cypresskit.kernels.convention import adds_c
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import Observer, watching_launches
from cypresskit.teach import formula
from cypresskit.teach.shell import asked, exercise
from cypresskit.teach.verdict import Verdict, stopped
from cypresskit.timing.simulate import simulate


@exercise
def check_peak(peak: Callable) -> Verdict:
    """Exercise 1: ``peak(engines, processors, lanes, clock_ghz)`` in Gflop/s."""
    boards = (HD5870, HD5970, HD5850)
    cases = [(b.simd_engines, b.thread_processors, b.lanes, b.clock_ghz) for b in boards] + [(1, 1, 1, 0.85)]
    slips = {
        "a multiply-add is two operations.": "e * p * u * g",
        "a thread processor has several lanes, and each of them works.": "2 * e * p * g",
        "10^9 is in GHz and in Gflop/s already.": "2000000000.0 * e * p * u * g",
        "these are engines and units: how often a second do they work?": "2 * e * p * u",
    }
    hint = "multiply: engines, processors in each, lanes in each, flops a clock, clocks."
    return formula.judge(peak, "peak(e, p, u, g)", "2 * e * p * u * g", cases, slips, hint, " Gflop/s")


class Launches(Observer):
    """Keeps the launches that it hears of."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def start(self, launch: Launch) -> None:
        self.launches.append(launch)


@exercise
def check_update(update: Callable) -> Verdict:
    """Exercise 2: ``update(c, a, b)`` returns c - a b, by one launch on the card; tried at three shapes."""
    rng = np.random.default_rng(5870)
    for m, n, k in ((5, 24, 16), (8, 8, 8), (40, 16, 3)):
        a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
        mine, seen = [x.copy() for x in (c, a, b)], Launches()
        with watching_launches(seen):
            try:
                got = asked("update(c, a, b)", lambda *given: np.asarray(update(*given)), *mine)
            except Exception as error:
                return stopped("update", error, f"it was called with c of {m} x {n}, a of {m} x {k}, b of {k} x {n}.")
        fault = _update_fault(got, c, a @ b, f"For c of {m} x {n} and k = {k}")
        if fault:
            return fault
        if not all(np.array_equal(x, y) for x, y in zip(mine, (c, a, b))):
            return Verdict(False, "update changes what it was given.", "return a new matrix; ck.gemm makes one.")
        if len(seen.launches) != 1:
            times = f"was asked {len(seen.launches)} times" if seen.launches else "did nothing"
            return Verdict(False, f"The numbers are right, but the card {times}.", "one call of ck.gemm does it all.")
        if not adds_c(seen.launches[0].constants[0]):
            hint = "give ck.gemm the c as well: beta * c is its part too."
            return Verdict(False, "The numbers are right, but the card only multiplied: numpy subtracted.", hint)
    return Verdict(True, "c - a b at three shapes, each in one launch on the card.")


def _update_fault(got: np.ndarray, c: np.ndarray, product: np.ndarray, case: str) -> Verdict | None:
    """What is wrong with a result that should be c - product, or None."""
    if not got.shape and got.dtype.kind in "OU":
        what = "nothing" if got.item() is None else "a text, not a matrix" if got.dtype.kind == "U" else "no matrix"
        return Verdict(False, f"update returns {what}.", "`return` the matrix that ck.gemm makes.")
    if got.shape != c.shape:
        return Verdict(False, f"{case} the result has shape {got.shape}.", "it has the shape of c.")
    if np.array_equal(got, c - product):
        return None
    slips = [
        (c, "it is c as it was", "nothing was subtracted yet."),
        (product, "it is a b", "with beta = 0, which is what you get if you say nothing, c is not read."),
        (-product, "it is -a b", "with beta = 0, which is what you get if you say nothing, c is not read."),
        (c + product, "it is c + a b", "which alpha subtracts?"),
        (product - c, "it is a b - c", "alpha belongs to the product, beta to c."),
    ]
    for values, what, hint in slips:
        if np.array_equal(got, values):
            return Verdict(False, f"{case} {what}, not c - a b.", hint)
    row, column = np.argwhere(got != c - product)[0]
    want = (c - product)[row, column]
    where = f"element ({row}, {column}) is {got[row, column]:g} and should be {want:g}."
    return Verdict(False, f"{case} {where}", "alpha belongs to the product, beta to c.")


@exercise
def check_half(half: float, step: int = 128) -> Verdict:
    """Exercise 3: the smallest multiple of 128 at which the model's ``sgemm_tn`` reaches half of the peak."""
    if isinstance(half, float) and half.is_integer() and 0 < half <= 4096:
        return Verdict(False, f"half is {half!r}.", f"it should be a whole number: {half:.0f}, not {half!r}.")
    if isinstance(half, bool) or not isinstance(half, int | np.integer) or half < step or half % step:
        return Verdict(False, f"half is {half!r}.", f"it should be {step}, {2 * step}, {3 * step} or another multiple.")
    if half > 4096:
        return Verdict(False, f"N = {half} is larger than it has to be.", "look between 512 and 4096.")
    share = simulate("sgemm_tn", int(half)).percent
    before = simulate("sgemm_tn", int(half) - step).percent if half > step else 0.0
    if share < 50:
        finding = f"At N = {half} it reaches {share:.1f} % of the peak."
        dent = "the speed has a dent here; try smaller and larger ones."
        return Verdict(False, finding, dent if before > share else "larger matrices give it more to do.")
    if before >= 50:
        finding = f"N = {half} reaches {share:.1f} %, but N = {half - step} reaches {before:.1f} % already."
        return Verdict(False, finding, "go down in steps of 128.")
    return Verdict(True, f"N = {half} reaches {share:.1f} % of the peak, N = {half - step} only {before:.1f} %.")
