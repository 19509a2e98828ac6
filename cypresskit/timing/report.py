"""``Report``: how long a simulated launch took, and why.

Busy shares are of the whole launch: clocks in which a unit worked over all clocks of all such
units. ``bound`` is the busiest unit if it is busy most of the time, or "DRAM rows" if the channels
are, with the time in which they wait for banks to open rows; else, if the engines' wavefront slots
stand empty too long, "too few wavefronts", or "tail" where there is more than a round of them; or
"latency": they were there, and all of them waited.
"""

import copyreg
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from cypresskit.devices import Device, open_boards
from cypresskit.tables import quantity, table
from cypresskit.timing.work import KINDS

BUSY = 0.8  # from this share on a unit is what bounds
FULL = 0.6  # below this share of occupied wavefront slots too few are there


def read_only(values: dict[str, Any]) -> MappingProxyType[str, Any]:
    """A dict that nobody can change, which can be copied and sent to another process all the
    same.
    """
    return MappingProxyType(values)


copyreg.pickle(MappingProxyType, lambda mapping: (read_only, (dict(mapping),)))


@dataclass(frozen=True)
class Event:
    """A clause of one wavefront on SIMD engine 0: its ``slot``, ``kind`` ("ALU", "TEX", "WRITE"),
    clocks. A TEX clause ends when its data are there; at ``served`` the texture unit is done with
    it and takes the next. Of other clauses that is the end.
    """

    slot: int
    wavefront: int
    kind: str
    start: float
    end: float
    served: float


@dataclass(frozen=True, eq=False)
class Use:
    """How busy each part of the chip was, in equal intervals bounded by ``clocks`` (n + 1,).
    ``shares`` of 1 are arrays (n, parts): "ALU", "texture", "LDS", "L1 hits" of each SIMD engine,
    "L2", "L2 hits" of each slice, "DRAM" and "DRAM rows" of each channel. Work counts from where it
    begins. Hits are NaN where nothing was asked for. ``wavefronts`` has a row (SIMD engine, first
    clock, last clock) for each wavefront, in the order of dispatch.
    """

    clocks: np.ndarray
    shares: Mapping[str, np.ndarray]
    wavefronts: np.ndarray


@dataclass(frozen=True)
class Report:
    """A simulated launch.

    ``clocks`` of the core, ``seconds`` with the launch cost, ``gflops`` in 10^9 flop/s (0 if
    ``flops`` is unknown), ``peak_gflops`` of the kernel's precision. ``busy``: shares of "ALU",
    "texture", "LDS", "L2", "DRAM", and "DRAM rows", in which a channel waits for a row and sends
    nothing. ``hits``: shares for "L1", of the lines that quads ask it for, and "L2". ``bytes``:
    "L1" delivered to work-items, "L2" to L1, "DRAM" read, "written". ``active`` wavefronts share a
    SIMD engine. ``simulated`` is the share of clauses that were simulated; the rest was extended
    from them. ``use`` tells what each part did during the simulated time, ``timeline`` the first
    few thousand clauses of SIMD engine 0, or those before the first turns that aren't simulated.
    """

    kernel: str
    device: Device
    size: tuple[int, int, int] | None
    clocks: float
    seconds: float
    flops: float
    peak_gflops: float
    bound: str
    registers: int
    active: int
    wavefronts: int
    simulated: float
    busy: Mapping[str, float]
    hits: Mapping[str, float]
    bytes: Mapping[str, float]
    events: np.ndarray | None = field(
        default=None, repr=False, compare=False
    )  # rows of the timeline, as in an Outcome
    use: Use | None = field(default=None, repr=False, compare=False)
    again: Callable[..., "Report"] | None = field(
        default=None, repr=False, compare=False
    )  # the same on another device

    @cached_property
    def timeline(self) -> tuple[Event, ...]:
        """The events of SIMD engine 0, made when they are first asked for."""
        rows = [] if self.events is None else self.events.tolist()
        return tuple(Event(int(row[0]), int(row[1]), KINDS[int(row[2])], *row[3:]) for row in rows)

    @cached_property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest Gflop/s within the calibrations: ``clause_clocks`` and
        ``dram_clocks`` together at either end of what their evidence leaves open
        (``devices.open_boards``). Simulated when it is first asked for, which takes twice as long
        as the report.
        """
        assert self.again is not None
        low, high = sorted(self.again(device=board).gflops for board in open_boards(self.device))
        return min(low, self.gflops), max(high, self.gflops)

    @property
    def gflops(self) -> float:
        return self.flops / self.seconds / 1e9

    @property
    def percent(self) -> float:
        """Per cent of the device's peak in the kernel's precision."""
        return 100 * self.gflops / self.peak_gflops

    def row(self) -> dict[str, float | str | int]:
        """The numbers as one flat row of a table."""
        m, n, k = self.size or (0, 0, 0)
        row: dict[str, float | str | int] = {
            "kernel": self.kernel,
            "device": self.device.name,
            "m": m,
            "n": n,
            "k": k,
        }
        row |= {
            "gflops": round(self.gflops, 2),
            "percent": round(self.percent, 2),
            "clocks": round(self.clocks),
        }
        row |= {
            "seconds": self.seconds,
            "bound": self.bound,
            "registers": self.registers,
            "active": self.active,
        }
        row |= {"wavefronts": self.wavefronts, "simulated": round(self.simulated, 4)}
        row |= {f"busy_{unit}": round(share, 4) for unit, share in self.busy.items()}
        row |= {f"hits_{level}": round(share, 4) for level, share in self.hits.items()}
        row |= {f"bytes_{level}": round(count) for level, count in self.bytes.items()}
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in row.items()
        }

    def _repr_html_(self) -> str:
        first, *more = str(self).splitlines()
        return table(("", ""), [line.strip().split(" ", 1) for line in more], first)

    def __repr__(self) -> str:
        shape = "" if self.size is None else " x ".join(map(str, self.size)) + " "
        speed = f"{self.gflops:.1f} Gflop/s, {self.percent:.1f} % of peak, " if self.flops else ""
        sampled = (
            ""
            if self.simulated == 1
            else f" ({100 * self.simulated:.1f} % of their work simulated, the rest extended)"
        )
        return "\n".join(
            [
                f"{self.kernel} {shape}on {self.device.name}: {speed}bound by {self.bound}",
                f"  {self.clocks:,.0f} clocks, {self.seconds * 1e3:.3f} ms with launch",
                f"  {quantity(self.wavefronts, 'wavefront')}{sampled}; {self.active} per SIMD"
                " engine, " + quantity(self.registers, "register"),
                "  busy "
                + ", ".join(f"{unit} {100 * share:.1f} %" for unit, share in self.busy.items()),
                "  hits "
                + ", ".join(f"{level} {100 * share:.1f} %" for level, share in self.hits.items()),
                "  MB   "
                + ", ".join(f"{level} {count / 1e6:,.1f}" for level, count in self.bytes.items()),
            ]
        )


def bound(busy: dict[str, float], occupied: float, rounds: float) -> str:
    """The bottleneck of a launch: its units are ``busy`` and its wavefront slots ``occupied`` for
    these shares of the time, and its wavefronts fill the slots so many times (``rounds``).
    """
    unit = max(busy, key=lambda name: busy[name])
    if busy[unit] >= BUSY:
        return unit
    if busy.get("DRAM", 0) + busy.get("DRAM rows", 0) >= BUSY:
        return "DRAM rows"
    if occupied >= FULL:
        return "latency"
    return "tail" if rounds > 1 else "too few wavefronts"
