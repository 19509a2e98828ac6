"""``Translation``: what the host has to know of a translated program."""

from dataclasses import dataclass

DONE, FAILED, ENDLESS, DIVERGED = range(4)  # how a call ends
# What it reports: index in the body; work-item; element of memory, or byte of LDS; the next batch
AT, ITEM, ELEMENT, NEXT = range(4)
TEXEL = 16  # bytes, also of a variable in ``spill``
LINE = 64  # bytes of a cache line, to which memory is aligned


@dataclass(frozen=True)
class Translation:
    """A program's translation.

    Attributes
    ----------
    text
        LLVM IR.
    entries
        The names of the context's entries.
    literals
        The words of the literals' table.
    counters
        For each instruction of the program's body, the counter of its executions.
    places
        The first byte of each part of the kernel's memory, and their "end".
    reads_global
        Whether results depend on what global memory held before; also if the interpreter may have
        to repeat the launch, because work-items diverge.
    """

    text: str
    entries: list[str]
    literals: list[int]
    counters: list[int]
    places: dict[str, int]
    reads_global: bool
