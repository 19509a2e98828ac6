"""A reduction against the kernel without one, step by step: several work-items share a row of A,
and one adds up.

From the recorded fetches and LDS accesses of one wavefront of each of two matrix-vector kernels, on
the same rows: which work-item reads which texel, which stores its sum in which word, and which adds
them up. A step is one access by all work-items that take part. Left out: the fetches of x, and
other wavefronts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.samples import run
from cypresskit.machine.traffic import Access, Traffic

ITERATIONS = 4  # of the loop that are shown
# The stage, in pixels, and the rows: where they begin, and how high they are together.
WIDTH, TOP, ROWS_HEIGHT = 1112, 92, 330
PANELS = (12, 440)  # the left edges
# In a panel: the widths of its clock and of A, and where work-items, LDS and sums begin.
CLOCK, MATRIX, ITEMS, LDS, SUMS = 380, 240, 266, 400, 560
LINE = 4  # texels
WORDS = {
    "item": "sums its texels",
    "lds": "its word of the LDS",
    "sum": "its part of the leader's sum",
}
TINTS = [*theme.SERIES, "rgba(128,128,128,0.16)"]  # by part; the last: nothing, or nothing to do
NOTHING = len(theme.SERIES)


def reduction(kernel: Source = "sgemv_n_reduce4") -> Player:
    """Return a player of a wavefront of ``kernel`` beside one of ``sgemv_n``, which has one
    work-item for each result. ``kernel`` multiplies a matrix, stored row by row, with a vector, and
    has several work-items for each result. Raises ``ValueError`` for any other.
    """
    spec = resolve(kernel)
    parts = spec.convention.parts
    if not spec.is_vector or spec.trans_a or parts == 1:
        raise ValueError(
            f"{spec.name} has no row of A that work-items share: sgemv_n_reduce4 does, and"
            " sgemv_n_reduce2"
        )
    leaders = 64 // parts
    rows = leaders * spec.block[0]
    k = ITERATIONS * spec.k_step
    plain = _Side(KERNELS["sgemv_n"], parts, rows, k, PANELS[0])
    helped = _Side(spec, parts, rows, k, PANELS[1])
    frames = len(plain.steps) + 1
    sheet = Sheet(f"A reduction: {spec.name}, {leaders} leaders and {64 - leaders} helpers")
    label = "Texels of A, work-items, the LDS and the sums, without and with a reduction"
    sheet.stage(label, WIDTH, TOP + ROWS_HEIGHT + 30)
    plain.draw(sheet, frames)
    helped.draw(sheet, frames)

    names = ["leader", *["helper"] * (parts - 1)]
    legend = sheet.legend(
        *((f"part {n + 1}: {name}", theme.SERIES[n], "box") for n, name in enumerate(names)),
        (f"nothing to do (left: y has {rows} rows)", TINTS[-1], "box"),
        ("a requested line", "ink", "ring"),
    )
    captions = _captions(plain, helped, frames)
    return sheet.player(captions, step="Step", below=[legend], still_frame=frames // 2)


def _captions(plain: "_Side", helped: "_Side", frames: int) -> list[str]:
    """Describe what each side does in a step; and at the end, what the helpers gained."""
    captions = [
        f"**{plain.name}**: {plain.say(n)} **{helped.name}**: {helped.say(n)}"
        for n in range(frames)
    ]
    captions[0] = (
        f"{plain.rows} rows of A, nothing fetched yet. On the right"
        f" {helped.kernel.convention.parts} neighbors share four rows."
    )
    steps = len(plain.steps) / len(helped.steps)
    lines = plain.requested[-1] / helped.requested[-1]
    captions[-1] += (
        f" Without helpers it takes {steps:.1f} times the steps and {lines:.0f} times the lines."
    )
    return captions


@dataclass(frozen=True, eq=False)
class _Side:
    """A kernel's half of the picture: the number of columns of its 64 work-items, the shape of A,
    the left edge.
    """

    kernel: Kernel
    columns: int
    rows: int
    k: int
    left: float

    @property
    def name(self) -> str:
        return self.kernel.name

    @cached_property
    def steps(self) -> list[Access]:
        """The accesses to A and the LDS by those work-items of the wavefront that have a row of
        A.
        """
        traffic = Traffic()
        run(self.kernel, self.rows, 1, self.k, traffic)
        for access in traffic.accesses:
            access.active[64 * self.kernel.convention.parts // self.columns :] = False
        return [
            access for access in traffic.accesses if access.kind != "fetch" or access.resource == 0
        ]

    @cached_property
    def lines(self) -> list[list[tuple[int, int]]]:
        """For each step, (row of the matrix, cache line) of all lines fetched, once per quad."""
        quad = np.arange(64) // 4
        lines = []
        for access in self.steps:
            requested: set[tuple[int, int, int]] = set()
            if access.x is not None and access.y is not None:
                on = access.active
                requested = set(zip(quad[on], access.y[on], access.x[on] // LINE))
            lines.append([(row, line) for _, row, line in sorted(requested)])
        return lines

    @cached_property
    def requested(self) -> np.ndarray:
        """The number of lines requested before each step, and in all."""
        return np.cumsum([0, *map(len, self.lines)])

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each work-item. Helpers are beside their leader; in a kernel without
        any, the work-items with rows of A fill the first column.
        """
        item = np.arange(64)
        if self.kernel.convention.parts == 1:
            rows = 64 // self.columns
            return item % rows, item // rows
        return item // self.columns, item % self.columns

    @property
    def row_height(self) -> float:
        """The height of a row of work-items."""
        return ROWS_HEIGHT * self.columns / 64

    @property
    def side(self) -> float:
        """The size of a work-item."""
        return min(16.0, self.row_height - 4)

    def texel(self, x, y) -> tuple[np.ndarray, np.ndarray]:
        """Return the centers of texels of A."""
        across = (np.asarray(x) + 0.5) * MATRIX * 4 / self.k
        down = (np.asarray(y) + 0.5) * ROWS_HEIGHT / self.rows
        return self.left + across, TOP + down

    def item_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the centers of the work-items."""
        row, part = self.places
        return self.left + ITEMS + 8 + 28 * part, TOP + (row + 0.5) * self.row_height

    def word_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the centers of the work-items' words of the LDS; a group's words are one below the
        other.
        """
        row, part = self.places
        step = self.row_height / (self.columns + 1)
        y = TOP + (row + 0.5) * self.row_height + (part - (self.columns - 1) / 2) * step
        return np.full(64, self.left + LDS + 40), y

    def sum_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the centers of the parts of the leaders' sums."""
        row, part = self.places
        return self.left + SUMS + 24 * part, TOP + (row + 0.5) * self.row_height

    def _count(self, kind: str, frames: int) -> np.ndarray:
        """Count the accesses of a kind before each frame: an array of shape (frames, 1)."""
        kinds = [access.kind for access in self.steps]
        return np.array([[kinds[:n].count(kind)] for n in range(frames)])

    def draw(self, sheet: Sheet, frames: int) -> None:
        """Draw a kernel's half of the picture."""
        clock = np.minimum(np.arange(frames), len(self.steps))
        lane = self.left, CLOCK
        end = len(self.steps), frames - 1
        sheet.race(self.name, lane, clock, *end, title=self.name, unit="step")
        stored, added = self._count("store", frames), self._count("load", frames)
        _, part = self.places

        heads = {0: f"A: {self.rows} rows", ITEMS: "64 work-items"}
        if self.kernel.convention.parts == 1:
            heads[ITEMS] = f"{64 // self.columns} of 64 have work"
            busy = np.broadcast_to(part == 0, (64,))
        else:
            # A helper that has left its sum has nothing more to do.
            busy = (stored == 0) | (part == 0)
        has_sums = bool(stored.any())
        if has_sums:
            heads |= {LDS: "LDS: their sums", SUMS - 10: "leaders' sums"}
        size = self.side, self.side
        self._draw_parts(sheet, "item", self.item_places(), size, busy, round=int(self.side / 2))
        if has_sums:
            self._draw_sums(sheet, stored, added)
        for dx, head in heads.items():
            sheet.text(self.left + dx, TOP - 16, head, bold=True, size=14)
        self._draw_matrix(sheet, frames)
        self._draw_flights(sheet, frames)

    def _draw_parts(self, sheet: Sheet, name: str, place, size, lit: np.ndarray, **look) -> None:
        """Draw a box for each work-item, in the color of its part where it is ``lit``."""
        _, part = self.places
        words = [f"work-item {n}: {WORDS[name]}" for n in range(64)]
        fill = TINTS, np.where(lit, part, NOTHING)
        sheet.boxes(f"{name} {self.name}", *place, *size, words=words, fill=fill, **look)

    def _is_added(self, added: np.ndarray) -> np.ndarray:
        """Whether each helper's sum was added, of shape (frames, work-items)."""
        _, part = self.places
        return (part > 0) & (part <= added)

    def _draw_sums(self, sheet: Sheet, stored: np.ndarray, added: np.ndarray) -> None:
        """Draw the words of the LDS and the leaders' sums; ``stored`` and ``added`` count the
        accesses before each frame.
        """
        _, part = self.places
        height = self.row_height / (self.columns + 1) - 1
        self._draw_parts(sheet, "lds", self.word_places(), (80, height), stored > 0)
        is_summed = self._is_added(added) | ((part == 0) & (stored > 0))
        self._draw_parts(sheet, "sum", self.sum_places(), (20, self.side), is_summed)

    def say(self, n: int) -> str:
        """Describe what happens in a step."""
        if n >= len(self.steps):
            return f"done after {len(self.steps)} steps."
        now = self.steps[n - 1]
        active = f"{int(now.active.sum())} work-items"
        if now.kind == "fetch":
            return (
                f"{active} fetch a texel each, from {len(self.lines[n - 1])} lines, and add its"
                " products."
            )
        if now.kind == "store":
            return f"{active} store their sums into the LDS, and wait for all at the barrier."
        return f"{active} load a helper's sum and add it to their own; the others are idle."

    def _draw_matrix(self, sheet: Sheet, frames: int) -> None:
        """Draw A's texels, in the color of the work-item that has fetched them, and the lines
        requested.
        """
        across = self.k // 4
        part = self.places[1]
        fetched = np.full((frames, self.rows * across), NOTHING)
        lines = np.full((2, frames, max(map(len, self.lines))), np.nan, np.float32)
        for n, access in enumerate(self.steps, 1):
            if access.x is not None and access.y is not None:
                on = access.active
                fetched[n:, access.y[on] * across + access.x[on]] = part[on]
                row, line = np.transpose(self.lines[n - 1])
                lines[:, n, : len(row)] = self.texel(LINE * line + (LINE - 1) / 2, row)

        y, x = np.divmod(np.arange(self.rows * across), across)
        width, height = MATRIX / across, ROWS_HEIGHT / self.rows
        words = [f"A: row {row}, texel {texel}" for texel, row in zip(x, y)]
        look: dict = {"fill": (TINTS, fetched), "words": words}
        sheet.boxes(f"texels {self.name}", *self.texel(x, y), width - 2, height - 0.8, **look)
        size = LINE * width, height + 2
        sheet.boxes(f"lines {self.name}", lines[0], lines[1], *size, line="ink", alpha=0)
        requested = self.requested[np.minimum(np.arange(frames), len(self.steps))]
        style: dict = {"prefix": "lines requested: ", "size": 14, "bold": True}
        foot = TOP + ROWS_HEIGHT + 14
        sheet.numbers(f"requested {self.name}", self.left, foot, requested, **style)

    def _draw_flights(self, sheet: Sheet, frames: int) -> None:
        """Draw what moves in each step: from texel to work-item, from there to the LDS, from there
        to the leader.
        """
        part = self.places[1]
        xy = np.full((2, frames, 128), np.nan, np.float32)
        color = np.tile(part, (frames, 2))
        for n, access in enumerate(self.steps):
            on = np.flatnonzero(access.active)
            slot = on + 64 * (n % 2)  # dots of the step before are still landing
            if access.x is not None and access.y is not None:
                start = self.texel(access.x, access.y)
                end = self.item_places()
            elif access.kind == "store":
                start, end = self.item_places(), self.word_places()
            else:
                assert access.addresses is not None
                word = access.addresses[0] // 16
                start = self.word_places()[0][word], self.word_places()[1][word]
                end = self.sum_places()[0][word], self.sum_places()[1][word]
                color[n : n + 2, slot] = part[word[on]]
            xy[:, n, slot] = np.array(start)[:, on]
            xy[:, n + 1, slot] = np.array(end)[:, on]
        xy[:, len(self.steps)] = np.nan  # all have arrived
        look: dict = {"line": "ink", "round": 4, "moves": ("x", "y")}
        sheet.boxes(f"flights {self.name}", xy[0], xy[1], 9, 9, fill=(theme.SERIES, color), **look)
