"""A launch without its arrays: the program, the domain, and the size of everything bound to it.

Pixel mode: the domain is (width, height, 1); a wavefront is a tile of 8 x 8 work-items, in quads of
2 x 2. Compute mode: the domain is (work-items, 1, 1); a wavefront is 64 consecutive ones of a
workgroup. Work-items are numbered row by row in a pixel domain and group by group in a compute
domain. Lanes of a wavefront outside of the domain, or of the workgroup, are numbered and never
active.
A work-item's coordinates are its x and y in a pixel domain, its workgroup and its number there in a
compute domain.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cypresskit.devices import TILE, WAVEFRONT, is_whole
from cypresskit.il import Program
from cypresskit.il.errors import ArgumentError
from cypresskit.machine import arguments

LANE_NUMBERS = np.arange(WAVEFRONT)
TEXEL_BYTES = 4, 8, 16


@dataclass(frozen=True)
class Extent:
    """The size of a texture or an output: ``texel`` counts bytes."""

    width: int
    height: int
    texel: int

    def contains(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return which texels (x, y) are in it."""
        return (x >= 0) & (x < self.width) & (y >= 0) & (y < self.height)


@dataclass(frozen=True)
class LaunchShape:
    """A launch without its arrays: a kernel's time depends on sizes and constants alone.

    ``domain`` as for ``launch``. ``textures`` and ``outputs`` by number: (width, height) in texels
    of 16 bytes, or (width, height, bytes of a texel); an output that isn't given is as large as the
    domain. ``constants`` as for ``launch``. Global memory needs no size. ``ValueError`` or
    ``TypeError`` if the program needs more, as in ``launch``.

        shape = ck.LaunchShape(program, (64, 64), {0: (64, 512)}, {0: np.ones(4, "f4")})
        ck.simulate(shape)
    """

    program: Program
    domain: tuple[int, int, int]
    textures: Mapping[int, Extent] = field(default_factory=dict)
    constants: Mapping[int, np.ndarray] = field(default_factory=dict)
    outputs: Mapping[int, Extent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.program, Program):
            raise ArgumentError(
                "a LaunchShape begins with its program: ck.LaunchShape(program, (64, 64), ...), not"
                f" {self.program!r}"
            )
        domain = arguments.whole_domain(self.program, self.domain)
        given = {
            name: arguments.by_number(name, getattr(self, name))
            for name in ("constants", "outputs", "textures")
        }
        given["outputs"] = {
            n: domain[:2] for kind, n, _ in self.program.needs if kind == "o"
        } | given["outputs"]
        arguments.check_needs(self.program, given)
        for name in ("outputs", "textures"):
            given[name] = {n: self._extent(name, n, size) for n, size in given[name].items()}
        given["constants"] = {
            n: arguments.constant_words(v, self.program, n) for n, v in given["constants"].items()
        }
        for name, value in {"domain": domain, **given}.items():
            object.__setattr__(self, name, value)

    def _extent(self, name: str, n: int, size: Any) -> Extent:
        if isinstance(size, Extent):
            return size
        sizes = (*size, 16)[:3] if isinstance(size, Sequence) and len(size) in (2, 3) else (0,)
        if not all(map(is_whole, sizes)) or sizes[2] not in TEXEL_BYTES:
            taken = "(width, height) or (width, height, 4, 8 or 16 bytes of a texel)"
            raise ArgumentError(f"{name}[{n}] is {taken}; found {size!r}")
        return Extent(*map(int, sizes))

    @property
    def pixels(self) -> bool:
        """Whether the work-items are pixels."""
        return self.program.mode == "pixel"

    @property
    def items(self) -> int:
        """The number of work-items."""
        return math.prod(self.domain)

    @property
    def group_items(self) -> int:
        """Work-items of a workgroup; 1 in pixel mode, which has no groups."""
        return 1 if self.pixels else self.program.group

    @property
    def group_count(self) -> int:
        """The number of workgroups; in pixel mode, of work-items."""
        return self.items // self.group_items

    def split_groups(self, active: np.ndarray) -> np.ndarray:
        """Return the numbers of the workgroups that have active and inactive work-items."""
        counts = active.reshape(-1, self.group_items).sum(axis=1)
        return np.flatnonzero(counts % self.group_items)

    @property
    def group_wavefronts(self) -> int:
        """Wavefronts per workgroup; 1 in pixel mode."""
        return -(-self.group_items // WAVEFRONT)

    @property
    def wavefronts(self) -> int:
        """Wavefronts dispatched."""
        if self.pixels:
            return -(-self.domain[0] // TILE) * -(-self.domain[1] // TILE)
        return self.group_count * self.group_wavefronts

    @property
    def batches(self) -> int:
        """The number of tiles of 8 x 8 pixels, or of workgroups."""
        return self.wavefronts if self.pixels else self.group_count

    def items_of(self, batches: np.ndarray) -> np.ndarray:
        """Return the numbers of the work-items in some tiles, or in some workgroups."""
        per = 1 if self.pixels else self.group_wavefronts
        first, second, exist = lanes(self, (batches[:, np.newaxis] * per + np.arange(per)).ravel())
        return number(self, first[exist], second[exist])

    def place(self, item: int) -> Any:
        """Return the place of work-item number ``item``: (x, y) in a pixel domain, its number in a
        compute domain.
        """
        return (item % self.domain[0], item // self.domain[0]) if self.pixels else item

    def item_name(self, item: int) -> str:
        """Return ``work-item (3, 5)``, or ``work-item 70 (number 6 of group 1)``; in group 0
        ``work-item 6``, since both numbers are equal.
        """
        if self.pixels:
            return f"work-item {self.place(item)}"
        group, within = divmod(item, self.group_items)
        in_group = f" (number {within} of group {group})" if group else ""
        return f"work-item {item}{in_group}"


def coordinates(shape: LaunchShape, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of work-items by their numbers."""
    if not shape.pixels:
        return np.divmod(items, shape.group_items)
    y, x = np.divmod(items, shape.domain[0])
    return x, y


def number(shape: LaunchShape, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the numbers of work-items by their coordinates."""
    across = shape.domain[0]
    numbers: np.ndarray
    numbers = first + across * second if shape.pixels else first * shape.group_items + second
    return numbers


def lanes(shape: LaunchShape, wavefronts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coordinates of all 64 lanes of each wavefront (numbers in dispatch order), one
    wavefront after another; and which lanes exist. A tile's lanes are listed quad by quad.
    """
    wave = np.asarray(wavefronts)[:, np.newaxis]
    if shape.pixels:
        across = -(-shape.domain[0] // TILE)
        x = (wave % across * TILE + LANE_NUMBERS // 4 % 4 * 2 + LANE_NUMBERS % 2).ravel()
        y = (wave // across * TILE + LANE_NUMBERS // 16 * 2 + LANE_NUMBERS % 4 // 2).ravel()
        return x, y, (x < shape.domain[0]) & (y < shape.domain[1])
    per = shape.group_wavefronts
    group = np.repeat(wave // per, WAVEFRONT)
    within = (wave % per * WAVEFRONT + LANE_NUMBERS).ravel()
    return group, within, within < shape.group_items


def wavefront(shape: LaunchShape, item: int) -> int:
    """Return the number of the wavefront that a work-item belongs to."""
    if shape.pixels:
        x, y = shape.place(item)
        return int(y // TILE * -(-shape.domain[0] // TILE) + x // TILE)
    return (
        item // shape.group_items * shape.group_wavefronts + item % shape.group_items // WAVEFRONT
    )


def input_registers(
    shape: LaunchShape, first: np.ndarray, second: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the input registers of work-items by their coordinates: name to uint32 bits of shape
    (4, work-items).
    """
    if shape.pixels:
        place = np.zeros((4, len(first)), np.float32)
        place[0] = first
        place[1] = second
        place[2:] = [[-0.5], [0.5]]
        return {"vWinCoord0": (place + np.float32(0.5)).view(np.uint32)}
    rows = {
        "vAbsTidFlat": number(shape, first, second),
        "vThreadGrpIdFlat": first,
        "vTidInGrpFlat": second,
    }
    return {name: np.stack([row] * 4).astype(np.uint32) for name, row in rows.items()}
