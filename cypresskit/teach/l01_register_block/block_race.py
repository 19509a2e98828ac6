"""A race of register blocks: the same product with blocks of several sizes. The clock counts
fetched words.

The data are recordings of all work-items, one after the other. ``find_block`` finds the element of
C that each multiply-add adds to. Left out: time. A block that fetches fewer words finishes first,
as if nothing else took time.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.block import find_block
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, require_nonempty
from cypresskit.machine.record import Recording

FRAMES = 128
# In pixels: an element of C, an element of A or B along k, where A and B begin, the gap to C.
CELL, THIN, LEFT, TOP, GAP = 20, 10, 16, 66, 8
SHADES_EACH = 9  # of a matrix
SHADES = [f"{matrix} {0.1 + 0.1125 * n:.2f}" for matrix in "abc" for n in range(SHADES_EACH)]


def block_race(runs: Mapping[str, Sequence[Recording]]) -> Player:
    """Return a player of a race between launches of one product. ``runs`` maps a name to the
    recordings of all work-items of a launch.

    Raises ``ValueError`` if a run has no block in registers (see ``find_block``) or the products
    differ in size.

        ck.teach.register_block.block_race(ck.teach.register_block.block_runs((1, 2, 4, 8)))
    """
    require_nonempty([runs], "pass a dict of launches by name, each with its recordings", Mapping)
    launches = {
        name: _events(sorted(run, key=lambda recording: recording.item))
        for name, run in runs.items()
    }
    if len({(launch.shape, len(launch.added)) for launch in launches.values()}) != 1:
        raise ValueError("these launches don't compute the same product, or only a part of it")
    sheet = Sheet("Blocks race: which fetches the fewest words for a product?")
    most = max(launch.words for launch in launches.values())
    clocks = np.linspace(0, most, FRAMES + 1).astype(int)
    for name, launch in launches.items():
        _draw_launch(sheet, name, launch, clocks)

    captions = [
        f"After at most {clock} words: how much of C has each block computed?" for clock in clocks
    ]
    winner = min(launches, key=lambda name: (launches[name].words, name))
    captions[-1] = f"{winner} needed the fewest words: {launches[winner].words} against {most}."
    note = theme.html(
        "Each receives one word per step. The stronger a color in A or B, the more often it was"
        " fetched. C has its full color where a sum is complete. Frames mark what has just changed."
        " Here, work-items run one after the other."
    )
    legend = sheet.legend(
        ("A, fetched", "a", "box"), ("B, fetched", "b", "box"), ("C, terms added", "c", "box")
    )
    fewest = min(launch.words for launch in launches.values())
    return sheet.player(
        captions,
        below=[legend, note],
        step="Moment",
        seconds=16,
        opens=1,
        still_frame=int(np.searchsorted(clocks, fewest / 2)),
    )


class _Launch(NamedTuple):
    """What happened in a launch. A row of ``fetched``: words so far, matrix (0 A, 1 B), row or
    column of C, k; a row of ``added``: words so far, row and column of C. ``shape`` is (m, n, k).
    """

    fetched: np.ndarray
    added: np.ndarray
    shape: tuple[int, int, int]

    @property
    def words(self) -> int:
        """The words fetched in all."""
        return int(self.fetched[-1, 0])


def _events(run: Sequence[Recording]) -> _Launch:
    """Return a launch, made of the recordings of its work-items, one after the other."""
    fetched: list[tuple[int, int, int, int]] = []
    added: list[tuple[int, ...]] = []
    for recording in run:
        block = find_block(recording)
        loads = {
            int(step): (int(matrix), int(x), int(y))
            for step, matrix, x, y, is_inside in recording.fetches
            if is_inside
        }
        for step in range(len(recording)):
            if step in loads:
                matrix, x, y = loads[step]
                axis = block.k_axis[matrix]
                width = recording.textures[matrix][2]
                for column in range(x * width, (x + 1) * width):
                    place = y, column
                    fetched.append((len(fetched) + 1, matrix, place[1 - axis], place[axis]))
            updates = block.updates_at.get(step, ())
            added += [(len(fetched), *block.place(update)) for update in updates]
    _, m, n = np.max(added, axis=0).tolist()
    depth = max(k for *_, k in fetched)
    return _Launch(np.array(fetched), np.array(added), (m + 1, n + 1, depth + 1))


class _Matrix(NamedTuple):
    """A matrix in the picture: the clocks at which cells (counted row by row) changed, its rows and
    columns, the upper left corner, the size of an element, and an element's largest number of
    changes.
    """

    name: str
    when: np.ndarray
    cell: np.ndarray
    shape: tuple[int, int]
    corner: tuple[int, int]
    size: tuple[int, int]
    most: int


def _matrices(launch: _Launch) -> list[_Matrix]:
    """Return the matrices: A on the left of C, and B above it."""
    m, n, depth = launch.shape
    left, top = LEFT + depth * THIN + GAP, TOP + depth * THIN + GAP  # of C
    when, matrix, place, k = launch.fetched.T
    is_a, is_b = matrix == 0, matrix == 1
    cell_a, cell_b = (place * depth + k)[is_a], (k * n + place)[is_b]
    when_c, row, column = launch.added.T
    return [
        _Matrix("A", when[is_a], cell_a, (m, depth), (LEFT, top), (THIN, CELL), n),
        _Matrix("B", when[is_b], cell_b, (depth, n), (left, TOP), (CELL, THIN), m),
        _Matrix("C", when_c, row * n + column, (m, n), (left, top), (CELL, CELL), depth),
    ]


def _draw_launch(sheet: Sheet, name: str, launch: _Launch, clocks: np.ndarray) -> None:
    """Draw a launch on a stage of its own."""
    m, n, _ = launch.shape
    matrices = _matrices(launch)
    a, b, c = (matrix.corner for matrix in matrices)
    right = c[0] + n * CELL
    width = right + 12
    height = c[1] + m * CELL + 48
    sheet.stage(f"{name}: A on the left, B above, and C between them", width, height)
    lane = (4, width - 8)
    so_far = np.minimum(clocks, launch.words)
    last = int(clocks[-1])
    sheet.race(name, lane, so_far, launch.words, last, title=name, unit="word")

    sheet.text(a[0] + 4, a[1] - 9, "A", "a", bold=True, size=14)
    sheet.text(b[0] - 16, b[1] + 9, "B", "b", bold=True, size=14)
    _draw_elements(sheet, name, matrices, clocks)

    words = (launch.fetched[:, 0] <= clocks[:, np.newaxis]).sum(axis=1)
    flops = 2 * (launch.added[:, 0] <= clocks[:, np.newaxis]).sum(axis=1)
    counts = [f"{w} words for {f} flops" for w, f in zip(words, flops)]
    rates = [f"{w / f:.3f} words per flop" if f else "no flop yet" for w, f in zip(words, flops)]
    frame = np.arange(len(clocks))
    style = {"align": "right"}
    sheet.numbers(f"count {name}", right, height - 30, frame, names=counts, size=12, **style)
    sheet.numbers(
        f"rate {name}", right, height - 12, frame, names=rates, size=18, bold=True, **style
    )


def _draw_elements(
    sheet: Sheet, name: str, matrices: Sequence[_Matrix], clocks: np.ndarray
) -> None:
    """Draw the matrices' elements: the more often one changed, the stronger its color."""
    parts: list[tuple] = []
    for number, matrix in enumerate(matrices):
        rows, columns = matrix.shape
        row, column = np.divmod(np.arange(rows * columns), columns)
        counts = [
            np.bincount(matrix.cell[matrix.when <= clock], minlength=len(row)) for clock in clocks
        ]
        times = np.array(counts)
        width, height = matrix.size
        x = matrix.corner[0] + (column + 0.5) * width
        y = matrix.corner[1] + (row + 0.5) * height
        size = np.full((2, len(row)), [[width - 1], [height - 1]])
        event = "terms added" if matrix.name == "C" else "times fetched"
        words = np.array([f"{matrix.name}[{i}, {j}]: {event}" for i, j in zip(row, column)])
        shade = SHADES_EACH * number + (SHADES_EACH - 1) * times // matrix.most
        parts.append((x, y, *size, words, times, shade))
    x, y, w, h, words, times, shade = (np.concatenate(part, axis=-1) for part in zip(*parts))
    now = 1.5 * (np.diff(times, axis=0, prepend=0) > 0)
    source = sheet.boxes(
        f"cells {name}",
        x,
        y,
        w,
        h,
        fill=(SHADES, shade),
        words=words,
        tip="@words: @times",
        columns={"times": times, "now": now},
    )
    sheet.ring(source, "w", "h", "now", "ink")
