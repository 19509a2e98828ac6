"""A tile of A passes through the LDS, clock by clock: rows are stored, columns are loaded, and
banks conflict.

The data are the recorded LDS accesses of a wavefront during one iteration. Sixteen work-items are
served together, each with up to two words. A bank delivers one word per clock, to all work-items
that request it. Several layouts share one clock, and the layout with the lower stacks over its
banks finishes first. A frame is a clock. Left out: other wavefronts, and barriers.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.own import Source
from cypresskit.kernels.samples import record_traffic
from cypresskit.machine.traffic import Access, Traffic
from cypresskit.tables import listed, plural, quantity

BANKS, TOGETHER = HD5870.lds_banks, HD5870.lds_items_clock
ITEMS, STEPS = 64, 4  # work-items of the wavefront, and values of k that each brings
ELEMENTS = ITEMS * STEPS
ITEM_SHOWN = 9  # the work-item whose arriving numbers are shown: in the second row and column
PANEL, MARGIN, HEIGHT = 512, 20, 436  # pixels: a panel's width, the space around it, its height
BANK, ITEM = PANEL / BANKS, PANEL / TOGETHER
REGISTERS, WORDS, BELOW = 82, 248, 332  # where the parts of a panel begin
STACK = 242  # the foot of the stacks of requests
STACKS = 74  # and the height of the highest
COLORS = [*theme.SERIES, "rgba(128,128,128,0.10)"]  # by row of A; the last: nothing
NOTHING = len(theme.SERIES)
ROW_KEYS = [("row modulo 8: 0", theme.SERIES[0])]  # a key
ROW_KEYS += [(f"{n}", color) for n, color in enumerate(theme.SERIES) if n]


def lds_transpose(*layouts: Traffic | Source) -> Player:
    """Return a player of the LDS accesses in a loop's first iteration, clock by clock; several
    layouts race.

    ``layouts`` are kernels that use the LDS, or ``Traffic`` that recorded a launch of
    one; by default "sgemm_64x64_lds_padded" and "sgemm_64x64_lds_worst". What arrives is shown for
    work-item 9. Raises ``ValueError`` for runs without LDS accesses.
    """
    runs = map(record_traffic, layouts or ("sgemm_64x64_lds_padded", "sgemm_64x64_lds_worst"))
    panels = [Layout(run) for run in runs]
    took = [f"{panel.name} takes {panel.clocks} clocks" for panel in panels]
    sheet = Sheet(f"Requests to the same bank wait: {listed(took)}")
    most = max(panel.clocks for panel in panels)
    parts = "registers, 32 banks with stacks of requests, what arrives"
    for panel in panels:  # on a stage of its own: on a phone one is below the other
        sheet.stage(f"{panel.name}: {parts}", PANEL + 2 * MARGIN, HEIGHT)
        panel.draw(sheet, MARGIN, most)
    sheet.about |= {element: _about(panels, element) for element in range(ELEMENTS)}

    captions = [
        "Clock 0. Each of 64 work-items holds four numbers of one row of A; the LDS is empty."
    ]
    for clock in range(most + 1):
        sentences = " ".join(f"**{panel.name}**: {panel.say(clock)}." for panel in panels)
        captions.append(f"Clock {clock:,}. {sentences}")
    captions[-1] = sheet.winner({panel.name: panel.clocks for panel in panels}, "clock")
    legend = sheet.legend(*ROW_KEYS, ("waiting for a clock or longer", "wait", "ring"))
    return sheet.player(
        captions,
        "modeled",
        step="Clock",
        below=[legend],
        seconds=14,
        opens=1,
    )


def _about(panels: "Sequence[Layout]", element: int) -> str:
    """Return the text of a click on an element of A: where it goes in each layout, and when."""
    row, k = divmod(element, STEPS)
    stories = " ".join(panel.story(element) for panel in panels)
    return f"**A[{row}, k = {k}]**. {stories}"


def name_banks(sheet: Sheet, left: float, name: str) -> None:
    """Draw the banks as columns, with some of their numbers below."""
    top, foot = STACK - 76, WORDS + 64
    x = left + (np.arange(BANKS) + 0.5) * BANK
    y = (top + foot) / 2
    sheet.boxes(f"banks {name}", x, y, BANK - 2, foot - top, color="faint", alpha=0.45)
    ticks = np.array([0, 8, 16, 24, 31])
    names = [f"bank {t}" if t in (0, 31) else str(t) for t in ticks]
    places = left + (ticks + 0.5) * BANK + [14, 0, 0, 0, -14]
    sheet.text(places, foot + 10, names, "soft", align="center")


def _first_iteration(run: Traffic) -> list[Access]:
    """Return the LDS accesses of the loop's first iteration. Raises ``ValueError`` if there are
    none.
    """
    lds = [access for access in run.accesses if access.kind != "fetch"]
    starts = [n for n, access in enumerate(lds) if access.at == lds[0].at]
    if not lds:
        raise ValueError(f"{run.launch.program.name} does not use the LDS; sgemm_64x64_lds does")
    return lds[: [*starts, len(lds)][1]]


@dataclass(frozen=True)
class Request:
    """A word that some of 16 work-items request at clock ``begin``; it is served ``layer`` clocks
    later.
    """

    line: int
    store: bool
    begin: int
    layer: int
    word: int
    element: int  # of A: 4 row + k
    items: tuple[int, ...]

    @property
    def clock(self) -> int:
        return self.begin + self.layer

    @property
    def color(self) -> int:
        """The color of the element's row of A."""
        return self.element // STEPS % NOTHING


class Layout:
    """One layout of the tile: the requests to the LDS, and where everything is drawn at every
    clock.
    """

    def __init__(self, run: Traffic) -> None:
        self.name = run.launch.program.name.removesuffix(".il").removeprefix("sgemm_64x64_")
        self.body = run.launch.program.body
        self.requests: list[Request] = []
        self.clocks = 0
        held: dict[int, int] = {}  # the element in each word
        for access in _first_iteration(run):
            assert access.addresses is not None
            places = access.addresses // 4
            if access.kind == "store":
                held |= self._stored(access, places)
            for first in range(0, len(places), 2):
                for lane in range(0, ITEMS, TOGETHER):
                    lanes = range(lane, lane + TOGETHER)
                    requested = _requested(access, places[first : first + 2], lanes)
                    self._serve(access, requested, held)
        self.rows = -(-(1 + max(held)) // BANKS)
        self.deepest = 1 + max(request.layer for request in self.requests)
        self.layer_height = min(13.0, STACKS / self.deepest)

    def _stored(self, access: Access, places: np.ndarray) -> dict[int, int]:
        """Return the element that a store puts into each word; each work-item has a row of A."""
        source = self.body[access.at].sources[-1]
        stored: dict[int, int] = {}
        for words, component in zip(places, source.swizzle):
            elements = STEPS * np.arange(ITEMS) + "xyzw".index(component)
            stored |= dict(zip(words.tolist(), elements.tolist()))
        return stored

    def _serve(self, access: Access, requested: dict[int, list[int]], held: dict[int, int]) -> None:
        """Add requests that work-items make together; each bank serves one per clock."""
        line, store = self.body[access.at].line, access.kind == "store"
        depth: Counter[int] = Counter()
        for word, items in requested.items():
            bank = word % BANKS
            self.requests.append(
                Request(line, store, self.clocks, depth[bank], word, held[word], tuple(items))
            )
            depth[bank] += 1
        self.clocks += max(depth.values(), default=0)

    def story(self, element: int) -> str:
        """Describe an element: which work-items store and load it, and in which clocks."""
        stored = next(r for r in self.requests if r.store and r.element == element)
        loaded = next(r for r in self.requests if not r.store and r.element == element)
        return (
            f"{self.name}: stored by work-item {_span(stored.items)} in word {stored.word}, bank"
            f" {stored.word % BANKS}, in clock {stored.clock}, loaded by work-items"
            f" {_span(loaded.items)} in clock {loaded.clock}."
        )

    def say(self, clock: int) -> str:
        """Describe what happens in a clock."""
        if clock >= self.clocks:
            return f"done after {self.clocks} clocks"
        begin = max(request.begin for request in self.requests if request.begin <= clock)
        requests = [request for request in self.requests if request.begin == begin]
        first = requests[0]
        items = _span(sorted({item for request in requests for item in request.items}))
        words = f"{len(requests)} different {plural('word', len(requests))}"
        depth = 1 + max(request.layer for request in requests)
        return (
            f"line {first.line}: work-items {items} {'store' if first.store else 'load'} {words},"
            f" up to {depth} per bank"
        )

    def draw(self, sheet: Sheet, left: float, most: int) -> None:
        """Draw the layout in a panel, on a clock on which the last one takes ``most`` clocks."""
        frames = most + 2
        so_far = np.arange(frames).clip(1, self.clocks + 1) - 1
        title = f"{self.name}: up to {quantity(self.deepest, 'word')} at a bank"
        sheet.race(self.name, (left, PANEL), so_far, self.clocks, most, title=title)
        self._draw_registers(sheet, left)
        name_banks(sheet, left, self.name)
        sheet.text(left, STACK - 86, "requests to the banks: each serves one per clock")
        self._draw_words(sheet, left, frames)
        self._draw_arrived(sheet, left, frames)
        self._draw_requests(sheet, left, frames)

    @staticmethod
    def _register_places(left: float, element) -> tuple:
        """Return where the four numbers of each work-item are drawn, 16 work-items in a row."""
        item, step = element // STEPS, element % STEPS
        row, column = item // TOGETHER, item % TOGETHER
        x = left + column * ITEM + (step + 0.5) * (ITEM / STEPS - 1) + 1
        return x, REGISTERS + row * 15.0 + 8

    def _draw_registers(self, sheet: Sheet, left: float) -> None:
        """Draw the registers that the work-items store from."""
        head = "Registers: four numbers of A per work-item"
        sheet.text(left, REGISTERS - 11, head)
        element = np.arange(ELEMENTS)
        row, step = element // STEPS, element % STEPS
        words = [f"A[{a}, k = {k}] in work-item {a}" for a, k in zip(row, step)]
        x, y = self._register_places(left, element)
        sheet.boxes(
            f"registers {self.name}",
            x,
            y,
            ITEM / STEPS - 1.2,
            12,
            fill=(COLORS, row % NOTHING),
            alpha=0.5,
            words=words,
            key=element,
        )

    def _word_box(self, left: float, word) -> tuple:
        """Return the box of a word of the LDS: x, y, width and height."""
        height = min(8.0, 64 / self.rows)
        x = left + (word % BANKS + 0.5) * BANK
        gap = min(0.8, height / 5)  # of many rows a fixed gap would leave nothing
        return x, WORDS + (word // BANKS + 0.5) * height, BANK - 1.5, height - gap

    def _draw_words(self, sheet: Sheet, left: float, frames: int) -> None:
        """Draw the contents of the LDS."""
        word = np.arange(self.rows * BANKS)
        color = np.full((frames, len(word)), NOTHING)
        key = np.full((frames, len(word)), -1)
        for request in self.requests:
            if request.store:
                color[request.clock + 2 :, request.word] = request.color
                key[request.clock + 2 :, request.word] = request.element
        sheet.boxes(
            f"lds {self.name}",
            *self._word_box(left, word),
            fill=(COLORS, color),
            words=[f"word {w}, bank {w % BANKS}" for w in word],
            key=key,
        )

    def _draw_arrived(self, sheet: Sheet, left: float, frames: int) -> None:
        """Draw the eight numbers that the chosen work-item loads in each step."""
        first = 8 * (ITEM_SHOWN // 8)  # of its rows of A
        row = np.tile(first + np.arange(8), STEPS)
        step = np.repeat(np.arange(STEPS), 8)
        element = STEPS * row + step
        color = np.full((frames, 8 * STEPS), NOTHING)
        loads = [r for r in reversed(self.requests) if not r.store and ITEM_SHOWN in r.items]
        arrived = {load.element: load.clock + 2 for load in loads}
        for loaded, frame in arrived.items():
            color[frame:, element == loaded] = loaded // STEPS % NOTHING

        sheet.text(left, BELOW + 10, f"Work-item {ITEM_SHOWN} gets columns")
        x = left + 62 + np.arange(8 * STEPS) % 8 * 20.0
        y = BELOW + 32 + step * 17.0
        sheet.text(left, y[::8], [f"k = {k}" for k in range(STEPS)], "soft")
        sheet.boxes(
            f"arrived {self.name}",
            x,
            y,
            18.5,
            15.5,
            fill=(COLORS, color),
            words=[
                f"A[{a}, k = {k}] in a register of work-item {ITEM_SHOWN}"
                for a, k in zip(row, step)
            ],
            key=element,
        )

    def _draw_requests(self, sheet: Sheet, left: float, frames: int) -> None:
        """Draw requests in flight: to the stack over their bank, down one layer per clock, then to
        their work-item. A word that several work-items load is a dot for each.
        """
        shape = frames, 6 * TOGETHER
        box = np.full((4, *shape), np.nan, np.float32)  # x, y, width and height
        color = np.full(shape, NOTHING)
        key = np.full(shape, -1)
        waiting = np.zeros((frames, BANKS), int)
        for dot, request, home in self._dots(left):
            begin = request.begin
            end = request.clock + 2
            word = self._word_box(left, request.word)
            box[:, begin, dot] = home if request.store else word
            box[:, end, dot] = word if request.store else home
            for frame in range(begin + 1, end):
                layer = request.clock + 1 - frame
                box[:, frame, dot] = self._stacked(word[0], layer)
                bank = frame, request.word % BANKS
                waiting[bank] = max(waiting[bank], layer)
            color[begin : end + 1, dot] = request.color
            key[begin : end + 1, dot] = request.element
        box[:, self.clocks + 1] = np.nan  # all have arrived
        sheet.boxes(
            f"requests {self.name}",
            *box,
            fill=(COLORS, color),
            key=key,
            moves=("x", "y", "w", "h"),
        )
        # One frame for all that wait in a bank: sixteen would hide the colors.
        high = np.where(waiting, self.layer_height * waiting, np.nan)
        x = np.tile(left + (np.arange(BANKS) + 0.5) * BANK, (frames, 1))
        y = STACK - self.layer_height - high / 2
        framed = sheet.source(f"waiting {self.name}", x=x, y=y, h=high)
        sheet.ring(framed, BANK - 2, "h", 2)

    def _dots(self, left: float) -> Iterator[tuple[int, Request, tuple]]:
        """Yield a dot's number, its request, and the box of its register. Three groups of dots
        alternate, since the dots of the two groups before are still landing.
        """
        group_of = {
            begin: n % 3 for n, begin in enumerate(sorted({r.begin for r in self.requests}))
        }
        of_group: Counter[int] = Counter()
        of_item: Counter[tuple[int, int]] = Counter()
        for request in self.requests:
            begin = request.begin
            for item in request.items:
                loaded = STEPS * item + 2 * of_item[begin, item]
                x, y = self._register_places(left, request.element if request.store else loaded)
                yield of_group[begin] + 2 * TOGETHER * group_of[begin], request, (x, y, 8, 12)
                of_group[begin] += 1
                of_item[begin, item] += 1

    def _stacked(self, x: float, layer: int) -> tuple:
        """Return the box of a request in a stack: x, y, width and height."""
        height = self.layer_height
        return x, STACK - (layer + 0.5) * height, BANK - 4, height - 1.5


def _requested(access: Access, places: np.ndarray, lanes: range) -> dict[int, list[int]]:
    """Return the words that work-items request together, and the work-items of each word."""
    requested: dict[int, list[int]] = {}
    for row in places:
        for lane in lanes:
            if access.active[lane]:
                requested.setdefault(int(row[lane]), []).append(lane)
    return requested


def _span(items: Sequence[int]) -> str:
    """Return whole numbers as text: ``8 to 15``, or ``1, 9 and 2 more`` if they have gaps."""
    if len(items) < 3:
        return " and ".join(map(str, items))
    first, second, *_, last = items
    if last - first == len(items) - 1:
        return f"{first} to {last}"
    return f"{first}, {second} and {len(items) - 2} more"
