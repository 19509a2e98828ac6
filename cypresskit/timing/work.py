"""The timing engine's input: per wavefront a list of clauses, and for every fetch the cache lines
it touches.

A ``Path`` is a set of wavefronts that take the same way through a kernel: segments of clauses, each
repeated so many times. A ``Stream`` has, for one fetch (or one LDS access list) and all wavefronts
of its path, the lines that each wavefront touches and when: the texture unit takes the wavefront's
16 quads one after another and needs for each as many clocks as its fullest bank has different words
(``quad_clocks``). In a repeated segment the pattern comes back every ``phases`` turns, ``step``
lines further.

``pack`` turns paths into flat arrays for the compiled engine. Data values are not modelled.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cypresskit.timing.native import native, part

ALU, TEX, WRITE, BARRIER = range(4)
BANK_SHIFT = 4  # a bank of L1 gives a word of 2**4 bytes a clock
LINE_BITS = 40  # of a line's number, at most
KINDS = ("ALU", "TEX", "WRITE", "BARRIER")


def _row(*fields: str) -> np.dtype:
    """The type of a table's row: 64 bits for each field."""
    return np.dtype([(field, np.int64) for field in fields])


# The rows of Packed's tables. ``first`` to ``end`` are rows of another: a clause's streams, a
# segment's clauses, a pattern's lines; a stream's ``first`` is its first entry.
CLAUSE = _row("kind", "bundles", "first", "end", "pause")
SEGMENT = _row("first", "end", "turns")
STREAM = _row("first", "phases", "step", "uncached")
ENTRY = _row("pattern", "moved")  # moved by so many lines
PATTERN = _row("first", "end", "cost", "asked", "delivered")
LINE = _row("line", "offset")
AMOUNT = _row("cost", "asked", "delivered")  # of an entry of a stream


@dataclass(frozen=True, eq=False)
class Stream:
    """Lines of one fetch, LDS operation or store: entry ``w * phases + p`` belongs to the path's
    wavefront ``w`` in turns p, p + phases, ...

    ``amounts`` (wavefronts * phases rows of AMOUNT): the ``cost`` in clocks of the unit, for how
    many lines it ``asked``, each once for a quad, and the bytes of texels ``delivered`` to its
    work-items; ``ptr`` its bounds in ``line`` (line numbers) and ``offset`` (clock at which the
    line is first asked for); ``uncached`` accesses go past both caches. ``whole``: this stream
    before the lines that another stream of the same clause or combined store asks for were dropped;
    None if none were.
    """

    amounts: np.ndarray
    ptr: np.ndarray
    line: np.ndarray
    offset: np.ndarray
    phases: int = 1
    step: int = 0
    uncached: bool = False
    whole: "Stream | None" = None

    @property
    def cost(self) -> np.ndarray:
        """The clocks of the unit, for each entry."""
        clocks: np.ndarray = self.amounts["cost"]
        return clocks

    @property
    def delivered(self) -> np.ndarray:
        """The bytes of texels, for each entry."""
        texels: np.ndarray = self.amounts["delivered"]
        return texels

    def total(self, amount: np.ndarray, turns: int) -> float:
        """The sum, over all wavefronts and so many ``turns``, of an ``amount`` for each entry."""
        whole, remainder = divmod(turns, self.phases)
        times = whole + (np.arange(self.phases) < remainder)
        return float((amount.reshape(-1, self.phases) @ times).sum())


@dataclass(frozen=True, eq=False)
class Clause:
    """ALU with its ``bundles`` and one of the ``streams`` for each LDS operation; TEX or WRITE
    with one per fetch or store; BARRIER, where a workgroup's wavefronts wait for each other.

    Where it comes from: bundles ``first``, ``first`` + 1, ... of ``Code.controls[control]``, and
    for each stream its instruction, an index into ``Program.body`` (``sources``). The engine needs
    none of that. A wavefront pauses for so many clocks after it: what a warp waits for its own
    results.
    """

    kind: int
    bundles: int = 0
    streams: tuple[Stream, ...] = ()
    control: int = 0
    first: int = 0
    sources: tuple[int, ...] = ()
    pause: int = 0


@dataclass(frozen=True, eq=False)
class Path:
    """``wavefronts`` (numbers in dispatch order) that run ``segments``: pairs of clauses and how
    often they repeat.
    """

    wavefronts: np.ndarray
    segments: tuple[tuple[tuple[Clause, ...], int], ...]

    def amount(self, measure: Callable[[Clause], Any]) -> Any:
        """The sum of ``measure`` over all clauses that a wavefront runs."""
        return sum(turns * measure(clause) for body, turns in self.segments for clause in body)


def clause_runs(paths: Iterable[Path]) -> Iterator[tuple[Clause, int, int]]:
    """Each clause of ``paths``, with its turns and the number of wavefronts that take them."""
    for path in paths:
        for body, turns in path.segments:
            for clause in body:
                yield clause, turns, len(path.wavefronts)


class Packed(NamedTuple):
    """Paths as flat arrays; see ``pack``."""

    clauses: np.ndarray  # rows of CLAUSE, and so on
    segments: np.ndarray
    paths: np.ndarray  # first segment of each path, and the end
    path: np.ndarray  # of each wavefront
    member: np.ndarray  # its number within the path
    streams: np.ndarray
    entries: np.ndarray
    patterns: np.ndarray
    lines: np.ndarray
    group: int = 1

    @property
    def clauses_run(self) -> np.ndarray:
        """The number of clauses that a wavefront of each path runs, repeats counted."""
        clauses = self.clauses_a_turn * self.segments["turns"]
        return np.diff(np.concatenate(([0], np.cumsum(clauses)))[self.paths])

    @property
    def clauses_a_turn(self) -> np.ndarray:
        """The number of clauses in one turn of each segment. Barriers don't count: nothing works on
        them, and the engine's log (``units.sequencer.note_clause``) has no row for them.
        """
        counted = np.concatenate(([0], np.cumsum(self.clauses["kind"] != BARRIER)))
        return counted[self.segments["end"]] - counted[self.segments["first"]]


def pack(paths: list[Path], group: int = 1) -> Packed:
    """Paths that together have every wavefront from 0 up once; ``group`` wavefronts make a
    workgroup.
    """
    clauses: list[tuple[int, ...]] = []
    streams: list[Stream] = []
    segments: list[tuple[int, int, int]] = []
    bounds = [0]
    for path in paths:
        for body, repeats in path.segments:
            segments.append((len(clauses), len(clauses) + len(body), repeats))
            for clause in body:
                first = len(streams)
                end = first + len(clause.streams)
                clauses.append((clause.kind, clause.bundles, first, end, clause.pause))
                streams += clause.streams
        bounds.append(len(segments))
    everyone = np.concatenate([path.wavefronts for path in paths])
    total = len(everyone)
    if not np.array_equal(np.sort(everyone), np.arange(total)):
        raise ValueError("the paths don't have every wavefront once")
    path_of, member = np.zeros(total, np.int32), np.zeros(total, np.int32)
    for number, path in enumerate(paths):
        path_of[path.wavefronts] = number
        member[path.wavefronts] = np.arange(len(path.wavefronts))
    first_entries = np.cumsum([0, *(len(s.cost) for s in streams)])
    rows = [(e, s.phases, s.step, s.uncached) for e, s in zip(first_entries, streams)]
    return Packed(
        np.array(clauses, CLAUSE),
        np.array(segments, SEGMENT),
        np.array(bounds, np.int64),
        path_of,
        member,
        np.array(rows, STREAM),
        *_shared_patterns(streams),
        group,
    )


def _shared_patterns(streams: list[Stream]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``Packed.entries``, ``patterns`` and ``lines``. Most wavefronts ask for the same lines as the
    one before, some lines further: they share a pattern, so that all patterns stay in the host's
    caches.
    """
    entries = np.zeros(sum(len(s.amounts) for s in streams), ENTRY)
    patterns, lines = [np.zeros(0, PATTERN)], [np.zeros(0, LINE)]
    first = 0
    totals = np.zeros(2, np.int64)  # patterns and lines of the streams so far
    for stream in streams:
        end = first + len(stream.amounts)
        found = np.zeros(end - first, PATTERN)
        asked = np.zeros(len(stream.line), LINE)
        sizes = np.zeros(2, np.int64)
        bounds, numbers, offsets = (
            np.ascontiguousarray(part, np.int64)
            for part in (stream.ptr, stream.line, stream.offset)
        )
        _find_patterns(
            stream.phases,
            stream.amounts,
            bounds,
            numbers,
            offsets,
            sizes,
            entries[first:end],
            found,
            asked,
        )
        # Copies, or the streams' patterns would take as much memory as if nothing was shared.
        found, asked = found[: sizes[0]].copy(), asked[: sizes[1]].copy()
        entries["pattern"][first:end] += totals[0]
        for bound in ("first", "end"):
            found[bound] += totals[1]
        patterns.append(found)
        lines.append(asked)
        totals += sizes
        first = end
    return entries, np.concatenate(patterns), np.concatenate(lines)


@native
def _find_patterns(phases, amounts, ptr, line, offset, sizes, entries, patterns, lines):
    """Fill the last three arrays with the entries of a stream, their patterns and the patterns'
    lines; ``sizes`` says how many of the latter two there are. An entry takes the pattern of its
    phase in the wavefront before, or a new one.
    """
    for n in range(len(amounts)):
        first = ptr[n]
        count = ptr[n + 1] - first
        base = line[first] if count > 0 else 0
        pattern = entries[n - phases].pattern if n >= phases else -1
        same = pattern >= 0
        if same:
            same = patterns[pattern].end - patterns[pattern].first == count
        if same:
            same &= patterns[pattern].cost == amounts[n].cost
            same &= patterns[pattern].asked == amounts[n].asked
            same &= patterns[pattern].delivered == amounts[n].delivered
            for p in range(count):
                known = patterns[pattern].first + p
                same &= lines[known].line == line[first + p] - base
                same &= lines[known].offset == offset[first + p]
        if not same:
            pattern = sizes[0]
            patterns[pattern].first = sizes[1]
            for p in range(first, first + count):
                lines[sizes[1]].line = line[p] - base
                lines[sizes[1]].offset = offset[p]
                sizes[1] += 1
            patterns[pattern].end = sizes[1]
            patterns[pattern].cost = amounts[n].cost
            patterns[pattern].asked = amounts[n].asked
            patterns[pattern].delivered = amounts[n].delivered
            sizes[0] += 1
        entries[n].pattern = pattern
        entries[n].moved = base


def stream(
    addresses: np.ndarray,
    active: np.ndarray | None = None,
    *,
    line_bytes: int = 64,
    quads_per_clock: int = 1,
    banks: int = 4,
    merge: bool = True,
    base: int = 0,
    phases: int = 1,
    **more,
) -> Stream:
    """The stream of byte ``addresses``, int64 of shape (entries, 64) in quad order: work-items 4q
    to 4q+3 are a quad.

    ``merge`` lists a line once per fetch, as an L1 would ask for it; ``base`` is added to line
    numbers; ``phases``, ``step`` and ``uncached`` as in ``Stream``.
    """
    on = np.ones(addresses.shape, np.bool_) if active is None else active
    entries, items = addresses.shape
    cost, asked = np.zeros((2, entries), np.int32)
    ptr = np.zeros(entries + 1, np.int64)
    line, offset = np.empty(entries * items, np.int64), np.empty(entries * items, np.int32)
    how = line_bytes.bit_length() - 1, banks, quads_per_clock, merge, phases
    _find_lines(np.ascontiguousarray(addresses), on, *how, cost, asked, ptr, line, offset)
    amounts = of_cost(cost)
    amounts["asked"] = asked
    # Copies, not views: a view would keep 64 places for each entry.
    lines = line[: ptr[-1]] + base
    offsets = offset[: ptr[-1]].copy()
    return Stream(amounts, ptr, lines, offsets, phases, **more)


def joined(parts: list[Stream]) -> Stream:
    """One stream of the wavefronts of several, in their order."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.ptr[-1] for part in parts)])
    bounds = [part.ptr[:-1] + start for part, start in zip(parts, starts)]
    amounts, line, offset = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("amounts", "line", "offset")
    )
    ptr = np.concatenate([*bounds, starts[-1:]])
    return replace(parts[0], amounts=amounts, ptr=ptr, line=line, offset=offset)


def of_cost(clocks: np.ndarray) -> np.ndarray:
    """The amounts of entries that take so many clocks of a unit, and nothing else."""
    amounts = np.zeros(len(clocks), AMOUNT)
    amounts["cost"] = clocks
    return amounts


def fetched_together(streams: Iterable[Stream]) -> tuple[Stream, ...]:
    """The streams of a TEX clause. A line that an earlier fetch of the clause has asked for is
    dropped from later ones' lists: data come back in order, so that it has arrived before theirs
    can.
    """
    kept: list[Stream] = []
    for whole in streams:
        stream = whole
        for before in kept:
            if not stream.uncached and (before.phases, before.step, before.uncached) == (
                stream.phases,
                stream.step,
                False,
            ):
                ptr, line, offset = _without(stream, before)
                stream = replace(stream, ptr=ptr, line=line, offset=offset, whole=whole)
        kept.append(stream)
    return tuple(kept)


def combined_stores(clauses: list[Clause]) -> list[Clause]:
    """Clauses with their stores as the write-combining buffer sends them: stores with nothing but
    ALU clauses between them leave together after the last one, each line once and in the order of
    addresses.
    """
    result = list(clauses)
    waiting: list[int] = []
    for at, clause in enumerate([*clauses, Clause(BARRIER)]):
        if clause.kind == WRITE and clause.streams:
            waiting.append(at)
        elif clause.kind not in (ALU, WRITE) and waiting:
            streams = [s for n in waiting for s in clauses[n].streams]
            for n in waiting:
                empty = tuple(
                    replace(s, ptr=np.zeros_like(s.ptr), line=s.line[:0], whole=s)
                    for s in clauses[n].streams
                )
                result[n] = replace(clauses[n], streams=empty)
            last = result[waiting[-1]].streams
            if len({(s.phases, s.step, len(s.cost)) for s in streams}) == 1:
                ptr, line = _union(streams)
                offset = np.zeros(len(line), np.int32)
                drained = replace(last[-1], ptr=ptr, line=line, offset=offset)
                result[waiting[-1]] = replace(result[waiting[-1]], streams=(*last[:-1], drained))
            else:
                for n in waiting:
                    result[n] = clauses[n]
            waiting = []
    return result


def _union(streams: list[Stream]) -> tuple[np.ndarray, np.ndarray]:
    """All lines of the streams per entry, sorted and once."""
    entries = len(streams[0].cost)
    if all((np.diff(s.ptr) == s.ptr[1]).all() for s in streams):
        table = np.hstack([s.line.reshape(entries, -1) for s in streams])
        table, first = table - table[:, :1], table[:, :1]
        if (table == table[0]).all():  # the same of all, moved
            pattern = np.unique(table[0])
            return np.arange(entries + 1, dtype=np.int64) * len(pattern), (first + pattern).ravel()
    numbers = np.arange(entries, dtype=np.int64)
    entry = np.concatenate([np.repeat(numbers, np.diff(s.ptr).astype(np.intp)) for s in streams])
    keys = np.sort(entry << LINE_BITS | np.concatenate([s.line for s in streams]))
    keys = keys[np.diff(keys, prepend=-1) != 0]
    entry = keys >> LINE_BITS
    line = keys & ((1 << LINE_BITS) - 1)
    counts = np.bincount(entry.astype(np.intp), minlength=entries)
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))), line


def _without(stream: Stream, before: Stream):
    keep = np.ones(len(stream.line), np.bool_)
    _drop_known(keep, stream.ptr, stream.line, before.ptr, before.line)
    return (
        np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))[stream.ptr],
        stream.line[keep],
        stream.offset[keep],
    )


@native
def _drop_known(keep, ptr, line, before_ptr, before_line):
    """Clear ``keep`` of the lines that the same entry of ``before`` has."""
    for e in range(len(ptr) - 1):
        for p in range(ptr[e], ptr[e + 1]):
            for q in range(before_ptr[e], before_ptr[e + 1]):
                if before_line[q] == line[p]:
                    keep[p] = False
                    break


@native
def _find_lines(
    addresses, active, shift, banks, quads_per_clock, merge, phases, cost, asked, ptr, line, offset
):
    """Fill the last five arrays, for each entry: its clocks, the lines that its quads ask for, the
    bounds of its lines in ``line``, these lines, and when. Lines of the wavefront before, moved by
    whole lines, are copied.
    """
    entries, items = addresses.shape
    for e in range(entries):
        first = ptr[e]
        clock = 0
        before = max(e - phases, 0)
        n = first
        moved = (addresses[e, 0] - addresses[before, 0]) >> shift
        same = before < e
        for i in range(items):
            same &= (
                addresses[e, i] - addresses[before, i] == moved << shift
                and active[e, i] == active[before, i]
            )
        if same:
            cost[e] = cost[before]
            asked[e] = asked[before]
            ptr[e + 1] = n + ptr[before + 1] - ptr[before]
            for p in range(ptr[before], ptr[before + 1]):
                line[n] = line[p] + moved
                offset[n] = offset[p]
                n += 1
            continue
        for quad in range(0, items, 4):
            oldest = first if merge else n
            for i in range(quad, min(quad + 4, items)):
                if not active[e, i]:
                    continue
                number = addresses[e, i] >> shift
                known = False
                first_of_quad = True
                for j in range(quad, i):
                    if active[e, j] and addresses[e, j] >> shift == number:
                        first_of_quad = False
                asked[e] += first_of_quad
                for j in range(n - 1, oldest - 1, -1):
                    if line[j] == number:
                        known = True
                        break
                if not known:
                    line[n] = number
                    offset[n] = clock // quads_per_clock
                    n += 1
            clock += quad_clocks(addresses[e, quad : quad + 4], active[e, quad : quad + 4], banks)
        cost[e] = (clock + quads_per_clock - 1) // quads_per_clock
        ptr[e + 1] = n


@native
def quad_clocks(addresses, active, banks):
    """Clocks that L1 needs for a quad: as many as its fullest bank has different words of 16 bytes
    to give.
    """
    return busiest_bank(addresses, active, BANK_SHIFT, banks)


@part
def busiest_bank(addresses, active, word_shift, banks):
    """The number of different words that the busiest bank has to give. One that several ask for
    counts once.
    """
    most = 0
    for i in range(len(addresses)):
        words = 0
        for j in range(i + 1 if active[i] else 0):
            word = addresses[j] >> word_shift
            first = active[j] and (word ^ (addresses[i] >> word_shift)) & (banks - 1) == 0
            for k in range(j if first else 0):
                first = first and not (active[k] and addresses[k] >> word_shift == word)
            words += first
        most = max(most, words)
    return most
