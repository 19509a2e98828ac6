"""The state of a simulated chip, in named tuples of numpy arrays and numbers, which native code
takes as they are.

Clocks are float64 of the core's clock, 0 when the launch begins. Arrays have one entry per SIMD
engine ``e``, per wavefront slot ``[e, s]``, per wavefront ``w``, per workgroup ``g``, per L2 slice
or per memory channel; a number that changes is an array of one.
"""

from typing import Any, NamedTuple, NewType

import numpy as np

from cypresskit.timing.board import Board
from cypresskit.timing.native import LANES
from cypresskit.timing.units.cache import empty
from cypresskit.timing.units.dram import Geometry, geometry, line_clocks
from cypresskit.timing.units.l2 import l2_clocks
from cypresskit.timing.work import Packed

NEVER = 1e300
LOGGED = 4096  # clauses of the timeline that are kept
SNAPSHOTS = 1024  # of progress

#: float64: clocks at which something happens. ``Steady`` moves these on.
Moments = NewType("Moments", np.ndarray)
#: float64: how much was done, or is still to do.
Amounts = NewType("Amounts", np.ndarray)
Numbers = NewType("Numbers", np.ndarray)  # int64


class Clocks(NamedTuple):
    """How long things take on the device, in clocks: its fields ``bundle_clocks`` and so on, and a
    line's time.
    """

    bundle: float
    alu_latency: float
    clause_switch: float
    clause_overhead: float
    l1: float
    l2: float
    dram: float
    dram_row: float
    slice_line: float
    dram_line: float
    in_order: float  # 1: data of fetches come back in the order of asking


class Engines(NamedTuple):
    """SIMD engines: when their units are free, and which wavefront comes next."""

    alu_free: Moments  # [e, turn]: two wavefronts take turns
    lds_free: Moments
    store_free: Moments
    texture_free: Moments
    data_free: Moments  # when the last fetch's data have been delivered
    texture_owner: Numbers  # slot whose clause is in the texture unit, or -1
    queue: Numbers  # [e, n]: slots that wait for the texture unit
    queued: Numbers
    next_slot: Numbers  # the slot that is ready first
    next_clock: Moments


class Slots(NamedTuple):
    """Wavefront slots, all [e, s]: the wavefront there and its place in its program. The last few
    may stay empty.
    """

    wavefront: Numbers  # -1: empty
    ready: Moments  # when it goes on
    segment: Numbers
    turn: Numbers  # of the segment
    clause: Numbers
    came: Moments  # when it came to the clause
    began: Moments  # when the clause began
    served: Moments  # when its unit is done with the clause
    fetch: Numbers  # the clause's next fetch, -1 outside of a TEX clause
    data: Moments  # when the data of its fetches are there
    arrived: Numbers  # 1: at a barrier


class Groups(NamedTuple):
    """Workgroups and wavefronts of the launch. ``Steady`` doesn't move them on: their moments are
    past.
    """

    engine: Numbers  # [g]
    slot: Numbers  # [g]: the first of its slots
    running: Numbers  # [g]: its wavefronts that have not ended
    ended: Moments  # [g]
    upcoming: Numbers  # the next one to be dispatched
    retired: Numbers  # the next one to retire
    released: Moments  # when the last one retired
    wavefront_start: Moments  # [w]
    wavefront_end: Moments  # [w]
    wavefront_engine: Numbers  # [w]


class Tags(NamedTuple):
    """A cache, or one for each SIMD engine: ``size`` places each, ``ways`` in a set; 0 if there is
    none.
    """

    size: int
    ways: int
    bits: int  # logarithm of the number of sets
    line: Numbers
    used: Numbers
    ready: Moments  # when the line is there


class MemorySystem(NamedTuple):
    """Caches, L2 slices, DRAM channels and banks."""

    l1: Tags
    l2: Tags
    lines: Numbers  # asked for so far: the caches' idea of time
    sent_bits: int  # logarithm of the lines that DRAM sends at a time, and L2 keeps
    geometry: Geometry
    spread: Geometry  # the same, with a channel for each L2 slice
    slice_free: Moments
    channel_free: Moments
    pending: Amounts  # clocks of stores that a channel still has to send
    bank_free: Moments  # [channel, bank]
    bank_row: Numbers  # [channel, bank]: the open row


class Tally(NamedTuple):
    """Work by unit, counted when it begins: busy clocks (and lines, where it says so). All are
    views into ``all``, which is copied into a row of ``snapshots`` now and then.
    """

    all: Amounts
    alu: Amounts  # per SIMD engine
    texture: Amounts
    lds: Amounts
    l1_asked: Amounts  # lines, once for each quad
    l1_missed: Amounts
    delivered: Amounts  # bytes of texels, to work-items
    l2_asked: Amounts  # lines of textures, per slice
    l2_missed: Amounts
    l2_passed: Amounts  # lines of global memory, which it doesn't keep
    dram: Amounts  # per channel
    dram_rows: Amounts  # clocks in which a line waits for its row, and nothing is sent
    written: Amounts  # lines, of the chip
    snapshots: Amounts


class Ledger(NamedTuple):
    """What each clause waited for and each access moved, for ``account``. All are views into
    ``all``.
    """

    all: Amounts
    waited: Amounts  # per clause: clocks for which wavefronts stood at it, and weren't worked on
    read: Amounts  # per stream: lines from DRAM
    written: Amounts  # per stream: lines to DRAM


class Log(NamedTuple):
    """The first clauses of engine 0, and the clocks at which ``pace``, 2 ``pace``, ... clauses were
    over. They are past, too.
    """

    rows: Moments  # slot, wavefront, kind, start, end, served
    row_count: Numbers
    pace: int
    over: Numbers  # clauses
    progress: Moments


class Chip(NamedTuple):
    """Everything: the work, and the state of all units."""

    work: Packed
    clocks: Clocks
    engines: Engines
    slots: Slots
    groups: Groups
    memory: MemorySystem
    tally: Tally
    log: Log
    ledger: Ledger


def blank(kind: type, shape, **given) -> Any:
    """A tuple of zeros: arrays of ``shape`` in all fields but those that are given."""
    dtypes = {Moments: np.float64, Amounts: np.float64, Numbers: np.int64}
    values = {}
    for name, field in kind.__annotations__.items():
        value = given[name] if name in given else np.zeros(shape)
        values[name] = np.asarray(value, dtypes[field]) if field in dtypes else value
    return kind(**values)


def make_chip(work: Packed, device: Board, slots: int) -> Chip:
    """A chip at clock 0 with room for ``slots`` wavefronts on each SIMD engine; nothing is
    dispatched yet.
    """
    e = device.simd_engines
    total = len(work.path)
    places = (device.simd_engines, -(-slots // LANES) * LANES)
    groups = total // work.group
    turns = device.alu_latency_clocks // device.bundle_clocks
    clocks = [float(getattr(device, f"{name}_clocks")) for name in Clocks._fields[:-3]]
    texture = {"texture_owner": np.full(e, -1), "queue": np.zeros(places, np.int64)}
    of_wavefronts = {"wavefront_start": np.zeros(total), "wavefront_end": np.zeros(total)}
    done = np.zeros(6 * e + 3 * device.l2_slices + 2 * device.memory_channels + 1)
    clauses = int(work.clauses_run[work.path].sum())
    pace = max(-(-clauses // SNAPSHOTS), 1)  # rounded up: no clause is past the last row
    times = {"rows": np.zeros((LOGGED, 6)), "progress": np.zeros(SNAPSHOTS + 1)}
    counters = {"upcoming": np.full(1, 0), "retired": np.full(1, 0), "released": np.zeros(1)}
    return Chip(
        work,
        Clocks._make(
            [*clocks, l2_clocks(1, device), line_clocks(device), float(device.fetches_in_order)]
        ),
        blank(
            Engines,
            e,
            alu_free=np.zeros((e, turns)),
            next_clock=np.full(-(-e // LANES) * LANES, NEVER),
            **texture,
        ),
        blank(
            Slots,
            places,
            wavefront=np.full(places, -1),
            ready=np.full(places, NEVER),
            fetch=np.full(places, -1),
        ),
        blank(
            Groups,
            groups,
            running=np.full(groups, work.group),
            wavefront_engine=np.full(total, 0),
            **counters,
            **of_wavefronts,
        ),
        make_memory(device),
        blank(
            Tally,
            1,
            all=done,
            snapshots=np.zeros((SNAPSHOTS + 1, len(done))),
            **split_tally(done, device),
        ),
        blank(Log, 1, pace=pace, **times),
        make_ledger(len(work.clauses), len(work.streams)),
    )


def make_ledger(clauses: int, streams: int) -> Ledger:
    """An empty ledger."""
    entries = np.zeros(clauses + 2 * streams)
    ends = np.cumsum([clauses, streams])
    return Ledger._make([entries, *np.split(entries, ends)])


def make_memory(device: Board) -> MemorySystem:
    """Empty caches and idle DRAM."""
    channels = device.memory_channels
    slices = device.l2_slices
    memory_geometry = geometry(device)
    banks = (channels, device.memory_banks)
    return blank(
        MemorySystem,
        channels,
        l1=make_tags(
            device.l1_bytes // device.line_bytes // device.l1_ways,
            device.l1_ways,
            device.simd_engines,
        ),
        l2=make_tags(
            device.l2_bytes // (device.line_bytes * device.dram_lines) // device.l2_ways,
            device.l2_ways,
        ),
        sent_bits=device.dram_lines.bit_length() - 1,
        lines=np.full(1, 0),
        geometry=memory_geometry,
        spread=memory_geometry._replace(
            channel_bits=max((slices - 1).bit_length(), memory_geometry.channel_bits)
        ),
        slice_free=np.zeros(slices),
        bank_free=np.zeros(banks),
        bank_row=np.full(banks, -1),
    )


def make_tags(sets: int, ways: int, copies: int = 1) -> Tags:
    """``copies`` empty caches of so many sets."""
    bits = max(sets - 1, 0).bit_length()
    places, line, used = empty(max(sets * copies, 1), ways)
    return blank(Tags, len(line), size=sets * places, ways=places, bits=bits, line=line, used=used)


def split_tally(done: np.ndarray, device: Board) -> dict[str, np.ndarray]:
    """Views of the parts of ``Tally.all``, or of rows of copies of it, by name: "alu", "texture",
    ...; ``make_chip`` relies on their being views.
    """
    e, slices = device.simd_engines, device.l2_slices
    names = (
        "alu",
        "texture",
        "lds",
        "l1_asked",
        "l1_missed",
        "delivered",
        "l2_asked",
        "l2_missed",
        "l2_passed",
        "dram",
        "dram_rows",
        "written",
    )
    channels = device.memory_channels
    ends = np.cumsum([*[e] * 6, *[slices] * 3, channels, channels])
    return dict(zip(names, np.split(done, ends, axis=-1)))
