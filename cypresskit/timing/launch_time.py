"""``LaunchTime``: how long a launch takes, and what the units of the chip do meanwhile.

A launch's time doesn't depend on the name of its kernel, nor on its number of flops. A ``Report``
adds these. The functions here derive a time's figures from the counters of a simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cypresskit.chip.engine import Outcome
from cypresskit.chip.units.l2 import l2_clocks
from cypresskit.devices import Device

MAX_INTERVALS = 64  # of ``Use``
MAX_MOMENTS = 256  # in which it is asked which channel is the busiest
MIN_INTERVAL_CLOCKS = 500
CONVERGED_ERROR = 0.03  # the largest relative error of a time that counts as converged
BUSY_SHARE = 0.8  # a unit that is busy for at least this share of the time is the bottleneck
ROWS_SHARE = 1 / 3  # from here on, DRAM that is busy is bound by its rows
OCCUPIED_SHARE = 0.6  # below this share of occupied wavefront slots, there are too few wavefronts


@dataclass(frozen=True, eq=False)
class Use:
    """How busy each part of the chip is, in equal intervals.

    Attributes
    ----------
    clocks
        The bounds of the n intervals, (n + 1,).
    shares
        Shares of the time, arrays of shape (n, units): "ALU" and "texture" of each SIMD engine,
        "L2" of each slice, and "DRAM" of each channel.
    wavefronts
        A row (SIMD engine, first clock, last clock) for each wavefront, in the order of dispatch.
    """

    clocks: np.ndarray
    shares: Mapping[str, np.ndarray]
    wavefronts: np.ndarray


@dataclass(frozen=True, kw_only=True)
class LaunchTime:
    """How long a launch takes, and what the chip does meanwhile.

    Attributes
    ----------
    clocks
        Core clocks from the first wavefront's start to the last store's end.
    limit
        The bottleneck: a key of ``busy``, "DRAM channel", "latency", "too few wavefronts" or
        "tail".
    bound
        The same, with the channel.

        - "ALU", "texture", "LDS", "L2" or "DRAM": these units are busy at least 80 % of the time.
        - "DRAM rows": all channels are busy, if waiting for rows counts as such, and they wait for
          at least a third of that time. "DRAM": they wait for less.
        - "DRAM channel 3": this channel is busy, while others wait. "DRAM channels in turn": at any
          moment one of them is, but not always the same. "DRAM rows of ...": as above.
        - "latency": no unit is as busy, though at least 60 % of the wavefront slots were occupied.
        - "too few wavefronts": the launch has fewer wavefronts than the chip has slots.
        - "tail": it has as many or more, but slots are empty while its last wavefronts end.
    busy
        For "ALU", "texture", "LDS", "L2" and "DRAM" the share of the time in which such a unit
        works, averaged over all units of the kind. For "DRAM rows" the share in which a channel
        waits for a row and sends nothing.
    events
        Rows of ``Report.timeline``, as in ``engine.Outcome``.
    simulated
        The share of wavefronts that were simulated. The rest is extrapolated.
    hits
        "L1": the share of hits among the lines that quads request from it. "L2": among the lines
        that L1 requests. Reads of ``g[]`` bypass both.
    bytes
        "L1": texels delivered to work-items, as in ``LaunchCounters.fetch_bytes``. "L2": lines that
        it sends to L1. "DRAM": lines read from memory, for ``g[]`` as well. "written": lines that
        are stored.
    use
        What each part of the chip did during the simulated time.
    products
        The most products of two numbers that it makes (``line_work.products_made``).
    error
        The share by which ``clocks`` may be off; 0 if all was simulated
        (``sampling.stated_error``).
    registers
        Registers per work-item.
    active_wavefronts
        Wavefronts that share a SIMD engine.
    """

    clocks: float
    limit: str
    bound: str
    busy: Mapping[str, float]
    events: np.ndarray = field(repr=False, compare=False)
    simulated: float
    hits: Mapping[str, float]
    bytes: Mapping[str, float]
    use: Use = field(repr=False, compare=False)
    products: float = field(repr=False)
    error: float
    registers: int
    active_wavefronts: int


def busy_shares(counts: Mapping[str, float], clocks: float, device: Device) -> dict[str, float]:
    """Return ``LaunchTime.busy``, given the sums of counters."""
    engines = clocks * device.simd_engines
    busy = {unit: counts[unit.lower()] / engines for unit in ("ALU", "texture", "LDS")}
    channel_clocks = clocks * device.memory_channels
    busy["L2"] = l2_clocks(counts, device) / channel_clocks
    busy["DRAM"] = counts["dram"] / channel_clocks
    busy["DRAM rows"] = counts["dram_rows"] / channel_clocks
    return busy


def bytes_moved(counts: Mapping[str, float], device: Device) -> dict[str, float]:
    """Return ``LaunchTime.bytes``, given the sums of counters."""
    read = counts["l2_misses"] + counts["l2_bypasses"]
    lines = {"L2": counts["l2_requests"], "DRAM": read, "written": counts["written"]}
    return {"L1": counts["delivered"]} | {
        level: count * device.line_bytes for level, count in lines.items()
    }


def hit_rates(counts: Mapping[str, float]) -> dict[str, float]:
    """Return ``LaunchTime.hits``; 0 for a cache from which nothing was requested."""
    rates = {}
    for level in ("l1", "l2"):
        requests = counts[f"{level}_requests"]
        misses = counts[f"{level}_misses"] / requests if requests else 1.0
        rates[level.upper()] = max(1 - misses, 0.0)
    return rates


def find_limit(
    busy: Mapping[str, float],
    occupied: float,
    rounds: float,
    channels: np.ndarray | None = None,
) -> tuple[str, str]:
    """Return the bottleneck of a launch, as ``LaunchTime.limit`` and ``bound``.

    Parameters
    ----------
    busy
        ``LaunchTime.busy``.
    occupied
        The share of occupied wavefront slots, averaged over the time.
    rounds
        How many times the wavefronts fill the slots.
    channels
        The shares of an interval in which a DRAM channel sends, and waits for a row: of shape
        (2, intervals, channels).
    """
    unit = max(busy, key=lambda name: busy[name])
    if busy[unit] >= BUSY_SHARE:
        return unit, unit
    sending, waiting = busy.get("DRAM", 0), busy.get("DRAM rows", 0)
    if sending + waiting >= BUSY_SHARE:
        limit = _dram(sending, waiting)
        return limit, limit
    if channels is not None:
        work = channels.sum(axis=0)
        busiest = int(work.mean(axis=0).argmax())
        in_turn = work.argmax(axis=1)
        for name, number in ((f"channel {busiest}", busiest), ("channels in turn", in_turn)):
            sending, waiting = channels[:, np.arange(len(work)), number].mean(axis=1)
            if sending + waiting >= BUSY_SHARE:
                if _dram(sending, waiting) == "DRAM":
                    return "DRAM channel", f"DRAM {name}"
                return "DRAM rows", f"DRAM rows of {name}"
    limit = "tail" if rounds >= 1 else "too few wavefronts"
    if occupied >= OCCUPIED_SHARE:
        limit = "latency"
    return limit, limit


def _dram(sending: float, waiting: float) -> str:
    """Return what DRAM that is busy is bound by: rows that open, or the bytes themselves. Without
    rows, its time is what it sends. Without bytes it is more than what it waits: while one bank
    sends, the rows of others open.
    """
    return "DRAM rows" if waiting >= ROWS_SHARE * (sending + waiting) else "DRAM"


def _in_intervals(outcome: Outcome, most: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the bounds of at most so many equal intervals, and the counters of each by name."""
    noted = np.append(True, outcome.progress[1:] > 0)
    # A clause's start is noted when it is over, so clocks may decrease.
    clock = np.maximum.accumulate([*outcome.progress[noted], outcome.end_clock])
    at = np.append(np.flatnonzero(noted), len(noted))
    count = int(np.clip(outcome.end_clock / MIN_INTERVAL_CLOCKS, 1, most))
    bounds = np.linspace(0, outcome.end_clock, count + 1)
    did = {
        name: np.diff([np.interp(bounds, clock, part) for part in done[at].T]).T
        for name, done in outcome.done.items()
    }
    return bounds, did


def use_of_channels(outcome: Outcome) -> np.ndarray:
    """Return the shares of an interval in which a DRAM channel sends, and waits for a row: of shape
    (2, intervals, channels).
    """
    bounds, did = _in_intervals(outcome, MAX_MOMENTS)
    return _served(np.array([did["dram"], did["dram_rows"]]) / bounds[1])


def use_of(outcome: Outcome, device: Device) -> Use:
    """Return how busy each part of the chip was in a simulation, interval by interval."""
    bounds, did = _in_intervals(outcome, MAX_INTERVALS)
    works = {unit: [did[unit.lower()]] for unit in ("ALU", "texture")}
    works["L2"] = [l2_clocks(did, device)]
    works["DRAM"] = [did["dram"], did["dram_rows"]]  # a channel either sends or waits for a row
    shares = {name: _served(np.array(work) / bounds[1])[0] for name, work in works.items()}
    wavefronts = np.stack([outcome.engine, outcome.start, outcome.end], axis=1)
    return Use(bounds, shares, wavefronts)


def _served(begun: np.ndarray) -> np.ndarray:
    """Return the work done in each interval, given what begins there: (kinds of work, intervals,
    units). A unit does at most 1 in an interval, of all kinds together; the rest is left for the
    next, of each kind in proportion.
    """
    served = np.empty_like(begun)
    left = np.zeros_like(begun[:, 0])
    for n in range(begun.shape[1]):
        waiting = left + begun[:, n]
        served[:, n] = waiting / np.maximum(waiting.sum(axis=0), 1)
        left = waiting - served[:, n]
    return served
