"""From what wavefronts ran to what the timing charges: the clauses of a control-flow instruction.

A clause of fetches or a store is one ``Clause``. A clause of bundles becomes several where its
workgroup waits at a barrier: a piece of bundles, the barrier, the next piece, each with the LDS
accesses of its own bundles. Each access becomes a ``Stream`` of the cache lines or banks that it
asks for, with an entry for each of the wavefronts that ran it.
"""

from bisect import bisect_left
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import Control
from cypresskit.machine.wavefront import WAVEFRONT
from cypresskit.timing.requests import MemoryRequest
from cypresskit.timing.surfaces import Motion, Surfaces
from cypresskit.timing.work import ALU, BARRIER, TEX, WRITE, Clause, Stream, fetched_together


class ClauseMaker:
    """Makes the clauses of some walked wavefronts, whose work-items lie at (``x``, ``y``)."""

    def __init__(self, code: Code, surfaces: Surfaces, x: np.ndarray, y: np.ndarray):
        self.code = code
        self.surfaces = surfaces
        self.x = x
        self.y = y
        alone = surfaces.shape.group_wavefronts == 1  # a wavefront that waits for nobody
        self.barriers = [[] if alone else _bundles_with("sync", c) for c in code.controls]
        self.lds_bundles = [_bundles_with("lds", control) for control in code.controls]

    def clauses(
        self,
        at: int,
        accesses: list[tuple[MemoryRequest, Motion]],
        active: np.ndarray,
        members: np.ndarray,
    ) -> list[Clause]:
        """The clauses that control-flow instruction ``at`` is for the timing, where it made these
        ``accesses`` with ``active`` lanes (bool), which belong to ``members`` (bool, of the
        wavefronts).
        """
        control = self.code.controls[at]
        streams = tuple(self._streams(accesses, active, members))
        sources = tuple(access.instruction.at for access, _ in accesses)
        if control.store is not None:
            return [Clause(WRITE, 0, streams, at, 0, sources)]
        if control.fetches:
            return [Clause(TEX, 0, fetched_together(streams), at, 0, sources)]
        return self._pieces(at, streams, sources)

    def _pieces(
        self, at: int, streams: tuple[Stream, ...], sources: tuple[int, ...]
    ) -> list[Clause]:
        """The clause of bundles at ``at``, cut at its barriers."""
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
        """A stream for each access, with entries for the ``members`` alone."""
        if not accesses:
            return []
        if members.all():
            pixels = self.x, self.y
            return [self.surfaces.stream(a, pixels, active, motion) for a, motion in accesses]

        def cut(row: Any) -> Any:
            """What a row says of the members; one number is for all."""
            if np.size(row) == 1:
                return row
            return row.reshape(-1, WAVEFRONT)[members].ravel()

        streams = []
        pixels = cut(self.x), cut(self.y)
        for access, motion in accesses:
            own = replace(access, rows=tuple(cut(row) for row in access.rows))
            own_motion = motion._replace(turns=cut(motion.turns))
            streams.append(self.surfaces.stream(own, pixels, cut(active), own_motion))
        return streams


def _bundles_with(kind: str, control: Control) -> list[int]:
    """The numbers of the bundles that have an operation of this kind."""
    bundles = enumerate(control.bundles)
    return [n for n, bundle in bundles if any(o.row.kind == kind for o in bundle.operations)]
