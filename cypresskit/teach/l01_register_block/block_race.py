"""A race of register blocks: the same product with blocks of several sizes. The clock counts
fetched words.

The data are recordings of all work-items, one after the other. ``find_block`` finds the element of
C that each multiply-add adds to. Left out: time. A block that fetches fewer words finishes first,
as if nothing else took time.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.block import find_block
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Grid, Sheet
from cypresskit.machine.record import Recording
from cypresskit.tables import listed
from cypresskit.teach.l01_register_block.checks import block_runs

FRAMES = 128
# In pixels: an element of C, an element of A or B along k, where A and B begin, the gap to C.
CELL, THIN, LEFT, TOP, GAP = 16, 10, 16, 66, 8
SHADES_EACH = 9  # of a matrix
SHADES = [f"{matrix} {0.1 + 0.1125 * n:.2f}" for matrix in "abc" for n in range(SHADES_EACH)]


#: By matrix: for each word that is fetched, or term that is added, the words fetched so far, and
#: its row and column.
_Launch = dict[str, np.ndarray]


def block_race(sizes: Sequence[int] = (1, 2, 4, 8)) -> Player:
    """Return a player of a race between square blocks of some sizes, in a product of 8 x 8 matrices
    (``block_runs``).

        ck.teach.register_block.block_race((1, 2))
    """
    launches = {name: _events(run) for name, run in block_runs(sizes).items()}
    words = {name: len(launch["A"]) + len(launch["B"]) for name, launch in launches.items()}
    sheet = Sheet("Blocks race: which fetches the fewest words for a product?")
    most = max(words.values())
    clocks = np.linspace(0, most, FRAMES + 1).astype(int)
    for name, launch in launches.items():
        _draw_launch(sheet, name, launch, clocks)

    done = {name: launch["C"][:, :1] <= clocks for name, launch in launches.items()}
    captions = []
    for n, clock in enumerate(clocks):
        shares = [f"{name} has {100 * terms[:, n].mean():.0f} %" for name, terms in done.items()]
        captions.append(f"Of C, after at most {clock:,} words: {listed(shares)}.")
    captions[-1] = sheet.winner(words, "word")
    note = theme.html(
        "Each receives one word per step. The stronger a color in A or B, the more often it was"
        " fetched. C has its full color where a sum is complete. Frames mark what has just changed."
        " Here, work-items run one after the other."
    )
    legend = sheet.legend(("A, fetched", "a"), ("B, fetched", "b"), ("C, terms added", "c"))
    return sheet.player(
        captions,
        "counted",
        below=[legend, note],
        step="Moment of the race",
        seconds=16,
        opens=1,
    )


def _events(run: Sequence[Recording]) -> _Launch:
    """Return a launch, made of the recordings of its work-items, one after the other."""
    events: dict[str, list[tuple[int, ...]]] = {"A": [], "B": [], "C": []}
    clock = 0
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
                width = recording.textures[matrix][2]
                k_axis = block.k_axis[matrix]
                for column in range(x * width, (x + 1) * width):
                    clock += 1
                    k, other = (y, column)[k_axis], (y, column)[1 - k_axis]
                    events["AB"[matrix]].append((clock, *((k, other) if matrix else (other, k))))
            updates = block.updates_at.get(step, ())
            events["C"] += [(clock, *block.place(update)) for update in updates]
    return {matrix: np.array(rows) for matrix, rows in events.items()}


def _sides(launch: _Launch) -> tuple[int, int, int]:
    """Return (m, n, k) of a launch."""
    m, n = launch["C"][:, 1:].max(axis=0) + 1
    return int(m), int(n), int(launch["A"][:, 2].max()) + 1


def _draw_launch(sheet: Sheet, name: str, launch: _Launch, clocks: np.ndarray) -> None:
    """Draw a launch on a stage of its own: A on the left of C, and B above it."""
    m, n, depth = _sides(launch)
    left, top = LEFT + depth * THIN + GAP, TOP + depth * THIN + GAP  # of C
    right = left + n * CELL
    width = right + 12
    height = top + m * CELL + 48
    sheet.stage(f"{name}: A on the left, B above, and C between them", width, height)
    lane = (4, width - 8)
    words = len(launch["A"]) + len(launch["B"])
    last = int(clocks[-1])
    sheet.race(name, lane, np.minimum(clocks, words), words, last, title=name, unit="word")

    sheet.text(LEFT + 4, top - 9, "A", "a", bold=True, size=14)
    sheet.text(left - 16, TOP + 9, "B", "b", bold=True, size=14)
    boxes = [
        _elements(launch, "A", (m, depth), Grid(LEFT, top, THIN, CELL), n, clocks),
        _elements(launch, "B", (depth, n), Grid(left, TOP, CELL, THIN), m, clocks),
        _elements(launch, "C", (m, n), Grid(left, top, CELL, CELL), depth, clocks),
    ]
    x, y, w, h, words_, times, shade = (np.concatenate(part, axis=-1) for part in zip(*boxes))
    now = 1.5 * (np.diff(times, axis=0, prepend=0) > 0)
    source = sheet.boxes(
        f"cells {name}",
        x,
        y,
        w,
        h,
        fill=(SHADES, shade),
        words=words_,
        tip="@words: @times",
        columns={"times": times, "now": now},
    )
    sheet.ring(source, "w", "h", "now", "ink")

    fetched = np.minimum(clocks, words)
    flops = 2 * (launch["C"][:, 0] <= clocks[:, np.newaxis]).sum(axis=1)
    counts = [f"{w:,} words for {f:,} flops" for w, f in zip(fetched, flops)]
    rates = [f"{w / f:.3f} words per flop" if f else "no flop yet" for w, f in zip(fetched, flops)]
    frame = np.arange(len(clocks))
    style = {"align": "right"}
    sheet.numbers(f"count {name}", right, height - 30, frame, names=counts, **style)
    sheet.numbers(
        f"rate {name}", right, height - 12, frame, names=rates, size=18, bold=True, **style
    )


def _elements(
    launch: _Launch,
    matrix: str,
    shape: tuple[int, int],
    grid: Grid,
    most: int,
    clocks: np.ndarray,
) -> tuple:
    """Return the boxes of a matrix's elements: x, y, width, height, words, how often each has
    changed by each clock, and its shade, the strongest after ``most`` changes.
    """
    when, *place = launch[matrix].T
    cell = np.ravel_multi_index(place, shape)
    row, column = np.indices(shape).reshape(2, -1)
    times = np.array([np.bincount(cell[when <= clock], minlength=row.size) for clock in clocks])
    x, y = grid.center(row, column)
    width, height = np.full((2, row.size), [[grid.width - 1], [grid.height - 1]])
    event = "terms added" if matrix == "C" else "times fetched"
    words = np.array([f"{matrix}[{i}, {j}]: {event}" for i, j in zip(row, column)])
    shade = SHADES_EACH * "ABC".index(matrix) + (SHADES_EACH - 1) * times // most
    return x, y, width, height, words, times, shade
