"""Lesson 04."""

from answers import given


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
READS = [
    "mov r1.z, r0.w",
    "mov r4, g[r1.z]",
    STEP,
    "mov r5, g[r1.z]",
    STEP,
    "mov r6, g[r1.z]",
    STEP,
    "mov r7, g[r1.z]",
]
ADDS = [f"mad r{10 + i}, r{4 + i}, cb0[0].y, r{10 + i}" for i in range(4)]
SCALED = [f"mad r{10 + i}, r{10 + i}, cb0[0].y, r{4 + i}" for i in range(4)]
FIRST = [
    line for i in range(4) for line in ("mov r4, g[r1.z]", f"mul r{10 + i}, r4, cb0[0].y", STEP)
]
INSIDE = kernel(READS, []).replace("endloop", "\n".join([*ADDS, "endloop"]))
UNSTORED = kernel([], READS + ADDS).replace("mov g[r0.w], r13", "")
