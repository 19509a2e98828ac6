"""The state of the simulated chip: a named tuple per unit, as native code takes it.

A unit's tuple holds its latencies (numbers), its state and its counters (numpy arrays). Indices are
``[e]``, a SIMD engine; ``[e, s]``, a wavefront slot; ``[w]``, a wavefront; ``[g]``, a workgroup. A
number that changes is an array of one. Times are core clocks (float64) since the launch began.
"""

from typing import Any, NamedTuple, NewType

import numpy as np

from cypresskit.chip.native import LANES
from cypresskit.chip.units.cache import empty
from cypresskit.chip.units.dram import AddressBits, address_bits, line_clocks
from cypresskit.chip.work import Packed
from cypresskit.devices import Device

NEVER = 1e300
LOGGED_CLAUSES = 4096
SNAPSHOTS = 1024  # of progress

Floats = NewType("Floats", np.ndarray)  # float64
Integers = NewType("Integers", np.ndarray)  # int64


class SlotJobs(NamedTuple):
    """Which clause each wavefront slot is at. Only dispatcher and sequencer write it."""

    work: Packed
    wavefront: Integers  # [e, s]; -1 if the slot is empty
    segment: Integers  # [e, s]
    iteration: Integers  # [e, s], of the segment
    clause: Integers  # [e, s]


class Slots(NamedTuple):
    """When each wavefront slot continues. The last few slots may stay empty."""

    ready: Floats  # [e, s]: when it continues
    arrived: Integers  # [e, s]: 1 while it waits at a barrier
    next_slot: Integers  # [e]: the slot that is ready first
    next_clock: Floats  # [e]: when


class Groups(NamedTuple):
    """The workgroups and wavefronts of the launch."""

    engine: Integers  # [g]
    slot: Integers  # [g]: the first of its slots
    running: Integers  # [g]: number of its wavefronts that haven't ended
    ended: Floats  # [g]
    upcoming: Integers  # the next one to be dispatched
    retired: Integers  # the next one to retire
    released: Floats  # when the last one retired
    wavefront_start: Floats  # [w]
    wavefront_end: Floats  # [w]
    wavefront_engine: Integers  # [w]


class Alu(NamedTuple):
    """The ALUs."""

    free: Floats  # [e, n]: when each of the two places for a clause is free
    busy: Floats  # [e], clocks
    bundle_clocks: float
    latency_clocks: float
    overhead_clocks: float


class Lds(NamedTuple):
    """The LDS of each engine."""

    free: Floats  # [e]
    busy: Floats  # [e], clocks


class Tags(NamedTuple):
    """A cache, or one per SIMD engine."""

    size: int  # places of each; 0 if there is no cache
    ways: int  # places of a set
    bits: int  # logarithm of the number of sets
    line: Integers  # of each place; -1 if empty
    used: Integers  # when it was last used, in accesses
    ready: Floats  # when the line arrives


class Texture(NamedTuple):
    """The texture units, with their L1 caches."""

    free: Floats  # [e]
    owner: Integers  # [e]: the slot whose clause is in the unit, or -1
    queue: Integers  # [e, n]: slots that wait for the unit
    queued: Integers  # [e]: their number
    fetch: Integers  # [e, s]: the next fetch of the clause; -1 outside of a TEX clause
    began: Floats  # [e, s]: when the clause began
    data: Floats  # [e, s]: when the data of its fetches so far arrive
    data_free: Floats  # [e]: when the last fetch's data have been delivered
    l1: Tags
    l1_clocks: float
    busy: Floats  # [e], clocks
    l1_requests: Floats  # [e], lines, counted once per quad
    l1_misses: Floats  # [e], lines
    delivered: Floats  # [e], bytes of texels


class StorePath(NamedTuple):
    """The store paths."""

    free: Floats  # [e]
    written: Floats  # lines, of the whole chip


class MemorySystem(NamedTuple):
    """L2 slices, DRAM channels and banks."""

    accesses: Integers  # lines requested so far: the caches' clock
    l2: Tags
    address_bits: AddressBits
    slice_free: Floats  # [slice]
    channel_free: Floats  # [channel]
    pending: Floats  # [channel]: clocks of stores that it still has to send
    bank_free: Floats  # [channel, bank]
    bank_row: Integers  # [channel, bank]: the open row
    slice_line_clocks: float
    l2_clocks: float
    dram_clocks: float
    row_clocks: float
    line_clocks: float
    l2_requests: Floats  # [slice], lines of textures
    l2_misses: Floats  # [slice]
    l2_bypasses: Floats  # [slice], lines of global memory
    channel_busy: Floats  # [channel], clocks
    row_waits: Floats  # [channel], clocks in which a line waits for its row and nothing is sent


class Tally(NamedTuple):
    """The counters of all units, which are views of ``all``."""

    all: Floats
    snapshots: Floats  # copies of ``all``, row by row


class Log(NamedTuple):
    """The first clauses of engine 0, and the chip's progress."""

    rows: Floats  # slot, wavefront, kind, start, end, served
    row_count: Integers
    pace: int  # clauses between two snapshots
    over: Integers  # clauses that are over
    progress: Floats  # clocks at which ``pace``, 2 ``pace``, ... clauses were over


class Chip(NamedTuple):
    """The whole chip."""

    jobs: SlotJobs
    slots: Slots
    groups: Groups
    alu: Alu
    lds: Lds
    texture: Texture
    stores: StorePath
    memory: MemorySystem
    tally: Tally
    log: Log
    clause_switch_clocks: float  # between a wavefront's clauses


def blank(kind: type, shape, **given) -> Any:
    """Return a tuple of zeros: arrays of ``shape``, or of the shape that is given for a field
    instead of its value.
    """
    dtypes = {Floats: np.float64, Integers: np.int64}
    values = {}
    for name, field in kind.__annotations__.items():
        value = given.get(name, shape)
        if field in dtypes:
            known = isinstance(value, np.ndarray)
            value = np.asarray(value if known else np.zeros(value), dtypes[field])
        values[name] = float(value) if field is float else value
    return kind(**values)


def make_chip(work: Packed, device: Device, slots: int) -> Chip:
    """Return a chip at clock 0, with ``slots`` wavefront slots per SIMD engine, all empty."""
    engines = device.simd_engines
    places = engines, -(-slots // LANES) * LANES
    total = len(work.path)
    groups = total // work.group_wavefronts
    done = np.zeros(sum(_counter_sizes(device).values()))
    counters = split_tally(done, device)
    sets = device.l1_bytes // device.line_bytes // device.l1_ways
    return Chip(
        jobs=blank(SlotJobs, places, work=work, wavefront=np.full(places, -1)),
        slots=blank(
            Slots,
            places,
            ready=np.full(places, NEVER),
            next_slot=engines,
            next_clock=np.full(-(-engines // LANES) * LANES, NEVER),
        ),
        groups=blank(
            Groups,
            groups,
            running=np.full(groups, work.group_wavefronts),
            **dict.fromkeys(("upcoming", "retired", "released"), 1),
            **dict.fromkeys(("wavefront_start", "wavefront_end", "wavefront_engine"), total),
        ),
        alu=blank(
            Alu,
            engines,
            free=(engines, device.alu_latency_clocks // device.bundle_clocks),
            busy=counters["alu"],
            bundle_clocks=device.bundle_clocks,
            latency_clocks=device.alu_latency_clocks,
            overhead_clocks=device.clause_overhead_clocks,
        ),
        lds=blank(Lds, engines, busy=counters["lds"]),
        texture=blank(
            Texture,
            engines,
            owner=np.full(engines, -1),
            fetch=np.full(places, -1),
            **dict.fromkeys(("queue", "began", "data"), places),
            l1=make_tags(sets, device.l1_ways, engines),
            l1_clocks=device.l1_clocks,
            busy=counters["texture"],
            **{name: counters[name] for name in ("l1_requests", "l1_misses", "delivered")},
        ),
        stores=blank(StorePath, engines, written=counters["written"]),
        memory=make_memory(device, counters),
        tally=Tally(Floats(done), Floats(np.zeros((SNAPSHOTS + 1, len(done))))),
        log=blank(
            Log,
            1,
            pace=max(-(-work.executions // SNAPSHOTS), 1),  # rounded up: none is after the last row
            rows=(LOGGED_CLAUSES, 6),
            progress=SNAPSHOTS + 1,
        ),
        clause_switch_clocks=float(device.clause_switch_clocks),
    )


def make_memory(device: Device, counters: dict[str, np.ndarray]) -> MemorySystem:
    """Return an empty L2 and idle DRAM."""
    channels = device.memory_channels
    banks = (channels, device.memory_banks)
    bits = address_bits(device)
    sets = device.l2_bytes // device.line_bytes // device.l2_ways
    return blank(
        MemorySystem,
        channels,
        accesses=1,
        l2=make_tags(sets, device.l2_ways),
        address_bits=bits,
        bank_free=banks,
        bank_row=np.full(banks, -1),
        slice_line_clocks=device.line_bytes / device.l2_slice_bytes_clock,
        l2_clocks=device.l2_clocks,
        dram_clocks=device.dram_clocks,
        row_clocks=device.dram_row_clocks,
        line_clocks=line_clocks(device),
        channel_busy=counters["dram"],
        row_waits=counters["dram_rows"],
        **{name: counters[name] for name in ("l2_requests", "l2_misses", "l2_bypasses")},
    )


def make_tags(sets: int, ways: int, copies: int = 1) -> Tags:
    """Return ``copies`` empty caches with this number of sets."""
    bits = max(sets - 1, 0).bit_length()
    places, line, used = empty(max(sets * copies, 1), ways)
    return blank(Tags, len(line), size=sets * places, ways=places, bits=bits, line=line, used=used)


def split_tally(done: np.ndarray, device: Device) -> dict[str, np.ndarray]:
    """Return views of the units' counters in ``Tally.all``, or in rows of copies of it, by name."""
    sizes = _counter_sizes(device)
    ends = np.cumsum([*sizes.values()])
    return dict(zip(sizes, np.split(done, ends[:-1], axis=-1)))


def _counter_sizes(device: Device) -> dict[str, int]:
    """Return how many units have each counter."""
    of_engines = "alu", "texture", "lds", "l1_requests", "l1_misses", "delivered"
    return {
        **dict.fromkeys(of_engines, device.simd_engines),
        **dict.fromkeys(
            ("l2_requests", "l2_misses", "l2_bypasses", "dram", "dram_rows"), device.memory_channels
        ),
        "written": 1,
    }
