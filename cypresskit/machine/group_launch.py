"""A launch of one work-item, or of its workgroup, alone: nothing that others store is seen."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cypresskit.machine.launch import Arrays, Launch, prepare
from cypresskit.machine.shape import LaunchShape, coordinates, input_registers


@dataclass(frozen=True, eq=False)
class GroupLaunch(Launch):
    """A launch of some work-items. ``members``: their numbers in ``whole``."""

    whole: LaunchShape = field(kw_only=True)
    members: np.ndarray = field(kw_only=True)

    @cached_property
    def ids(self) -> dict[str, np.ndarray]:
        return input_registers(self.whole, *coordinates(self.whole, self.members))


def launch_of_group(
    whole: LaunchShape,
    item: int,
    textures: Arrays,
    memory: np.ndarray,
    max_instructions: int,
) -> GroupLaunch:
    """Return the launch of the workgroup of work-item ``item``, or in pixel mode of that alone, of
    a launch of shape ``whole``. It has ``textures`` by number, and global ``memory``.
    """
    size = whole.group_items
    outputs = {n: np.zeros((1, 1, e.texel // 4), np.float32) for n, e in whole.outputs.items()}
    launch = prepare(
        whole.program,
        (size, 1, 1),
        inputs=textures,
        constants=whole.constants,
        outputs=outputs,
        global_memory=memory,
        max_instructions=max_instructions,
    )
    members = item // size * size + np.arange(size)
    return GroupLaunch(**vars(launch), whole=whole, members=members)
