"""Lesson 12: kernels and chips that compete in simulated Gflop/s, and the checks of the four
exercises.

An entry is a single-precision TN kernel (the rules of ``sgemm_tn.il``: resources 0 and 1, cb0, C in
g[]) with its own block. A chip may only change the sizes of its memories, not enlarge their sum.

An entry has to be correct before it is timed. It runs at small sizes with every check on, and in
the launch that is timed. It also runs at two odd random sizes, large and deep, with alpha and beta.
Every element is compared. No path may read a register that isn't set. The matrices are random
whole numbers: too large to pack two into one float, small enough that sums are exact in any order.
The timing model refuses branches that depend on the matrices' contents, and a speed above the
chip's peak. The whole launch is simulated, as on the workbench; in a notebook, only a sample if it
is longer than an 8 x 8 block's at n = ``N``.

Tampering with the judge in a notebook changes no leaderboard: ``cypresskit contest`` reads text and
judges it in a process of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cypresskit.compiler import compile
from cypresskit.devices import HD5870, Device
from cypresskit.diagnosis.verification import verify
from cypresskit.editing.judgment import load_text
from cypresskit.editing.steps import STEPS, shown_speed
from cypresskit.files import result_cache
from cypresskit.il import Program
from cypresskit.il.dataflow import liveness
from cypresskit.il.errors import ArgumentError
from cypresskit.isolated import here
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.kernels.generated import generate_kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.lesson_table import Table
from cypresskit.machine import launch
from cypresskit.tables import elided, listed
from cypresskit.teach.check import (
    Verdict,
    exercise,
    make_generator,
    report_broken_check,
    require,
    type_with_article,
)
from cypresskit.teach.climb import (
    accept_workbench,
    climb_exercise,
    describe_iteration,
    explain_wrong_product,
    require_text,
)
from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.kernels import judge_kernel
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate

N = 2048  # where entries are timed
BROWSER_N = 256  # rows and columns of C that a browser's judge compares: all of them take minutes
LARGE_BLOCK_ELEMENTS = 64  # of C, per work-item: up to N = 2048 a launch takes two seconds
CHANGEABLE_FIELDS = ("register_pool", "lds_bytes", "l1_bytes", "l2_bytes")  # what a chip may change
POOL_BYTES = 64 * 16  # of one register for a wavefront
MAX_EXACT = 1 << 24  # up to which every whole number is a float


Size = tuple[int, ...]  # m, n, k
TARGET_KERNEL = generate_kernel(12, 8, 3)  # at most half a percent from the fastest generated


@dataclass(frozen=True)
class Score:
    """An entry's result: the ``verdict`` on it and, if it is right, its timing ``report``."""

    name: str
    verdict: Verdict
    report: Report | None = None

    @property
    def gflops(self) -> float:
        """Simulated Gflop/s; 0 if the kernel is wrong."""
        return self.report.gflops if self.report else 0.0


def time_kernel(
    kernel: Kernel,
    n: int,
    device: Device = HD5870,
    *,
    exact: bool = False,
) -> Report:
    """Return the timing report of a kernel at n x n x n. The whole launch is simulated if ``exact``
    or n is below ``N``; at ``N``, that of a large block.
    """
    rows, columns = kernel.block
    exact = exact or n < N or (n == N and rows * columns >= LARGE_BLOCK_ELEMENTS)
    return simulate(kernel, n, device=device, exact=exact)


def judge(kernel: Source, device: Device = HD5870, n: int = N, *, exact: bool = False) -> Score:
    """Judge an entry (or ``sgemm_tn`` and similar kernels): check it and, if it is correct, time it
    at n x n x n.
    """
    kernel = resolve(kernel)
    name = format_name(kernel)
    kind = kernel.precision, kernel.mode, kernel.trans_a, kernel.trans_b, kernel.convention.streams
    fault = judge_chip(device)
    if kind != ("single", "pixel", True, False, 0):
        why = f"{name} is not an entry: entries compute SGEMM TN as pixel kernels."
        fault = Verdict(False, why, "line 1 says what a kernel computes.")
    if fault:
        return Score(name, fault)
    try:
        return _judge(kernel, name, device, n, exact)
    except Exception as error:  # the check's fault: _judged reports an entry's mistakes
        return Score(name, report_broken_check(error))


def format_name(named: Kernel | Device) -> str:
    """Return an entry's or a chip's name as printable text of at most 60 characters."""
    return elided("".join(c if c.isprintable() else " " for c in named.name), 60)


@lru_cache(maxsize=64)
def _judge(kernel: Kernel, name: str, device: Device, n: int, exact: bool) -> Score:
    reports: list[Report] = []

    def judged(program: Program) -> Verdict:
        compile(kernel.program, device)
        if fault := _check_entry(kernel, n):
            return fault
        try:
            report = time_kernel(kernel, n, device=device, exact=exact)
        except ArgumentError as error:
            hint = (
                "addresses and branches may not depend on what the matrices hold; a wavefront has"
                " to fit the chip."
            )
            return Verdict(False, f"{name} can't be timed: {error}", hint)
        reports.append(report)
        return Verdict(True, f"{name}: {report.gflops:,.0f} Gflop/s at N = {n}.")

    hints = {
        "stuck": "do block and k_step fit the source?",
        "crowded": "fewer registers: a smaller block, or fewer values of k per iteration.",
    }
    verdict = judge_kernel(kernel.text, f"{name}.il", judged, **hints)
    return Score(name, verdict, *reports)


@lru_cache(maxsize=64)
def _check_entry(kernel: Kernel, full: int) -> Verdict | None:
    """Return the verdict on an incorrect kernel; None for a correct one. The kernel runs at small
    sizes with every check on, in the launch that is timed (m = n = k = ``full``), and at odd sizes
    with alpha and beta.
    """
    small = verify(kernel, alpha=2.0, beta=-1.0)
    if not small.is_correct:
        return explain_wrong_product(small)
    if unset := liveness(kernel.program)[0]:
        number, component = min(unset)
        message = (
            f"On some path through the program r{number}.{'xyzw'[component]} is read, but nothing"
            " has set it."
        )
        return Verdict(
            False, message, "set it before the loop, or before the branch that may skip it."
        )
    chance = make_generator(kernel.text, full)  # each edit of the kernel gives other sizes
    large = (
        *(chance.randrange(full // 3, full // 2) | 1 for _ in "mn"),
        chance.randrange(16, 64) | 1,
    )
    long_sums = (
        *(chance.randrange(64, 160) | 1 for _ in "mn"),
        chance.randrange(full, 2 * full) | 1,
    )
    products = ((full,) * 3, 1.0, 0.0), (large, 3.0, -2.0), (long_sums, -2.0, 1.0)
    for size, alpha, beta in products:
        seed = chance.getrandbits(32)
        (m, n, k), wrong = _compare_or_load(kernel, size, alpha, beta, seed)
        if m < size[0] == full:
            print(f"A browser compares {m} x {n} elements of C; `cypresskit contest`, all.")
        if wrong:
            place = f"with alpha = {alpha:g} and beta = {beta:g}"
            if m == full:
                place = "where it would be timed"
            message = f"At {m} x {n} x {k}, {place}, {wrong}. At small sizes it is correct."
            return Verdict(False, message, "what depends on the size, k, or the element of C?")
    return None


JUDGE = Path(__file__).read_text(encoding="utf-8")  # now: later it may be another one's


def _compare_or_load(
    kernel: Kernel, size: Size, alpha: float, beta: float, seed: int
) -> tuple[Size, str]:
    """Compare a product, unless its result is saved. Return the size, and the fault or "". A
    browser compares fewer elements, each over the whole k.
    """
    key = result_cache.hash_key(JUDGE, kernel.text, kernel.convention, size, alpha, beta, seed)
    saved: str | None = result_cache.load(key)
    if saved is not None:
        return size, saved
    m, n, k = size
    if here.IS_USED:
        m, n = min(m, BROWSER_N), min(n, BROWSER_N)
    wrong = compare_entry(kernel, (m, n, k), alpha=alpha, beta=beta, seed=seed)
    if not here.IS_USED:
        result_cache.save(key, wrong)
    return (m, n, k), wrong


def compare_entry(
    kernel: Kernel, size: tuple[int, int, int], *, alpha: float, beta: float, seed: int
) -> str:
    """Compare every element of a random product. Return the fault, "" if there is none."""
    m, n, k = size
    most = int(min(64, (MAX_EXACT / k) ** 0.5 / (1 if beta == 0 else 2)))  # so that sums are exact
    rng = np.random.default_rng(seed)
    a, b, c = (
        rng.integers(-most, most + 1, shape, np.int8).astype(np.float32)
        for shape in ((k, m), (k, n), (m, n))
    )
    arguments = kernel.arguments(a, b, c if beta else None, alpha, beta)
    launch(kernel.program, **arguments)
    wrong = kernel.result(arguments, m, n) != alpha * (a.T @ b) + beta * c
    if wrong.any():
        i, j = divmod(int(wrong.argmax()), n)
        many = f"{wrong.sum():,}" if wrong.sum() < 1000 else f"{100 * wrong.mean():.0f} % of the"
        # The message has no values, since they depend on the seed
        return f"{many} elements are wrong, the first C[{i}, {j}]"
    return ""


def find_kernel(name: str) -> Kernel:
    """Return a catalog kernel by name, or one of two fast but incorrect entries: "hasty" omits two
    multiply-adds, "lazy" stops after 512 values of k.
    """
    text = KERNELS["sgemm_tn"].text
    if name == "hasty":
        for lost in ("mad r24, r7.w, r8, r24", "mad r25, r7.w, r9, r25"):
            text = text.replace(lost, "; done!")
        return replace(KERNELS["sgemm_tn"], name=name, text=text)
    if name == "lazy":
        text = text.replace("dcl_cb ", "dcl_literal l9, 512.0, 0.0, 0.0, 0.0\ndcl_cb ")
        text = text.replace("whileloop", "min r0.w, cb0[0].z, l9.x\nwhileloop")
        text = text.replace("ge r1.x, r0.z, cb0[0].z", "ge r1.x, r0.z, r0.w")
        return replace(KERNELS["sgemm_tn"], name=name, text=text)
    return KERNELS[name]


def die_bytes(device: Device) -> int:
    """Return the bytes of memory on the chip: registers, LDS and L1 of all engines, and L2."""
    engine = device.register_pool * POOL_BYTES + device.lds_bytes + device.l1_bytes
    return device.simd_engines * engine + device.l2_bytes


def judge_chip(device) -> Verdict | None:
    """Return the verdict on a chip that breaks the rules, or None: only memories may change, and
    their sum must not grow.
    """
    if type(device) is not Device:
        return Verdict(
            False,
            f"A chip is a Device, not {type_with_article(device)}.",
            "replace(ck.HD5870, ...) makes one.",
        )
    for field in fields(Device):
        if field.name in ("name", *CHANGEABLE_FIELDS):
            continue
        if getattr(device, field.name) != getattr(HD5870, field.name):
            return Verdict(
                False,
                f"{field.name} is not the HD 5870's.",
                f"only {', '.join(CHANGEABLE_FIELDS)} may change.",
            )
    if (over := die_bytes(device) - die_bytes(HD5870)) > 0:
        hint = "take them from another memory; register_pool counts registers of 1 KB."
        made = {name: {name: getattr(device, name)} for name in CHANGEABLE_FIELDS}
        more = {n: die_bytes(replace(HD5870, **new)) - die_bytes(HD5870) for n, new in made.items()}
        if min(more.values()) < 0:
            told = [
                f"{name} {'takes' if by > 0 else 'gives'} {abs(by):,}"
                for name, by in more.items()
                if by
            ]
            hint = f"on the whole chip, {listed(told)}."
        return Verdict(False, f"{over:,} bytes more than the HD 5870 has.", hint)
    return None


@climb_exercise("12")
def check_two_steps(mine: Kernel) -> str:
    """Exercise 1: an 8 x 8 kernel that handles two values of k per iteration."""
    made = kernel_stats(mine)
    return f"with {made.bundles_per_iteration} bundles per iteration and {made.gprs} registers"


#: The kernels of the contest with a pencil.
BANK_KERNELS = (
    "sgemm_tn",
    "sgemm_nn",
    "sgemm_tn_compute",
    "dgemm_tn",
    "dgemm_nn",
    "dgemm_tn_compute",
    "sgemm_64x64",
    "sgemm_64x64_lds",
)
BANK_N = 256  # rows and columns of their products


def bank_table(bank: Callable[[int, int], int]) -> Table:
    """Tabulate the texture unit's clocks per iteration of a wavefront, for eight kernels, with
    texel (x, y) in the bank ``bank(x, y)``, and the least possible. Raises what a board with such
    banks raises.
    """
    chip = replace(HD5870, texture_bank=bank)
    rows: list[tuple[str, int, int]] = []
    for name in BANK_KERNELS:
        report = time_kernel(KERNELS[name], BANK_N, chip)
        loop = {fetch.line for part in report.launch.code.main_loop for fetch in part.fetches}
        iterations = report.wavefronts * BANK_N // KERNELS[name].k_step
        clocks = sum(work.clocks["texture"] for work in report.lines if work.line in loop)
        rows.append((name, round(clocks / iterations), 16 * len(loop)))
    total = "in sum", *(sum(column) for column in list(zip(*rows))[1:])
    return Table(["kernel", "clocks", "at least"], [*rows, total], bold="in sum")


def share_filled(n: int, k: int) -> float:
    """Return the share of wavefront slots with work, over all rounds of an n x n product. Each
    engine has ``k`` slots.
    """
    return (n // 64) ** 2 / (-(-((n // 64) ** 2) // (20 * k)) * 20 * k)


def mistakes_in_filled(n, k):
    """Return what each mistake gives."""
    wavefronts = (n // 64) ** 2
    slots = 20 * k  # of a round
    rounds = -(-wavefronts // slots)
    filled = share_filled(n, k)
    return {
        "that is the last round alone; all of them count.": (
            (wavefronts % slots or slots) / 20 / k
        ),
        "there are 20 engines, each with `active` wavefronts.": share_filled(n, k / 20),
        "a partly filled round counts as a whole one: round up.": wavefronts / slots,
        "a last round that is full needs no other after it.": (
            wavefronts / ((wavefronts // slots + 1) * slots)
        ),
        "that is the share that stays empty.": 1 - filled,
        "`//` gives whole numbers only: a share needs `/`.": wavefronts // (rounds * slots),
        "this is how full the last round is, and 0 if it is full: all rounds count.": (
            wavefronts % slots / slots
        ),
        "that counts the full rounds. Which share of the slots of all rounds has a wavefront?": (
            wavefronts // slots
        ),
        "that counts the rounds. Which share of their slots has a wavefront?": rounds,
        "round up, not to the nearest, and count rounds. Then: which share of their slots has a"
        " wavefront?": round(wavefronts / slots),
        "that is upside down: wavefronts over slots.": slots / wavefronts,
        "a round has 20 engines with `active` wavefronts each: how many rounds is that, rounded"
        " up?": wavefronts / k,
        "the last round counts, too, with all its slots: not more than 1 can be filled.": (
            min(1, wavefronts / slots)
        ),
        "that is a round's wavefronts on average. Over how many slots?": wavefronts / rounds,
        "the full rounds are filled, but what is in the last one counts, too.": (
            wavefronts // slots / rounds
        ),
        "a wavefront computes 64 x 64 elements, a work-item 8 x 8. And the rounds are whole.": (
            (n // 8) ** 2 / slots
        ),
        "n is in elements: a wavefront computes 64 x 64 of them.": (
            n**2 / (-(-(n**2) // slots) * slots)
        ),
        "a share is between 0 and 1. This is in percent.": 100 * filled,
        "a wavefront has 64 work-items of 8 x 8 elements: 64 x 64 elements.": (
            share_filled(8 * n, k)
        ),
        "there are n / 64 wavefronts along each side of C, so multiply.": (
            n // 64 / (-(-(n // 64) // slots) * slots)
        ),
    }


@formula_exercise(
    [(2048, 10), (1024, 10), (1280, 10), (1536, 12), (256, 10)],
    mistakes_in_filled,
    "how many wavefronts are there, how many slots has a round, and how many rounds are begun?",
)
def check_filled(n, k):
    """Exercise 2: ``filled(n, active)``, the share of wavefront slots with work over all rounds of
    an n x n product.
    """
    return share_filled(n, k)


@exercise
def check_chip(chip) -> Verdict:
    """Exercise 3: a chip on which ``sgemm_tn`` runs at least 3 % faster than on the HD 5870, with
    as much memory.
    """
    score, stock = (judge(KERNELS["sgemm_tn"], board) for board in (chip, HD5870))
    if not score.report:
        return score.verdict
    assert stock.report is not None
    message = (
        f"sgemm_tn: {score.gflops:,.0f} Gflop/s with {score.report.active_wavefronts} wavefronts on"
        " an engine; the HD 5870"
    )
    message += f" has {stock.gflops:,.0f} with {stock.report.active_wavefronts}"
    hint = "which of its memories does this kernel not use at all? What would it like more of?"
    if not chip.lds_bytes:
        active, needed = score.report.active_wavefronts, score.report.registers
        hint = f"{chip.register_pool} registers hold {active} wavefronts, each with {needed}. How"
        hint += " many registers would one more take?"
        if chip.l1_bytes < HD5870.l1_bytes:
            hint = "it has one more wavefront, but needs its L1: leave that as it was."
    if chip.l2_bytes < HD5870.l2_bytes:
        hint = "this kernel needs its L2. Which memory does it not use at all?"
    require(score.gflops >= 1.03 * stock.gflops, f"{message}.", hint)
    return Verdict(
        True, f"{message}. The chip's memory: {die_bytes(chip):,} bytes, no more than before."
    )


@accept_workbench("contest")
@exercise
def check_entry(text: Any) -> Verdict:
    """Exercise 4: a kernel's text that is right, and faster on the simulated HD 5870 than all that
    ``generate_kernel`` makes.
    """
    require_text(text, "contest")
    return judge_kernel(text, STEPS["contest"].file, partial(_judge_program, text))


@climb_exercise("free")
def check_free(mine: Kernel) -> str:
    """Exercise 5: a whole kernel for A that isn't transposed, from an empty editor."""
    return describe_iteration(mine)


def _judge_program(text: str, _: Program) -> Verdict:
    """Return the verdict on an entry that assembles: correct, and faster than the target? Its first
    line states its block and its values of k per iteration.
    """
    step = STEPS["contest"]
    score = judge(load_text(text, step.file, step.like))
    if not score.report:
        return score.verdict
    gflops = shown_speed(score.gflops)
    target = step.targets.minimum
    message = f"C is correct, at {gflops:,.0f} Gflop/s; the target is {target:,.0f}"
    bound = f"is bound by {score.report.bound}"
    require(
        gflops >= target,
        f"{message}.",
        f"it {bound}, with {score.report.active_wavefronts} wavefronts on an engine.",
    )
    return Verdict(True, f"{message}. It takes {score.report.registers} registers, and {bound}.")
