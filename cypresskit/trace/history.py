"""Record what traced wavefronts have run, and turn it into paths.

All wavefronts are traced together, in one set of arrays. A ``History`` records each clause, with
the mask of the wavefronts that ran it. At the end, those that ran the same clauses form one
``WavefrontPath``.
"""

from dataclasses import dataclass, replace

import numpy as np

from cypresskit.chip.work import WRITE, Clause, Stream, WavefrontPath, combine_stores
from cypresskit.trace.symbolic import NotExtrapolable


@dataclass(frozen=True, eq=False, slots=True)
class _Entry:
    """Clauses that the wavefronts in the mask ``members`` ran; or the end of their segment, and
    the ``iterations`` for which they ran it.
    """

    members: np.ndarray
    clauses: tuple[Clause, ...] = ()
    iterations: int = 0


class History:
    """The clauses of a number of wavefronts."""

    def __init__(self, wavefronts: int):
        self.wavefronts = wavefronts
        self.entries: list[_Entry] = []

    def add(self, members: np.ndarray, clauses: list[Clause]) -> None:
        """Record clauses, if any, whose streams have an entry for each of the members."""
        if clauses:
            self.entries.append(_Entry(members, tuple(clauses)))

    def end_segment(self, members: np.ndarray, iterations: int = 1) -> None:
        """End the members' segment; they run it for these iterations, once by default."""
        self.entries.append(_Entry(members, iterations=iterations))

    def paths(self, wavefronts: np.ndarray) -> list[WavefrontPath]:
        """Return the paths. ``wavefronts`` has the numbers of the traced ones."""
        self.end_segment(np.ones(self.wavefronts, bool))
        kind = self._kinds()
        leaders = np.unique(kind, return_index=True)[1]
        ran = np.stack([entry.members[leaders] for entry in self.entries])
        paths = []
        for n in range(len(leaders)):
            segments: list[tuple[tuple[Clause, ...], int]] = []
            clauses: list[Clause] = []
            for at in np.flatnonzero(ran[:, n]):
                entry = self.entries[at]
                if not entry.iterations:
                    clauses += _of_kind(entry, kind, n)
                elif clauses:
                    if entry.iterations > 1:
                        _check_combined(clauses)
                    together = combine_stores(_with_stores_joined(clauses))
                    segments.append((tuple(together), entry.iterations))
                    clauses = []
            paths.append(WavefrontPath(wavefronts[kind == n], tuple(segments)))
        return paths

    def _kinds(self) -> np.ndarray:
        """Return a number for each wavefront, equal for those that ran the same."""
        masks = {entry.members.tobytes(): entry.members for entry in self.entries}
        table = np.stack([*masks.values()], axis=1)
        _, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))  # kinds in the order of their first wavefronts
        return order[kind.ravel()]


def _of_kind(ran: _Entry, kind: np.ndarray, n: int) -> list[Clause]:
    """Return the clauses of the wavefronts of kind ``n``."""
    own = kind[ran.members] == n
    if own.all():
        return [*ran.clauses]
    return [
        replace(clause, streams=tuple(_picked(s, np.flatnonzero(own)) for s in clause.streams))
        for clause in ran.clauses
    ]


def _picked(stream: Stream, wavefronts: np.ndarray) -> Stream:
    """Return the part of a stream that belongs to some of its wavefronts."""
    entry = (wavefronts[:, None] * stream.phases + np.arange(stream.phases)).ravel()
    counts = np.diff(stream.ptr).astype(np.intp)[entry]
    ptr = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    line = np.repeat(stream.ptr[:-1][entry] - ptr[:-1], counts) + np.arange(ptr[-1])
    return replace(
        stream,
        amounts=stream.amounts[entry],
        ptr=ptr,
        line=stream.line[line],
        offset=stream.offset[line],
        whole=None if stream.whole is None else _picked(stream.whole, wavefronts),
    )


def _check_combined(clauses: list[Clause]) -> None:
    """Raise ``NotExtrapolable`` for stores that move in different ways: which lines they have in
    common (``combine_stores``) then differs between iterations.
    """
    streams = [stream for clause in clauses if clause.kind == WRITE for stream in clause.streams]
    if len({(stream.phases, stream.step) for stream in streams}) > 1:
        raise NotExtrapolable


def _with_stores_joined(clauses: list[Clause]) -> list[Clause]:
    """Return the clauses, with consecutive stores joined in one."""
    joined: list[Clause] = []
    for clause in clauses:
        if clause.kind == WRITE and joined and joined[-1].kind == WRITE:
            last = joined[-1]
            streams, sources = last.streams + clause.streams, last.sources + clause.sources
            joined[-1] = replace(last, streams=streams, sources=sources)
        else:
            joined.append(clause)
    return joined
