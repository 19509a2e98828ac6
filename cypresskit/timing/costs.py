"""Estimate what each line of a kernel costs: how much sooner the launch would end without it.

A line's *work* is the clocks that it requests from its units. Its *cost* is the share of the launch
that is saved if its bundles or its access take no time and all else is unchanged, the code included
(``ablation``). A line with much work costs little where it waits for nothing and nothing waits for
it.

Costs are measured on a steady part of the launch: as many wavefronts as the chip holds, with three
numbers of iterations of their loops, simulated whole. A straight line through the three
extrapolates the saved clocks to all iterations. The range of the three and of the line's end shows
whether a cost can be trusted. Loops that are too short to be shortened are simulated once, without
a range. Bundles of a clause are equal, and accesses that request equally much are taken to be
equal, so a dozen ablations suffice for a kernel.

Not included: the partly filled end of a launch, and its overhead. Costs don't add up: of two lines
that hide each other, neither costs anything. They are modeled, and depend on what the calibrations
leave open.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from math import fsum
from typing import Any

import numpy as np

from cypresskit.chip.engine import run
from cypresskit.chip.work import WavefrontPath, pack
from cypresskit.files import result_cache
from cypresskit.tables import aligned, quantity
from cypresskit.threads import Interrupted, map_in_threads, never
from cypresskit.timing.ablation import (
    ALL,
    Ablation,
    AblationTarget,
    ablate,
    ablated_clocks,
    ablation_targets,
    shorten,
)
from cypresskit.timing.line_work import UNITS, LineWork
from cypresskit.timing.report import Report, cached_in_report
from cypresskit.timing.sampling import effort
from cypresskit.timing.timed_launch import TimedLaunch

MAX_ABLATIONS = 12
MAX_EFFORT = 2.5e6  # cache lines and clauses of the largest of three sizes
MAX_ITERATIONS = 200  # of the longest loop in it
SIZES = (0.4, 0.7, 1.0)
MIN_RANGE = 0.003  # of a launch: a narrower range is ignored
MIN_SHOWN = 0.0005  # of a launch: the least cost or work that has a row in the table


@dataclass(frozen=True)
class LineCost:
    """What one line costs. As text: "13.2 %", or "13.2 % (9.8 to 14.0)" if it is uncertain.

    Attributes
    ----------
    cost
        The share of the launch that would be saved; below 0 if others would wait longer.
    low, high
        The least and the most that was measured; the cost itself if it was measured once.
    work
        Its work in the launch.
    share
        The share of the launch in which ``unit`` works for it.
    unit
        The unit that it needs most: "ALU", "texture", "LDS" or "stores".
    measured_with
        The lines whose accesses had the same ablation, including this one; empty without an access.
    """

    cost: float
    low: float
    high: float
    work: LineWork
    share: float
    unit: str
    measured_with: tuple[int, ...] = ()

    @property
    def range_text(self) -> str:
        """Its range if that is so wide that the cost says little, or nothing."""
        if self.high - self.low <= max(MIN_RANGE, abs(self.cost) / 2):
            return ""
        return f"({100 * self.low:.1f} to {100 * self.high:.1f})"

    def __str__(self) -> str:
        return f"{percent(self.cost)} {self.range_text}".rstrip()

    def is_close_to(self, other: "LineCost") -> bool:
        """Return whether two costs differ by less than their ranges, or than matters."""
        unsure = max(MIN_RANGE, self.high - self.low, other.high - other.low)
        return abs(self.cost - other.cost) <= unsure

    @property
    def line(self) -> int:
        return self.work.line

    @property
    def text(self) -> str:
        return self.work.text

    @property
    def opcode(self) -> str:
        """The first word of its source, without modifiers."""
        return self.text.split(maxsplit=1)[0].split("_")[0] if self.text else ""


@dataclass(frozen=True, repr=False)
class LineCosts:
    """The costs of all lines of a kernel.

    Attributes
    ----------
    lines
        The lines, in the order of the source.
    wavefronts
        The number of wavefronts that were simulated.
    iterations
        The numbers of iterations of the longest loop that were simulated: three, or one if no loop
        is long enough to be shortened.
    report
        The report on the launch.
    """

    lines: tuple[LineCost, ...]
    wavefronts: int
    iterations: tuple[int, ...]
    report: Report

    @cached_property
    def most_expensive(self) -> LineCost:
        """The line with the highest cost; of equals, the first."""
        return max(self.lines, key=lambda line: line.cost)

    def __repr__(self) -> str:
        rows = [("lines", "work each", "", "cost each", "", ""), *self._rows()]
        notes = (f"  {note}" for note in self._notes())
        report, first = self.report, self.most_expensive
        size = "" if report.size is None else " x ".join(map(str, report.size)) + " "
        title = (
            f"{report.kernel} {size}on {report.device.name}: line {first.line} costs the most,"
            f" {first} of the launch"
        )
        return "\n".join([title, *aligned("  >  > <  > <  <", rows), *notes])

    def _shown(self) -> list[LineCost]:
        return [line for line in self.lines if max(line.share, abs(line.cost)) >= MIN_SHOWN]

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of a table, one for consecutive lines of a kind."""
        for _, lines in groupby(
            self._shown(), lambda line: (line.opcode, line.unit, line.measured_with)
        ):
            yield _row(list(lines))

    def _notes(self) -> Iterator[str]:
        hidden = len(self.lines) - len(self._shown())
        if hidden:
            yield f"{quantity(hidden, 'other line')}: below {100 * MIN_SHOWN:.2g} % each"
        counts = ", ".join(map(str, self.iterations))
        loops = f", {counts} iterations of the longest loop" if max(self.iterations) > 1 else ""
        once = "; measured once, so no range is known" if len(self.iterations) == 1 else ""
        amount = quantity(self.wavefronts, "wavefront")
        yield f"modeled with {amount}{loops}{once}; costs don't add up"


@cached_in_report
def line_costs(report: Report, *, unless: Callable[[], bool] = never) -> LineCosts:
    """Estimate what each line of a kernel costs. Takes some seconds the first time.

    Parameters
    ----------
    report
        The report on the launch.
    unless
        Is called now and then; if it returns True, ``Interrupted`` is raised.

    Returns
    -------
    LineCosts
        A table of the lines, each with its work and the share of the launch that would be saved if
        it took no time.

    Examples
    --------
    >>> ck.line_costs(ck.simulate("sgemm_nn", 2048)).most_expensive  # doctest: +SKIP
    """
    measure = partial(_measure, report, unless)
    key = report.launch.key("costs")
    saved, wavefronts, iterations = result_cache.load_or_compute(key, measure)
    costs = tuple(  # with this source's text and lines
        replace(cost, work=work, measured_with=tuple(report.lines[n].line for n in places))
        for (cost, places), work in zip(saved, report.lines, strict=True)
    )
    return LineCosts(costs, wavefronts, iterations, report)


def _measure(
    report: Report, unless: Callable[[], bool]
) -> tuple[list[tuple[LineCost, list[int]]], int, tuple[int, ...]]:
    """Return ``LineCosts.lines``, each with the places there of what it was measured with; its
    ``wavefronts`` and ``iterations``.
    """
    launch = report.launch
    whole = launch.trace(min(launch.round_size, launch.shape.wavefronts))
    shares, sizes = _sizes(whole)
    sets = _target_sets(ablation_targets(launch.code, whole, launch.device))
    ablations = [Ablation(), *(ablation for _, ablation in sets)]
    clocks, *ablated_ones = _simulated(launch, sizes, ablations, unless)
    end = _end_of_whole(shares, clocks)
    saved: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(len(sizes) + 1))
    measured_with: dict[int, list[int]] = {}
    place = {work.line: n for n, work in enumerate(report.lines)}
    for (targets, ablation), others in zip(sets, ablated_ones):
        less = [ablated_clocks(paths, ablation, launch.device) for paths in (*sizes, whole)]
        gains = np.append(clocks - others, end - _end_of_whole(shares, others))
        rate = np.divide(gains, less, out=np.zeros(len(less)), where=np.array(less) > 0)
        for target in targets:
            for line, amount in target.clocks.items():
                saved[line] += rate * amount
        if len({target.kind for target in targets}) == 1:
            lines = [line for target in targets if target.accesses for line in target.clocks]
            measured_with |= dict.fromkeys(lines, sorted(place[line] for line in lines))
    costs = [
        (_line_cost(work, report, saved[work.line] / end), measured_with.get(work.line, []))
        for work in report.lines
    ]
    iterations = tuple(_longest(paths) for paths in sizes)
    return costs, sum(len(path.wavefronts) for path in whole), iterations


def _sizes(whole: list[WavefrontPath]) -> tuple[list[float], list[list[WavefrontPath]]]:
    """Return three shares of the launch's iterations and the paths with these, the fewest first.
    Only different ones are returned, if loops are too short.
    """
    largest = min(MAX_EFFORT / effort(whole), MAX_ITERATIONS / _longest(whole), 1.0)
    sizes = {}
    for size in SIZES:
        paths = shorten(whole, largest * size)
        iterations = tuple(count for path in paths for _, count in path.segments)
        sizes[iterations] = largest * size, paths
    shares = [share for share, _ in sizes.values()]
    return (shares if len(shares) > 1 else [1.0]), [paths for _, paths in sizes.values()]


def _longest(paths: list[WavefrontPath]) -> int:
    """Return the iterations of the longest loop."""
    return max(iterations for path in paths for _, iterations in path.segments)


def _target_sets(targets: list[AblationTarget]) -> list[tuple[list[AblationTarget], Ablation]]:
    """Divide targets into at most ``MAX_ABLATIONS`` sets by kind, those with the most clocks first.
    The last set has all that are left over. Return each with its ablation, of one or of all.
    """
    by_kind: dict[tuple[Any, ...], list[AblationTarget]] = defaultdict(list)
    for target in targets:
        by_kind[target.kind].append(target)
    ordered = sorted(by_kind.values(), key=lambda alike: -fsum(target.total for target in alike))
    sets = [(alike, alike[len(alike) // 2].ablation) for alike in ordered]
    if len(sets) <= MAX_ABLATIONS:
        return sets
    left_over = [target for alike in ordered[MAX_ABLATIONS - 1 :] for target in alike]
    bundles = {part: ALL for target in left_over for part in target.ablation.bundles}
    accesses = frozenset(at for target in left_over for at in target.accesses)
    return [*sets[: MAX_ABLATIONS - 1], (left_over, Ablation(bundles, accesses))]


def _simulated(
    launch: TimedLaunch,
    sizes: Sequence[list[WavefrontPath]],
    ablations: Sequence[Ablation],
    unless: Callable[[], bool],
) -> np.ndarray:
    """Return the clocks of each ablation (rows) with each size of the launch."""

    def clocks(job: tuple[Ablation, list[WavefrontPath]]) -> float:
        if unless():
            raise Interrupted
        ablation, paths = job
        work = pack(ablate(paths, ablation), launch.shape.group_wavefronts)
        return run(work, launch.device, launch.active_wavefronts).end_clock

    jobs = [(ablation, paths) for ablation in ablations for paths in sizes]
    return np.array(map_in_threads(clocks, jobs)).reshape(len(ablations), len(sizes))


def _end_of_whole(shares: Sequence[float], clocks: np.ndarray) -> float:
    """Extrapolate linearly the clocks of all iterations from those of shares of them."""
    if shares[-1] == 1.0:
        return float(clocks[-1])
    return float(np.polyval(np.polyfit(shares, clocks, 1), 1.0))


def _line_cost(work: LineWork, report: Report, saved: np.ndarray) -> LineCost:
    """Return the cost of a line that saves these shares of the launch."""
    unit = max(UNITS, key=lambda unit: work.clocks[unit])
    share = work.clocks[unit] / (report.clocks * report.device.simd_engines)
    saved = np.minimum(saved, 1)  # extrapolated from few iterations, it could be more
    return LineCost(float(saved[-1]), float(saved.min()), float(saved.max()), work, share, unit)


def percent(share: float) -> str:
    """Return a share of a launch as it is shown: "13.2 %"."""
    return f"{100 * share:.1f} %"


def _row(lines: list[LineCost]) -> tuple[str, ...]:
    """Return the row of a table for lines of a kind: lines, work, unit, cost, range, IL."""
    first = lines[0]
    last = lines[-1]
    numbers = str(first.line) if len(lines) == 1 else f"{first.line} to {last.line}"
    share = fsum(line.share for line in lines) / len(lines)
    costs = sorted(line.cost for line in lines)
    least, most = percent(costs[0]), percent(costs[-1])
    cost = most if least == most else f"{least.removesuffix(' %')} to {most}"
    low, high = min(line.low for line in lines), max(line.high for line in lines)
    span = replace(first, cost=costs[-1], low=low, high=high).range_text
    more = f"  ({len(lines)} lines)" if len(lines) > 1 else ""
    return numbers, percent(share), first.unit, cost, span, first.text + more
