"""What the work-items of a running launch share: LDS and global memory, for accesses of all at once."""

import math
from collections.abc import Mapping

import numpy as np

from cypresskit.machine.launch import Launch


class Memories:
    """The memories of a launch while it runs: LDS is here, the others are the launch's own."""

    def __init__(self, launch: Launch):
        self.launch, self.group_of = launch, np.arange(launch.items) // launch.group_items
        groups = 0 if launch.pixels else math.prod(launch.groups)
        self.lds = {n: np.zeros((groups, size // 4), np.uint32) for n, (_, size) in launch.program.lds.items()}

    def load(self, block: int, word: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """A word of LDS for each work-item, 0 where it isn't ``inside``."""
        if inside.all():
            return self.lds[block][self.group_of, word]
        row = np.zeros(len(inside), np.uint32)
        row[inside] = self.lds[block][self.group_of[inside], word[inside]]
        return row

    def store(self, block: int, word: np.ndarray, row: np.ndarray, active: np.ndarray) -> None:
        """Store a word to LDS for each active work-item."""
        self.lds[block][self.group_of[active], word[active]] = row[active]

    def check_lds(self, at: int, block: int, byte: np.ndarray, inside: np.ndarray, active: np.ndarray) -> None:
        """Raise ``KernelError`` if an active work-item's store of ``body[at]`` isn't ``inside`` its block."""
        if len(outside := np.flatnonzero(active & ~inside)):
            place, size = int(byte[outside[0]]) & ~3, self.launch.program.lds[block][1]
            raise self.launch.store_error(at, int(outside[0]), f"to byte {place} of LDS {block}, which has {size}")

    def check_global(self, at: int, element: np.ndarray, active: np.ndarray) -> None:
        """Raise ``KernelError`` if an active work-item's store of ``body[at]`` is to no element of global memory."""
        if len(outside := np.flatnonzero(active & ~self.launch.exist(element))):
            has = f"which has {len(self.launch.memory)} elements"
            raise self.launch.store_error(at, int(outside[0]), f"to g[{int(element[outside[0]])}], {has}")

    def store_global(self, element: np.ndarray, values: Mapping[int, np.ndarray], active: np.ndarray) -> None:
        """Store components, by their numbers, to elements of global memory."""
        for c, row in values.items():
            self.launch.memory[element[active], c] = row[active]
