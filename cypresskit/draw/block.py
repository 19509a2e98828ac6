"""Find the register block of a recorded run: the registers that hold the block of C, A's column and
B's row.

How it works
------------
1. The recording tells which element of a matrix each register component holds.
2. A multiply-add that accumulates products of elements of two different matrices is part of a
   rank-1 update.
3. An operand has two indices. The one that is the same in all updates of an element of the block is
   its row (of A) or column (of B) in C; the other one is k.

Doubles, double-doubles and kernels with LDS aren't supported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cypresskit.il import Instruction
from cypresskit.machine.record import Recording

Component = tuple[int, int]  # register number, component
Place = tuple[int, int]  # row and column of a matrix as it is stored
Sum = tuple[Component, Component, Component]  # accumulator, and the factors of the product


@dataclass(frozen=True)
class Update:
    """A multiply-add: at ``step``, the component ``total`` grew by ``a`` times ``b``."""

    step: int
    total: Component
    a: Component
    b: Component
    from_a: Place
    from_b: Place


@dataclass(frozen=True, eq=False)
class Block:
    """A register block.

    A *phase* is one of the values of k whose operands are held at the same time.
    """

    totals: dict[tuple[int, int], Component]  #: by (row, column) of C
    a: dict[tuple[int, int], Component]  #: by (row, phase)
    b: dict[tuple[int, int], Component]  #: by (phase, column)
    k_axis: tuple[int, int]  #: for A and for B: whether k is the stored row (0) or column (1)
    updates: tuple[Update, ...]

    @property
    def rows(self) -> range:
        return self._side(0)

    @property
    def columns(self) -> range:
        return self._side(1)

    def _side(self, axis: int) -> range:
        places = [place[axis] for place in self.totals]
        return range(min(places), max(places) + 1)

    @property
    def phases(self) -> int:
        return 1 + max(*(phase for _, phase in self.a), *(phase for phase, _ in self.b))

    @cached_property
    def updates_at(self) -> dict[int, list[Update]]:
        """The updates of each step that has some."""
        steps: dict[int, list[Update]] = {}
        for update in self.updates:
            steps.setdefault(update.step, []).append(update)
        return steps

    def place(self, update: Update) -> tuple[int, int]:
        """Return the row and column of C that an update adds to."""
        return update.from_a[1 - self.k_axis[0]], update.from_b[1 - self.k_axis[1]]


def elements(recording: Recording) -> np.ndarray:
    """Return the matrix element that each register component holds after each step.

    Parameters
    ----------
    recording
        The run, in single precision.

    Returns
    -------
    numpy.ndarray
        Resource, row and column, -1 for none; int64 of shape (steps, registers, 4, 3).
    """
    tables = []
    for resource, (rows, width, per_texel) in recording.textures.items():
        row, column = np.divmod(np.arange(rows * width * per_texel), width * per_texel)
        tables.append(np.stack([np.full(len(row), resource), row, column], axis=1))
    nothing = np.full((1, 3), -1)  # index -1: no element
    table = np.concatenate([*tables, nothing])
    return table[recording.texture_words]


def _updates(recording: Recording) -> Iterator[Update]:
    """Yield the multiply-adds that accumulate products of elements of two matrices."""
    held = elements(recording)
    sums = [_sums(i) for i in recording.program.body]
    for step in range(1, len(recording)):
        for total, a, b in sums[recording.at[step]]:
            origins = ((*held[step - 1, *cell].tolist(), cell) for cell in (a, b))
            (first, *from_a, a), (second, *from_b, b) = sorted(origins)  # by resource
            if 0 <= first < second:
                yield Update(step, total, a, b, tuple(from_a), tuple(from_b))


def _sums(i: Instruction) -> list[Sum]:
    """Return the register components that a multiply-add accumulates, each with its two factors."""
    if i.dest is None or i.opcode not in ("mad", "fma"):
        return []
    plain = all(s.register.kind == "r" and not s.negated for s in i.sources)
    if not plain or i.sources[2].register != i.dest.register:
        return []
    sums = []
    for c in i.dest.written:
        letters = [s.swizzle[c] for s in i.sources]
        a, b, total = ((s.register.index, "xyzw".find(n)) for s, n in zip(i.sources, letters))
        if total[1] == c:
            sums.append((total, a, b))
    return sums


def find_block(recording: Recording) -> Block:
    """Find the register block of a recorded run.

    Raises
    ------
    ValueError
        If the run keeps no block in registers.
    """
    if recording.program.lds:
        raise ValueError(
            f"{recording.program.name} uses the LDS: this picture is for kernels without it."
            " ck.teach.lds.lds_transpose draws what passes through the LDS."
        )
    updates = [*_updates(recording)]
    k_axis = _k_axis(updates, "from_a"), _k_axis(updates, "from_b")
    totals: dict[tuple[int, int], tuple[int, int]] = {}
    of_rows: dict[int, dict] = {}  # the components that hold elements of a row, by their first use
    of_columns: dict[int, dict] = {}
    for u in updates:
        i, j = u.from_a[1 - k_axis[0]], u.from_b[1 - k_axis[1]]
        totals[i, j] = u.total
        of_rows.setdefault(i, {})[u.a] = of_columns.setdefault(j, {})[u.b] = None
    if not totals:
        raise ValueError(
            f"{recording!r} shows no register block: no multiply-add accumulates products of"
            " elements of two textures. Doubles, matrices in g[] and a single value of k can't be"
            " drawn. ck.draw.bundles draws any kernel, and ck.trace_element shows an"
            " element's terms."
        )
    a = {(i, phase): cell for i, cells in of_rows.items() for phase, cell in enumerate(cells)}
    b = {(phase, j): cell for j, cells in of_columns.items() for phase, cell in enumerate(cells)}
    return Block(totals, a, b, k_axis, tuple(updates))


def _k_axis(updates: list[Update], name: str) -> int:
    """Return the axis of k in an operand (0 rows, 1 columns): the index that varies for one element
    of C.
    """
    seen: dict[Component, list[Place]] = {}
    for u in updates:
        seen.setdefault(u.total, []).append(getattr(u, name))
    return 0 if any(len({row for row, _ in places}) > 1 for places in seen.values()) else 1
