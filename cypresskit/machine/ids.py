"""Work-items and wavefronts: which lanes make a wavefront, and what a work-item's input registers hold.

A work-item's coordinates are its x and y in a pixel domain, its workgroup and its number in it in a compute domain.
"""

import numpy as np

from cypresskit.machine.shape import TILE, WAVEFRONT, Shape

LANES = np.arange(WAVEFRONT)


def coordinates(shape: Shape, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of work-items by their numbers."""
    across = shape.domain[0] if shape.pixels else shape.group_items
    return (items % across, items // across) if shape.pixels else (items // across, items % across)


def number(shape: Shape, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The numbers of work-items by their coordinates."""
    return first + shape.domain[0] * second if shape.pixels else first * shape.group_items + second


def lanes(shape: Shape, wavefronts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coordinates of all 64 lanes of each wavefront (numbers in dispatch order), one wavefront after another; and
    which lanes exist. A tile's lanes are listed quad by quad."""
    wave = np.asarray(wavefronts)[:, np.newaxis]
    if shape.pixels:
        across = -(-shape.domain[0] // TILE)
        x = (wave % across * TILE + LANES // 4 % 4 * 2 + LANES % 2).ravel()
        y = (wave // across * TILE + LANES // 16 * 2 + LANES % 4 // 2).ravel()
        return x, y, (x < shape.domain[0]) & (y < shape.domain[1])
    per = shape.group_wavefronts
    group, within = np.repeat(wave // per, WAVEFRONT), (wave % per * WAVEFRONT + LANES).ravel()
    return group, within, within < shape.group_items


def wavefront(shape: Shape, item: int) -> int:
    """The number of the wavefront that a work-item belongs to."""
    if shape.pixels:
        x, y = shape.place(item)
        return y // TILE * -(-shape.domain[0] // TILE) + x // TILE
    return item // shape.group_items * shape.group_wavefronts + item % shape.group_items // WAVEFRONT


def input_registers(shape: Shape, first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Input registers of work-items by their coordinates: name to uint32 bits of shape (4, work-items)."""
    if shape.pixels:
        place = np.zeros((4, len(first)), np.float32)
        place[0], place[1], place[2:] = first, second, [[-0.5], [0.5]]
        return {"vWinCoord0": (place + np.float32(0.5)).view(np.uint32)}
    size = shape.program.group
    group, within = _unflattened(first, shape.groups), _unflattened(second, size)
    rows = {
        "vThreadGrpId": group,
        "vTidInGrp": within,
        "vAbsTid": group * np.array([*size, 0])[:, np.newaxis] + within,
        "vAbsTidFlat": np.stack([number(shape, first, second)] * 4),
        "vThreadGrpIdFlat": np.stack([first] * 4),
        "vTidInGrpFlat": np.stack([second] * 4),
    }
    return {name: row.astype(np.uint32) for name, row in rows.items()}


def _unflattened(index: np.ndarray, size: tuple[int, int, int]) -> np.ndarray:
    x, y, _ = size
    return np.stack([index % x, index // x % y, index // (x * y), np.zeros_like(index)])
