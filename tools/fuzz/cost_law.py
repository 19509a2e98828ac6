"""Check the law of line costs (`ck.line_costs`) on random launches.

No cost is above the launch's time, or outside of its range. A line that never runs costs nothing.
In an ALU-bound loop, a bundle costs the share of the time in which the ALU executes it, plus that
in which the ALU is idle because of it, within the range that its cost states. If all lines are
free, only the overhead of clauses remains.
"""

import random
from collections import defaultdict
from dataclasses import replace

import cypresskit as ck
from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.work import ALU, BARRIER, Packed, WavefrontPath, clause_executions, pack
from cypresskit.compiler import CompileError, compile
from cypresskit.devices import HD5870, Device
from cypresskit.kernels.generated import generate_kernel
from cypresskit.machine.shape import Extent, LaunchShape
from cypresskit.timing import DataDependentError
from cypresskit.timing.ablation import ALL, Ablation, ablate, ablated_clocks, ablation_targets
from cypresskit.timing.costs import LineCosts
from cypresskit.timing.line_work import LineId
from cypresskit.timing.timed_launch import TimedLaunch
from tools.fuzz.law import ENTRIES, accesses, groups

NEAR = 0.003  # of a launch's time: how far a bundle's cost may be outside of its range
BOUND = 0.985  # of the time: clauses of an ALU-bound launch occupy the ALU for longer

ALU_LOOP = """il_cs_2_0
dcl_num_thread_per_group 64
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_literal l0, 0, 1, {turns}, 63
dcl_literal l1, 0.5, 0.25, 1.5, 2.0
mov r1, l0.xxxx
iand r2, vTidInGrpFlat.xxxx, l0.w
itof r2, r2
{first}
whileloop
    ige r3.x, r1.x, l0.z
    break_logicalnz r3.x
{body}
    iadd r1.x, r1.x, l0.y
endloop
mov r4, vAbsTidFlat.xxxx
mov g[r4.x], r10
end"""


def alu_loop(rng: random.Random) -> LaunchShape:
    """Return a launch that fills the chip with a loop of arithmetic and a few fetches."""
    registers = rng.randint(3, 12)
    sums = [f"r{10 + n}" for n in range(registers)]
    body = []
    for _ in range(rng.randint(24, 80)):
        mask = rng.choice(("", "", ".x___", "._y__", ".xy__", ".xyz_"))
        a, b = rng.choice(sums), rng.choice([*sums, "l1", "r2"])
        total = rng.choice(sums)
        body.append(f"    {rng.choice(('mad', 'mad', 'max'))} {total}{mask}, {a}, {b}")
        body[-1] += f", {total}" if body[-1].split()[0] == "mad" else ""
    for _ in range(rng.choice((0, 0, 1))):
        fetch = f"    sample_resource(0)_sampler(0) {rng.choice(sums)}, r2.xy00"
        body.insert(rng.randint(0, len(body)), fetch)
    text = ALU_LOOP.format(
        turns=rng.choice((200, 400)),
        first="\n".join(f"mov {register}, r2" for register in sums),
        body="\n".join(body),
    )
    wavefronts = HD5870.simd_engines * rng.choice((12, 16, 20))
    return LaunchShape(ck.assemble(text), (64 * wavefronts, 1, 1), {0: Extent(64, 64, 16)})


def everything_free(launch: TimedLaunch) -> tuple[Packed, Outcome]:
    """Return the work and result of the launch if all lines took no time."""
    paths = launch.trace(launch.shape.wavefronts)
    targets = ablation_targets(launch.code, paths, launch.device)
    bundles = {part: ALL for target in targets for part in target.ablation.bundles}
    accesses_ = frozenset(at for target in targets for at in target.accesses)
    work = pack(ablate(paths, Ablation(bundles, accesses_)), launch.shape.group_wavefronts)
    return work, run(work, launch.device, launch.active_wavefronts)


def faults(costs: LineCosts) -> list[str]:
    """Return how line costs break the law, as texts; empty if they don't."""
    found = []
    for line in costs.lines:
        name = f"line {line.line}"
        if not line.low <= line.cost <= line.high:
            found.append(f"{name}: {line.cost} isn't from {line.low} to {line.high}")
        if line.high > 1:
            found.append(f"{name}: a cost of up to {line.high} launches")
        if not line.runs and (line.cost, line.share) != (0, 0):
            found.append(f"{name} never runs, and costs {line.cost}")
    return found + _bundle_faults(costs) + _free_faults(costs)


def _bundle_faults(costs: LineCosts) -> list[str]:
    """Return the lines of an ALU-bound loop whose cost isn't their share of the launch.

    The share includes the time in which the ALU is idle because of them. Wavefronts that wait for
    each other at fences aren't bound by the ALU alone.
    """
    report = costs.report
    launch = report.launch
    paths = launch.trace(report.wavefronts)
    kinds = {clause.kind for clause, *_ in clause_executions(paths)}
    if BARRIER in kinds or occupied(paths, report.device) < BOUND * report.clocks:
        return []
    idle = idle_with_lines(launch)
    found = []
    for line in costs.lines:
        expected = line.share + idle[line.work.id]
        outside = max(line.low - expected, expected - line.high)
        if line.unit == "ALU" and line.runs > report.wavefronts and outside > NEAR:
            found.append(
                f"line {line.line} costs {line.low:.4f} to {line.high:.4f} and works for"
                f" {line.share:.4f} of the launch; the ALU is idle for"
                f" {idle[line.work.id]:.4f} more with it"
            )
    return found


def idle_with_lines(launch: TimedLaunch) -> dict[LineId, float]:
    """Return the share of a round in which the ALU is idle because of each line's bundles.

    If the ALU is never idle, removing a bundle saves its clocks. But when a clause becomes shorter
    or longer, wavefronts reach the ALU in another order, which may leave gaps between clauses. This
    is simulated for one bundle of each part of the code.
    """
    paths = launch.trace(min(launch.round_size, launch.wavefronts))
    clocks, idle = _clocks_and_idle(launch, paths)
    shares: dict[LineId, float] = defaultdict(float)
    for target in ablation_targets(launch.code, paths, launch.device):
        if not target.ablation.bundles:
            continue
        _, idle_without = _clocks_and_idle(launch, ablate(paths, target.ablation))
        one_bundle = ablated_clocks(paths, target.ablation, launch.device)
        for line, line_clocks in target.clocks.items():
            shares[line] += line_clocks / one_bundle * (idle - idle_without) / clocks
    return shares


def _clocks_and_idle(launch: TimedLaunch, paths: list[WavefrontPath]) -> tuple[float, float]:
    """Return the clocks of wavefronts on ``paths``, and those in which the ALU is idle."""
    work = pack(paths, launch.shape.group_wavefronts)
    clocks = run(work, launch.device, launch.active_wavefronts).end_clock
    return clocks, clocks - occupied(paths, launch.device)


def occupied(paths: list[WavefrontPath], device: Device) -> float:
    """Return the clocks for which clauses occupy the ALU, with bundles or overhead."""
    clocks = 0.0
    for clause, turns, wavefronts in clause_executions(paths):
        if clause.kind == ALU:
            length = clause.bundles * device.alu_latency_clocks + device.clause_overhead_clocks
            clocks += turns * wavefronts * length
    together = device.alu_latency_clocks / device.bundle_clocks
    return clocks / together / device.simd_engines


def _free_faults(costs: LineCosts) -> list[str]:
    """Return what remains of a launch in which no line takes time."""
    launch = costs.report.launch
    work, outcome = everything_free(launch)
    found = [f"all is free, and {n} is {c}" for n, c in outcome.counts.items() if c]
    device = launch.device
    most = (
        device.clause_switch_clocks + 2 * device.clause_overhead_clocks * launch.active_wavefronts
    )
    rounds = -(-launch.shape.wavefronts // launch.round_size)
    if outcome.end_clock > rounds * max(work.clauses_run) * most:
        found.append(f"all is free, and the launch takes {outcome.end_clock} clocks")
    board = replace(device, clause_switch_clocks=0, clause_overhead_clocks=0)
    _, outcome = everything_free(replace(launch, device=board))
    if outcome.end_clock:
        found.append(f"clauses are free, too, and the launch takes {outcome.end_clock} clocks")
    return found


def random_line_costs(rng: random.Random) -> LineCosts:
    """Return the line costs of a random block, or of a program of random operations."""
    program = rng.choice((None, accesses, groups, alu_loop))
    if program is None:
        block = generate_kernel(*rng.choice(ENTRIES))
        return ck.line_costs(
            ck.simulate(block, rng.randint(64, 400), k=rng.randint(8, 200), progress=False)
        )
    shape = program(rng)
    return ck.line_costs(ck.simulate(compile(shape.program), launch=shape, progress=False))


def check_line_costs(rng: random.Random) -> None:
    """Check that the line costs of a random launch obey the law."""
    try:
        costs = random_line_costs(rng)
    except (CompileError, DataDependentError, ValueError) as error:
        assert str(error), "an error without words"
        return
    wrong = faults(costs)
    assert not wrong, "\n".join([*wrong, str(costs), str(costs.report)])
