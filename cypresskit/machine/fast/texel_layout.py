"""How textures lie in memory: in *lines* of 64 bytes, as the host's cache has them. All rows of one line lie one below
the other, then those of the next: so a walk down a column reads consecutive lines. One row more keeps them off the
same sets of the host's cache. Missing components of single-precision texels read 0, 0, 1.0.

Which texels make up a line depends on how a kernel reads: neighbouring work-items of a GEMM kernel read neighbouring
texels, each as many of them as a row of its block has. What the lanes read at once lies in one line (of programs with
doubles: the first double of each lane's texel in one, the second in the next), so that a load needs no sorting.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.vec import Vec

LINE = 64  # bytes


@dataclass(frozen=True)
class TexelLayout:
    """Each of ``lanes`` work-items, 4 or 8, reads ``step`` texels side by side, a power of two."""

    step: int = 1
    lanes: int = 4

    @property
    def group(self) -> int:
        """Texels that all lanes read together."""
        return self.step * self.lanes

    @property
    def parts(self) -> int:
        """Lines that hold one texel of each lane."""
        return self.lanes * 16 // LINE

    def words_needed(self, height: int, width: int) -> int:
        """32-bit words for a texture, and to begin it at a line of the cache."""
        return self._words(height, width) + LINE // 4

    def _words(self, height: int, width: int) -> int:
        return -(-width // self.group) * self.step * self.parts * pitch(height) // 4

    def fill(self, memory: np.ndarray, texels: np.ndarray, single: bool) -> np.ndarray:
        """Lay texels (height, width, words of 32 bits) out in ``memory``; the array that begins where the texture
        does."""
        height, width, words = texels.shape
        groups = -(-width // self.group)
        start = -memory.__array_interface__["data"][0] % LINE // 4
        layout = memory[start : start + self._words(height, width)]
        if words < 4 or width % self.group:
            full = np.zeros((height, groups * self.group, 4), np.uint32)
            full[:, :width, :words] = texels
            if single and words < 4:
                full[..., 3] = 0x3F800000
            texels = full
        lanes = self.lanes if self.step * self.parts > 1 else 1  # else texels stay as they are, line by line
        kind = f"V{LINE // lanes}"
        lines = layout.view(kind).reshape(groups, self.step, self.parts, height + 1, lanes)
        read = texels.reshape(-1).view(kind).reshape(height, groups, lanes, self.step, self.parts)
        lines[..., :height, :] = read.transpose(1, 3, 4, 0, 2)
        return layout

    def column_offset(self, x: Vec, pitch: Vec) -> Vec:
        """Bytes from a texture's start to (the first part of) texel column x (i64) in row 0."""
        group = x.two("ashr", self.group.bit_length() - 1)
        line = (group * self.step + (x & (self.step - 1))) * self.parts
        lane = (x & (self.group - 1)) >> self.step.bit_length() - 1
        return line * pitch + lane * (LINE // self.lanes)


IN_ORDER = TexelLayout()  # four texels of a row in each line


def pitch(height: int) -> int:
    """Bytes from one line of a row of texels to the next."""
    return (height + 1) * LINE


def row_offset(y: Vec) -> Vec:
    """Bytes from row 0 to row y (i64)."""
    return y << LINE.bit_length() - 1


def layouts(analysis: Analysis) -> dict[int, TexelLayout]:
    """Textures of which lanes may read rows of texels side by side, and how."""
    rows: dict[tuple, set[int]] = {}
    for at, i in enumerate(analysis.body):
        if i.op.kind == "fetch" and analysis.program.textures[i.controls.resource].dimensions == 2:
            (source, *_), (column, row, *_) = i.sources, i.controls.aoffimmi
            varying = [analysis.vary.varies(at, 0, source, (k,)) for k in range(2)]
            if varying == [True, False]:
                rows.setdefault((i.controls.resource, source.register, source.swizzle[:2], row), set()).add(column)
    return {
        resource: TexelLayout(len(columns), analysis.lanes)
        for (resource, *_), columns in rows.items()
        if len(columns) in (1, 2, 4) and max(columns) - min(columns) < len(columns)
    }
