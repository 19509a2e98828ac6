"""Lesson 07: five layouts of the local data share, and the checks of its exercises."""

from collections.abc import Callable

import numpy as np

from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.devices import HD5870
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.published import conditions
from cypresskit.published import kernel as published
from cypresskit.teach.check import (
    Verdict,
    check_rng,
    exercise,
    require,
)
from cypresskit.teach.climb import climb_exercise
from cypresskit.teach.formula import formula_exercise, result_of
from cypresskit.teach.l05_texture_cache.checks import unit_clocks
from cypresskit.timing.as_published import simulate_published

WORDS = 320  # of LDS that exercise 2's layout may take


#: How A gets to the work-items: fetched by each, or through the LDS in one of four layouts.
VARIANTS = (
    "sgemm_64x64",
    "sgemm_64x64_lds",
    "sgemm_64x64_lds_rows",
    "sgemm_64x64_lds_padded",
    "sgemm_64x64_lds_worst",
)
PUBLISHED = VARIANTS[:2]


def variants_table() -> str:
    """Tabulate what an iteration of each variant needs."""
    rows = []
    for name in VARIANTS:
        kernel = KERNELS[name]
        made = kernel_stats(name)
        needs = (
            f"{made.fetches:2} fetches, {made.bundles_per_iteration} bundles, {made.gprs} registers"
        )
        rows.append(f"{name:23} {needs}: {kernel.teaches}")
    return "\n".join(rows)


def iterations_table() -> str:
    """Tabulate the clocks for which an iteration of each variant keeps each unit busy."""
    rows = ["clocks of an iteration      ALU   texture   LDS"]
    for name in VARIANTS:
        busy = unit_clocks(name)
        slowest = max(busy, key=lambda unit: busy[unit])
        clocks = f"{busy['ALU']:5} {busy['texture']:9} {busy['LDS']:5}"
        rows.append(f"{name:25} {clocks}   the slowest: {slowest}")
    return "\n".join(rows)


def shares_table() -> str:
    """Tabulate the ALU's share of an iteration by the published bundles, and published speeds."""
    rows = []
    for name in PUBLISHED:
        row = published(name)
        alu, texture = HD5870.bundle_clocks * row["bundles"], unit_clocks(name)["texture"]
        share = min(1, alu / texture)
        nominal = row["nominal_gflops"]
        rows.append(
            f"{name:16} {row['bundles']} bundles = {alu} clocks of {texture}:"
            f" {100 * share:.1f} % of {nominal} is {share * nominal:.0f} Gflop/s;"
            f" measured {row['gflops_max']}, {row['of_nominal_pct']} %"
        )
    return "\n".join(rows)


def measured_table() -> str:
    """Tabulate Ashraf's two kernels: as printed, and as compiled and modeled here."""
    rows = ["                          measured or published                 modeled or compiled"]
    for name in PUBLISHED:
        row = published(name)
        made = kernel_stats(name)
        best, report = row["gflops_max"], simulate_published(name)
        off = 100 * (report.gflops / best - 1)
        speed = f"{report.gflops:.0f}{report.uncertainty} ({off:+.1f} %)"
        here = f"{made.fetches}, {made.multiply_adds}"
        rows.append(name)
        for words, theirs, ours in (
            ("fetches, multiply-adds", f"{row['fetches']}, {row['mads']}", here),
            ("floats in registers", row["floats"], made.floats),
            ("wavefronts on an engine", row["wavefronts"], made.wavefronts),
            ("bundles per iteration", row["bundles"], made.bundles_per_iteration),
            ("nominal Gflop/s", row["nominal_gflops"], f"{made.nominal_gflops:.0f}"),
            ("L1 bytes per clock", row["l1_bytes_per_clock"], f"{made.l1_bytes_per_clock:.1f}"),
            (f"Gflop/s; here at N = {row['n_assumed']}", best, speed),
        ):
            rows.append(f"  {words:30} {theirs!s:>12} {ours!s:>30}")
    return "\n".join([*rows, str(conditions("sgemm_64x64"))])


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


@exercise
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
