"""How much of a launch is simulated: the six numbers of sampling, and what a sample says of its
whole.

``test_*_number`` each hold one of them: 8 million lines and clauses, 150 million, 6 rounds, 2 per
cent, 8 turns, a third of the waiting.
"""

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cypresskit.compiler import compile
from cypresskit.kernels import KERNELS
from cypresskit.timing import sampling, simulate, steady
from cypresskit.timing.account import TimedLaunch
from cypresskit.timing.question import Question
from cypresskit.timing.sampling import POLICY, Sample, asked_work, observed_pace, sample
from cypresskit.timing.simulate import ask
from tools.fuzz.law import SMALL, groups, sampled

WHOLE, SAMPLED = "whole", "sampled"


def decision(monkeypatch, effort, error=0.0, wavefronts=None):
    """Whether a launch of that ``effort``, whose sample would have that ``error``, is simulated
    whole, and the number of wavefronts in its sample. Nothing is simulated.
    """
    kernel = KERNELS["sgemm_tn"]
    size = 64 if wavefronts is None else wavefronts * 64
    shape = kernel.shape(size, 64, 8, 1.0, 0.0)
    assert shape.wavefronts in (1, wavefronts)
    counts = []

    def sampled(launch, paths, *_):
        counts.append(sum(len(path.wavefronts) for path in paths))
        return Sample(SAMPLED, paths, 0.1, 1.0, 1000.0, error, 0.0)

    monkeypatch.setattr(sampling, "effort", lambda paths: effort)
    monkeypatch.setattr(sampling, "_sampled", sampled)
    monkeypatch.setattr(
        sampling, "_whole", lambda launch, bar: Sample(WHOLE, [], 1.0, 1.0, 1000.0, 0.0, 0.0)
    )
    board = replace(SMALL, simd_engines=1, max_wavefronts=2)
    launch = TimedLaunch(compile(kernel.program), shape, board, "linear")
    result = sample(launch, exact=False)
    return result.outcome, *counts


@pytest.mark.parametrize(("effort", "outcome"), [(7.9e6, WHOLE), (8.1e6, SAMPLED)])
def test_the_first_number_is_what_is_simulated_whole(effort, outcome, monkeypatch):
    assert decision(monkeypatch, effort)[0] == outcome


@pytest.mark.parametrize(("effort", "outcome"), [(1.49e8, WHOLE), (1.51e8, SAMPLED)])
def test_the_second_number_is_what_is_simulated_whole_if_unsteady(effort, outcome, monkeypatch):
    assert decision(monkeypatch, effort, error=0.5)[0] == outcome


@pytest.mark.parametrize(("wavefronts", "in_sample"), [(25, 25), (26, 12), (41, 13)])
def test_the_third_number_is_the_rounds_that_stand_for_more(wavefronts, in_sample, monkeypatch):
    assert decision(monkeypatch, 9e6, wavefronts=wavefronts)[1] == in_sample


@pytest.mark.parametrize(("error", "outcome"), [(0.0199, SAMPLED), (0.0201, WHOLE)])
def test_the_fourth_number_is_the_error_that_is_called_steady(error, outcome, monkeypatch):
    report = replace(simulate("sgemm_tn", 128), error=error)
    assert report.steady == (outcome == SAMPLED)
    assert decision(monkeypatch, 1e8, error=error)[0] == outcome


def test_the_fifth_number_is_the_turns_between_two_looks(monkeypatch):
    """A wavefront alone takes eight turns from look to look, and is never moved nearer to the end
    of its loop.
    """
    stretches, ends = [], []
    look, move_on = steady.Steady.look, steady.Steady._move_on

    def looked(self):
        before = self.looks[-1:]
        turn = self._now().turn[0, 0]
        look(self)
        stretches.extend(turn - earlier.turn[0, 0] for earlier in before)

    def moved(self, *looks):
        was = self.chip.slots.turn.copy()
        done = move_on(self, *looks)
        if done:
            last = looks[-2]
            left = self.chip.work.segments[last.segment, 2] - self.chip.slots.turn
            ends.append(left[self.chip.slots.turn != was].min())
        return done

    monkeypatch.setattr(steady.Steady, "look", looked)
    monkeypatch.setattr(steady.Steady, "_move_on", moved)
    kernel = KERNELS["dgemm_tn"]
    code, shape = compile(kernel.program), kernel.shape(32, 32, 2000, 1.0, 0.0)
    assert shape.wavefronts == 1
    policy = replace(POLICY, whole=2e3, patience=0)
    report = ask(Question(code, shape=shape, policy=policy))
    assert report.simulated < 0.5
    assert ends
    assert 8 <= min(ends) <= 10
    assert np.median(stretches) == pytest.approx(8)


def test_the_sixth_number_is_the_waiting_that_may_change():
    assert steady.unsure(1.0, 0.9) == 0
    assert steady.unsure(0.4, 0.0) == 0
    assert steady.unsure(0.4, 0.3) == pytest.approx(0.6 * 0.3 / 3)
    assert steady.unsure(0.4, 0.5) == pytest.approx(0.6 * 0.5 / 3 + 0.1)


@pytest.mark.parametrize("seed", range(8))
def test_the_work_asked_for_is_what_the_engine_does(seed):
    """To the last clock, for any launch of groups that is simulated whole."""
    shape = groups(random.Random(seed))
    code = compile(shape.program, SMALL)
    launch = TimedLaunch(code, shape, SMALL, "linear")
    whole = sample(launch, exact=True, progress=False)
    for what, amount in asked_work(whole.paths, SMALL).items():
        assert whole.outcome.counts[what] == amount


@pytest.mark.parametrize("seed", range(20))
def test_wavefronts_of_an_engine_go_at_its_pace(seed):
    """Where in a turn they are seen says nothing; who is always quicker stays so."""
    draw = np.random.default_rng(seed)
    engine = np.repeat(np.arange(10), draw.integers(4, 9, 10))
    pace = draw.uniform(7, 10, 10)[engine]

    def seen(turns):
        """Turns that are taken between two looks at a clause of eight."""
        start = draw.uniform(0, 1, len(engine))
        return np.floor((start + turns) * 8) / 8 - np.floor(start * 8) / 8

    rates = steady._rates(seen(pace), seen(pace), engine)
    assert abs(rates / pace / 2 - 1).max() < 0.015
    quick = pace + np.where(np.arange(len(engine)) % 2, 1.5, -1.5)
    rates = steady._rates(seen(quick), seen(quick), engine)
    assert abs(rates / quick / 2 - 1).max() < 0.05


@pytest.mark.parametrize("seed", range(20))
def test_an_engine_with_fewer_wavefronts_keeps_its_pace(seed):
    """Whichever engine was seen to be ahead by more in the first part than in the second."""
    draw = np.random.default_rng(seed)
    counts = draw.permutation(np.arange(1, 9))
    engine = np.repeat(np.arange(8), counts)
    pace = 30 / (2 + counts)[engine]
    off = draw.uniform(0, 0.3) * (pace - pace.mean())
    rates = steady._rates(pace + off, pace - off, engine)
    assert abs(rates / pace / 2 - 1).max() < 1e-9


@pytest.mark.parametrize("seed", [9300141, 32000067, 35000187])
def test_a_sample_takes_and_lives_as_long_as_the_whole(seed):
    """Where engines have wavefronts in different numbers, and where slots are empty at times."""
    sampled(random.Random(seed))


@pytest.mark.parametrize("seed", range(10))
def test_a_pace_is_that_of_whole_rounds(seed):
    """Of rounds with slow and quick parts: however these lie, a round takes what it takes."""
    draw = np.random.default_rng(seed)
    rounds, clauses = int(draw.integers(3, 10)), 40
    parts = draw.uniform(0.2, 3, clauses)
    progress = np.concatenate([[0], np.cumsum(np.tile(parts, rounds))])
    none = np.zeros(4)
    done = {unit: np.zeros((len(progress) + 1, 2)) for unit in ("dram", "dram_rows")}
    outcome = sampling.Outcome(
        end_clock=progress[-1],
        start=none,
        end=none,
        engine=none,
        timeline=none,
        progress=progress,
        pace=1,
        done=done,
        counts={},
        simulated=1.0,
        error=0.0,
        ledger=None,
    )
    work = SimpleNamespace(clauses_run=np.array([10]), path=np.zeros(4 * rounds, np.int64))
    pace, change = observed_pace(outcome, work, rounds, clauses // 10)
    assert pace == pytest.approx(parts.sum())
    assert change == pytest.approx(0, abs=1e-9)
