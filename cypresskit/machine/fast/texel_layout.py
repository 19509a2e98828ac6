"""How textures lie in memory.

Textures lie in *lines* of 64 bytes, as the host's cache has them. All rows of one line lie one
below the other, then those of the next: so a walk down a column reads consecutive lines. One row
more keeps them off the same sets of the host's cache. Missing components of single-precision texels
read 0, 0, 1.0.

Which texels make up a line depends on how a kernel reads: neighbouring work-items of a GEMM kernel
read neighbouring texels, each as many of them as a row of its block has. What the lanes read at
once lies in one line (of programs with doubles: the first double of each lane's texel in one, the
second in the next), so that a load needs no sorting.

Where a group of fetches may read what lies in one line for all lanes, a strip (``strips``) begins
only if the lanes do lie side by side, and then loads the line.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from cypresskit.il.bits import ONE
from cypresskit.machine.fast.analysis import Analysis
from cypresskit.machine.fast.vec import Vec

LINE = 64  # bytes


def address(array: np.ndarray) -> int:
    """The address of an array's first byte."""
    return array.__array_interface__["data"][0]  # half the time of array.ctypes.data


def aligned(size: int) -> np.ndarray:
    """Zeros (int64) of ``size`` bytes, a multiple of 8, that begin at a line of the cache."""
    memory = np.zeros((size + LINE) // 8, np.int64)
    start = -address(memory) % LINE // 8
    return memory[start : start + size // 8]


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

    def memory(self, height: int, width: int) -> np.ndarray:
        """Memory for a texture, by row, group, lane, texel of a lane, and part; it begins at a line
        of the cache.
        """
        groups = -(-width // self.group)
        # Otherwise texels stay as they are, line by line
        lanes = self.lanes if self.step * self.parts > 1 else 1
        lines = aligned(groups * self.step * self.parts * pitch(height)).view(f"V{LINE // lanes}")
        return lines.reshape(groups, self.step, self.parts, height + 1, lanes)[
            ..., :height, :
        ].transpose(3, 0, 4, 1, 2)

    def fill(self, memory: np.ndarray, texels: np.ndarray, single: bool) -> None:
        """Lay texels (height, width, words of 32 bits) out in ``memory``."""
        height, width, words = texels.shape
        if words < 4 or width % self.group:
            full = np.zeros((height, memory.shape[1] * self.group, 4), np.uint32)
            full[:, :width, :words] = texels
            if single and words < 4:
                full[..., 3] = ONE
            texels = full
        memory[...] = texels.reshape(-1).view(memory.dtype).reshape(memory.shape)

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
    """The layouts of the textures that are fetched from, by number."""
    by_resource: dict[int, TexelLayout] = {}
    rows: dict[tuple, set[int]] = defaultdict(set)  # columns that are read of a row together
    for at, i in enumerate(analysis.body):
        if i.op.kind != "fetch":
            continue
        resource = i.controls.resource
        source = i.sources[0]
        column, row, *_ = i.controls.aoffimmi
        dimensions = range(analysis.program.textures[resource])
        varies = [analysis.uniformity.varies(at, 0, source, (k,)) for k in dimensions]
        by_resource[resource] = IN_ORDER
        if varies == [True, False]:  # all lanes in one row
            rows[resource, source.register, source.swizzle[:2], row].add(column)
    for (resource, *_), columns in rows.items():
        if len(columns) in (1, 2, 4) and max(columns) - min(columns) < len(columns):
            by_resource[resource] = TexelLayout(len(columns), analysis.lanes)
    return by_resource
