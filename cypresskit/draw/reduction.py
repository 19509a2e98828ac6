"""A reduction against the kernel without one, step by step: several work-items share a row of A,
and one adds up.

From the recorded fetches and LDS accesses of one wavefront of each of two matrix-vector kernels, on
the same rows: which work-item reads which texel, who stores its sum in which word, and who adds
them up. A step is one access by all work-items that take part. Left out: the fetches of x, and
other wavefronts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.samples import run
from cypresskit.machine.traffic import Access, Traffic

TURNS, TOP, HIGH = (
    4,
    92,
    330,
)  # turns of the loop that are shown; where the rows begin, and how high they are together
LEFT, WIDE, MATRIX = (
    (12, 440),
    380,
    240,
)  # where the panels begin; the width of a panel's clock, and of A
ITEMS, LDS, SUMS = 266, 400, 560  # where they are in a panel
LINE = 4  # texels
WORDS = {
    "item": "sums its texels",
    "lds": "its word of the LDS",
    "sum": "its part of the leader's sum",
}
TINTS = [*theme.SERIES, "rgba(128,128,128,0.16)"]  # by part; the last: nothing, or nothing to do
NOTHING = len(theme.SERIES)


def reduction(kernel: Source = "sgemv_n_reduce4") -> Player:
    """A player of a wavefront of ``kernel`` beside one of ``sgemv_n``, which has one work-item for
    each result. ``kernel`` is one that multiplies a matrix, stored row by row,
    with a vector and has several. Raises ``ValueError`` for any other.
    """
    spec = resolve(kernel)
    if not spec.vector or spec.trans_a or spec.parts == 1:
        raise ValueError(
            f"{spec.name} has no row of A that work-items share: sgemv_n_reduce4 does, and"
            " sgemv_n_reduce2"
        )
    leaders = 64 // spec.parts
    rows, k = leaders * spec.block[0], TURNS * spec.k_step
    plain, helped = (
        _Side(side, spec.parts, rows, k, left)
        for side, left in zip((KERNELS["sgemv_n"], spec), LEFT)
    )
    frames = len(plain.steps) + 1
    sheet = Sheet(f"A reduction: {spec.name}, {leaders} leaders and {64 - leaders} helpers")
    label = "Texels of A, work-items, the LDS and the sums, without and with a reduction"
    sheet.stage(label, 1112, TOP + HIGH + 30)
    for side in (plain, helped):
        side.draw(sheet, frames)
    names = ["leader", *["helper"] * (spec.parts - 1)]
    sheet.about = {
        n: f"**Work-item {n}**, the {names[n % spec.parts]} of group {n // spec.parts}."
        for n in range(64)
    }
    captions = [
        " ".join(f"**{side.name}**: {side.say(n)}" for side in (plain, helped))
        for n in range(frames)
    ]
    captions[0] = (
        f"{rows} rows of A, nothing fetched yet. On the right {spec.parts} neighbours share four"
        " rows."
    )
    steps, lines = [
        count(plain) / count(helped) for count in (lambda s: len(s.steps), lambda s: s.asked[-1])
    ]
    captions[-1] += (
        f" Without helpers it takes {steps:.1f} times the steps and {lines:.0f} times the lines."
    )
    key = sheet.key(
        *((f"part {n + 1}: {name}", theme.SERIES[n], "box") for n, name in enumerate(names)),
        (f"nothing to do (left: y has {rows} rows)", TINTS[-1], "box"),
        ("a line that is asked for", "ink", "ring"),
    )
    choices = [f"{times} times" for times in range(max(1, spec.parts - 2), spec.parts + 1)]
    question = "The same rows: about how many times as many steps does it take without helpers?"
    guess = Guess(
        question,
        choices,
        f"{len(plain.steps)} steps instead of {len(helped.steps)}.",
        f"{steps:.0f} times",
    )
    return sheet.player(captions, step="Step", below=[key], guess=guess)


@dataclass(frozen=True, eq=False)
class _Side:
    """A kernel's half of the picture: in how many columns its 64 work-items stand, the shape of A,
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
            access.active[64 * self.kernel.parts // self.columns :] = False
        return [
            access for access in traffic.accesses if access.kind != "fetch" or access.resource == 0
        ]

    @cached_property
    def lines(self) -> list[list[tuple[int, int]]]:
        """For each step, (row of the matrix, cache line) of all lines fetched, once per quad."""
        quads, asked = np.arange(64) // 4, []
        for a in self.steps:
            on = (
                []
                if a.x is None or a.y is None
                else zip(quads[a.active], a.y[a.active], a.x[a.active] // LINE)
            )
            asked.append([(y, line) for _, y, line in sorted(set(on))])
        return asked

    @cached_property
    def asked(self) -> np.ndarray:
        """The number of lines asked for before each step, and in all."""
        return np.cumsum([0, *map(len, self.lines)])

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each work-item. Helpers stand beside their leader; in a kernel without
        any, the work-items with rows of A fill the first column.
        """
        item, down = np.arange(64), 64 // self.columns
        alone = self.kernel.parts == 1
        return (item % down, item // down) if alone else (item // self.columns, item % self.columns)

    def texel(self, x, y) -> tuple[np.ndarray, np.ndarray]:
        return (
            self.left + (np.asarray(x) + 0.5) * MATRIX * 4 / self.k,
            TOP + (np.asarray(y) + 0.5) * HIGH / self.rows,
        )

    def draw(self, sheet: Sheet, frames: int) -> None:
        clock = np.minimum(np.arange(frames), len(self.steps))
        end = len(self.steps), frames - 1
        sheet.race(self.name, (self.left, WIDE), clock, *end, title=self.name, unit="step")
        group, part = self.places
        high = HIGH * self.columns / 64
        row, side, each = TOP + (group + 0.5) * high, min(16.0, high - 4), high / (self.columns + 1)
        fan = self.left + LDS + 40 + 0 * part, row + (part - (self.columns - 1) / 2) * each
        x = {"item": self.left + ITEMS + 8 + 28 * part, "sum": self.left + SUMS + 24 * part}
        stored, added = (
            [[sum(a.kind == kind for a in self.steps[:n])] for n in range(frames)]
            for kind in ("store", "load")
        )
        busy = part == 0 if self.kernel.parts == 1 else (np.array(stored) == 0) | (part == 0)
        # A helper that has left its sum has nothing more to do.
        parts = {"item": ((x["item"], row), (side, side), busy)}
        leaders = 64 // self.columns
        items = "64 work-items"
        if self.kernel.parts == 1:
            items = f"{leaders} of 64 have work"
        heads = {0: f"A: {self.rows} rows", ITEMS: items}
        if any(map(any, stored)):
            come = (part > 0) & (part <= np.array(added))
            parts["lds"] = fan, (80, each - 1), np.array(stored) > 0
            parts["sum"] = (
                (x["sum"], row),
                (20, side),
                come | ((part == 0) & (np.array(stored) > 0)),
            )
            heads |= {LDS: "LDS: their sums", SUMS - 10: "leaders' sums"}
            ends = (fan[0] + 42, fan[1]), (self.left + SUMS - 14, row)
            sheet.arrows(
                "branches",
                *(tuple(np.where(come, place, np.nan) for place in end) for end in ends),
                ink="soft",
                width=1.5,
                size=5,
            )
        for name, (place, size, lit) in parts.items():
            words, key = (
                [f"work-item {n}: {WORDS[name]}" for n in range(64)],
                group * self.columns + part,
            )
            fill, round_ = (TINTS, np.where(lit, part, NOTHING)), int(side / 2) * (name == "item")
            sheet.boxes(
                f"{name} {self.name}", *place, *size, words=words, key=key, round=round_, fill=fill
            )
        for dx, head in heads.items():
            sheet.words(self.left + dx, TOP - 16, head, bold=True, size=14)
        self._draw_matrix(sheet, frames)
        self._draw_flights(sheet, frames, {name: place for name, (place, _, _) in parts.items()})

    def say(self, n: int) -> str:
        if n >= len(self.steps):
            return f"done after {len(self.steps)} steps."
        now = self.steps[n - 1]
        who = f"{int(now.active.sum())} work-items"
        if now.kind == "fetch":
            return (
                f"{who} fetch a texel each, from {len(self.lines[n - 1])} lines, and add its"
                " products."
            )
        if now.kind == "store":
            return f"{who} leave their sums in the LDS. A barrier: all wait for all."
        return f"{who} load a helper's sum and add it to their own; the others sleep."

    def _draw_matrix(self, sheet: Sheet, frames: int) -> None:
        """Draw A's texels, in the colour of the work-item that has fetched them, and the lines
        asked for.
        """
        across, part = self.k // 4, self.places[1]
        seen = np.full((frames, self.rows * across), NOTHING)
        ring = np.full((2, frames, max(map(len, self.lines))), np.nan, np.float32)
        for n, access in enumerate(self.steps, 1):
            if access.x is not None and access.y is not None:
                on = access.active
                seen[n:, access.y[on] * across + access.x[on]] = part[on]
                y, line = np.transpose(self.lines[n - 1])
                ring[:, n, : len(y)] = self.texel(LINE * line + (LINE - 1) / 2, y)
        y, x = np.divmod(np.arange(self.rows * across), across)
        wide, high = MATRIX / across, HIGH / self.rows
        words = [f"A: row {b}, texel {a}" for a, b in zip(x, y)]
        fill = TINTS, seen
        sheet.boxes(
            f"texels {self.name}", *self.texel(x, y), wide - 2, high - 0.8, fill=fill, words=words
        )
        sheet.boxes(
            f"lines {self.name}", ring[0], ring[1], LINE * wide, high + 2, line="ink", alpha=0
        )
        asked, foot = self.asked[np.minimum(np.arange(frames), len(self.steps))], TOP + HIGH + 14
        sheet.numbers(
            f"asked {self.name}",
            self.left,
            foot,
            asked,
            prefix="lines asked for: ",
            size=14,
            bold=True,
        )

    def _draw_flights(self, sheet: Sheet, frames: int, places: dict) -> None:
        """Draw what moves in each step: from texel to work-item, from there to the LDS, from there
        to the leader.
        """
        xy, part = np.full((2, frames, 128), np.nan, np.float32), self.places[1]
        colour = np.tile(part, (frames, 2))
        for n, access in enumerate(self.steps):
            on = np.flatnonzero(access.active)
            slot = on + 64 * (n % 2)  # those of the step before are still landing
            if access.x is not None and access.y is not None:
                begin, end = self.texel(access.x, access.y), places["item"]
            elif access.kind == "store":
                begin, end = places["item"], places["lds"]
            else:
                assert access.addresses is not None
                word = access.addresses[0] // 16
                begin, end = (tuple(axis[word] for axis in places[name]) for name in ("lds", "sum"))
                colour[n : n + 2, slot] = part[word[on]]
            xy[:, n, slot], xy[:, n + 1, slot] = np.array(begin)[:, on], np.array(end)[:, on]
        xy[:, len(self.steps)] = np.nan  # all have arrived
        look: dict = {"line": "ink", "round": 4, "moves": ("x", "y")}
        sheet.boxes(f"flights {self.name}", xy[0], xy[1], 9, 9, fill=(theme.SERIES, colour), **look)
