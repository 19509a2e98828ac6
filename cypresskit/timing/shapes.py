"""A launch without its data: what is bound, how large, and which work-items make a wavefront.

In pixel mode a wavefront is a tile of 8 x 8 pixels in quads of 2 x 2, in compute mode 64 work-items in a row of one
workgroup. Work-items that stick out of the domain or the workgroup are there, and not active.
"""

from dataclasses import dataclass, field

import numpy as np

from cypresskit.il import Program
from cypresskit.machine.launch import Launch

TILE = 8  # texels along a side of a micro tile, and pixels along a wavefront's


@dataclass(frozen=True)
class Shapes:
    """A launch without its data: ``textures`` number to (width, height, bytes per texel), ``constants`` number to
    uint32 of shape (elements, 4), ``outputs`` number to bytes per pixel. ``ValueError`` if the program needs more."""

    program: Program
    domain: tuple[int, int, int]
    textures: dict[int, tuple[int, int, int]]
    constants: dict[int, np.ndarray]
    outputs: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {"cb": "constants", "o": "outputs", "resource": "textures"}  # global memory needs no shape
        for kind, number, line in self.program.needs:
            if kind in given and number not in getattr(self, given[kind]):
                used = f"uses {kind} {number}, and Shapes has no {given[kind]}[{number}]"
                raise ValueError(f"{self.program.where(line)}\n    {used}")
        for number, least in self.program.constants.items():
            shape = np.shape(self.constants.get(number, np.zeros((least, 4))))
            if len(shape) != 2 or shape[0] < least or shape[1] != 4:
                what = f"constants[{number}] has shape {shape}, not ({least}, 4), which {self.program.name} reads"
                raise ValueError(what)
        groups = self.program.group if self.program.mode == "compute" else (1, 1, 1)
        if len(self.domain) != 3 or any(d < 0 or d % g for d, g in zip(self.domain, groups)):
            raise ValueError(f"the domain {self.domain} is not three whole multiples of the workgroup {groups}")

    @staticmethod
    def of(launch: Launch) -> "Shapes":
        """The shapes of a checked launch."""
        textures = {n: (s.width, s.height, 4 * s.words.shape[2]) for n, s in launch.textures.items()}
        outputs = {n: 4 * s.words.shape[2] for n, s in launch.outputs.items()}
        return Shapes(launch.program, launch.domain, textures, launch.constants, outputs)

    @property
    def group_wavefronts(self) -> int:
        """Wavefronts per workgroup; 1 in pixel mode."""
        x, y, z = self.program.group
        return -(-x * y * z // 64) if self.program.mode == "compute" else 1

    @property
    def wavefronts(self) -> int:
        """Wavefronts of the launch."""
        if self.program.mode == "pixel":
            return -(-self.domain[0] // TILE) * -(-self.domain[1] // TILE)
        x, y, z = (d // g for d, g in zip(self.domain, self.program.group, strict=True))
        return x * y * z * self.group_wavefronts


def work_items(shapes: Shapes, party: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Input registers (name to uint32 (4, 64 * wavefronts)) of wavefronts in quad order, and who is there."""
    program, domain = shapes.program, shapes.domain
    lane = np.arange(64)
    if program.mode == "pixel":
        across = -(-domain[0] // TILE)
        quad, corner = lane // 4, lane % 4
        x = (party[:, np.newaxis] % across * TILE + quad % 4 * 2 + corner % 2).ravel()
        y = (party[:, np.newaxis] // across * TILE + quad // 4 * 2 + corner // 2).ravel()
        half = np.float32(0.5)
        rows = [x.astype(np.float32) + half, y.astype(np.float32) + half, np.zeros(len(x)), np.ones(len(x))]
        return {"vWinCoord0": np.stack(rows).astype(np.float32).view(np.uint32)}, (x < domain[0]) & (y < domain[1])
    per, size = shapes.group_wavefronts, program.group
    members = size[0] * size[1] * size[2]
    group = np.repeat(party // per, 64)
    within = (party[:, np.newaxis] % per * 64 + lane).ravel()
    groups = [d // g for d, g in zip(domain, size, strict=True)]

    def unflatten(index, shape):
        return np.stack([index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1]), index * 0])

    ids = {
        "vThreadGrpId": unflatten(group, groups),
        "vTidInGrp": unflatten(within, size),
        "vAbsTidFlat": np.stack([group * members + within] * 4),
        "vThreadGrpIdFlat": np.stack([group] * 4),
        "vTidInGrpFlat": np.stack([within] * 4),
    }
    ids["vAbsTid"] = ids["vThreadGrpId"] * np.array([*size, 0])[:, np.newaxis] + ids["vTidInGrp"]
    return {name: rows.astype(np.uint32) for name, rows in ids.items()}, within < members
