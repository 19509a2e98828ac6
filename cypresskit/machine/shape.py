"""A launch without its arrays: the program, the domain, and how large everything is that is bound to it.

Pixel mode: the domain is (width, height, 1); a wavefront is a tile of 8 x 8 work-items, in quads of 2 x 2. Compute
mode: the domain counts work-items along x, y, z; a wavefront is 64 consecutive ones of a workgroup. Work-items have
numbers, row by row in a pixel domain and group by group in a compute domain; lanes of a wavefront that stick out of the
domain, or of the workgroup, are there and never active.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cypresskit.il import Program

WAVEFRONT = 64  # work-items
TILE = 8  # pixels along a side of a wavefront's tile


def wavefronts(domain: Sequence[int], group: int) -> int:
    """Wavefronts of a domain in workgroups of so many work-items, 0 in pixel mode."""
    if not group:
        return -(-domain[0] // TILE) * -(-domain[1] // TILE)
    return math.prod(domain) // group * -(-group // WAVEFRONT)


@dataclass(frozen=True)
class Extent:
    """The size of a texture or an output: ``texel`` counts bytes."""

    width: int
    height: int
    texel: int


@dataclass(frozen=True)
class Shape:
    """A launch without its arrays: ``textures`` and ``outputs`` by number, ``constants`` number to uint32 of shape
    (elements, 4). Global memory needs no size. ``ValueError`` if the program needs more."""

    program: Program
    domain: tuple[int, int, int]
    textures: Mapping[int, Extent]
    constants: Mapping[int, np.ndarray]
    outputs: Mapping[int, Extent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {"cb": "constants", "o": "outputs", "resource": "textures"}
        for kind, number, line in self.program.needs:
            if kind in given and number not in getattr(self, given[kind]):
                used = f"uses {kind} {number}, and Shape has no {given[kind]}[{number}]"
                raise ValueError(f"{self.program.where(line)}\n    {used}")
        for number, least in self.program.constants.items():
            shape = np.shape(self.constants.get(number, np.zeros((least, 4))))
            if len(shape) != 2 or shape[0] < least or shape[1] != 4:
                what = f"constants[{number}] has shape {shape}, not ({least}, 4), which {self.program.name} reads"
                raise ValueError(what)
        groups = self.program.group if self.program.mode == "compute" else (1, 1, 1)
        if len(self.domain) != 3 or any(d < 0 or d % g for d, g in zip(self.domain, groups)):
            raise ValueError(f"the domain {self.domain} is not three whole multiples of the workgroup {groups}")

    @property
    def pixels(self) -> bool:
        """Whether the work-items are pixels."""
        return self.program.mode == "pixel"

    @property
    def items(self) -> int:
        """Work-items in all."""
        return math.prod(self.domain)

    @property
    def group_items(self) -> int:
        """Work-items of a workgroup; in pixel mode there are no groups: each is one of its own."""
        return 1 if self.pixels else math.prod(self.program.group)

    @property
    def groups(self) -> tuple[int, int, int]:
        """Workgroups along x, y, z (compute mode)."""
        x, y, z = (d // g for d, g in zip(self.domain, self.program.group, strict=True))
        return x, y, z

    @property
    def group_wavefronts(self) -> int:
        """Wavefronts per workgroup; 1 in pixel mode."""
        return -(-self.group_items // WAVEFRONT)

    @property
    def wavefronts(self) -> int:
        """Wavefronts dispatched."""
        return wavefronts(self.domain, 0 if self.pixels else self.group_items)

    def place(self, item: int):
        """Where work-item number ``item`` is: (x, y) in a pixel domain, its number in a compute domain."""
        return (item % self.domain[0], item // self.domain[0]) if self.pixels else item

    def item_name(self, item: int) -> str:
        """``work-item (3, 5)``, or ``work-item 70 (number 6 of group 1)``."""
        if self.pixels:
            return f"work-item {self.place(item)}"
        group, within = divmod(item, self.group_items)
        return f"work-item {item} (number {within} of group {group})"
