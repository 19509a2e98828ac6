"""Lesson 04: the checks of its exercises on registers, wavefronts and waiting."""

from dataclasses import replace

import numpy as np

from cypresskit.compiler import compile
from cypresskit.devices import HD5870, Device
from cypresskit.il import Program
from cypresskit.teach.check import Verdict, a_type, exercise, slip, unless
from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.kernels import kernel_exercise, run_gemm
from cypresskit.teach.l01_register_block import FOUR_BY_FOUR, wrong_rows
from cypresskit.timing.simulate import simulate

STUCK = "did you advance r0.w before the stores? They start from it, so advance a copy."
BUDGET = (
    10  # registers of exercise 2's kernel with C read after the loop; read before it, C makes it 12
)
ITSELF = "the wavefront itself computes too: a round is compute + wait clocks long"


@formula_exercise(
    [(2, 6), (1, 0), (4, 5), (108, 408), (124, 540), (300, 8)],
    {
        "there are no half wavefronts: round up to the next whole number.": lambda c, w: (
            (c + w) / c
        ),
        "round up, not down: 2 wavefronts that compute 4 clocks fill 8 of 4 + 5.": lambda c, w: (
            (c + w) // c
        ),
        "round up, not to the nearest: 2 that compute 4 clocks fill 8 of 4 + 5.": lambda c, w: (
            round((c + w) / c)
        ),
        f"{ITSELF}.": lambda c, w: -(-w // c),
        f"{ITSELF}; and round up to a whole number.": lambda c, w: w / c,
        f"{ITSELF}; and round up, not down.": lambda c, w: w // c,
        "where compute fills wait exactly this is one too many: 4 times 2 clocks fill 2 + 6.": (
            lambda c, w: w // c + 2
        ),
        "one less would do.": lambda c, w: -(-w // c) + 2,
    },
    "while one wavefront waits, others compute: how many fill that time, and the one itself?",
)
def check_needed(c, w):
    """Exercise 1: ``needed(compute, wait)``, the least number of wavefronts that keeps an engine
    busy.
    """
    return -(-(c + w) // c)


@kernel_exercise("with_c.il", stuck=STUCK)
def check_c_late(program: Program) -> Verdict:
    """Exercise 2: IL of a kernel with a 4 x 4 block that adds beta * C, within ``BUDGET``
    registers.
    """
    # In AMD's style four reads one behind the other take 11 registers on either side of the loop.
    registers = compile(program, style="best").gprs
    rng = np.random.default_rng(37)
    for (m, n, k), beta in (((20, 8, 5), 3), ((8, 12, 3), 0), ((4, 4, 2), 1)):
        a, b, c = (
            rng.integers(1, 8, shape).astype(np.float32) for shape in ((k, m), (k, n), (m, n))
        )
        result, _ = run_gemm(program, FOUR_BY_FOUR, a, b, c, beta=beta)
        if not np.array_equal(result, a.T @ b + beta * c):
            return Verdict(False, *_c_fault(result, a.T @ b, c, beta, k))
    hint = "what is read before the loop is kept in registers all through it. When is C needed?"
    unless(
        registers <= BUDGET,
        f"C is right, but the kernel needs {registers} registers; {BUDGET} are enough.",
        hint,
    )
    room = HD5870.active_wavefronts(registers)
    return Verdict(
        True, f"C is right, with {registers} registers: {room} wavefronts fit on an engine."
    )


def _c_fault(
    result: np.ndarray, product: np.ndarray, old: np.ndarray, beta: float, k: int
) -> tuple[str, str]:
    """(finding, hint) on a wrong C, with the slip that explains the first wrong row of every
    block.
    """
    finding, rows = wrong_rows(
        result, product + beta * old, f"With beta = {beta}, C is wrong in", "of every block."
    )
    i = rows[0]
    slips = {
        f"r{10 + i}, which holds row {i}, got nothing of the old C: "
        "its rows lie cb0[0].w elements apart.": (product),
        "the old C was added without its beta, cb0[0].y.": product + old,
        f"`mul` puts beta times C in the place of the product in r{10 + i}; `mad` adds it.": (
            beta * old
        ),
        "beta multiplies C, not the block: mad block, C, beta, block.": beta * product + old,
        "this adds C in every turn of the loop: once is enough, before it or after it.": (
            product + k * beta * old
        ),
        f"row {i} of C stays as it was: r{10 + i} is not stored, or holds nothing but the old C.": (
            old
        ),
    }
    for j in range(4):
        lie = f"row {i} got row {j} of the old C: rows of C lie cb0[0].w elements apart."
        slips[lie] = product + beta * np.roll(old, i - j, axis=0)
    hint = (
        f"what is added to r{10 + i}: beta (cb0[0].y) times row {i} of the old C? Rows lie cb0[0].w"
        " elements apart."
    )
    return finding, slip(result[i::4], {words: wrong[i::4] for words, wrong in slips.items()}, hint)


@exercise
def check_chip(chip: object) -> Verdict:
    """Exercise 3: an HD 5870 on which ``sgemm_tn_37`` just gets as many wavefronts as ``sgemm_tn``
    on the real one.
    """
    if not isinstance(chip, Device):
        return Verdict(
            False,
            f"my_chip is {a_type(chip)}.",
            "dataclasses.replace(ck.HD5870, ...) gives a device.",
        )
    same = replace(chip, name=HD5870.name, register_pool=HD5870.register_pool) == HD5870
    unless(same, "Something other than register_pool was changed.", "start from ck.HD5870 again.")
    want = HD5870.active_wavefronts(25)
    registers = 37
    try:
        room = chip.active_wavefronts(registers)
    except ValueError as error:
        return Verdict(
            False, f"The kernel does not fit: {error}", "equation 2, the other way round."
        )
    finding = (
        f"With {chip.register_pool} registers, {room} wavefronts of sgemm_tn_37 fit; sgemm_tn has"
        f" {want}"
    )
    unless(
        room >= want,
        f"{finding}.",
        f"a wavefront of this kernel takes {registers} registers of the pool.",
    )
    least = f"what is the least pool for {want} wavefronts?"
    unless(
        chip.register_pool <= want * registers, f"{finding}, but fewer registers would do.", least
    )
    slow, fast = (
        simulate("sgemm_tn_37", m=3840, n=1024, k=128, device=d).gflops for d in (HD5870, chip)
    )
    needs = f"{100 * (chip.register_pool / HD5870.register_pool - 1):.0f} % more registers"
    return Verdict(
        True, f"{needs}, and sgemm_tn_37 goes from {slow:.0f} to {fast:.0f} Gflop/s (modelled)."
    )
