"""What a sample of a launch says of its whole."""

import random
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from sampling import seeded

import cypresskit as ck
from cypresskit.chip.engine import run
from cypresskit.chip.work import pack
from cypresskit.kernels import KERNELS
from cypresskit.timing import sampling
from cypresskit.timing.launch_time import CONVERGED_ERROR
from cypresskit.timing.sampling import extrapolate, requested_work, time_launch
from cypresskit.timing.timed_launch import Spread, TimedLaunch
from tools.fuzz.law import SMALL, groups
from tools.fuzz.samples import sampled


def extended(starts, live=1000.0, rest=0.0):
    """A sample of a launch of 400 wavefronts from its first ones, which start at these clocks, live
    for so many and end ``rest`` clocks before all is over, no pace within them changing.
    """
    kernel = KERNELS["sgemm_tn"]
    shape = kernel.shape(6400, 256, 8, 1.0, 0.0)
    assert shape.wavefronts == 400
    launch = TimedLaunch(shape, device=SMALL)
    one = replace(launch, kernel=kernel.shape(64, 64, 8, 1.0, 0.0))
    some = run(pack(one.trace(one.wavefronts)), SMALL, one.active_wavefronts)
    start = np.asarray(starts, float)
    end = start + live
    over = end.max() + rest
    outcome = replace(some, end_clock=over, start=start, end=end, engine=np.zeros(len(start)))
    return extrapolate(launch, outcome, Spread([]))


@pytest.mark.parametrize("late", [0.0, 0.5, 2.0])
def test_rounds_whose_pace_changes_are_not_steady(late):
    """Wavefronts that all start at once show none."""
    starts = np.cumsum(np.where(np.arange(120) < 76, 1000.0, 1000.0 * late))
    assert extended(starts).error > CONVERGED_ERROR


@seeded(2)
def test_rounds_that_are_left_out_take_the_mean_of_the_last_two_thirds(seed):
    """Of six rounds, and fourteen that are left out."""
    paces = np.random.default_rng(seed).uniform(1000, 2000, 6)
    result = extended(np.repeat(np.cumsum(paces), 20))
    left_out = result.clocks - result.use.clocks[-1]
    assert left_out == pytest.approx(14 * paces[2:].mean())


@seeded(4)
def test_the_work_asked_for_is_what_the_engine_does(seed):
    """To the last clock, for any launch of groups that is simulated whole."""
    shape = groups(random.Random(seed))
    launch = TimedLaunch(shape, device=SMALL)
    paths = launch.trace(launch.wavefronts)
    work = pack(paths, shape.group_wavefronts)
    counts = run(work, SMALL, launch.active_wavefronts).counts
    for what, amount in requested_work(paths, SMALL).items():
        assert counts[what] == amount


@seeded(4)
def test_a_launch_may_fall_back_to_the_pace_of_any_round(seed):
    """As wavefronts do that begin in step, drift apart, and later fall into step again."""
    draw = np.random.default_rng(seed)
    pace, slower = draw.uniform(1000, 2000), draw.uniform(1, 1.5)
    paces = np.full(6, pace)
    paces[draw.integers(2)] *= slower
    result = extended(np.repeat(np.cumsum(paces) - paces[0], 20), rest=draw.uniform(0, 1e4))
    in_step = result.use.clocks[-1] + 14 * slower * pace
    assert in_step <= result.clocks * (1 + result.error) * (1 + 1e-9)


@seeded(3)
def test_the_work_of_a_ragged_launch_is_that_of_all_its_wavefronts(seed):
    """Whatever rounds are left out: blocks at the edges ask for less."""
    rng = random.Random(seed)
    kernel = KERNELS[rng.choice(("dgemm_nt", "dgemm_tn", "sgemm_nn", "dgemm_nn_buffer"))]
    m, n = (64 * rng.randint(5, 14) + rng.randint(1, 40) for _ in "mn")
    board = replace(SMALL, simd_engines=rng.choice((1, 2)), max_wavefronts=rng.choice((4, 8)))
    launch = TimedLaunch(kernel, size=(m, n, rng.randint(100, 300)), device=board)
    with patch.multiple(sampling, SAMPLE_EFFORT=2e4, MAX_WHOLE_EFFORT=0, MAX_ERROR=1):
        few = time_launch(launch)
    asked = requested_work(launch.trace(launch.wavefronts), board)
    units = {"alu": "ALU", "texture": "texture", "lds": "LDS"}
    engines = few.clocks * board.simd_engines
    found = {what: few.busy[unit] * engines for what, unit in units.items()}
    assert found | {"delivered": few.bytes["L1"]} == pytest.approx(asked, rel=1e-9)


@pytest.mark.parametrize("row", [4, 64, 512])
def test_what_stands_for_a_large_launch_is_at_each_place_of_a_row(row):
    """Of workgroups: in step with these, all would begin in the same column of C."""
    launch = TimedLaunch(KERNELS["sgemm_naive"], size=(4096, 4096, 8))
    with patch.object(TimedLaunch, "trace_some", lambda _, numbers: numbers):
        numbers = launch.trace_spread().paths
    assert {*(numbers % row).tolist()} == {*range(row)}


@seeded(2)
def test_a_sample_takes_as_long_as_the_whole(seed):
    """To its error, whatever it is a sample of."""
    sampled(random.Random(seed))


@pytest.mark.parametrize("name", ["sgemm_tn", "dgemm_tn_stream", "sgemm_nn_buffer", "sgemm_packed"])
def test_a_launch_that_does_not_fit_the_board_is_refused(name):
    """By one byte."""
    kernel = ck.kernels[name]
    n, count = 256, 2 if kernel.convention.packed else 1
    size = kernel.dtype.itemsize
    matrices = 3 * count * n * n * size
    exact = replace(ck.HD5870, memory_bytes=matrices)
    assert ck.simulate(kernel, n, count=count, device=exact).clocks
    small = replace(ck.HD5870, memory_bytes=matrices - 1)
    with pytest.raises(ValueError, match="gemm_out_of_core multiplies what"):
        ck.simulate(kernel, n, count=count, device=small)
