"""What if: time the same launch on chips that lack one limit, and account for the chip's peak.

Each limit is removed alone, which shows what it costs now. They are also removed one after another,
from the last to the first, until only the ALU is left: an account from the chip's peak down to what
the kernel reaches. A limit that another one hides costs little alone, and may be a large step of
the account.

Empty wavefront slots (in the partly filled last round, or with too few wavefronts) are assumed to
be filled, with each wavefront as slow as it was. For a launch that is simulated in part, steps of
about one percent may be noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cypresskit.devices import Device
from cypresskit.tables import aligned
from cypresskit.threads import map_in_threads
from cypresskit.timing.report import Report, cached_in_report
from cypresskit.timing.simulate import report_on

NO_CONFLICTS: dict[str, Any] = {  # no two words share a bank
    "texture_banks": 1 << 30,
    "texture_bank": (),
    "lds_banks": 1024,
    "lds_bank": (),
}
FACTOR = 10  # times as fast: from here on, a gain is shown as a factor


@dataclass(frozen=True)
class Limit:
    """A limit of the chip, and what it costs.

    Attributes
    ----------
    name, lesson
        Its name, and the lesson about it.
    gflops
        Gflop/s of the launch with only this limit removed; None if it can't be removed.
    gain
        The share by which that is faster.
    reached
        Gflop/s with this limit and all above it, from the chip's peak down; 0 without flops.
    """

    name: str
    lesson: str
    gflops: float | None
    gain: float | None
    reached: float | None


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The limits of a launch.

    Attributes
    ----------
    report
        The report on the launch. Without flops, Gflop/s are 0, and only ``gain`` is shown.
    steps
        The limits from the chip's peak down to what the launch reaches.
    """

    report: Report
    steps: tuple[Limit, ...]

    def __iter__(self) -> Iterator[Limit]:
        return iter(self.steps)

    def __getitem__(self, name: str) -> Limit:
        """Return the step with this name. Raise ``KeyError`` with all names if there is none."""
        names = [step.name for step in self.steps]
        if name not in names:
            raise KeyError(f"there is no limit {name!r}; there are {', '.join(names)}")
        return self.steps[names.index(name)]

    def __repr__(self) -> str:
        report, rows = self.report, self._rows
        title = f"{report.kernel} on {report.device.name}: what if it lacked one limit"
        columns = "  <" + "  >" * (len(rows[0]) - 1)
        return "\n".join([title, *aligned(columns, rows)])

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        """The header and the rows, without columns that are empty."""
        peak = self.report.peak_gflops if self.report.flops else None
        rows = [("limit", "down to", "without it", "gain", "lesson")]
        for step in (Limit("peak", "", None, None, peak), *self.steps):
            reached, alone = (
                "" if speed is None or not peak else f"{speed:,.0f}"
                for speed in (step.reached, step.gflops)
            )
            gain = "" if step.gain is None else _gain_in_words(step.gain)
            if reached or gain:
                rows.append((step.name, reached, alone, gain, step.lesson))
        return list(zip(*(column for column in zip(*rows) if any(column[1:]))))


@cached_in_report
def what_if(report: Report) -> WhatIf:
    """Time a launch on chips that lack one limit. Takes some seconds the first time.

    Parameters
    ----------
    report
        The report on the launch.

    Returns
    -------
    WhatIf
        A table of the limits.

    Examples
    --------
    >>> ck.what_if(ck.simulate("sgemm_nn", 2048))["bank conflicts"].gain  # doctest: +SKIP
    """
    launch, device = report.launch, report.device
    tail = "08" if report.wavefronts < launch.round_size else "00"
    conflicts = "07" if launch.shape.program.lds else "05"
    near: dict[str, Any] = {"l2_clocks": device.l1_clocks, "dram_clocks": device.l1_clocks}
    changes = [  # the last limits of the account first
        ("bank conflicts", conflicts, NO_CONFLICTS),
        ("rows of memory that open", "08", {"dram_row_clocks": 0}),
        ("memory farther than L1", "04", near),
        ("clocks between clauses", "04", {"clause_switch_clocks": 0, "clause_overhead_clocks": 0}),
    ]
    one = [replace(device, **change) for *_, change in changes]
    several = [device]  # without the first of these limits, the first two, ...
    for *_, change in changes:
        several.append(replace(several[-1], **change))
    boards = dict.fromkeys(b for b in (*one, *several) if b != device)
    launches = [replace(launch, device=board) for board in boards]
    times = {device: report} | dict(zip(boards, map_in_threads(report_on, launches)))

    def alone(name: str, lesson: str, board: Device, reached: float) -> Limit:
        time = times[board]
        return Limit(name, lesson, time.gflops, report.seconds / time.seconds - 1, reached)

    def without(name: str, lesson: str, clocks: float, overhead: float, reached: float) -> Limit:
        seconds = clocks / (device.clock_ghz * 1e9) + overhead
        speed = report.flops / seconds / 1e9
        return Limit(name, lesson, speed, report.seconds / seconds - 1, reached)

    filled = [_gflops(report, _filled(times[board])) for board in several]
    overhead = report.launch_overhead_us * 1e-6
    alu = report.busy["ALU"] * report.clocks
    launching = without("the launch itself", "08", report.clocks, 0.0, report.gflops)
    steps = [
        *([launching] if overhead else []),
        without(
            "empty wavefront slots", tail, _filled(report), overhead, _gflops(report, report.clocks)
        ),
        *(
            alone(name, lesson, board, reached)
            for (name, lesson, _), board, reached in zip(changes, one, filled)
        ),
        Limit("fetches, stores and their units", "05", None, None, filled[-1]),
        Limit("slots without a multiply-add", "03", None, None, _gflops(report, alu)),
    ]
    return WhatIf(report, tuple(reversed(steps)))


def _gain_in_words(gain: float) -> str:
    """Return a gain as the table shows it: "+3.1 %", or "x 180"."""
    return f"{round(100 * gain, 1) + 0:+.1f} %" if gain < FACTOR - 1 else f"x {1 + gain:,.0f}"


def _gflops(report: Report, clocks: float) -> float:
    """Return Gflop/s for a number of clocks, without launch overhead."""
    return report.flops / clocks * report.device.clock_ghz if clocks else 0.0


def _filled(report: Report) -> float:
    """Return the clocks of a launch whose wavefronts fill all slots to the end; no fewer than its
    busiest unit needs.
    """
    _, start, end = report.use.wavefronts.T
    occupied = float((end - start).sum()) / report.launch.round_size
    empty = float(report.use.clocks[-1]) - occupied
    return max(report.clocks - empty, max(report.busy.values()) * report.clocks)
