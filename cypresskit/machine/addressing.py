"""Compute where accesses to textures, LDS and global memory go, and load and store their words.

Addresses are arrays of 32-bit patterns, one for each work-item. The interpreter, the timing and
the memories of compiled code (``tools/run_code.py``) use these functions. The compiled engine has
its own (``compiled.host``).
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.il.meaning import flushed
from cypresskit.machine.launch import Arrays, Launch
from cypresskit.machine.shape import Extent

NOWHERE = 1 << 62  # NaN, and coordinates from here on, with their sign


def texel(
    rows: Sequence[np.ndarray], texture: Extent, offset: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the texel that a fetch reads: x and y (int64, at most +-``NOWHERE``), and whether they
    are in the texture.

    Parameters
    ----------
    rows
        The coordinates: floats, which are rounded down; subnormals are 0.
    texture
        The size of the texture.
    offset
        Texels to add, for each dimension.
    """
    floors = (np.floor(flushed(bits)) + np.float64(more) for bits, more in zip(rows, offset))
    x, y = (np.where(abs(f) < NOWHERE, f, np.copysign(NOWHERE, f)).astype(np.int64) for f in floors)
    return x, y, texture.contains(x, y)


def lds_inside(byte: np.ndarray, word: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the index (int64) of the LDS word ``word`` words after the one at ``byte``, and if it
    is in an array of ``size`` bytes. The two low bits of an address are dropped.
    """
    place = (byte & ~np.int64(3)) + 4 * word
    return place >> 2, (place >= 0) & (place < size)


def element(offset: int, index: np.ndarray | None, items: int) -> np.ndarray:
    """Return the number (int64) of the element that ``g[index + offset]`` names, for each
    work-item.
    """
    numbers = np.full(items, offset, np.int64)
    return numbers if index is None else numbers + index.view(np.int32)


class Memories:
    """The LDS of a running launch, and access to its other memories."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.lds = {
            n: np.zeros((launch.shape.group_count, size // 4), np.uint32)
            for n, size in launch.program.lds.items()
        }

    def load(self, array: int, word: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return a word of LDS for each work-item, 0 if it isn't ``inside``."""
        row = np.zeros(len(inside), np.uint32)
        row[inside] = self.lds[array][self.launch.group[inside], word[inside]]
        return row

    def store(self, array: int, word: np.ndarray, row: np.ndarray, active: np.ndarray) -> None:
        """Store a word to LDS for each active work-item."""
        self.lds[array][self.launch.group[active], word[active]] = row[active]

    def check_store(
        self, at: int, place: np.ndarray, inside: np.ndarray, active: np.ndarray
    ) -> None:
        """Raise ``KernelError`` if an active work-item's store ``body[at]`` isn't ``inside``.
        ``place``: bytes of LDS, or elements of global memory.
        """
        if len(outside := np.flatnonzero(active & ~inside)):
            raise self.launch.store_error(at, int(outside[0]), int(place[outside[0]]))

    def store_global(self, element: np.ndarray, values: Arrays, active: np.ndarray) -> None:
        """Store components, by their numbers, to elements of global memory."""
        for c, row in values.items():
            self.launch.memory[element[active], c] = row[active]
