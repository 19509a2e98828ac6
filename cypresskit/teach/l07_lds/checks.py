"""Lesson 07: five layouts of the local data share, and the checks of its exercises."""

from collections.abc import Callable

import numpy as np

from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.devices import HD5870
from cypresskit.kernels import Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.lesson_table import Table
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
from cypresskit.teach.l05_texture_cache.checks import unit_clocks
from cypresskit.threads import map_in_threads
from cypresskit.timing.as_published import simulate_published

WORDS = 320  # of LDS that exercise 2's layout may take


PUBLISHED = "sgemm_64x64", "sgemm_64x64_lds"


def needs(kernel: str) -> dict[str, int]:
    """Return what an iteration of a variant needs, and for how many clocks it keeps each unit
    busy.
    """
    made = kernel_stats(kernel)
    of_loop = {"fetches": made.fetches, "bundles": made.bundles_per_iteration}
    clocks = {f"{unit} clocks": clocks for unit, clocks in unit_clocks(kernel).items()}
    return of_loop | {"registers": made.gprs} | clocks


def share(kernel: str) -> dict[str, float]:
    """Return the ALU's share of an iteration by the published bundles, the speed that follows from
    it, and the published one.
    """
    row = published(kernel)
    alu, texture = HD5870.bundle_clocks * row["bundles"], unit_clocks(kernel)["texture"]
    of_time, nominal = min(1, alu / texture), row["nominal_gflops"]
    return {
        "ALU clocks": alu,
        "texture clocks": texture,
        "share, %": 100 * of_time,
        "nominal Gflop/s": nominal,
        "share of it": of_time * nominal,
        "measured": row["gflops_max"],
        "% of nominal": row["of_nominal_pct"],
    }


def measured_table() -> Table:
    """Tabulate Ashraf's two kernels: as printed, and as compiled and modeled here."""
    rows = []
    for name, report in zip(PUBLISHED, map_in_threads(simulate_published, PUBLISHED)):
        row, made = published(name), kernel_stats(name)
        theirs = row["floats"], row["wavefronts"], row["bundles"], row["l1_bytes_per_clock"]
        ours = made.floats, made.wavefronts, made.bundles_per_iteration, made.l1_bytes_per_clock
        rows.append([name, "published", *theirs, row["gflops_max"]])
        rows.append([name, "here", *ours, report.gflops])
    of_loop = "floats in registers", "wavefronts", "bundles", "L1 bytes per clock", "Gflop/s"
    return Table(["kernel", "", *of_loop], rows, keys=2, note=f"{conditions('sgemm_64x64')}")


def words_by_bank(words: list[int], banks: int = 32, step: int = 1) -> list[set[int]]:
    """Return the different words requested from each bank in use; a bank holds ``step``
    neighboring words.
    """
    words_of_bank = [
        {word for word in words if word // step % banks == bank} for bank in range(banks)
    ]
    return [distinct for distinct in words_of_bank if distinct]


def busiest_bank(words: list[int], banks: int = 32, step: int = 1) -> int:
    """Return the number of different words requested from the busiest bank."""
    return max(map(len, words_by_bank(words, banks, step)))


STEPS = [[*range(0, 16 * step, step)] for step in (1, 2, 4, 32, 33)]  # words of 16 work-items


@formula_exercise(
    [
        (words,)
        for words in (STEPS[0], [5] * 16, *STEPS[1:], [3, 35] * 8, [8, 0, 32, 64, *[7] * 10, 9, 10])
    ],
    lambda words: {
        "a word is served at once to all.": (
            max([w % 32 for w in words].count(b) for b in range(32))
        ),
        "banks work at the same time: count the busiest one's words, not the banks.": (
            len(words_by_bank(words))
        ),
        "banks work at the same time: don't count all the words.": len(set(words)),
        "take the busiest bank, not the sum.": 1 + len(set(words)) - len(words_by_bank(words)),
        "this is how many wait; the first one takes a clock as well.": busiest_bank(words) - 1,
        "the chip has 32 banks, of which 16 work-items use a part.": busiest_bank(words, 16),
        "the bank is the word's number modulo 32; // 32 is its row.": busiest_bank(words, step=32),
        "words are counted here, not bytes: word 1 is in bank 1.": busiest_bank(words, step=4),
        "the first word's bank isn't always the busiest: count the words of each bank.": (
            len({word for word in words if word % 32 == words[0] % 32})
        ),
    },
    "for each bank, how many different words are requested? The busiest bank decides.",
    name="clocks",
    draw=lambda: ([check_rng.choice((1, 8, 32)) * check_rng.randrange(16) for _ in range(16)],),
)
def check_bank_clocks(words):
    """Exercise 1: ``clocks(words)`` is how many clocks 32 banks need to give 16 work-items the
    words they ask for.
    """
    return busiest_bank(words)


@function_exercise
def check_place(place: Callable) -> Verdict:
    """Exercise 2: ``place(row)`` is the word of the LDS where a row of the 64 x 4 tile begins, so
    that neither storing rows nor loading a block's rows has a bank conflict.
    """
    hint = "it is called with rows 0 to 63 and should give a whole number."
    places = [result_of(f"place({row})", place, (row,), hint) for row in range(64)]
    require(
        all(word % 1 == 0 for word in places),
        "place gives parts of a word.",
        "words are counted in whole numbers: // instead of /.",
    )
    first = np.array([int(word) for word in places])
    words = first[:, np.newaxis] + np.arange(4)
    taken = f"The tile takes words {words.min()} to {words.max()}; there are {WORDS}, from 0."
    require(
        words.min() >= 0 and words.max() < WORDS,
        taken,
        "a few words of padding for each 8 rows are enough.",
    )
    if len(np.unique(words)) < words.size:
        other = next((a, b) for a in range(64) for b in range(a) if abs(first[a] - first[b]) < 4)
        message = f"Rows {other[1]} and {other[0]} overlap in the LDS."
        return Verdict(
            False, message, "a row has four words, so the next one begins at least four words on."
        )
    store = 4 * words.T
    items = np.arange(64)
    loads = [4 * words[items // 8 * 8 + j].T for j in range(8)]
    clocks = [int(access_clocks(a[np.newaxis], HD5870)[0]) for a in (store, *loads)]
    message = f"Storing takes {clocks[0]} clocks and the eight loads {sum(clocks[1:])}"
    if sum(clocks) > 72:
        least = "8 and 64 are possible"
        hint = (
            "in a clock, 16 work-items load two adjacent words each, from two rows 8 apart. Which"
            " banks do rows r and r + 8 use?"
        )
        if clocks[0] > 8 and sum(clocks[1:]) == 64:
            hint = (
                "the loads are fine. A store serves 16 rows at once, two words of each: where do"
                " rows 8 to 15 fit in?"
            )
        if np.array_equal(first, items * 4 + items // 8 * 8):
            hint = "places are counted in words, not in bytes: two words more for each 8 rows."
        return Verdict(False, f"{message}; {least}.", hint)
    return Verdict(True, f"{message}: no conflicts, with {words.max() + 1 - 256} words of padding.")


@climb_exercise("07")
def check_through_lds(mine: Kernel) -> str:
    """Exercise 3: the main loop of a kernel that reads A through the LDS."""
    return f"with {kernel_stats(mine).bundles_per_iteration} bundles per iteration"
