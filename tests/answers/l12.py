"""Lesson 12."""

import math
from dataclasses import replace

import cypresskit as ck
from cypresskit.editing.steps import starter_text
from cypresskit.teach.l12_contest import checks as contest

GOOD = ck.kernels["sgemm_tn"].text
ONE_STEP = starter_text("12")
FREE = starter_text("four_outputs_nn")


HEAD, _, REST = contest.TARGET_KERNEL.text.partition("whileloop")
# faster than any generated kernel by 0.08 %, which the target doesn't count
NEARLY = f"{HEAD}eq r1.x, l0.x, l0.y\nif_logicalnz r1.x\nmov r1.x, l0.x\nendif\nwhileloop{REST}"


def rounds(n, active):
    count = n * n // 4096
    return count / (math.ceil(count / (20 * active)) * 20 * active)


TEXT = ck.kernels["sgemm_tn"].text


def loop_tested_last(rows, columns, steps):
    """What ``generate_kernel`` makes, with the loop's test at its end."""
    given = contest.generate_kernel(rows, columns, steps)
    text = given.text
    test = "ge r1.x, r0.z, cb0[0].z\nbreak_logicalnz r1.x\n"
    last = text.replace(test, "").replace("endloop", f"{test}endloop")
    return replace(given, name="mine", text=last)
