"""The chip at work: wavefronts leave the map of C for a SIMD engine, stay there while they run, and
come back done.

From timing reports, each drawn over its own time: when and on which engine each wavefront ran, how
busy arithmetic and texture units, L2 slices and memory channels were. Several reports (sizes of a
matrix, kernels) are scenes of one picture. Left out: everything after the simulated time, if only a
part of the launch was simulated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cypresskit.devices import Device
from cypresskit.draw.followed import wavefront_of
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty, together
from cypresskit.kernels import KERNELS
from cypresskit.timing import Report, simulate
from cypresskit.timing.report import Use

SIZES = (128, 256, 512, 1024, 2048)
FRAMES = 120  # of a report
WIDE, HIGH, MAP, TOP = 1250, 424, 224, 46  # the stage, the map of C and where it begins
LEFT, ENGINES_WIDE, ENGINE_HIGH = (
    268,
    974,
    72,
)  # the engines' left edge, the room of a row of them and its height
ENGINES = 50_000  # what an engine's number is added to, to be a key
DOT = 12  # a wavefront's width
TILES = 1024  # in the map at most: then a tile stands for several wavefronts
STATES = [
    "rgba(128,128,128,0.16)",
    "rgba(0,158,115,0.38)",
    "rgba(0,158,115,1)",
]  # to come, running, done
IDLE = ["rgba(128,128,128,0.05)", "rgba(128,128,128,0.20)"]


def chip(
    reports: Report | Sequence[Report] | str = "sgemm_tn", sizes: Sequence[int] = SIZES
) -> Player:
    """A player of the chip over the time of a report, or of several, one scene each.

    ``reports`` come from ``simulate``, all for boards with equally many parts; a kernel's name is
    simulated for ``sizes``. Raises ``ValueError`` if there are none, or if the boards differ.
    """
    if isinstance(reports, str):
        reports = [simulate(reports, n) for n in sizes]
    drawn = nonempty(reports, "pass reports of simulate, or a kernel's name", Report)
    if (
        len({(r.device.simd_engines, r.device.memory_channels, r.device.l2_slices) for r in drawn})
        != 1
    ):
        raise ValueError(
            "the chip is drawn for one or more reports, all of boards with the same parts"
        )
    sheet = Sheet(f"The chip at work: {', '.join(dict.fromkeys(r.kernel for r in drawn))}")
    alone = len({r.kernel for r in drawn}) == 1
    scenes = [_Scene(r, r.use, 100_000 * n, alone) for n, r in enumerate(drawn) if r.use]
    if len(scenes) < len(drawn):
        raise ValueError(
            "the chip is drawn from reports that tell what its parts did: those of simulate"
        )
    for scene in scenes:
        wavefront = wavefront_of(KERNELS.get(scene.report.kernel), scene.report.size)
        sheet.mine |= set() if wavefront is None or scene.grid()[2] > 1 else {scene.key + wavefront}
    parts = f"{drawn[0].device.simd_engines} SIMD engines, {drawn[0].device.l2_slices} L2 slices"
    across, rows = _rows(drawn[0].device)
    high = HIGH + max(rows - 4, 0) * ENGINE_HIGH
    sheet.stage(f"A map of C and {parts} and the memory channels", WIDE, high)
    _draw_map(sheet, scenes)
    places = _draw_engines(sheet, scenes, across, rows)
    _draw_memory(sheet, scenes, TOP - 20 + (rows + 1) // 2 * ENGINE_HIGH)
    _draw_running(sheet, scenes, high - 46)
    if alone and len(scenes) > 1:
        _draw_real_clock(sheet, scenes)
    x, y, wide, key = map(
        together, zip(*(scene.dots(places) for scene in scenes)), (np.nan, np.nan, 0.05, -1)
    )
    sheet.boxes("dots", x, y, wide, DOT, ink="ink", key=key, moves=("x", "y", "w"), round=6)
    legend = sheet.key(
        ("tile to come", "rgba(128,128,128,.3)", "box"),
        ("its wavefront runs", "c", "pale"),
        ("tile done", "c", "box"),
        ("a wavefront", "ink", "box"),
        ("arithmetic (ALU)", "alu", "box"),
        ("texture unit", "texture", "box"),
        ("L2, memory channel", "texture", "pale"),
    )
    captions = [scene.say(frame) for scene in scenes for frame in range(FRAMES)]
    lines = (f"{scene.name}: {scene.report.wavefronts} wavefronts" for scene in scenes)
    named = [(scene.name, FRAMES) for scene in scenes]
    tells = len(captions) - FRAMES // 2
    return sheet.player(
        captions, lines, below=[legend], step="Moment", scenes=named, lasts=12, tells=tells
    )


@dataclass(frozen=True, eq=False)
class _Scene:
    """A report, its record of the units, the key of its first wavefront, and whether all scenes are
    of one kernel.
    """

    report: Report
    use: Use
    key: int
    alone: bool

    @property
    def name(self) -> str:
        size = self.report.size
        if size is None or not self.alone:
            return self.report.kernel
        return f"N = {size[0]}" if len(set(size)) == 1 else " x ".join(map(str, size))

    @property
    def clocks(self) -> np.ndarray:
        """The clock of each frame; the last frame is the end."""
        return np.linspace(0, self.use.clocks[-1], FRAMES)

    @property
    def wavefronts(self) -> np.ndarray:
        """(engine, start, end) of each wavefront that was simulated."""
        return self.use.wavefronts

    @property
    def running(self) -> np.ndarray:
        """Whether each wavefront is running, of shape (frames, wavefronts)."""
        _, start, end = self.wavefronts.T
        return (start < self.clocks[:, np.newaxis]) & (end > self.clocks[:, np.newaxis])

    def share(self, name: str) -> np.ndarray:
        """Use of each unit of a kind in each frame, in per cent; for hit rates, -1 where nothing
        was asked for.
        """
        interval = np.clip(
            np.searchsorted(self.use.clocks, self.clocks, "right") - 1, 0, len(self.use.clocks) - 2
        )
        shares = np.nan_to_num(np.round(100 * self.use.shares[name][interval]), nan=-1).astype(int)
        shares[[0, -1]] = np.minimum(shares[[0, -1]], 0)
        return shares

    def grid(self) -> tuple[int, int, int]:
        """The map of C: tiles across, tiles down, and wavefronts to a tile."""
        count = self.report.wavefronts
        per_tile = -(-count // TILES)
        tiles = -(-count // per_tile)
        kernel, size = KERNELS.get(self.report.kernel), self.report.size
        across = (
            -(-size[1] // (8 * kernel.block[1]))
            if kernel and size and size[1] > 1 and per_tile == 1
            else 0
        )
        across = across if 0 < across <= tiles else int(np.ceil(np.sqrt(tiles)))
        return across, -(-tiles // across), per_tile

    def tile(self, wavefront: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Centre x, centre y and size of the tile of each wavefront in the map."""
        across, down, per_tile = self.grid()
        size = min(MAP / across, MAP / down, 40.0)
        number = wavefront // per_tile
        return 12 + (number % across + 0.5) * size, TOP + (number // across + 0.5) * size, size

    def tiles(self) -> list[np.ndarray]:
        """x, y, size, state and key of the map's tiles in each frame."""
        per_tile, count = self.grid()[2], self.report.wavefronts
        number = np.arange(-(-count // per_tile))
        _, start, end = self.wavefronts.T
        clock, owner = self.clocks[:, np.newaxis], np.arange(len(start)) // per_tile
        begun, over = (
            np.stack([np.bincount(owner, row, minlength=len(number)) for row in part])
            for part in (start < clock, end <= clock)
        )
        state = np.where(over == np.bincount(np.arange(count) // per_tile), 2, begun > 0)
        x, y, size = self.tile(number * per_tile)
        key = self.key + number if per_tile == 1 else -1
        return [np.broadcast_to(part, state.shape) for part in (x, y, size - 1, state, key)]

    def dots(self, places: np.ndarray) -> tuple[np.ndarray, ...]:
        """x, y, width (0 while it doesn't run) and key of each wavefront in each frame, from its
        tile to a slot of its engine and back. Two take turns in a slot; ``places`` (engines, slots,
        2) are the slots' centres.
        """
        engines, slots, _ = places.shape
        xy = np.full((2, FRAMES, 2 * engines * slots), np.nan, np.float32)
        wide = np.full(xy.shape[1:], 0.05, np.float32)
        key, step = np.full(xy.shape[1:], -1), self.clocks[1]
        free, turns = np.zeros((engines, slots)), np.zeros((engines, slots), int)
        x, y, _ = self.tile(np.arange(len(self.wavefronts)))
        _, _, per_tile = self.grid()
        for wavefront, (engine, start, end) in enumerate(self.wavefronts):
            e = int(engine)
            slot = int(np.argmax(free[e] <= start + 1))
            free[e, slot], turns[e, slot] = end, turns[e, slot] + 1
            dot = 2 * (e * slots + slot) + turns[e, slot] % 2
            first, last = int(start / step) + 1, min(int(np.ceil(end / step)), FRAMES - 1)
            xy[:, first:last, dot] = places[e, slot][:, np.newaxis]
            xy[:, [first - 1, last], dot] = np.array([x[wavefront], y[wavefront]])[:, np.newaxis]
            wide[first:last, dot] = DOT
            key[first:last, dot] = self.key + wavefront if per_tile == 1 else -1
        return *xy, wide, key

    def story(self, engine: int) -> str:
        """A sentence on what an engine does in the whole run."""
        ran = np.flatnonzero(self.wavefronts[:, 0] == engine)
        some = ", ".join(map(str, ran[:12])) + f" and {len(ran) - 12} more" * (len(ran) > 12)
        return f"**SIMD engine {engine}** at {self.name}: " + (
            f"runs wavefront{'s' * (len(ran) > 1)} {some}." if len(ran) else "idle."
        )

    def say(self, frame: int) -> str:
        r, clock = self.report, self.clocks[frame]
        end = self.wavefronts[:, 2]
        now = int(self.running[frame].sum())
        engines = len(np.unique(self.wavefronts[self.running[frame], 0]))
        part = (
            ""
            if r.simulated == 1
            else f" ({100 * r.simulated:.0f} % of it simulated, the rest worked out)"
        )
        over = (
            f", {r.gflops:.0f} Gflop/s, {r.percent:.0f} % of peak, bound by {r.bound}"
            if frame == FRAMES - 1
            else ""
        )
        size = ""
        if r.size:
            m, n, k = r.size
            size = f" {m} x {k}" if n == 1 else f" {m} x {n} x {k}"
        return (
            f"**{r.kernel}{size}** on the {r.device.name}. Clock {clock:,.0f} of"
            f" {self.clocks[-1]:,.0f}{part}: {now} wavefronts run, on {engines} of"
            f" {r.device.simd_engines} engines; {int((end <= clock).sum())} done{over}."
        )


def _draw_map(sheet: Sheet, scenes: Sequence[_Scene]) -> None:
    for scene in scenes:
        for wavefront, (engine, begin, stop) in (
            enumerate(scene.wavefronts) if scene.grid()[2] == 1 else ()
        ):
            sheet.about[scene.key + wavefront] = (
                f"**Wavefront {wavefront}** of {scene.name}: runs on SIMD engine {engine:.0f} from"
                f" clock {begin:,.0f} to {stop:,.0f}."
            )
    columns = zip(*(scene.tiles() for scene in scenes))
    x, y, size, state, key = map(together, columns, (np.nan, np.nan, np.nan, 0, -1))
    vector = all(scene.report.size and scene.report.size[1] == 1 for scene in scenes)
    sheet.words(12, 14, f"{'y' if vector else 'C'}: a tile for each wavefront", bold=True, size=14)
    sheet.boxes("map", x, y, size, size, fill=(STATES, state), key=key)
    done = np.concatenate(
        [(scene.wavefronts[:, 2] <= scene.clocks[:, np.newaxis]).sum(axis=1) for scene in scenes]
    )
    now = np.concatenate([scene.running.sum(axis=1) for scene in scenes])
    whole = np.repeat([len(scene.wavefronts) for scene in scenes], FRAMES)
    counts = (
        ("to come: ", whole - now - done, "soft"),
        ("running: ", now, "ink"),
        ("done: ", done, "c"),
    )
    for n, (prefix, values, ink) in enumerate(counts):
        sheet.numbers(
            prefix[:-2], 12, TOP + MAP + 22 + 22 * n, values, prefix=prefix, ink=ink, size=15
        )


def _rows(device: Device) -> tuple[int, int]:
    """SIMD engines side by side, and rows of them: five and four for the HD 5870."""
    across = 5 if device.simd_engines <= 20 else 10
    return across, -(-device.simd_engines // across)


def _draw_engines(sheet: Sheet, scenes: Sequence[_Scene], across: int, rows: int) -> np.ndarray:
    """Draw the engines with their bars. Returns the centres of all slots, of shape (engines, slots,
    2).
    """
    engines, slots = (
        scenes[0].report.device.simd_engines,
        max(scene.report.active for scene in scenes),
    )
    number = np.arange(engines)
    wide, high = (ENGINES_WIDE + 6) // across - 6, ENGINE_HIGH - 6
    x = LEFT + number % across * (wide + 6)
    y = TOP - 20 + number // across * ENGINE_HIGH + 54 * (number // across >= (rows + 1) // 2)
    runs = (scene.wavefronts[now, 0].astype(int) for scene in scenes for now in scene.running)
    busy = np.stack([np.bincount(on, minlength=engines) for on in runs])
    words = [f"SIMD engine {n}" for n in number]
    keys = np.repeat([scene.key + ENGINES + number for scene in scenes], FRAMES, axis=0)
    for scene in scenes:
        sheet.about |= {scene.key + ENGINES + n: scene.story(n) for n in range(engines)}
    sheet.boxes(
        "engines",
        x + wide / 2,
        y + high / 2,
        wide,
        high,
        fill=(IDLE, busy > 0),
        words=words,
        line="line",
        busy=busy,
        key=keys,
        tip="@words, wavefronts: @busy",
    )
    sheet.words(x + 6, y + 11, [f"{'engine ' * (across == 5)}{n}" for n in number], "soft", size=12)
    for place, (unit, ink) in enumerate((("ALU", "alu"), ("texture", "texture"))):
        share = together([scene.share(unit) for scene in scenes], 0)
        tall = np.maximum(share, 0.5) / 100 * (high - 14)
        left, foot = x + wide - 28 + 14 * place, y + high - 7
        tips = [f"SIMD engine {n}, {unit}" for n in number]
        sheet.boxes(f"room {unit}", left, y + high / 2, 10, high - 14, ink="faint")
        bars = sheet.boxes(
            unit,
            left,
            foot - tall / 2,
            10,
            tall,
            ink=ink,
            moves=("y", "h"),
            percent=share,
            words=tips,
            tip="@words: at work @percent %; @found",
        )
        _tell_hits(sheet, bars, scenes, "L1")
    beside = -(-slots // 2) if slots > 4 else slots
    slot = np.arange(slots)
    step = min(22.0, (wide - 44) / beside)
    down = 30 + slot // beside * min(20.0, step + 4)
    places = np.stack(
        [
            *np.broadcast_arrays(
                x[:, np.newaxis] + 14 + slot % beside * step, y[:, np.newaxis] + down
            )
        ],
        -1,
    )
    side = min(14.0, step - 3)
    sheet.boxes(
        "slots", places[..., 0].ravel(), places[..., 1].ravel(), side, side, line="line", round=7
    )
    return places


def _tell_hits(sheet: Sheet, bars, scenes: Sequence[_Scene], cache: str) -> None:
    """Hover texts for a cache: the share of the requested lines that it held."""
    hits = together([scene.share(f"{cache} hits") for scene in scenes], -1)
    names = [
        "it is asked for nothing",
        *(f"{cache} has {percent} % of the lines" for percent in range(101)),
    ]
    sheet.track(bars, "hits", hits + 1, text="found", names=names)


def _draw_memory(sheet: Sheet, scenes: Sequence[_Scene], middle: float) -> None:
    for n, (name, title) in enumerate((("L2", "L2 slice"), ("DRAM", "memory channel"))):
        share = together([scene.share(name) for scene in scenes], 0)
        count = share.shape[1]
        room = ENGINES_WIDE / count
        left, y = LEFT + np.arange(count) * room, middle + 9 + 24 * n
        sheet.boxes(f"room {name}", left + room / 2, y, room - 6, 19, ink="faint", line="line")
        long = np.maximum(share, 0.5) / 100 * (room - 6)
        tip = "@words: at work @percent %" + "; @found" * (name == "L2")
        words = [f"{title} {i}" for i in range(count)]
        bars = sheet.boxes(
            name,
            left + 3 + long / 2,
            y,
            long,
            19,
            ink="texture",
            alpha=0.45,
            moves=("x", "w"),
            percent=share,
            words=words,
            tip=tip,
        )
        if name == "L2":
            _tell_hits(sheet, bars, scenes, name)
        sheet.words(
            left + room / 2,
            y,
            [f"{title.split()[n]} {i}" for i in range(count)],
            size=12,
            align="center",
        )


def _draw_running(sheet: Sheet, scenes: Sequence[_Scene], top: float) -> None:
    """A chart of the number of running wavefronts: it rises, stays level, and drains."""
    wide, high = ENGINES_WIDE, 40
    slots = max(scene.report.active for scene in scenes) * scenes[0].report.device.simd_engines
    count = np.concatenate([np.tile(scene.running.sum(axis=1), (FRAMES, 1)) for scene in scenes])
    tall = np.maximum(count / slots * high, 3 * (count > 0))  # a few are seen, too
    pitch = wide / FRAMES
    x = LEFT + (np.arange(FRAMES) + 0.5) * pitch
    sheet.boxes("room running", LEFT + wide / 2, top + high / 2, wide, high, ink="faint", alpha=0.6)
    sheet.boxes(
        "run",
        np.tile(x, (len(tall), 1)),
        top + high - tall / 2,
        pitch + 0.3,
        tall,
        ink="c",
        alpha=0.45,
    )
    sheet.rule("head", np.tile(x, len(scenes)), top + high / 2, high, 2.5)
    words = f"wavefronts running, of {slots} that fit"
    sheet.words(LEFT + wide, top - 8, words, "soft", size=12, align="right")


def _draw_real_clock(sheet: Sheet, scenes: Sequence[_Scene]) -> None:
    """All scenes on one clock, launch included: small launches end at once, and do little."""
    top, left, wide = TOP + MAP + 81, 84, 96
    longest, shown = (
        max(scene.report.seconds for scene in scenes),
        np.repeat(np.arange(len(scenes)), FRAMES),
    )
    sheet.words(12, top, f"real clock, with launch: {1e3 * longest:.3g} ms", "soft", size=12)
    for n, scene in enumerate(scenes):
        y, r = top + 15 + 13 * n, scene.report
        launch = r.device.launch_us * 1e-6
        now = np.tile(launch + (r.seconds - launch) * np.linspace(0, 1, FRAMES), len(scenes))
        length = wide * np.where(shown == n, now, 0) / longest
        over = (shown == n) & (np.arange(len(shown)) % FRAMES == FRAMES - 1)
        sheet.words(12, y, scene.name, size=11)
        whole = max(wide * r.seconds / longest, 1)
        sheet.boxes(f"time {scene.name}", left + whole / 2, y, whole, 8, ink="line")
        so_far = np.maximum(length, 0.01)[:, np.newaxis]
        sheet.boxes(
            f"time so far {scene.name}",
            left + so_far / 2,
            y,
            so_far,
            8,
            ink="read",
            moves=("x", "w"),
        )
        names = ["", f"{r.gflops:.0f} Gflop/s"]
        sheet.numbers(
            f"speed {scene.name}",
            left + wide + 4,
            y,
            over.astype(int),
            names=names,
            bold=True,
            size=11,
        )
