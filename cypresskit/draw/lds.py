"""A tile of A on its way through the LDS, clock by clock: rows are stored, columns are loaded, and
banks conflict.

From the recorded LDS accesses of a wavefront during one turn of the loop. Sixteen work-items ask at
a time, each for up to two words; a bank gives one word a clock, to all who want it. Several layouts
race on one clock: the one with the lower stacks over its banks is done first. A frame is a clock.
Left out: other wavefronts, and how long a barrier takes; only its place is marked.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.draw import theme
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.own import Source
from cypresskit.kernels.samples import listened
from cypresskit.machine.traffic import Access, Traffic

BANKS, TOGETHER = HD5870.lds_banks, HD5870.lds_items_clock
WIDE, HIGH, GAP = 512, 426, 60  # a panel, and between two, in pixels
BANK, ITEM = WIDE / BANKS, WIDE / TOGETHER
ITEM_SHOWN = 9  # the work-item whose numbers are seen to arrive: in the second row and column
REGISTERS, STACK, WORDS, BELOW = (
    74,
    232,
    238,
    322,
)  # where the parts of a panel begin; of the stack, its foot
COLOURS = [*theme.SERIES, "rgba(128,128,128,0.10)"]  # by row of A; the last: nothing
NOTHING = len(theme.SERIES)
ROWS = [
    (f"row modulo 8: {n}" if not n else f"{n}", colour, "box")
    for n, colour in enumerate(theme.SERIES)
]  # a key


def lds_transpose(*layouts: Traffic | Source) -> Player:
    """A player of the LDS accesses in the first turn of a loop, clock by clock; several layouts
    race.

    ``layouts`` are kernels that use the LDS, or ``Traffic`` that listened to a launch of
    one; by default "sgemm_64x64_lds_padded" and "sgemm_64x64_lds_worst". What arrives is shown for
    work-item 9. Raises ``ValueError`` for runs without LDS accesses.
    """
    runs = [
        listened(layout)
        for layout in layouts or ("sgemm_64x64_lds_padded", "sgemm_64x64_lds_worst")
    ]
    panels = [Layout(run, ITEM_SHOWN) for run in runs]
    sheet = Sheet("A through the LDS: " + ", ".join(panel.name for panel in panels))
    most = max(panel.clocks for panel in panels)
    label = "; ".join(
        f"{panel.name}: registers, 32 banks with stacks of requests, what arrives"
        for panel in panels
    )
    sheet.stage(label, len(panels) * (WIDE + GAP) - GAP + 40, HIGH)
    for n, panel in enumerate(panels):
        panel.draw(sheet, 20 + n * (WIDE + GAP), most)
    for element in range(256):
        name, stories = (
            f"**A[{element // 4}, k = {element % 4}]**. ",
            [panel.story(element) for panel in panels],
        )
        when = max(clock for _, clocks in stories for clock in clocks)
        clocks = " and ".join(f"{p.name} at {clocks}" for p, (_, clocks) in zip(panels, stories))
        where = name + " ".join(words for words, _ in stories)
        sheet.about[element] = [
            (0, where),
            (when + 2, f"{where} Stored and loaded in clocks: {clocks}."),
        ]
    captions = [
        "Clock 0. Each of 64 work-items holds four numbers of one row of A; the LDS is empty."
    ]
    captions += [
        f"Clock {n}. " + " ".join(f"**{p.name}**: {p.say(n)}." for p in panels)
        for n in range(most + 1)
    ]
    key = sheet.key(
        *ROWS, ("waits for a clock, or longer", "wait", "ring"), ("a barrier", "ink", "box")
    )
    ends = sorted(panels, key=lambda panel: panel.clocks)
    truth = (
        f"after {ends[0].clocks} clocks; "
        + ", ".join(f"{p.name} after {p.clocks} clocks" for p in ends[1:])
        + "."
    )
    guess = (
        Guess("Which one is done first?", [p.name for p in panels], truth, ends[0].name)
        if panels[1:]
        else None
    )
    marks = sorted({request.begin for request in panels[0].requests})
    return sheet.player(
        captions,
        [f"work-item {ITEM_SHOWN} is followed"],
        marks=marks,
        step="Clock",
        below=[key],
        guess=guess,
        seconds=14,
    )


def name_banks(sheet: Sheet, left: float, top: float, foot: float, name: str) -> None:
    """Draw the banks as columns, with some of their numbers below."""
    bank = np.arange(BANKS)
    x, y = left + (bank + 0.5) * BANK, (top + foot) / 2
    sheet.boxes(f"banks {name}", x, y, BANK - 2, foot - top, ink="faint", alpha=0.45)
    ticks = np.array([0, 8, 16, 24, 31])
    names = [f"bank {t}" if t in (0, 31) else str(t) for t in ticks]
    places = left + (ticks + 0.5) * BANK + [14, 0, 0, 0, -14]
    sheet.words(places, foot + 10, names, "soft", align="center", size=13)


def _turn(run: Traffic) -> list[Access]:
    """The LDS accesses of the loop's first turn. Raises ``ValueError`` if there are none."""
    lds = [access for access in run.accesses if access.kind != "fetch"]
    starts = [n for n, access in enumerate(lds) if access.at == lds[0].at]
    if not lds:
        raise ValueError(f"{run.launch.program.name} does not use the LDS; sgemm_64x64_lds does")
    return lds[: [*starts, len(lds)][1]]


@dataclass(frozen=True)
class Request:
    """A word that some of 16 work-items ask for at clock ``begin``; it is served ``layer`` clocks
    later.
    """

    access: int
    store: bool
    begin: int
    layer: int
    word: int
    element: int  # of A: 4 row + k
    items: tuple[int, ...]

    @property
    def clock(self) -> int:
        return self.begin + self.layer


class Layout:
    """One layout of the tile: the requests to the LDS, and where everything is drawn at every half
    clock.
    """

    def __init__(self, run: Traffic, item: int) -> None:
        self.name = run.launch.program.name.removesuffix(".il").removeprefix("sgemm_64x64_")
        self.run, self.accesses, self.item, self.clocks = run, _turn(run), item, 0
        self.requests: list[Request] = []
        held: dict[int, int] = {}  # which element lies in a word
        for number, access in enumerate(self.accesses):
            assert access.addresses is not None
            places = access.addresses // 4
            if access.kind == "store":
                sources = run.launch.program.body[access.at].sources[-1].swizzle[: len(places)]
                own = [4 * np.arange(64) + "xyzw".index(c) for c in sources]
                held |= {
                    int(w): int(e)
                    for row, elements in zip(places, own)
                    for w, e in zip(row, elements)
                }
            for first in range(0, len(places), 2):
                for first_lane in range(0, 64, TOGETHER):
                    asked: dict[int, list[int]] = {}
                    for row in places[first : first + 2]:
                        for lane in range(first_lane, first_lane + TOGETHER):
                            asked.setdefault(int(row[lane]), []).extend(
                                [lane] * bool(access.active[lane])
                            )
                    self._serve(
                        number,
                        access.kind == "store",
                        {w: lane for w, lane in asked.items() if lane},
                        held,
                    )
        self.rows = -(-(1 + max(held)) // BANKS)

    def _serve(
        self, access: int, store: bool, asked: dict[int, list[int]], held: dict[int, int]
    ) -> None:
        deep: Counter[int] = Counter()
        for word, who in asked.items():
            layer = deep[word % BANKS]
            self.requests.append(
                Request(access, store, self.clocks, layer, word, held[word], tuple(who))
            )
            deep[word % BANKS] += 1
        self.clocks += max(deep.values(), default=0)

    def story(self, element: int) -> tuple[str, list[int]]:
        """A sentence on an element: which work-items store and load it, and in which clocks."""
        stored = next(r for r in self.requests if r.store and r.element == element)
        loaded = next(r for r in self.requests if not r.store and r.element == element)
        words = (
            f"{self.name}: stored by work-item {_span(stored.items)} in word {stored.word}, bank"
            f" {stored.word % BANKS}"
        )
        return f"{words}, loaded by work-items {_span(loaded.items)}.", [stored.clock, loaded.clock]

    def say(self, clock: int) -> str:
        if clock >= self.clocks:
            return f"done after {self.clocks} clocks"
        begin = max(r.begin for r in self.requests if r.begin <= clock)
        here = [r for r in self.requests if r.begin == begin]
        line = self.run.launch.program.body[self.accesses[here[0].access].at].line
        who = _span(sorted({item for r in here for item in r.items}))
        words, deep = (
            f"{len(here)} different word{'s' * (len(here) > 1)}",
            1 + max(r.layer for r in here),
        )
        return (
            f"line {line}: work-items {who} {'store' if here[0].store else 'load'} {words}, up to"
            f" {deep} per bank"
        )

    def barriers(self) -> list[int]:
        """The LDS clocks at which there is a barrier."""
        body = self.run.launch.program.body
        begins = {r.access: r.begin for r in reversed(self.requests)}
        places = [0, *(access.at for access in self.accesses)]
        between = enumerate(body[a:b] for a, b in pairwise(places))
        return [begins[n] for n, lines in between if any(line.op.kind == "fence" for line in lines)]

    def draw(self, sheet: Sheet, left: float, most: int) -> None:
        frames = most + 2
        so_far, title = (
            np.arange(frames).clip(1, self.clocks + 1) - 1,
            f"{self.name}: clocks of the LDS alone",
        )
        sheet.race(self.name, (left, WIDE), so_far, self.clocks, most, title=title)
        begins = np.array(self.barriers())
        walls = np.where(
            np.arange(frames)[:, np.newaxis] > begins, left + WIDE * begins / most, np.nan
        )
        sheet.boxes(
            f"barriers {self.name}", walls, 34, 3, 18, ink="ink", words=["a barrier"] * len(begins)
        )
        element = np.arange(256)
        words = [f"A[{e // 4}, k = {e % 4}] in work-item {e // 4}" for e in element]
        x, y = self._registers(left, element)
        fill = COLOURS, element // 4 % NOTHING
        sheet.boxes(
            f"registers {self.name}", x, y, ITEM / 4 - 1.2, 12, words=words, key=element, fill=fill
        )
        name_banks(sheet, left, STACK - 92, WORDS + 64, self.name)
        heads = (
            "64 work-items, each with four steps of k of one row of A (a colour)",
            "asked of the banks: each serves one a clock",
        )
        sheet.words([left, left + 2], [REGISTERS - 10, STACK - 84], heads, size=13)
        self._lie(sheet, left, frames)
        self._arrive(sheet, left, frames)
        self._fly(sheet, left, frames)

    @staticmethod
    def _registers(left: float, element) -> tuple:
        """Where the four numbers of each work-item are drawn, 16 work-items in a row."""
        item = element // 4
        x = left + item % TOGETHER * ITEM + (element % 4 + 0.5) * (ITEM / 4 - 1) + 1
        return x, REGISTERS + item // TOGETHER * 15.0 + 8

    def _word(self, left: float, word) -> tuple:
        """The box of a word of the LDS."""
        high = min(8.0, 64 / self.rows)
        return (
            left + (word % BANKS + 0.5) * BANK,
            WORDS + (word // BANKS + 0.5) * high,
            BANK - 1.5,
            high - 0.8,
        )

    def _lie(self, sheet: Sheet, left: float, frames: int) -> None:
        """Draw the contents of the LDS."""
        word = np.arange(self.rows * BANKS)
        row, key = np.full((2, frames, len(word)), [[[NOTHING]], [[-1]]])
        for r in (r for r in self.requests if r.store):
            row[r.clock + 2 :, r.word], key[r.clock + 2 :, r.word] = (
                r.element // 4 % NOTHING,
                r.element,
            )
        words = [f"word {w}, bank {w % BANKS}" for w in word]
        at = self._word(left, word)
        sheet.boxes(f"lds {self.name}", *at, fill=(COLOURS, row), key=key, words=words)

    def _arrive(self, sheet: Sheet, left: float, frames: int) -> None:
        """Draw the eight numbers that the chosen work-item loads in each step, and the rows of C
        that they update.
        """
        first = 8 * (self.item // 8)
        element = (4 * (first + np.arange(8)) + np.arange(4)[:, np.newaxis]).ravel()
        row, levels = np.full((frames, 32), NOTHING), np.zeros((frames, 64), int)
        came = {
            r.element: r.clock + 2
            for r in reversed(self.requests)
            if not r.store and self.item in r.items
        }
        for e, since in came.items():
            row[since:, element == e] = e // 4 % NOTHING
            levels[since:, 8 * (e // 4 - first) : 8 * (e // 4 - first) + 8] += 1
        heads = [f"Work-item {self.item} gets columns", "its 8 x 8 of C", "in its group's 64 x 64"]
        sheet.words([left, left + 240, left + 350], BELOW + 12, heads, size=13)
        x, y = left + 44 + np.arange(32) % 8 * 20.0, BELOW + 32 + np.arange(32) // 8 * 17.0
        sheet.words(left, y[::8], [f"k = {k}" for k in range(4)], "soft", size=13)
        words = [
            f"A[{e // 4}, k = {e % 4}] in a register of work-item {self.item}" for e in element
        ]
        sheet.boxes(
            f"arrived {self.name}", x, y, 18.5, 15.5, key=element, words=words, fill=(COLOURS, row)
        )
        tints = [f"rgba(0,158,115,{alpha})" for alpha in (0.08, 0.3, 0.5, 0.75, 1)]
        down, across = np.divmod(np.arange(64), 8)
        x, y = left + 246 + 10.5 * across, BELOW + 28 + 9.5 * down
        words = [f"C[{first + j}, {8 * (self.item % 8) + i}]" for j, i in zip(down, across)]
        sheet.boxes(f"block {self.name}", x, y, 9.5, 8.5, fill=(tints, levels), words=words)
        words = [
            f"work-item {n}: rows {8 * (n // 8)} to {8 * (n // 8) + 7} of C" for n in range(64)
        ]
        level = np.where(np.arange(64) == self.item, 4, 1)
        sheet.boxes(f"tile {self.name}", x + 110, y, 9.5, 8.5, fill=(tints, level), words=words)

    def _fly(self, sheet: Sheet, left: float, frames: int) -> None:
        """Draw requests on their way: to the stack over their bank, down a layer a clock, then to
        their work-item. A word loaded by several work-items is a dot for each.
        """
        places = np.full((4, frames, 6 * TOGETHER), np.nan, np.float32)
        row, wait, key = np.full((3, frames, 6 * TOGETHER), [[[NOTHING]], [[0]], [[-1]]])
        high = min(13.0, 84 / (1 + max(r.layer for r in self.requests)))
        seen: Counter[tuple[int, int]] = (
            Counter()
        )  # requests of a group, or of one of its work-items
        turns = {begin: n % 3 for n, begin in enumerate(sorted({r.begin for r in self.requests}))}
        dots = [(request, item) for request in self.requests for item in request.items]
        for r, item in dots:
            begin, end = r.begin, r.clock + 2
            slot = (
                seen[begin, -1] + 2 * TOGETHER * turns[begin]
            )  # those of two groups before are still landing
            x, y = self._registers(left, r.element if r.store else 4 * item + 2 * seen[begin, item])
            seen[begin, -1] += 1
            seen[begin, item] += 1
            home, word = (x, y, 8, 12), self._word(left, r.word)
            places[:, begin, slot], places[:, end, slot] = (home, word) if r.store else (word, home)
            for frame in range(begin + 1, end):
                layer = r.clock + 1 - frame
                places[:, frame, slot] = word[0], STACK - (layer + 0.5) * high, BANK - 4, high - 1.5
                wait[frame, slot] = 2 * (layer > 0)
            row[begin : end + 1, slot], key[begin : end + 1, slot] = (
                r.element // 4 % NOTHING,
                r.element,
            )
        places[:, self.clocks + 1] = np.nan  # all have arrived
        source = sheet.boxes(
            f"requests {self.name}",
            *places,
            fill=(COLOURS, row),
            key=key,
            columns={"wait": wait},
            moves=("x", "y", "w", "h"),
        )
        sheet.ring(source, "w", "h", "wait")


def _span(items: Sequence[int]) -> str:
    """Whole numbers as text: ``8 to 15``, or ``1, 9 and 2 more`` where they aren't consecutive."""
    if len(items) < 3:
        return " and ".join(map(str, items))
    even = items[-1] - items[0] == len(items) - 1
    return (
        f"{items[0]} to {items[-1]}"
        if even
        else f"{items[0]}, {items[1]} and {len(items) - 2} more"
    )
