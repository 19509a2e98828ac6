"""Wrong answers of legal kernels: the first wrong element, who wrote it, and the mistake that
explains all.

The caller gives what should have come out, and for each common mistake what would then come out
instead. A mistake is named only if it gives exactly the wrong result, in every element.
"""

from collections.abc import Callable, Mapping

import numpy as np

from cypresskit.machine.checks.findings import Check, Naming
from cypresskit.machine.observer import WroteEvent

Mistakes = Mapping[str, Callable[[], np.ndarray]]
ROUNDINGS = 32  # of the largest element: the error allowed where the caller names none


class AnswerCheck(Check):
    """Compares global memory, or else the first output, with ``expected`` of the same shape and
    type; elements within ``tolerance`` (a number or an array) are right.
    """

    def __init__(
        self, naming: Naming, outputs: Mapping, memory, expected, tolerance, mistakes: Mistakes
    ):
        super().__init__(naming)
        first = min(outputs, default=-1)
        if memory is not None:
            self.where = "g"
            array = memory
        else:
            self.where = f"o{first}"
            array = outputs.get(first)
        if array is None:
            raise ValueError(
                "expected is what global_memory or the first of outputs should hold: pass one of"
                " them"
            )
        if not isinstance(expected, np.ndarray):
            raise TypeError(f"expected must be a numpy array, not {type(expected).__name__}")
        if (expected.shape, expected.dtype) != (array.shape, array.dtype):
            cast = ""
            if expected.shape == array.shape:
                cast = f": try expected.astype(np.{array.dtype})"
            raise ValueError(
                f"expected has {_type_of(expected)}, but is compared with {self.where} of"
                f" {_type_of(array)}{cast}"
            )
        if not isinstance(mistakes, Mapping) or not all(map(callable, mistakes.values())):
            raise TypeError(
                "mistakes maps sentences to functions, as in {'A is transposed': lambda: a.T @ b}"
            )
        self.expected, self.mistakes = expected, mistakes
        self.tolerance = allowed_error(expected, tolerance)
        self.words = self.launch.memory if memory is not None else self.launch.outputs[first].words
        # By 32-bit word: the work-item that wrote it, or -1, and the instruction.
        self.writer = np.full(self.words.size, -1, np.int32)
        self.at = self.writer.copy()

    def wrote(self, event: WroteEvent) -> None:
        if not self._is_here(event.register):
            return
        items = np.flatnonzero(event.active)
        if event.element is None:
            first = items * (self.writer.size // self.launch.shape.items)
        else:
            first = event.element[items] * 4
        for c in event.components:
            self.writer[first + c] = items
            self.at[first + c] = event.at

    def _is_here(self, register) -> bool:
        return register.kind == "g" if self.where == "g" else str(register) == self.where

    def finish(self, run) -> None:
        got = self.words.reshape(-1).view(self.expected.dtype).reshape(self.expected.shape)
        wrong = ~is_same(got, self.expected, self.tolerance)
        count = int(wrong.sum())
        if not count:
            return
        place = tuple(int(n) for n in np.argwhere(wrong)[0])
        item, at = self._writer(int(np.argmax(wrong)))
        element = f"{self.naming.names.get(self.where, self.where)}[{', '.join(map(str, place))}]"
        wrote = f"{self.naming.item(item)} wrote it" if item >= 0 else "no work-item wrote it"
        first = (
            f"{element} is the first wrong element: {shown(got[place], self.expected[place])};"
            f" {wrote}"
        )
        message = f"{first}. {count:,} of {wrong.size:,} elements are wrong"
        more: dict = {
            "index": place,
            "got": float(got[place]),
            "wanted": float(self.expected[place]),
        }
        more |= {"item": item if item >= 0 else None, "element": element, "word": self.where}
        self.report("answer", at, message, self._explanation(got, wrong), count=count, **more)

    def _writer(self, flat: int) -> tuple[int, int]:
        """The work-item that wrote a number and the instruction; if none did, -1 and the last store
        there is.
        """
        count = self.expected.itemsize // 4
        word = flat * count + int(np.argmax(self.at[flat * count : (flat + 1) * count]))
        if self.at[word] >= 0:
            return int(self.writer[word]), int(self.at[word])
        stores = [
            n for n, i in enumerate(self.program.body) if i.dest and self._is_here(i.dest.register)
        ]
        return -1, stores[-1] if stores else -1

    def _explanation(self, got: np.ndarray, wrong: np.ndarray) -> str:
        fits = [
            f"if {s}"
            for s, result in self.mistakes.items()
            if self._gives(np.asarray(result()), got)
        ]
        if fits:
            return f"Exactly this comes out {', or '.join(fits[:3])}."
        stores = np.unique(self.at[np.flatnonzero(wrong) * (got.itemsize // 4)])
        if stores[-1] < 0:
            return (
                "No work-item stored to any wrong element: is the domain too small, or does a"
                " branch leave them out?"
            )
        most = np.unravel_index(
            np.argmax(np.abs(np.nan_to_num(self.expected, posinf=0, neginf=0))), wrong.shape
        )
        factor = float(got[most]) / float(self.expected[most]) if self.expected[most] else np.nan
        if np.count_nonzero(self.expected) > 1 and self._gives(factor * self.expected, got):
            return (
                f"Every element is {factor:g} times what it should be: is a factor wrong, or a sum"
                " added twice?"
            )
        if len(stores) == 1 and len(np.unique(self.at)) > 1:
            line = self.program.where(self.program.body[stores[0]].line)
            conclusion = "and what other lines stored is right: follow this register back."
            return f"All wrong elements were stored by `{line}`, {conclusion}"
        axes = ("rows", "columns", "components") if wrong.ndim > 1 else ("elements",)
        spread = [
            f"{axis} {places.min()} to {places.max()}"
            if np.ptp(places)
            else f"{axis[:-1]} {places[0]}"
            for axis, places, size in zip(axes, np.nonzero(wrong), wrong.shape)
            if size > 1 or wrong.size == 1
        ]
        return (
            f"What is wrong lies in {', '.join(spread)}: follow the first wrong element's work-item"
            " by hand."
        )

    def _gives(self, result: np.ndarray, got: np.ndarray) -> bool:
        return result.shape == got.shape and bool(is_same(got, result, self.tolerance).all())


def allowed_error(expected: np.ndarray, tolerance) -> np.ndarray:
    """By how much elements may be off: the ``tolerance``, or roundings of the largest element if it
    is None. Raises ``ValueError`` for what is no such number.
    """
    if tolerance is None:
        finite = np.abs(expected[np.isfinite(expected)])
        if expected.dtype.kind != "f":
            return np.asarray(0)
        return np.asarray(ROUNDINGS * np.finfo(finite.dtype).eps * np.max(finite, initial=0))
    try:
        allowed = np.asarray(tolerance, np.float64)
        np.broadcast_to(allowed, expected.shape)
    except (TypeError, ValueError):
        allowed = np.asarray(np.nan)
    if not (allowed >= 0).all():
        raise ValueError(
            "tolerance is a number of at least 0, or an array of them with the shape of expected"
        )
    return allowed


def is_same(got: np.ndarray, wanted: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Which elements are equal, as far as they have to be."""
    if got.dtype.kind != "f":  # whole numbers, whose differences must not wrap
        got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(got - wanted) <= allowed
        return close | (got == wanted) | (np.isnan(got) & np.isnan(wanted))


def shown(got, wanted) -> str:
    """``0 in place of 28``, with as many digits as it takes to see that they differ."""
    if got.dtype.kind != "f":
        return f"{got} in place of {wanted}"
    digits = next((d for d in (6, 9) if f"{got:.{d}g}" != f"{wanted:.{d}g}"), 17)
    return f"{got:.{digits}g} in place of {wanted:.{digits}g}"


def _type_of(array: np.ndarray) -> str:
    """The shape and the dtype of an array, in words."""
    return f"shape {array.shape} and dtype {array.dtype}"
