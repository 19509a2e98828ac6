"""Many replicas of one work-item, or of its workgroup, that run in step on different numbers.

Each replica has its own textures, outputs and global memory, and the place in the domain that the
original has. The interpreter runs hundreds of them in the time of a few.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cypresskit.machine.launch import Arrays, Launch, Surface
from cypresskit.machine.shape import LaunchShape, coordinates, input_registers


@dataclass(frozen=True, eq=False)
class Replicas(Launch):
    """A launch of replicas of some work-items. ``members``: their numbers in ``whole``."""

    whole: LaunchShape = field(kw_only=True)
    members: np.ndarray = field(kw_only=True)

    @cached_property
    def ids(self) -> dict[str, np.ndarray]:
        registers = input_registers(self.whole, *coordinates(self.whole, self.members))
        return {name: np.tile(rows, self.replicas) for name, rows in registers.items()}


def group_of(shape: LaunchShape, item: int) -> np.ndarray:
    """Return the numbers of the work-items in a work-item's workgroup; in pixel mode, its own."""
    return item // shape.group_items * shape.group_items + np.arange(shape.group_items)


def make_replicas(
    whole: LaunchShape,
    item: int,
    textures: Arrays,
    memory: np.ndarray,
    max_instructions: int,
) -> Replicas:
    """Replicate the group of work-item ``item`` of a launch of shape ``whole``.

    ``textures``: by number, of shape (replicas, height, width, numbers per texel). ``memory``:
    global memory of shape (replicas, numbers), float32 or float64; 128 bits are an element.
    """
    members = group_of(whole, item)
    count = len(memory)
    replica = np.repeat(np.arange(count), len(members))
    surfaces = {}
    for n, array in textures.items():
        words = np.ascontiguousarray(array).view(np.uint32)
        _, height, width, texel = words.shape
        stacked = words.reshape(-1, width, texel)
        single = array.dtype == np.float32
        surfaces[n] = Surface(width, height, 4 * texel, stacked, single, replica)
    domain = (1, count, 1)
    if not whole.pixels:
        domain = count * whole.program.group, 1, 1
    outputs = {}
    for n, extent in whole.outputs.items():
        words = np.zeros((count, 1, extent.texel // 4), np.uint32)
        outputs[n] = Surface(1, count, extent.texel, words, True)
    return Replicas(
        LaunchShape(whole.program, domain, surfaces, whole.constants, outputs),
        surfaces,
        outputs,
        np.ascontiguousarray(memory).view(np.uint32).reshape(-1, 4),
        max_instructions,
        in_place=True,
        replicas=count,
        replica=replica,
        whole=whole,
        members=members,
    )
