"""Lesson 07: clocks of a loop's turn unit by unit, and the checks of the exercises on the local
data share.
"""

from collections.abc import Callable
from numbers import Real

import numpy as np

from cypresskit.compiler import compile
from cypresskit.devices import HD5870
from cypresskit.il import Program
from cypresskit.kernels import KERNELS
from cypresskit.kernels.samples import listened
from cypresskit.kernels.verification import LONGEST
from cypresskit.machine import launch
from cypresskit.machine.checks import check
from cypresskit.machine.traffic import Access, Traffic
from cypresskit.teach.check import Verdict, a_type, chance, exercise, tried, unless
from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.kernels import kernel_exercise, sentence
from cypresskit.teach.l05_texture_cache import fetch_clocks
from cypresskit.timing.units.lds_banks import access_clocks

WORDS = 320  # of LDS that exercise 2's layout may take
BEST = 8  # LDS clocks of exercise 3: a store and a load without conflicts


def clocks_of_turn(name: str) -> dict[str, int]:
    """Clocks for which a turn of a catalogue kernel's main loop keeps each unit busy, for one
    wavefront: "ALU" as compiled, "texture" and "LDS" as in a recorded run. Conflicts with other
    wavefronts aren't counted.
    """
    code = compile(KERNELS[name].program)
    traffic = listened(name, k=16)  # a row of A is a line
    first = next(n for n, access in enumerate(traffic.accesses) if access.kind == "fetch")
    starts = [
        n for n, access in enumerate(traffic.accesses) if access.at == traffic.accesses[first].at
    ]
    turn = traffic.accesses[starts[0] : starts[1]]
    widths = {n: surface.width for n, surface in traffic.launch.textures.items()}
    return {
        "ALU": HD5870.bundle_clocks * sum(len(control.bundles) for control in code.main_loop),
        "texture": sum(
            fetch_clocks(access, widths[access.resource])
            for access in turn
            if access.kind == "fetch"
        ),
        "LDS": lds_clocks(turn),
    }


def lds_clocks(accesses: list[Access]) -> int:
    """LDS clocks of those accesses that are to the LDS."""
    requests = [
        (a.addresses[np.newaxis], a.active[np.newaxis]) for a in accesses if a.addresses is not None
    ]
    return sum(int(access_clocks(addresses, HD5870, active)[0]) for addresses, active in requests)


def asked(words: list[int], banks: int = 32, step: int = 1) -> list[set[int]]:
    """The different words wanted from each bank in use; ``step`` neighbouring words lie in a
    bank.
    """
    words_of_bank = [
        {word for word in words if word // step % banks == bank} for bank in range(banks)
    ]
    return [distinct for distinct in words_of_bank if distinct]


def busiest(words: list[int], banks: int = 32, step: int = 1) -> int:
    """The number of different words wanted from the busiest bank."""
    return max(map(len, asked(words, banks, step)))


STEPS = [[*range(0, 16 * step, step)] for step in (1, 2, 4, 32, 33)]  # words of 16 work-items


@formula_exercise(
    [
        (words,)
        for words in (STEPS[0], [5] * 16, *STEPS[1:], [3, 35] * 8, [8, 0, 32, 64, *[7] * 10, 9, 10])
    ],
    {
        "a word is served at once to all.": lambda words: max(
            [w % 32 for w in words].count(b) for b in range(32)
        ),
        "banks work at the same time: count the busiest one's words, not the banks.": (
            lambda words: len(asked(words))
        ),
        "banks work at the same time: don't count all the words.": lambda words: len(set(words)),
        "take the busiest bank, not the sum.": lambda words: (
            1 + len(set(words)) - len(asked(words))
        ),
        "this is how many wait; the first one takes a clock as well.": lambda words: (
            busiest(words) - 1
        ),
        "the chip has 32 banks, of which 16 work-items use a part.": lambda words: busiest(
            words, 16
        ),
        "the bank is the word's number modulo 32; // 32 is its row.": lambda words: busiest(
            words, step=32
        ),
        "words are counted here, not bytes: word 1 lies in bank 1.": lambda words: busiest(
            words, step=4
        ),
    },
    "for each bank, how many different words are asked of it? The busiest bank decides.",
    name="clocks",
    draw=lambda: ([chance.choice((1, 8, 32)) * chance.randrange(16) for _ in range(16)],),
)
def check_bank_clocks(words):
    """Exercise 1: ``clocks(words)`` is how many clocks 32 banks need to give 16 work-items the
    words they ask for.
    """
    return busiest(words)


@exercise
def check_place(place: Callable) -> Verdict:
    """Exercise 2: ``place(row)`` is the word of the LDS where a row of the 64 x 4 tile begins, so
    that neither storing rows nor loading those of the own block meets a bank conflict.
    """
    hint = "it is called with rows 0 to 63 and should give a whole number."
    places = [tried(f"place({row})", place, row, hint=hint) for row in range(64)]
    # A number in an array counts as a number
    places = [word[()] if isinstance(word, np.ndarray) else word for word in places]
    for row, word in enumerate(places):
        unless(isinstance(word, Real), f"place({row}) returns {a_type(word)}, not a number.", hint)
        unless(
            word % 1 == 0,
            "place gives parts of a word.",
            "words are counted in whole numbers: // instead of /.",
        )
    first = np.array([int(word) for word in places])
    words = first[:, np.newaxis] + np.arange(4)
    taken = f"The tile takes words {words.min()} to {words.max()}; there are {WORDS}, from 0."
    unless(
        words.min() >= 0 and words.max() < WORDS,
        taken,
        "a few words of padding for each 8 rows are enough.",
    )
    if len(np.unique(words)) < words.size:
        other = next((a, b) for a in range(64) for b in range(a) if abs(first[a] - first[b]) < 4)
        finding = f"Rows {other[1]} and {other[0]} overlap in the LDS."
        return Verdict(
            False, finding, "a row has four words, so the next one begins at least four words on."
        )
    store = 4 * words.T
    items = np.arange(64)
    loads = [4 * words[items // 8 * 8 + j].T for j in range(8)]
    clocks = [int(access_clocks(a[np.newaxis], HD5870)[0]) for a in (store, *loads)]
    finding = f"Storing takes {clocks[0]} clocks and the eight loads {sum(clocks[1:])}"
    if sum(clocks) > 72:
        least = "8 and 64 are possible"
        hint = (
            "in a clock, 16 work-items load from two rows 8 apart. In which banks do rows r and r +"
            " 8 begin?"
        )
        if clocks[0] > 8 and sum(clocks[1:]) == 64:
            hint = (
                "the loads are fine. A store takes two words of 16 rows at a time: where do rows 8"
                " to 15 fit in?"
            )
        if np.array_equal(first, items * 4 + items // 8 * 8):
            hint = "places are counted in words, not in bytes: two words more for each 8 rows."
        return Verdict(False, f"{finding}; {least}.", hint)
    return Verdict(True, f"{finding}: no conflicts, with {words.max() + 1 - 256} words of padding.")


@kernel_exercise("transpose.il", stuck="the line it names. The LDS has 512 bytes, from byte 0.")
def check_transpose(program: Program) -> Verdict:
    """Exercise 3: IL in which 64 work-items transpose an 8 x 8 matrix through the LDS: right,
    without races and without bank conflicts.
    """
    matrix = np.random.default_rng(32).permutation(64).reshape(8, 8).astype(np.float32) + 1
    inputs = {0: np.repeat(matrix[..., np.newaxis], 4, 2)}
    memory = np.zeros((8, 32), np.float32)
    traffic = Traffic()
    launch(
        program,
        64,
        inputs=inputs,
        global_memory=memory,
        observers=[traffic],
        max_instructions=LONGEST,
    )
    result = memory[:, ::4]
    clocks = lds_clocks(traffic.accesses)
    if not np.array_equal(result, matrix.T):
        row, column = (int(n) for n in np.argwhere(result != matrix.T)[0])
        finding = (
            f"Element ({row}, {column}) of the result is {result[row, column]:g}, not"
            f" {matrix[column, row]:g}."
        )
        hint = (
            "work-item (row, column) needs what work-item (column, row) has stored, and bytes are"
            " four times words."
        )
        if np.array_equal(result, matrix):
            hint = "nothing was exchanged: load from another place than the one you stored to."
        elif not result.any():
            hint = "nothing arrives in r4.x: store r3.x, let everybody finish, load."
        return Verdict(False, finding, hint)
    findings = check(
        program, 64, inputs=inputs, global_memory=np.zeros_like(memory), max_instructions=LONGEST
    )
    races = [f for f in findings if f.kind == "race"]
    if races:
        return Verdict(
            False, f"The result is right, by luck. {sentence(races[0].message)}.", races[0].advice
        )
    finding = (
        f"The result is right, but the LDS was busy for {clocks} clocks: not all of it came through"
        " there."
    )
    unless(
        clocks >= BEST,
        finding,
        "fetch each number once, store it with lds_store_id, load another one's.",
    )
    fetches = [access for access in traffic.accesses if access.kind == "fetch"]
    items = np.arange(64)
    own = (
        all(np.array_equal(np.array([a.x, a.y]), (items % 8, items // 8)) for a in fetches)
        and len(fetches) == 1
    )
    finding = (
        "The result is right, but work-items fetch more than an element each, or one that isn't"
        " theirs."
    )
    hint = (
        "leave the given fetch as it is. What a work-item loads from the LDS, another one has"
        " stored there."
    )
    unless(own, finding, hint)
    finding = (
        f"The result is right, but store and load take {clocks} clocks of the LDS; {BEST} are"
        " possible."
    )
    hint = (
        "which words do the first 16 work-items load, from which banks? Try other pitches with"
        " `clocks`."
    )
    unless(clocks == BEST, finding, hint)
    return Verdict(True, f"Transposed, without a race, in {clocks} clocks of the LDS.")
