"""A wavefront's fetches, clock by clock: which words a quad's four texels lie in, and what each costs.

From the recorded fetches of a wavefront. The texture unit takes one quad after another, and as many clocks for each as
the fullest of L1's four banks has different words of 16 bytes to give; the lines of these words are looked up in L1, an
empty ``units.cache.Cache`` at the start. Several kernels or memory layouts race on one clock. Left out: other
wavefronts, and when data arrive.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cypresskit.devices import HD5870, Device
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels import KERNELS
from cypresskit.kernels.samples import listened
from cypresskit.machine.traffic import Access, Traffic
from cypresskit.timing.units.cache import Cache
from cypresskit.timing.work import BANK_BITS

WORD, BANKS = 1 << BANK_BITS, HD5870.texture_banks  # bytes that a bank of L1 gives in a clock; how many there are
TILE = 8  # texels along a side of a tile in the tiled layout
WIDE, HIGH, GAP = 520, 432, 50  # a panel, and between two, in pixels
ITEM, TOP, TICKS = 17, 84, 300  # a work-item's side, and where the tile and the ticks begin
MATRIX, ROOM = 166, (172, 174)  # where the matrices begin, and the room that each has
RESOURCES = {0: "A", 1: "B"}
# Of matrices A and B: a word not yet touched, one whose line has been, one that is given now.
SHADES = [f"rgba({rgb},{alpha})" for rgb in ("0,114,178", "230,159,0") for alpha in (0.10, 0.3, 0.95)]
TICK = ["rgba(128,128,128,0.10)", "#0072b2", "#e69f00"]


@dataclass(frozen=True)
class Side:
    """One panel's run: its traffic and the memory layout of its textures."""

    traffic: Traffic
    layout: str

    @property
    def name(self) -> str:
        """The kernel's name, with the layout if it isn't the linear one."""
        name = self.traffic.launch.program.name.removesuffix(".il")
        return name if self.layout == "linear" else f"{name}, {self.layout}"

    def places(self) -> tuple[dict[int, Callable], dict[tuple[int, int], tuple[float, float, float, float]]]:
        """For each texture the function from texels to numbers of words; for each (texture, word) the box of its
        texels."""
        base, of, boxes = 0, {}, {}
        for number, surface in sorted(self.traffic.launch.textures.items()):
            height, width, words = surface.words.shape
            texel = 4 * words
            side = TILE if self.layout == "tiled" else max(HD5870.line_bytes // texel, 1)
            pitch = -(-width // side) * side

            def found(x, y, base=base, pitch=pitch, texel=texel):
                if self.layout == "tiled":
                    within = y % TILE * TILE + x % TILE
                    return base + ((y // TILE * pitch + x // TILE * TILE) * TILE + within) * texel // WORD
                return base + (y * pitch + x) * texel // WORD

            of[number] = found
            x, y = (axis.ravel() for axis in np.meshgrid(np.arange(width), np.arange(height)))
            word = found(x, y)
            order = np.argsort(word, kind="stable")
            for part in np.split(order, np.flatnonzero(np.diff(word[order])) + 1):
                boxes[number, int(word[part[0]])] = x[part].min(), y[part].min(), x[part].max() + 1, y[part].max() + 1
            base += (-(-height // TILE) * TILE * pitch * texel // WORD + 63) // 64 * 64
        return of, boxes


def texture_fetch(
    *runs: Traffic | str, layouts: Sequence[str] = (), fetches: int = 16, device: Device = HD5870
) -> Player:
    """A player of a wavefront's first ``fetches`` fetches, clock by clock; several runs race.

    ``runs`` are kernels by name, or ``Traffic`` that listened to a launch; by default "dgemm_tn" and "dgemm_nn".
    ``layouts``: for each run "linear" (the default: rows) or "tiled" (8 x 8 texels). ``device`` has L1's size and
    ways. Raises ``ValueError`` for runs without fetches.
    """
    given = runs or ("dgemm_tn", "dgemm_nn")
    blocks = [KERNELS[run].block[0] if isinstance(run, str) else 0 for run in given]  # 8 in a row are a wavefront's
    traffic = [listened(run, n=max(32, 8 * block), k=16) for run, block in zip(given, blocks)]
    sides = [Side(t, layout) for t, layout in zip(traffic, [*layouts, *["linear"] * len(traffic)])]
    sheet = Sheet("Texture fetches of a wavefront: " + " | ".join(side.name for side in sides))
    panels = [_Replay(side, fetches, device) for side in sides]
    most = max(len(panel.served) for panel in panels)
    label = "; ".join(f"{panel.side.name}: work-items in quads, the matrices in words, clocks paid" for panel in panels)
    fig = sheet.stage(label, len(panels) * (WIDE + GAP) - GAP + 24, HIGH)
    for n, panel in enumerate(panels):
        panel.draw(sheet, fig, 12 + n * (WIDE + GAP), n, most, panel.side.name in [p.side.name for p in panels[:n]])
    captions = [f"Clock {t} of {most}. " + " ".join(panel.say(t) for panel in panels) for t in range(most + 1)]
    text = "\n".join([sheet.title, *(line for panel in panels for line in panel.text())])
    key = sheet.key(("word of A", "a", "box"), ("word of B", "b", "box"), ("not in L1: fetched from L2", "ink", "ring"),
                    ("has to wait: its bank gives another word", "wait", "ring"))  # fmt: skip
    ends = sorted(panels, key=lambda panel: len(panel.served))
    truth = ", ".join(f"{panel.side.name} takes {len(panel.served)} clocks" for panel in ends) + "."
    same = len({panel.side.name for panel in panels}) == 1
    names = [panel.side.name for panel in panels]
    guess = None if same else Guess("which one is done first?", names, truth, ends[0].side.name)
    marks = [n for n, now in enumerate(panels[0].served) if now.quad == now.number == 0]
    return sheet.player([fig], captions, text, marks=marks, step="Clock", below=[key], guess=guess, lasts=14)


@dataclass(frozen=True)
class _Served:
    """What the texture unit does in a clock for a quad of a fetch: the ``words`` that its banks give, those ``waiting``
    for another clock, how many lines that ``asked`` L1 for, and how many it ``missed``."""

    fetch: int
    quad: int
    number: int
    words: tuple[int, ...]
    waiting: tuple[int, ...]
    asked: int
    missed: int


class _Replay:
    """One run, replayed clock by clock, and its part of the picture."""

    def __init__(self, side: Side, fetches: int, device: Device) -> None:
        self.side = side
        self.word_of, boxes = side.places()
        self.accesses = [a for a in side.traffic.accesses if a.kind == "fetch"][:fetches]
        if not self.accesses:
            raise ValueError(f"{side.name}: wavefront {side.traffic.wavefront} fetches nothing from a texture")
        used = {access.resource for access in self.accesses}
        self.place = {word: (number, box) for (number, word), box in boxes.items() if number in used}
        self.each = device.line_bytes // WORD  # words of a line
        cache = Cache(device.l1_bytes, device.l1_ways, device.line_bytes)
        self.served: list[_Served] = []
        for at, access in enumerate(self.accesses):
            for quad in range(16):
                wanted = list(dict.fromkeys(self._words(access, self._items(access, quad)).tolist()))
                seen: set[int] = set()
                for number in range(len(wanted)):
                    banks = {word % BANKS: word for word in reversed(wanted)}
                    wanted = [word for word in wanted if word not in banks.values()]
                    if not banks:
                        break
                    lines = {word // self.each for word in banks.values()} - seen
                    seen |= lines
                    missed = sum(cache.access(line * device.line_bytes) != "h" for line in sorted(lines))
                    now = tuple(banks.values()), tuple(wanted), len(lines), missed
                    self.served.append(_Served(at, quad, number, *now))

    def _words(self, access: Access, on: np.ndarray) -> np.ndarray:
        assert access.x is not None and access.y is not None
        return self.word_of[access.resource](access.x[on], access.y[on])

    @staticmethod
    def _items(access: Access, quad: int) -> np.ndarray:
        return np.flatnonzero(access.active[4 * quad : 4 * quad + 4]) + 4 * quad

    def say(self, clock: int) -> str:
        name = f"**{self.side.name}**"
        if clock == 0:
            return f"{name}: nothing fetched."
        if clock >= len(self.served):
            asked, missed = (sum(getattr(one, what) for one in self.served) for what in ("asked", "missed"))
            return f"{name}: done; {missed} of {asked} lines asked for were not in L1."
        now = self.served[clock - 1]
        access = self.accesses[now.fetch]
        line = self.side.traffic.launch.program.body[access.at].line
        banks = " and ".join(str(bank) for bank in sorted({word % BANKS for word in now.words}))
        waits = f", {len(now.waiting)} more have to wait" if now.waiting else ""
        return (
            f"{name}: fetch {now.fetch + 1}, of {_matrix(access.resource)} (line {line}), quad {now.quad + 1}: "
            f"a word from bank {banks}{waits}."
        )

    def draw(self, sheet: Sheet, fig, left: float, n: int, most: int, again: bool) -> None:
        name = f"{self.side.name} {n}" if again else self.side.name
        end = len(self.served)
        clocks = np.minimum(np.arange(most + 1), end)
        sheet.race(fig, name, left, WIDE, clocks, end, most, title=self.side.name)
        self._lines(sheet, fig, name, left, most, n)
        self._tile(sheet, fig, name, left, most)
        self._ticks(sheet, fig, name, left, clocks, n)

    def _lane(self, lane) -> tuple[np.ndarray, np.ndarray]:
        """Where a work-item stands in the tile: quads are 2 x 2 in a pixel shader, 4 x 1 in a compute shader."""
        lane = np.asarray(lane)
        if self.side.traffic.launch.program.mode == "pixel":
            return lane // 4 % 4 * 2 + lane % 2, lane // 16 * 2 + lane % 4 // 2
        return lane % 8, lane // 8

    def _tile(self, sheet: Sheet, fig, name: str, left: float, most: int) -> None:
        """The work-items in quads; the quad that is served, with an arrow from each of its four to its texel, and the
        texels of the line that arrive now."""
        lane = np.arange(64)
        across, down = self._lane(lane)
        apart = (across // 2 * 3, down // 2 * 3) if self._lane(2)[1] == 1 else (across // 4 * 3, down * 0)
        x, y = left + across * ITEM + apart[0] + 9, TOP + down * ITEM + apart[1] + 8
        sheet.words(fig, [left], [TOP - 14], ["64 work-items, in quads"], size=13)
        words = [f"work-item {n} of the wavefront, in quad {n // 4 + 1}" for n in lane]
        sheet.boxes(fig, f"tile {name}", x, y, ITEM - 2, ITEM - 2, ink="faint", line="line", words=words)
        frames = most + 1
        box = np.full((4, frames, 1), np.nan, np.float32)
        ends = np.full((4, frames, 4), np.nan, np.float32)
        flight = np.full((2, frames, 8), np.nan, np.float32)
        matrix = np.zeros((frames, 8), np.uint8)
        for clock, now in enumerate(self.served[:-1], 1):  # after the last clock nothing is under way
            access = self.accesses[now.fetch]
            four = np.arange(4 * now.quad, 4 * now.quad + 4)
            sides = x[four].min(), x[four].max(), y[four].min(), y[four].max()
            box[:2, clock, 0] = (sides[0] + sides[1]) / 2, (sides[2] + sides[3]) / 2
            box[2:, clock, 0] = sides[1] - sides[0] + ITEM, sides[3] - sides[2] + ITEM
            on = self._items(access, now.quad)
            assert access.x is not None and access.y is not None
            to = self._texel(left, access.resource, access.x[on] + 0.5, access.y[on] + 0.5)
            ends[:, clock, on - 4 * now.quad] = x[on], y[on], *to
            mine = np.isin(self._words(access, on), now.words)
            slot = on[mine] % 4 + 4 * (clock % 2)
            flight[:, clock - 1, slot] = np.array(to)[:, mine]
            flight[:, clock, slot] = x[on[mine]], y[on[mine]]
            matrix[clock - 1 : clock + 1, slot] = min(access.resource, 1)
        source = sheet.source(f"quad {name}", x=box[0], y=box[1], w=box[2], h=box[3])
        sheet.ring(fig, source, "w", "h", 3, "ink")
        sheet.arrows(fig, f"arrows {name}", *ends, width=1.5, size=5)
        sheet.boxes(fig, f"texels {name}", flight[0], flight[1], 7, 7, line="ink", moves=("x", "y"),
                    fill=("matrix", TICK[1:]), matrix=matrix)  # fmt: skip

    def _scale(self) -> dict[int, tuple[float, float, float]]:
        """For each matrix its left edge and the size of a texel."""
        textures = self.side.traffic.launch.textures
        shapes = {number: textures[number].words.shape for number in sorted({n for n, _ in self.place.values()})}
        room = ROOM[0] * 2 / len(shapes)
        scale = {}
        for place, (number, (height, width, _)) in enumerate(shapes.items()):
            scale[number] = MATRIX + place * (room + 12), min(room / width, 13.0), min(ROOM[1] / height, 13.0)
        return scale

    def _texel(self, left: float, resource: int, x, y):
        start, u, v = self._scale()[resource]
        return left + start + np.asarray(x) * u, TOP + np.asarray(y) * v

    def _lines(self, sheet: Sheet, fig, name: str, left: float, most: int, n: int) -> None:
        """The matrices as they lie in memory: a box for each word, those of a line close together."""
        number, boxes = zip(*self.place.values())
        word = np.array(list(self.place))
        line, at = word // self.each, {w: i for i, w in enumerate(self.place)}
        kind = np.zeros((most + 1, len(at)), np.uint8) + 3 * np.minimum(number, 1).astype(np.uint8)
        wait, times = np.zeros((most + 1, len(at)), np.uint8), dict[int, list[int]]()
        for clock, now in enumerate(self.served, 1):
            given = [at[w] for w in now.words]
            here = np.isin(line, line[given])
            kind[clock:, here] = kind[0, here] + 1
            kind[clock, given] += clock < len(self.served)
            wait[clock, [at[w] for w in now.waiting]] = 3
            for i in given:
                times.setdefault(i, []).append(clock)
        x0, y0, x1, y1 = np.array(boxes, float).T
        scale = self._scale()
        left_of, u, v = (np.array([scale[m][part] for m in number]) for part in range(3))
        middle = (x0 + x1) / 2
        of_line = np.bincount(line, middle, line.max() + 1)[line] / np.bincount(line)[line]
        place = left + left_of + (0.94 * middle + 0.06 * of_line) * u, TOP + (y0 + y1) / 2 * v
        size = 0.94 * (x1 - x0) * u - 1, (y1 - y0) * v - 1
        words = [f"{_matrix(m)}, row {box[1]}, texel{_span(box[0], box[2])}: a word of bank {w % BANKS}"
                 for m, box, w in zip(number, boxes, word)]  # fmt: skip
        keys = np.arange(len(at)) + 10_000 * n
        source = sheet.boxes(
            fig, f"words {name}", *place, *size, fill=("kind", SHADES), kind=kind, wait=wait, words=words, key=keys
        )
        sheet.ring(fig, source, "w", "h", "wait")
        for m, (start, _, v_) in scale.items():
            rows, width, _ = self.side.traffic.launch.textures[m].words.shape
            title = f"{_matrix(m)}: {rows} rows of {width} texels"
            sheet.words(fig, [left + start], [TOP - 14], [title], "a" if m == 0 else "b" if m == 1 else "ink", size=13)
            first = [i for i in range(len(at)) if number[i] == m and y0[i] == 0]
            foot = [TOP + rows * v_ + 9] * len(first)
            sheet.words(fig, place[0][first], foot, [str(w % BANKS) for w in word[first]], "soft", align="center",
                        size=11)  # fmt: skip
        for i, said in enumerate(words):
            asked = times.get(i, [])
            when = f"given {len(asked)} times, first in clock {asked[0]}" if asked else "not asked for here"
            sheet.about[int(keys[i])] = f"{self.side.name}: **{said}**, {when}."

    def _ticks(self, sheet: Sheet, fig, name: str, left: float, clocks: np.ndarray, n: int) -> None:
        """A row for each fetch, and in it a box for each clock that it has taken so far."""
        fetch = np.array([one.fetch for one in self.served])
        across = np.concatenate([np.arange((fetch == f).sum()) for f in range(len(self.accesses))])
        wide = min(14.5, (WIDE - 76) / (across.max() + 1))
        row = min(8.0, 128 / len(self.accesses))
        x, y = left + 76 + (across + 0.5) * wide, TICKS + (fetch + 0.5) * row
        matrix = np.array([1 + min(self.accesses[f].resource, 1) for f in fetch], np.uint8)
        kind = np.where(np.arange(len(fetch)) < clocks[:, np.newaxis], matrix, 0).astype(np.uint8)
        at = {word: i for i, word in enumerate(self.place)}
        missed = np.array([one.missed > 0 for one in self.served])
        keys = [at[one.words[0]] + 10_000 * n for one in self.served]
        words = [f"clock {t}: quad {one.quad + 1} of fetch {one.fetch + 1}, its clock {one.number + 1}, "
                 f"{'not in L1' if one.missed else 'in L1'}" for t, one in enumerate(self.served, 1)]  # fmt: skip
        sheet.words(fig, [left], [TICKS - 14], ["What each fetch has paid: a box is a clock"], size=13)
        source = sheet.boxes(fig, f"ticks {name}", x, y, wide - 1.5, row - 1.5, fill=("kind", TICK), kind=kind,
                             words=words, key=keys, missed=(2 * ((kind > 0) & missed)).astype(np.uint8))  # fmt: skip
        sheet.ring(fig, source, wide - 3, row - 2.5, "missed", "ink")
        step = max(1, round(14 / row))
        shown = range(0, len(self.accesses), step)
        each = [f"{f + 1} {_matrix(access.resource)}" for f, access in enumerate(self.accesses)]
        names = [", ".join(each[f : f + step]) for f in shown]
        sheet.words(fig, [left] * len(names), [TICKS + (f + step / 2) * row for f in shown], names, "soft", size=11)

    def text(self) -> list[str]:
        lines = [f"{self.side.name}: {len(self.accesses)} fetches of 16 quads"]
        for number, access in enumerate(self.accesses, 1):
            line = self.side.traffic.launch.program.body[access.at].line
            lines.append(f"  fetch {number}, line {line}: {_matrix(access.resource)}")
        return lines


def _span(first: int, end: int) -> str:
    return f" {first}" if end == first + 1 else f"s {first} to {end - 1}"


def _matrix(resource: int) -> str:
    return RESOURCES.get(resource, f"resource {resource}")
