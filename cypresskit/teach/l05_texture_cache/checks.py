"""Lesson 05: clocks of an iteration, by unit, and the checks of exercises on quads and banks."""

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np

from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.chip.work import BANK_SHIFT, bank_in_turn, busiest_bank
from cypresskit.compiler import compile
from cypresskit.devices import HD5870
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.samples import record_traffic
from cypresskit.lesson_table import Table
from cypresskit.machine.traffic import Access
from cypresskit.published import conditions
from cypresskit.published import kernel as published
from cypresskit.teach.check import (
    Verdict,
    check_rng,
    function_exercise,
    require,
)
from cypresskit.teach.climb import climb_exercise
from cypresskit.teach.formula import formula_exercise, result_of
from cypresskit.threads import map_in_threads
from cypresskit.timing.as_published import simulate_published

Texel = tuple[int, int]  # column and row
TEXEL = 16  # bytes
PERIOD = 16  # columns and rows after which a rule of banks repeats
# Gflop/s of one flop per work-item and clock; each engine runs one wavefront
RATE = HD5870.wavefront * HD5870.simd_engines * HD5870.clock_ghz


@cache
def quad_texels() -> dict[str, set[frozenset[Texel]]]:
    """Return, by matrix, the texels that a quad of ``dgemm_tn`` or ``dgemm_nn`` requests at once,
    as recorded; columns and rows are modulo ``PERIOD``, in which a rule of banks repeats.
    """
    found: dict[str, set[frozenset[Texel]]] = {}
    for name in ("dgemm_tn", "dgemm_nn"):
        for fetch in record_traffic(name, k=2 * PERIOD).accesses:
            matrix = f"{'AB'[fetch.resource]} of {name}"
            assert fetch.x is not None and fetch.y is not None
            x, y = fetch.x % PERIOD, fetch.y % PERIOD
            quads = np.stack([x, y], axis=-1).reshape(-1, 4, 2).tolist()
            texels = {frozenset((x, y) for x, y in quad) for quad in quads}
            found.setdefault(matrix, set()).update(texels)
    return found


@function_exercise
def check_bank(bank: Callable) -> Verdict:
    """Exercise 1: ``bank(x, y)`` is the bank of a texel, so that no quad requests two texels of a
    bank, and all banks hold equally many.
    """
    count = HD5870.texture_banks
    kind = f"it is called with x and y from 0 to {PERIOD - 1} and returns a bank: 0, 1, 2 or 3."
    banks: dict[Texel, int] = {}
    for y in range(PERIOD):
        for x in range(PERIOD):
            call = f"bank({x}, {y})"
            number = result_of(call, bank, (x, y), kind)
            whole = "use // and %: a bank is a whole number." if number % 1 else kind
            if number >= count:
                whole = f"it is below {count} if `% {count}` comes last: use //, not / and `round`."
            is_bank = number in range(count)
            require(is_bank, f"{call} returns {number:g}; the banks are 0 to {count - 1}.", whole)
            banks[x, y] = int(number)

    for matrix, quads in quad_texels().items():
        for one, other in sorted(pair for quad in quads for pair in combinations(sorted(quad), 2)):
            message = f"{matrix}: a quad requests texels {one} and {other}, both from bank"
            differ = "x" if one[1] == other[1] else "y"
            place = f"the two differ in {differ} alone: how does your bank depend on {differ}?"
            require(banks[one] != banks[other], f"{message} {banks[one]}.", place)
    held = [list(banks.values()).count(number) for number in range(count)]
    require(
        len(set(held)) == 1,
        f"No quad waits, but of the {PERIOD**2} texels the banks hold {held}.",
        "a bank that holds more than the others fills up while they are empty: use all four alike.",
    )
    return Verdict(
        True, f"No quad of the two kernels waits for a bank, and each bank holds {held[0]} texels."
    )


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
    banks, every = bank_in_turn(addresses, HD5870), np.ones(4, bool)
    return sum(int(busiest_bank(*quad, every, BANK_SHIFT)) for quad in zip(addresses, banks))


def unit_clocks(name: str) -> dict[str, int]:
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
    clocks = unit_clocks(name)
    return clocks["ALU"], clocks["texture"], 128 * RATE / max(clocks.values())


def quad(shader: str, matrix: str) -> dict[str, object]:
    """Return the banks that the first quad of a "pixel" or "compute" shader requests for k = 6, and
    its clocks. A work-item computes a 4 x 4 block of doubles. Textures are 64 texels wide.
    """
    items = [(0, 0), (1, 0), (0, 1), (1, 1)] if shader == "pixel" else [(n, 0) for n in range(4)]
    texels = {
        "B": {(2 * x, 6) for x, _ in items},
        "A transposed": {(2 * y, 6) for _, y in items},
        "A as it is": {(3, 4 * y) for _, y in items},
    }
    banks = [(y * 64 + x) % HD5870.texture_banks for x, y in sorted(texels[matrix])]
    return {"banks": ", ".join(map(str, banks)), "clocks": max(map(banks.count, banks))}


def measured() -> Table:
    """Tabulate speeds for both ways of storing A: published, their ceiling, and modeled."""
    names = "dgemm_tn", "dgemm_nn"
    rows = []
    for name, report in zip(names, map_in_threads(simulate_published, names)):
        row, speed = published(name), report.gflops
        best = row["gflops_max"]
        rows.append([name, row["n_at_max"], best, ceiling(name)[2], speed, speed / best])
    heads = ["kernel", "N", "measured, Gflop/s", "ceiling", "modeled", "modeled / measured"]
    return Table(heads, rows, note=f"{conditions('dgemm_tn')}")


def limit(f, b, c):
    """Return the Gflop/s of a loop whose iteration has ``f`` flops of a work-item, ``b`` bundles
    and ``c`` clocks of fetches.
    """
    return f * RATE / max(4 * b, c)


def mistakes_in_ceiling(f, b, c):
    """Return what each mistake gives."""
    right = limit(f, b, c)
    return {
        "the flops are those of one work-item; a wavefront has 64.": right / 64,
        "a wavefront has 64 work-items, on 16 thread processors.": right / 4,
        "an engine's 80 units are counted in `bundles`: use the 64 work-items of a wavefront.": (
            1.25 * right
        ),
        "an engine's 80 units are counted in `bundles`: use the 64 work-items of a wavefront. And"
        " how many clocks are there in a second?": 1.25 * right / 0.85,
        "`flops` already has two for each multiply-add, and a wavefront has 64 work-items, not the"
        " 80 units of an engine.": 2.5 * right,
        "a wavefront has 64 work-items, not the 80 units of an engine. And they compute and fetch"
        " at the same time: which takes longer?": 1.25 * f * RATE / (4 * b + c),
        "a wavefront has 64 work-items, not the 80 units of an engine. And a bundle takes 4"
        " clocks.": 1.25 * f * RATE / max(b, c),
        "these are the flops of a work-item per clock. How many work-items has a wavefront, how"
        " many engines has the chip, and how many clocks has a second?": right / RATE,
        "these are the flops of an engine per clock. How many engines are there, and how many"
        " clocks in a second?": 64 * right / RATE,
        "these are the flops of an engine per clock, if it only fetched: the arithmetic takes its"
        " time as well, there are 20 engines, and a second has 0.85 billion clocks.": 64 * f / c,
        "this is a work-item's flops per clock, if it only fetched: which takes longer, fetches or"
        " arithmetic? Then: work-items of a wavefront, engines, clocks per second.": f / c,
        "20 engines work at the same time: multiply.": right / 400,
        "a higher clock makes the chip faster: multiply by 0.85.": right / 0.85**2,
        "a bundle takes 4 clocks of a wavefront, and `clocks` counts single ones.": 4 * right,
        "there are 20 SIMD engines.": right / 20,
        "how many clocks are there in a second?": right / 0.85,
        "in Gflop/s: use the clock in GHz, 0.85.": 1e9 * right,
        "in Gflop/s: use the clock in GHz, 0.85, not 850.": 1e3 * right,
        "a multiply-add counts as two flops already.": 2 * right,
        "this is a time for each flop; the speed is flops over time.": 1 / right,
        "they compute and fetch at the same time: which takes longer?": f * RATE / (4 * b + c),
        "a bundle takes 4 clocks of a wavefront; and they compute and fetch at the same time: which"
        " takes longer?": f * RATE / (b + c),
        "a bundle takes 4 clocks of a wavefront: its five slots work at the same time.": (
            f * RATE / max(5 * b, c)
        ),
        "the iteration takes as long as its slower unit, not the faster one.": (
            f * RATE / min(4 * b, c)
        ),
        "a bundle of a wavefront takes 4 clocks.": f * RATE / max(b, c),
        "a bundle of a wavefront takes 4 clocks: 16 of 64 work-items in each.": limit(f, 4 * b, c),
        "`clocks` already covers all fetches of an iteration.": limit(f, b, 16 * c),
        "`clocks` are counted for a wavefront, not for each of its work-items.": limit(
            f, b, 64 * c
        ),
        "the texture unit has to keep up as well.": f * RATE / (4 * b),
        "a bundle takes 4 clocks. And the texture unit has to keep up as well.": f * RATE / b,
        "the arithmetic takes its time as well.": f * RATE / c,
    }


@formula_exercise(
    [(256, 31, 128), (8, 89, 64), (128, 68, 256), (128, 68, 384), (512, 75, 320)],
    mistakes_in_ceiling,
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
