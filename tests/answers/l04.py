"""Lesson 04."""

from dataclasses import replace

import cypresskit as ck
from answers import given, number, text
from cypresskit.teach.l04_registers import BUDGET, check_c_late, check_chip, check_needed


def ceiling(compute, wait):
    return -(-(compute + wait) // compute)


def counted(compute, wait):
    wavefronts = 1
    while wavefronts * compute < compute + wait:
        wavefronts += 1
    return wavefronts


KERNEL = given("04_registers_and_wavefronts", "with_c")


def kernel(early: list[str], late: list[str]) -> str:
    text = KERNEL.replace("; place 1: before the loop", "\n".join(early))
    return text.replace("; place 2: after the loop", "\n".join(late))


STEP = "iadd r1.z, r1.z, cb0[0].w"
READS = ["mov r1.z, r0.w", "mov r4, g[r1.z]", STEP, "mov r5, g[r1.z]", STEP, "mov r6, g[r1.z]", STEP, "mov r7, g[r1.z]"]
ADDS = [f"mad r{10 + i}, r{4 + i}, cb0[0].y, r{10 + i}" for i in range(4)]
SCALED = [f"mad r{10 + i}, r{10 + i}, cb0[0].y, r{4 + i}" for i in range(4)]
FIRST = [line for i in range(4) for line in ("mov r4, g[r1.z]", f"mul r{10 + i}, r4, cb0[0].y", STEP)]
INSIDE = kernel(READS, []).replace("endloop", "\n".join([*ADDS, "endloop"]))
UNSTORED = kernel([], READS + ADDS).replace("mov g[r0.w], r13", "")

CHECKS = {
    check_needed: number(
        [ceiling, counted, lambda c, w: float(ceiling(c, w))],
        [
            (lambda compute, wait: 1, "gives 1; it should be 4"),
            (lambda compute, wait: (compute + wait) / compute, "no part of a wavefront"),
            (lambda compute, wait: (compute + wait) // compute, "round up, not down"),
            (lambda compute, wait: round((compute + wait) / compute), "not to the nearest"),
            (lambda compute, wait: -(-wait // compute), "itself computes too: a round is compute + wait clocks long."),
            (lambda compute, wait: wait / compute, "and round up to a whole number"),
            (lambda compute, wait: wait // compute, "and round up, not down"),
            (lambda compute, wait: wait // compute + 2, "fills wait exactly this is one too many"),
            (lambda compute, wait: ceiling(compute, wait) + 1, "would do"),
            (lambda compute, wait: compute + wait, "how many fill that time"),
        ],
    ),
    check_c_late: text(
        [
            kernel([], late)
            for late in [
                READS + ADDS,
                ["if_logicalnz cb0[4].y", "endif", *READS, *ADDS[::-1]],
                [*READS, *(a.replace("mad", "fma") for a in ADDS)],
            ]
        ]
        + [kernel(["mov r1.z, r0.w", *FIRST], [])],
        [
            (kernel(early, late), said)
            for early, late, said in [
                ([], [], "the old C was not added to r10"),
                (READS, ADDS, f"registers; {BUDGET} are enough"),
                ([], READS + ADDS[:3], "row 3 of every block"),
                ([], [*READS, *(a.replace("cb0[0].y", "cb0[0].x") for a in ADDS)], "without its beta"),
                ([], [*READS, *(a[: a.rindex(",")].replace("mad", "mul") for a in ADDS)], "`mul` puts beta times C"),
                ([], [*READS, *SCALED], "beta multiplies C, not"),
                ([], ["mov r4, g[r0.w]", ADDS[0], STEP.replace("r1.z", "r0.w")], "step on with a copy"),
                ([], [r.replace("cb0[0].w", "l0.z") for r in READS] + ADDS, "its rows lie cb0[0].w elements apart"),
                (["whileloop", "endloop"], [], "the line it names"),
                ([], [r for r in READS if r != STEP] + ADDS, "row 1 got row 0 of the old C"),
                ([], [*READS, *(a.replace("mad", "mda") for a in ADDS)], "does not assemble"),
                ([], [*READS, *ADDS, "mov r1.z, l0.w", "mov g[r1.z+99999], r10"], "does not run"),
            ]
        ]
        + [(INSIDE, "in every turn of the loop"), (UNSTORED, "row 3 of C stays as it was")],
    ),
    check_chip: (
        [replace(ck.HD5870, name=name, register_pool=370) for name in ("HD 5870", "my chip")],
        [
            (ck.HD5870, "6 wavefronts of sgemm_tn_37 fit"),
            (replace(ck.HD5870, register_pool=369), "9 wavefronts"),
            (replace(ck.HD5870, register_pool=371), "fewer registers would do"),
            (replace(ck.HD5870, register_pool=407), "11 wavefronts"),
            (replace(ck.HD5870, register_pool=370, l1_bytes=0), "Something other"),
            (replace(ck.HD5870, register_pool=20), "does not fit"),
            (370, "my_chip is an int"),
            (None, "my_chip is None"),
        ],
    ),
}
