"""A wavefront's fetches, clock by clock: the words that hold a quad's texels, and the clocks that
each quad costs.

Drawn from the recorded fetches of a wavefront. The texture unit serves one quad after another. A
quad takes one clock for each 16-byte word that it needs from the busiest of L1's banks (four on the
HD 5870). The lines of these words are looked up in L1, which starts empty (``units.cache.Cache``).
Several kernels race. Other wavefronts, and the arrival of data, aren't drawn.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.chip.units.cache import empty, find, fold
from cypresskit.chip.work import BANK_SHIFT
from cypresskit.devices import HD5870, Device, check_device
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.convention import MATRICES
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.samples import record_traffic
from cypresskit.machine.traffic import Access, Traffic
from cypresskit.tables import plural
from cypresskit.trace.memory_layout import MemoryLayout

WORD = 1 << BANK_SHIFT  # bytes that a bank of L1 delivers per clock
# In pixels:
WIDE, HIGH, MARGIN = 520, 466, 5  # a panel, and the space on its sides
ITEM, TOP, TICKS = 17, 84, 352  # side of a work-item; top of the tile and of the ticks
BANKS_Y = 313  # the row of banks
MATRIX = 166  # left edge of the matrices
ROOM = (172, 174)  # space for each matrix

WORD_NAME = f"{WORD}-byte word"
MAX_QUEUE = 4  # words that a quad can request from a bank
MATRIX_COLORS = "a", "b"
# Words of A and B: unused, line used before, delivered now.
SHADES = [f"{color} {alpha}" for color in MATRIX_COLORS for alpha in (0.2, 0.4, 0.95)]


def texture_fetch(*runs: Traffic | Source, fetches: int = 16, device: Device = HD5870) -> Player:
    """Draw a wavefront's first fetches, clock by clock. Several runs race.

    Parameters
    ----------
    runs
        Kernels, or ``Traffic`` that recorded a launch. By default "dgemm_tn" and "dgemm_nn".
    fetches
        The number of fetches.
    device
        The board, with L1's size, ways and banks.

    Raises
    ------
    ValueError
        If a run doesn't fetch.
    TypeError
        If ``device`` doesn't run IL.

    Examples
    --------
    >>> ck.draw.texture_fetch("sgemm_tn", "sgemm_nn", fetches=8)
    """
    check_device(device)
    given = [
        run if isinstance(run, Traffic) else resolve(run)
        for run in runs or ("dgemm_tn", "dgemm_nn")
    ]
    # 8 blocks in a row are a wavefront's.
    blocks = [0 if isinstance(run, Traffic) else run.block[0] for run in given]
    traffic = [record_traffic(run, n=max(32, 8 * block), k=16) for run, block in zip(given, blocks)]
    panels: list[_Replay] = []
    for n, run in enumerate(traffic):
        name = run.launch.program.name.removesuffix(".il")
        again = f" ({n + 1})" if name in [panel.name for panel in panels] else ""
        panels.append(
            _Replay(
                run,
                name + again,
                10_000 * n,
                device,
                fetches,
            )
        )
    sheet = Sheet("Texture fetches of a wavefront: " + " | ".join(panel.name for panel in panels))
    most = max(len(panel.served) for panel in panels)
    for panel in panels:
        matrices = f"the matrices in {panel.unit}s"
        label = f"{panel.name}: work-items in quads, {matrices}, clocks of each fetch"
        sheet.stage(label, WIDE + 2 * MARGIN, HIGH)
        panel.draw(sheet, MARGIN, most)
    captions = [
        f"Clock {t}. " + " ".join(panel.say(t) for panel in panels) for t in range(1, most + 1)
    ]
    units = {panel.unit for panel in panels}
    unit = units.pop() if len(units) == 1 else WORD_NAME
    legend = sheet.legend(
        (f"{unit} of A", MATRIX_COLORS[0], "box"),
        (f"{unit} of B", MATRIX_COLORS[1], "box"),
        ("L1 miss: fetched from L2", "ink", "ring"),
        ("waits: its bank delivers another", "wait", "ring"),
    )
    captions = ["Clock 0. No fetch has started.", *captions]
    still_frame = most // 12
    look: dict = {"seconds": 14, "still_frame": still_frame, "opens": 1}
    return sheet.player(captions, step="Clock", below=[legend], **look)


@dataclass(frozen=True)
class _Served:
    """A clock of the texture unit."""

    fetch: int
    quad: int
    number: int  #: of the clock, within the quad's
    words: tuple[int, ...]  #: that the banks deliver
    waiting: tuple[int, ...]  #: that wait for a later clock
    requested: int  #: lines of L1
    missed: int  #: lines that weren't in L1


class Cache:
    """A cache of ``size`` bytes, 0 for none, with lines of ``line`` bytes."""

    def __init__(self, size: int, ways: int, line: int):
        self.line = line
        sets = size // ways // line
        self.bits = max(sets - 1, 0).bit_length()
        self.age = 0
        self.ways, self.tags, self.used = empty(sets, ways)

    def access(self, address: int) -> str:
        """Read a byte. Return "h" for a hit, "m" for a miss."""
        if not len(self.tags):
            return "m"
        line = address // self.line
        self.age += 1
        place = fold(line, self.bits) * self.ways
        spot = find(self.tags, self.used, place, self.ways, line, self.age)
        if spot >= 0:
            return "h"
        self.tags[-1 - spot] = line
        self.used[-1 - spot] = self.age
        return "m"


class _Replay:
    """One run, replayed clock by clock, and its panel. Its keys start at ``keys``."""

    def __init__(self, run: Traffic, name: str, keys: int, device: Device, fetches: int) -> None:
        self.run, self.name, self.keys = run, name, keys
        self.memory = MemoryLayout(run.launch, device.geometry)
        self.accesses = [a for a in run.accesses if a.kind == "fetch"][:fetches]
        if not self.accesses:
            raise ValueError(f"{name}: wavefront 0 fetches nothing from a texture")
        self.textures = {
            n: run.launch.textures[n] for n in sorted({a.resource for a in self.accesses})
        }
        # 16 bytes: a texel, or several narrower ones
        is_texel = all(texture.words.shape[2] == WORD // 4 for texture in self.textures.values())
        self.unit = "texel" if is_texel else WORD_NAME
        self.banks = device.texture_banks
        self.bank: dict[int, int] = {}  # of each word
        for n, texture in self.textures.items():
            y, x = np.divmod(np.arange(texture.width * texture.height), texture.width)
            words = self.memory.address(n, x, y) // WORD
            self.bank |= dict(zip(words.tolist(), self.memory.bank(n, x, y).tolist()))
        cache = Cache(device.l1_bytes, device.l1_ways, device.line_bytes)
        self.served: list[_Served] = []
        for index, access in enumerate(self.accesses):
            for quad in range(16):
                wanted = list(
                    dict.fromkeys(self._words(access, self._items(access, quad)).tolist())
                )
                seen: set[int] = set()
                for number in range(len(wanted)):
                    banks = {self.bank[word]: word for word in reversed(wanted)}
                    wanted = [word for word in wanted if word not in banks.values()]
                    if not banks:
                        break
                    lines = {word * WORD // device.line_bytes for word in banks.values()} - seen
                    seen |= lines
                    missed = sum(
                        cache.access(line * device.line_bytes) != "h" for line in sorted(lines)
                    )
                    self.served.append(
                        _Served(
                            index,
                            quad,
                            number,
                            tuple(banks.values()),
                            tuple(wanted),
                            len(lines),
                            missed,
                        )
                    )

    def _words(self, access: Access, on) -> np.ndarray:
        assert access.x is not None and access.y is not None
        return self.memory.address(access.resource, access.x[on], access.y[on]) // WORD

    @staticmethod
    def _items(access: Access, quad: int) -> np.ndarray:
        return np.flatnonzero(access.active[4 * quad : 4 * quad + 4]) + 4 * quad

    def lines(self) -> tuple[int, int]:
        """Return how many lines missed L1, and how many were requested."""
        missed = sum(step.missed for step in self.served)
        return missed, sum(step.requested for step in self.served)

    def say(self, clock: int) -> str:
        if clock >= len(self.served):
            return (
                f"**{self.name}**: done; {' of '.join(map(str, self.lines()))} requested lines"
                " missed L1."
            )
        now = self.served[clock - 1]
        access = self.accesses[now.fetch]
        line = self.run.launch.program.body[access.at].line
        numbers = sorted({self.bank[word] for word in now.words})
        banks = f"{plural('bank', len(numbers))} {' and '.join(map(str, numbers))}"
        waits = f"; {len(now.waiting)} more wait" if now.waiting else ""
        where = (
            f"fetch {now.fetch + 1}, of {_matrix(access.resource)} (line {line}), quad"
            f" {now.quad + 1}"
        )
        return f"**{self.name}**: {where}: a {self.unit} from {banks}{waits}."

    def draw(self, sheet: Sheet, left: float, most: int) -> None:
        clocks = np.minimum(np.arange(most + 1), len(self.served))
        sheet.race(self.name, (left, WIDE), clocks, len(self.served), most, title=self.name)
        self._draw_words(sheet, left, most)
        self._draw_tile(sheet, left, most)
        self._draw_banks(sheet, left, most)
        self._draw_ticks(sheet, left, clocks)

    def _draw_tile(self, sheet: Sheet, left: float, most: int) -> None:
        """Draw the work-items in quads (2 x 2 in a pixel shader, 4 x 1 in a compute shader).

        The current quad is framed, with arrows from its work-items to their texels.
        """
        item = np.arange(64)
        pixels = self.run.launch.shape.pixels
        across, down = item % 8, item // 8
        if pixels:
            across, down = item // 4 % 4 * 2 + item % 2, item // 16 * 2 + item % 4 // 2
        apart = (across // 2 * 3, down // 2 * 3) if pixels else (across // 4 * 3, 0)
        x, y = left + across * ITEM + apart[0] + 9, TOP + down * ITEM + apart[1] + 8
        sheet.text(left, TOP - 14, "64 work-items, in quads", size=12)
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
            assert access.x is not None and access.y is not None
            to = self._texel(left, access.resource, access.x[on] + 0.5, access.y[on] + 0.5)
            ends[:, clock, on % 4] = x[on], y[on], *to
        source = sheet.source(f"quad {self.name}", x=box[0], y=box[1], w=box[2], h=box[3])
        sheet.ring(source, "w", "h", 3, "ink")
        sheet.arrows(f"arrows {self.name}", ends[:2], ends[2:], width=1.5, size=5)

    def _texel(self, left: float, resource: int, x, y) -> tuple:
        """Return the position of texels. The matrices share the space."""
        texture = self.textures[resource]
        room = ROOM[0] * 2 / len(self.textures)
        start = left + MATRIX + list(self.textures).index(resource) * (room + 12)
        return start + x * min(room / texture.width, 13.0), TOP + y * min(
            ROOM[1] / texture.height, 13.0
        )

    def _draw_words(self, sheet: Sheet, left: float, most: int) -> None:
        """Draw the matrices as stored: a box per word, with the words of a line close together."""
        # By word: the key of its box, its description, and its matrix, 0 or 1.
        self.place: dict[int, int] = {}
        self.about: dict[int, str] = {}
        self.matter: dict[int, int] = {}
        for resource, texture in self.textures.items():
            y, x = np.divmod(np.arange(texture.width * texture.height), texture.width)
            address = self.memory.address(resource, x, y)
            order = np.argsort(address, kind="stable")
            word, first = np.unique(address[order] // WORD, return_index=True)
            ends = [
                of_all.reduceat(axis[order], first)
                for of_all in (np.minimum, np.maximum)
                for axis in (x, y)
            ]
            self._draw_matrix(sheet, left, most, resource, word, np.array(ends))

    def _draw_matrix(self, sheet: Sheet, left: float, most: int, resource: int, word, ends) -> None:
        name = _matrix(resource)
        texture = self.textures[resource]
        key = self.keys + len(self.place) + np.arange(len(word))
        box_of = {int(w): n for n, w in enumerate(word)}
        self.place |= {w: int(key[n]) for w, n in box_of.items()}
        line = word * WORD // self.memory.line
        kind, wait = np.zeros((2, most + 1, len(word)), np.uint8)
        first: dict[int, int] = {}
        for clock, now in enumerate(self.served, 1):
            given = [box_of[w] for w in now.words if w in box_of]
            same_line = np.isin(line, line[given])
            kind[clock:, same_line] = 1
            kind[clock, given] = 1 + (clock < len(self.served))
            wait[clock, [box_of[w] for w in now.waiting if w in box_of]] = 3
            first = dict.fromkeys(given, clock) | first
        middle = (ends[0] + ends[2] + 1) / 2
        wide = ends[2] + 1 - ends[0]
        _, same = np.unique(line, return_inverse=True)
        of_line = (np.bincount(same, middle) / np.bincount(same))[same]
        x, y = self._texel(
            left, resource, 0.94 * middle + 0.06 * of_line, (ends[1] + ends[3] + 1) / 2
        )
        (x0, y0), (x1, y1) = (self._texel(left, resource, n, n) for n in (0, 1))
        size = 0.94 * wide * (x1 - x0) - 1, (ends[3] + 1 - ends[1]) * (y1 - y0) - 1
        words = [
            f"{name}, row {row}, {f'texels {a} to {b}' if b > a else f'texel {a}'}: bank"
            f" {self.bank[w]}"
            for w, (a, row, b, _) in zip(word.tolist(), ends.T)
        ]
        self.about |= dict(zip(word.tolist(), words))
        self.matter |= dict.fromkeys(word.tolist(), min(resource, 1))
        kind += 3 * min(resource, 1)
        called = f"words {name} {self.name}"
        source = sheet.boxes(
            called, x, y, *size, fill=(SHADES, kind), words=words, key=key, columns={"wait": wait}
        )
        sheet.ring(source, "w", "h", "wait")
        title = f"{name}: {texture.height} rows of {texture.width} texels"
        sheet.text(x0, TOP - 14, title, MATRIX_COLORS[min(resource, 1)], size=12)
        top = np.flatnonzero(ends[1] == 0)
        foot = TOP + texture.height * (y1 - y0) + 9
        names = [str(self.bank[w]) for w in word[top].tolist()]
        sheet.text(x[top], foot, names, "soft", align="center", size=12)
        if resource == min(self.textures):
            sheet.text(x0 - 6, foot, "banks", "soft", align="right", size=12)
        for n, text in enumerate(words):
            label = f"{self.name}: **{text}**"
            when = (
                [(first[n], f"{label}, first delivered in clock {first[n]}.")] if n in first else []
            )
            sheet.about[int(key[n])] = [(0, f"{label}."), *when]

    def _draw_banks(self, sheet: Sheet, left: float, most: int) -> None:
        """Draw the banks: in each the word that it delivers now, and beside it those that wait."""
        lane = WIDE / self.banks
        label = 44 if lane > 120 else 12
        step = (lane - label) / MAX_QUEUE
        head = left + lane * np.arange(self.banks) + label + step / 2
        sheet.text(left, BANKS_Y - 24, f"Each bank delivers one {self.unit} per clock", size=12)
        sheet.boxes(f"banks {self.name}", head, BANKS_Y, step, 22, color="faint", line="ink")
        names = [f"bank {bank}" if label > 12 else f"{bank}" for bank in range(self.banks)]
        sheet.text(head - step / 2 - 5, BANKS_Y, names, "soft", align="right", size=12)

        words = list(self.place)
        # Two sets of boxes alternate, so that none moves back from a bank to a queue.
        x = np.full((most + 1, 2, self.banks, MAX_QUEUE), np.nan, np.float32)
        shown, wait, waited = np.zeros((3, *x.shape), int)
        for clock, now in enumerate(self.served[:-1], 1):
            parity = (now.fetch * 16 + now.quad) % 2
            for bank in range(self.banks):
                given = [word for word in now.words if self.bank[word] == bank]
                waiting = [word for word in now.waiting if self.bank[word] == bank]
                for place, word in enumerate(given + waiting):
                    box = clock, parity, bank, place + now.number
                    x[box] = head[bank] + step * place
                    shown[box] = 1 + words.index(word)
                    wait[box] = 3 * (place > 0)
                    waited[box] = now.number == 0 < place

        def by_frame(values: np.ndarray) -> np.ndarray:
            return values.reshape(most + 1, -1)

        # Index 0 is a box without a word.
        texts = ["", *(self.about[word] for word in words)]
        matter = np.array([0, *(self.matter[word] for word in words)])
        keys = np.array([-1, *self.place.values()])
        source = sheet.boxes(
            f"queue {self.name}",
            by_frame(x),
            BANKS_Y,
            step - 5,
            17,
            fill=(MATRIX_COLORS, by_frame(matter[shown])),
            words=(texts, by_frame(shown)),
            key=by_frame(keys[shown]),
            columns={"wait": by_frame(wait)},
            moves=("x",),
        )
        sheet.ring(source, step - 5, 17, "wait")
        waited_so_far = np.cumsum(by_frame(waited).sum(axis=1))
        waits = [f"{count} {self.unit}s waited" for count in range(waited_so_far[-1] + 1)]
        sheet.numbers(
            f"waited {self.name}",
            left + WIDE,
            BANKS_Y - 24,
            waited_so_far,
            names=waits,
            bold=True,
            align="right",
            size=14,
        )

    def _draw_ticks(self, sheet: Sheet, left: float, clocks: np.ndarray) -> None:
        """Draw a row for each fetch, with a box for each clock that it has taken so far."""
        fetch = np.array([step.fetch for step in self.served])
        across = np.arange(len(fetch)) - np.searchsorted(fetch, fetch)
        wide = min(14.5, (WIDE - 76) / (across.max() + 1))
        row = min(7.0, 112 / len(self.accesses))
        paid = np.arange(len(fetch)) < clocks[:, np.newaxis]
        x = left + 76 + (across + 0.5) * wide
        y = TICKS + (fetch + 0.5) * row
        matrix = [min(self.accesses[f].resource, 1) for f in fetch]
        missed = paid * 2 * np.array([step.missed > 0 for step in self.served])
        keys = [self.place[step.words[0]] for step in self.served]
        words = [
            f"clock {t}: quad {step.quad + 1} of fetch {step.fetch + 1}, its clock"
            f" {step.number + 1}, L1 {'miss' if step.missed else 'hit'}"
            for t, step in enumerate(self.served, 1)
        ]
        sheet.text(left, TICKS - 14, "Clocks of each fetch so far, one box per clock", size=12)
        at = (
            f"ticks {self.name}",
            np.where(paid, x, np.nan),
            y,
            max(wide - 1.5, 1),
            max(row - 1.5, 0.5),
        )
        source = sheet.boxes(
            *at, fill=(MATRIX_COLORS, matrix), words=words, key=keys, columns={"missed": missed}
        )
        sheet.ring(source, max(wide - 3, 1), max(row - 2.5, 0.5), "missed", "ink")
        # Rows are lower than a line of text, so the names are in two columns.
        shown = np.arange(0, len(self.accesses), max(1, round(7 / row)))
        names = [f"{f + 1}: {_matrix(self.accesses[f].resource)}" for f in shown]
        place = left + 72 - 36 * (np.arange(len(shown)) % 2 == 0), TICKS + (shown + 0.5) * row
        sheet.text(*place, names, "soft", align="right", size=12)


def _matrix(resource: int) -> str:
    return MATRICES.get(resource, f"resource {resource}")
