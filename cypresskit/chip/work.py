"""The input of the chip simulation: what each wavefront does, clause by clause.

A ``WavefrontPath`` is a set of wavefronts that run the same clauses, as segments that each repeat a
list of clauses. A clause's accesses to memory are ``Stream``s: for each wavefront, the cache lines
that it requests and when. The texture unit takes the 16 quads of a wavefront one after another,
each for as many clocks as different words are requested from its busiest bank. In a repeated
segment, the same pattern recurs every ``phases`` iterations, ``step`` lines further on.

``pack`` turns paths into flat arrays for native code. Data values aren't modeled.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cypresskit.chip.native import native
from cypresskit.devices import Device

ALU, TEX, WRITE, BARRIER = range(4)
BANK_SHIFT = 4  # a bank of L1 delivers a word of 2**4 bytes per clock
LINE_BITS = 40  # of a line's number, at most
KINDS = ("ALU", "TEX", "WRITE", "BARRIER")


def _row(*fields: str) -> np.dtype:
    """Return the type of a table's row: 64 bits for each field."""
    return np.dtype([(field, np.int64) for field in fields])


# Rows of Packed's tables. A clause has the streams ``first`` to ``end``, and a segment has the
# clauses ``first`` to ``end``. A stream's ``first`` is its first entry.
CLAUSE = _row("kind", "bundles", "first", "end")
SEGMENT = _row("first", "end", "iterations")
STREAM = _row("first", "phases", "step", "uncached")
AMOUNT = _row("cost", "requests", "delivered")  # of an entry of a stream


@dataclass(frozen=True, eq=False)
class Stream:
    """What one fetch, LDS operation or store requests.

    Entry ``w * phases + p`` is for wavefront ``w`` of the path, in iterations p, p + phases, ...

    Attributes
    ----------
    amounts
        A row of AMOUNT for each entry: ``cost`` in clocks of the unit; ``requests``, lines counted
        once per quad; and ``delivered``, bytes of texels.
    ptr
        The bounds of each entry's lines in ``line`` and ``offset``.
    line
        Numbers of the lines.
    offset
        Clocks from the beginning of the access to the first request of each line.
    phases, step
        The pattern recurs every ``phases`` iterations, ``step`` lines further on.
    uncached
        Whether both caches are bypassed.
    whole
        The same stream with all its lines, if some were dropped since another fetch of the clause,
        or a combined store, requests them; else None.
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
        """Clocks of the unit, for each entry."""
        return self.amounts["cost"]

    def total(self, iterations: int, amount: str = "cost") -> float:
        """Sum an amount, by default clocks of the unit, over all wavefronts and iterations."""
        whole, remainder = divmod(iterations, self.phases)
        times = whole + (np.arange(self.phases) < remainder)
        return float((self.amounts[amount].reshape(-1, self.phases) @ times).sum())


@dataclass(frozen=True, eq=False)
class Clause:
    """A clause of one or more wavefronts.

    Attributes
    ----------
    kind
        ALU, TEX, WRITE; or BARRIER, at which the wavefronts of a workgroup wait for each other.
    bundles
        The number of bundles of an ALU clause.
    streams
        One for each LDS operation, fetch or store.
    control, first
        The code that it comes from: ``Code.controls[control]``, from bundle ``first`` on.
    sources
        For each stream the index of its instruction in ``Program.body``.
    """

    kind: int
    bundles: int = 0
    streams: tuple[Stream, ...] = ()
    control: int = 0
    first: int = 0
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class WavefrontPath:
    """Wavefronts that run the same clauses.

    Attributes
    ----------
    wavefronts
        Their numbers in dispatch order.
    segments
        Pairs of clauses and the number of iterations.
    """

    wavefronts: np.ndarray
    segments: tuple[tuple[tuple[Clause, ...], int], ...]


def clause_executions(paths: Iterable[WavefrontPath]) -> Iterator[tuple[Clause, int, int]]:
    """Yield each clause of ``paths``, with its iterations and the number of wavefronts."""
    for path in paths:
        for body, iterations in path.segments:
            for clause in body:
                yield clause, iterations, len(path.wavefronts)


class Packed(NamedTuple):
    """Paths as flat arrays.

    Attributes
    ----------
    clauses, segments, streams
        Tables with rows of CLAUSE, SEGMENT and STREAM.
    paths
        The first segment of each path, and the end.
    path, member
        For each wavefront its path, and its number within the path.
    amounts, ptr, line, offset
        Those of all streams, one after another.
    group_wavefronts
        Wavefronts per workgroup.
    """

    clauses: np.ndarray
    segments: np.ndarray
    paths: np.ndarray
    path: np.ndarray
    member: np.ndarray
    streams: np.ndarray
    amounts: np.ndarray
    ptr: np.ndarray
    line: np.ndarray
    offset: np.ndarray
    group_wavefronts: int = 1

    @property
    def executions(self) -> int:
        """How many clauses wavefronts run, repeats counted, without barriers: no unit runs these,
        and they aren't logged.
        """
        counted = np.concatenate(([0], np.cumsum(self.clauses["kind"] != BARRIER)))
        each = counted[self.segments["end"]] - counted[self.segments["first"]]
        before = np.concatenate(([0], np.cumsum(each * self.segments["iterations"])))
        return int(np.diff(before[self.paths])[self.path].sum())


def pack(paths: list[WavefrontPath], group_wavefronts: int = 1) -> Packed:
    """Turn paths into flat arrays.

    Parameters
    ----------
    paths
        They have each wavefront from 0 on exactly once.
    group_wavefronts
        Wavefronts per workgroup.
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
                clauses.append((clause.kind, clause.bundles, first, end))
                streams += clause.streams
        bounds.append(len(segments))
    numbers = np.concatenate([path.wavefronts for path in paths])
    total = len(numbers)
    if not np.array_equal(np.sort(numbers), np.arange(total)):
        raise ValueError("the paths don't have every wavefront once")
    path_of, member = np.zeros(total, np.int32), np.zeros(total, np.int32)
    for number, path in enumerate(paths):
        path_of[path.wavefronts] = number
        member[path.wavefronts] = np.arange(len(path.wavefronts))
    first_entries = np.cumsum([0, *(len(s.cost) for s in streams)])
    rows = [(e, s.phases, s.step, s.uncached) for e, s in zip(first_entries, streams)]
    every = concatenate([unit_stream(np.zeros(0)), *streams])
    ptr, line, offset = (np.asarray(x, np.int64) for x in (every.ptr, every.line, every.offset))
    return Packed(
        np.array(clauses, CLAUSE),
        np.array(segments, SEGMENT),
        np.array(bounds, np.int64),
        path_of,
        member,
        np.array(rows, STREAM),
        every.amounts,
        ptr,
        line,
        offset,
        group_wavefronts,
    )


def address_stream(
    addresses: np.ndarray,
    active: np.ndarray,
    device: Device,
    *,
    base: int,
    phases: int,
    step: int,
    uncached: bool,
    bank: np.ndarray | None = None,
) -> Stream:
    """Return the stream of accesses to bytes.

    Parameters
    ----------
    addresses
        int64 of shape (entries, 64): work-items 4 q to 4 q + 3 are a quad.
    active
        Mask of the work-items that take part.
    device
        The board. Without an L1, a line is requested once per quad, and not once per fetch.
    base
        Is added to line numbers.
    phases, step, uncached
        As in ``Stream``.
    bank
        The bank of L1 that has each work-item's word. By default, banks take turns.
    """
    entries, items = addresses.shape
    if bank is None:
        bank = bank_in_turn(addresses, device)
    cost, requests = np.zeros((2, entries), np.int32)
    ptr = np.zeros(entries + 1, np.int64)
    line, offset = np.empty(entries * items, np.int64), np.empty(entries * items, np.int32)
    merge = uncached or device.l1_bytes > 0
    unit = device.line_bytes.bit_length() - 1, device.quads_per_clock
    given = *map(np.ascontiguousarray, (addresses, bank)), active, *unit, merge
    _find_lines(*given, cost, requests, ptr, line, offset)
    amounts = np.zeros(entries, AMOUNT)
    amounts["cost"], amounts["requests"] = cost, requests
    # Copies, since a view would keep the memory of 64 lines for each entry.
    lines = line[: ptr[-1]] + base
    offsets = offset[: ptr[-1]].copy()
    return Stream(amounts, ptr, lines, offsets, phases, step, uncached)


def concatenate(parts: list[Stream]) -> Stream:
    """Join streams of the same access by different wavefronts, in their order."""
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


def cost_amounts(clocks: np.ndarray) -> np.ndarray:
    """Return the amounts of entries that only occupy their unit, for these ``clocks``."""
    amounts = np.zeros(len(clocks), AMOUNT)
    amounts["cost"] = clocks
    return amounts


def unit_stream(clocks: np.ndarray) -> Stream:
    """Return the stream of entries that only occupy their unit."""
    none = np.zeros(0, np.int64)
    bounds = np.zeros(len(clocks) + 1, np.int64)
    return Stream(cost_amounts(clocks), bounds, none, none.astype(np.int32))


def merge_fetches(streams: Iterable[Stream]) -> tuple[Stream, ...]:
    """Drop the lines that an earlier fetch of the same TEX clause requests.

    Data return in order, so these lines arrive before the later fetch's data can be delivered.
    """
    merged: list[Stream] = []
    for whole in streams:
        stream = whole
        for before in merged:
            if not stream.uncached and (before.phases, before.step, before.uncached) == (
                stream.phases,
                stream.step,
                False,
            ):
                ptr, line, offset = _without(stream, before)
                stream = replace(stream, ptr=ptr, line=line, offset=offset, whole=whole)
        merged.append(stream)
    return tuple(merged)


def combine_stores(clauses: list[Clause]) -> list[Clause]:
    """Combine stores as the write-combining buffer does.

    Stores with only ALU clauses between them leave together after the last one: each line once, in
    the order of addresses.
    """
    result = list(clauses)
    waiting: list[int] = []
    for at, clause in enumerate([*clauses, Clause(BARRIER)]):
        if clause.kind == WRITE and clause.streams:
            waiting.append(at)
        elif clause.kind not in (ALU, WRITE):
            streams = [s for n in waiting for s in clauses[n].streams]
            if len({(s.phases, s.step, len(s.cost)) for s in streams}) == 1:
                for n in waiting:
                    emptied = tuple(map(_without_lines, clauses[n].streams))
                    result[n] = replace(clauses[n], streams=emptied)
                ptr, line = _union(streams)
                drained = replace(
                    emptied[-1], ptr=ptr, line=line, offset=np.zeros(len(line), np.int32)
                )
                result[n] = replace(result[n], streams=(*emptied[:-1], drained))
            waiting = []
    return result


def _without_lines(s: Stream) -> Stream:
    return replace(s, ptr=np.zeros_like(s.ptr), line=s.line[:0], offset=s.offset[:0], whole=s)


def _union(streams: list[Stream]) -> tuple[np.ndarray, np.ndarray]:
    """Return the different lines of the streams, sorted, for each entry: bounds and lines.

    numpy counts in ``intp``, which has 32 bits in a browser.
    """
    entries = np.arange(len(streams[0].ptr), dtype=np.int64)
    counts = [np.diff(s.ptr).astype(np.intp) for s in streams]
    entry = np.concatenate([np.repeat(entries[:-1], count) for count in counts])
    # np.unique would hash these numbers, which is ten times slower: they have a common part.
    keys = np.sort(entry << LINE_BITS | np.concatenate([s.line for s in streams]), kind="stable")
    keys = keys[np.diff(keys, prepend=-1) != 0]
    bounds = np.searchsorted(keys, entries << LINE_BITS).astype(np.int64)
    return bounds, keys & ((1 << LINE_BITS) - 1)


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
    """Clear ``keep`` for lines that the same entry of the stream before requests."""
    for e in range(len(ptr) - 1):
        for p in range(ptr[e], ptr[e + 1]):
            for q in range(before_ptr[e], before_ptr[e + 1]):
                if before_line[q] == line[p]:
                    keep[p] = False
                    break


@native
def _find_lines(
    addresses,
    bank,
    active,
    shift,
    quads_per_clock,
    merge,
    cost,
    requests,
    ptr,
    line,
    offset,
):
    """Fill the last five arrays: for each entry its clocks, the lines counted once per quad, and
    the bounds of its lines; the lines; and their offsets in clocks.
    """
    entries, items = addresses.shape
    for e in range(entries):
        first = ptr[e]
        clock = 0
        n = first
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
                requests[e] += first_of_quad
                for j in range(n - 1, oldest - 1, -1):
                    if line[j] == number:
                        known = True
                        break
                if not known:
                    line[n] = number
                    offset[n] = clock // quads_per_clock
                    n += 1
            four = slice(quad, quad + 4)
            clock += busiest_bank(addresses[e, four], bank[e, four], active[e, four], BANK_SHIFT)
        cost[e] = (clock + quads_per_clock - 1) // quads_per_clock
        ptr[e + 1] = n


def bank_in_turn(addresses: np.ndarray, device: Device) -> np.ndarray:
    """Return the bank of L1 that has each byte, if banks take turns."""
    return addresses >> BANK_SHIFT & device.texture_banks - 1


@native
def busiest_bank(addresses, bank, active, word_shift):
    """Return the number of different words that are requested from the busiest bank."""
    most = 0
    for i in range(len(addresses)):
        words = 0
        for j in range(i + 1 if active[i] else 0):
            word = addresses[j] >> word_shift
            first = active[j] and bank[j] == bank[i]
            for k in range(j if first else 0):
                first = first and not (active[k] and addresses[k] >> word_shift == word)
            words += first
        most = max(most, words)
    return most
