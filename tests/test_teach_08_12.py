"""The checks of lessons 08 to 12: they accept what is right, reject what is wrong, and say where to look."""

import math
import re
from dataclasses import replace

import nbformat
import numpy as np
import pytest
from conftest import ROOT

import cypresskit as ck
from cypresskit.devices import Device
from cypresskit.host import balance, largest_block
from cypresskit.teach import bus, contest, formula, larger, pipelines, published, small

LESSONS = ("08_small_and_thin", "09_bus", "10_larger", "11_pipelines", "12_beat_the_paper")


def rejects(verdict, said: str) -> None:
    """The verdict is "Not yet." and its finding or hint says so."""
    assert not verdict.right and verdict.hint
    assert said in f"{verdict.finding} {verdict.hint}", str(verdict)


def raises(*_):
    raise ZeroDivisionError("of course")


# What any function of numbers may be instead of an answer.
NONSENSE = [
    (lambda *_: None, "returns nothing"),
    (raises, "ZeroDivisionError: of course"),
    (lambda: 1.0, "TypeError"),
    (lambda *_: "x", "ValueError"),
    (lambda *_: math.nan, "should be"),
    (lambda *_: 0.0, "should be"),
    (None, "of type NoneType, not a function"),
    (42, "of type int, not a function"),
]
FUNCTIONS = {
    "ceiling of a vector": small.check_ceiling,
    "waste": small.check_waste,
    "seconds": bus.check_seconds,
    "n_balance": bus.check_balance,
    "size_for": bus.check_size_for,
    "largest": larger.check_largest,
    "pipeline": pipelines.check_pipeline,
    "next_share": pipelines.check_share,
    "filled": contest.check_filled,
}


@pytest.mark.parametrize("check", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize(("answer", "said"), NONSENSE)
def test_nonsense_is_rejected(check, answer, said):
    rejects(check(answer), said)


def test_a_slip_is_named_only_if_it_explains_every_result():
    def judged(answer):
        return formula.judge(answer, "f", lambda x: x * x, [(2.0,), (3.0,)], {"SLIP": lambda x: 2 * x + 4}, "HINT")

    assert judged(lambda x: x**2).right
    assert judged(lambda x: 2 * x + 4).hint == "SLIP"
    assert judged(lambda x: 8).hint == "HINT"
    assert judged(lambda x: 2 * x).hint == "HINT (1 of 2 calls are right.)"
    assert judged(lambda x: 4).hint.startswith("it gives that whatever it is called with")


def test_published_figures_are_those_of_the_file():
    assert published.kernel("sgemm_packed4")["n"] == 512 and published.host("blocked_mma")["block"] == 1792
    with pytest.raises(KeyError):
        published.host("nothing")


# -- 08


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda rate, size: rate / size, "two operations"),
        (lambda rate, size: 2 * rate, "bytes, not numbers"),
        (lambda rate, size: 2 * rate * size, "fewer numbers"),
        (lambda rate, size: 2 * rate / 4, "2 of 4 calls are right"),
        (lambda rate, size: 2 * 153.6 / size, "2 of 4 calls are right"),
    ],
)
def test_ceilings_of_a_vector(answer, said):
    rejects(small.check_ceiling(answer), said)


def test_right_functions_of_lesson_08():
    assert small.check_ceiling(lambda rate, size: rate * 2 / size).right
    assert small.check_waste(lambda m, n, t: 1 - m / (math.ceil(m / t) * t) * n / (math.ceil(n / t) * t)).right


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda m, n, t: m * n / (-(-m // t) * -(-n // t) * t * t), "useful arithmetic"),
        (lambda m, n, t: -(-m // t) * -(-n // t) * t * t / (m * n) - 1, "padding included"),
        (lambda m, n, t: 1 - m * n / ((m // t + 1) * (n // t + 1) * t * t), "a multiple already"),
        (lambda m, n, t: 1 - m / (-(-m // t) * t), "not m alone"),
        (lambda m, n, t: 100 - 100 * m * n / (-(-m // t) * -(-n // t) * t * t), "in per cent"),
        (lambda m, n, t: (m % t) / t, "What padding costs"),
    ],
)
def test_wastes(answer, said):
    rejects(small.check_waste(answer), said)


TAIL = """
ishl r3.x, vTidInGrpFlat.x, l2.x
lds_store_vec_id(0) mem, r3.x, r3.x, r14
{fence}
if_logicalz r1.y
{add}
    mul r14, r14, cb0[0].x
    if_logicalnz cb0[4].x
        mov r4, g[r1.x]
        mad r14, r4, cb0[0].y, r14
    endif
    mov g[r1.x], r14
endif
endmain
end
"""
ADD = "iadd r3.y, r3.x, l2.y\nlds_load_vec_id(0) r4, r3.y, r3.y\nadd r14, r14, r4"


def tail(fence: str = "fence_threads_lds", add: str = ADD) -> str:
    return TAIL.format(fence=fence, add=add)


@pytest.mark.parametrize("text", [tail(), tail(add=ADD.replace("add r14, r14, r4", "add r14, r4, r14"))])
def test_right_reductions(text):
    assert small.check_reduction(text).right


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (tail("", ""), "masters' sums alone"),
        (tail(add=""), "masters' sums alone"),
        (tail(fence=""), "race"),
        (tail(add=ADD.replace("l2.y", "l2.z")), "lds"),
        (tail(add=ADD.replace("r14, r14, r4", "r14, r14, r14")), "masters' sums twice"),
        (tail(add=ADD.replace("r3.y, r3.y", "r3.x, r3.x")), "masters' sums twice"),
        (tail(add=ADD.replace(" r4, r3.y", " r14, r3.y").replace("add r14, r14, r4", "")), "slaves' sums alone"),
        (tail(add=ADD + "\nadd r14, r14, r4"), "slaves' sums twice"),
        (tail(fence="", add="fence_threads_lds\n" + ADD), "barrier"),
        (tail(add=ADD.replace("r14, r14, r4", "r14, r4, r4")), "r14"),
        (tail(add=ADD.replace("iadd r3.y, r3.x, l2.y", "mov r3.y, r3.x")), "r14"),
        (tail(add=ADD.replace("lds_load", "lds_laod")), "does not assemble"),
        (tail(add="endif"), "does not assemble"),
        (tail(add=ADD.replace("l2.y", "l2.w") + "\n" + ADD.replace("l2.y", "l2.w")), ""),
        ("", "does not assemble"),
        (None, "not text"),
    ],
)
def test_wrong_reductions(text, said):
    rejects(small.check_reduction(text), said)


def test_a_quad_shares_lines_as_the_lesson_says():
    lines = {name: len({(r, t // 4) for r, t in small.first_quad(name)}) for name in ("sgemv_n", "sgemv_n_reduce4")}
    assert lines == {"sgemv_n": 4, "sgemv_n_reduce4": 1}


def test_a_stack_is_faster_than_a_single_product():
    assert small.packed(128, 8).gflops > 4 * small.packed(128, 1).gflops
    assert small.packed(64, 2).flops == 4 * 64**3


# -- 09


def test_right_functions_of_lesson_09():
    assert bus.check_seconds(lambda n, b, f: 24 * n * n / b + 2 * n * n * n / f).right
    assert bus.check_balance(lambda b, f, s, moved: f / b / 2 * s * moved).right
    assert bus.check_size_for(lambda p, b, f: 16 * f / b / (1 / p - 1)).right


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n, b, f: 24 * n**2 / b, "transfers alone"),
        (lambda n, b, f: 2 * n**3 / f, "kernel alone"),
        (lambda n, b, f: 32 * n**2 / b + 2 * n**3 / f, "the old C"),
        (lambda n, b, f: 16 * n**2 / b + 2 * n**3 / f, "C comes back"),
        (lambda n, b, f: 12 * n**2 / b + 2 * n**3 / f, "8 bytes"),
        (lambda n, b, f: 3 * n**2 / b + 2 * n**3 / f, "in bytes"),
        (lambda n, b, f: 24 * n**2 / b + n**3 / f, "n additions"),
        (lambda n, b, f: max(24 * n**2 / b, 2 * n**3 / f), "add up"),
        (lambda n, b, f: 24e3 * n**2 / b + 2e3 * n**3 / f, "milliseconds"),
        (lambda n, b, f: 24 * n**2 / 3e9 + 2 * n**3 / f, "2 of 4 calls"),
    ],
)
def test_seconds(answer, said):
    rejects(bus.check_seconds(answer), said)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda b, f, s, moved: 2 * s * f / b, "for four matrices, however many"),
        (lambda b, f, s, moved: 16 * f / b, "four matrices of doubles"),
        (lambda b, f, s, moved: 4 * moved * f / b, "for doubles"),
        (lambda b, f, s, moved: moved * s * f / b, "not n^3"),
        (lambda b, f, s, moved: 2 * b / (moved * s * f), "upside down"),
        (lambda b, f, s, moved: (moved * s * f / b / 2) ** 0.5, "solve for n"),
        (lambda b, f, s, moved: 2400, "calls are right"),
    ],
)
def test_balances(answer, said):
    rejects(bus.check_balance(answer), said)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda p, b, f: p * balance(b, f), "one half"),
        (lambda p, b, f: balance(b, f), "one half alone"),
        (lambda p, b, f: (1 - p) / p * balance(b, f), "upside down"),
        (lambda p, b, f: balance(b, f) / p, "rest"),
        (lambda p, b, f: balance(b, f) / (1 - p), "don't vanish"),
        (lambda p, b, f: 2 * p * balance(b, f), "1 of 4 calls"),
    ],
)
def test_sizes(answer, said):
    rejects(bus.check_size_for(answer), said)


def test_rows_with_transfers_follow_the_formula():
    row = bus.rows("bus", [2400], 3e9, 450e9)[0]
    assert row["gflops"] == pytest.approx(225) and row["busy_bus"] == pytest.approx(0.5)
    assert row["percent"] == pytest.approx(100 * 225 / 544)


# -- 10


def fits(memory: int, depth: int) -> int:
    block = 0
    while 8 * (4 * depth * (block + 128) + 3 * (block + 128) ** 2) <= memory:
        block += 128
    return block


def test_right_largest_blocks():
    assert larger.check_largest(fits).right
    assert fits(1 << 30, 16384) == largest_block(ck.HD5870)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda m, d: fits(m, d) + 128, "one step too far"),
        (lambda m, d: 1792, "1 of 5 calls"),
        (lambda m, d: fits(m - 1, d), "to its last byte"),
        (lambda m, d: int((-2 * d + math.sqrt(4 * d * d + 3 * m / 8)) / 3), "not a multiple"),
        (lambda m, d: next(b for b in range(128, 9999, 128) if 8 * (2 * d * (b + 128) + (b + 128) ** 2) > m), "twice"),
        (lambda m, d: fits(m, 16384), "2 of 5 calls"),
    ],
)
def test_largest_blocks(answer, said):
    rejects(larger.check_largest(answer), said)


def lawn(rows, columns):
    return [(i, j) for i in range(rows) for j in (range(columns)[::-1] if i % 2 else range(columns))]


@pytest.mark.parametrize("order", [lawn, lambda r, c: [(i, j) for j, i in lawn(c, r)], lambda r, c: iter(lawn(r, c))])
def test_right_orders(order):
    assert larger.check_order(order).right


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (lambda r, c: [(i, j) for i in range(r) for j in range(c)], "both i and j change"),
        (lambda r, c: [(i, j) for i in range(r) for j in reversed(range(c))], "both i and j change"),
        (lambda r, c: lawn(r, c)[:-1], "lacks block"),
        (lambda r, c: lawn(r, c) + [(0, 0)], "1 blocks too many"),
        (lambda r, c: lawn(c, r), "lacks block"),
        (lambda r, c: [], "lacks block (0, 0)"),
        (lambda r, c: None, "TypeError"),
        (lambda r, c: [0, 1], "TypeError"),
        (raises, "ZeroDivisionError"),
        (None, "TypeError"),
    ],
)
def test_orders(order, said):
    rejects(larger.check_order(order), said)


def product(gpu, a, b, block):
    c = np.zeros((len(a), len(a)))
    for i in range(0, len(a), block):
        strip_a = gpu.upload(a[i : i + block])
        for j in range(0, len(a), block):
            strip_b = gpu.upload(b[:, j : j + block])
            part = gpu.multiply(strip_a, strip_b)
            c[i : i + block, j : j + block] = gpu.download(part)
            gpu.free(strip_b)
            gpu.free(part)
        gpu.free(strip_a)
    return c


def whole(gpu, a, b, block):
    return gpu.download(gpu.multiply(gpu.upload(a), gpu.upload(b)))


def never_frees(gpu, a, b, block):
    c = np.zeros((len(a), len(a)))
    for i in range(0, len(a), block):
        for j in range(0, len(a), block):
            part = gpu.multiply(gpu.upload(a[i : i + block]), gpu.upload(b[:, j : j + block]))
            c[i : i + block, j : j + block] = gpu.download(part)
    return c


def leaves_one(gpu, a, b, block):
    c = product(gpu, a, b, block)
    gpu.upload(c[:8], "forgotten")
    return c


def exchanged(gpu, a, b, block):
    return product(gpu, b, a, block)


def whole_blocks_only(gpu, a, b, block):
    size = len(a) // block * block
    c = np.zeros((len(a), len(a)))
    full = product(gpu, a, b, block)
    c[:size, :size] = full[:size, :size]
    return c


def test_right_products():
    assert larger.check_product(product).right


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (whole, "card is full"),
        (never_frees, "card is full"),
        (leaves_one, "forgotten"),
        (exchanged, "first wrong element is c[0, 0], in block (0, 0)"),
        (whole_blocks_only, "in block (0, 3)"),
        (lambda gpu, a, b, block: a @ b, "computed 0 products"),
        (lambda gpu, a, b, block: np.zeros_like(a), "all zeros"),
        (lambda gpu, a, b, block: product(gpu, a, b, block)[:block], "has shape (64, 192)"),
        (lambda gpu, a, b, block: None, ""),
        (raises, "ZeroDivisionError"),
        (None, "TypeError"),
    ],
)
def test_products(answer, said):
    rejects(larger.check_product(answer), said)


# -- 11


def test_a_pipeline_by_hand():
    timeline = pipelines.by_hand([2, 3, 1], 4)
    assert timeline.seconds == pytest.approx(15) and timeline.bound == "mult"


def test_right_functions_of_lesson_11():
    assert pipelines.check_pipeline(lambda s, u: sum(s) + max(s) * (u - 1)).right
    assert pipelines.check_share(lambda s, c, g: s * g / (s * g + (1 - s) * c)).right
    assert pipelines.check_buffer(lambda unit: "even" if unit % 2 == 0 else "odd").right


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda s, u: sum(s) * u, "without overlap"),
        (lambda s, u: max(s) * u, "first unit"),
        (lambda s, u: sum(s) + u * max(s), "after the first"),
        (lambda s, u: sum(s) + (u - 1) * sum(s) / len(s), "slowest stage sets"),
        (lambda s, u: sum(s) + (u - 1) * s[len(s) // 2], "calls are right"),
        (lambda s, u: sum(s) + (u - 1) * s[1], "IndexError"),
    ],
)
def test_pipelines(answer, said):
    rejects(pipelines.check_pipeline(answer), said)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda s, c, g: s * c / (s * c + (1 - s) * g), "upside down"),
        (lambda s, c, g: g / (c + g), "share tried"),
        (lambda s, c, g: (s / c) / ((1 - s) / g), "over the chips'"),
        (lambda s, c, g: s * g / c, "add up to 1"),
        (lambda s, c, g: s, "1 of 4 calls"),
        (lambda s, c, g: 0.12, "1 of 4 calls"),
    ],
)
def test_shares(answer, said):
    rejects(pipelines.check_share(answer), said)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda unit: "A0", "30 s; 20 s are possible"),
        (lambda unit: f"A{unit}", "fewer do"),
        (lambda unit: f"A{unit % 3}", "fewer do"),
        (lambda unit: f"A{unit // 3}", "who still reads its buffer"),
        (lambda unit: "A0" if unit == 0 else "A1", "possible"),
        (lambda unit: unit % 2, "returns 0"),
        (lambda unit: "", "returns ''"),
        (lambda unit: None, "returns None"),
        (raises, "ZeroDivisionError"),
        (None, "TypeError"),
    ],
)
def test_buffers(answer, said):
    rejects(pipelines.check_buffer(answer), said)


# -- 12

LOOP = ck.kernels["sgemm_tn"].text.partition("whileloop\n")[2].partition("endloop\n")[0]
GOOD_LOOP = f"whileloop\n{LOOP}endloop\n"
ONE_STEP = "whileloop\n" + "\n".join(
    line.replace("l0.x", "l9.x") if "add r0.z" in line else line
    for line in LOOP.splitlines()
    if ",1,0)" not in line and not re.search(r"mad r\d+, r[67]", line)
)


def test_the_loop_of_the_paper_is_right():
    assert contest.check_two_steps(GOOD_LOOP).right


@pytest.mark.parametrize(
    ("loop", "said"),
    [
        (f"{ONE_STEP}\nendloop\n", "4 fetches"),
        (GOOD_LOOP.replace("mad r25, r7.w, r9, r25", ""), "answer"),
        (GOOD_LOOP.replace("r6.x, r8", "r2.x, r8"), "answer"),
        (GOOD_LOOP.replace("l0.x", "l9.x"), ""),
        (GOOD_LOOP.replace("l0.x", "l0.z"), "endless"),
        (GOOD_LOOP.replace("aoffimmi(0,1,0) r6", "aoffimmi(0,2,0) r6"), ""),
        (GOOD_LOOP.replace("mad r10", "mda r10"), "does not assemble"),
        (GOOD_LOOP.replace("endloop", ""), "does not assemble"),
        ("", ""),
        (None, "not text"),
    ],
)
def test_wrong_loops(loop, said):
    rejects(contest.check_two_steps(loop), said)


def rounds(n, active):
    count = n * n // 4096
    return count / (math.ceil(count / (20 * active)) * 20 * active)


def test_right_functions_of_lesson_12():
    assert contest.check_filled(rounds).right
    chip = replace(ck.HD5870, lds_bytes=0, register_pool=288)
    assert contest.die_bytes(chip) == contest.die_bytes(ck.HD5870)
    assert contest.check_chip(chip).right


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n, k: (n * n // 4096 % (20 * k) or 20 * k) / (20 * k), "last round alone"),
        (lambda n, k: n * n // 4096 / (math.ceil(n * n // 4096 / k) * k), "20 engines"),
        (lambda n, k: n * n / 4096 / (20 * k), "round their number up"),
        (lambda n, k: 1 - rounds(n, k), "stays empty"),
        (lambda n, k: rounds(8 * n, k), "64 x 64"),
        (lambda n, k: rounds(n, 10), "4 of 5 calls"),
    ],
)
def test_filled_rounds(answer, said):
    rejects(contest.check_filled(answer), said)


@pytest.mark.parametrize(
    ("chip", "said"),
    [
        (ck.HD5870, "which"),
        (replace(ck.HD5870, clock_ghz=1.0), "clock_ghz is not"),
        (replace(ck.HD5870, quads_per_clock=2), "quads_per_clock is not"),
        (replace(ck.HD5870, l1_clocks=1), "l1_clocks is not"),
        (replace(ck.HD5870, register_pool=512), "bytes more than"),
        (replace(ck.HD5870, register_pool=264), "bytes more than"),
        (replace(ck.HD5870, register_pool=16), "can't be timed"),
        (replace(ck.HD5870, l1_bytes=0, l2_bytes=0), "which of its memories"),
        (type("Own", (Device,), {"texture_gb_s": 1e9})(name="own"), "not a Own"),
        (None, "not a NoneType"),
        ("HD 5870", "not a str"),
    ],
)
def test_chips(chip, said):
    rejects(contest.check_chip(chip), said)


@pytest.mark.parametrize("shape", [(4, 4, 1), (4, 8, 2), (8, 8, 3), (12, 4, 1)])
def test_written_kernels_are_right(shape):
    score = contest.judge(contest.write(*shape), n=256)
    assert score.verdict.right and score.gflops > 0 and score.report.kernel.startswith(f"{shape[0]} x {shape[1]}")


@pytest.mark.parametrize("shape", [(6, 8, 1), (8, 6, 1), (0, 8, 1), (8, 8, 0), (32, 32, 1)])
def test_kernels_that_can_not_be_written_are_refused(shape):
    with pytest.raises(ValueError, match="multiples of 4"):
        contest.write(*shape)


TEXT = ck.kernels["sgemm_tn"].text
TEST = "ge r1.x, r0.z, cb0[0].z"


def cheat(old: str, new: str, literal: str = "512.0, 0.0, 0.0, 0.0") -> str:
    """``sgemm_tn`` with a change, and a literal l8."""
    assert old in TEXT
    return TEXT.replace(old, new, 1).replace("dcl_cb ", f"dcl_literal l8, {literal}\ndcl_cb ", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace("mad r24, r7.w, r8, r24", ";"), "answer"),
        (TEXT.replace("cb0[0].y", "cb0[0].x"), "answer"),
        (TEXT.replace("mul r25, r25, cb0[0].x", ";"), "answer"),
        (TEXT.replace("mov r25, l0.z", ";", 1), ""),
        (cheat(TEST, "min r1.x, cb0[0].z, l8.x\nge r1.x, r0.z, r1.x"), "At 1024 x 1024 x 1024"),  # half of k
        (cheat("break_logicalnz r1.x", "break_logicalnz r1.x\nge r1.y, vWinCoord0.x, l8.x\nbreak_logicalnz r1.y",
               "64.0, 0.0, 0.0, 0.0"), "the first C[0, 512]: 0 in place"),  # leaves out what is far to the right
        (cheat("break_logicalnz r1.x", "ge r1.y, l8.x, cb0[0].z\niand r1.x, r1.x, r1.y\nbreak_logicalnz r1.x"),
         "not ended"),  # never stops once k is large
        (cheat("    mad r10, r2.x, r4, r10", "eq r1.y, r2.x, l0.z\nif_logicalz r1.y\nmad r10, r2.x, r4, r10\nendif"),
         "can't be timed"),  # right, but its pace depends on the numbers
        (ck.kernels["sgemm_64x64_lds"].text, "workgroup"),
        ("", "does not assemble"),
        (None, "not text"),
    ],
)  # fmt: skip
def test_wrong_entries_have_no_speed(text, said):
    mine = contest.entry(text)
    score = contest.judge(mine, n=1024)
    assert score.gflops == 0 and score.report is None
    if said:
        rejects(score.verdict, said)
    assert "     -  mine" in contest.leaderboard([mine], n=1024)


def test_the_contest_computes_what_it_times():
    """Stopping at 512 steps is right up to k = 512, and has no speed beyond."""
    lazy = contest.entry(cheat(TEST, "min r1.x, cb0[0].z, l8.x\nge r1.x, r0.z, r1.x"))
    assert contest.judge(lazy, n=512).verdict.right
    assert not contest.judge(lazy, n=576).verdict.right
    assert contest.timed(lazy, 2048, device=ck.HD5870).gflops > ck.HD5870.single_gflops


class Forged(contest.Entry):
    def result(self, arguments, m, n):
        return np.zeros((m, n))


@pytest.mark.parametrize(
    ("mine", "said"),
    [
        (contest.entry(TEXT, block=(16, 16)), "no work-item wrote it"),
        *[
            (contest.entry(TEXT, block=block), "whole numbers")
            for block in ((0, 8), (-8, -8), (8.0, 8), [8, 8], "88", 8)
        ],
        (contest.entry(TEXT, block=(2048, 2048)), "whole numbers"),
        (contest.entry(TEXT, k_step=0), "whole numbers"),
        (Forged("x", "single", "pixel", (8, 8), 2, "", True, source=TEXT), "not a Forged"),
        (contest.Score("x", None), "not a Score"),
        (ck.kernels["sgemm_64x64_lds"], "no rival"),
    ],
)
def test_what_is_no_entry_is_told(mine, said):
    rejects(contest.judge(mine).verdict, said)
    rejects(contest.check_entry(mine), said)


def test_an_entry_has_to_be_faster_than_the_catalogues():
    rejects(contest.check_entry(contest.write(8, 8, 1)), "sgemm_tn does")
    rejects(contest.check_entry(ck.kernels["sgemm_tn"]), "sgemm_tn does")
    rejects(contest.check_entry(ck.kernels["dgemm_tn"]), "no rival")
    rejects(contest.check_entry(None), "not a NoneType")
    rejects(contest.check_entry(contest.entry(TEXT, block=(4, 4))), "")
    assert contest.check_entry(contest.write(8, 8, 4)).right


def test_the_leaderboard_judges_sorts_and_names_the_paper():
    own = replace(ck.HD5870, name="mine", lds_bytes=0, register_pool=288)
    kernels = [contest.write(4, 4, steps) for steps in (1, 2)]
    lines = contest.leaderboard([*kernels, (kernels[0], own), (kernels[0], replace(own, clock_ghz=9.0))], n=256)
    head, paper, *rest, wrong = lines.splitlines()
    assert "n = 256" in head and "Nakasato 2010" in paper and len(rest) == 3 and "clock_ghz is not" in wrong
    speeds = [float(line.split()[0]) for line in rest]
    assert speeds == sorted(speeds, reverse=True) and speeds[-1] > 0
    assert sum("step, mine" in line and "lds_bytes 0" in line for line in rest) == 1


# -- the notebooks


@pytest.mark.parametrize("lesson", LESSONS)
def test_student_and_solution_say_so(lesson):
    """Every check says "Not yet." in the student's notebook, in full, and "Right." in the solved one."""
    for place, want in (("", "Not yet."), ("solutions", "Right.")):
        cells = nbformat.read(ROOT / "notebooks" / place / f"{lesson}.ipynb", as_version=4).cells
        said = [
            out["data"]["text/plain"]
            for cell in cells
            if cell.cell_type == "code" and ".check_" in cell.source
            for out in cell.outputs
        ]
        assert len(said) >= 3 and all(text.startswith(want) for text in said)
        assert all(("Where to look:" in text) == (want == "Not yet.") for text in said)
