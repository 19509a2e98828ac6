"""``price``: what each line of a kernel costs, as how much sooner the launch would end without it.

A line has its *work*, the clocks that it asks of its units, and its *price*: the share of the
launch that is saved if its bundles or its access are done in no time and everything else stays, the
code included (``timing.trial``). A line that does much work costs little where it waits for nobody
and nobody waits for it.

Prices are measured on a steady part of the launch: as many wavefronts as the chip holds, in three
numbers of turns of their loops, all of them simulated. Their mean counts, and their range says
whether a price is to be trusted. Bundles of a clause are equal, and fetches that ask for as much
are taken to be, so that a dozen trials do for a kernel.

Left out: the ragged rest of a launch, and its cost. Prices don't add up: of two lines that hide
each other, neither has one. They are modelled, and move with what the calibrations leave open.
"""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cypresskit.compiler import Code
from cypresskit.il import Program
from cypresskit.kernels.own import Source as KernelSource
from cypresskit.machine.fast.execute import processors
from cypresskit.tables import quantity, table
from cypresskit.timing.account import UNITS, Launch, LineWork, Source
from cypresskit.timing.engine import run
from cypresskit.timing.report import Report
from cypresskit.timing.sampling import effort
from cypresskit.timing.simulate import simulate
from cypresskit.timing.trial import ALL, Trial, Work, cut, freed, freed_clocks, works_of
from cypresskit.timing.work import Path, pack

TRIALS = 12  # at most
LARGEST = 2.5e6  # cache lines and clauses of the largest of three sizes
SIZES = (0.5, 0.75, 1.0)
SCATTER = 0.003  # of a launch: a range that isn't noticed
SHOWN = 0.0005  # of a launch: a price or work that has a row of its own


@dataclass(frozen=True)
class LinePrice:
    """What a line costs.

    Its fields:

    work
        what it asks of the chip's units in the launch (``LineWork``).
    share
        the share of the launch in which ``unit``, the one that it needs most, works for it.
    unit
        "ALU", "texture", "LDS" or "stores".
    price
        the share of the launch that would be saved; below 0 if others would wait longer.
    low, high
        the least and the most that was seen.
    together
        the lines whose accesses had one trial, this one among them; none if it has no access.
    """

    work: LineWork
    share: float
    unit: str
    price: float
    low: float
    high: float
    together: tuple[int, ...] = ()

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
    def scatters(self) -> bool:
        """Whether its range is so wide that the price says little."""
        return self.high - self.low > max(SCATTER, abs(self.price) / 2)


@dataclass(frozen=True)
class Prices:
    """The ``lines`` of a kernel with their prices, in the order of its text, and the ``report`` on
    the launch. They were measured on its first ``wavefronts``, with these numbers of ``turns`` of
    its longest loop.
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
        rows = [("line", "work", "", "price", "", "")]
        rows += [_row(line) for line in self._shown]
        widths = [max(len(row[n]) for row in rows) for n in range(5)]
        lines = [
            f"{row[0]:>{widths[0]}}  {row[1]:>{widths[1]}} {row[2]:{widths[2]}}"
            f"  {row[3]:>{widths[3]}} {row[4]:{widths[4]}}  {row[5]}".rstrip()
            for row in rows
        ]
        return "\n".join([self._title, *("  " + line for line in lines), *self._notes])

    def _repr_html_(self) -> str:
        names = "line", "work", "of", "price", "range", "IL"
        return table(names, map(_row, self._shown), self._title)

    @property
    def _shown(self) -> list[LinePrice]:
        return [line for line in self.lines if max(line.share, abs(line.price)) >= SHOWN]

    @property
    def _title(self) -> str:
        report = self.report
        size = "" if report.size is None else " x ".join(map(str, report.size)) + " "
        dearest = self.dearest
        return (
            f"{report.kernel} {size}on {report.device.name}: line {dearest.line} is the dearest,"
            f" {100 * dearest.price:.1f} % of the launch"
        )

    @property
    def _notes(self) -> list[str]:
        hidden = len(self.lines) - len(self._shown)
        few = [f"  {quantity(hidden, 'other line')}: below {100 * SHOWN:.2g} %"] if hidden else []
        return few


def price(kernel: KernelSource | Program | Code, n: int | None = None, **options) -> Prices:
    """The price of each line of a kernel.

    Takes what ``simulate`` takes, and returns ``Prices``: a table of the kernel's lines, each with
    its work, and with the share of the launch that would be saved if it took no time. It takes some
    seconds.

        ck.price("sgemm_nn", 2048).dearest
    """
    return launch_prices(simulate(kernel, n, **options))


def launch_prices(report: Report) -> Prices:
    """The prices of the lines of the launch that ``report`` is on."""
    launch = report.launch
    assert launch is not None
    whole = launch.walk(min(launch.round, launch.shape.wavefronts))
    most = min(LARGEST / effort(whole), 1.0)
    shares = [most * size for size in SIZES]
    sizes = [cut(whole, share) for share in shares]
    works = works_of(launch.code, whole, launch.device)
    groups = _groups(works)
    jobs = [(paths, trial) for trial in (Trial(), *(g.trial for g in groups)) for paths in sizes]
    with ThreadPoolExecutor(processors()) as pool:
        clocks = np.array([*pool.map(lambda job: _clocks(launch, *job), jobs)])
    clocks = clocks.reshape(-1, len(sizes))
    end = _end_of_whole(shares, clocks[0])
    found: dict[Source, np.ndarray] = defaultdict(lambda: np.zeros(len(sizes)))
    together: dict[Source, tuple[int, ...]] = {}
    for group, after in zip(groups, clocks[1:]):
        free = np.array([freed_clocks(paths, group.trial, launch.device) for paths in sizes])
        rate = np.divide(clocks[0] - after, free, out=np.zeros(len(sizes)), where=free > 0)
        for work in group.works:
            for source, amount in work.clocks.items():
                found[source] += np.minimum(rate * amount / end, 1.0)
                if work.accesses:
                    together[source] = group.lines
    busy = report.clocks * report.device.simd_engines
    lines = []
    for work in report.lines:
        unit = max(UNITS, key=lambda unit: work.clocks[unit])
        source = work.line, work.calls
        each = found[source]
        lines.append(
            LinePrice(
                work,
                work.clocks[unit] / busy,
                unit,
                float(np.median(each)),
                float(each.min()),
                float(each.max()),
                together.get(source, ()),
            )
        )
    return Prices(tuple(lines), report, sum(len(path.wavefronts) for path in whole), _turns(sizes))


@dataclass(frozen=True)
class _Group:
    """Works of the same kind, and the trial that frees one of them."""

    works: tuple[Work, ...]
    trial: Trial

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(sorted({line for work in self.works for line, _ in work.clocks}))


def _groups(works: list[Work]) -> list[_Group]:
    """The works in groups, at most ``TRIALS``, those with the most clocks first. What is left over
    is the last group, all of it free at once.
    """
    alike: dict[tuple, list[Work]] = defaultdict(list)
    for work in works:
        alike[work.kind].append(work)
    ordered = sorted(alike.values(), key=lambda each: -sum(work.total for work in each))
    groups = [_Group(tuple(each), each[len(each) // 2].trial) for each in ordered]
    if len(groups) <= TRIALS:
        return groups
    rest = [work for group in groups[TRIALS - 1 :] for work in group.works]
    bundles = {part: ALL for work in rest for part in work.trial.bundles}
    accesses = frozenset(at for work in rest for at in work.accesses)
    return [*groups[: TRIALS - 1], _Group(tuple(rest), Trial(bundles, accesses))]


def _clocks(launch: Launch, paths: list[Path], trial: Trial) -> float:
    """How long the launch takes if what ``trial`` frees is done in no time."""
    work = pack(freed(paths, trial), launch.shape.group_wavefronts)
    return run(work, launch.device, launch.active).end_clock


def _end_of_whole(shares: list[float], clocks: np.ndarray) -> float:
    """The clocks of all turns, from those with such shares of them: a straight line."""
    if shares[-1] == 1.0 or clocks[0] == clocks[-1]:
        return float(clocks[-1])
    return float(np.polyval(np.polyfit(shares, clocks, 1), 1.0))


def _turns(sizes: list[list[Path]]) -> tuple[int, ...]:
    return tuple(max(n for path in paths for _, n in path.segments) for paths in sizes)


def _row(line: LinePrice) -> tuple[str, ...]:
    """The row of a table: line, work, its unit, price, range, IL."""
    share, price_ = f"{100 * line.share:.1f} %", f"{100 * line.price:.1f} %"
    span = f"({100 * line.low:.1f} to {100 * line.high:.1f})" if line.scatters else ""
    return str(line.line), share, line.unit, price_, span, line.text
