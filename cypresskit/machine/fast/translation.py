"""What the translator makes of a program, for the host that runs it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Translation:
    """IR text and how to talk to it: the context's slots by name, the literals in the order of
    their table, which of the counters counts each instruction of the program's body; and ``sizes``,
    the bytes of what a host thread owns. ``reads_global``: what global memory held before matters,
    also to the explaining engine, which decides where flow that holds barriers diverges.
    ``layouts``: the fields of textures' layouts, by their numbers.
    """

    text: str
    slots: dict[str, int]
    literals: tuple[int, ...]
    counters: list[int]
    sizes: dict[str, int]
    lanes: int
    reads_global: bool
    layouts: dict[str, tuple[int, int]]
