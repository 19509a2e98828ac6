"""``TextKernel``: a kernel that brings its IL with it, rather than a file of the catalogue."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from cypresskit.il import Program, assemble
from cypresskit.kernels.catalogue import Kernel

#: The fields of a kernel that say how it is launched.
CONVENTION = (
    "precision",
    "mode",
    "block",
    "k_step",
    "trans_a",
    "trans_b",
    "group",
    "streams",
    "buffer",
    "texel",
    "parts",
    "packed",
)
#: A text is assembled once, however often and with whatever block it is used.
assembled = lru_cache(maxsize=64)(assemble)


@dataclass(frozen=True)
class TextKernel(Kernel):
    """A kernel with the IL ``source``, after lines ``before`` it that reports don't count.

    ``given`` is the program itself, where there was one from the start.
    """

    source: str = ""
    before: str = ""
    given: Program | None = None

    @property
    def text(self) -> str:
        return self.before + self.source

    @cached_property
    def program(self) -> Program:
        if self.given is not None:
            return self.given
        return assembled(self.source, f"{self.name}.il", before=self.before)


def as_launched_like(kernel: TextKernel, convention: Kernel) -> TextKernel:
    """The kernel with another's launch convention."""
    return replace(kernel, **{name: getattr(convention, name) for name in CONVENTION})
