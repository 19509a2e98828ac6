"""The element of C that the reader follows: chosen once, and marked by a star in every picture that
contains it.

``follow`` keeps it for the session, and in a file beside the notebook for later lessons. Pictures
ask here which of their parts belong to it; ``Sheet.star`` draws the star.
"""

import json
import re
from contextlib import suppress
from math import isqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cypresskit.draw.block import find_block
from cypresskit.host import Timeline
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.samples import recorded
from cypresskit.saving import save_file

FILE, SIDE = ".cypresskit-follows.json", 256


class Element(NamedTuple):
    """An element of C."""

    row: int = 5
    column: int = 3

    def __repr__(self) -> str:
        (down, i), (across, j) = (divmod(n, 8) for n in self)
        where = (
            f"in 8 x 8 blocks, work-item ({across}, {down}) computes it, in row {i} and column {j}"
            " of its block"
        )
        return f"C[{self.row}, {self.column}]: {where}. From now on a star marks it."


_now: list[Element] = []  # the session's, once there is one


def follow(*place: int | tuple[int, int]) -> Element:
    """Mark C[row, column] by a star in all pictures from now on: ``follow(5, 3)`` or ``follow((5,
    3))``. A small file in the current folder keeps it for later lessons. Raises ``ValueError``
    unless both are 0 to 255.
    """
    pair = place[0] if len(place) == 1 and isinstance(place[0], tuple | list) else place
    if len(pair) != 2 or not all(type(n) is int and 0 <= n < SIDE for n in pair):
        raise ValueError(
            f"C{list(pair)}: give a row and a column from 0 to {SIDE - 1}, as in follow(5, 3)"
        )
    _now[:] = [Element._make(pair)]
    with suppress(OSError):  # a folder that can't be written to: then it is kept for this session
        save_file(FILE, json.dumps(pair))
    return _now[0]


def remember() -> Element:
    """The element that is followed; without one, the file's, or else C[5, 3], is followed from now
    on.
    """
    if not _now:
        _now.append(Element())
        with suppress(OSError, ValueError, TypeError):
            follow(*json.loads(Path(FILE).read_text(encoding="utf-8")[:100]))
    return _now[0]


def followed() -> Element | None:
    """The element that is followed, or None."""
    return _now[0] if _now else None


def wavefront_of(kernel: Kernel | None, size: tuple[int, int, int] | None) -> int | None:
    """The wavefront, in dispatch order, that computes the followed element in a pixel shader's
    launch of m x n x k.
    """
    if (
        not (_now and kernel and size)
        or kernel.mode != "pixel"
        or any(n >= most for n, most in zip(_now[0], size))
    ):
        return None
    down, across = (8 * side for side in kernel.block)
    return _now[0].row // down * -(-size[1] // across) + _now[0].column // across


def of_block(run: Timeline) -> list[bool]:
    """For each span, whether it computes or carries the block of C, of doubles, that holds the
    followed element. A pipeline numbers its blocks as it works, so only its first is known, at
    least a third of ``side`` high.
    """
    side = isqrt(
        int(max((s.task.bytes for s in run.spans if s.task.stage[:5] == "store"), default=0)) // 8
    )
    if not _now or not side:
        return [False] * len(run.spans)
    row, column = (n // side for n in _now[0])
    names = rf"C\[{row},{column}\]'*" + r"|(C|AB)\[0(\.0)+\]" * (max(_now[0]) < side // 3)
    return [bool(re.fullmatch(rf"\w+ ({names})", span.task.name)) for span in run.spans]


def mads(name: str) -> set[tuple[int, str]]:
    """(line, component) of a kernel's multiply-adds for the followed element; none without a
    register block.
    """
    with suppress(ValueError, KeyError, IndexError):
        element, recording = _now[0], recorded(name)
        block = find_block(recording)
        total = block.totals[element.row % len(block.rows), element.column % len(block.columns)]
        return {
            (recording.line(u.step), "xyzw"[u.total[1]]) for u in block.updates if u.total == total
        }
    return set()


def operands(name: str, resource: int, x0: np.ndarray, x1: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which boxes hold operands of the followed element, as bools. A box is texels ``x0`` to ``x1``
    of row ``y`` of A (resource 0) or B (1) of a kernel.
    """
    if not _now or name not in KERNELS or resource > 1:
        return np.zeros(len(y), bool)
    kernel, n = KERNELS[name], _now[0][resource]
    if (kernel.trans_a, kernel.trans_b)[resource] == (resource == 1):
        return y == n
    texel = (
        n
        * np.dtype(kernel.dtype).itemsize
        * (2 if kernel.precision == "double-double" else 1)
        // kernel.texel
    )
    return (x0 <= texel) & (texel <= x1)
