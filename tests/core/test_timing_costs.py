"""What a line costs: the laws of its cost, on kernels of the catalog."""

import random
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
from kernel_texts import TEXTURE
from sampling import from_rows, seeded

import cypresskit as ck
from cypresskit.chip.engine import run
from cypresskit.chip.work import pack
from cypresskit.devices import CHIP_ALONE
from cypresskit.kernels.generated import generate_kernel
from cypresskit.timing.ablation import ALL, Ablation, ablate, ablation_targets
from tools.fuzz import law

NEVER = f"""il_ps_2_0
dcl_cb cb0[1]
dcl_output_generic o0
{TEXTURE.format(0)}
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_literal l0, 0, 1.0, 2.0, 0
mov r0, l0.x
mov r1, l0.x
whileloop
    ge r1.x, r0.x, cb0[0].x
    break_logicalnz r1.x
    sample_resource(0)_sampler(0) r2, vWinCoord0.xy
    mad r3, r2, r2, r3
    ge r1.y, r0.x, cb0[0].y
    if_logicalnz r1.y
        sample_resource(0)_sampler(0) r4, vWinCoord0.yx
        mad r3, r4, r4, r3
    endif
    add r0.x, r0.x, l0.y
endloop
mov o0, r3
end
"""


@pytest.fixture(scope="module")
def nn():
    return ck.line_costs(ck.simulate("sgemm_nn", 1024, k=256))


def everything_free(launch):
    """The work and result of a launch if all lines took no time."""
    paths = launch.trace(launch.shape.wavefronts)
    targets = ablation_targets(launch.code, paths, launch.device)
    bundles = {part: ALL for target in targets for part in target.ablation.bundles}
    accesses = frozenset(at for target in targets for at in target.accesses)
    work = pack(ablate(paths, Ablation(bundles, accesses)), launch.shape.group_wavefronts)
    return work, run(work, launch.device, launch.active_wavefronts)


def random_line_costs(seed):
    """The line costs of a random block, or of a program of random accesses."""
    rng = random.Random(seed)
    write = rng.choice((None, law.accesses, law.groups))
    if write is None:
        block = generate_kernel(*rng.choice(law.ENTRIES))
        n, k = rng.randint(64, 400), rng.randint(8, 200)
        return ck.line_costs(ck.simulate(block, n, k=k))
    shape = write(rng)
    return ck.line_costs(ck.simulate(shape))


def starting(costs, text):
    return [line for line in costs.lines if line.text.startswith(text)]


def test_a_fetch_of_a_costs_twice_one_of_b_in_nn(nn):
    a, b = (starting(nn, f"sample_resource({n})") for n in (0, 1))
    assert mean(line.cost for line in a) == pytest.approx(
        2 * mean(line.cost for line in b), rel=0.15
    )
    assert nn.most_expensive in a
    assert nn.most_expensive.measured_with == tuple(line.line for line in a)


def test_a_bundle_costs_its_share_of_an_alu_bound_loop():
    costs = ck.line_costs(ck.simulate("dgemm_tn", 512))
    assert costs.report.bound == "ALU"
    busy = costs.report.busy["ALU"]
    sums = [line for line in starting(costs, "dmad") if line.share > 0.001]
    assert len(sums) > 16
    for line in sums:
        assert line.cost == pytest.approx(line.share / busy, abs=0.003)
        assert line.high - line.low < 0.005  # a third of the iterations gives the same share


def test_a_line_that_never_runs_costs_nothing():
    program = ck.assemble(NEVER)
    shape = ck.LaunchShape(program, (128, 128), {0: (128, 128)}, {0: np.float32([64, 1000])})
    costs = ck.line_costs(ck.simulate(shape))
    (fetch,) = [line for line in costs.lines if line.text.endswith("vWinCoord0.yx")]
    assert (fetch.cost, fetch.low, fetch.high, fetch.share) == (0, 0, 0, 0)
    assert max(line.cost for line in costs.lines) > 0


def test_a_cost_says_its_range_if_that_is_wide(nn):
    for least, most, text in ((0.3, 0.3, "30.0 %"), (0.1, 0.5, "30.0 % (10.0 to 50.0)")):
        assert str(replace(nn.lines[0], cost=0.3, low=least, high=most)) == text


@seeded(4)
def test_a_line_costs_at_most_the_launch_and_nothing_if_it_never_runs(seed):
    for line in random_line_costs(seed).lines:
        assert line.low <= line.cost <= line.high <= 1
        assert line.share or line.cost == 0


@pytest.mark.parametrize("name", ["sgemm_nn", "sgemm_64x64_lds", "sgemm_nn_buffer"])
def test_with_all_free_only_what_is_between_clauses_is_left(name):
    launch = ck.simulate(name, 128, exact=True).launch
    work, outcome = everything_free(launch)
    assert not any(outcome.counts.values())
    clauses = work.executions / len(work.path)  # they all run the same
    one_by_one = (
        launch.device.clause_switch_clocks
        + 2 * launch.device.clause_overhead_clocks * launch.active_wavefronts
    )
    assert 0 < outcome.end_clock <= clauses * one_by_one
    board = replace(launch.device, clause_switch_clocks=0, clause_overhead_clocks=0)
    _, outcome = everything_free(replace(launch, device=board))
    assert outcome.end_clock == 0


def test_a_fetch_that_is_free_leaves_its_lines_to_the_next():
    """Two texels of a line: whichever fetch is free, the other one brings the line."""
    launch = ck.simulate("sgemm_nn", 128, exact=True).launch
    paths = launch.trace(launch.shape.wavefronts)
    clause, *_ = [control.fetches for control in launch.code.controls if control.fetches]
    first, second, *_ = [fetch.at for fetch in clause if fetch.resource == 1]
    ends = []
    for at in (first, second):
        work = pack(ablate(paths, Ablation({}, frozenset({at}))))
        outcome = run(work, launch.device, launch.active_wavefronts)
        ends.append((outcome.end_clock, outcome.counts["l2_requests"]))
    assert ends[0] == ends[1]
    whole = run(pack(paths), launch.device, launch.active_wavefronts)
    assert ends[0][1] == whole.counts["l2_requests"]


def test_what_if_goes_down_from_the_peak_to_what_is_reached():
    report = ck.simulate("sgemm_nn", 1024)
    what_if = ck.what_if(report)
    reached = [step.reached for step in what_if if step.reached is not None]
    assert reached[-1] == pytest.approx(report.gflops)
    assert report.peak_gflops >= reached[0] >= reached[-1]
    assert reached == sorted(reached, reverse=True)
    assert what_if["bank conflicts"].gain > 0.05  # A's texels lie below each other


@pytest.mark.parametrize("overhead", [6.0, 225.0])
def test_a_launch_overhead_is_a_limit_of_the_system_and_not_of_the_chip(overhead):
    system = ck.System(name="a computer", launch_overhead_us=overhead)
    alone, there = (ck.simulate("sgemm_tn", 256, system=s) for s in (CHIP_ALONE, system))
    assert there.clocks == alone.clocks
    assert there.seconds == pytest.approx(alone.seconds + overhead * 1e-6)
    assert ck.what_if(there)["the launch itself"].gflops == pytest.approx(alone.gflops)
    assert "the launch itself" not in [step.name for step in ck.what_if(alone)]
    assert "with launch" in str(there) and "with launch" not in str(alone)


def texture_clocks_of_a_texel(report):
    return sum(line.clocks["texture"] for line in report.lines) / report.bytes["L1"]


def lds_clocks_of_a_flop(report):
    return sum(line.clocks["LDS"] for line in report.lines) / report.flops


def fetches_of_a_flop(report):
    return report.busy["texture"] * report.clocks / report.flops


CHANGES = {  # what a report has less of, and the limit of the other one that this is
    "bank conflicts": lambda a, b: (
        texture_clocks_of_a_texel(a) > 1.2 * texture_clocks_of_a_texel(b)
        or lds_clocks_of_a_flop(a) > 1.2 * lds_clocks_of_a_flop(b)
    ),
    "empty wavefront slots": lambda a, b: a.wavefronts < min(b.wavefronts, a.launch.round_size),
    "fetches, stores and their units": lambda a, b: fetches_of_a_flop(a) > 3 * fetches_of_a_flop(b),
}


@from_rows(drawn=4)
def test_a_limit_that_costs_much_is_what_the_better_sibling_changed(worse, better, size, change):
    slow, fast = (ck.simulate(name, **size) for name in (worse, better))
    assert fast.gflops > slow.gflops
    assert CHANGES[change](slow, fast)
    before, lost = slow.peak_gflops, {}
    for step in (what_if := ck.what_if(slow)):
        if step.reached is not None:
            lost[step.name] = before - step.reached
            before = step.reached
    expensive = sorted(lost, key=lost.__getitem__)[-2:]
    assert change in expensive or what_if[change].gain > 0.01


def test_rows_of_memory_are_a_limit_where_lines_lie_apart():
    """Numbers of a column of A lie in rows of their own; a block's lines lie side by side."""
    column = ck.what_if(ck.simulate("sgemv_n", 1, m=8192, k=512))
    block = ck.what_if(ck.simulate("sgemm_tn", 512, k=128))
    rows = "rows of memory that open"
    assert column[rows].gain > 0.2 > 0.05 > block[rows].gain
    assert column[rows].lesson == "08"
