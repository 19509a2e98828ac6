"""What a program's translation is to the host that runs it."""

from dataclasses import dataclass

DONE, FAILED, ENDLESS, DIVERGED, UNDERFLOWED, STOPPED = range(6)  # how a call of it ends
# What it reports: where in the body, whose, of which element of memory; the next batch.
PLACE, ITEM, ELEMENT, NEXT = range(4)
TEXEL = 16  # bytes, also of a place in ``spill``


@dataclass(frozen=True)
class Translation:
    """IR text and how to talk to it: the context's slots by name, the literals in the order of
    their table, which of the counters counts each instruction of the program's body; and ``sizes``,
    the bytes of what a host thread owns. ``reads_global``: what global memory held before matters,
    also to the interpreter, which runs the launch where work-items diverge.
    """

    text: str
    slots: dict[str, int]
    literals: tuple[int, ...]
    counters: list[int]
    sizes: dict[str, int]
    reads_global: bool
