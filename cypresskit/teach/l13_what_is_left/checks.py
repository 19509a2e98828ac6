"""Lesson 13: figures of then and now side by side, and the checks of the exercises."""

from collections.abc import Mapping
from math import ceil

from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.l07_lds.checks import busiest_bank
from cypresskit.today import clock_ghz, figures, record


def gain(experiment: str, before: str, after: str) -> float:
    """Return the factor by which the record's figure is better ``after`` than ``before``; for
    banks, less is better.
    """
    then, now = (figures(experiment)[case] for case in (before, after))
    return then / now if experiment.startswith("bank") else now / then


def iteration_clocks(gflops: float) -> float:
    """Return the clocks for which a warp's iteration keeps a multiprocessor of the record's GPU
    busy. The warp adds 8 x 8 products in each of 32 threads.
    """
    return 2 * 32 * 8**2 * record()["multiprocessors"] * clock_ghz() / gflops


def load_clocks(words: list[int]) -> int:
    """Return the clocks of a warp's load in L1, by lesson 07's rule: the different words of the
    busiest bank, and at most four lines of 32 words per clock.
    """
    return max(busiest_bank(words), ceil(len({word // 32 for word in words}) / 4))


def iteration_needs() -> dict[str, int]:
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


def comparison_table(experiment: str, cypress: Mapping[str, float]) -> str:
    """Tabulate Cypress's figures and the record's, each also as a multiple of the first case's."""
    parts = {"Cypress": cypress, record()["device"]: figures(experiment)}
    lines = [" " * 14 + "".join(f"{name:>22}" for name in parts)]
    for case in figures(experiment):
        pairs = [(values.get(case), next(iter(values.values()))) for values in parts.values()]
        cells = [f"{value:,.0f} {value / first:8.2f} x" if value else "-" for value, first in pairs]
        lines.append(f"{case:14}" + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join(lines)


def thread_blocks(r: int, t: int, s: int) -> tuple[int, int, int]:
    """Return how many thread blocks of ``t`` threads share a multiprocessor by its registers, its
    shared memory and its threads.
    """
    return 65536 // (r * t), 233472 // (s + 1024), 2048 // t


def share_warps(r: int, t: int, s: int) -> int:
    """Return how many warps share a multiprocessor."""
    return min(thread_blocks(r, t, s)) * t // 32


@formula_exercise(
    [
        (96, 64, 0),
        (96, 32, 38000),
        (128, 256, 8192),
        (16, 256, 0),
        (166, 64, 0),
        (65, 64, 0),
        (40, 1024, 100000),
    ],
    lambda r, t, s: {
        "thread blocks come whole: `//` rounds down.": (
            min(65536 / (r * t), 233472 / (s + 1024), 2048 / t) * t / 32
        ),
        "thread blocks come whole.": min(65536 // (32 * r), 233472 // (s + 1024) * t // 32, 64),
        "each thread block takes 1,024 bytes more.": share_warps(r, t, max(s, 1) - 1024),
        "these are thread blocks, not warps.": min(thread_blocks(r, t, s)),
        "right for hardware that rounds a thread's registers up to multiples of 8: here leave that"
        " out.": share_warps(-(-r // 8) * 8, t, s),
        "these are threads: how many make a warp?": min(thread_blocks(r, t, s)) * t,
        "there are three limits, and the registers are only one.": (
            thread_blocks(r, t, s)[0] * t // 32
        ),
        "shared memory is limited, too.": share_warps(r, t, 0),
        "only 2,048 threads fit.": min(thread_blocks(r, t, s)[:2]) * t // 32,
    },
    "how many whole thread blocks do the registers allow, how many the shared memory, how many the"
    " threads?",
    " warps",
)
def check_warps(r, t, s):
    """Exercise 1: ``warps(registers, threads, shared)``, how many warps share a multiprocessor of
    the H200.
    """
    return share_warps(r, t, s)


@formula_exercise(
    [(256, 128, 4), (160, 64, 4), (128, 48, 8), (4096, 128, 2)],
    lambda f, w, s: {
        "the cache delivers bytes, not numbers: how many bytes has a number?": f / w,
        "the more bytes a number has, the longer it takes to arrive.": f / (w * s),
        "inverted: more arithmetic needs a larger block.": w / (f * s),
        "a value of k takes 2b numbers, a column *and* a row, for 2b² operations: each 2 counts"
        " once.": f * s / w / 2,
        "each product is a multiplication and an addition: two operations.": 2 * f * s / w,
    },
    "for a value of k, how many clocks do 2b numbers take to arrive, and how many do the operations"
    " take?",
)
def check_smallest(f, w, s):
    """Exercise 2: ``smallest(flops, width, size)``, the side of a block that ``width`` bytes a
    clock can feed.
    """
    return f * s / w


@formula_exercise(
    [(880, 16), (700, 16), (300, 24), (500, 48)],
    lambda latency, work: {
        "a warp waits for `latency` clocks once: the other warps work in that time.": (
            latency * work
        ),
        "inverted: a longer latency needs more warps.": work / latency,
        "these are the warps that work while one waits: that one counts, too.": latency / work - 1,
        "`latency` includes `work`: of every `latency` clocks, a warp computes `work`.": (
            latency / work + 1
        ),
    },
    "in how many clocks does each warp return, and for how many of them does it keep the"
    " arithmetic busy?",
    " warps",
)
def check_enough(latency, work):
    """Exercise 3: ``enough(latency, work)``, how many warps keep a multiprocessor busy if each
    computes for ``work`` clocks of every ``latency``.
    """
    return latency / work
