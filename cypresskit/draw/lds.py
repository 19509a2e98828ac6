"""A tile of A on its way through the LDS: who writes what where, which banks are asked, and what conflicts cost.

From the recorded LDS accesses of a wavefront during one turn of the loop. Sixteen work-items ask in a clock; a bank
answers one word a clock, to all who want the same; ``timing.lds`` counts. Left out: what other wavefronts do meanwhile.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.draw.player import Player
from cypresskit.draw.runs import listened
from cypresskit.draw.sheet import Sheet, beside
from cypresskit.machine.traffic import Access, Traffic
from cypresskit.timing.lds import access_clocks

KINDS = [("empty", "none", ""), ("in the LDS", "grey", ""), ("stored", "orange", "s"), ("loaded", "blue", "l")]
KINDS += [("loaded by the chosen work-item", "green", "L")]
ASKED = [("nobody", "none", "")] + [
    (f"{n} words", "blue" if n < 2 else "yellow" if n < 3 else "orange", str(n)) for n in range(1, 33)
]


def lds_transpose(*layouts: Traffic | str, item: int = 9, turn: int = 1) -> Player:
    """A player of one loop turn's LDS accesses, a frame for each; several layouts side by side.

    ``layouts`` are kernels that use the LDS, by name, or ``Traffic`` that listened to a launch of one; by default
    "sgemm_64x64_lds" and "sgemm_64x64_lds_rows". ``item`` (0 to 63) is the work-item whose reads are marked, ``turn``
    the turn of the loop, from 1. Raises ``ValueError`` for runs without LDS accesses in that turn.
    """
    runs = [listened(layout) for layout in layouts or ("sgemm_64x64_lds", "sgemm_64x64_lds_rows")]
    sheet = Sheet("A through the LDS: " + ", ".join(_name(run) for run in runs))
    turns = [_turn(run, turn) for run in runs]
    count = max(len(accesses) for accesses in turns)
    panels = [_Panel(sheet, run, accesses, item, count) for run, accesses in zip(runs, turns)]
    captions = [
        f"Access {frame + 1} of {count}. " + "<br>".join(panel.captions[frame] for panel in panels)
        for frame in range(count)
    ]
    text = "\n".join([sheet.title, *(line for panel in panels for line in panel.text())])
    kinds = [*KINDS[:-1], (f"loaded by work-item {item}", *KINDS[-1][1:])]
    note = sheet.note(
        "Each work-item has fetched a float4 of A, four steps of k of one row. The lowest part: how many different"
        " words the 16 work-items of a clock (two words each) ask of each of the 32 banks. More than one is a conflict:"
        " the others wait, and a row takes as many clocks as its largest number."
    )
    rows = [beside(*(panel.layout for panel in panels))]
    marks = [n for n, access in enumerate(turns[0]) if access.kind == "store"]
    return sheet.player(rows, captions, text, marks=marks, step="Access", below=[sheet.legend(kinds), note])


def _name(run: Traffic) -> str:
    return run.launch.program.name.removesuffix(".il").removeprefix("sgemm_64x64_")


def _turn(run: Traffic, turn: int) -> list[Access]:
    """The LDS accesses of a turn: from one time that the first of them runs to the next."""
    lds = [access for access in run.accesses if access.kind != "fetch"]
    starts = [n for n, access in enumerate(lds) if access.at == lds[0].at]
    if not 1 <= turn <= len(starts):
        raise ValueError(
            f"{run.launch.program.name}: turn {turn} of {len(starts)} with LDS accesses. The kernel has to use the LDS "
            "(sgemm_64x64_lds does), and the run to be long enough."
        )
    return lds[starts[turn - 1] : [*starts, len(lds)][turn]]


class _Panel:
    """One run: the LDS bank by bank, and below it how often each bank is asked."""

    def __init__(self, sheet: Sheet, run: Traffic, accesses: Sequence[Access], item: int, count: int) -> None:
        self.name, self.accesses, self.banks = _name(run), accesses, HD5870.lds_banks
        words = 1 + max(int(a.addresses.max()) // 4 for a in accesses if a.addresses is not None)
        rows = -(-words // self.banks)
        cells = np.zeros((count, rows * self.banks), np.uint8)
        tile = np.zeros((count, 256), np.uint8)  # the float4s: work-item, component
        per = HD5870.lds_items_clock
        most = max(len(a.addresses) for a in accesses if a.addresses is not None)
        groups = 64 // per * -(-most // 2)  # times that 16 work-items ask, two words each
        asked = np.zeros((count, groups, self.banks), np.uint8)
        self.clocks = np.zeros((count, groups), np.int64)
        held: dict[int, int] = {}  # what lies in a word: its place in the tile
        self.captions, self.totals, total = [], [], 0
        kinds = [access.kind for access in accesses]
        self.rounds = np.cumsum([here == "store" != last for last, here in pairwise(["load", *kinds])])
        for frame in range(count):
            access = accesses[min(frame, len(accesses) - 1)]
            assert access.addresses is not None
            places = access.addresses // 4
            if frame < len(accesses):
                total += self._ask(access, asked[frame], self.clocks[frame])
            i = run.launch.program.body[access.at]
            if access.kind == "store":
                components = ["xyzw".index(c) for c in i.sources[-1].swizzle[: len(places)]]
                own = 4 * np.arange(64) + np.array(components)[:, np.newaxis]
                held |= dict(zip(places[:, access.active].ravel().tolist(), own[:, access.active].ravel().tolist()))
            cells[frame, list(held)] = tile[frame, list(held.values())] = 1
            state = 2 if access.kind == "store" else 3
            for now, kind in ((places[:, access.active], state), (places[:, item], 4 if state == 3 else 2)):
                cells[frame, now.ravel()] = kind
                tile[frame, [held[word] for word in now.ravel().tolist() if word in held]] = kind
            self.totals.append(total)
            self.captions.append(self._caption(run, access, frame, item, places))
        self.layout = self._draw(sheet, tile, cells, asked, groups, rows)

    def _ask(self, access: Access, asked: np.ndarray, clocks: np.ndarray) -> int:
        per, addresses = HD5870.lds_items_clock, access.addresses
        assert addresses is not None
        row = 0
        for first in range(0, len(addresses), 2):
            for at in range(0, 64, per):
                active = np.zeros(64, bool)
                active[at : at + per] = access.active[at : at + per]
                pair = addresses[first : first + 2]
                wanted = np.unique(pair[:, active] // 4)
                np.add.at(asked[row], wanted % self.banks, 1)
                clocks[row] = access_clocks(pair[np.newaxis], HD5870, active[np.newaxis])[0]
                row += 1
        return int(clocks.sum())

    def _caption(self, run: Traffic, access: Access, frame: int, item: int, places: np.ndarray) -> str:
        if frame >= len(self.accesses):
            return f"<b>{self.name}</b>: done after {self.totals[-1]} clocks."
        i = run.launch.program.body[access.at]
        what = "stores" if access.kind == "store" else "loads"
        where = ", ".join(f"{p} (bank {p % self.banks})" for p in places[:, item].tolist())
        return (
            f"<b>{self.name}</b>, round {self.rounds[frame]} of {self.rounds[-1]}, line {i.line}: "
            f"work-item {item} {what} word {where}. {self.clocks[frame].sum()} clocks, {self.totals[-1]} so far."
        )

    def _draw(self, sheet: Sheet, tile, cells, asked: np.ndarray, groups: int, rows: int):
        banks, shown = self.banks, min(rows, 8)
        tops = np.cumsum([0, 8 + 3.2, shown + 3.2])  # of the float4s, the LDS, the banks
        label = f"{self.name}: the float4s of 64 work-items, {rows} rows of {banks} LDS banks, words asked of each bank"
        fig = sheet.plot(label, (-4.4, banks + 3.6), (tops[2] + groups + 0.5, -2.8))
        more = f", the first {shown} of {rows} rows" if rows > shown else ""
        heads = ["A's float4 in each work-item", f"LDS of {self.name}{more}", "Words asked of each bank"]
        sheet.words(fig, [0] * 3, tops - [1.9, 1.9, 0.9], heads, bold=True)
        sheet.words(fig, [banks], tops[2:] - 0.9, ["clocks"], "soft", size=10)
        item_words = [f"work-item {n // 4}, {'xyzw'[n % 4]}:" for n in range(256)]
        words = [f"word {n}, bank {n % banks}:" for n in range(shown * banks)]
        asked = np.minimum(asked, 32).reshape(len(asked), -1)
        parts = (("tile", tile, KINDS, 8, item_words), ("lds", cells[:, : shown * banks], KINDS, shown, words))
        for top, (name, states, kinds, high, hover) in zip(tops, (*parts, ("banks", asked, ASKED, groups, ()))):
            x, y = (axis.ravel() + 0.5 for axis in np.meshgrid(np.arange(banks), np.arange(high) + top))
            sheet.cells(fig, f"{name} {self.name}", x, y, states, kinds, words=hover, size=8, fit=0.72)
        ticks = np.array([0, 8, 16, 24, 31])
        for high, names in ((0, [f"{n // 4}.{'xyzw'[n % 4]}" for n in ticks]), (tops[1], [f"{n}" for n in ticks])):
            sheet.words(fig, ticks + 0.5, [high - 0.6] * 5, names, "soft", align="center", size=10, fit=0.7)
        sides = [(f"{8 * r}-{8 * r + 7}", r) for r in range(8)] + [("bank", tops[1] - 1.1)]
        sides += [(f"{16 * (g % 4)}-{16 * (g % 4) + 15}", tops[2] + g) for g in range(groups)]
        titles, down = zip(*sides)
        sheet.words(fig, [-0.3] * len(sides), np.array(down) + 0.5, titles, "soft", align="right", size=10, fit=0.7)
        clocks = np.where(self.clocks > 0, self.clocks, -1)
        place = np.full(groups, banks + 0.6), np.arange(groups) + tops[2] + 0.5
        sheet.numbers(fig, f"clocks {self.name}", *place, clocks, size=11, fit=0.8)
        return fig

    def text(self) -> list[str]:
        lines = [f"{self.name}: {len(self.accesses)} accesses, {self.totals[-1]} clocks"]
        for n, access in enumerate(self.accesses):
            assert access.addresses is not None
            lines.append(
                f"  {n + 1:2} {access.kind:5} {len(access.addresses)} x 32 bits, {self.clocks[n].sum()} clocks, "
                f"{self.totals[n]} so far"
            )
        return lines
