"""What the expressions of facts.toml may name."""

import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import ceil

import numpy as np
from answers.l12 import loop_tested_last
from answers.l14 import RUN, make_function
from changed_texts import count_correct_share

import cypresskit as ck
from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.compiler import compile
from cypresskit.editing.steps import reference_kernel, starter_text
from cypresskit.host.rates import kernel_rate
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.samples import record_traffic
from cypresskit.teach.l02_why_blocks.checks import simulate_block
from cypresskit.teach.l05_texture_cache import checks as texture_cache
from cypresskit.teach.l06_double_double import checks as double_double
from cypresskit.teach.l07_lds.checks import busiest_bank
from cypresskit.teach.l12_contest.checks import generate_kernel
from cypresskit.teach.l13_what_is_left import checks as gpu
from cypresskit.teach.l14_build_the_clock import checks as clock
from cypresskit.teach.l14_build_the_clock.choose import FITTED, Clock, Scattered
from cypresskit.teach.l14_build_the_clock.modeled import modeled
from cypresskit.timing import simulate
from cypresskit.today import figures, record

# -- Cypress


@cache
def _gflops(name, changes, size):
    return ck.simulate(name, **dict(size), device=replace(ck.HD5870, **dict(changes))).gflops


def gflops(name, n=0, m=0, k=0, beta=0.0, count=1, **changes):
    """The modeled speed of a kernel on a board with these changes."""
    sides = {word: side for word, side in {"n": n, "m": m, "k": k}.items() if side}
    size = sides | {"beta": beta, "count": count}
    return _gflops(name, tuple(changes.items()), tuple(size.items()))


@cache
def by_llvm():
    """The speed of each row of lesson 03's table of LLVM's code."""
    return {name: speed for name, *_, speed in ck.teach.bundles.llvm_table().values}


def shuffled(mads):
    """The order in the solution of lesson 03."""
    return random.Random(4).sample(mads, len(mads))


def own(kernel, overhead=7.0, pause=40.0, memory=320.0, wavefronts=0, scatter=0.0):
    """Gflop/s of a kernel by lesson 14's clock."""
    right = Clock(clock.right_steps, clock.right_rows)
    return right.speed(kernel, overhead, pause, memory, wavefronts, scatter)


def scattered(percent, seed, kernel, **more):
    """Gflop/s of a kernel by lesson 14's clock, with data at random up to so many percent early or
    late.
    """

    def run(steps, *launch):
        return clock.right_rows(Scattered(steps, percent, seed), *launch)

    return Clock(clock.right_steps, run).speed(kernel, **more)


def thirteen_over_ten(*numbers):
    """The clocks of 13 wavefronts of sgemm_tn on ten slots, over those of ten."""
    steps = clock.right_steps(clock.clauses("sgemm_tn"), *numbers)
    return clock.last_clock(clock.right_rows(steps, 13, 512, 10)) / clock.last_clock(
        clock.right_rows(steps, 10, 512)
    )


def last_clock_by_hand(places):
    """When the wavefronts of the first section end, if the ALU has these places."""
    return clock.last_clock(make_function(RUN, "[0, 0]", places)(clock.BY_HAND, 2, 2))


def serves_later_ones_first():
    """The clocks of ten wavefronts if the one that has done the least comes first, over those if
    the one comes first that is ready earliest.
    """
    least = "now, w, n = min(ready, key=lambda r: (r[2], r[0])); ready.remove((now, w, n))"
    run = make_function(RUN, "now, w, n = heappop(ready)", least)
    steps = clock.right_steps(clock.clauses("sgemm_tn"), *clock.USUAL)
    return clock.last_clock(run(steps, 10, 50)) / clock.last_clock(
        make_function(RUN)(steps, 10, 50)
    )


def waits_for_memory(kernel):
    """The share of TEX clauses that wait for a line from memory: for longer than L2 takes."""
    report = ck.simulate(kernel, m=3840, n=1280, k=512)
    flights = [event.end - event.served for event in report.timeline if event.kind == "TEX"]
    return float(np.mean(np.array(flights) > 1.2 * ck.HD5870.l2_clocks))


def skewed(x, y):
    """A rule of banks by which no quad of TN or NN waits."""
    return (x + y // 4) % 4


def diagonal(x, y):
    """A rule of banks by which texels above each other are in different banks."""
    return (x + y) % 4


@cache
def fetch_clocks(name, resource, rule=None):
    """The texture unit's clocks for the first fetch of a matrix, 16 quads."""
    banks = rule or (lambda x, y: x % 4)
    fetch = fetches(name, resource)[0]
    quads = np.stack([fetch.x, fetch.y], axis=-1).reshape(16, 4, 2).tolist()
    return sum(_busiest({tuple(texel) for texel in quad}, banks) for quad in quads)


def _busiest(texels, banks):
    held = [banks(x % 16, y % 16) for x, y in texels]
    return max(map(held.count, held))


def bundles(name):
    """The bundles of an iteration."""
    kernel = reference_kernel(name) if name.startswith("block_") else ck.kernels[name]
    return sum(len(control.bundles) for control in compile(kernel.program).main_loop)


@cache
def pipeline(stages, k, kernel="dgemm_tn", chips=2, share=0.0, bus=1.0, pads=True):
    """Gflop/s of a pipeline of lesson 11."""
    host = replace(ck.host.Machine().host, dma_gb_s=6.0 * bus, pcie_gb_s=8.0 * max(bus, 1))
    machine = ck.host.Machine(ck.HD5970, host, chips, pads)
    make = getattr(ck.host, stages)
    return make(16384, 16384, k, machine, kernel=kernel, cpu_share=share).gflops


def transfers(n, bus=3.0, kernel=450.0):
    """Gflop/s with transfers, by lesson 09's model."""
    return ck.host.rate_with_transfers(n, bus * 1e9, kernel * 1e9) / 1e9


def saved_without_c(n):
    """The share of a product's time that is saved if the old C isn't sent, by lesson 09's model."""
    bus, kernel = ck.host.transfer_seconds(n, 3e9), ck.host.kernel_seconds(n, 450e9)
    return bus / 4 / (bus + kernel)


def largest_block(strips):
    """The largest block of a gigabyte that holds so many strips and three blocks, by lesson 10."""
    blocks = range(128, 8192, 128)
    return max(b for b in blocks if 8 * (strips * 16384 * b + 3 * b * b) <= ck.HD5870.memory_bytes)


@cache
def blocked(block, **changes):
    """Gflop/s of lesson 10's product, with a host that is changed."""
    machine = ck.host.Machine(ck.HD5870, replace(ck.host.Machine().host, **changes))
    return ck.host.blocked_timeline(7168, 7168, 7168, machine, block=block).gflops


@cache
def adapted():
    """Gflop/s after the CPU's share was adapted to what was measured."""
    calls = ck.host.adapt_cpu_share(16384, 16384, 2048, ck.host.Machine(ck.HD5970), calls=3)
    return [timeline.gflops for _, timeline in calls][-1]


def blocks_make_the_product():
    """Whether each block of C is a strip of A times a strip of B."""
    a, b = np.random.default_rng(10).integers(-9, 10, (2, 8, 8))
    parts = [[a[i : i + 4] @ b[:, j : j + 4] for j in (0, 4)] for i in (0, 4)]
    return np.array_equal(np.block(parts), a @ b)


def sums_are_exact():
    """Whether Knuth's two-sum finds all that is lost."""
    rng = random.Random(6)
    pairs = [(rng.gauss(0, 1), rng.gauss(0, 1) * 2.0 ** rng.randint(-60, 60)) for _ in range(999)]
    losses = [(a, b, a + b, (a - (a + b - (a + b - a))) + (b - (a + b - a))) for a, b in pairs]
    return all(Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b) for a, b, s, e in losses)


def products_are_exact():
    """Whether what a product loses fits into a double."""
    a, b = np.random.default_rng(6).standard_normal((2, 999))
    lost = [Fraction(x) * Fraction(y) - Fraction(x * y) for x, y in zip(a.tolist(), b.tolist())]
    return all(Fraction(float(loss)) == loss for loss in lost)


def shorter_sums_are_more_accurate():
    """Whether four partial sums of random floats have a smaller mean error than one sum."""
    rows = np.random.default_rng(8).standard_normal((200, 2048)).astype(np.float32)
    exact = rows.astype(float).sum(axis=1)
    whole = np.abs(np.cumsum(rows, axis=1)[:, -1] - exact).mean()
    parts = np.cumsum(rows.reshape(200, 512, 4), axis=1)[:, -1].sum(axis=1)
    return bool(np.abs(parts - exact).mean() < 0.7 * whole)


def lds_clocks_of(words, rule=()):
    """The LDS's clocks for sixteen requests at once."""
    board = replace(ck.HD5870, lds_bank=rule)
    requested = np.zeros((1, 1, 64), np.int64)
    requested[0, 0, :16] = list(words)[:16]
    return int(access_clocks(4 * requested, board, np.arange(64)[np.newaxis] < 16)[0])


def lds_clocks(name, rule=()):
    """The LDS's clocks of an iteration, by a rule of banks."""
    board = replace(ck.HD5870, lds_bank=rule)
    found = [a for a in record_traffic(name, k=4).accesses if a.addresses is not None]
    requests = [(a.addresses[np.newaxis], a.active[np.newaxis]) for a in found]
    return sum(int(access_clocks(addresses, board, active)[0]) for addresses, active in requests)


def without_fence(name):
    """A kernel of the catalog without its barriers."""
    text = ck.kernels[name].text.replace("fence_threads_lds\n", "\n")
    return ck.load_kernel(text, like=name, name="unfenced")


def fetches(name, resource):
    """The recorded fetches of a matrix by a wavefront."""
    return [f for f in record_traffic(name, k=16).accesses if f.resource == resource]


def block(size, **changes):
    """Gflop/s of lesson 02's plain kernel with a square block, on a board with these changes."""
    return simulate_block(size, 2048, replace(ck.HD5870, **changes)).gflops


def unrolled(steps, n, side=8, **changes):
    """Gflop/s of lesson 12's kernel with this many values of k per iteration."""
    kernel = ck.teach.contest.generate_kernel(side, side, steps)
    return gflops(kernel, n, **changes)


def last_over_first(**changes):
    """How many times as fast lesson 12's block of 12 x 8 is with the test at its loop's end."""
    kernels = loop_tested_last(12, 8, 3), ck.teach.contest.generate_kernel(12, 8, 3)
    last, first = (gflops(kernel, 2048, **changes) for kernel in kernels)
    return last / first


def small_bundles(*lines):
    """The bundles of these lines of IL."""
    return len(ck.teach.bundles.bundle_table({"": lines}).rows)


def row_by_row():
    """The bundles of an iteration of lesson 03's loop before its multiply-adds are sorted."""
    kernel = ck.compile(ck.assemble(ck.teach.starter_text("03"), "03.il"))
    return sum(len(control.bundles) for control in kernel.main_loop)


def share_correct(first):
    """The share of C that lesson 02's whole kernel computes correctly with this first line."""
    kernel = reference_kernel("four_outputs_tn")
    text = kernel.text.replace("add r0.xy, vWinCoord0.yx, l0.x", first)
    return float(count_correct_share(replace(kernel, text=text)))


def texel_words(name):
    """The numbers of a matrix that a fetch brings."""
    stats = statistics(name)
    return stats.fetch_bytes // stats.fetches // BYTES[reference_kernel(name).precision]


def statistics(name):
    """The kernel statistics of a kernel of the catalog or of a lesson."""
    return ck.kernel_stats(reference_kernel(name))


@cache
def products_cost_more(**changes):
    """By how much a line of products costs more than a fetch in lesson 03, as a share of all."""
    report = ck.simulate("sgemm_tn", 1280, device=replace(ck.HD5870, **changes))
    costs = {line.work.line: line.cost for line in ck.line_costs(report).lines}
    text = dict(enumerate(ck.kernels["sgemm_tn"].text.splitlines(), 1))
    product = next(n for n in costs if "mad r10, r2.x, r4, r10" in text[n])
    fetch = next(n for n in costs if "sample_resource(0)" in text[n])
    return costs[product] - costs[fetch]


def words_per_product(name):
    """The words that a whole kernel of lessons 02 and 12 fetches per product."""
    kernel = reference_kernel(name)
    names = [i.op.name for i in kernel.program.body]
    fetches = sum(name.startswith("sample") for name in names)
    return 4 * fetches / (4 * names.count("mad"))


def idle(report):
    """For each clock of engine 0, whether no wavefront computes."""
    alone = np.ones(int(max(event.end for event in report.timeline)), bool)
    for event in report.timeline:
        if event.kind == "ALU":
            alone[int(event.start) : int(event.end)] = False
    return alone


# -- a current GPU


def gained(warps):
    """How many times as fast the kernel is if no warp waits for memory."""
    return figures("two rows: L1")[warps] / figures("two rows: memory")[warps]


def gpu_registers(case):
    return next(row["registers"] for row in record()["rows"] if row["case"] == case)


def load_clocks(words):
    """Return the clocks of a warp's load in L1, by lesson 07's rule: the different words of the
    busiest bank, and at most four lines of 32 words per clock.
    """
    return max(busiest_bank(words), ceil(len({word // 32 for word in words}) / 4))


def iteration_needs():
    """Return the clocks that a warp of 8 x 4 threads, each with 8 x 8 of C, needs per iteration: of
    the arithmetic, and of L1 for its loads with A transposed (TN) or not (NN).
    """
    row = record()["n"]
    of_b = load_clocks([8 * (lane % 8) for lane in range(32)])
    of_a = {
        kind: load_clocks([apart * (lane // 8) for lane in range(32)])
        for kind, apart in (("TN", 8), ("NN", 8 * row))
    }
    needs = {"multiply-adds": 8 * 8 * 32 // 128}
    return needs | {kind: 8 * (clocks + of_b) for kind, clocks in of_a.items()}


def near(figure, said, off=0.05):
    return abs(figure / said - 1) < off


#: All that facts.toml may name: sizes with many rounds of a kernel in single precision and in
#: double; boards; a reader's clock; what others have; and the functions above.
KNOWN = {
    "ROUNDS": {"m": 3840, "n": 1024, "k": 128},
    "FULL": {"n": 1280, "k": 256},
    "LONG": {"m": 3840, "n": 1024, "k": 1024},
    "FULL_ROUNDS": {"m": 2560, "n": 3520, "k": 2048},  # ten of 220 wavefronts, eleven of 200
    "NEAR": {"l1_clocks": 4, "l2_clocks": 4, "dram_clocks": 4},  # next to no latency
    "ELEVEN": {"register_pool": 26 * 11},  # room for eleven wavefronts with two values of k
    "FITTED": FITTED,
    "modeled": modeled,
    "own_clock": Clock(clock.right_steps, clock.right_rows),
    "ck": ck,
    "gpu": gpu,
    "gain": gpu.gain,
    "generate_kernel": generate_kernel,
    "kernel_rate": kernel_rate,
    "starter_text": starter_text,
    "simulate": simulate,
    "texture_cache": texture_cache,
    "double_double": double_double,
    "clock": clock,
    "figures": figures,
    "loop_tested_last": loop_tested_last,
    "np": np,
    "reference_kernel": reference_kernel,
    "replace": replace,
    "simulate_block": simulate_block,
} | {
    name: value
    for name, value in globals().items()
    if getattr(value, "__module__", "") == __name__ and not name.startswith("_")
}
