"""Where an access looks: in a texture, in the local data share, in global memory.

One function for each memory, on arrays of 32-bit patterns, one for each work-item. All engines that run on numpy arrays
ask these, and so does the timing. Left out: what is found there.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.il.meaning import flushed
from cypresskit.machine.shape import Extent

NOWHERE = np.iinfo(np.int64).min  # the whole coordinate that a NaN becomes
INFINITE = np.iinfo(np.int64).max  # and with its sign, an infinity


def texel(
    rows: Sequence[np.ndarray], of: Extent, offset: Sequence[int], *, whole: bool, unnormalised: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole coordinates x and y (int64, see ``integers``) of a fetch with coordinates ``rows``, one for each dimension,
    and whether they lie in the texture; ``offset`` is added after rounding down."""
    found, inside = [], []
    for bits, size, more in zip(rows, (of.width, of.height), offset):
        place = coordinate(bits, size, whole=whole, unnormalised=unnormalised) + more
        inside.append((place >= 0) & (place < size))  # false for NaN
        found.append(integers(place))
    return found[0], found[1] if len(found) > 1 else np.zeros_like(found[0]), np.logical_and.reduce(inside)


def coordinate(bits: np.ndarray, size: int, *, whole: bool, unnormalised: bool) -> np.ndarray:
    """One coordinate of a fetch, rounded down, as float64. ``whole``: an integer; else a float (0 if subnormal) that
    counts texels (``unnormalised``) or runs from 0 to 1 over ``size`` of them."""
    if whole:
        return bits.view(np.int32).astype(np.float64)
    value = flushed(bits)
    return np.floor(value if unnormalised else value * np.float32(size)).astype(np.float64)


def integers(place: np.ndarray) -> np.ndarray:
    """Coordinates as int64; those that no int64 holds become +-2^62, infinities +-``INFINITE``, NaN ``NOWHERE``."""
    if -(2.0**31) < place.min() and place.max() < 2.0**31:  # false for NaN
        return place.astype(np.int64)
    found = np.clip(place, -(2.0**62), 2.0**62).astype(np.int64)
    return np.where(np.isnan(place), NOWHERE, np.where(np.isinf(place), np.sign(found) * INFINITE, found))


def lds_byte(record: np.ndarray, stride: int = 0, byte: np.ndarray | int = 0) -> np.ndarray:
    """The byte (int64) that an LDS access asks for: ``record``, or in a block of records the ``byte`` of a record."""
    return record.astype(np.int64) * stride + byte if stride else record.astype(np.int64)


def lds_inside(byte: np.ndarray, word: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The LDS word (int64), ``word`` words behind the one that holds ``byte``, and whether it is in a block of ``size``
    bytes: the two low bits of an address don't count."""
    place = (byte & ~np.int64(3)) + 4 * word
    return place >> 2, (place >= 0) & (place < size)


def element(offset: int, index: np.ndarray | None, items: int) -> np.ndarray:
    """The element (int64) of global memory that ``g[index + offset]`` names, for each work-item."""
    found = np.full(items, offset, np.int64)
    return found if index is None else found + index.view(np.int32)
