"""Lesson 12."""

import math
import re
from dataclasses import replace

import cypresskit as ck
from answers import number, text
from cypresskit.devices import Device
from cypresskit.teach import l12_contest as contest
from cypresskit.teach.kernels import Written

LOOP = ck.kernels["sgemm_tn"].text.partition("whileloop\n")[2].partition("endloop\n")[0]
GOOD_LOOP = f"whileloop\n{LOOP}endloop\n"
ONE_STEP = "whileloop\n" + "\n".join(
    line.replace("l0.x", "l9.x") if "add r0.z" in line else line
    for line in LOOP.splitlines()
    if ",1,0)" not in line and not re.search(r"mad r\d+, r[67]", line)
)


HEAD, _, REST = contest.BAR.text.partition("whileloop")
NEARLY = f"{HEAD}eq r1.x, l0.x, l0.y\nif_logicalnz r1.x\nmov r1.x, l0.x\nendif\nwhileloop{REST}"  # it is 0.02 % faster


def rounds(n, active):
    count = n * n // 4096
    return count / (math.ceil(count / (20 * active)) * 20 * active)


TEXT = ck.kernels["sgemm_tn"].text
SGEMM = ck.kernels["sgemm_tn"]


def twice_a_turn(rows: int, columns: int, steps: int) -> Written:
    """What ``write`` makes, with its loop's body twice in a turn."""
    text = contest.write(rows, columns, steps).text
    loop = text.partition("whileloop\n")[2].partition("endloop")[0]
    return contest.entry(text.replace(loop, 2 * loop), (rows, columns), steps)


class Forged(Written):
    def result(self, arguments, m, n):
        return 0


CHECKS = {
    contest.check_two_steps: text(
        [GOOD_LOOP],
        [
            (f"{ONE_STEP}\nendloop\n", "4 fetches"),
            (GOOD_LOOP.replace("mad r25, r7.w, r9, r25", ""), "answer"),
            (GOOD_LOOP.replace("r6.x, r8", "r2.x, r8"), "answer"),
            (GOOD_LOOP.replace("l0.x", "l9.x"), ("counts one", "count to two")),
            (GOOD_LOOP.replace("l0.x", "l0.z"), "endless"),
            (GOOD_LOOP.replace("aoffimmi(0,1,0) r6", "aoffimmi(0,2,0) r6"), ""),
            (GOOD_LOOP.replace("mad r10", "mda r10"), "does not assemble"),
            (GOOD_LOOP.replace("endloop", ""), "does not assemble"),
        ],
    ),
    contest.check_filled: number(
        [rounds],
        [
            (lambda n, k: (n * n // 4096 % (20 * k) or 20 * k) / (20 * k), "last round alone"),
            (lambda n, k: n * n // 4096 / (math.ceil(n * n // 4096 / k) * k), "20 engines"),
            (lambda n, k: n * n / 4096 / (20 * k), "round their number up"),
            (lambda n, k: 1 - rounds(n, k), "stays empty"),
            (lambda n, k: rounds(8 * n, k), "64 x 64"),
            (lambda n, k: n * n // 4096 / ((n * n // 4096 // (20 * k) + 1) * 20 * k), "needs no other after it"),
            (lambda n, k: rounds(n, 10), "4 of 5 calls"),
        ],
    ),
    contest.check_chip: (
        [replace(ck.HD5870, lds_bytes=0, register_pool=288)],
        [
            (ck.HD5870, "which"),
            (replace(ck.HD5870, clock_ghz=1.0), "clock_ghz is not"),
            (replace(ck.HD5870, quads_per_clock=2), "quads_per_clock is not"),
            (replace(ck.HD5870, l1_clocks=1), "l1_clocks is not"),
            (replace(ck.HD5870, register_pool=512), "bytes more than"),
            (replace(ck.HD5870, register_pool=264), "bytes more than"),
            (replace(ck.HD5870, register_pool=16), "can't be timed"),
            (replace(ck.HD5870, l1_bytes=0, l2_bytes=0), "which of its memories"),
            (type("Own", (Device,), {"texture_gb_s": 1e9})(name="own"), "not an Own"),
            (None, "not None"),
            ("HD 5870", "not a str"),
        ],
    ),
    contest.check_entry: (
        [twice_a_turn(12, 8, 3)],
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
        ]
        + [
            (contest.write(8, 8, 3), "at 2012 Gflop/s; the bar, 8 x 8, 3 steps, does 2012"),
            (contest.entry(NEARLY, k_step=3), "share a place"),
            (contest.write(8, 8, 2), "the bar"),
            (contest.write(8, 8, 4), "the bar"),
            (SGEMM, "the bar"),
            (ck.kernels["dgemm_tn"], "no rival"),
            (None, "not None"),
            (contest.entry(TEXT, block=(4, 4)), ""),
        ],
    ),
}
