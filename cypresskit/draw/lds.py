"""A tile of A on its way through the LDS, clock by clock: rows come, columns are wanted, and banks are in the way.

From the recorded LDS accesses of a wavefront during one turn of the loop. Sixteen work-items ask in a clock, each for
up to two words; a bank gives one word a clock, to all who want the same. Several layouts race on one clock: whoever has
fewer layers in its stacks is done first. Left out: what other wavefronts do meanwhile, and fences.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.draw import theme
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.samples import listened
from cypresskit.machine.traffic import Access, Traffic

WIDE, HIGH, GAP = 512, 426, 60  # a panel, and between two, in pixels
BANK, ITEM = WIDE / HD5870.lds_banks, WIDE / HD5870.lds_items_clock
REGISTERS, STACK, WORDS, BELOW = 74, 232, 238, 322  # where the parts of a panel begin; of the stack, its foot
COLOURS = [*theme.SERIES, "rgba(128,128,128,0.10)"]  # by row of A; the last: nothing
NOTHING = len(theme.SERIES)
ROWS = [(f"row modulo 8: {n}" if not n else f"{n}", colour, "box") for n, colour in enumerate(theme.SERIES)]  # a key


def lds_transpose(*layouts: Traffic | str, item: int = 9, turn: int = 1) -> Player:
    """A player of one loop turn's LDS accesses, clock by clock; several layouts race.

    ``layouts`` are kernels that use the LDS, by name, or ``Traffic`` that listened to a launch of one; by default
    "sgemm_64x64_lds" and "sgemm_64x64_lds_rows". ``item`` (0 to 63) is the work-item that is followed, ``turn``
    the turn of the loop, from 1. Raises ``ValueError`` for runs without LDS accesses in that turn.
    """
    runs = [listened(layout) for layout in layouts or ("sgemm_64x64_lds", "sgemm_64x64_lds_rows")]
    sheet = Sheet("A through the LDS: " + ", ".join(_name(run) for run in runs))
    panels = [Layout(run, accesses_of(run, turn), item) for run in runs]
    most = max(panel.clocks for panel in panels)
    label = "; ".join(f"{panel.name}: registers, 32 banks with stacks of requests, what arrives" for panel in panels)
    fig = sheet.stage(label, len(panels) * (WIDE + GAP) - GAP + 40, HIGH)
    for n, panel in enumerate(panels):
        panel.draw(sheet, fig, 20 + n * (WIDE + GAP), most)
    sheet.about = {
        element: f"**A[{element // 4}, k = {element % 4}]**. "
        + " ".join(f"{panel.name}: {panel.story(element)}." for panel in panels)
        for element in range(256)
    }
    captions = [
        f"Clock {frame // 2} of {most}. " + " ".join(f"**{p.name}**: {p.say(frame)}." for p in panels)
        for frame in range(2 * most + 1)
    ]
    key = sheet.key(*ROWS, ("waits for a clock, or longer", "wait", "ring"))
    text = "\n".join(
        [f"{sheet.title}; work-item {item} is followed", *(line for panel in panels for line in panel.text())]
    )
    ends = sorted(panels, key=lambda panel: panel.clocks)
    truth = ", ".join(f"{panel.name} is done after {panel.clocks} clocks" for panel in ends) + "."
    names = [panel.name for panel in panels]
    guess = Guess("which one is done first?", names, truth, ends[0].name) if len(panels) > 1 else None
    marks = [2 * clock for clock in panels[0].starts[1:]]
    return sheet.player([fig], captions, text, marks=marks, step="Clock", below=[key], guess=guess, lasts=14)


def name_banks(sheet: Sheet, fig, left: float, y: float) -> None:
    """Some banks' numbers below them."""
    ticks = np.array([0, 8, 16, 24, 31])
    names = [f"bank {t}" if t in (0, 31) else str(t) for t in ticks]
    places = left + (ticks + 0.5) * BANK + [14, 0, 0, 0, -14]
    sheet.words(fig, places, [y] * 5, names, "soft", align="center", size=13)


def _name(run: Traffic) -> str:
    return run.launch.program.name.removesuffix(".il").removeprefix("sgemm_64x64_")


def accesses_of(run: Traffic, turn: int) -> list[Access]:
    """The LDS accesses of a turn: from one time that the first of them runs to the next."""
    lds = [access for access in run.accesses if access.kind != "fetch"]
    starts = [n for n, access in enumerate(lds) if access.at == lds[0].at]
    if not 1 <= turn <= len(starts):
        raise ValueError(
            f"{run.launch.program.name}: turn {turn} of {len(starts)} with LDS accesses. The kernel has to use the LDS "
            "(sgemm_64x64_lds does), and the run to be long enough."
        )
    return lds[starts[turn - 1] : [*starts, len(lds)][turn]]


@dataclass(frozen=True)
class _Request:
    """A word that some of the 16 work-items ask for at once. It is served ``layer`` clocks after its group's first."""

    word: int
    element: int  # of A: 4 row + k
    layer: int
    items: tuple[int, ...]


@dataclass(frozen=True)
class _Group:
    """What 16 work-items ask for in one clock, and the clock in which the LDS turns to it."""

    access: int
    store: bool
    begin: int
    requests: tuple[_Request, ...]

    @property
    def clocks(self) -> int:
        return 1 + max(r.layer for r in self.requests)


class Layout:
    """One layout: its accesses as groups of requests, and where everything is at every half clock."""

    def __init__(self, run: Traffic, accesses: Sequence[Access], item: int) -> None:
        self.name, self.run, self.accesses, self.item = _name(run), run, accesses, item
        self.groups: list[_Group] = []
        self.starts: list[int] = []  # the clock at which each access begins
        held: dict[int, int] = {}  # which element lies in a word
        self.clocks = 0
        for number, access in enumerate(accesses):
            assert access.addresses is not None
            self.starts.append(self.clocks)
            places = access.addresses // 4
            if access.kind == "store":
                sources = run.launch.program.body[access.at].sources[-1].swizzle[: len(places)]
                own = [4 * np.arange(64) + "xyzw".index(c) for c in sources]
                held |= {int(w): int(e) for row, mine in zip(places, own) for w, e in zip(row, mine)}
            for first in range(0, len(places), 2):
                for at in range(0, 64, HD5870.lds_items_clock):
                    self._ask(number, access, places[first : first + 2], range(at, at + HD5870.lds_items_clock), held)
        self.rows = -(-(1 + max(held)) // HD5870.lds_banks)

    def _ask(self, number: int, access: Access, places: np.ndarray, items: range, held: dict[int, int]) -> None:
        asked: dict[int, list[int]] = {}
        for row in places:
            for item in items:
                if access.active[item]:
                    asked.setdefault(int(row[item]), []).append(item)
        deep = dict.fromkeys(range(HD5870.lds_banks), 0)
        requests = []
        for word, who in asked.items():
            bank = word % HD5870.lds_banks
            requests.append(_Request(word, held[word], deep[bank], tuple(who)))
            deep[bank] += 1
        if requests:
            self.groups.append(_Group(number, access.kind == "store", self.clocks, tuple(requests)))
            self.clocks += self.groups[-1].clocks

    def story(self, element: int) -> str:
        """When an element is stored and loaded."""
        parts = []
        for store, verb in ((True, "stored by"), (False, "loaded by")):
            found = [
                (g.begin + r.layer, r)
                for g in self.groups
                for r in g.requests
                if g.store == store and r.element == element
            ]
            if found:
                clock, r = found[0]
                where = f" in word {r.word}, bank {r.word % HD5870.lds_banks}" if store else ""
                parts.append(f"{verb} work-item{'s' * (len(r.items) > 1)} {_span(r.items)} at clock {clock}{where}")
        return ", ".join(parts)

    def say(self, frame: int) -> str:
        if frame >= 2 * self.clocks:
            return f"done after {self.clocks} clocks"
        group = next(g for g in reversed(self.groups) if g.begin <= frame // 2)
        i = self.run.launch.program.body[self.accesses[group.access].at]
        what = "store" if group.store else "load"
        count = len(group.requests)
        who = _span(sorted({item for r in group.requests for item in r.items}))
        return (
            f"line {i.line}: work-items {who} {what} {count} different word{'s' * (count > 1)}, stacked {group.clocks}"
        )

    def draw(self, sheet: Sheet, fig, left: float, most: int) -> None:
        frames = 2 * most + 1
        so_far = np.minimum(np.arange(frames) / 2, self.clocks)
        sheet.race(fig, self.name, left, WIDE, so_far, self.clocks, most, title=self.name)
        x, y, element = self._registers(left)
        words = [f"A[{e // 4}, k = {e % 4}] in work-item {e // 4}" for e in element]
        title = "64 work-items, each with four steps of k of one row of A (a colour)"
        sheet.words(fig, [left], [REGISTERS - 10], [title], size=13)
        sheet.boxes(
            fig, f"registers {self.name}", x, y, ITEM / 4 - 1.2, 12, fill=("row", COLOURS), words=words, key=element,
            row=element // 4 % NOTHING,
        )  # fmt: skip
        self._banks(sheet, fig, left, frames)
        self._arrived(sheet, fig, left, frames)
        self._flights(sheet, fig, left, frames)

    def _registers(self, left: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the four numbers of each work-item are, 16 in a row, and which element of A each is."""
        element = np.arange(256)
        item = element // 4
        x = left + item % 16 * ITEM + (element % 4 + 0.5) * (ITEM / 4 - 1) + 1
        return x, REGISTERS + item // 16 * 15.0 + 8, element

    def _word(self, left: float, word) -> tuple[np.ndarray, np.ndarray]:
        row = self._high()
        return left + (word % HD5870.lds_banks + 0.5) * BANK, WORDS + (word // HD5870.lds_banks + 0.5) * row

    def _high(self) -> float:
        return min(8.0, 64 / self.rows)

    def _banks(self, sheet: Sheet, fig, left: float, frames: int) -> None:
        banks = np.arange(HD5870.lds_banks)
        middle = left + (banks + 0.5) * BANK
        ends = REGISTERS + 66, STACK + 2
        sheet.boxes(fig, f"banks {self.name}", middle, np.full(32, sum(ends) / 2), BANK - 2, ends[1] - ends[0],
                    ink="faint", alpha=0.45)  # fmt: skip
        word = np.arange(self.rows * HD5870.lds_banks)
        row, key = (np.full((frames, len(word)), empty) for empty in (NOTHING, -1))
        for group in self.groups:
            for r in group.requests if group.store else ():
                since = 2 * (group.begin + r.layer) + 2
                row[since:, r.word], key[since:, r.word] = r.element // 4 % NOTHING, r.element
        x, y = self._word(left, word)
        sheet.boxes(
            fig, f"lds {self.name}", x, y, BANK - 1.5, self._high() - 0.8, fill=("row", COLOURS),
            row=row.astype(np.uint8), key=key.astype(np.int32),
            words=[f"word {w}, bank {w % HD5870.lds_banks}" for w in word],
        )  # fmt: skip
        name_banks(sheet, fig, left, WORDS + 74)

    def _arrived(self, sheet: Sheet, fig, left: float, frames: int) -> None:
        """The eight numbers of each step that the chosen work-item loads, and the rows of C that grow by them."""
        first = 8 * (self.item // 8)
        element = np.array([4 * (first + j) + k for k in range(4) for j in range(8)])
        row = np.full((frames, 32), NOTHING, np.uint8)
        levels = np.zeros((frames, 64), np.uint8)
        seen: set[int] = set()
        for group in self.groups:
            for r in () if group.store else group.requests:
                if self.item in r.items and r.element not in seen:
                    seen.add(r.element)
                    since = 2 * (group.begin + r.layer) + 2
                    row[since:, element == r.element] = r.element // 4 % NOTHING
                    levels[since:, 8 * (r.element // 4 - first) : 8 * (r.element // 4 - first) + 8] += 1
        x, y = left + 44 + np.arange(32) % 8 * 20.0, BELOW + 32 + np.arange(32) // 8 * 17.0
        words = [f"A[{e // 4}, k = {e % 4}] in a register of work-item {self.item}" for e in element]
        sheet.boxes(
            fig, f"arrived {self.name}", x, y, 18.5, 15.5, fill=("row", COLOURS), row=row, key=element, words=words
        )
        heads = [f"Work-item {self.item} gets columns", "its 8 x 8 of C", "in its group's 64 x 64"]
        sheet.words(fig, [left, left + 240, left + 350], [BELOW + 12] * 3, heads, size=13)
        sheet.words(fig, [left] * 4, y[::8], [f"k = {k}" for k in range(4)], "soft", size=13)
        across, down = (part.ravel() for part in np.meshgrid(np.arange(8), np.arange(8)))
        tints = [f"rgba(0,158,115,{alpha})" for alpha in (0.08, 0.3, 0.5, 0.75, 1)]
        words = [f"C[{first + j}, {8 * (self.item % 8) + i}]" for j, i in zip(down, across)]
        sheet.boxes(fig, f"block {self.name}", left + 246 + 10.5 * across, BELOW + 28 + 9.5 * down, 9.5, 8.5,
                    fill=("level", tints), level=levels, words=words)  # fmt: skip
        words = [f"work-item {n}: rows {8 * (n // 8)} to {8 * (n // 8) + 7} of C" for n in range(64)]
        mine = (np.arange(64) == self.item).astype(np.uint8)
        sheet.boxes(fig, f"tile {self.name}", left + 356 + 10.5 * across, BELOW + 28 + 9.5 * down, 9.5, 8.5,
                    fill=("mine", [tints[1], tints[4]]), mine=mine, words=words)  # fmt: skip

    def _flights(self, sheet: Sheet, fig, left: float, frames: int) -> None:
        """Requests on their way: to the stack over their bank, down a layer a clock, then to their end."""
        most = max(len(group.requests) for group in self.groups)
        places = np.full((4, frames, 2 * most), np.nan, np.float32)
        row, wait = np.full((2, frames, 2 * most), NOTHING, np.uint8)
        wait[:] = 0
        key = np.full((frames, 2 * most), -1, np.int32)
        home_x, home_y, _ = self._registers(left)
        layer = min(13.0, 84 / max(group.clocks for group in self.groups))
        for number, group in enumerate(self.groups):
            source: tuple
            target: tuple
            for n, r in enumerate(group.requests):
                n += most * (number % 2)
                begin, end = 2 * group.begin, 2 * (group.begin + r.layer) + 2
                over = left + (r.word % HD5870.lds_banks + 0.5) * BANK
                word = *self._word(left, r.word), BANK - 2, self._high()
                if group.store:
                    source, target = (home_x[r.element], home_y[r.element], 8, 12), word
                else:
                    at = [left + item % 16 * ITEM for item in r.items]
                    wide = max(at) - min(at) + ITEM
                    y = REGISTERS + r.items[0] // 16 * 15.0 + 8
                    source, target = word, (min(at) + wide / 2, y, wide - 2, 4 if r.element % 2 else 7)
                places[:, begin, n] = source
                for frame in range(begin + 1, end):
                    left_over = r.layer - (frame - begin - 1) // 2
                    places[:, frame, n] = over, STACK - (left_over + 0.5) * layer, BANK - 4, layer - 1.5
                    wait[frame, n] = 2 * (left_over > 0)
                places[:, end, n] = target
                row[begin : end + 1, n], key[begin : end + 1, n] = r.element // 4 % NOTHING, r.element
        places[:, 2 * self.clocks] = np.nan  # all have arrived
        source = sheet.boxes(fig, f"requests {self.name}", *places, fill=("row", COLOURS), row=row, key=key,
                             wait=wait, moves=("x", "y", "w", "h"))  # fmt: skip
        sheet.ring(fig, source, "w", "h", "wait")

    def text(self) -> list[str]:
        lines = [f"{self.name}: {len(self.accesses)} accesses of the LDS in a turn of the loop"]
        for n, access in enumerate(self.accesses):
            words = sum(len(group.requests) for group in self.groups if group.access == n)
            asked = 0 if access.addresses is None else len(access.addresses)
            lines.append(f"  {n + 1:2} {access.kind:5} {asked} x 32 bits of each work-item: {words} different words")
        return lines


def _span(items: Sequence[int]) -> str:
    """``8 to 15``, or ``1, 9 and so on`` where they don't lie side by side."""
    if len(items) == 1:
        return str(items[0])
    even = items[-1] - items[0] == len(items) - 1
    return f"{items[0]} to {items[-1]}" if even else f"{items[0]}, {items[1]} and {len(items) - 2} more"
