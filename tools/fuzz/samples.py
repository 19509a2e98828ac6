"""The law of samples: a launch that is simulated in part takes as long as it says, and wavefronts
live as long on the chip, to its ``error``.

Each random launch is simulated in part, whatever its pace does, and whole. They are ragged: kernels
of the catalogue and of generated blocks of any size, which fill the chip once and a bit, and
workgroups with fences, on large boards and small ones. The same launches calibrate what a sample
says of what it has left out (``sampling.UNSEEN``), and this shows how far they were off:

    python -m tools.fuzz.samples --seed 0 --launches 1000
"""

import argparse
import random
from dataclasses import dataclass, replace

import numpy as np

import cypresskit as ck
from cypresskit.compiler import CompileError
from cypresskit.devices import HD5850, HD5870
from cypresskit.kernels.generated import write
from cypresskit.timing import Report
from cypresskit.timing.question import Question
from cypresskit.timing.sampling import POLICY, UNSEEN, effort
from cypresskit.timing.simulate import ask, forget_reports
from tools.fuzz.law import ENTRIES, SMALL, check, groups, unbalanced

BOARDS = [
    HD5870,
    HD5850,
    SMALL,
    replace(SMALL, simd_engines=1),
    replace(SMALL, l2_bytes=65536),
]
MOST = 8  # times as much as is simulated whole
SOME = 64  # wavefronts, from which the work of a launch is estimated


@dataclass(frozen=True)
class Trial:
    """A launch simulated in part, ``few``, and ``whole``."""

    few: Report
    whole: Report

    @property
    def left_out(self) -> float:
        """The share of its clauses that wasn't simulated."""
        return 1 - self.few.simulated

    @property
    def off(self) -> float:
        """The share by which clocks or lives are off, whichever are more."""
        clocks = abs(self.few.clocks / self.whole.clocks - 1)
        return max(clocks, abs(self.few.lived / self.whole.lived - 1))

    @property
    def needed(self) -> float:
        """The least ``UNSEEN`` with which its error were large enough."""
        seen = self.few.error - UNSEEN * self.left_out
        return max(self.off - seen, 0.0) / self.left_out


def trial(rng: random.Random) -> Trial:
    """A random launch of which something is left out."""
    while True:
        policy = replace(POLICY, whole=rng.choice((4e5, 1e6, 4e6)), patience=0)
        question = replace(_question(rng), policy=policy)
        try:
            launch = question.launch()
        except (CompileError, ValueError):
            continue
        numbers = np.unique(np.linspace(0, launch.wavefronts - 1, SOME).astype(np.int64))
        work = effort(launch.walk_some(numbers)) * launch.wavefronts / len(numbers)
        if policy.whole < work < MOST * policy.whole:
            few = ask(question)
            if few.simulated < 1:
                return Trial(few, ask(replace(question, exact=True)))


def _question(rng: random.Random) -> Question:
    board = rng.choice(BOARDS)
    if rng.random() < 0.5:
        shape = groups(rng, turns=(1, 8, 30, 100, 300, 1000), counts=(3, 20, 60, 150, 500, 2000))
        return Question(shape.program, shape=shape, device=board)
    kernel = rng.choice([*ck.kernels.values(), write(*rng.choice(ENTRIES))])
    n = 1 if kernel.vector else rng.randint(64, 1500)
    size = rng.randint(64, 1500), n, rng.randint(64, 1500)
    return Question(kernel, size=size, device=board, precision=kernel.precision)


def sampled(rng: random.Random) -> None:
    """Check that a random launch, of which something is left out, is off by no more than it says,
    and that its account adds up.
    """
    tried = trial(rng)
    few = tried.few
    faults = unbalanced(few) + unbalanced(tried.whole)
    launch = few.launch
    faults += check(launch.code, launch.shape, launch.layout, few, tried.whole)
    if tried.off > few.error:
        clocks = 100 * (few.clocks / tried.whole.clocks - 1)
        lived = 100 * (few.lived / tried.whole.lived - 1)
        says = 100 * few.error
        faults.append(f"clocks {clocks:+.2f} %, lives {lived:+.2f} % off, says {says:.2f} %")
    question = few.question
    assert not faults, "\n".join([*faults, str(question), str(few), str(tried.whole)])


def calibrate(seed: int, launches: int) -> None:
    """Print what so many launches say of ``UNSEEN``."""
    offs, needs = [], []
    for n in range(seed, seed + launches):
        tried = trial(random.Random(n))
        offs.append(tried.off)
        needs.append(tried.needed)
        forget_reports()
    shares = (0.5, 0.9, 0.99, 0.999, 0.9999)
    print(f"{launches} launches, per cent        " + "".join(f"{100 * s:9.2f}" for s in shares))
    print("off by at most                    " + _row(offs, shares))
    print("UNSEEN that covers what is unseen " + _row(needs, shares), f"(is {100 * UNSEEN})")


def _row(values: list[float], shares: tuple[float, ...]) -> str:
    return "".join(f"{100 * value:9.3f}" for value in np.quantile(values, shares))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.samples", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first launch's (default: 0)")
    parser.add_argument("--launches", type=int, default=1000, help="how many (default: 1000)")
    calibrate(**vars(parser.parse_args()))
