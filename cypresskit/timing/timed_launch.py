"""``TimedLaunch``: compiled code with its launch and board, and the paths of its wavefronts."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.machine.shape import LaunchShape
from cypresskit.timing.surfaces import Surfaces
from cypresskit.timing.walk import walk
from cypresskit.timing.work import Path

MANY = 4096  # wavefronts that show the work of a launch, if it has more
GOLDEN = (math.sqrt(5) - 1) / 2  # whose multiples fall in step with no row of workgroups


@dataclass(frozen=True, eq=False)
class Spread:
    """Paths that show the work of a launch: each of their wavefronts stands for ``times`` as
    many.
    """

    paths: list[Path]
    times: float = 1.0


@dataclass(frozen=True, eq=False)
class TimedLaunch:
    """What was timed: compiled code, its ``shape``, the board and the textures' layout."""

    code: Code
    shape: LaunchShape
    device: Device
    layout: str

    @property
    def active(self) -> int:
        """Wavefronts that share a SIMD engine."""
        return self.active_with(self.code.gprs)

    def active_with(self, registers: int) -> int:
        """Wavefronts that share a SIMD engine if a work-item has so many registers."""
        lds = self.shape.program.lds_bytes
        return self.device.active_wavefronts(registers, lds, self.group)

    @property
    def round(self) -> int:
        """Wavefronts that the chip holds at a time."""
        return self.active * self.device.simd_engines

    @property
    def group(self) -> int:
        """Wavefronts of a workgroup."""
        return self.shape.group_wavefronts

    @property
    def wavefronts(self) -> int:
        """Wavefronts of the whole launch."""
        return self.shape.wavefronts

    @cached_property
    def surfaces(self) -> Surfaces:
        """Its memory."""
        return Surfaces(self.shape, self.device.geometry, self.layout)

    def walk(self, count: int) -> list[Path]:
        """The paths of the first ``count`` wavefronts."""
        return self.walk_some(np.arange(count))

    def walk_some(self, numbers: np.ndarray) -> list[Path]:
        """The paths of the wavefronts of these ``numbers``, which rise."""
        return walk(self.code, self.surfaces, numbers)

    def walk_spread(self) -> "Spread":
        """The paths of all wavefronts or, if they are more than ``MANY``, of so many from all over
        the launch.
        """
        total = self.wavefronts
        if total <= MANY:
            return Spread(self.walk(total))
        parts = np.arange(MANY)
        numbers = np.unique((parts + parts * GOLDEN % 1) * total / MANY // 1).astype(np.int64)
        return Spread(self.walk_some(numbers), total / len(numbers))
