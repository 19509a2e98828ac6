"""How textures lie in memory: in panels of four 128-bit texels (64 bytes, a line of the host's cache): all rows of
columns 0 to 3, then of columns 4 to 7, and so on. A walk down a column then reads consecutive lines. One row more keeps
panels off the same sets of the host's cache. Missing components of single-precision texels read 0, 0, 1.0.
"""

import numpy as np

from cypresskit.machine.fast.vec import Vec

PANEL = 4  # texels side by side
ROW = 16 * PANEL  # bytes from one row of a panel to the next

#: Fetches at whole coordinates that may lie outside: then 0, and as many as ``lanes`` are counted. A function, since it
#: is hardly ever needed and would crowd the code around it; SAVING stands for which registers it leaves as they are.
TEXEL = f"""define internal SAVING void @texel(ptr %texel, ptr %texture, i64 %pitch, ptr %counts, i64 %lanes,
    double %x, double %y, double %width, double %height) noinline cold FEATURES {{
  %right = fcmp oge double %x, 0.0
  %left = fcmp olt double %x, %width
  %below = fcmp oge double %y, 0.0
  %above = fcmp olt double %y, %height
  %across = and i1 %right, %left
  %down = and i1 %below, %above
  %inside = and i1 %across, %down
  br i1 %inside, label %found, label %none
found:
  %column = fptosi double %x to i64
  %row = fptosi double %y to i64
  %panel = sdiv i64 %column, {PANEL}
  %within = srem i64 %column, {PANEL}
  %p = mul i64 %panel, %pitch
  %c = mul i64 %within, 16
  %r = mul i64 %row, {ROW}
  %pc = add i64 %p, %c
  %pcr = add i64 %pc, %r
  %place = getelementptr i8, ptr %texture, i64 %pcr
  %value = load <4 x i32>, ptr %place
  store <4 x i32> %value, ptr %texel
  ret void
none:
  store <4 x i32> zeroinitializer, ptr %texel
  %old = load i64, ptr %counts
  %new = add i64 %old, %lanes
  store i64 %new, ptr %counts
  ret void
}}
"""


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
