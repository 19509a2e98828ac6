"""What a sample of a launch says of its whole."""

import random
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from kernel_texts import TEXTURE, pixel
from sampling import drawn_by_day, seeded

import cypresskit as ck
from cypresskit.chip.engine import run
from cypresskit.chip.work import pack
from cypresskit.kernels import KERNELS
from cypresskit.machine.shape import Extent, LaunchShape
from cypresskit.timing import sampling
from cypresskit.timing.launch_time import CONVERGED_ERROR
from cypresskit.timing.sampling import extrapolate, requested_work, time_launch
from cypresskit.timing.timed_launch import Spread, TimedLaunch
from tools.fuzz.law import SMALL, groups
from tools.fuzz.samples import sampled


def extend_sample(starts, rest=0.0):
    """A sample of a launch of 400 wavefronts from its first ones, which start at these clocks, live
    for 1000 and end ``rest`` clocks before all is over, no pace within them changing.
    """
    kernel = KERNELS["sgemm_tn"]
    shape = kernel.shape(6400, 256, 8, 1.0, 0.0)
    assert shape.wavefronts == 400
    launch = TimedLaunch(shape, device=SMALL)
    one = replace(launch, kernel=kernel.shape(64, 64, 8, 1.0, 0.0))
    some = run(pack(one.trace(one.wavefronts)), SMALL, one.active_wavefronts)
    start = np.asarray(starts, float)
    end = start + 1000.0
    over = end.max() + rest
    outcome = replace(some, end_clock=over, start=start, end=end, engine=np.zeros(len(start)))
    return extrapolate(launch, outcome, Spread([]))


@pytest.mark.parametrize("late", [0.0, 0.5, 2.0])
def test_rounds_whose_pace_changes_are_not_steady(late):
    """Wavefronts that all start at once show none."""
    starts = np.cumsum(np.where(np.arange(120) < 76, 1000.0, 1000.0 * late))
    assert extend_sample(starts).error > CONVERGED_ERROR


@seeded(2)
def test_rounds_that_are_left_out_take_the_mean_of_the_last_two_thirds(seed):
    """Of six rounds, and fourteen that are left out."""
    paces = np.random.default_rng(seed).uniform(1000, 2000, 6)
    result = extend_sample(np.repeat(np.cumsum(paces), 20))
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
    result = extend_sample(np.repeat(np.cumsum(paces) - paces[0], 20), rest=draw.uniform(0, 1e4))
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


@seeded(3)
def test_a_sample_takes_as_long_as_the_whole(seed):
    """To its error, whatever it is a sample of."""
    sampled(random.Random(seed))


@pytest.mark.parametrize("numbers", [{}, {"MAX_WHOLE_EFFORT": 1e5}])
def test_an_unsure_launch_is_simulated_whole_if_quick_or_off_by_over_10_per_cent(numbers, capsys):
    """Then after a notice. It waits for memory, and one engine runs it in many rounds."""
    board = replace(ck.HD5870, simd_engines=1)
    launch = TimedLaunch(KERNELS["sgemm_nn_buffer"], (1024, 1024, 64), board)
    with patch.multiple(sampling, MAX_SHARE=1, SAMPLE_EFFORT=1e3, **numbers):
        few, all_ = (time_launch(replace(launch, exact=exact)) for exact in (False, True))
    assert (few.clocks, few.simulated, few.error) == (all_.clocks, 1, 0)
    assert ("all of it is simulated: about" in capsys.readouterr().err) == bool(numbers)


LATE = {  # by rows of pixels: how many iterations, or which texel is fetched
    "the last eighth takes three times as many iterations": ("ge r1.w, vWinCoord0.y, l0.x", "1.0"),
    "the last fiftieth takes three times as many iterations": (
        "ge r1.w, vWinCoord0.y, l0.y",
        "1.0",
    ),
    "the last half fetches texels far apart": ("ge r1.w, vWinCoord0.y, l0.z", "0.0"),
}


@drawn_by_day("test, more", LATE.values(), 1, ids=LATE)
def test_late_work_items_that_do_other_work_are_timed_right(test, more):
    program = pixel(
        TEXTURE.format(0),
        f"""dcl_literal l0, 1792.0, 2007.0, 1024.0, 16.0
    dcl_literal l1, 1.0, 32.0, 0.0, {more}
    mov r0, l1.zzzz
    mov r3, l1.zzzz
    mov r2.xy, vWinCoord0.xy
    mov r1.y, l0.w
    {test}
    if_logicalnz r1.w
        mad r1.y, l1.w, l1.y, r1.y
        mul r2.xy, r2.xy, l0.w
    endif
    whileloop
        ge r1.x, r3.x, r1.y
        break_logicalnz r1.x
        sample_resource(0)_sampler(0) r4, r2.xy00
        add r0, r0, r4
        add r3.x, r3.x, l1.x
    endloop
    mov o0, r0""",
    )
    shape = LaunchShape(
        program, (128, 2048, 1), {0: Extent(2048, 32768, 16)}, {}, {0: Extent(128, 2048, 16)}
    )
    launch = TimedLaunch(shape, device=replace(ck.HD5870, max_wavefronts=4))
    with patch.multiple(sampling, SAMPLE_EFFORT=3e5, MIN_ROUNDS=1):
        default, exact = (time_launch(replace(launch, exact=exact)) for exact in (False, True))
    assert default.clocks == pytest.approx(exact.clocks, rel=0.01)


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
