"""Where textures, outputs and global memory lie, and which cache lines an access touches.

Textures follow one another by their numbers, each from a new row of the channels' banks on. Rows
are padded to whole cache lines ("linear"), or texels lie in tiles of 8 x 8 ("tiled"), row by row
within and between them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cypresskit.devices import Device
from cypresskit.machine.shape import TILE, Shape
from cypresskit.timing.units.dram import GLOBAL
from cypresskit.timing.units.lds_banks import access_clocks
from cypresskit.timing.work import Stream, stream

READ = (
    "line_bytes",
    "channel_bytes",
    "memory_channels",
    "memory_banks",
    "memory_bytes",
    "store_clocks",
    "l1_bytes",
    "texture_banks",
    "quads_per_clock",
    "lds_items_clock",
    "lds_banks",
)
"""The fields of a device that a walk reads."""


class NotAffine(Exception):
    """A loop can't be taken as affine: it has to be run turn by turn."""


class Motion(NamedTuple):
    """How an access moves: by ``x`` and ``y`` in each of ``turns``."""

    x: int = 0
    y: int = 0
    turns: int = 1


class Surfaces:
    """The memory of a launch."""

    def __init__(self, shape: Shape, device: Device, layout: str):
        self.shape, self.device, self.layout, self.line = shape, device, layout, device.line_bytes
        self.bases: dict[int, int] = {}
        start, unit = 0, device.channel_bytes * device.memory_channels * device.memory_banks
        for n, texture in sorted(shape.textures.items()):
            self.bases[n] = start
            start += (
                -(-self._pitch(texture.width, texture.texel) * (texture.height + TILE) // unit)
                * unit
            )

    @property
    def key(self) -> tuple:
        """A key that is equal for surfaces whose accesses touch the same lines."""
        sizes = *sorted(self.shape.textures.items()), *sorted(self.shape.outputs.items())
        constants = ((n, words.tobytes()) for n, words in sorted(self.shape.constants.items()))
        return (
            self.layout,
            self.shape.domain,
            sizes,
            *constants,
            *(getattr(self.device, name) for name in READ),
        )

    def address(self, resource: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The bytes at which texels (x, y) of a texture begin."""
        texture = self.shape.textures[resource]
        return self.bases[resource] + self._addresses(texture.width, texture.texel)(x, y)

    def fetch(
        self, resource: int, x: np.ndarray, y: np.ndarray, on: np.ndarray, motion: Motion
    ) -> Stream:
        """The lines of texels (x, y) of a texture for work-items ``on``, as far as they lie in
        it.
        """
        texture, last = self.shape.textures[resource], motion.turns - 1
        inside = (x >= 0) & (x < texture.width) & (y >= 0) & (y < texture.height)
        far_x, far_y = x + last * motion.x, y + last * motion.y
        stays = (
            inside
            & (far_x >= 0)
            & (far_x < texture.width)
            & (far_y >= 0)
            & (far_y < texture.height)
        )
        for at, far, size in (
            (x, far_x, texture.width),
            (y, far_y, texture.height),
        ):  # or it never comes in
            stays |= (np.maximum(at, far) < 0) | (np.minimum(at, far) >= size)
        if (on & ~stays).any():
            raise NotAffine
        address = self._addresses(texture.width, texture.texel)
        side = TILE if self.layout == "tiled" else 1
        return self._stream(
            address, x, y, on & inside, motion, self.bases[resource] // self.line, side=side
        )

    def output(self, number: int, x: np.ndarray, y: np.ndarray, on: np.ndarray) -> Stream:
        """The lines of an output stream's pixels (x, y)."""
        address = self._addresses(self.shape.domain[0], self.shape.outputs[number].texel)
        return self._stored(self._stream(address, x, y, on, Motion(), GLOBAL, uncached=True))

    def element(self, x: np.ndarray, on: np.ndarray, motion: Motion, stores: bool) -> Stream:
        """The lines of elements ``x`` of global memory. Raises ``ValueError`` for those that are
        beyond the card's.
        """
        far, most = np.array([0, motion.turns - 1]) * motion.x, self.device.memory_bytes // 16
        first, last = x[on].min(initial=most) + far.min(), x[on].max(initial=0) + far.max()
        if first < 0 or last >= most:
            raise ValueError(
                f"{self.shape.program.name}: it accesses g[{first if first < 0 else last}], and the"
                f" memory of the {self.device.name} ends at g[{most - 1}]"
                f" ({self.device.memory_bytes:,} bytes): try smaller matrices"
            )
        made = self._stream(lambda x, y: x * 16, x, 0 * x, on, motion, GLOBAL, uncached=True)
        return self._stored(made) if stores else made

    def lds(self, byte: np.ndarray, on: np.ndarray) -> Stream:
        """The clocks of an LDS operation on the words at ``byte``, (words, work-items)."""
        each = byte.reshape(len(byte), -1, 64).transpose(1, 0, 2)
        clocks = access_clocks(np.ascontiguousarray(each), self.device, on.reshape(-1, 64))
        return Stream(
            clocks,
            np.zeros(len(clocks) + 1, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int32),
        )

    def _stored(self, made: Stream) -> Stream:
        return replace(made, cost=np.full_like(made.cost, self.device.store_clocks))

    def _stream(
        self, address: Callable, x, y, on, motion: Motion, base: int, side: int = 1, uncached=False
    ) -> Stream:
        """The pattern comes back when the access has moved by whole lines, and by whole tiles."""
        phases, dx, dy = 1, motion.x, motion.y
        while (
            address(dx * phases, dy * phases) % self.line
            or dx * phases % side
            or dy * phases % side
        ):
            phases += 1
        phases = min(phases, motion.turns)
        addresses = np.stack([address(x + p * dx, y + p * dy) for p in range(phases)]).reshape(
            phases, -1, 64
        )
        step = int(address(dx * phases, dy * phases)) // self.line
        unit = {"banks": self.device.texture_banks, "quads_per_clock": self.device.quads_per_clock}
        how = unit | {
            "line_bytes": self.line,
            "merge": uncached or self.device.l1_bytes > 0,
            "base": base,
        }
        active = np.repeat(on.reshape(-1, 64), phases, axis=0)
        entries = addresses.transpose(1, 0, 2).reshape(-1, 64)
        return stream(entries, active, phases=phases, step=step, uncached=uncached, **how)

    def _pitch(self, width: int, texel: int) -> int:
        """Bytes from a row to the next, whole lines."""
        side = TILE if self.layout == "tiled" else max(self.line // texel, 1)
        return -(-width // side) * side * texel

    def _addresses(self, width: int, texel: int) -> Callable:
        """The function from texel coordinates to a byte."""
        pitch = self._pitch(width, texel)
        if self.layout == "linear":
            return lambda x, y: y * pitch + x * texel
        return lambda x, y: (
            (y // TILE) * pitch * TILE
            + (x // TILE) * TILE * TILE * texel
            + (y % TILE * TILE + x % TILE) * texel
        )
