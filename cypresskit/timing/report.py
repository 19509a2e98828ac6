"""``Report``: how long a simulated launch took, and why.

A report keeps the model's law: no launch is faster than its busiest unit, nobody is busy for more
than all of the time, and no kernel computes above the device's peak. One that breaks it can't be
made.
"""

import copyreg
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from cypresskit.devices import Device
from cypresskit.il.errors import check_options, shortened
from cypresskit.kernels import Kernel
from cypresskit.tables import quantity, table
from cypresskit.timing import stored
from cypresskit.timing.account import (
    LineWork,
    Seen,
    lines_as_plain,
    lines_from_plain,
    lines_of_launch,
)
from cypresskit.timing.board import Board
from cypresskit.timing.question import Question
from cypresskit.timing.steady import STEADY
from cypresskit.timing.timed_launch import TimedLaunch
from cypresskit.timing.work import KINDS

BUSY = 0.8  # from this share on a unit is what bounds
ROUNDING = 1e-9  # of sums of shares
T = TypeVar("T")
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
    "L2", "L2 hits" of each slice, "DRAM" and "DRAM rows" of each channel; the last two together
    are at most 1. Hits are NaN where nothing was asked for. ``wavefronts`` has a row (SIMD engine,
    first clock, last clock) for each wavefront, in the order of dispatch.
    """

    clocks: np.ndarray
    shares: Mapping[str, np.ndarray]
    wavefronts: np.ndarray


class LawError(RuntimeError):
    """A report would break the law of the timing model: a fault of the model, not of the kernel."""


@dataclass(frozen=True, kw_only=True)
class ChipReport:
    """How long a launch took on a chip, and what the chip did: what reports on kernels in IL
    (``Report``) and in CUDA have in common.

    Raises ``LawError`` for clocks below the busiest unit's and shares above 1, and ``ValueError``
    for more flops than the device can compute in the time.

    Its fields:

    kernel
        the kernel's name.
    device
        the board.
    clocks
        core clocks, from the first wavefront's start to the last store's end.
    seconds
        the same time in seconds, with the cost of a launch (``Device.launch_overhead_us``).
    flops
        floating-point operations of the launch; 0 if they aren't known.
    peak_gflops
        the device's peak in the kernel's precision, in 10^9 flop/s.
    bound
        the bottleneck.

        - "ALU", "texture", "LDS", "L2" or "DRAM": the units of this kind are busy for 80 % of the
          time or more.
        - "DRAM channel 3": this channel is, while others wait; "DRAM rows of channel 3": it is,
          with the time in which it waits for rows.
        - "DRAM rows": all channels together are, with the time in which they wait for banks to open
          rows.
        - "latency": wavefronts were there, in 60 % of the slots or more, and all of them waited.
        - "too few wavefronts": the launch has less than the chip has slots for.
        - "tail": it has more, but slots stand empty while its last wavefronts end.
    registers
        of a work-item.
    active
        wavefronts that share a SIMD engine.
    wavefronts
        of the launch.
    simulated
        the share of clauses that were simulated; the rest was extended from them.
    busy
        for "ALU", "texture", "LDS", "L2" and "DRAM" the share of the launch in which such a unit
        worked, on average over all units of the kind; for "DRAM rows" the share in which a channel
        waited for a row and sent nothing.
    hits
        "L1", the share of the lines that quads ask it for; "L2", of the lines that L1 asks it for.
        Reads of ``g[]`` bypass both.
    bytes
        "L1", texels delivered to work-items, as ``LaunchCounters.fetch_bytes`` counts them; "L2",
        lines that it gives to L1; "DRAM", lines read from memory, those of ``g[]`` among them;
        "written", lines stored.
    lived
        for how many core clocks wavefronts are on the chip, those of all together: they are worked
        on, or wait (``LineWork.waited``).
    events
        rows of ``timeline``, as in ``engine.Outcome``.
    use
        what each part of the chip did during the simulated time.
    """

    kernel: str
    device: Board
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
    lived: float
    events: np.ndarray = field(repr=False, compare=False)
    use: Use = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        name = f"{self.kernel} on {self.device.name}"
        if not 0 < self.clocks < math.inf:
            raise LawError(f"{name}: {self.clocks} clocks; please report this")
        shares = [*self.busy.items(), *((f"{level} hits", n) for level, n in self.hits.items())]
        shares.append(("simulated", self.simulated))
        shares += [(f"{part} over time", n) for part, n in _extremes(self.use)]
        for part, share in shares:
            if not -ROUNDING <= share <= 1 + ROUNDING:
                raise LawError(f"{name}: {part} is {share:.4f}, a share; please report this")
        if self.gflops > (1 + ROUNDING) * self.peak_gflops:
            raise ValueError(
                f"{name}: {self.flops:,.0f} flops in {self.seconds * 1e3:.3f} ms are"
                f" {self.gflops:.1f} Gflop/s, and its peak is {self.peak_gflops:.1f}:"
                f" {self._why_above_peak}"
            )

    @property
    def _why_above_peak(self) -> str:
        return "please report this"

    @property
    def uncertainty(self) -> str:
        """What has to be said after a figure: " (not steady: +- 5 %)", or nothing if it is."""
        return ""

    @cached_property
    def timeline(self) -> tuple[Event, ...]:
        """The events of SIMD engine 0, made when they are first asked for."""
        rows = self.events.tolist()
        return tuple(Event(int(row[0]), int(row[1]), KINDS[int(row[2])], *row[3:]) for row in rows)

    @property
    def gflops(self) -> float:
        return self.flops / self.seconds / 1e9

    @property
    def percent(self) -> float:
        """Per cent of the device's peak in the kernel's precision."""
        return 100 * self.gflops / self.peak_gflops

    @property
    def running(self) -> float:
        """The share of ``seconds`` in which the chip runs; the rest is what the launch costs."""
        return self.clocks / (1e9 * self.device.clock_ghz) / self.seconds

    def _repr_html_(self) -> str:
        first, *more = str(self).splitlines()
        return table(("", ""), [line.strip().split(" ", 1) for line in more], first)

    def __repr__(self) -> str:
        terms = self.device.terms
        speed = f"{self.gflops:.1f} Gflop/s, {self.percent:.1f} % of peak, " if self.flops else ""
        sampled = ""
        if self.simulated < 1:
            sampled = f" ({100 * self.simulated:.1f} % of their work simulated, the rest extended)"
        return "\n".join(
            [
                f"{self._launch_words} on {self.device.name}: {speed}bound by {self.bound}",
                f"  {self.clocks:,.0f} clocks, {self.seconds * 1e3:.3f} ms with launch"
                f"{self.uncertainty}",
                f"  {quantity(self.wavefronts, terms.wavefront)}{sampled}; {self.active} per"
                f" {terms.engine}, {quantity(self.registers, 'register')}",
                f"  busy {_percents(self.busy)}",
                f"  hits {_percents(self.hits)}",
                "  MB   "
                + ", ".join(f"{level} {count / 1e6:,.1f}" for level, count in self.bytes.items()),
            ]
        )

    @property
    def _launch_words(self) -> str:
        return self.kernel


def _percents(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(ChipReport):
    """A simulated launch of a kernel in IL.

    Its fields beside those of ``ChipReport``:

    device
        the board.
    size
        (m, n, k) of a GEMM kernel, else None.
    error
        the share by which ``clocks`` and ``lived`` of a launch that was simulated in part may be
        off; 0 if all was simulated. Most are off by a tenth of it. See ``steady``.
    question
        what was asked. ``ask(replace(question, device=board))`` asks about another board.
    launch
        what was timed: compiled code, shape, board and layout.
    seen
        what each line waited for and moved, for ``lines``.
    explanations
        what ``line_costs`` and ``what_if`` said of it, once they were asked.
    """

    device: Device
    size: tuple[int, int, int] | None
    error: float
    question: Question = field(repr=False, compare=False)
    launch: TimedLaunch = field(repr=False, compare=False)
    seen: Seen = field(repr=False, compare=False)
    explanations: dict[str, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.error < math.inf:
            name = f"{self.kernel} on {self.device.name}"
            raise LawError(f"{name}: an error of {self.error}; please report this")

    @property
    def _why_above_peak(self) -> str:
        whole = 2.0 * math.prod(self.size) * self.question.count if self.size else 0.0
        if self.flops == whole:
            return "it leaves out some of the products that C is made of"
        return "is flops, or precision, right?"

    @cached_property
    def lines(self) -> tuple[LineWork, ...]:
        """The work of each line of the kernel in the whole launch, found when it is first asked
        for: which clocks of ALU, texture unit, LDS and store path it asks for, which bytes it
        moves, how often it was run, and how long wavefronts stood at it. Their sums are ``busy``
        and ``bytes``; those of the clocks of a sampled launch as nearly as its counts.
        """
        find = partial(lines_of_launch, self.launch, self.seen, self.simulated == 1)
        asked = self.question, self.launch
        return stored.kept("lines", *asked, find, lines_as_plain, lines_from_plain)

    @property
    def launched(self) -> Kernel | None:
        """The GEMM kernel that was launched, or None for another program."""
        kernel = self.question.kernel
        return kernel if isinstance(kernel, Kernel) else None

    @property
    def steady(self) -> bool:
        """Whether ``error`` is at most 10 %. A launch that isn't steady would take more than some
        five seconds to simulate whole, as ``exact=True`` does.
        """
        return self.error <= STEADY

    @property
    def uncertainty(self) -> str:
        """What has to be said after a figure: " (not steady: +- 5 %)", or nothing if it is."""
        return "" if self.steady else f" (not steady: +- {100 * self.error:.0f} %)"

    @property
    def _launch_words(self) -> str:
        size = "" if self.size is None else " " + " x ".join(map(str, self.size))
        return f"{self.kernel}{size}"

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
        row |= {"error": round(self.error, 4), "steady": self.steady}
        row |= {f"busy_{unit}": round(share, 4) for unit, share in self.busy.items()}
        row |= {f"hits_{level}": round(share, 4) for level, share in self.hits.items()}
        row |= {f"bytes_{level}": round(count) for level, count in self.bytes.items()}
        return row


def kept_with_report(explain: Callable[..., T]) -> Callable[..., T]:
    """A function that explains a report; what it says is kept with the report. Raises ``TypeError``
    for anything else.
    """

    @wraps(explain)
    def explained(report: object, **how: Any) -> T:
        check_options(explain.__name__, how, signature(explain).parameters)
        if not isinstance(report, Report):
            if isinstance(report, ChipReport):
                raise TypeError(
                    f"{explain.__name__} is for kernels in IL, and {report.kernel} is one in CUDA:"
                    " `report.listing` has the price of each line, and `ck.today.simulate(...,"
                    " board=...)` times it on another board"
                )
            raise TypeError(
                f"{explain.__name__} takes a report: ck.{explain.__name__}(ck.simulate(...)), not"
                f" {shortened(report)}"
            )
        if explain.__name__ not in report.explanations:
            report.explanations[explain.__name__] = explain(report, **how)
        kept: T = report.explanations[explain.__name__]
        return kept

    return explained


def _extremes(use: Use) -> Iterator[tuple[str, float]]:
    """The least and the largest share of each part, as far as there are any."""
    for part, shares in use.shares.items():
        known = shares[~np.isnan(shares)]
        if known.size:
            yield part, float(known.min())
            yield part, float(known.max())


def bound(
    busy: Mapping[str, float],
    occupied: float,
    rounds: float,
    channels: Sequence[tuple[float, float]] = (),
    wavefront: str = "wavefront",
) -> str:
    """The bottleneck of a launch, in the words of ``ChipReport.bound``.

    Its units are ``busy`` and its wavefront slots ``occupied`` for these shares of the time; its
    wavefronts fill the slots ``rounds`` times. ``channels`` has for each DRAM channel the shares of
    the time in which it sends, and in which it waits for a row.
    """
    unit = max(busy, key=lambda name: busy[name])
    if busy[unit] >= BUSY:
        return unit
    if busy.get("DRAM", 0) + busy.get("DRAM rows", 0) >= BUSY:
        return "DRAM rows"
    if channels:
        busiest = max(range(len(channels)), key=lambda n: math.fsum(channels[n]))
        sending, waiting = channels[busiest]
        if sending >= BUSY:
            return f"DRAM channel {busiest}"
        if sending + waiting >= BUSY:
            return f"DRAM rows of channel {busiest}"
    if occupied >= FULL:
        return "latency"
    return "tail" if rounds > 1 else f"too few {wavefront}s"
