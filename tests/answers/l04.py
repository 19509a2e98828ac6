"""Lesson 04."""

from cypresskit.editing.steps import starter_text


def ceiling(compute, wait):
    return -(-(compute + wait) // compute)


def counted(compute, wait):
    wavefronts = 1
    while wavefronts * compute < compute + wait:
        wavefronts += 1
    return wavefronts


GIVEN = starter_text("04")
HEAD, _, BELOW = GIVEN.partition("; the old C, all of it, before the loop\n")
EARLY, _, REST = BELOW.partition("\n\nwhileloop")
BEHIND = "; beta times the old C, unless beta is 0\nif_logicalnz cb0[4].x\n"
LOOP = f"whileloop{REST.partition(BEHIND)[0]}"
READS = EARLY.strip().splitlines()
STORES = REST.partition(BEHIND)[2].partition("endif\n")[2]
ADDS = REST.partition(BEHIND)[2].partition("endif")[0].splitlines()
STEP = "iadd r1.z, r1.z, cb0[0].w"
LATE = ["mov r1.z, r0.w"] + [
    line
    for row in range(8)
    for line in (
        "mov r2, g[r1.z]",
        "mov r3, g[r1.z+1]",
        f"mad r{6 + 2 * row}, r2, cb0[0].y, r{6 + 2 * row}",
        f"mad r{7 + 2 * row}, r3, cb0[0].y, r{7 + 2 * row}",
        STEP,
    )
][:-1]


def kernel(late):
    return "\n".join([HEAD + LOOP, "if_logicalnz cb0[4].x", *late, "endif", STORES])
