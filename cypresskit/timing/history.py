"""What wavefronts that are walked together have run, and the paths that this becomes.

All wavefronts step through the code in one set of arrays, as the lanes of one wavefront do. A
``History`` notes each clause, and which of the wavefronts ran it. In the end those that ran the
same clauses make a ``Path``.
"""

from dataclasses import dataclass, replace

import numpy as np

from cypresskit.timing.work import WRITE, Clause, Path, Stream, combined_stores


@dataclass(frozen=True, eq=False, slots=True)
class _Ran:
    """Clauses that ``members`` (bool, of all wavefronts) ran."""

    members: np.ndarray
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, eq=False, slots=True)
class _SegmentEnd:
    """The end of a segment of the ``members``, which they ran ``turns`` times."""

    members: np.ndarray
    turns: np.ndarray


_Entry = _Ran | _SegmentEnd


class History:
    """The clauses of so many wavefronts, and about how many ``bytes`` they hold."""

    def __init__(self, wavefronts: int):
        self.wavefronts = wavefronts
        self.bytes = 0
        self.entries: list[_Entry] = []
        self.once = np.ones(wavefronts, np.int64)

    def add(self, members: np.ndarray, clauses: list[Clause]) -> None:
        """Clauses whose streams have an entry for each of the members."""
        self.entries.append(_Ran(members, tuple(clauses)))
        for clause in clauses:
            for s in clause.streams:
                self.bytes += s.amounts.nbytes + s.ptr.nbytes + s.line.nbytes + s.offset.nbytes

    def end_segment(self, members: np.ndarray, turns: np.ndarray | None = None) -> None:
        """What the members ran since their last segment is one, repeated so many turns."""
        self.entries.append(_SegmentEnd(members, self.once if turns is None else turns))

    def paths(self, wavefronts: np.ndarray) -> list[Path]:
        """The paths; ``wavefronts`` are the walked ones' numbers."""
        self.end_segment(np.ones(self.wavefronts, bool))
        kind = self._kinds()
        leaders = np.unique(kind, return_index=True)[1]
        ran = np.stack([entry.members[leaders] for entry in self.entries])
        paths = []
        for n, leader in enumerate(leaders):
            segments: list[tuple[tuple[Clause, ...], int]] = []
            clauses: list[Clause] = []
            for at in np.flatnonzero(ran[:, n]):
                entry = self.entries[at]
                if isinstance(entry, _Ran):
                    clauses += _of_kind(entry, kind, n)
                elif clauses:
                    together = combined_stores(_with_stores_joined(clauses))
                    segments.append((tuple(together), int(entry.turns[leader])))
                    clauses = []
            paths.append(Path(wavefronts[kind == n], tuple(segments)))
        return paths

    def _kinds(self) -> np.ndarray:
        """A number for each wavefront, equal for those that ran the same."""
        columns = {
            id(entry.members): entry.members.astype(np.uint8)[:, None] for entry in self.entries
        }
        for entry in self.entries:
            if isinstance(entry, _SegmentEnd) and entry.turns is not self.once:
                turns = np.where(entry.members, entry.turns, 0)
                columns[id(entry.turns)] = turns.view(np.uint8).reshape(-1, turns.itemsize)
        varied = [column for column in columns.values() if (column != column[0]).any()]
        if not varied:
            return np.zeros(self.wavefronts, np.int64)
        table = np.ascontiguousarray(np.concatenate(varied, axis=1))
        rows = table.view(np.dtype((np.void, table.shape[1]))).ravel()
        _, first, kind = np.unique(rows, return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))  # kinds in the order in which they first come
        return order[kind.ravel()]


def _of_kind(ran: _Ran, kind: np.ndarray, n: int) -> list[Clause]:
    """The clauses, as run by the wavefronts of kind ``n``."""
    own = kind[ran.members] == n
    if own.all():
        return [*ran.clauses]
    return [
        replace(clause, streams=tuple(_picked(s, np.flatnonzero(own)) for s in clause.streams))
        for clause in ran.clauses
    ]


def _picked(stream: Stream, wavefronts: np.ndarray) -> Stream:
    """The stream of some of its wavefronts."""
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


def _with_stores_joined(clauses: list[Clause]) -> list[Clause]:
    """The clauses, of which stores that follow one another are one."""
    joined: list[Clause] = []
    for clause in clauses:
        if clause.kind == WRITE and joined and joined[-1].kind == WRITE:
            last = joined[-1]
            streams, sources = last.streams + clause.streams, last.sources + clause.sources
            joined[-1] = replace(last, streams=streams, sources=sources)
        else:
            joined.append(clause)
    return joined
