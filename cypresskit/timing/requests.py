"""The memory of a walk: nothing is read or written; where accesses look is noted.

``Requests`` is what a processor takes for its memory. It refuses addresses that depend on data, and
notes a ``MemoryRequest`` for each fetch, store and LDS operation. ``Surfaces`` knows which cache
lines these are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cypresskit.compiler.assembly import FetchInstruction, Operation, StoreInstruction
from cypresskit.timing.words import MarkedWords, Value, from_memory


@dataclass(frozen=True, eq=False, slots=True)
class MemoryRequest:
    """An access by an instruction: the bits of each word that says where it looks (of one or all
    work-items): a texel's coordinates, the index of an element of global memory, or the bytes of
    one or two words of the LDS; none for an output, where each work-item has its own pixel.
    """

    instruction: FetchInstruction | StoreInstruction | Operation
    rows: tuple[np.ndarray, ...]

    def numbers(self, row: np.ndarray) -> np.ndarray:
        """What the bits of a row stand for (float64)."""
        name = self.instruction.name
        if name == "SAMPLE":
            return row.view(np.float32).astype(np.float64)
        return row.view(np.uint32 if name.startswith("LDS") else np.int32).astype(np.float64)

    @property
    def grain(self) -> int:
        """A whole number of these moves an access without changing anything else about it: a texel,
        an element, a word of the LDS.
        """
        return 4 if self.instruction.name.startswith("LDS") else 1


class Requests:
    """Notes accesses, and checks their addresses."""

    def __init__(self, words: MarkedWords):
        self.words = words
        self.noted: list[MemoryRequest] = []

    def lds(self, o: Operation, words: list[Value], active: np.ndarray) -> list[Value]:
        self._note(o, words[: 2 if o.name == "LDS_READ2_RET" else 1], active)
        return [] if o.name.startswith("LDS_WRITE") else [from_memory(o.at)] * 2

    def fetch(
        self, f: FetchInstruction, coordinates: list[Value], active: np.ndarray
    ) -> list[Value]:
        self._note(f, coordinates, active)
        return [from_memory(f.at)] * 4

    def store(
        self,
        s: StoreInstruction,
        index: Value | None,
        values: Mapping[int, Value],
        active: np.ndarray,
    ) -> None:
        self._note(s, [] if index is None else [index], active)

    def _note(self, instruction, words: list[Value], active: np.ndarray) -> None:
        for word in words:
            self.words.check(word, instruction.at, active)
        self.noted.append(MemoryRequest(instruction, tuple(word.bits for word in words)))
