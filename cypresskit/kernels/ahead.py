"""Machine code made ahead: ``python -m cypresskit.kernels.ahead`` compiles the catalogue's kernels
and the blocks of the lessons for this processor, as far as they aren't kept yet, so that a lesson's
first run is as quick as its second.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from cypresskit.il import Program
from cypresskit.kernels.catalogue import KERNELS
from cypresskit.kernels.generated import block_kernel
from cypresskit.machine.fast.jit import compiled

SIDES = (1, 2, 4, 8)  # of the lessons' blocks


def programs() -> Iterator[Program]:
    """What the lessons run, that which comes first in them first."""
    for side in SIDES:
        yield block_kernel(side, side).program
        yield block_kernel(side, side, scaled=True).program
    for kernel in KERNELS.values():
        yield kernel.program


def compile_ahead() -> None:
    """Compile all of them, after everything else that the machine has to do."""
    with suppress(AttributeError, OSError):  # not on Windows
        os.nice(10)
    for program in programs():
        compiled(program)


if __name__ == "__main__":
    compile_ahead()
