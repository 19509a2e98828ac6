"""Lesson 04: two kernels that differ in their registers, and the checks of its exercises."""

from dataclasses import replace

import numpy as np

from cypresskit.blas import gemm
from cypresskit.compiler import compile
from cypresskit.devices import HD5870, Device
from cypresskit.kernels import Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.lesson_table import Table
from cypresskit.teach.check import Verdict, exercise, require, type_with_article
from cypresskit.teach.climb import climb_exercise
from cypresskit.teach.formula import formula_exercise
from cypresskit.timing.simulate import simulate

PAIR = "sgemm_tn", "sgemm_tn_37"
ITSELF = "the wavefront itself computes too: an iteration is compute + wait clocks long"


def same_bits() -> bool:
    """Whether kernels of 25 and 37 registers give the same bits of 2 A^T B + 3 C, on random
    matrices.
    """
    a, b, c = np.random.default_rng(4).standard_normal((3, 128, 128)).astype(np.float32)
    few, many = (gemm(a, b, c, alpha=2, beta=3, trans_a=True, kernel=name) for name in PAIR)
    return np.array_equal(few, many)


def two_kernels() -> Table:
    """Return the registers and wavefronts of ``sgemm_tn`` and ``sgemm_tn_37``, and what an
    iteration of their loops does; and whether their C are the same.
    """
    rows = []
    for name in PAIR:
        s = kernel_stats(name)
        does = s.bundles_per_iteration, s.fetches, s.multiply_adds
        rows.append([name, s.gprs, s.wavefronts, *does])
    heads = ["kernel", "registers", "wavefronts", "bundles", "fetches", "multiply-adds"]
    note = "The bits of C are the same" if same_bits() else "C differs"
    return Table(heads, rows, note=f"{note}. Bundles, fetches and multiply-adds: of an iteration.")


@formula_exercise(
    [(2, 6), (1, 0), (4, 5), (108, 408), (124, 540), (300, 8)],
    lambda c, w: {
        "there are no half wavefronts: round up to the next whole number.": (c + w) / c,
        "round up, not down: 2 wavefronts that compute 4 clocks fill 8 of 4 + 5.": (c + w) // c,
        "round up, not to the nearest: 2 that compute 4 clocks fill 8 of 4 + 5.": (
            round((c + w) / c)
        ),
        f"{ITSELF}.": -(-w // c),
        f"{ITSELF}. Round up to a whole number.": w / c,
        f"{ITSELF}. Round up, not down.": w // c,
        "one too many where it comes out even: 4 wavefronts of 2 clocks fill 2 + 6.": w // c + 2,
        "one less would do.": -(-w // c) + 2,
        "the others compute in the wait: how many times does `compute` alone go into it?": (
            -(-w // (c + w)) + 1
        ),
        f"{ITSELF}. Round up, not to the nearest.": round(w / c),
        "these are the clocks of an iteration: how many times does `compute` go into them?": c + w,
        "the engine is busy while a wavefront computes: how many times does `compute`, not `wait`,"
        " go into an iteration?": -(-(c + w) // w) if w else 0,
        "the others fill all of the wait: don't take `compute` from it. Count this one, too.": (
            (w - c) / c
        ),
        "the others fill all of the wait, not `wait - compute`. Count the waiting one, too.": (
            -(-(w - c) // c)
        ),
        "a wavefront computes for `compute` clocks of an iteration, not for twice as many.": (
            -(-(c + w) // (2 * c))
        ),
        "inverted: how many times does `compute` go into an iteration?": c / (c + w),
        "inverted: how many times does `compute` go into the wait? And count the waiting one.": (
            -(-c // w) if w else 1
        ),
        "two less would do.": -(-w // c) + 3,
        "count the waiting wavefront as well: the others fill its wait.": max(1, -(-w // c)),
        "count the waiting wavefront as well, and round up.": max(1, w // c),
        "count the waiting wavefront as well, and round up, not to the nearest.": (
            max(1, round(w / c))
        ),
        "the waiting wavefront counts once; the others fill its wait once, too.": -(-w // c) * 2,
        "`%` gives what is left over: how many times does `compute` go into an iteration?": w % c,
        "these are clocks: how many times does `compute` go into an iteration?": w - c,
        "divide: how many times does `compute` go into an iteration?": c * w,
        "divide, don't multiply: how many times does `compute` go into an iteration?": (c + w) * c,
    },
    "while one wavefront waits, others compute: how many fill that time? Count the waiting one,"
    " too.",
)
def check_needed(c, w):
    """Exercise 1: ``needed(compute, wait)``, the least number of wavefronts that keeps an engine
    busy.
    """
    return -(-(c + w) // c)


def late_hint(mine: Kernel) -> str:
    """Return what saves registers next in a kernel that reads the old C."""
    lines = [line.partition(";")[0] for line in mine.text.splitlines()]
    opcodes = [(line.split() or [""])[0] for line in lines]
    reads = [n for n, line in enumerate(lines) if ", g[" in line]
    loop = opcodes.index("whileloop") if "whileloop" in opcodes else 0
    if any(n < loop for n in reads):
        return (
            "what is read above the loop holds its register all through it: move each read below"
            " `endloop`, beside its `mad`."
        )
    if any(opcodes[:n].count("if_logicalnz") <= opcodes[:n].count("endif") for n in reads):
        return (
            "put each read and its `mad` into the `if_logicalnz cb0[4].x`: outside, the compiler"
            " collects the reads."
        )
    return (
        "how many numbers of C wait at the same time? Read two registers, add them to the block,"
        " and use the same two for the next row."
    )


@climb_exercise("04", late_hint)
def check_c_late(mine: Kernel) -> str:
    """Exercise 2: an 8 x 8 kernel that adds beta * C, and reads it where that costs few
    registers.
    """
    registers = compile(mine.program).gprs
    room = HD5870.active_wavefronts(registers)
    return f"with {registers} registers and room for {room} wavefronts on an engine"


@exercise
def check_chip(chip: object) -> Verdict:
    """Exercise 3: an HD 5870 on which ``sgemm_tn_37`` just gets as many wavefronts as ``sgemm_tn``
    on the real one.
    """
    if not isinstance(chip, Device):
        return Verdict(
            False,
            f"my_chip is {type_with_article(chip)}.",
            "dataclasses.replace(ck.HD5870, ...) gives a device.",
        )
    same = replace(chip, name=HD5870.name, register_pool=HD5870.register_pool) == HD5870
    require(same, "Something other than register_pool was changed.", "start from ck.HD5870 again.")
    want = HD5870.active_wavefronts(25)
    registers = 37
    require(
        chip.register_pool >= registers,
        f"One wavefront of sgemm_tn_37 takes {registers} registers; the pool has"
        f" {chip.register_pool}.",
        "it counts registers, not wavefronts: multiply the two.",
    )
    room = chip.active_wavefronts(registers)
    fit = f"{room} wavefronts of sgemm_tn_37 fit" if room > 1 else "1 wavefront of sgemm_tn_37 fits"
    message = f"With {chip.register_pool} registers, {fit}; sgemm_tn has {want}"
    short = f"each of {want} wavefronts takes {registers} registers: how many is that?"
    if chip.register_pool == want * 25:
        short = f"25 are the registers of sgemm_tn. Those of sgemm_tn_37 are {registers}."
    require(room >= want, f"{message}.", short)
    least = f"each of {want} wavefronts takes {registers} registers: how many is that at least?"
    if chip.register_pool > HD5870.register_bytes // 16:
        least = "the pool counts registers of a wavefront, not of its 64 work-items, and not bytes."
    require(chip.register_pool <= want * registers, f"{message}. A smaller pool is enough.", least)
    slow, fast = (
        simulate("sgemm_tn_37", m=3840, n=1024, k=128, device=d).gflops for d in (HD5870, chip)
    )
    needs = f"{100 * (chip.register_pool / HD5870.register_pool - 1):.0f} % more registers"
    return Verdict(
        True,
        f"{needs}, and sgemm_tn_37 goes from {slow:,.0f} to {fast:,.0f} Gflop/s (modeled for a C of"
        " 3840 x 1024 and k = 128).",
    )


@formula_exercise(
    [(400, 300, 50), (300, 400, 50), (500, 20, 200), (90, 90, 300)],
    lambda first, second, work: {
        "the second fetch is still awaited: they were in flight together.": first,
        "that is the wait that is left. How much longer was it with the first fetch?": second,
        "if the second fetch takes longer, the wait stays as it is: nothing is saved.": (
            abs(first - second)
        ),
        "they start together: an iteration waits for the longer one, not for their sum.": (
            first + second
        ),
        "that is the wait for both. How long is the wait for the second one alone?": (
            max(first, second)
        ),
        "without the first fetch, the wait is `second`. How long was it with both?": (
            min(first, second)
        ),
        "that is an iteration with both fetches. How long is one without the first?": (
            max(first, second) + work
        ),
        "the work is done with and without the first fetch: it cancels.": first - second - work,
        "the work is done with or without the first fetch, so it cancels.": (
            max(first - second, 0) - work
        ),
        "the work begins when both fetches have arrived: it hides none of the wait.": first - work,
        "the work hides none of the wait: it begins when both fetches have arrived.": (
            max(first - work, 0)
        ),
        "that is what a free second fetch would save.": max(second - first, 0),
        "that is what an iteration still takes. How much shorter is it?": second + work,
        "a wait can't become shorter than nothing: what if the second fetch is the longer one?": (
            first - second
        ),
        "the work is done in both cases: it cancels.": max(first - second - work, 0),
        "the work cancels, whichever fetch is the longer one: it is done in both cases.": (
            first - second - work if first > second else work
        ),
        "if the second fetch is the longer one, 0 clocks are saved, not `work`, which is done in"
        " both cases.": max(first - second, work),
        "without the first fetch the wait is `second`, however long the work is.": (
            max(first, second) - max(second, work)
        ),
    },
    "the work begins when both fetches have arrived. How long does an iteration take with both, and"
    " how long with the second one alone?",
    " clocks",
)
def check_saves(first, second, work):
    """Exercise 4: ``saves(first, second, work)``, the clocks that an iteration loses if the first
    of two fetches takes no time: they are in flight together, and ``work`` needs both.
    """
    return max(first, second) - second
