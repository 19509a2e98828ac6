"""How textures lie in memory: in panels of four 128-bit texels (64 bytes, a line of the host's cache): all rows of
columns 0 to 3, then of columns 4 to 7, and so on. A walk down a column then reads consecutive lines. One row more keeps
panels off the same sets of the host's cache. Missing components of single-precision texels read 0, 0, 1.0.
"""

import numpy as np

from cypresskit.machine.fast.vec import Vec

PANEL = 4  # texels side by side
ROW = 16 * PANEL  # bytes from one row of a panel to the next


def words_needed(height: int, width: int) -> int:
    """32-bit words for a texture, and to begin it at a line of the cache."""
    return -(-width // PANEL) * (height + 1) * 4 * PANEL + 16


def pitch(height: int) -> int:
    """Bytes from one panel to the next."""
    return (height + 1) * ROW


def fill(memory: np.ndarray, texels: np.ndarray, single: bool) -> np.ndarray:
    """Lay texels (height, width, words of 32 bits) out in ``memory``; the array that begins where the texture does."""
    height, width, words = texels.shape
    panels, rows = -(-width // PANEL), height + 1
    start = -memory.__array_interface__["data"][0] % ROW // 4
    layout = memory[start : start + panels * rows * 4 * PANEL].reshape(panels, rows, PANEL, 4)
    if words == 4 and width % PANEL == 0:
        lines = layout.reshape(-1).view(f"V{ROW}").reshape(panels, rows)
        lines[:, :height] = texels.reshape(-1).view(f"V{ROW}").reshape(height, panels).T
    else:
        layout[...] = 0
        full = np.zeros((height, PANEL * panels, 4), np.uint32)
        full[:, :width, :words] = texels
        if single and words < 4:
            full[..., 3] = 0x3F800000
        layout[:, :height] = full.reshape(height, panels, PANEL, 4).transpose(1, 0, 2, 3)
    return layout


def column_offset(x: Vec, pitch: Vec) -> Vec:
    """Bytes from a texture's start to texel column x (i64) in row 0."""
    return x.two("ashr", PANEL.bit_length() - 1) * pitch + ((x & (PANEL - 1)) << 4)


def row_offset(y: Vec) -> Vec:
    """Bytes from row 0 to row y (i64)."""
    return y << ROW.bit_length() - 1
