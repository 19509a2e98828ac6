"""``LaunchTime``: what the chip was seen to do in a launch. A report is made from it, whatever the
kernel is called and however many flops are counted for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cypresskit.timing.account import Seen, extended, seen_lines
from cypresskit.timing.board import Board
from cypresskit.timing.engine import Outcome
from cypresskit.timing.question import Question
from cypresskit.timing.report import Use, read_only
from cypresskit.timing.sampling import sample
from cypresskit.timing.timed_launch import TimedLaunch
from cypresskit.timing.units.l2 import l2_clocks

INTERVALS = 64  # of ``Report.use``, at most
SHORTEST = 500  # clocks of such an interval, at least
NUMBERS = ("clocks", "error", "lived", "share", "clocks_seen", "lived_seen", "counts", "channels")


@dataclass(frozen=True, eq=False)
class LaunchTime:
    """A launch's ``clocks``, with their ``error``, for how many ``lived``, the ``share`` that was
    simulated, what was ``seen``, the ``use`` of the chip and its ``events``, all as in ``Report``.

    ``counts`` are those of ``Outcome``, of the whole launch. ``channels`` has for each DRAM channel
    the shares of the time in which it sends, and in which it waits for a row. In ``clocks_seen`` of
    the simulation wavefronts were on the chip for ``lived_seen``.
    """

    clocks: float
    error: float
    lived: float
    share: float
    clocks_seen: float
    lived_seen: float
    counts: Mapping[str, float]
    channels: list[tuple[float, float]]
    events: np.ndarray
    use: Use
    seen: Seen

    def as_plain(self) -> dict[str, Any]:
        """Numbers, lists and arrays by name; see ``time_from_plain``."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in NUMBERS}
        plain |= {"events": self.events, "use of": list(self.use.shares)}
        plain |= {"bounds": self.use.clocks, "wavefronts": self.use.wavefronts}
        plain |= {f"use {part}": shares for part, shares in self.use.shares.items()}
        for name in ("waits", "moves"):
            lines = getattr(self.seen, name).items()
            plain[name] = [[line, calls, amounts] for (line, calls), amounts in lines]
        return plain


def time_from_plain(plain: dict[str, Any]) -> LaunchTime:
    """The time that ``LaunchTime.as_plain`` was of."""
    shares = {part: plain[f"use {part}"] for part in plain["use of"]}
    waits, moves = (
        {(line, tuple(calls)): amounts for line, calls, amounts in plain[name]}
        for name in ("waits", "moves")
    )
    return LaunchTime(
        **{name: plain[name] for name in NUMBERS},
        events=plain["events"],
        use=Use(plain["bounds"], read_only(shares), plain["wavefronts"]),
        seen=Seen(waits, moves),
    )


def find_time(question: Question, launch: TimedLaunch) -> LaunchTime:
    """Simulate a launch, or as much of it as the question's policy says."""
    device = launch.device
    result = sample(
        launch, exact=question.exact, progress=question.progress, policy=question.policy
    )
    outcome = result.outcome
    seen = seen_lines(launch.code, result.paths, outcome.ledger, device.line_bytes, result.part)
    if result.share < 1:
        seen = extended(seen, result.lived - result.worked)
    sending, waiting = (
        outcome.done[what][-1] / result.part / result.clocks for what in ("dram", "dram_rows")
    )
    return LaunchTime(
        clocks=float(result.clocks),
        error=float(result.error),
        lived=float(result.lived),
        share=float(result.share),
        clocks_seen=outcome.end_clock,
        lived_seen=outcome.lived,
        counts=result.counts,
        channels=list(zip(sending.tolist(), waiting.tolist())),
        events=outcome.timeline,
        use=use_of(outcome, device),
        seen=seen,
    )


def use_of(out: Outcome, device: Board) -> Use:
    """How busy each part was, interval by interval."""
    noted = np.append(True, out.progress[1:] > 0)
    # The log notes a clause's start when it is over, so that clocks may go back.
    clock = np.maximum.accumulate([*out.progress[noted], out.end_clock])
    at = np.append(np.flatnonzero(noted), len(noted))
    count = int(np.clip(out.end_clock / SHORTEST, 1, INTERVALS))
    bounds = np.linspace(0, out.end_clock, count + 1)
    did = {
        name: np.diff([np.interp(bounds, clock, part) for part in done[at].T]).T
        for name, done in out.done.items()
    }
    slices = l2_clocks(did["l2_asked"] + did["l2_passed"], device)
    busy = {"ALU": did["alu"], "texture": did["texture"], "LDS": did["lds"], "L2": slices}
    shares = {name: _served(clocks / bounds[1]) for name, clocks in busy.items()}
    # A channel sends a line or waits for a row, never both: what begins in an interval and can't be
    # done in it is left for the next, and each keeps its share of that.
    asked = np.stack([did["dram"], did["dram_rows"]], axis=2) / bounds[1]
    shares["DRAM"], shares["DRAM rows"] = _served_together(asked)
    shares |= {f"{level.upper()} hits": hit_rate(did, level) for level in ("l1", "l2")}
    return Use(bounds, read_only(shares), np.stack([out.engine, out.start, out.end], axis=1))


def _served(given: np.ndarray) -> np.ndarray:
    """The work done in each interval, given what begins there: what an interval can't hold is left
    for the next.
    """
    served = np.empty_like(given)
    left = np.zeros(given.shape[1])
    for n, new in enumerate(given):
        served[n] = np.minimum(left + new, 1)
        left += new - served[n]
    return served


def _served_together(given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for two kinds of work of one unit, (intervals, units, 2): together at most 1."""
    served = np.empty_like(given)
    left = np.zeros(given.shape[1:])
    for n, new in enumerate(given):
        waiting = left + new
        together = waiting.sum(axis=1, keepdims=True)
        served[n] = waiting * np.minimum(1 / np.maximum(together, 1), 1)
        left = waiting - served[n]
    return served[..., 0], served[..., 1]


def hit_rate(counts: Mapping[str, Any], level: str) -> np.ndarray:
    """The share of a cache's lines that were there when they were asked for; NaN if none was."""
    asked = counts[f"{level}_asked"]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(
            asked > 0, np.clip(1 - np.divide(counts[f"{level}_missed"], asked), 0, 1), np.nan
        )
