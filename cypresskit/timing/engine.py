"""The chip as an event simulation: SIMD engines that share L2 and DRAM, one wavefront event after another in time.

- A SIMD engine has slots for as many wavefronts as registers and LDS allow. Workgroups are dispatched in order, round
  robin at first; they retire in order too (APP guide 4.6.2), and the next one takes the place of the one that retires.
- The ALU works on two clauses at a time, in turn: a bundle takes ``bundle_clocks`` (4), and a wavefront's next one can
  begin after ``result_clocks`` (8); a clause needs ``clause_clocks`` to get going. Clauses are taken in the order in
  which they are ready.
- The texture unit works on one TEX clause at a time and takes a quad line per clock. Data come back in order; the
  wavefront goes on when its last datum is there. A line in L1 comes after ``l1_clocks``; others go to L2, one line per
  slice and 64 bytes per clock, and on to a DRAM channel if L2 doesn't have them either.
- Global memory goes past L1. A store keeps the engine's store path for some clocks and then its DRAM channel, for which
  nobody waits.
- An ALU clause with LDS operations lasts at least as long as the LDS needs for them; it serves clauses in turn.

Left out: instruction caches, a limit on misses under way, and what happens within a clause on the ALU.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from cypresskit.devices import Device
from cypresskit.timing.cache import find, fold, native
from cypresskit.timing.dram import drain, geometry, line_clocks, place, transfer
from cypresskit.timing.work import ALU, BARRIER, WRITE, Packed

NEVER = 1e300
EVENTS = 4096  # of the timeline that is kept
PACE = 1024  # times of progress that are kept
AHEAD = 64  # clocks for which an engine may be ahead of the others


@dataclass(frozen=True, eq=False)
class Outcome:
    """What happened, in core clocks. ``start``, ``end``, ``engine`` per wavefront; ``counts`` by name: busy clocks of
    all ALUs, texture units and LDS ("alu", "tex", "lds"), of all L2 slices ("slice") and DRAM channels ("dram"), lines
    asked and missed, lines written. ``end_clock`` is when the last store has left. ``timeline`` rows are (slot,
    wavefront, kind of clause, start, end) of engine 0, the first few thousand clauses. ``progress`` has the clocks at
    which ``pace``, 2 ``pace``, ... clauses were over; ``done`` what each part had done by then, and in its last
    row what in the end: of each SIMD engine the busy clocks of ALU, texture unit and LDS and the lines that L1 missed,
    of each L2 slice the lines asked and missed, of each memory channel the busy clocks. Work counts when it begins."""

    end_clock: float
    start: np.ndarray
    end: np.ndarray
    engine: np.ndarray
    timeline: np.ndarray
    progress: np.ndarray
    pace: int
    done: np.ndarray
    counts: dict[str, float]

    def when(self, clauses: np.ndarray) -> np.ndarray:
        """The clocks at which so many clauses were over, all wavefronts together."""
        return np.interp(clauses, np.arange(len(self.progress)) * self.pace, self.progress)

    def missed(self, clauses: np.ndarray, device: Device) -> np.ndarray:
        """The lines that L2 had missed by then."""
        lines = parts(self.done[:-1], device)[1][..., 1].sum(axis=1)
        return np.interp(clauses, np.arange(len(lines)) * self.pace, lines)


def run(work: Packed, device: Device, slots: int) -> Outcome:
    """Run ``work`` on ``device`` with room for ``slots`` wavefronts on each SIMD engine."""
    sets = [device.l1_bytes // device.line_bytes // device.l1_ways, device.l2_bytes // device.line_bytes]
    sets[1] //= device.l2_ways
    numbers = np.array(
        [
            device.simd_engines,
            slots,
            work.group,
            device.bundle_clocks,
            device.result_clocks,
            device.switch_clocks,
            device.clause_clocks,
            sets[0],
            device.l1_ways,
            sets[1],
            device.l2_ways,
            device.l2_slices,
            device.memory_channels,
            device.memory_banks,
            *geometry(device),
        ],
        np.int64,
    )
    clocks = np.array(
        [
            device.l1_clocks,
            device.l2_clocks,
            device.dram_clocks,
            device.line_bytes / device.l2_slice_bytes_clock,
            line_clocks(device),
            device.dram_row_clocks,
        ],
        np.float64,
    )
    arrays = (work.clauses, work.references, work.segments, work.paths, work.path, work.member, work.streams)
    total = int(work.clauses_of_path[work.path].sum())
    end, start, stop, engine, timeline, progress, pace, done, l1_asked, written = _run(
        numbers, clocks, *arrays, work.cost, work.ptr, work.line, work.offset, total
    )
    per_engine, per_slice, dram = parts(done[-1], device)
    alu, tex, lds, l1_missed = per_engine.sum(axis=0).tolist()
    l2_asked, l2_missed = per_slice.sum(axis=0).tolist()
    counts = {"alu": alu, "tex": tex, "lds": lds, "slice": l2_asked * clocks[3], "dram": float(dram.sum())}
    counts |= {"l1_asked": l1_asked, "l1_missed": l1_missed, "l2_asked": l2_asked, "l2_missed": l2_missed}
    counts["written"] = written
    return Outcome(end, start, stop, engine, timeline, progress, pace, done, counts)


def parts(done: np.ndarray, device: Device) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``Outcome.done``, of shape (..., all parts), by kind: (..., engines, 4), (..., slices, 2), (..., channels)."""
    first, last = 4 * device.simd_engines, 4 * device.simd_engines + 2 * device.l2_slices
    engines, slices = (
        x.reshape(*done.shape[:-1], -1, n) for x, n in ((done[..., :first], 4), (done[..., first:last], 2))
    )
    return engines, slices, done[..., last:]


@native()
def _first(ready, e):
    """The slot of engine ``e`` that is ready first."""
    best = 0
    for other in range(1, ready.shape[1]):
        if ready[e, other] < ready[e, best]:
            best = other
    return best


@native()
def _sort(order, clocks):
    """Sort the engines in ``order`` by ``clocks``, by insertion: few are out of place, and it compiles quickly."""
    for at in range(1, len(order)):
        e = order[at]
        while at > 0 and clocks[order[at - 1]] > clocks[e]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = e


@njit(cache=True, error_model="numpy")
def _run(
    numbers,
    clocks,
    clauses,
    references,
    segments,
    paths,
    path,
    member,
    streams,
    cost,
    ptr,
    lines,
    offsets,
    clause_total,
):
    engines, slots, group, bundle_clocks, result_clocks, switch, clause_clocks = numbers[0:7]
    l1_sets, l1_ways, l2_sets, l2_ways, slices, channels, banks = numbers[7:14]
    line_bits, burst_bits, channel_bits, bank_bits, row_bits = numbers[14:19]
    l1_clocks, l2_clocks, dram_clocks, slice_clocks, dram_line, row_clocks = clocks
    l1_bits, l2_bits, spread_bits = 0, 0, channel_bits
    while 1 << spread_bits < slices:
        spread_bits += 1
    while 1 << l1_bits < l1_sets:
        l1_bits += 1
    while 1 << l2_bits < l2_sets:
        l2_bits += 1
    l1_size = l1_sets * l1_ways
    l1_tag = np.full(max(engines * l1_size, 1), -1, np.int64)
    l1_used, l1_ready = np.zeros(l1_tag.shape, np.int64), np.zeros(l1_tag.shape)
    l2_tag = np.full(max(l2_sets * l2_ways, 1), -1, np.int64)
    l2_used, l2_ready = np.zeros(l2_tag.shape, np.int64), np.zeros(l2_tag.shape)
    slice_free, channel_free, owed = np.zeros(slices), np.zeros(channels), np.zeros(channels)
    bank_free, bank_row = np.zeros((channels, banks)), np.full((channels, banks), -1, np.int64)
    tick = 0

    alus = result_clocks // bundle_clocks  # wavefronts that take turns
    alu_free, lds_free, store_free = np.zeros((engines, alus)), np.zeros(engines), np.zeros(engines)
    tex_free, data_free = np.zeros(engines), np.zeros(engines)
    owner = np.full(engines, -1, np.int64)  # slot whose clause is in the texture unit
    queue, queued = np.zeros((engines, slots), np.int64), np.zeros(engines, np.int64)
    total = len(path)
    started, ended, on = np.zeros(total), np.zeros(total), np.zeros(total, np.int64)
    wave = np.full((engines, slots), -1, np.int64)
    ready = np.full((engines, slots), NEVER)
    segment, turn = np.zeros((engines, slots), np.int64), np.zeros((engines, slots), np.int64)
    clause = np.zeros((engines, slots), np.int64)
    fetch = np.full((engines, slots), -1, np.int64)  # next one of the clause, -1 outside a clause
    back = np.zeros((engines, slots))  # when the clause's data are there
    arrived = np.zeros((engines, slots), np.int64)
    next_clock, next_slot = np.full(engines, NEVER), np.zeros(engines, np.int64)
    asked, written = 0, 0  # lines: of L1, by stores
    timeline, events = np.zeros((EVENTS, 5)), 0
    began = np.zeros((engines, slots))
    progress, over, pace = np.zeros(PACE + 1), 0, max(clause_total // PACE, 1)
    mark, noted = pace, 1
    slice_at, channel_at = 4 * engines, 4 * engines + 2 * slices
    parts = np.zeros(channel_at + channels)
    parts_at = np.zeros((PACE + 2, len(parts)))
    first_of = np.arange(slots) // group * group
    groups = total // group
    at_engine, at_slot = np.zeros(groups, np.int64), np.zeros(groups, np.int64)  # where each workgroup runs
    running, over_at = np.full(groups, group), np.zeros(groups)  # its wavefronts that run, and when it has ended
    retired, release = 0, 0.0  # workgroups retire in order and leave their place to the next
    upcoming = min(groups, slots // group * engines)
    for g in range(upcoming):
        e, first = g % engines, g // engines * group
        at_engine[g], at_slot[g] = e, first
        for s in range(first, first + group):
            w = g * group + s - first
            wave[e, s], ready[e, s], segment[e, s], on[w] = w, 0.0, paths[path[w]], e
            clause[e, s] = segments[segment[e, s], 0]
    for e in range(engines):
        next_slot[e] = _first(ready, e)
        next_clock[e] = ready[e, next_slot[e]]

    order = np.arange(engines)  # engines, the one that is furthest behind first
    _sort(order, next_clock)
    while True:
        e = order[0]
        now = next_clock[e]
        if now >= NEVER:
            break
        s = next_slot[e]
        w = wave[e, s]
        c = clause[e, s]
        kind, done = clauses[c, 0], -1.0  # done: when the clause is over, once that is known
        if kind == ALU:
            a = 0
            for other in range(1, alus):
                if alu_free[e, other] < alu_free[e, a]:
                    a = other
            begin = max(now, alu_free[e, a])
            done = begin + clause_clocks + clauses[c, 1] * result_clocks
            parts[4 * e] += clauses[c, 1] * bundle_clocks
            for r in range(clauses[c, 2], clauses[c, 3]):
                r = references[r]
                clocks_lds = cost[streams[r, 0] + member[w] * streams[r, 1] + turn[e, s] % streams[r, 1]]
                lds_free[e] = max(begin + clause_clocks, lds_free[e]) + clocks_lds
                parts[4 * e + 2] += clocks_lds
                done = max(done, lds_free[e])
            alu_free[e, a] = done
            began[e, s] = begin
        elif kind == WRITE:
            begin = max(now, store_free[e])
            done, accepted = begin, begin
            for r in range(clauses[c, 2], clauses[c, 3]):
                r = references[r]
                phases, shift = streams[r, 1], turn[e, s]
                entry = streams[r, 0] + member[w] * phases + shift % phases
                shift = shift // phases * streams[r, 2]
                done += cost[entry]
                for p in range(ptr[entry], ptr[entry + 1]):
                    channel, _, _ = place(lines[p] + shift, line_bits, burst_bits, channel_bits, bank_bits, row_bits)
                    drain(done, channel, channel_free, owed)
                    owed[channel] += dram_line
                    accepted = max(accepted, channel_free[channel] + owed[channel])
                    parts[channel_at + channel] += dram_line
                    written += 1
            store_free[e] = done
            done = max(done, accepted)
            began[e, s] = begin
        elif kind == BARRIER:
            arrived[e, s], ready[e, s], waiting = 1, NEVER, 0
            first = first_of[s]
            for other in range(first, first + group):
                waiting += wave[e, other] >= 0 and arrived[e, other] == 0
            began[e, s] = now
            if waiting == 0:
                for other in range(first, first + group):
                    if arrived[e, other] == 1:
                        arrived[e, other] = 2  # goes on
                        ready[e, other] = now
        elif owner[e] >= 0 and owner[e] != s:
            queue[e, queued[e]] = s
            queued[e] += 1
            ready[e, s] = NEVER
        elif now < tex_free[e]:
            owner[e], ready[e, s] = s, tex_free[e]
        else:
            owner[e] = s
            if fetch[e, s] < 0:
                fetch[e, s], back[e, s], began[e, s] = clauses[c, 2], now, now
            until = now + AHEAD
            while fetch[e, s] < clauses[c, 3]:
                r = references[fetch[e, s]]
                phases = streams[r, 1]
                entry, shift = streams[r, 0] + member[w] * phases, turn[e, s]
                if phases > 1:
                    entry += shift % phases
                    shift //= phases
                shift *= streams[r, 2]
                if now >= until and ptr[entry] < ptr[entry + 1]:
                    break  # its turn comes at its own time
                clocks_tex = cost[entry]
                uncached = streams[r, 3] != 0 or l1_sets == 0
                data = max(data_free[e] + clocks_tex, now + clocks_tex + l1_clocks)
                for p in range(ptr[entry], ptr[entry + 1]):
                    line, clock = lines[p] + shift, now + offsets[p]
                    tick += 1
                    way = 0
                    if not uncached:
                        way = find(l1_tag, l1_used, e * l1_size + fold(line, l1_bits) * l1_ways, l1_ways, line, tick)
                        asked += 1
                        if way >= 0:
                            data = max(data, l1_ready[way] + clocks_tex - offsets[p])
                            continue
                        way = -1 - way
                        parts[4 * e + 3] += 1
                    channel, bank, dram_row = place(line, line_bits, burst_bits, channel_bits, bank_bits, row_bits)
                    slice_ = channel
                    if spread_bits > channel_bits:  # several slices to a channel: the next bits choose among them
                        slice_, _, _ = place(line, line_bits, burst_bits, spread_bits, bank_bits, row_bits)
                    slice_ %= slices
                    clock = max(clock, slice_free[slice_])
                    slice_free[slice_] = clock + slice_clocks
                    parts[slice_at + 2 * slice_] += 1
                    way2 = -1
                    if l2_sets > 0:
                        way2 = find(l2_tag, l2_used, fold(line, l2_bits) * l2_ways, l2_ways, line, tick)
                    if way2 >= 0:
                        come = max(clock + l2_clocks, l2_ready[way2])
                    else:
                        drain(clock, channel, channel_free, owed)
                        come = dram_clocks + transfer(
                            clock, dram_line, channel, bank, dram_row, channel_free, bank_free, bank_row, row_clocks
                        )
                        parts[slice_at + 2 * slice_ + 1] += 1
                        parts[channel_at + channel] += dram_line
                        if l2_sets > 0:
                            way2 = -1 - way2
                            l2_tag[way2], l2_used[way2], l2_ready[way2] = line, tick, come
                    if not uncached:
                        l1_tag[way], l1_used[way], l1_ready[way] = line, tick, come
                    data = max(data, come + clocks_tex - offsets[p])
                parts[4 * e + 1] += clocks_tex
                data_free[e] = data
                back[e, s] = data
                fetch[e, s] += 1
                now += clocks_tex
            ready[e, s] = now
            if fetch[e, s] >= clauses[c, 3]:
                tex_free[e] = now
                owner[e] = -1
                done = back[e, s]
                fetch[e, s] = -1
                if queued[e] > 0:
                    owner[e] = queue[e, 0]
                    ready[e, owner[e]] = now
                    queued[e] -= 1
                    for q in range(queued[e]):
                        queue[e, q] = queue[e, q + 1]
        some_ended = False
        first, last = (first_of[s], first_of[s] + group) if kind == BARRIER else (s, s + 1)
        for other in range(first, last):
            if kind == BARRIER:
                if arrived[e, other] < 2:
                    continue
                arrived[e, other], done = 0, now
            elif done < 0:
                continue
            else:
                over += 1
                if over == mark:
                    for part in range(len(parts)):
                        parts_at[noted, part] = parts[part]
                    progress[noted], mark, noted = now, mark + pace, min(noted + 1, PACE)
                if e == 0 and events < EVENTS:
                    timeline[events, 0], timeline[events, 1], timeline[events, 2] = s, w, kind
                    timeline[events, 3], timeline[events, 4] = began[e, s], done
                    events += 1
                ready[e, s] = done + switch
            at, following = segment[e, other], clause[e, other] + 1
            if following == segments[at, 1]:
                turn[e, other] += 1
                if turn[e, other] == segments[at, 2]:
                    turn[e, other] = 0
                    at += 1
                    segment[e, other] = at
                following = segments[at, 0] if at < paths[path[wave[e, other]] + 1] else -1
            clause[e, other] = following
            if following < 0:
                ended[wave[e, other]], some_ended = done, True
                g = wave[e, other] // group
                running[g] -= 1
                over_at[g] = max(over_at[g], done)
                wave[e, other], ready[e, other] = -1, NEVER
        if some_ended:
            here = False
            while retired < upcoming and running[retired] == 0:
                release = max(release, over_at[retired])
                if upcoming < groups:
                    f, first = at_engine[retired], at_slot[retired]
                    at_engine[upcoming], at_slot[upcoming] = f, first
                    for other in range(first, first + group):
                        w = upcoming * group + other - first
                        wave[f, other], segment[f, other], on[w] = w, paths[path[w]], f
                        turn[f, other], clause[f, other] = 0, segments[segment[f, other], 0]
                        started[w], ready[f, other] = release, release
                    if release < next_clock[f]:
                        next_clock[f], next_slot[f], here = release, first, True
                    upcoming += 1
                retired += 1
            if here:
                next_clock[e] = ready[e, _first(ready, e)]
                _sort(order, next_clock)
                for at in range(engines):  # the present engine first again, until its place is found below
                    if order[at] == e:
                        for q in range(at, 0, -1):
                            order[q] = order[q - 1]
                        order[0] = e
        b = _first(ready, e)
        next_slot[e], next_clock[e] = b, ready[e, b]
        if engines > 1 and next_clock[order[1]] < ready[e, b] - AHEAD:  # it is too far ahead: to its place in the order
            at = 0
            while at + 1 < engines and next_clock[order[at + 1]] < ready[e, b]:
                order[at] = order[at + 1]
                at += 1
            order[at] = e
    end = 0.0
    for w in range(total):
        end = max(end, ended[w])
    for channel in range(channels):
        end = max(end, channel_free[channel] + owed[channel])
    for part in range(len(parts)):
        parts_at[PACE + 1, part] = parts[part]
    return end, started, ended, on, timeline[:events], progress, pace, parts_at, asked, written
