"""A wavefront's fetches, quad by quad: the lines of the matrices that a quad touches, its clocks, and what L1 does.

From the recorded fetches of a wavefront. The texture unit takes one quad after another and a clock for each 64-byte
line that the quad touches; every such line is looked up in L1, an empty ``timing.cache.Cache`` at the start. Several
kernels or memory layouts are shown side by side and in step. Left out: other wavefronts, and when data arrive.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cypresskit.devices import HD5870, Device
from cypresskit.draw.player import Player
from cypresskit.draw.runs import listened
from cypresskit.draw.sheet import Sheet, beside, held
from cypresskit.kernels import KERNELS
from cypresskit.machine.traffic import Access, Traffic
from cypresskit.timing.cache import Cache, fold

TILE = 8  # texels along a side of a tile in the tiled layout
LINES = [("not touched", "none", ""), ("touched before", "grey", ""), ("hit", "blue", "h"), ("miss", "orange", "m")]
SETS = [("empty", "none", ""), ("line of A", "grey", "A"), ("line of B", "grey", "B"), ("hit", "blue", "h"),
        ("miss, entered", "orange", "m"), ("miss, another line evicted", "purple", "e")]  # fmt: skip
QUADS = [("to come", "none", "")] + [
    (f"{n} clocks", tint, str(n)) for n, tint in enumerate(("grey", "blue", "yellow", "orange", "purple"))
]


@dataclass(frozen=True)
class Side:
    """One panel's run: its traffic and the memory layout of its textures."""

    traffic: Traffic
    layout: str

    @property
    def name(self) -> str:
        """The kernel's name, with the layout if it is not the linear one."""
        name = self.traffic.launch.program.name.removesuffix(".il")
        return name if self.layout == "linear" else f"{name}, {self.layout}"

    def places(self, line: int) -> tuple[dict[int, Callable], dict[tuple[int, int], tuple[float, float, float, float]]]:
        """For each texture the function from texels to line numbers; for each (texture, line) the box of its texels."""
        base, of, boxes = 0, {}, {}
        for number, surface in sorted(self.traffic.launch.textures.items()):
            height, width, words = surface.words.shape
            texel = 4 * words
            side = TILE if self.layout == "tiled" else max(line // texel, 1)
            pitch = -(-width // side) * side

            def lines(x, y, base=base, pitch=pitch, texel=texel):
                if self.layout == "tiled":
                    within = y % TILE * TILE + x % TILE
                    return base + ((y // TILE * pitch + x // TILE * TILE) * TILE + within) * texel // line
                return base + (y * pitch + x) * texel // line

            of[number] = lines
            x, y = (axis.ravel() for axis in np.meshgrid(np.arange(width), np.arange(height)))
            found = lines(x, y)
            order = np.argsort(found, kind="stable")
            for part in np.split(order, np.flatnonzero(np.diff(found[order])) + 1):
                boxes[number, int(found[part[0]])] = (
                    x[part].min(),
                    y[part].min(),
                    x[part].max() + 1,
                    y[part].max() + 1,
                )
            base += (-(-height // TILE) * TILE * pitch * texel // line + 63) // 64 * 64
        return of, boxes


def texture_fetch(
    *runs: Traffic | str, layouts: Sequence[str] = (), fetches: int = 16, device: Device = HD5870
) -> Player:
    """A player of a wavefront's first ``fetches`` fetches, a frame for each quad; several runs side by side.

    ``runs`` are kernels by name, or ``Traffic`` that listened to a launch; by default "dgemm_tn" and "dgemm_nn".
    ``layouts``: for each run "linear" (the default: rows) or "tiled" (8 x 8 texels). ``device`` has L1's size and
    ways. Raises ``ValueError`` for runs without fetches.
    """
    given = runs or ("dgemm_tn", "dgemm_nn")
    blocks = [KERNELS[run].block[0] if isinstance(run, str) else 0 for run in given]  # 8 in a row are a wavefront's
    traffic = [listened(run, n=max(32, 8 * block), k=16) for run, block in zip(given, blocks)]
    sides = [Side(t, layout) for t, layout in zip(traffic, [*layouts, *["linear"] * len(traffic)])]
    sheet = Sheet("Texture fetches of a wavefront: " + " | ".join(side.name for side in sides))
    panels = [_Panel(side, fetches, device) for side in sides]
    count = max(len(panel.captions) for panel in panels)
    figures = [panel.draw(sheet, count) for panel in panels]
    captions = ["<br>".join(panel.captions[min(n, len(panel.captions) - 1)] for panel in panels) for n in range(count)]
    text = "\n".join([sheet.title, *(line for panel in panels for line in panel.text)])
    note = sheet.note(
        "A quad is four work-items. The texture unit needs a clock for each 64-byte line that a quad touches; each is "
        f"looked up in L1 ({device.l1_bytes // 1024} KB, {device.l1_ways} ways), which is empty at first."
    )
    below = [sheet.legend([*LINES, SETS[1], SETS[2], SETS[5]]), note]
    return sheet.player([beside(*figures)], captions, text, marks=range(0, count, 16), step="Quad", below=below)


class _Panel:
    """One run, replayed: what every cell shows at every frame."""

    def __init__(self, side: Side, fetches: int, device: Device) -> None:
        self.side, self.device = side, device
        self.lines_of, self.boxes = side.places(device.line_bytes)
        accesses = [a for a in side.traffic.accesses if a.kind == "fetch"][:fetches]
        if not accesses:
            raise ValueError(f"{side.name}: wavefront {side.traffic.wavefront} fetches nothing from a texture")
        self.cache = Cache(device.l1_bytes, device.l1_ways, device.line_bytes)
        self.number = {key: n for n, key in enumerate(self.boxes)}
        self.matrix = {line: number for number, line in self.boxes}
        frames = 16 * len(accesses)
        self.lines = np.zeros((frames, len(self.boxes)), np.uint8)
        self.sets = np.zeros((frames, len(self.cache.tags)), np.uint8)
        self.quads = np.zeros((frames, 16), np.uint8)
        self.running = np.zeros((2, frames, 1), np.int32)  # clocks and the hit rate in per cent so far
        self.captions: list[str] = []
        self.text = [f"{side.name}: {len(accesses)} fetches"]
        self.clocks = self.hits = self.looked = 0
        touched: set[int] = set()
        for at, access in enumerate(accesses):
            before = self.clocks, self.hits, self.looked
            for quad in range(16):
                self._quad(16 * at + quad, quad, access, touched)
            clocks, hits, looked = self.clocks - before[0], self.hits - before[1], self.looked - before[2]
            self.text.append(
                f"  line {self._line(access)}, {self._name(access)}: {clocks} clocks, {hits} of {looked} lines hit"
            )
        self.text.append(f"  {self.clocks} clocks, hit rate {self.hits / max(self.looked, 1):.1%}")

    def _line(self, access: Access) -> int:
        return self.side.traffic.launch.program.body[access.at].line

    @staticmethod
    def _name(access: Access) -> str:
        return {0: "A", 1: "B"}.get(access.resource, f"resource {access.resource}")

    def _quad(self, frame: int, quad: int, access: Access, touched: set[int]) -> None:
        """Look up the lines of a quad and note what is seen."""
        on = np.flatnonzero(access.active[4 * quad : 4 * quad + 4]) + 4 * quad
        assert access.x is not None and access.y is not None
        wanted = list(dict.fromkeys(self.lines_of[access.resource](access.x[on], access.y[on]).tolist()))
        self.lines[frame, list(touched)] = 1
        new, evicted = {}, 0
        for line in wanted:
            first = fold(line, self.cache.bits) * self.cache.ways
            old = self.cache.tags[first : first + self.cache.ways].copy()
            hit = self.cache.access(line * self.device.line_bytes) == "h"
            way = first + int(np.flatnonzero(self.cache.tags[first : first + self.cache.ways] == line)[0])
            gone = not hit and bool(old[way - first] >= 0)
            new[way], evicted = 3 if hit else 5 if gone else 4, evicted + gone
            self.lines[frame, self.number[access.resource, line]] = 2 if hit else 3
            self.hits += hit
        touched |= {self.number[access.resource, line] for line in wanted}
        full = np.flatnonzero(self.cache.tags >= 0)
        self.sets[frame, full] = [1 + min(self.matrix[int(self.cache.tags[way])], 1) for way in full]
        self.sets[frame, list(new)] = list(new.values())
        self.clocks, self.looked = self.clocks + len(wanted), self.looked + len(wanted)
        self.quads[frame] = np.append(self.quads[frame - 1, :quad] if quad else [], [0] * (16 - quad))
        self.quads[frame, quad] = 1 + len(wanted)
        rate = self.hits / max(self.looked, 1)
        self.running[:, frame, 0] = self.clocks, round(100 * rate)
        hits, thrown = sum(kind == 3 for kind in new.values()), f", {evicted} evicted" * (evicted > 0)
        self.captions.append(
            f"<b>{self.side.name}</b>, line {self._line(access)} fetches {self._name(access)}: quad {quad + 1} of 16 "
            f"touches {len(wanted)} line{'s' * (len(wanted) != 1)}, {hits} hit{thrown}. "
            f"{self.clocks} clocks so far, hit rate {rate:.0%}."
        )

    def draw(self, sheet: Sheet, count: int):
        """The panel's figure: quads and L1 on top, the matrices below."""
        lines, sets, quads = (held(frames, count) for frames in (self.lines, self.sets, self.quads))
        name, ways = self.side.name, self.cache.ways
        rows = len(self.cache.tags) // ways
        shapes = {n: (s.words.shape[0], s.words.shape[1]) for n, s in self.side.traffic.launch.textures.items()}
        left, right, unit = {}, 0.0, {}
        for number in sorted(shapes):  # matrices fit a box 17 high and share 30 across
            height, width = shapes[number]
            unit[number] = min(13.0 / width, 2.0), min(17.0 / height, 1.2)
            left[number], right = right, right + unit[number][0] * width + 2
        top = 12.0
        fig = sheet.plot(f"{name}: quads, L1, and the matrices as 64-byte lines", (-1.2, 30), (29.6, -4.4))
        sheet.words(fig, [0], [-3.4], [name], bold=True, size=13)
        for at, title, prefix, numbers in zip(
            (12, 20), ("clocks", "rate"), ("clocks: ", "hit rate, %: "), self.running
        ):
            sheet.numbers(fig, f"{title} {name}", [at], [-3.4], held(numbers, count), prefix=prefix)
        heads = ["Quads: clocks", f"L1: {rows} sets across, {ways} ways down"]
        sheet.words(fig, [0, 12], [-1.4] * 2, heads, bold=True)
        x, y = np.arange(16) % 4 * 2 + 1.0, np.arange(16) // 4 * 2 + 1.0
        words = [f"quad {n + 1}, clocks" for n in range(16)]
        sheet.cells(fig, f"quads {name}", x, y, quads, QUADS, w=1.85, h=1.85, words=words, size=12, fit=1)
        all_ways = np.arange(rows * ways)
        words = [f"set {n // ways}, way {n % ways}:" for n in all_ways]
        across = 17 / rows
        x, y = 12 + (all_ways // ways + 0.5) * across, (all_ways % ways + 0.5) * 8.5 / ways
        sheet.cells(fig, f"sets {name}", x, y, sets, SETS, w=0.94 * across, h=8 / ways, words=words, size=8, fit=0.8)
        boxes, words = [], []
        for (number, line), (x0, y0, x1, y1) in self.boxes.items():
            u, v = unit[number]
            boxes.append(
                (left[number] + (x0 + x1) / 2 * u, top + (y0 + y1) / 2 * v, (x1 - x0) * u - 0.1, (y1 - y0) * v - 0.1)
            )
            words.append(
                f"{'AB'[number] if number < 2 else number}, rows from {y0}, texels {x0} to {x1 - 1}, line {line}"
            )
        x, y, w, h = (np.array(values) for values in zip(*boxes))
        sheet.cells(
            fig,
            f"lines {name}",
            x,
            y,
            lines,
            LINES,
            w="w",
            h="h",
            words=words,
            size=8,
            fit=min(0.8, 0.85 * h.min()),
            more={"w": w, "h": h},
        )
        names = [f"{'AB'[n] if n < 2 else n}: {shapes[n][0]} x {shapes[n][1]} texels" for n in sorted(shapes)]
        sheet.words(fig, list(left.values()), [top - 1.2] * len(left), names, bold=True)
        return fig
