"""A race of register blocks: the same product with blocks of several sizes, on a clock that counts
the words fetched.

Drawn from recordings of every work-item, one after the other; ``find_block`` tells which element of
C each multiply-add adds to. Left out: time. Whoever fetches fewer words is done first, as if
nothing else took any time.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cypresskit.draw.block import find_block
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.machine.record import Recording

FRAMES = 128
CELL, THIN, LEFT, TOP = 20, 10, 16, 66  # of C; along k; where A and B begin
SHADES = [
    f"rgba({hue},{0.1 + 0.1125 * n:.2f})"
    for hue in ("0,114,178", "201,133,0", "0,158,115")
    for n in range(9)
]


def block_race(runs: Mapping[str, Sequence[Recording]]) -> Player:
    """A player of a race between launches of one product. ``runs`` maps a name to the recordings of
    all its work-items.

    Raises ``ValueError`` if a run keeps no block in registers (see ``find_block``) or the products
    differ in size.

        ck.draw.block_race(ck.teach.register_block.block_runs((1, 2, 4, 8)))
    """
    nonempty([runs], "pass a dict of launches by name, each with its recordings", Mapping)
    launches = {
        name: _events(sorted(run, key=lambda recording: recording.item))
        for name, run in runs.items()
    }
    if len({(shape, count) for _, _, shape, count in launches.values()}) != 1:
        raise ValueError(
            "blocks race on the same product: these launches compute several, or only parts of one"
        )
    sheet = Sheet("Blocks race: who fetches the fewest words for a product?")
    most = max(int(fetched[-1, 0]) for fetched, *_ in launches.values())
    clocks = np.linspace(0, most, FRAMES + 1).astype(int)
    for name, events in launches.items():
        _draw_run(sheet, name, *events[:3], clocks)
    captions = [
        f"Each has had at most {clock} words: how much of C has each one done?" for clock in clocks
    ]
    least, winner = min((int(fetched[-1, 0]), name) for name, (fetched, *_) in launches.items())
    captions[-1] = f"{winner} needed the fewest words: {least} against {most}."
    note = sheet.note(
        "Each gets a word at a time. The stronger a colour in A or B, the more often it was"
        " fetched; C has its full colour where a sum is complete. Framed: what came just now."
        " Work-items run one after the other here."
    )
    key = sheet.key(
        ("A, fetched", "a", "box"), ("B, fetched", "b", "box"), ("C, terms added", "c", "box")
    )
    return sheet.player(captions, below=[key, note], step="Moment", seconds=16)


def _events(run: Sequence[Recording]) -> tuple[np.ndarray, np.ndarray, tuple[int, int, int], int]:
    """A launch as (fetched, added, (m, n, k), number of terms). A row of ``fetched``: words so far,
    matrix (0 A, 1 B), row or column of C, k; a row of ``added``: words so far, row and column of
    C.
    """
    fetched, added, words = [], [], 0
    for recording in run:
        block = find_block(recording)
        loads = {
            int(step): (int(matrix), int(x), int(y))
            for step, matrix, x, y, inside in recording.fetches
            if inside
        }
        for step in range(len(recording)):
            if step in loads:
                matrix, x, y = loads[step]
                wide = recording.textures[matrix][2]
                for place in ((y, x * wide + c) for c in range(wide)):
                    words, axis = words + 1, block.k_axis[matrix]
                    fetched.append((words, matrix, place[1 - axis], place[axis]))
            added += [(words, *block.place(update)) for update in block.updates_at.get(step, ())]
    _, m, n = np.max(added, axis=0).tolist()
    shape = m + 1, n + 1, 1 + max(k for *_, k in fetched)
    return np.array(fetched), np.array(added), shape, len(added)


def _draw_run(
    sheet: Sheet, name: str, fetched: np.ndarray, added: np.ndarray, shape, clocks: np.ndarray
):
    m, n, depth = shape
    left, top = LEFT + depth * THIN + 8, TOP + depth * THIN + 8  # of C
    wide, high = left + n * CELL + 12, top + m * CELL + 48
    sheet.stage(f"{name}: A on the left, B above, and C between them", wide, high)
    end = int(fetched[-1, 0])
    sheet.race(
        name, (4, wide - 8), np.minimum(clocks, end), end, int(clocks[-1]), title=name, unit="word"
    )
    of_a, of_b = (fetched[fetched[:, 1] == matrix] for matrix in (0, 1))
    # When, and in which cell; rows and columns of cells; left, top and size of a cell; how often it
    # can be.
    matrices = {
        "A": (of_a[:, 0], of_a[:, 2] * depth + of_a[:, 3], (m, depth), (LEFT, top, THIN, CELL), n),
        "B": (of_b[:, 0], of_b[:, 3] * n + of_b[:, 2], (depth, n), (left, TOP, CELL, THIN), m),
        "C": (added[:, 0], added[:, 1] * n + added[:, 2], (m, n), (left, top, CELL, CELL), depth),
    }
    parts: list[tuple] = []
    for number, (matrix, (when, cell, (rows, columns), (x0, y0, w0, h0), most)) in enumerate(
        matrices.items()
    ):
        i, j = np.divmod(np.arange(rows * columns), columns)
        so_far = np.array(
            [np.bincount(cell[when <= clock], minlength=rows * columns) for clock in clocks]
        )
        size = np.full((2, rows * columns), [[w0 - 1], [h0 - 1]])
        event = "terms added" if matrix == "C" else "times fetched"
        words = np.array([f"{matrix}[{a}, {b}]: {event}" for a, b in zip(i, j)])
        parts.append(
            (
                x0 + (j + 0.5) * w0,
                y0 + (i + 0.5) * h0,
                *size,
                words,
                so_far,
                9 * number + 8 * so_far // most,
            )
        )
    x, y, w, h, words, so_far, shade = (np.concatenate(part, axis=-1) for part in zip(*parts))
    now = 1.5 * (np.diff(so_far, axis=0, prepend=0) > 0)
    for matrix, across, down in (("A", LEFT + 4, top - 9), ("B", left - 16, TOP + 9)):
        sheet.words(across, down, matrix, matrix.lower(), bold=True, size=14)
    source = sheet.boxes(
        f"cells {name}",
        x,
        y,
        w,
        h,
        fill=(SHADES, shade),
        words=words,
        tip="@words: @times",
        columns={"times": so_far, "now": now},
    )
    sheet.ring(source, "w", "h", "now", "ink")
    words, terms = ((when[:, 0] <= clocks[:, np.newaxis]).sum(axis=1) for when in (fetched, added))
    counts = [f"{w} words for {2 * t} flops" for w, t in zip(words, terms)]
    rate = [
        f"{w / (2 * t):.3f} words per flop" if t else "no flop yet" for w, t in zip(words, terms)
    ]
    which, right = np.arange(len(clocks)), left + n * CELL
    sheet.numbers(f"count {name}", right, high - 30, which, names=counts, align="right", size=13)
    sheet.numbers(
        f"rate {name}", right, high - 12, which, names=rate, align="right", size=17, bold=True
    )
