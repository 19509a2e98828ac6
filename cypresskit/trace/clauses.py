"""Turn a control-flow instruction that wavefronts ran into clauses for the chip simulation.

A fetch clause or a store is one ``Clause``. An ALU clause becomes several if its workgroup waits at
a barrier in it: the bundles before the barrier, the barrier, and the bundles after it, each with
its own LDS accesses. Each access becomes a ``Stream``, with entries for each wavefront that ran it.
"""

from bisect import bisect_left
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from cypresskit.chip.work import ALU, BARRIER, TEX, WRITE, Clause, Stream, merge_fetches
from cypresskit.compiler import Code
from cypresskit.compiler.assembly import Control
from cypresskit.devices import WAVEFRONT
from cypresskit.trace.memory_layout import MemoryLayout, Motion
from cypresskit.trace.memory_requests import MemoryRequest
from cypresskit.trace.symbolic import NotExtrapolable


class ClauseMaker:
    """Makes the clauses of some wavefronts, whose lanes have the coordinates (``x``, ``y``)."""

    def __init__(self, code: Code, memory_layout: MemoryLayout, x: np.ndarray, y: np.ndarray):
        self.code = code
        self.memory_layout = memory_layout
        self.x = x
        self.y = y
        alone = memory_layout.shape.group_wavefronts == 1  # such a wavefront never waits
        self.barriers = [[] if alone else _bundles_with("sync", c) for c in code.controls]
        self.lds_bundles = [_bundles_with("lds", control) for control in code.controls]

    def clauses(
        self,
        at: int,
        accesses: list[tuple[MemoryRequest, Motion]],
        active: np.ndarray,
        members: np.ndarray,
    ) -> list[Clause]:
        """Return the clauses of a control-flow instruction.

        Parameters
        ----------
        at
            Its index.
        accesses
            The accesses that it made.
        active
            Mask of the lanes that ran it.
        members
            Mask of the wavefronts that ran it.
        """
        control = self.code.controls[at]
        streams = tuple(self._streams(accesses, active, members))
        sources = tuple(access.instruction.at for access, _ in accesses)
        if control.store is not None:
            return [Clause(WRITE, 0, streams, at, 0, sources)]
        if control.fetches:
            _check_merged(streams, [motion.iterations for _, motion in accesses])
            return [Clause(TEX, 0, merge_fetches(streams), at, 0, sources)]
        return self._pieces(at, streams, sources)

    def _pieces(
        self, at: int, streams: tuple[Stream, ...], sources: tuple[int, ...]
    ) -> list[Clause]:
        """Return an ALU clause, cut at its barriers."""
        count = len(self.code.controls[at].bundles)
        lds_bundles = self.lds_bundles[at]  # each made one access, in this order
        assert len(lds_bundles) == len(streams)

        clauses = []
        for first, end in pairwise([0, *self.barriers[at], count]):
            if first < end:
                own = slice(bisect_left(lds_bundles, first), bisect_left(lds_bundles, end))
                clauses.append(Clause(ALU, end - first, streams[own], at, first, sources[own]))
            if end < count:
                clauses.append(Clause(BARRIER, 0, (), at, end))
        return clauses

    def _streams(
        self, accesses: list[tuple[MemoryRequest, Motion]], active: np.ndarray, members: np.ndarray
    ) -> list[Stream]:
        """Return a stream for each access, with entries for the ``members`` only."""
        if not accesses:
            return []

        def cut(row: Any) -> Any:
            """Return the members' part of a row; one number stands for all."""
            if np.size(row) == 1:
                return row
            return row.reshape(-1, WAVEFRONT)[members].ravel()

        streams = []
        pixels = cut(self.x), cut(self.y)
        for access, motion in accesses:
            own = replace(access, rows=tuple(cut(row) for row in access.rows))
            streams.append(self.memory_layout.stream(own, pixels, cut(active), motion))
        return streams


def _bundles_with(kind: str, control: Control) -> list[int]:
    """Return the numbers of the bundles that have an operation of this kind."""
    bundles = enumerate(control.bundles)
    return [n for n, bundle in bundles if any(o.row.kind == kind for o in bundle.operations)]


def _check_merged(streams: tuple[Stream, ...], iterations: list[int]) -> None:
    """Raise ``NotExtrapolable`` for fetches of a clause that move in different ways and may request
    the same lines: which are dropped (``merge_fetches``) then differs between iterations.
    """
    reached: list[tuple[tuple[int, int], int, int]] = []  # how it moves; first and last line
    for stream, times in zip(streams, iterations):
        if stream.uncached or times == 1 or not len(stream.line):
            continue
        moved = (times - 1) // stream.phases * stream.step
        moves = stream.phases, stream.step
        first = int(stream.line.min()) + min(moved, 0)
        last = int(stream.line.max()) + max(moved, 0)
        for others, low, high in reached:
            if others != moves and first <= high and low <= last:
                raise NotExtrapolable
        reached.append((moves, first, last))
