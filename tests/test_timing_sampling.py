"""How much of a launch is simulated: the numbers of sampling, and what a sample says of its whole.

``test_*_number`` each hold one of them: 32 million lines and clauses, 300 million, 6 rounds, 3 per
cent, 8 iterations, and for what nobody saw 0.5 per cent, 30 of the time beyond the least, and 5 of
the square of the time in which memory and the busiest unit have to work at once, by what is left.
"""

import random
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cypresskit.chip import steady_state
from cypresskit.chip.engine import run
from cypresskit.chip.work import pack
from cypresskit.compiler import compile
from cypresskit.kernels import KERNELS
from cypresskit.timing import sampling, simulate, timed_launch
from cypresskit.timing.sampling import requested_work, time_launch
from cypresskit.timing.simulate import run_request
from cypresskit.timing.timed_launch import Spread, TimedLaunch, TimingRequest
from tools.fuzz.law import SMALL, groups
from tools.fuzz.samples import sampled

WHOLE, SAMPLED = "whole", "sampled"
COUNTS = ("alu", "texture", "lds", "dram", "dram_rows", "l2_requests", "l2_bypasses")


def decision(monkeypatch, effort, error=0.0, wavefronts=None, share=0.1):
    """Whether a launch of that ``effort`` is simulated whole, if its sample would be that ``share``
    of it and have that ``error``; and the numbers of wavefronts in its sample. Nothing is
    simulated.
    """
    kernel = KERNELS["sgemm_tn"]
    size = 64 if wavefronts is None else wavefronts * 64
    shape = kernel.shape(size, 64, 8, 1.0, 0.0)
    assert shape.wavefronts in (1, wavefronts)
    counts = []

    monkeypatch.setattr(sampling, "effort", lambda paths: effort)
    monkeypatch.setattr(sampling, "_mean_work", lambda paths: np.full(3, effort / 4))
    monkeypatch.setattr(sampling, "run", lambda work, *_: counts.append(len(work.path)))
    sampled = SimpleNamespace(outcome=SAMPLED, simulated=share, error=error)
    monkeypatch.setattr(sampling, "_extrapolate", lambda *_: sampled)
    whole = SimpleNamespace(outcome=WHOLE, simulated=1.0, error=0.0)
    monkeypatch.setattr(sampling, "_whole", lambda launch, bar: whole)
    board = replace(SMALL, simd_engines=1, max_wavefronts=2)
    launch = TimedLaunch(compile(kernel.program), shape, board, "linear")
    result = time_launch(launch, exact=False)
    return result.outcome, *counts


@pytest.mark.parametrize(("effort", "outcome"), [(3.1e7, WHOLE), (3.3e7, SAMPLED)])
def test_the_first_number_is_what_is_simulated_whole(effort, outcome, monkeypatch):
    assert decision(monkeypatch, effort)[0] == outcome


@pytest.mark.parametrize(("effort", "outcome"), [(2.9e8, WHOLE), (3.1e8, SAMPLED)])
def test_the_second_number_is_what_is_simulated_whole_if_unsteady(effort, outcome, monkeypatch):
    assert decision(monkeypatch, effort, error=0.5)[0] == outcome


@pytest.mark.parametrize(("wavefronts", "in_sample"), [(37, [37]), (38, [12]), (41, [13])])
def test_the_third_number_is_the_rounds_that_stand_for_more(wavefronts, in_sample, monkeypatch):
    assert decision(monkeypatch, 7.2e7, wavefronts=wavefronts)[1:] == (*in_sample,)


@pytest.mark.parametrize(("share", "outcome"), [(0.24, SAMPLED), (0.26, WHOLE)])
def test_a_sample_of_more_than_a_quarter_is_not_worth_it(share, outcome, monkeypatch):
    assert decision(monkeypatch, 7.2e7, share=share)[0] == outcome


@pytest.mark.parametrize(("error", "outcome"), [(0.0299, SAMPLED), (0.0301, WHOLE)])
def test_the_fourth_number_is_the_error_that_is_called_steady(error, outcome, monkeypatch):
    report = replace(simulate("sgemm_tn", 128), error=error)
    assert report.is_converged == (outcome == SAMPLED)
    assert decision(monkeypatch, 1e8, error=error)[0] == outcome


def test_the_fifth_number_is_the_turns_between_two_looks(monkeypatch):
    """A wavefront alone takes eight turns from look to look, and is never moved nearer to the end
    of its loop.
    """
    stretches, ends = [], []
    skipper = steady_state.SteadyStateSkipper
    observe, skip = skipper.observe, skipper._skip

    def observed(self):
        before = self.snapshots[-1:]
        turn = self._snapshot().iteration[0, 0]
        observe(self)
        stretches.extend(turn - earlier.iteration[0, 0] for earlier in before)

    def skipped(self, *snapshots):
        jobs = self.chip.jobs
        was = jobs.iteration.copy()
        done = skip(self, *snapshots)
        if done:
            last = snapshots[-2]
            left = jobs.work.segments["iterations"][last.segment] - jobs.iteration
            ends.append(left[jobs.iteration != was].min())
        return done

    monkeypatch.setattr(skipper, "observe", observed)
    monkeypatch.setattr(skipper, "_skip", skipped)
    kernel = KERNELS["dgemm_tn"]
    code, shape = compile(kernel.program), kernel.shape(32, 32, 2000, 1.0, 0.0)
    assert shape.wavefronts == 1
    monkeypatch.setattr(sampling, "WHOLE_EFFORT", 2e3)
    monkeypatch.setattr(sampling, "PATIENCE", 0)
    report = run_request(TimingRequest(code, shape=shape))
    assert report.simulated < 0.5
    assert ends
    assert 8 <= min(ends) <= 10
    assert np.median(stretches) == pytest.approx(8)


def extended(starts, live=1000.0, rest=0.0, simulated=1.0):
    """A sample of a launch of 400 wavefronts from its first ones, which start at these clocks, live
    for so many and end ``rest`` clocks before all is over, no pace within them changing.
    """
    kernel = KERNELS["sgemm_tn"]
    shape = kernel.shape(6400, 256, 8, 1.0, 0.0)
    assert shape.wavefronts == 400
    launch = TimedLaunch(compile(kernel.program), shape, SMALL, "linear")
    one = replace(launch, shape=kernel.shape(64, 64, 8, 1.0, 0.0))
    some = run(pack(one.trace(one.wavefronts)), SMALL, one.active_wavefronts)
    start = np.asarray(starts, float)
    end = start + live
    over = end.max() + rest
    outcome = replace(
        some,
        end_clock=over,
        start=start,
        end=end,
        engine=np.zeros(len(start)),
        simulated=simulated,
        error=0.0,
    )
    return sampling._extrapolate(launch, outcome, [], Spread([]))


def error_of(busy, sending, **more):
    known = dict.fromkeys(("seen", "slower", "unsteady", "simulated"), 0.0) | more
    return sampling.stated_error(sampling.Evidence(busy, sending, **known))


def test_the_sixth_number_is_the_error_of_what_nobody_saw():
    assert error_of(1.0, 0.0) == error_of(1.0 + 1e-12, 0.0) == 0.005
    assert error_of(0.5, 0.5) == pytest.approx(0.305)
    assert error_of(1.0, 0.0, seen=0.1) == pytest.approx(0.205)
    assert error_of(1.0, 0.0, slower=0.3, seen=0.1) == pytest.approx(0.805)
    assert error_of(1.0, 0.0, unsteady=0.1) == pytest.approx(0.105)
    assert error_of(0.0, 1.0) == 1


def test_the_seventh_number_is_the_error_where_memory_is_busy_beside_the_busiest_unit():
    assert error_of(1.0, 0.5) == pytest.approx(0.03)
    assert error_of(1.0, 0.9) == pytest.approx(0.41)


@pytest.mark.parametrize(("count", "simulated"), [(400, 0.25), (120, 1.0), (120, 0.25)])
def test_whoever_leaves_something_out_has_an_error(count, simulated):
    """Of turns, of rounds, and of turns in few rounds."""
    assert extended(1000.0 * np.arange(count), simulated=simulated).error >= 0.005


@pytest.mark.parametrize("seed", range(10))
def test_rounds_take_as_long_as_those_that_were_seen(seed):
    """However long a launch takes to begin and to end, and in whatever bursts wavefronts start: a
    burst is as long as a round.
    """
    draw = np.random.default_rng(seed)
    pace = draw.uniform(1000, 2000)
    kernel = KERNELS["sgemm_tn"]
    burst = TimedLaunch(
        compile(kernel.program), kernel.shape(64, 64, 8), SMALL, "linear"
    ).round_size
    offsets = np.sort(draw.uniform(0, pace * burst, burst))
    starts = np.concatenate([offsets + n * pace * burst for n in range(120)])[:120]
    starts += draw.uniform(0, 1e5)
    result = extended(starts, rest=draw.uniform(0, 1e5))
    assert result.clocks == pytest.approx(result.use.clocks[-1] + pace * 280)
    assert result.resident_clocks == pytest.approx(400 * 1000)


@pytest.mark.parametrize("late", [0.0, 0.5, 2.0])
def test_rounds_whose_pace_changes_are_not_steady(late):
    """Wavefronts that all start at once show none."""
    starts = np.cumsum(np.where(np.arange(120) < 76, 1000.0, 1000.0 * late))
    assert extended(starts).error > steady_state.CONVERGED_ERROR


@pytest.mark.parametrize("seed", range(8))
def test_the_work_asked_for_is_what_the_engine_does(seed):
    """To the last clock, for any launch of groups that is simulated whole."""
    shape = groups(random.Random(seed))
    code = compile(shape.program, SMALL)
    launch = TimedLaunch(code, shape, SMALL, "linear")
    paths = launch.trace(launch.wavefronts)
    work = pack(paths, shape.group_wavefronts)
    counts = run(work, SMALL, launch.active_wavefronts).counts
    for what, amount in requested_work(paths, SMALL).items():
        assert counts[what] == amount


@pytest.mark.parametrize(
    "unit",
    [("alu",), ("texture",), ("lds",), ("dram", "dram_rows"), ("l2_requests", "l2_bypasses")],
)
@settings(max_examples=10)
@given(st.data())
def test_the_least_time_is_that_of_all_the_work_of_the_busiest_unit(unit, data):
    """However that is divided."""
    busiest, others = st.floats(1e6, 1e8), st.floats(0, 1e3)
    counts = {name: data.draw(busiest if name in unit else others) for name in COUNTS}
    least = sampling.min_clocks(counts, SMALL)
    whole = counts | dict.fromkeys(unit, 0.0) | {unit[0]: sum(counts[name] for name in unit)}
    twice = {name: 2 * count for name, count in counts.items()}
    assert sampling.min_clocks(whole, SMALL) == pytest.approx(least)
    assert sampling.min_clocks(twice, SMALL) == pytest.approx(2 * least)


@pytest.mark.parametrize("seed", range(12))
def test_a_launch_may_fall_back_to_the_pace_of_any_round(seed):
    """As wavefronts do that begin in step, drift apart, and later fall into step again."""
    draw = np.random.default_rng(seed)
    pace, slower = draw.uniform(1000, 2000), draw.uniform(1, 1.5)
    paces = np.full(6, pace)
    paces[draw.integers(2)] *= slower
    result = extended(np.repeat(np.cumsum(paces) - paces[0], 20), rest=draw.uniform(0, 1e4))
    in_step = result.use.clocks[-1] + 14 * slower * pace
    assert in_step <= result.clocks * (1 + result.error) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_work_of_a_ragged_launch_is_that_of_all_its_wavefronts(seed):
    """Whatever rounds are left out: blocks at the edges ask for less."""
    rng = random.Random(seed)
    kernel = KERNELS[rng.choice(("dgemm_nt", "dgemm_tn", "sgemm_nn", "dgemm_nn_buffer"))]
    m, n = (64 * rng.randint(5, 14) + rng.randint(1, 40) for _ in "mn")
    board = replace(SMALL, simd_engines=rng.choice((1, 2)), max_wavefronts=rng.choice((4, 8)))
    launch = TimingRequest(kernel, size=(m, n, rng.randint(100, 300)), device=board).launch()
    with patch.multiple(sampling, WHOLE_EFFORT=2e4, PATIENCE=0):
        few = time_launch(launch, exact=False, progress=False)
    asked = requested_work(launch.trace(launch.wavefronts), board)
    units = {"alu": "ALU", "texture": "texture", "lds": "LDS"}
    engines = few.clocks * board.simd_engines
    found = {what: few.busy[unit] * engines for what, unit in units.items()}
    assert found | {"delivered": few.bytes["L1"]} == pytest.approx(asked, rel=1e-9)


@pytest.mark.slow
def test_wavefronts_from_all_over_a_launch_show_its_edges():
    """A launch of more than are walked: its last column and row of blocks ask for a part only."""
    for m, n in ((2860, 1434), (1450, 2880), (1 << 13, 260)):
        launch = TimingRequest(KERNELS["dgemm_tn"], size=(m, n, 32)).launch()
        with patch.object(timed_launch, "MAX_SPREAD", 512):
            spread = launch.trace_spread()
        assert 1 < spread.times < 16
        shown = requested_work(spread.paths, launch.device)
        asked = requested_work(launch.trace(launch.wavefronts), launch.device)
        for what, amount in asked.items():
            assert spread.times * shown[what] == pytest.approx(amount, rel=0.003), what


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

    rates = steady_state._rates(seen(pace), seen(pace), engine)
    assert abs(rates / pace / 2 - 1).max() < 0.015
    quick = pace + np.where(np.arange(len(engine)) % 2, 1.5, -1.5)
    rates = steady_state._rates(seen(quick), seen(quick), engine)
    assert abs(rates / quick / 2 - 1).max() < 0.05


@pytest.mark.parametrize("seed", range(20))
def test_an_engine_with_fewer_wavefronts_keeps_its_pace(seed):
    """Whichever engine was seen to be ahead by more in the first part than in the second."""
    draw = np.random.default_rng(seed)
    counts = draw.permutation(np.arange(1, 9))
    engine = np.repeat(np.arange(8), counts)
    pace = 30 / (2 + counts)[engine]
    off = draw.uniform(0, 0.3) * (pace - pace.mean())
    rates = steady_state._rates(pace + off, pace - off, engine)
    assert abs(rates / pace / 2 - 1).max() < 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_who_is_ahead_is_moved_on_no_further_than_it_would_go(seed):
    """Where lines come back after some turns only, and one engine is a little quicker, whose lines
    the other finds in L2 for as long as they stay near each other.
    """
    draw = np.random.default_rng(seed)
    m, n, k = (int(most) for most in draw.integers((64, 64, 300), (100, 100, 900)))
    board = replace(SMALL, l2_bytes=65536)
    launch = TimingRequest(KERNELS["sgemm_naive"], size=(m, n, k), device=board).launch()
    work = pack(launch.trace(min(launch.round_size, launch.wavefronts)))
    watch = partial(steady_state.SteadyStateSkipper, farthest=3.0, strict=0.0)
    few, whole = (run(work, board, launch.active_wavefronts, watch) for watch in (watch, None))
    assert few.simulated < 0.6
    assert few.end_clock == pytest.approx(whole.end_clock, rel=0.02)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "seed",
    [
        *range(4),
        836000150,
        90100156,
        925000047,
        1708000035,
        pytest.param(832000166, marks=pytest.mark.slow),
    ],
)
def test_a_sample_takes_and_lives_as_long_as_the_whole(seed):
    """To its error, whatever it is a sample of."""
    sampled(random.Random(seed))
