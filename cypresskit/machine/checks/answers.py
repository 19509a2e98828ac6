"""Wrong answers of legal kernels: the first wrong element, who wrote it, and the mistake that explains all.

The caller gives what should have come out, and for each common mistake what would then come out instead. A mistake is
named only if it gives exactly the wrong result, in every element.
"""

from collections.abc import Callable, Mapping

import numpy as np

from cypresskit.machine.checks.report import Check, Places
from cypresskit.machine.observer import Memory

Mistakes = Mapping[str, Callable[[], np.ndarray]]


class AnswerCheck(Check):
    """Compares global memory ("g") or an output ("o0") with ``expected``, elements within ``tolerance`` (a number or
    an array) being right."""

    def __init__(self, places: Places, where: str, expected: np.ndarray, tolerance, mistakes: Mistakes):
        super().__init__(places)
        self.where, self.expected, self.tolerance, self.mistakes = where, expected, tolerance, mistakes
        memory = self.launch.global_memory
        self.words = memory if where == "g" else self.launch.outputs[int(where[1:])].words
        assert self.words is not None
        if self.words.nbytes != expected.nbytes:
            raise ValueError(
                f"expected has {expected.nbytes} bytes, {where} has {self.words.nbytes}: give it as the array"
            )
        self.writer = np.full(self.words.nbytes // 16 if where == "g" else 0, -1, np.int64)
        self.at = self.writer.copy()

    def _got(self) -> np.ndarray:
        assert self.words is not None
        return self.words.reshape(-1).view(self.expected.dtype).reshape(self.expected.shape).copy()

    def memory(self, event: Memory) -> None:
        if event.store and event.space == "global" and self.where == "g":
            who = np.flatnonzero(event.active & event.inside)
            self.writer[event.element[who]], self.at[event.element[who]] = who, event.at

    def finish(self, run) -> None:
        got = self._got()
        wrong = ~self._same(got, self.expected)
        if not wrong.any():
            return
        flat = int(np.argmax(wrong))
        place = np.unravel_index(flat, wrong.shape)
        item, at = self._writer(flat)
        name = self.places.names.get(self.where, self.where)
        element = f"{name}[{', '.join(map(str, map(int, place)))}]"
        wrote = f"{self.places.item(item)} wrote it" if item >= 0 else "no work-item wrote it"
        self.report(
            "answer",
            at,
            f"{element} is the first wrong element: {got[place]:.6g} in place of {self.expected[place]:.6g}; {wrote}. "
            f"{int(wrong.sum()):,} of {wrong.size:,} elements are wrong",
            self._explanation(got, wrong),
            count=int(wrong.sum()),
            word=self.where,
            item=item if item >= 0 else None,
            element=element,
        )

    def _same(self, got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return (np.abs(got - wanted) <= self.tolerance) | (got == wanted) | (np.isnan(got) & np.isnan(wanted))

    def _writer(self, flat: int) -> tuple[int, int]:
        """The work-item that wrote a number, and the instruction; -1 if none did."""
        if self.where == "g":
            element = flat * self.expected.dtype.itemsize // 16
            return int(self.writer[element]), int(self.at[element])
        stores = [n for n, i in enumerate(self.program.body) if i.dest and str(i.dest.register) == self.where]
        return flat * self.launch.items // self.expected.size, stores[-1] if stores else -1

    def _explanation(self, got: np.ndarray, wrong: np.ndarray) -> str:
        for sentence, result in self.mistakes.items():
            other = result()
            if other.shape == got.shape and self._same(got, other).all():
                return f"Exactly this comes out if {sentence}."
        if self.where == "g":
            elements = np.unique(np.flatnonzero(wrong) * got.itemsize // 16)
            stores = np.unique(self.at[elements])
            if stores[-1] < 0:
                return (
                    "No work-item stored to any of the wrong elements: is the domain too small, or a store masked out?"
                )
            if len(stores) == 1 and len(np.unique(self.at)) > 1:
                return (
                    f"All wrong elements were stored by `{self.program.where(self.program.body[stores[0]].line)}`, "
                    "and what other lines stored is right: follow this register back."
                )
        rows = np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))
        columns = np.flatnonzero(wrong.reshape(-1, wrong.shape[-1]).any(axis=0))
        spread = f"Wrong are rows {rows[0]} to {rows[-1]}, columns {columns[0]} to {columns[-1]}"
        return f"{spread}; no common mistake gives exactly this: follow the first wrong element's work-item by hand."
