"""``Report``: how long a simulated launch takes, and why."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from inspect import signature
from typing import Any, TypeVar

from cypresskit.chip.work import KINDS
from cypresskit.devices import Device
from cypresskit.files import result_cache
from cypresskit.il.errors import check_options, shorten
from cypresskit.kernels import Kernel
from cypresskit.tables import quantity, table
from cypresskit.timing.launch_time import LaunchTime
from cypresskit.timing.line_work import LineWork, line_clocks
from cypresskit.timing.timed_launch import TimedLaunch

ROUNDING = 1e-9  # of sums of shares
T = TypeVar("T")


@dataclass(frozen=True)
class Event:
    """A clause of one wavefront on SIMD engine 0.

    Attributes
    ----------
    slot, wavefront
        The wavefront slot, and the number of the wavefront.
    kind
        "ALU", "TEX" or "WRITE".
    start, end
        Clocks. A TEX clause ends when its data arrive.
    served
        When the texture unit is done with a TEX clause, and takes the next; ``end`` of others.
    """

    slot: int
    wavefront: int
    kind: str
    start: float
    end: float
    served: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(LaunchTime):
    """A simulated launch: its time (``LaunchTime``), its speed, and what was launched.

    Attributes
    ----------
    kernel, device
        The kernel's name, and the board.
    flops
        Floating-point operations of the launch; 0 if they aren't known.
    peak_gflops
        The device's peak in the kernel's precision, in 10^9 flop/s.
    wavefronts
        Wavefronts of the launch.
    size
        (m, n, k) of a GEMM kernel; None for another program.
    launch
        What was timed. ``report_on(replace(launch, device=board))`` times it on another board.
    explanations
        What ``line_costs`` and ``what_if`` have found, once they were called.
    """

    kernel: str
    device: Device
    flops: float
    peak_gflops: float
    wavefronts: int
    size: tuple[int, int, int] | None
    launch: TimedLaunch = field(repr=False, compare=False)
    explanations: dict[str, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def seconds(self) -> float:
        """The time in seconds, with the launch overhead of the system, if one was given."""
        return self.clocks / (self.device.clock_ghz * 1e9) + self.launch_overhead_us * 1e-6

    @property
    def launch_overhead_us(self) -> float:
        """The launch overhead of the system, in microseconds; 0 if none was given."""
        return self.launch.system.launch_overhead_us

    @property
    def gflops(self) -> float:
        """The speed in 10^9 flop/s."""
        return self.flops / self.seconds / 1e9

    @property
    def percent(self) -> float:
        """The speed in percent of the device's peak in the kernel's precision."""
        return 100 * self.gflops / self.peak_gflops

    @property
    def speed(self) -> str:
        """The speed in 10^9 flop/s as text, with its error if it has one: "2,073 ± 3 %"."""
        digits = 0 if self.uncertainty and self.gflops >= 100 else 1
        return f"{self.gflops:,.{digits}f}{self.uncertainty}"

    @property
    def uncertainty(self) -> str:
        """What follows a speed or a time that may be off: " ± 3 %", rounded up."""
        percent = math.ceil(100 * self.error - ROUNDING)
        return f" ± {percent} %" if percent else ""

    @property
    def gemm_kernel(self) -> Kernel | None:
        """The GEMM kernel that was launched; None for another program."""
        kernel = self.launch.kernel
        return kernel if isinstance(kernel, Kernel) else None

    @cached_property
    def timeline(self) -> tuple[Event, ...]:
        """The events of SIMD engine 0."""
        rows = self.events.tolist()
        return tuple(Event(int(row[0]), int(row[1]), KINDS[int(row[2])], *row[3:]) for row in rows)

    @cached_property
    def lines(self) -> tuple[LineWork, ...]:
        """The work of each line of the kernel in the whole launch, found on first use. Clocks add
        up to ``busy``.
        """
        find = partial(line_clocks, self.launch, self.simulated == 1)
        found = result_cache.load_or_compute(self.launch.key("lines"), find)
        program = self.launch.shape.program
        clocks = {program.body[at].written_line: work for at, work in found.items()}
        return tuple(
            LineWork(line, program.text_of(line).strip(), clocks[line]) for line in sorted(clocks)
        )

    def __repr__(self) -> str:
        size = "" if self.size is None else " " + " x ".join(map(str, self.size))
        speed = f"{self.speed} Gflop/s, {self.percent:.1f} % of peak, " if self.flops else ""
        first = f"{self.kernel}{size} on {self.device.name}: {speed}bound by {self.bound}"
        return "\n  ".join([first, *self._rows()])

    def _rows(self) -> list[str]:
        """Return the lines below the first."""
        launch = " with launch" if self.launch_overhead_us else ""
        sampled = f" ({100 * self.simulated:.1f} % of their work simulated, the rest extrapolated)"
        megabytes = (f"{level} {count / 1e6:,.1f}" for level, count in self.bytes.items())
        return [
            f"{self.clocks:,.0f}{self.uncertainty} clocks, {self.seconds * 1e3:.3f} ms{launch}",
            f"{quantity(self.wavefronts, 'wavefront')}{sampled if self.simulated < 1 else ''};"
            f" {self.active_wavefronts} per SIMD engine, {quantity(self.registers, 'register')}",
            f"busy {_percents(self.busy)}",
            f"hits {_percents(self.hits)}",
            f"MB   {', '.join(megabytes)}",
        ]

    def _repr_html_(self) -> str:
        first, *more = str(self).splitlines()
        return table(("", ""), [line.strip().split(" ", 1) for line in more], first)


def _percents(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())


def cached_in_report(explain: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function that explains a report: cache what it returns in the report. It raises
    ``TypeError`` for anything else.
    """

    @wraps(explain)
    def explained(report: object, **options: Any) -> T:
        name = explain.__name__
        check_options(name, options, signature(explain).parameters)
        if not isinstance(report, Report):
            raise TypeError(
                f"{name} takes a report: ck.{name}(ck.simulate(...)), not {shorten(report)}"
            )
        if name not in report.explanations:
            report.explanations[name] = explain(report, **options)
        explanation: T = report.explanations[name]
        return explanation

    return explained
