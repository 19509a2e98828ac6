"""Arrange textures, outputs and global memory in memory, and find the cache lines of an access.

Textures follow one another by number; each begins at channel 0 and bank 0 of DRAM. Their rows are
padded to whole cache lines. Left out: textures in tiles, as pictures are often stored.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cypresskit.chip.units.dram import GLOBAL
from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.chip.work import (
    BANK_SHIFT,
    Stream,
    address_stream,
    bank_in_turn,
    concatenate,
    unit_stream,
)
from cypresskit.compiler.assembly import Operation, StoreInstruction
from cypresskit.devices import WAVEFRONT, Device
from cypresskit.il.errors import ArgumentError
from cypresskit.machine import addressing
from cypresskit.machine.shape import LaunchShape
from cypresskit.trace.memory_requests import MemoryRequest
from cypresskit.trace.symbolic import NotExtrapolable

TEXEL = 1 << BANK_SHIFT  # bytes of an element of global memory, and of a word of L1
GAP = 8  # unused rows between two textures; the calibrations were fitted with them
MAX_ENTRIES = 1 << 14  # entries of a stream made at once: all of a large launch would take GBs


class Motion(NamedTuple):
    """How an access moves from one iteration to the next.

    Attributes
    ----------
    iterations
        The number of iterations.
    x, y
        The step, in texels, elements or bytes.
    """

    iterations: int = 1
    x: int = 0
    y: int = 0


class MemoryLayout:
    """The memory of a launch on a board."""

    def __init__(self, shape: LaunchShape, device: Device):
        self.shape, self.device = shape, device
        self.line = device.line_bytes
        self.texture_bank = np.array(device.texture_bank or [[0]], np.int64)
        self.bases: dict[int, int] = {}
        all_banks = device.channel_bytes * device.memory_channels * device.memory_banks
        start = 0
        for n, texture in sorted(shape.textures.items()):
            self.bases[n] = start
            size = self._pitch(texture.width, texture.texel) * (texture.height + GAP)
            start += -(-size // all_banks) * all_banks

    def address(self, resource: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the byte at which each texel (x, y) of a texture begins."""
        texture = self.shape.textures[resource]
        return self.bases[resource] + self._addresses(texture.width, texture.texel)(x, y)

    def bank(self, resource: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the bank of L1 that has each texel (x, y) of a texture."""
        if self.device.texture_bank:
            return self._bank(x * self.shape.textures[resource].texel // TEXEL, y)
        return bank_in_turn(self.address(resource, x, y), self.device)

    def _bank(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return what the board's own rule says of texels of 16 bytes."""
        high, wide = self.texture_bank.shape
        return self.texture_bank[y % high, x % wide]

    def stream(
        self,
        access: MemoryRequest,
        pixels: tuple[np.ndarray, np.ndarray],
        active: np.ndarray,
        motion: Motion,
    ) -> Stream:
        """Return the stream of an access.

        Parameters
        ----------
        access
            The access.
        pixels
            The coordinates of the work-items: of pixels, x and y.
        active
            Mask of the work-items that take part.
        motion
            How it moves from one iteration to the next.
        """
        source = access.instruction
        rows = [np.broadcast_to(row, active.shape) for row in access.rows]
        if isinstance(source, Operation):
            assert source.lds is not None
            if self.device.lds_bank and motion.x:
                raise NotExtrapolable
            requested = [row.astype(np.int64) & ~np.int64(3) for row in rows]
            if "_REL" in source.name:
                requested.append(requested[0] + 4 * source.lds.offset)
            byte = np.stack(requested).reshape(len(requested), -1, WAVEFRONT).transpose(1, 0, 2)
            lanes = active.reshape(-1, WAVEFRONT)
            return unit_stream(access_clocks(np.ascontiguousarray(byte), self.device, lanes))
        index = rows[0] if rows else None
        if isinstance(source, StoreInstruction):
            if source.name == "EXPORT":
                texel = self.shape.outputs[source.offset].texel
                address = self._addresses(self.shape.domain[0], texel)
                made = self._stream(address, *pixels, active, motion, GLOBAL, texel)
            else:
                x = addressing.element(source.offset, index, len(active))
                made = self._element(x, active, motion)
            made.amounts["cost"] = self.device.store_clocks
            return made
        if source.name == "MEM_READ":
            x = addressing.element(source.offset[0], index, len(active))
            return self._element(x, active, motion)
        texture = self.shape.textures[source.resource]
        x, y, _ = addressing.texel(rows, texture, source.offset)
        return self._fetched(source.resource, x, y, active, motion)

    def _fetched(
        self, resource: int, x: np.ndarray, y: np.ndarray, active: np.ndarray, motion: Motion
    ) -> Stream:
        """Return the stream of a fetch of texels (x, y). Texels outside of the texture request no
        line.
        """
        texture = self.shape.textures[resource]
        inside = texture.contains(x, y)
        if motion.x or motion.y:
            last = motion.iterations - 1
            far_x, far_y = x + last * motion.x, y + last * motion.y
            stays = inside & texture.contains(far_x, far_y)
            for near, far, size in ((x, far_x, texture.width), (y, far_y, texture.height)):
                never = (np.maximum(near, far) < 0) | (np.minimum(near, far) >= size)
                stays |= never
            if (active & ~stays).any():
                raise NotExtrapolable
        address = self._addresses(texture.width, texture.texel)
        base = self.bases[resource] // self.line
        made = self._stream(address, x, y, active & inside, motion, base, texture.texel)
        items = active.reshape(-1, WAVEFRONT).sum(axis=1)  # texels outside give zeros
        made.amounts["delivered"] = np.repeat(items * texture.texel, made.phases)
        return made

    def _element(self, x: np.ndarray, active: np.ndarray, motion: Motion) -> Stream:
        """Return the stream of accesses to elements ``x`` of global memory. Raise ``ValueError``
        for elements beyond the board's memory.
        """
        most = self.device.memory_bytes // TEXEL
        end = x + (motion.iterations - 1) * motion.x
        first = min(row[active].min(initial=most) for row in (x, end))
        last = max(row[active].max(initial=0) for row in (x, end))
        if first < 0 or last >= most:
            raise ArgumentError(
                f"{self.shape.program.name}: it accesses g[{first if first < 0 else last}], and the"
                f" memory of the {self.device.name} is g[0] to g[{most - 1}]"
                f" ({self.device.memory_bytes:,} bytes)"
            )
        return self._stream(lambda x, y: x * TEXEL, x, 0 * x, active, motion, GLOBAL, TEXEL)

    def _stream(
        self,
        address: Callable,
        x: np.ndarray,
        y: np.ndarray,
        active: np.ndarray,
        motion: Motion,
        base: int,
        texel: int,
    ) -> Stream:
        """Return the stream of an access that moves from iteration to iteration. Its pattern recurs
        when it has moved by whole lines and by whole periods of a bank rule. Lines from ``GLOBAL``
        on aren't cached.
        """
        uncached = base == GLOBAL
        high, wide = self.texture_bank.shape
        dx, dy = motion.x, motion.y
        phases = 1
        while (
            address(dx * phases, dy * phases) % self.line
            or dx * phases * texel // TEXEL % wide
            or dy * phases % high
        ):
            phases += 1
        phases = min(phases, motion.iterations)

        x, y = x.astype(np.int64), y.astype(np.int64)
        size = max(MAX_ENTRIES // phases, 1) * WAVEFRONT
        parts = []
        for first in range(0, len(active), size):
            some = slice(first, first + size)
            at = [(x[some] + p * dx, y[some] + p * dy) for p in range(phases)]
            bank = None
            if self.device.texture_bank:
                bank = _in_order([self._bank(x * texel // TEXEL, y) for x, y in at])
            part = address_stream(
                _in_order([address(x, y) for x, y in at]),
                np.repeat(active[some].reshape(-1, WAVEFRONT), phases, axis=0),
                self.device,
                base=base,
                phases=phases,
                step=int(address(dx * phases, dy * phases)) // self.line,
                uncached=uncached,
                bank=bank,
            )
            parts.append(part)
        return concatenate(parts)

    def _pitch(self, width: int, texel: int) -> int:
        """Return the bytes from one row to the next: whole lines."""
        side = max(self.line // texel, 1)
        return -(-width // side) * side * texel

    def _addresses(self, width: int, texel: int) -> Callable:
        """Return a function from texel coordinates to a byte."""
        pitch = self._pitch(width, texel)
        return lambda x, y: y * pitch + x * texel


def _in_order(by_phase: list[np.ndarray]) -> np.ndarray:
    """Return numbers of work-items, given by phase, with a row per wavefront and phase."""
    rows = np.stack(by_phase).reshape(len(by_phase), -1, WAVEFRONT)
    return rows.transpose(1, 0, 2).reshape(-1, WAVEFRONT)
