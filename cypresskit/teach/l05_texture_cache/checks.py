"""Lesson 05: clocks of an iteration, by unit, and the checks of its exercises on quads and cache
lines.
"""

from collections.abc import Callable

import numpy as np

from cypresskit.compiler import compile
from cypresskit.devices import HD5870
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.samples import record_traffic
from cypresskit.machine.traffic import Access
from cypresskit.published import AS_MEASURED, conditions
from cypresskit.published import kernel as published
from cypresskit.teach.check import check_rng
from cypresskit.teach.climb import climb_exercise
from cypresskit.teach.formula import formula_exercise
from cypresskit.timing.simulate import simulate
from cypresskit.timing.units.lds_banks import access_clocks
from cypresskit.timing.work import quad_clocks

TEXEL = 16  # bytes
# Gflop/s of one flop per work-item and clock; each engine runs one wavefront
RATE = HD5870.wavefront * HD5870.simd_engines * HD5870.clock_ghz


def counting(place: Callable[[int, int, int], object]) -> Callable[[list, int], int]:
    """Return a function of (texels, width) that counts the distinct ``place(x, y, width)``."""
    return lambda texels, width: len({place(x, y, width) for x, y in texels})


def four_texels() -> tuple:
    """Return four random texels, and a random width of their texture."""
    texels = [(check_rng.randrange(9), check_rng.randrange(9)) for _ in range(4)]
    return texels, check_rng.randrange(9, 99)


@formula_exercise(
    [
        ([(1, 2)] * 4, 16),
        ([(0, 0), (1, 0), (2, 0), (3, 0)], 16),
        ([(0, 5), (2, 5), (4, 5), (6, 5)], 16),
        ([(0, 0), (2, 0), (0, 1), (2, 1)], 16),
        ([(4, 7), (4, 8)] * 2, 32),
        ([(0, 0), (4, 1), (8, 2), (12, 3)], 16),
        ([(4, 0), (1, 1), (2, 1), (4, 2)], 10),
    ],
    {
        "this counts distinct texels; four adjacent texels of a row share a line.": counting(
            lambda x, y, w: (x, y)
        ),
        "a line may end in the next row, if rows aren't a multiple of four long. "
        "Number the texels consecutively, row after row.": counting(lambda x, y, w: (x // 4, y)),
        "the row counts too: texels with the same x may be in different lines.": counting(
            lambda x, y, w: x // 4
        ),
        "this counts rows; a row has many lines.": counting(lambda x, y, w: y),
        "row y begins at texel y * width, not column x.": counting(
            lambda x, y, w: (x * w + y) // 4
        ),
        "a line has 64 bytes, and so has room for four texels, not 16.": counting(
            lambda x, y, w: (y * w + x) // 16
        ),
        "a line has 64 bytes, a texel 16: divide by four.": counting(
            lambda x, y, w: (y * w + x) // 64
        ),
        "a set keeps each line once; this counts every texel.": lambda texels, width: 4,
    },
    "number the texels row after row, as in memory: which number has (x, y)? Which line?",
    draw=four_texels,
)
def check_lines(texels, width):
    """Exercise 1: ``lines(texels, width)`` counts the 64-byte lines of four texels (x, y) of 16
    bytes, in a texture of ``width`` texels whose rows follow each other in memory.
    """
    return len({(y * width + x) // 4 for x, y in texels})


@climb_exercise("05")
def check_numbering(mine: Kernel) -> str:
    """Exercise 2: the numbering of an 8 x 8 compute kernel's work-items, whose quads are to be
    squares.
    """
    clocks = {0: 0, 1: 0}
    for access in record_traffic(mine, k=mine.k_step).accesses:
        if access.kind == "fetch" and access.resource in clocks:
            clocks[access.resource] += fetch_clocks(access, 16)
    return f"with {clocks[0]} clocks of the texture unit for A and {clocks[1]} for B per iteration"


def fetch_clocks(fetch: Access, width: int) -> int:
    """Return the clocks of a wavefront's fetch, 16 quads, from a texture ``width`` texels wide, by
    the timing model's rule.
    """
    assert fetch.x is not None and fetch.y is not None
    addresses = TEXEL * (fetch.y * width + fetch.x).astype(np.int64).reshape(16, 4)
    return sum(int(quad_clocks(quad, np.ones(4, bool), HD5870.texture_banks)) for quad in addresses)


def iteration_clocks(name: str) -> dict[str, int]:
    """Return the clocks for which an iteration of a kernel's main loop keeps each unit busy, for
    one wavefront: "ALU" as compiled, "texture" and "LDS" as in a recorded run. Conflicts with other
    wavefronts aren't counted.
    """
    code = compile(KERNELS[name].program)
    traffic = record_traffic(name, k=16)  # rows of A are whole lines
    first = next(n for n, access in enumerate(traffic.accesses) if access.kind == "fetch")
    starts = [
        n for n, access in enumerate(traffic.accesses) if access.at == traffic.accesses[first].at
    ]
    iteration = traffic.accesses[starts[0] : starts[1]]
    widths = {n: surface.width for n, surface in traffic.launch.textures.items()}
    return {
        "ALU": HD5870.bundle_clocks * sum(len(control.bundles) for control in code.main_loop),
        "texture": sum(
            fetch_clocks(access, widths[access.resource])
            for access in iteration
            if access.kind == "fetch"
        ),
        "LDS": lds_clocks(iteration),
    }


def lds_clocks(accesses: list[Access]) -> int:
    """Return the LDS clocks of the accesses to the LDS."""
    requests = [
        (a.addresses[np.newaxis], a.active[np.newaxis]) for a in accesses if a.addresses is not None
    ]
    return sum(int(access_clocks(addresses, HD5870, active)[0]) for addresses, active in requests)


def ceiling(name: str) -> tuple[int, int, float]:
    """Return (ALU clocks, texture clocks, Gflop/s) of an iteration in which a work-item does 128
    flops, if the slower unit never paused.
    """
    clocks = iteration_clocks(name)
    return clocks["ALU"], clocks["texture"], 128 * RATE / max(clocks.values())


def quads_table() -> str:
    """Tabulate banks and clocks of a fetch by the first quad, for k = 6, in pixel and in compute
    shaders. A work-item computes a 4 x 4 block of doubles. Textures are 64 texels wide.
    """
    square = [(0, 0), (1, 0), (0, 1), (1, 1)]
    in_a_row = [(0, 0), (1, 0), (2, 0), (3, 0)]
    rows = []
    for mode, quad in (("pixel", square), ("compute", in_a_row)):
        for matrix, texels in (
            ("B", [(2 * x, 6) for x, _ in quad]),
            ("A transposed", [(2 * y, 6) for _, y in quad]),
            ("A as it is", [(3, 4 * y) for _, y in quad]),
        ):
            words = sorted({y * 64 + x for x, y in texels})
            banks = [word % HD5870.texture_banks for word in words]
            clocks = max(map(banks.count, banks))
            rows.append(f"{mode:7} {matrix:12} banks {banks}, clocks: {clocks}")
    return "\n".join(rows)


def measured_table() -> str:
    """Tabulate speeds for both ways of storing A: published, their ceiling, and modeled."""
    rows = ["kernel    N at best   measured   ceiling    modeled"]
    for name in ("dgemm_tn", "dgemm_nn"):
        row = published(name)
        report = simulate(name, row["n_at_max"], **conditions(name).options)
        off = report.gflops / row["gflops_max"] - 1
        modeled = f"{ceiling(name)[2]:9.0f} {report.gflops:10.0f}  ({100 * off:+.1f} %)"
        rows.append(f"{name}  {row['n_at_max']:9} {row['gflops_max']:10} {modeled}")
    return "\n".join([*rows, AS_MEASURED])


def limit(f, b, c):
    """Return the Gflop/s of a loop whose iteration has ``f`` flops of a work-item, ``b`` bundles
    and ``c`` clocks of fetches.
    """
    return f * RATE / max(4 * b, c)


@formula_exercise(
    [(256, 31, 128), (8, 89, 64), (128, 68, 256), (128, 68, 384), (512, 75, 320)],
    {
        "the flops are those of one work-item; a wavefront has 64.": lambda *case: (
            limit(*case) / 64
        ),
        "a wavefront has 64 work-items, on 16 thread processors.": lambda *case: limit(*case) / 4,
        "there are 20 SIMD engines.": lambda *case: limit(*case) / 20,
        "how many clocks are there in a second?": lambda *case: limit(*case) / 0.85,
        "in Gflop/s: use the clock in GHz, 0.85.": lambda *case: 1e9 * limit(*case),
        "in Gflop/s: use the clock in GHz, 0.85, not 850.": lambda *case: 1e3 * limit(*case),
        "a multiply-add counts as two flops already.": lambda *case: 2 * limit(*case),
        "this is a time for each flop; the speed is flops over time.": lambda *case: (
            1 / limit(*case)
        ),
        "they compute and fetch at the same time: which takes longer?": lambda f, b, c: (
            f * RATE / (4 * b + c)
        ),
        "the iteration takes as long as its slower unit, not the faster one.": lambda f, b, c: (
            f * RATE / min(4 * b, c)
        ),
        "a bundle of a wavefront takes 4 clocks.": lambda f, b, c: f * RATE / max(b, c),
        "a bundle of a wavefront takes 4 clocks: 16 of 64 work-items in each.": lambda f, b, c: (
            limit(f, 4 * b, c)
        ),
        "`clocks` already covers all fetches of an iteration.": lambda f, b, c: limit(f, b, 16 * c),
        "the texture unit has to keep up as well.": lambda f, b, c: f * RATE / (4 * b),
        "the arithmetic takes its time as well.": lambda f, b, c: f * RATE / c,
    },
    "flops of a wavefront, over the clocks of an iteration, times engines, times clocks per second"
    " (in units of 10^9).",
    " Gflop/s",
    name="ceiling_of",
    draw=lambda: (
        check_rng.randint(1, 10 * (bundles := check_rng.randint(30, 90))),
        bundles,
        check_rng.randint(64, 384),
    ),
)
def check_ceiling(f, b, c):
    """Exercise 3: ``ceiling_of(flops, bundles, clocks)``, the Gflop/s of ``limit``."""
    return limit(f, b, c)
