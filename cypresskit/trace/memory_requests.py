"""The memory of a trace: records which addresses are accessed, and holds no data.

A ``RequestRecorder`` takes the place of a processor's memory. It rejects addresses that depend on
data, and records a ``MemoryRequest`` for each fetch, store and LDS operation. ``MemoryLayout``
turns these into cache lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cypresskit.compiler.assembly import FetchInstruction, Operation, StoreInstruction
from cypresskit.trace.symbolic import SymbolicWords, Value, unknown_value


@dataclass(frozen=True, eq=False, slots=True)
class MemoryRequest:
    """An access by an instruction.

    Attributes
    ----------
    instruction
        The fetch, store or LDS operation.
    rows
        The bits of each word of the address, of one or all work-items: a texel's coordinates, the
        index of an element of global memory, or the bytes of one or two words of the LDS. Empty for
        an output: each work-item writes its own pixel.
    """

    instruction: FetchInstruction | StoreInstruction | Operation
    rows: tuple[np.ndarray, ...]

    def numbers(self, row: np.ndarray) -> np.ndarray:
        """Return the numbers (float64) that the bits of a row represent."""
        name = self.instruction.name
        if name == "SAMPLE":
            return row.view(np.float32).astype(np.float64)
        return row.view(np.uint32 if name.startswith("LDS") else np.int32).astype(np.float64)

    @property
    def grain(self) -> int:
        """An access that moves by a multiple of it otherwise stays the same: a texel, an element,
        or a word of the LDS.
        """
        return 4 if self.instruction.name.startswith("LDS") else 1


class RequestRecorder:
    """Records accesses in ``noted``, and checks their addresses."""

    def __init__(self, words: SymbolicWords):
        self.words = words
        self.noted: list[MemoryRequest] = []

    def lds(self, o: Operation, words: list[Value], active: np.ndarray) -> list[Value]:
        """Access the local data share. Return the words for the LDS queue, none for a write."""
        self._record(o, words[:1], active)
        return [] if o.name.startswith("LDS_WRITE") else [unknown_value(o.at)] * 2

    def fetch(
        self, f: FetchInstruction, coordinates: list[Value], active: np.ndarray
    ) -> list[Value]:
        """Return the four components that a fetch reads."""
        self._record(f, coordinates, active)
        return [unknown_value(f.at)] * 4

    def store(
        self,
        s: StoreInstruction,
        index: Value | None,
        values: Mapping[int, Value],
        active: np.ndarray,
    ) -> None:
        """Store components, by their numbers, to global memory or an output."""
        self._record(s, [] if index is None else [index], active)

    def _record(self, instruction, words: list[Value], active: np.ndarray) -> None:
        for word in words:
            self.words.check(word, instruction.at, active)
            if word.growth is not None:
                self.words.forecast.access(word, instruction.name == "SAMPLE")
        self.noted.append(MemoryRequest(instruction, tuple(word.bits for word in words)))
