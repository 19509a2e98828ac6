"""``TextKernel``: a kernel that brings its IL with it, rather than a file of the catalogue."""

from dataclasses import dataclass, fields, replace
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


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        """The name, how it is launched as far as that is unusual, and how long the text is."""
        unusual = {
            field.name: getattr(self, field.name)
            for field in fields(Kernel)
            if field.name in CONVENTION and getattr(self, field.name) != field.default
        }
        convention = "".join(f", {name}={value!r}" for name, value in unusual.items())
        return f"Kernel({self.name!r}{convention}; {len(self.text.splitlines())} lines of IL)"

    @cached_property
    def program(self) -> Program:
        if self.given is not None:
            return self.given
        return assembled(self.source, f"{self.name}.il", before=self.before)


def as_launched_like(kernel: TextKernel, convention: Kernel) -> TextKernel:
    """The kernel with another's launch convention."""
    return replace(kernel, **{name: getattr(convention, name) for name in CONVENTION})
