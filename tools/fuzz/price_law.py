"""The law of prices: what `ck.price` says of a launch, whichever program it is of.

No price is above the launch, and none is below its range or above it. A line that never runs costs
nothing. In a loop that the ALU binds, a bundle costs the share of the launch in which the ALU works
for it. With all lines free nothing is left but what a clause costs itself, and without that,
nothing.
"""

import random
from dataclasses import replace

import cypresskit as ck
from cypresskit.compiler import Code, CompileError, compile
from cypresskit.devices import HD5870
from cypresskit.kernels.generated import write
from cypresskit.machine.shape import Extent, Shape
from cypresskit.timing import DataDependentError, Prices, Report
from cypresskit.timing.account import LineId, TimedLaunch, bundle_shares
from cypresskit.timing.engine import Outcome, run
from cypresskit.timing.experiment import ALL, Experiment, demands_of, freed
from cypresskit.timing.work import ALU, BARRIER, Packed, Path, pack
from tools.fuzz.law import ENTRIES, accesses, groups

NEAR = 0.003  # of a launch: how far a bundle's price may be from its work
BOUND = 0.985  # of the time: clauses keep the ALU for as long in a launch that it binds
BRIEF = 4  # bundles of a clause

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


def alu_loop(rng: random.Random) -> Shape:
    """A launch that fills the chip with a loop of arithmetic and, now and then, a fetch."""
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
    return Shape(ck.assemble(text), (64 * wavefronts, 1, 1), {0: Extent(64, 64, 16)})


def everything_free(launch: TimedLaunch) -> tuple[Packed, Outcome]:
    """The launch if all its lines are done in no time: its work, and what came of it."""
    paths = launch.walk(launch.shape.wavefronts)
    demands = demands_of(launch.code, paths, launch.device)
    bundles = {part: ALL for demand in demands for part in demand.experiment.bundles}
    accesses_ = frozenset(at for demand in demands for at in demand.accesses)
    work = pack(freed(paths, Experiment(bundles, accesses_)), launch.shape.group_wavefronts)
    return work, run(work, launch.device, launch.active)


def faults(prices: Prices) -> list[str]:
    """How prices break the law, as texts; none if they keep it."""
    found = []
    for line in prices.lines:
        name = f"line {line.line}"
        if not line.low <= line.price <= line.high:
            found.append(f"{name}: {line.price} isn't from {line.low} to {line.high}")
        if line.high > 1:
            found.append(f"{name}: a price of {line.high}, above the launch")
        if not line.runs and (line.price, line.share) != (0, 0):
            found.append(f"{name} never runs, and costs {line.price}")
    return found + _bundle_faults(prices) + _free_faults(prices)


def _bundle_faults(prices: Prices) -> list[str]:
    """Lines of an ALU-bound loop whose price isn't their share of the launch. Wavefronts that wait
    for each other at fences aren't bound by the ALU alone.
    """
    report = prices.report
    launch = report.launch
    assert launch is not None
    paths = launch.walk(report.wavefronts)
    kinds = {clause.kind for path in paths for body, _ in path.segments for clause in body}
    if BARRIER in kinds or occupied(paths, report) < BOUND:
        return []
    brief = _lines_of_brief_clauses(paths, launch.code)
    return [
        f"line {line.line} costs {line.price:.4f} and works for {line.share:.4f} of the launch"
        for line in prices.lines
        if line.unit == "ALU" and line.runs > report.wavefronts and line.work.id not in brief
        if abs(line.price - line.share) > NEAR
    ]


def occupied(paths: list[Path], report: Report) -> float:
    """The share of the time in which clauses keep the ALU: with bundles, or to get going."""
    device = report.device
    clocks = 0.0
    for path in paths:
        for body, turns in path.segments:
            lengths = [
                clause.bundles * device.result_clocks + device.clause_clocks
                for clause in body
                if clause.kind == ALU
            ]
            clocks += turns * len(path.wavefronts) * sum(lengths)
    together = device.result_clocks / device.bundle_clocks
    return clocks / together / device.simd_engines / report.clocks


def _lines_of_brief_clauses(paths: list[Path], code: Code) -> set[LineId]:
    """The lines with bundles in a clause of fewer than ``BRIEF``. Such a clause may wait for others
    however short it is: wavefronts meet at it one after another.
    """
    clauses = [clause for path in paths for body, _ in path.segments for clause in body]
    numbers = {
        at for clause in clauses if clause.bundles < BRIEF for at, _ in bundle_shares(code, clause)
    }
    body = code.program.body
    return {(body[at].line, tuple(body[at].calls)) for at in numbers}


def _free_faults(prices: Prices) -> list[str]:
    """What is left of a launch in which all lines are free."""
    launch = prices.report.launch
    assert launch is not None
    work, outcome = everything_free(launch)
    found = [f"all is free, and {n} is {c}" for n, c in outcome.counts.items() if c]
    device = launch.device
    most = device.switch_clocks + 2 * device.clause_clocks * launch.active
    rounds = -(-launch.shape.wavefronts // launch.round)
    if outcome.end_clock > rounds * max(work.clauses_run) * most:
        found.append(f"all is free, and the launch takes {outcome.end_clock} clocks")
    board = replace(device, switch_clocks=0, clause_clocks=0)
    _, outcome = everything_free(replace(launch, device=board))
    if outcome.end_clock:
        found.append(f"clauses are free, too, and the launch takes {outcome.end_clock} clocks")
    return found


def random_prices(rng: random.Random) -> Prices:
    """The prices of a block of any size, or of a program of any accesses, fences or arithmetic."""
    program = rng.choice((None, accesses, groups, alu_loop))
    if program is None:
        block = write(*rng.choice(ENTRIES))
        return ck.price(block, rng.randint(64, 400), k=rng.randint(8, 200), progress=False)
    shape = program(rng)
    return ck.price(compile(shape.program), launch=shape, progress=False)


def priced(rng: random.Random) -> None:
    """Check that the prices of a random launch keep the law."""
    try:
        prices = random_prices(rng)
    except (CompileError, DataDependentError, ValueError) as error:
        assert str(error), "an error without words"
        return
    wrong = faults(prices)
    assert not wrong, "\n".join([*wrong, str(prices), str(prices.report)])
