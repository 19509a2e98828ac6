"""Prices: what each line of a kernel costs, as how much sooner the launch would end without it.

A line has its *work*, the clocks that it asks of its units, and its *price*: the share of the
launch that is saved if its bundles or its access are done in no time and everything else stays, the
code included (``timing.experiment``). A line that does much work costs little where it waits for
nobody and nobody waits for it.

Prices are measured on a steady part of the launch: as many wavefronts as the chip holds, in three
numbers of iterations of their loops, all of them simulated. A straight line through the three
extends the saved clocks to all iterations. The range of the three and of the line's end says
whether a price is to be trusted. Loops too short to be cut are simulated once, without a range.
Bundles of a clause are equal, and accesses that request as much are taken to be, so that a dozen
experiments do for a kernel.

Left out: the ragged rest of a launch, and its cost. Prices don't add up: of two lines that hide
each other, neither has one. They are modelled, and move with what the calibrations leave open.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from math import fsum
from typing import Any

import numpy as np

from cypresskit.tables import quantity, table
from cypresskit.threads import map_in_threads
from cypresskit.timing import stored
from cypresskit.timing.account import UNITS, LineId, LineWork
from cypresskit.timing.engine import run
from cypresskit.timing.experiment import (
    ALL,
    Demand,
    Experiment,
    cut,
    demands_of,
    free_clocks,
    freed,
)
from cypresskit.timing.report import Report, kept_with_report
from cypresskit.timing.sampling import effort
from cypresskit.timing.timed_launch import TimedLaunch
from cypresskit.timing.work import Path, pack

EXPERIMENTS = 12  # at most
LARGEST = 2.5e6  # cache lines and clauses of the largest of three sizes
TURNS = 200  # of the longest loop in it, at most
SIZES = (0.4, 0.7, 1.0)
SCATTER = 0.003  # of a launch: a range that isn't noticed
SHOWN = 0.0005  # of a launch: the least price or work that has a row in the table


@dataclass(frozen=True)
class Cost:
    """The share of a launch that would be saved, below 0 if others would wait longer: the
    ``price``; and the least and the most that was seen, ``low`` and ``high``, which is the price
    itself where it was seen once (``Prices.turns``). It reads the same wherever it is shown:
    "13.2 %", and with its range if it scatters, "13.2 % (9.8 to 14.0)".
    """

    price: float
    low: float
    high: float

    @property
    def scatters(self) -> bool:
        """Whether its range is so wide that the price says little."""
        return self.high - self.low > max(SCATTER, abs(self.price) / 2)

    @property
    def span(self) -> str:
        """The range, if it scatters, or nothing."""
        return f"({100 * self.low:.1f} to {100 * self.high:.1f})" if self.scatters else ""

    def __str__(self) -> str:
        return f"{percent(self.price)} {self.span}".rstrip()

    def is_close_to(self, other: "Cost") -> bool:
        """Whether their prices differ by no more than either was seen to, or than anybody
        notices.
        """
        unsure = max(SCATTER, self.high - self.low, other.high - other.low)
        return abs(self.price - other.price) <= unsure


@dataclass(frozen=True)
class LinePrice(Cost):
    """What a line costs: a ``Cost``.

    Its other fields:

    work
        what it asks of the chip's units in the launch (``LineWork``).
    share
        the share of the launch in which ``unit``, the one that it needs most, works for it.
    unit
        "ALU", "texture", "LDS" or "stores".
    together
        the lines whose accesses had one experiment, this one among them; none if it has no access.
    """

    work: LineWork
    share: float
    unit: str
    together: tuple[int, ...] = ()

    __str__ = Cost.__str__  # not its fields

    @property
    def line(self) -> int:
        return self.work.line

    @property
    def text(self) -> str:
        return self.work.text

    @property
    def runs(self) -> int:
        return self.work.runs

    @property
    def opcode(self) -> str:
        """The first word of its text, without what is in brackets behind it."""
        return self.text.split(maxsplit=1)[0].split("_")[0] if self.text else ""


@dataclass(frozen=True, repr=False)
class Prices:
    """The ``lines`` of a kernel with their prices, in the order of its text, and the ``report`` on
    the launch. They were measured on its first ``wavefronts``, with these numbers of ``turns`` of
    the longest loop; with one alone if no loop is long enough to be cut, and then without a range.
    """

    lines: tuple[LinePrice, ...]
    report: Report
    wavefronts: int
    turns: tuple[int, ...]

    @cached_property
    def dearest(self) -> LinePrice:
        """The line with the highest price; of equals, the first."""
        return max(self.lines, key=lambda line: line.price)

    def __repr__(self) -> str:
        rows = [("lines", "work each", "", "price each", "", ""), *self._rows()]
        widths = [max(len(row[n]) for row in rows) for n in range(5)]
        lines = []
        for line, work, unit, cost, span, text in rows:
            left = f"{line:>{widths[0]}}  {work:>{widths[1]}} {unit:{widths[2]}}"
            right = f"{cost:>{widths[3]}} {span:{widths[4]}}  {text}"
            lines.append(f"  {left}  {right}".rstrip())
        return "\n".join([self._title, *lines, *(f"  {note}" for note in self._notes())])

    def _repr_html_(self) -> str:
        names = "lines", "work of each", "unit", "price of each", "range", "IL"
        return table(names, self._rows(), self._title)

    @property
    def _title(self) -> str:
        report, dearest = self.report, self.dearest
        size = "" if report.size is None else " x ".join(map(str, report.size)) + " "
        return (
            f"{report.kernel} {size}on {report.device.name}: line {dearest.line} is the dearest,"
            f" {dearest} of the launch"
        )

    def _shown(self) -> list[LinePrice]:
        return [line for line in self.lines if max(line.share, abs(line.price)) >= SHOWN]

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """The rows of a table, one for lines of a kind that follow one another."""
        for _, lines in groupby(
            self._shown(), lambda line: (line.opcode, line.unit, line.together)
        ):
            yield _row(list(lines))

    def _notes(self) -> Iterator[str]:
        hidden = len(self.lines) - len(self._shown())
        if hidden:
            yield f"{quantity(hidden, 'other line')}: below {100 * SHOWN:.2g} % each"
        turns = ", ".join(map(str, self.turns))
        loops = f" with {turns} turns of the longest loop" if max(self.turns) > 1 else ""
        once = ", once, so that no range is known" if len(self.turns) == 1 else ""
        amount = quantity(self.wavefronts, "wavefront")
        yield f"modelled on {amount}{loops}{once}; prices don't add up"


class Interrupted(Exception):
    """Lines are not priced, since something else is to be done."""


def never() -> bool:
    return False


@kept_with_report
def line_costs(report: Report, *, unless: Callable[[], bool] = never) -> Prices:
    """The price of each line of the launch that ``report`` is on.

    Returns ``Prices``: a table of the kernel's lines, each with its work, and with the share of the
    launch that would be saved if it took no time. It takes some seconds the first time; raises
    ``Interrupted`` as soon as ``unless()`` holds.

        ck.line_costs(ck.simulate("sgemm_nn", 2048)).dearest
    """
    asked = report.question, report.launch
    again = partial(_from_plain, report)
    return stored.kept("prices", *asked, partial(_priced, report, unless), _as_plain, again)


def _as_plain(prices: Prices) -> dict[str, Any]:
    """The numbers of prices, for ``_from_plain``; the work of the lines is the report's."""
    lines = [{**vars(line), "work": n} for n, line in enumerate(prices.lines)]
    return {"lines": lines, "wavefronts": prices.wavefronts, "turns": prices.turns}


def _from_plain(report: Report, plain: dict[str, Any]) -> Prices:
    """The prices that ``_as_plain`` was of."""
    lines = []
    for work, line in zip(report.lines, plain["lines"], strict=True):
        lines.append(LinePrice(**line | {"work": work, "together": tuple(line["together"])}))
    return Prices(tuple(lines), report, plain["wavefronts"], tuple(plain["turns"]))


def _priced(report: Report, unless: Callable[[], bool]) -> Prices:
    launch = report.launch
    whole = launch.walk(min(launch.round, launch.shape.wavefronts))
    shares, sizes = _sizes(whole)
    groups = _groups(demands_of(launch.code, whole, launch.device))
    experiments = [Experiment(), *(group.experiment for group in groups)]
    clocks, *freed_ones = _measured(launch, sizes, experiments, unless)
    end = _end_of_whole(shares, clocks)
    saved: dict[LineId, np.ndarray] = defaultdict(lambda: np.zeros(len(sizes) + 1))
    together: dict[LineId, tuple[int, ...]] = {}
    for group, others in zip(groups, freed_ones):
        free = [free_clocks(paths, group.experiment, launch.device) for paths in (*sizes, whole)]
        gains = np.append(clocks - others, end - _end_of_whole(shares, others))
        rate = np.divide(gains, free, out=np.zeros(len(free)), where=np.array(free) > 0)
        for line, amount in group.clocks():
            saved[line] += rate * amount
        together |= dict.fromkeys(group.accessing, tuple(sorted({n for n, _ in group.accessing})))
    lines = tuple(
        _line_price(work, report, saved[work.id] / end, together.get(work.id, ()))
        for work in report.lines
    )
    turns = tuple(_longest(paths) for paths in sizes)
    return Prices(lines, report, sum(len(path.wavefronts) for path in whole), turns)


def _sizes(whole: list[Path]) -> tuple[list[float], list[list[Path]]]:
    """Three shares of the turns of a launch, and the paths with so many, the fewest first; fewer of
    loops that are too short to be cut to as many numbers of turns.
    """
    largest = min(LARGEST / effort(whole), TURNS / _longest(whole), 1.0)
    sizes = {}
    for size in SIZES:
        paths = cut(whole, largest * size)
        turns = tuple(turns for path in paths for _, turns in path.segments)
        sizes[turns] = largest * size, paths
    shares = [share for share, _ in sizes.values()]
    return (shares if len(shares) > 1 else [1.0]), [paths for _, paths in sizes.values()]


def _longest(paths: list[Path]) -> int:
    """The turns of the longest loop."""
    return max(turns for path in paths for _, turns in path.segments)


@dataclass(frozen=True)
class _Group:
    """Demands of a kind, and the experiment that frees one of them, or all."""

    demands: tuple[Demand, ...]
    experiment: Experiment

    def clocks(self) -> Iterator[tuple[LineId, float]]:
        """The clocks that each line asks for in each of the demands."""
        for demand in self.demands:
            yield from demand.clocks.items()

    @property
    def accessing(self) -> list[LineId]:
        """The lines with accesses, if these are alike."""
        alike = len({demand.kind for demand in self.demands}) == 1
        return [line for d in self.demands if d.accesses for line in d.clocks] if alike else []


def _groups(demands: list[Demand]) -> list[_Group]:
    """The demands in groups, at most ``EXPERIMENTS``, those with the most clocks first. The last is
    all that is left over.
    """
    alike: dict[tuple[Any, ...], list[Demand]] = defaultdict(list)
    for demand in demands:
        alike[demand.kind].append(demand)
    ordered = sorted(alike.values(), key=lambda group: -fsum(demand.total for demand in group))
    groups = [_Group(tuple(group), group[len(group) // 2].experiment) for group in ordered]
    if len(groups) <= EXPERIMENTS:
        return groups
    left_over = tuple(demand for group in groups[EXPERIMENTS - 1 :] for demand in group.demands)
    bundles = {part: ALL for demand in left_over for part in demand.experiment.bundles}
    accesses = frozenset(at for demand in left_over for at in demand.accesses)
    return [*groups[: EXPERIMENTS - 1], _Group(left_over, Experiment(bundles, accesses))]


def _measured(
    launch: TimedLaunch,
    sizes: Sequence[list[Path]],
    experiments: Sequence[Experiment],
    unless: Callable[[], bool],
) -> np.ndarray:
    """The clocks of each experiment (rows) with each size of the launch."""

    def clocks(job: tuple[Experiment, list[Path]]) -> float:
        if unless():
            raise Interrupted
        experiment, paths = job
        work = pack(freed(paths, experiment), launch.shape.group_wavefronts)
        return run(work, launch.device, launch.active, parts=_at_once).end_clock

    jobs = [(experiment, paths) for experiment in experiments for paths in sizes]
    return np.array(map_in_threads(clocks, jobs)).reshape(len(experiments), len(sizes))


def _at_once(parts: range) -> range:
    """The last part alone, which ends with the launch: nobody watches how an experiment goes by."""
    return parts[-1:]


def _end_of_whole(shares: Sequence[float], clocks: np.ndarray) -> float:
    """The clocks of all turns, from those of such shares of them: a straight line."""
    if shares[-1] == 1.0:
        return float(clocks[-1])
    return float(np.polyval(np.polyfit(shares, clocks, 1), 1.0))


def _line_price(
    work: LineWork, report: Report, saved: np.ndarray, together: tuple[int, ...]
) -> LinePrice:
    """The price of a line that saves such shares of the launch."""
    unit = max(UNITS, key=lambda unit: work.clocks[unit])
    share = work.clocks[unit] / (report.clocks * report.device.simd_engines)
    low, high = float(saved.min()), float(saved.max())
    return LinePrice(float(saved[-1]), low, high, work, share, unit, together)


def percent(share: float) -> str:
    """A share of a launch as it is shown: "13.2 %"."""
    return f"{100 * share:.1f} %"


def _row(lines: list[LinePrice]) -> tuple[str, ...]:
    """The row of a table for lines of a kind: which, work, unit, price, range, IL."""
    first = lines[0]
    last = lines[-1]
    numbers = str(first.line) if len(lines) == 1 else f"{first.line} to {last.line}"
    share = fsum(line.share for line in lines) / len(lines)
    costs = sorted(line.price for line in lines)
    least, most = percent(costs[0]), percent(costs[-1])
    cost = most if least == most else f"{least.removesuffix(' %')} to {most}"
    span = Cost(costs[-1], min(line.low for line in lines), max(line.high for line in lines)).span
    more = f"  ({len(lines)} lines)" if len(lines) > 1 else ""
    return numbers, percent(share), first.unit, cost, span, first.text + more
