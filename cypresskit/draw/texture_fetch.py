"""A wavefront's fetches, clock by clock: a quad's texels, and the clocks that each quad costs.

Drawn from the recorded fetches of a wavefront. The texture unit serves one quad after another. A
quad takes one clock for each texel that it needs from the busiest of L1's banks (four on the HD
5870). The lines of these texels are looked up in L1, which starts empty (``chip.units.cache``).
Several kernels race. Other wavefronts, the arrival of data, and texels of fewer than the 16 bytes
that a bank delivers aren't drawn.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from cypresskit.chip.units.cache import empty, find, fold
from cypresskit.chip.work import BANK_SHIFT
from cypresskit.devices import HD5870
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import HEADING, Sheet
from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import MATRICES
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.samples import record_traffic
from cypresskit.machine.shape import lanes
from cypresskit.machine.traffic import Access
from cypresskit.tables import plural
from cypresskit.trace.memory_layout import MemoryLayout

WORDS = 1 << BANK_SHIFT >> 2  # 32-bit words that a bank of L1 delivers per clock: those of a texel
BANKS = HD5870.texture_banks
FETCHES = 16  # that are drawn
# In pixels:
WIDE, HIGH, LEFT = 520, 466, 5  # a panel, and the space on its sides
ITEM, TOP, TICKS = 17, 84, 352  # side of a work-item; top of the tile and of the ticks
BANKS_Y, BANK_LABEL = 313, 16  # the row of banks, and the width of a bank's name
MATRIX = 166  # left edge of the matrices
ROOM = (172.0, 174)  # space for each matrix
MAX_TEXEL = 13.0  # side of a texel

MAX_QUEUE = 4  # texels that a quad can request from a bank
MATRIX_COLORS = "a", "b"
# Texels of A and B: unused, line used before, delivered now.
SHADES = [f"{color} {alpha}" for color in MATRIX_COLORS for alpha in (0.2, 0.4, 0.95)]


def texture_fetch(*kernels: Source) -> Player:
    """Draw a wavefront's first 16 fetches, clock by clock. Several kernels race.

    Parameters
    ----------
    kernels
        By default "dgemm_tn" and "dgemm_nn".

    Raises
    ------
    ValueError
        If a kernel doesn't fetch, or fetches texels of fewer than 16 bytes.

    Examples
    --------
    >>> ck.draw.texture_fetch("sgemm_tn", "sgemm_nn")
    """
    panels = [
        Replay(resolve(kernel), 10_000 * n)
        for n, kernel in enumerate(kernels or ("dgemm_tn", "dgemm_nn"))
    ]
    names = " and ".join(panel.name for panel in panels)
    sheet = Sheet(f"Which texels of a wavefront's fetches wait? {names}")
    most = max(len(panel.served) for panel in panels)
    for panel in panels:
        label = f"{panel.name}: work-items in quads, the matrices in texels, clocks of each fetch"
        sheet.stage(label, WIDE + 2 * LEFT, HIGH)
        panel.draw(sheet, most)
    captions = ["Clock 0. No fetch has started."]
    captions += [
        f"Clock {t:,}. " + " ".join(panel.say(t) for panel in panels) for t in range(1, most + 1)
    ]
    ends = sheet.winner({panel.name: len(panel.served) for panel in panels}, "clock")
    captions[-1] = f"{ends} {captions[-1]}"
    waits = [t for panel in panels for t, step in enumerate(panel.served, 1) if step.waiting]
    legend = sheet.legend(
        ("texel of A", MATRIX_COLORS[0]),
        ("texel of B", MATRIX_COLORS[1]),
        ("L1 miss: fetched from L2", "ink", "ring"),
        ("waits: its bank delivers another", "wait", "ring"),
    )
    return sheet.player(
        captions,
        "modeled",
        step="Clock",
        below=[legend],
        seconds=14,
        opens=min((t for t in waits if t > most // 3), default=most // 3),
    )


@dataclass(frozen=True)
class _Served:
    """A clock of the texture unit. Texels have numbers, through all textures."""

    fetch: int
    quad: int
    number: int  #: of the clock, within the quad's
    texels: list[int]  #: that the banks deliver
    waiting: list[int]  #: that wait for a later clock
    requested: int  #: lines of L1
    missed: int  #: lines that weren't in L1


class Cache:
    """A cache of ``size`` bytes, with lines of ``line`` bytes."""

    def __init__(self, size: int, ways: int, line: int):
        sets = size // ways // line
        self.bits = (sets - 1).bit_length()
        self.age = 0
        self.ways, self.tags, self.used = empty(sets, ways)

    def read(self, line: int) -> bool:
        """Read a line. Return whether it was there."""
        self.age += 1
        place = fold(line, self.bits) * self.ways
        spot = find(self.tags, self.used, place, self.ways, line, self.age)
        if spot < 0:
            self.tags[-1 - spot] = line
            self.used[-1 - spot] = self.age
        return bool(spot >= 0)


class Replay:
    """A kernel's fetches, replayed clock by clock, and its panel. Its keys start at ``keys``."""

    def __init__(self, kernel: Kernel, keys: int) -> None:
        # 8 blocks in a row are a wavefront's.
        run = record_traffic(kernel, n=max(32, 8 * kernel.block[0]), k=16)
        self.run, self.name = run, run.launch.program.name.removesuffix(".il")
        fetches = [a for a in run.accesses if a.kind == "fetch" and a.resource in MATRICES]
        self.accesses = fetches[:FETCHES]
        if not self.accesses:
            raise ValueError(f"{self.name}: wavefront 0 fetches nothing of A and B from a texture")
        resources = {access.resource for access in self.accesses}
        self.textures = {n: run.launch.textures[n] for n in sorted(resources)}
        if any(texture.words.shape[2] != WORDS for texture in self.textures.values()):
            raise ValueError(
                f"{self.name} fetches texels of fewer than 16 bytes: pass a kernel that fetches"
                " four numbers at once, or two doubles"
            )

        # All texels, row by row: their textures, places and banks, and their lines in L1.
        layout = MemoryLayout(run.launch, HD5870)
        texels = []
        for resource, texture in self.textures.items():
            y, x = np.indices((texture.height, texture.width)).reshape(2, -1)
            bank = layout.bank(resource, x, y)
            line = layout.address(resource, x, y) // HD5870.line_bytes
            texels.append([np.full(len(x), resource), y, x, bank, line])
        table = np.hstack(texels)
        self.resource, self.row, self.column, self.bank, self.line = table
        self.keys = keys + np.arange(len(self.row))
        self.words = [
            f"{MATRICES[resource]}, row {y}, texel {x}: bank {bank}"
            for resource, y, x, bank, _ in table.T.tolist()
        ]

        self.cache = Cache(HD5870.l1_bytes, HD5870.l1_ways, HD5870.line_bytes)
        self.served: list[_Served] = []
        for fetch, access in enumerate(self.accesses):
            for quad in range(16):
                self._serve(fetch, quad, self._texels(access, self._items(access, quad)).tolist())

    def _serve(self, fetch: int, quad: int, wanted: list[int]) -> None:
        """Deliver a quad's texels: in each clock, a bank gives the first one that waits for it."""
        wanted = list(dict.fromkeys(wanted))
        seen: set[int] = set()
        number = 0
        while wanted:
            given = list({self.bank[texel]: texel for texel in reversed(wanted)}.values())
            wanted = [texel for texel in wanted if texel not in given]
            lines = {int(self.line[texel]) for texel in given} - seen
            seen |= lines
            missed = sum(not self.cache.read(line) for line in sorted(lines))
            self.served.append(_Served(fetch, quad, number, given, wanted, len(lines), missed))
            number += 1

    def _texels(self, access: Access, items: np.ndarray) -> np.ndarray:
        """Return the numbers of the texels that work-items fetch."""
        assert access.x is not None and access.y is not None
        first = np.searchsorted(self.resource, access.resource)
        width = self.textures[access.resource].width
        return first + access.y[items] * width + access.x[items]

    @staticmethod
    def _items(access: Access, quad: int) -> np.ndarray:
        return np.flatnonzero(access.active[4 * quad : 4 * quad + 4]) + 4 * quad

    def say(self, clock: int) -> str:
        if clock >= len(self.served):
            missed = sum(step.missed for step in self.served)
            requested = sum(step.requested for step in self.served)
            return f"**{self.name}**: done; {missed} of {requested} requested lines missed L1."
        now = self.served[clock - 1]
        access = self.accesses[now.fetch]
        line = self.run.launch.program.body[access.at].line
        numbers = sorted({self.bank[texel] for texel in now.texels})
        banks = f"{plural('bank', len(numbers))} {' and '.join(map(str, numbers))}"
        waits = f"; {len(now.waiting)} more wait" if now.waiting else ""
        where = (
            f"fetch {now.fetch + 1}, of {MATRICES[access.resource]} (line {line}), quad"
            f" {now.quad + 1}"
        )
        return f"**{self.name}**: {where}: a texel from {banks}{waits}."

    def draw(self, sheet: Sheet, most: int) -> None:
        clocks = np.minimum(np.arange(most + 1), len(self.served))
        sheet.race(self.name, (LEFT, WIDE), clocks, len(self.served), most, title=self.name)
        self._draw_tile(sheet, most, self._draw_texels(sheet, most))
        self._draw_banks(sheet, most)
        self._draw_ticks(sheet, clocks)

    def _draw_tile(self, sheet: Sheet, most: int, texels: np.ndarray) -> None:
        """Draw the work-items in quads (2 x 2 in a pixel shader, 4 x 1 in a compute shader).

        The current quad is framed, with arrows from its work-items to their texels, whose centers
        are ``texels``.
        """
        item = np.arange(64)
        shape = self.run.launch.shape
        pixels = shape.pixels
        across, down = lanes(shape, item[:1])[:2] if pixels else (item % 8, item // 8)
        apart = (across // 2 * 3, down // 2 * 3) if pixels else (across // 4 * 3, 0)
        x, y = LEFT + across * ITEM + apart[0] + 9, TOP + down * ITEM + apart[1] + 8
        sheet.text(LEFT, TOP - 14, "64 work-items")
        words = [f"work-item {n} of the wavefront, in quad {n // 4 + 1}" for n in item]
        sheet.boxes(
            f"tile {self.name}", x, y, ITEM - 2, ITEM - 2, color="faint", line="line", words=words
        )
        box, ends = (np.full((4, most + 1, things), np.nan, np.float32) for things in (1, 4))
        for clock, now in enumerate(self.served[:-1], 1):  # in the last frame all is done
            access = self.accesses[now.fetch]
            four = np.arange(4 * now.quad, 4 * now.quad + 4)
            for n, axis in enumerate((x, y)):
                low, high = axis[four].min(), axis[four].max()
                box[n::2, clock, 0] = (low + high) / 2, high - low + ITEM
            on = self._items(access, now.quad)
            ends[:, clock, on % 4] = x[on], y[on], *texels[:, self._texels(access, on)]
        source = sheet.source(f"quad {self.name}", x=box[0], y=box[1], w=box[2], h=box[3])
        sheet.ring(source, "w", "h", 3, "ink")
        sheet.arrows(f"arrows {self.name}", ends[:2], ends[2:], width=1.5, size=5)

    def _draw_texels(self, sheet: Sheet, most: int) -> np.ndarray:
        """Draw the matrices as stored, with the texels of a line close together. Return the centers
        of the texels: x and y.
        """
        shapes = np.array([(texture.width, texture.height) for texture in self.textures.values()])
        sizes = np.minimum(ROOM / shapes, MAX_TEXEL)
        starts = LEFT + MATRIX + np.arange(len(shapes)) * (ROOM[0] + 12)
        feet = TOP + shapes[:, 1] * sizes[:, 1] + 9
        for (resource, texture), start in zip(self.textures.items(), starts):
            title = f"{MATRICES[resource]}: {texture.height} x {texture.width} texels"
            sheet.text(start, TOP - 14, title, MATRIX_COLORS[resource])

        of = np.searchsorted(list(self.textures), self.resource)
        wide, high = sizes[of].T
        x, y = starts[of] + (self.column + 0.5) * wide, TOP + (self.row + 0.5) * high
        _, same = np.unique(self.line, return_inverse=True)
        close = 0.94 * x + 0.06 * (np.bincount(same, x) / np.bincount(same))[same]

        kind, wait = np.zeros((2, most + 1, len(x)), np.uint8)
        for clock, now in enumerate(self.served, 1):
            kind[clock:, np.isin(self.line, self.line[now.texels])] = 1
            kind[clock, now.texels] = 1 + (clock < len(self.served))
            wait[clock, now.waiting] = 3
        source = sheet.boxes(
            f"texels {self.name}",
            close,
            y,
            0.94 * wide - 1,
            high - 1,
            fill=(SHADES, kind + 3 * self.resource),
            words=self.words,
            key=self.keys,
            columns={"wait": wait},
        )
        sheet.ring(source, "w", "h", "wait")
        for line in np.unique(self.line[self.row == 0]):
            top = np.flatnonzero((self.row == 0) & (self.line == line))
            banks = f"{self.bank[top[0]]}-{self.bank[top[-1]]}"
            sheet.text(close[top].mean(), feet[of[top[0]]], banks, "soft", align="center")
        sheet.text(starts[0] - 6, feet[0], "banks", "soft", align="right")
        stories = [f"{self.name}: **{words}**." for words in self.words]
        sheet.about |= dict(zip(self.keys.tolist(), stories))
        return np.array([x, y])

    def _draw_banks(self, sheet: Sheet, most: int) -> None:
        """Draw the banks: in each the texel that it delivers now, and beside it those that wait."""
        lane = WIDE / BANKS
        step = (lane - BANK_LABEL) / MAX_QUEUE
        head = LEFT + lane * np.arange(BANKS) + BANK_LABEL + step / 2
        sheet.text(LEFT, BANKS_Y - 24, "Banks: each delivers one texel per clock")
        sheet.boxes(f"banks {self.name}", head, BANKS_Y, step, 22, color="faint", line="ink")
        sheet.text(head - step / 2 - 5, BANKS_Y, np.arange(BANKS), "soft", align="right")

        # Two sets of boxes alternate, so that none moves back from a bank to a queue.
        x = np.full((most + 1, 2 * BANKS * MAX_QUEUE), np.nan, np.float32)
        shown, wait = np.zeros((2, *x.shape), int)
        waited = np.zeros(most + 1, int)
        for clock, now in enumerate(self.served[:-1], 1):
            parity = (now.fetch * 16 + now.quad) % 2
            queued: Counter[int] = Counter()
            for texel in now.texels + now.waiting:
                bank = int(self.bank[texel])
                place = queued[bank]
                queued[bank] += 1
                box = clock, (parity * BANKS + bank) * MAX_QUEUE + place + now.number
                x[box] = head[bank] + step * place
                shown[box] = 1 + texel
                wait[box] = 3 * (place > 0)
                waited[clock] += now.number == 0 < place

        # Index 0 is a box without a texel.
        source = sheet.boxes(
            f"queue {self.name}",
            x,
            BANKS_Y,
            step - 5,
            17,
            fill=(MATRIX_COLORS, np.array([0, *self.resource])[shown]),
            words=(["", *self.words], shown),
            key=np.array([-1, *self.keys])[shown],
            columns={"wait": wait},
            moves=("x",),
        )
        sheet.ring(source, step - 5, 17, "wait")
        so_far = np.cumsum(waited)
        sheet.numbers(
            f"waited {self.name}",
            LEFT + WIDE,
            BANKS_Y - 24,
            so_far,
            names=[f"{count} {plural('texel', count)} waited" for count in range(so_far[-1] + 1)],
            align="right",
            **HEADING,
        )

    def _draw_ticks(self, sheet: Sheet, clocks: np.ndarray) -> None:
        """Draw a row for each fetch, with a box for each clock that it has taken so far."""
        fetch = np.array([step.fetch for step in self.served])
        texel = [step.texels[0] for step in self.served]
        across = np.arange(len(fetch)) - np.searchsorted(fetch, fetch)
        wide = min(14.5, (WIDE - 76) / (across.max() + 1))
        row = min(7.0, 112 / len(self.accesses))
        paid = np.arange(len(fetch)) < clocks[:, np.newaxis]
        x = LEFT + 76 + (across + 0.5) * wide
        words = [
            f"clock {t}: quad {step.quad + 1} of fetch {step.fetch + 1}, its clock"
            f" {step.number + 1}, L1 {'miss' if step.missed else 'hit'}"
            for t, step in enumerate(self.served, 1)
        ]
        sheet.text(LEFT, TICKS - 14, "Clocks of each fetch so far, one box per clock")
        source = sheet.boxes(
            f"ticks {self.name}",
            np.where(paid, x, np.nan),
            TICKS + (fetch + 0.5) * row,
            max(wide - 1.5, 1),
            row - 1.5,
            fill=(MATRIX_COLORS, self.resource[texel]),
            words=words,
            key=self.keys[texel],
            columns={"missed": paid * 2 * np.array([step.missed > 0 for step in self.served])},
        )
        sheet.ring(source, max(wide - 3, 1), row - 2.5, "missed", "ink")
        named = np.arange(0, len(self.accesses), 4)  # a row is lower than a line of text
        names = [f"fetch {number}" for number in named + 1]
        sheet.text(LEFT + 72, TICKS + (named + 0.5) * row, names, "soft", align="right")
