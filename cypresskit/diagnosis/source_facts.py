"""What a kernel's source says without a run: the scalars and the old C that it reads."""

import numpy as np

from cypresskit.devices import Range
from cypresskit.il.dataflow import Key, components, defines, liveness, uses
from cypresskit.il.errors import ArgumentError, shorten
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.convention import ALPHA, BETA, BETA_FLAG
from cypresskit.kernels.products import TEST_ALPHA, TEST_BETA


def choose_scalars(kernel: Kernel, alpha: float | None, beta: float | None) -> tuple[float, float]:
    """Return alpha and beta to verify a kernel with.

    They are as given. Otherwise alpha is 2 if the kernel reads it, and 1 if it doesn't; beta is -1
    if the kernel reads beta or the old C, and 0 if it reads neither.
    """
    reads_alpha, reads_beta = scalars_read(kernel)
    reads_c = any(kernel.convention.reads(i, "C") for i in kernel.program.body)
    if alpha is None:
        alpha = TEST_ALPHA if reads_alpha else 1.0
    if beta is None:
        beta = TEST_BETA if reads_beta or reads_c else 0.0
    most = float(np.finfo(kernel.dtype).max)
    for name, scalar in (("alpha", alpha), ("beta", beta)):
        if not Range(least=-most, most=most).has(scalar, whole=False):
            raise ArgumentError(
                f"{name} = {shorten(scalar)} has to be a finite number of {kernel.dtype}"
            )
    return alpha, beta


def scalars_read(kernel: Kernel) -> tuple[bool, bool]:
    """Return whether a kernel computes with alpha and with beta, or asks whether beta is 0. A
    comparison isn't a use: a loop's bound may be another number of cb0. Nor is a copy that no line
    reads.
    """
    read: set[Key] = set()
    for i, live in zip(kernel.program.body, liveness(kernel.program)[1:]):
        for _, source, positions in uses(kernel.program, i):
            element = source.register.element
            is_compared = i.op.relation and element != BETA_FLAG
            if (source.register.kind, source.register.index) != ("cb", 0) or is_compared:
                continue
            unused = {position for _, position in {*defines(i)} - live}
            taken = [p for p in positions if i.opcode != "mov" or p not in unused]
            read |= {(element, component) for component in components(source, taken)}
    return bool(read & ALPHA), bool(read & BETA)
