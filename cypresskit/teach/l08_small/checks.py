"""Lesson 08: the first texels of a quad, and the checks of its three exercises."""

from dataclasses import replace

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.il import Program
from cypresskit.kernels import KERNELS
from cypresskit.kernels.products import Product, make_product
from cypresskit.kernels.samples import run
from cypresskit.machine.checks import check
from cypresskit.machine.checks.findings import RACE
from cypresskit.machine.traffic import Traffic
from cypresskit.teach.check import Verdict, check_rng
from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.kernels import kernel_exercise

REDUCE = "sgemv_n_reduce2"
# The text before the student's part of that kernel
BEFORE = KERNELS[REDUCE].text.partition("; each work-item stores its sums")[0]


def first_quad(name: str) -> list[tuple[int, int]]:
    """Return (row, texel) of A that each of the first four work-items of an SGEMV kernel fetches
    first.
    """
    traffic = Traffic()
    run(KERNELS[name], 256, 1, 64, traffic)
    x, y = traffic.accesses[0].x, traffic.accesses[0].y
    assert x is not None and y is not None  # the first access is a fetch
    return [(int(row), int(texel)) for row, texel in zip(y[:4], x[:4])]


@formula_exercise(
    [(153.6, 4), (153.6, 8), (144.0, 4), (31.2, 8), (153.6, 2), (128.0, 16)],
    lambda r, s: {
        "for a large A, leave out what x and y take: A alone is nearly all of the memory's work.": (
            2 * r / s / (1 + 1 / 1024)
        ),
        "each number of A takes part in two operations, a multiplication and an addition; x doesn't"
        " come from memory again.": r / s,
        "GB/s are bytes, not numbers: how many numbers arrive in a second?": 2 * r,
        "that is with the 84 % of its peak that memory reaches; here it delivers all.": (
            2 * HD5870.dram_efficiency * r / s
        ),
        "this is in flop/s. Return Gflop/s.": 2e9 * r / s,
        "more bytes in a number mean fewer numbers a second, not more.": 2 * r * s,
        "a number may have 2 or 16 bytes, too: divide by `size`.": 2 * r / (8 if s == 8 else 4),
    },
    "how many numbers of A arrive in a second, and how many operations does each take part in?",
    " Gflop/s",
    draw=lambda: (round(check_rng.uniform(20, 400), 1), check_rng.choice((2, 4, 8, 16))),
)
def check_ceiling(r, s):
    """Exercise 1: ``ceiling(memory_gb_s, size)`` in Gflop/s of a matrix-vector product, ``size``
    bytes a number.
    """
    return 2 * r / s


@kernel_exercise("tail", what="IL", quotes="keep the three quotes on either side.", before=BEFORE)
def check_reduction(program: Program) -> Verdict:
    """Exercise 2: the end of ``sgemv_n_reduce2`` from its LDS store on, with every check on."""
    kernel = replace(KERNELS[REDUCE], given=program)
    for m, k in ((128, 8), (256, 24)):
        given = make_product(kernel, (m, 1, k), seed=16)
        arguments = given.arguments()
        findings = check(
            program, **arguments, names=kernel.convention.names | {"g": "y"}, in_place=True
        )
        if findings:
            finding = findings[0]
            hint = "the line it names."
            if finding.kind == RACE:
                hint = "what that work-item read, and which one had to write it before."
            return Verdict(False, f"With m = {m} and k = {k}:\n{finding}", hint)
        y = given.result(arguments)
        if (wrong := given.find_incorrect(y)).any():
            row = int(wrong.argmax())
            what = f"y[{row}] is {y[row, 0]:.9g} in place of {given.expected[row, 0]:g}"
            message = f"With m = {m} and k = {k}:\n{what}; {wrong.sum()} of {m} elements are wrong."
            return Verdict(False, message, _reduction_mistake(program, given, y))
    return Verdict(True, "y is correct at two sizes, and the LDS is read only after each write.")


def _reduction_mistake(program: Program, given: Product, result: np.ndarray) -> str:
    if mixed := _mixed_kinds(program):
        return mixed
    a, x, y = given.a, given.b, given.c
    odd = np.arange(x.size) // 4 % 2  # 1 where a helper reads
    leaders = a @ (x[0] * (1 - odd))
    helpers = a @ (x[0] * odd)
    shifted = np.column_stack((leaders.reshape(-1, 4)[:, 1:], helpers[::4]))
    sums = {
        "y has the leaders' sums alone: are the helpers', 16 bytes further, added to r14?": (
            leaders
        ),
        "y has the helpers' sums alone: load them into another register, and add it to r14.": (
            helpers
        ),
        "y has the leaders' sums twice: at r3.x is a leader's own. "
        "Its helper's are 16 bytes further.": 2 * leaders,
        "y has the helpers' sums twice.": leaders + 2 * helpers,
        "4 bytes further is the leader's own second sum. Its helper's sums are 16 bytes further.": (
            leaders + shifted.ravel()
        ),
    }
    for hint, wrong in sums.items():
        if np.array_equal(result[:, 0], 2 * wrong - y[:, 0]):
            return hint
    return (
        "what r14 holds before `mul r14, r14, cb0[0].x`: it should be a leader's sums plus its"
        " helper's."
    )


def _mixed_kinds(program: Program) -> str:
    """Return a hint if an address is added as a float, or sums as whole numbers; or ""."""
    body = program.expanded
    stored = next((n for n, i in enumerate(body) if i.opcode == "lds_store_vec"), len(body))
    loads = [i for i in body[stored:] if i.opcode.startswith("lds_load")]
    addresses = {source.register for load in loads for source in load.sources}
    for i in body[stored:]:
        written = i.dest.register if i.dest else None
        if i.opcode == "add" and written in addresses:
            return (
                f"line {i.line} adds floats, and `{written}` is an address, a whole number of"
                " bytes: `iadd`."
            )
        if i.opcode == "iadd" and str(written) == "r14":
            return f"line {i.line} adds whole numbers, and r14 holds floats: `add`."
    return ""


def useful(m: int, n: int, t: int) -> float:
    """Return the share of the arithmetic that isn't spent on padding: 1 minus the answer to
    exercise 3.
    """
    return m * n / (-(-m // t) * -(-n // t) * t * t)


def mistakes_in_waste(m, n, t):
    """Return what each mistake gives."""
    share = useful(m, n, t)
    down, right = -(-m // t), -(-n // t)  # tiles
    rows, columns = down * t, right * t
    more_rows, more_columns = rows - m, columns - n
    return {
        "a share is between 0 and 1. This is in percent.": 100 * (1 - share),
        "this is the share of useful arithmetic. Return the wasted share.": share,
        "compare with all that is computed, padding included.": 1 / share - 1,
        "a multiple of the tile isn't rounded up: it stays as it is.": (
            1 - m * n / ((m // t + 1) * (n // t + 1) * t * t)
        ),
        "pad n too, not m alone.": 1 - useful(m, t, t),
        "the two wastes overlap in a corner: don't add them.": (
            2 - useful(m, t, t) - useful(t, n, t)
        ),
        "pad m and n to whole tiles, not their product.": 1 - m * n / (-(-m * n // t**2) * t**2),
        "`%` gives what is beyond the last whole tile, not the zeros that fill one up.": (
            (m % t) * (n % t) / (m * n)
        ),
        "this is the corner where rows and columns are padded: what about the rest of them?": (
            more_rows * more_columns / (rows * columns)
        ),
        "the corner is missing where rows and columns are padded.": (
            (more_rows * n + more_columns * m) / (rows * columns)
        ),
        "these are the elements of the padding: which share of all are they?": (
            rows * columns - m * n
        ),
        "these are all elements that are computed: which share of them is padding?": rows * columns,
        "a tile has tile * tile elements: count elements, not tiles.": 1 - m * n / (down * right),
        "a tile has tile * tile elements.": 1 - m * n / (down * right * t),
        "m and n are rounded up to whole tiles: one tile has t * t elements.": 1 - m * n / (t * t),
        "multiply rows and columns, don't add them.": 1 - (m + n) / (rows + columns),
        "count elements: rows times columns, not their sum, of all that is computed.": (
            (more_rows + more_columns) / (m + n)
        ),
        "pad up to the next multiple of the tile, not by a whole tile.": (
            1 - m * n / ((m + t) * (n + t))
        ),
        "a part of a tile is computed as a whole one: round up, not down.": (
            1 - m * n / ((m // t) * (n // t) * t * t) if min(m, n) >= t else 1
        ),
        "a part of a tile is computed as a whole one: round up. And compare with all that is"
        " computed.": 1 - (m // t) * (n // t) * t * t / (m * n),
        "m and n are computed whole: what is beyond the last whole tile isn't wasted.": (
            1 - (m // t) * (n // t) * t * t / (rows * columns)
        ),
        "round up to whole tiles, not to the nearest.": (
            1 - m * n / (round(m / t) * round(n / t) * t * t) if round(n / t) * round(m / t) else 1
        ),
        "C is padded to a square here: pad m and n, each to its own multiple.": (
            1 - m * n / max(rows, columns) ** 2
        ),
        "pad m too, not n alone.": 1 - useful(t, n, t),
        "the sign: waste is 1 less the useful share.": share - 1,
        "this is how many times as much is computed: which share of it is wasted?": 1 / share,
    }


@formula_exercise(
    [(100, 100, 64), (64, 128, 64), (500, 40, 8), (65, 1000, 64), (1, 1, 8)],
    mistakes_in_waste,
    "how many rows and columns are computed, and how many of them are useful?",
)
def check_waste(m, n, t):
    """Exercise 3: ``waste(m, n, tile)``, the share of the arithmetic that is spent on padding C to
    whole tiles.
    """
    return 1 - useful(m, n, t)
