"""What wavefronts that are walked together have run, and the paths that this becomes.

All wavefronts step through the code in one set of arrays, as the lanes of one wavefront do. A
``History`` notes each clause, and which of the wavefronts ran it. In the end those that ran the
same clauses make a ``Path``.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

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


@dataclass(frozen=True, eq=False, slots=True)
class _TurnEnd:
    """The end of a turn of a loop that the ``members`` are in."""

    members: np.ndarray


_Entry = _Ran | _SegmentEnd | _TurnEnd


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

    def end_turn(self, members: np.ndarray) -> None:
        """Where a turn of a loop ends that is run turn by turn."""
        self.entries.append(_TurnEnd(members))

    def paths(self, wavefronts: np.ndarray) -> list[Path]:
        """The paths; ``wavefronts`` are the walked ones' numbers."""
        self.end_segment(np.ones(self.wavefronts, bool))
        kind = self._kinds()
        leaders = np.unique(kind, return_index=True)[1]
        ran = np.stack([entry.members[leaders] for entry in self.entries])
        runs = [entry for entry in self.entries if isinstance(entry, _Ran)]
        cuts = {id(entry): _Cut(entry.members, kind) for entry in runs}
        paths = []
        for n, leader in enumerate(leaders):
            path = _Assembly()
            for at in np.flatnonzero(ran[:, n]):
                entry = self.entries[at]
                match entry:
                    case _Ran():
                        cut = cuts[id(entry)]
                        path.add([cut.clause(clause, n) for clause in entry.clauses])
                    case _SegmentEnd():
                        path.end_segment(int(entry.turns[leader]))
                    case _TurnEnd():
                        path.end_turn()
            paths.append(Path(wavefronts[kind == n], tuple(path.segments)))
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


class _Cut:
    """Cuts the streams of the members of an entry into those of each kind of wavefronts."""

    def __init__(self, members: np.ndarray, kind: np.ndarray):
        self.kind = kind[members]
        self.whole = bool((self.kind == self.kind[0]).all())
        self.order: np.ndarray | None = None
        self.sorted: dict[int, Stream] = {}

    def clause(self, clause: Clause, n: int) -> Clause:
        """The clause, as run by the wavefronts of kind ``n``."""
        if self.whole or not clause.streams:
            return clause
        if self.order is None:
            self.order = np.argsort(self.kind, kind="stable")
            self.bounds = np.searchsorted(self.kind[self.order], np.arange(self.kind.max() + 2))
        first = self.bounds[n]
        last = self.bounds[n + 1]
        return replace(clause, streams=tuple(self._cut(s, first, last) for s in clause.streams))

    def _cut(self, stream: Stream, first: int, last: int) -> Stream:
        if id(stream) not in self.sorted:
            assert self.order is not None
            self.sorted[id(stream)] = picked(stream, self.order)
        s = self.sorted[id(stream)]
        whole = None if stream.whole is None else self._cut(stream.whole, first, last)
        entries = slice(first * s.phases, last * s.phases)
        ptr = s.ptr[first * s.phases : last * s.phases + 1]
        lines = slice(ptr[0], ptr[-1])
        return replace(
            s,
            amounts=s.amounts[entries],
            ptr=ptr - ptr[0],
            line=s.line[lines],
            offset=s.offset[lines],
            whole=whole,
        )


def picked(stream: Stream, order: np.ndarray) -> Stream:
    """The stream with its wavefronts in another order."""
    entry = (order[:, None] * stream.phases + np.arange(stream.phases)).ravel()
    counts = np.diff(stream.ptr)[entry]
    ptr = np.concatenate(([0], np.cumsum(counts)))
    line = np.repeat(stream.ptr[:-1][entry] - ptr[:-1], counts) + np.arange(ptr[-1])
    return replace(
        stream,
        amounts=stream.amounts[entry],
        ptr=ptr,
        line=stream.line[line],
        offset=stream.offset[line],
    )


class _Assembly:
    """The segments of one path, clause by clause."""

    def __init__(self) -> None:
        self.segments: list[tuple[tuple[Clause, ...], int]] = []
        self.clauses: list[Clause] = []
        self.turn_ends: list[int] = []

    def add(self, clauses: list[Clause]) -> None:
        """Append clauses. Stores that follow one another are one clause."""
        for clause in clauses:
            if clause.kind == WRITE and self.clauses and self.clauses[-1].kind == WRITE:
                last = self.clauses[-1]
                streams, sources = last.streams + clause.streams, last.sources + clause.sources
                self.clauses[-1] = replace(last, streams=streams, sources=sources)
            else:
                self.clauses.append(clause)

    def end_turn(self) -> None:
        self.turn_ends.append(len(self.clauses))

    def end_segment(self, turns: int) -> None:
        if self.clauses:
            clauses = tuple(combined_stores(self.clauses))
            if turns == 1 and self.turn_ends:
                self.segments += _repeated(clauses, self.turn_ends)
            else:
                self.segments.append((clauses, turns))
        self.clauses, self.turn_ends = [], []


def _repeated(clauses: tuple[Clause, ...], ends: list[int]) -> list[tuple[tuple[Clause, ...], int]]:
    """The clauses of a loop that was run turn by turn, cut where equal turns follow one another:
    these are one that repeats.
    """
    bounds = sorted({0, *ends, len(clauses)})
    turns = [clauses[a:b] for a, b in pairwise(bounds)]
    result: list[tuple[tuple[Clause, ...], int]] = []
    unrepeated: tuple[Clause, ...] = ()  # of turns that aren't repeated
    at = 0
    while at < len(turns):
        end = at + 1
        while end < len(turns) and turns[end] == turns[at]:
            end += 1
        if end - at > 1:
            result += [(unrepeated, 1)] if unrepeated else []
            result.append((turns[at], end - at))
            unrepeated = ()
        else:
            unrepeated += turns[at]
        at = end
    return result + ([(unrepeated, 1)] if unrepeated else [])
