"""The chip at work: wavefronts leave the map of C for a SIMD engine, stay there while they run, and
come back done.

From timing reports, each drawn over its own time: when and on which engine each wavefront ran, how
busy arithmetic and texture units, L2 slices and memory channels were. Several reports (sizes of a
matrix, kernels) are scenes of one picture.

A report on a long launch may have simulated only some of its rounds of wavefronts. Then the time
axis is torn in the middle: there stand as many wavefronts and clocks as were left out, and clocks
and counts behind the tear are those of the whole launch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cypresskit.devices import Device
from cypresskit.draw.element import follow, wavefront_of
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty, together
from cypresskit.kernels.own import Source, resolve
from cypresskit.timing import Report, simulate
from cypresskit.timing.report import Use

SIZES = (128, 256, 512, 1024, 2048)
FRAMES = 120  # of a report
TORN = FRAMES // 2  # the first frame behind a tear
TILES = 1024  # in the map at most: then a tile stands for several wavefronts
ENGINES = 50_000  # what an engine's number is added to, to be a key
# Of a tile: to come, running, done.
STATES = ["rgba(128,128,128,0.16)", "rgba(0,158,115,0.38)", "rgba(0,158,115,1)"]
IDLE = ["rgba(128,128,128,0.05)", "rgba(128,128,128,0.20)"]


@dataclass(frozen=True)
class _Layout:
    """Where the parts stand on the stage, in pixels, for a device's engines side by side
    (``across``) in ``rows``.
    """

    across: int
    rows: int
    width: int = 1250
    map_side: int = 224
    top: int = 46  # of the map
    left: int = 268  # of the engines
    engines_width: int = 974
    engine_height: int = 72
    dot: int = 12  # a wavefront's width

    @classmethod
    def of(cls, device: Device) -> "_Layout":
        """Five by four engines for the HD 5870."""
        across = 5 if device.simd_engines <= 20 else 10
        return cls(across, -(-device.simd_engines // across))

    @property
    def height(self) -> int:
        return 424 + max(self.rows - 4, 0) * self.engine_height

    @property
    def memory_top(self) -> float:
        """Of the L2 slices and the memory channels, which stand between the rows of engines."""
        return self.top - 20 + (self.rows + 1) // 2 * self.engine_height


def chip(
    reports: Report | Sequence[Report] | Source = "sgemm_tn",
    sizes: Sequence[int] = SIZES,
    *,
    element: tuple[int, int] | None = None,
) -> Player:
    """A player of the chip over the time of a report, or of several, one scene each.

    ``reports`` come from ``simulate``, all for boards with equally many parts; a kernel is
    simulated for ``sizes``. ``element``, a row and a column of C, gets a star: its tile, and its
    wavefront while that runs. Raises ``ValueError`` if there are no reports, or if the boards
    differ.
    """
    if isinstance(reports, Source):
        kernel = resolve(reports)
        reports = [simulate(kernel, n) for n in sizes]
    drawn = nonempty(reports, "pass reports of simulate, or a kernel's name", Report)
    boards = {(r.device.simd_engines, r.device.memory_channels, r.device.l2_slices) for r in drawn}
    if len(boards) != 1:
        raise ValueError(
            "the chip is drawn for one or more reports, all of boards with the same parts"
        )
    alone = len({r.kernel for r in drawn}) == 1
    scenes = [_Scene(r, r.use, 100_000 * n, alone) for n, r in enumerate(drawn) if r.use]
    if len(scenes) < len(drawn):
        raise ValueError(
            "the chip is drawn from reports that tell what its parts did: those of simulate"
        )
    device, layout = drawn[0].device, _Layout.of(drawn[0].device)
    sheet = Sheet(f"The chip at work: {', '.join(dict.fromkeys(r.kernel for r in drawn))}")
    parts = f"{device.simd_engines} SIMD engines, {device.l2_slices} L2 slices"
    sheet.stage(f"A map of C and {parts} and the memory channels", layout.width, layout.height)
    sources = [_draw_map(sheet, scenes, layout)]
    places = _draw_engines(sheet, scenes, layout)
    _draw_memory(sheet, scenes, layout)
    _draw_running(sheet, scenes, layout)
    if alone and len(scenes) > 1:
        _draw_real_clock(sheet, scenes, layout)
    sources.append(_draw_dots(sheet, scenes, layout, places))
    starred = _draw_stars(sheet, scenes, sources, element)
    legend = sheet.key(
        ("tile to come", "rgba(128,128,128,.3)", "box"),
        ("its wavefront runs", "c", "pale"),
        ("tile done", "c", "box"),
        ("a wavefront", "ink", "box"),
        ("arithmetic (ALU)", "alu", "box"),
        ("texture unit", "texture", "box"),
        ("L2, memory channel", "texture", "pale"),
        *starred,
    )
    captions = [scene.say(frame) for scene in scenes for frame in range(FRAMES)]
    lines = (f"{scene.name}: {scene.report.wavefronts} wavefronts" for scene in scenes)
    named = [(scene.name, FRAMES) for scene in scenes]
    still_frame = len(captions) - FRAMES // 2
    return sheet.player(
        captions,
        lines,
        below=[legend],
        step="Moment",
        scenes=named,
        seconds=12,
        still_frame=still_frame,
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
    def wavefronts(self) -> np.ndarray:
        """(engine, start, end) of each wavefront that was simulated, in simulated clocks."""
        return self.use.wavefronts

    @property
    def clocks(self) -> np.ndarray:
        """The simulated clock of each frame; the last frame is the end."""
        return np.linspace(0, self.use.clocks[-1], FRAMES)

    @property
    def skipped(self) -> int:
        """How many wavefronts were left out of the simulation."""
        return self.report.wavefronts - len(self.wavefronts)

    @property
    def skipped_clocks(self) -> float:
        """How many clocks were left out with them."""
        left_out = self.report.clocks - self.use.clocks[-1]
        return left_out if left_out > 0.5 else 0.0

    @property
    def torn(self) -> np.ndarray:
        """Whether each frame is behind the tear."""
        return (np.arange(FRAMES) >= TORN) & (self.skipped_clocks > 0)

    @property
    def true_clocks(self) -> np.ndarray:
        """The clock of each frame in the whole launch."""
        return self.clocks + self.skipped_clocks * self.torn

    @cached_property
    def running(self) -> np.ndarray:
        """Whether each simulated wavefront is running, of shape (frames, wavefronts)."""
        _, start, end = self.wavefronts.T
        return (start < self.clocks[:, np.newaxis]) & (end > self.clocks[:, np.newaxis])

    @cached_property
    def done(self) -> np.ndarray:
        """How many wavefronts of the launch are done in each frame."""
        ended = (self.wavefronts[:, 2] <= self.clocks[:, np.newaxis]).sum(axis=1)
        return ended + self.skipped * self.torn

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """The number in the launch that each simulated wavefront stands for, before the tear and
        behind it. One that runs across the tear stands for two.
        """
        number = np.arange(len(self.wavefronts))
        return number, number + self.skipped

    def share(self, name: str) -> np.ndarray:
        """Use of each unit of a kind in each frame, in per cent; for hit rates, -1 where nothing
        was asked for. The last frame has the whole launch's.
        """
        bounds, shares = self.use.clocks, self.use.shares[name]
        interval = np.clip(np.searchsorted(bounds, self.clocks, "right") - 1, 0, len(bounds) - 2)
        percent = np.nan_to_num(np.round(100 * shares[interval]), nan=-1).astype(int)
        percent[0] = np.minimum(percent[0], 0)
        if name.endswith("hits"):
            percent[-1] = -1
        else:
            percent[-1] = np.round(100 * self._overall(name))
        return percent

    def _overall(self, name: str) -> np.ndarray:
        """Each part's share of the whole launch's time. What was left out counts as the middle half
        of what was simulated, whose rounds it stands between; that tells one part from another.
        How busy they are on average is the report's to say, which has counted the launch's work.
        """
        shares = self.use.shares[name]
        middle = shares[len(shares) // 4 : -(len(shares) // 4) or None]
        total = shares.mean(axis=0) * self.use.clocks[-1]
        total = total + middle.mean(axis=0) * self.skipped_clocks
        share = total / (self.use.clocks[-1] + self.skipped_clocks)
        if self.skipped_clocks and share.any():
            share = share * self.report.busy[name] / share.mean()
        return np.minimum(share, 1)

    def grid(self) -> tuple[int, int, int]:
        """The map of C: tiles across, tiles down, and wavefronts to a tile."""
        count = self.report.wavefronts
        per_tile = -(-count // TILES)
        tiles = -(-count // per_tile)
        kernel, size = self.report.launched, self.report.size
        across = 0
        if kernel and size and size[1] > 1 and per_tile == 1:
            across = -(-size[1] // (8 * kernel.block[1]))
        if not 0 < across <= tiles:
            across = int(np.ceil(np.sqrt(tiles)))
        return across, -(-tiles // across), per_tile

    def tile(self, wavefront: np.ndarray, layout: _Layout) -> tuple[np.ndarray, np.ndarray, float]:
        """Centre x, centre y and size of the tile of each wavefront in the map."""
        across, down, per_tile = self.grid()
        size = min(layout.map_side / across, layout.map_side / down, 40.0)
        number = wavefront // per_tile
        x = 12 + (number % across + 0.5) * size
        return x, layout.top + (number // across + 0.5) * size, size

    def tiles(self, layout: _Layout) -> list[np.ndarray]:
        """x, y, size, state and key of the map's tiles in each frame."""
        per_tile, count = self.grid()[2], self.report.wavefronts
        number = np.arange(-(-count // per_tile))
        whole = np.bincount(np.arange(count) // per_tile)
        _, start, end = self.wavefronts.T
        before, behind = (of_launch // per_tile for of_launch in self.numbers())

        def each(owner: np.ndarray, which: np.ndarray) -> np.ndarray:
            return np.bincount(owner, which, minlength=len(number))

        state = np.empty((FRAMES, len(number)), int)
        for frame, (clock, torn) in enumerate(zip(self.clocks, self.torn)):
            owner = behind if torn else before
            running = each(owner, (start < clock) & (end > clock))
            over = whole - each(owner, end > clock) if torn else each(owner, end <= clock)
            state[frame] = np.where(over == whole, 2, over + running > 0)
        x, y, size = self.tile(number * per_tile, layout)
        key = self.key + number if per_tile == 1 else -1
        return [np.broadcast_to(part, state.shape) for part in (x, y, size - 1, state, key)]

    def dots(self, places: np.ndarray, layout: _Layout) -> tuple[np.ndarray, ...]:
        """x, y, width (0 while it doesn't run) and key of each wavefront in each frame, from its
        tile to a slot of its engine and back. Two take turns in a slot; ``places`` (engines, slots,
        2) are the slots' centres.
        """
        engines, slots, _ = places.shape
        xy = np.full((2, FRAMES, 2 * engines * slots), np.nan, np.float32)
        wide = np.full(xy.shape[1:], 0.05, np.float32)
        key, step = np.full(xy.shape[1:], -1), self.clocks[1]
        free, turns = np.zeros((engines, slots)), np.zeros((engines, slots), int)
        per_tile = self.grid()[2]
        numbers = np.stack(self.numbers())
        homes = np.stack(self.tile(numbers, layout)[:2])  # (x or y, before or behind, wavefronts)
        torn = self.torn.astype(int)
        for wavefront, (engine, start, end) in enumerate(self.wavefronts):
            e = int(engine)
            slot = int(np.argmax(free[e] <= start + 1))
            free[e, slot], turns[e, slot] = end, turns[e, slot] + 1
            dot = 2 * (e * slots + slot) + turns[e, slot] % 2
            first, last = int(start / step) + 1, min(int(np.ceil(end / step)), FRAMES - 1)
            runs, rests = slice(first, last), [first - 1, last]
            xy[:, runs, dot] = places[e, slot][:, np.newaxis]
            xy[:, rests, dot] = homes[:, torn[rests], wavefront]
            wide[runs, dot] = layout.dot
            if per_tile == 1:
                key[runs, dot] = self.key + numbers[torn[runs], wavefront]
        xy[:, -1] = np.nan  # all are home
        return *xy, wide, key

    def stories(self) -> dict[int, str]:
        """A sentence on each wavefront of the launch, by its number: when and where it ran."""
        stories = {}
        middle = self.use.clocks[-1] / 2
        for n, (engine, start, end) in enumerate(self.wavefronts):
            name = f"of {self.name}: runs on SIMD engine {engine:.0f}"
            behind = f"{end + self.skipped_clocks:,.0f}"
            if not self.skipped_clocks or end <= middle:
                stories[n] = f"{name} from clock {start:,.0f} to {end:,.0f}."
            elif start >= middle:
                begins = f"{start + self.skipped_clocks:,.0f}"
                stories[n + self.skipped] = f"{name} from clock {begins} to {behind}."
            else:
                lost = "was left out of the simulation"
                stories[n] = f"{name} from clock {start:,.0f}; its end {lost}."
                stories[n + self.skipped] = f"{name} to clock {behind}; its beginning {lost}."
        return {n: f"**Wavefront {n}** {story}" for n, story in sorted(stories.items())}

    def story(self, engine: int) -> str:
        """A sentence on what an engine does in the whole run."""
        ran = np.flatnonzero(self.wavefronts[:, 0] == engine)
        if not len(ran):
            return f"**SIMD engine {engine}** at {self.name}: idle."
        listed = ", ".join(map(str, ran[:12])) + f" and {len(ran) - 12} more" * (len(ran) > 12)
        plural = "s" if len(ran) > 1 else ""
        part = ", and those that were left out" if self.skipped else ""
        return f"**SIMD engine {engine}** at {self.name}: runs wavefront{plural} {listed}{part}."

    def say(self, frame: int) -> str:
        """A frame's caption."""
        r = self.report
        now = int(self.running[frame].sum())
        engines = len(np.unique(self.wavefronts[self.running[frame], 0]))
        part = "" if r.simulated == 1 else f" ({_percent(r.simulated)} of its work simulated)"
        over = ""
        if frame == FRAMES - 1:
            speed = (
                f", {r.gflops:.0f} Gflop/s, {r.percent:.0f} % of peak{r.uncertainty}"
                if r.flops
                else ""
            )
            over = f"{speed}, bound by {r.bound}; bars: shares of the whole time"
        size = ""
        if r.size:
            m, n, k = r.size
            size = f" {m} x {k}" if n == 1 else f" {m} x {n} x {k}"
        return (
            f"**{r.kernel}{size}** on the {r.device.name}. Clock {self.true_clocks[frame]:,.0f} of"
            f" {r.clocks:,.0f}{part}: {now} wavefronts run, on {engines} of"
            f" {r.device.simd_engines} engines; {self.done[frame]} done{over}."
        )

    def tear(self) -> str:
        """What was left out, in words; nothing if nothing was."""
        if not self.skipped_clocks:
            return ""
        return (
            f"here {self.skipped:,} wavefronts like these are left out:"
            f" {self.skipped_clocks:,.0f} clocks"
        )


def _percent(share: float) -> str:
    """A share in per cent, with a digit that isn't 0."""
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1g} %"


def _draw_stars(
    sheet: Sheet, scenes: Sequence[_Scene], sources: Sequence, element: tuple[int, int] | None
) -> list[tuple[str, str, str]]:
    """Put a star on an element's tile and wavefront where the map has a tile for each wavefront.
    Returns its line of the legend, or none.
    """
    if element is None:
        return []
    followed = follow(element)
    starred = []
    for scene in scenes:
        r = scene.report
        wavefront = wavefront_of(followed, r.launched, r.size)
        if wavefront is not None and scene.grid()[2] == 1:
            starred.append(scene.key + wavefront)
    for source, key in sources:
        sheet.star(source, np.isin(key, starred))
    row, column = followed
    return [(f"has your C[{row}, {column}]", "star", "star")] if starred else []


def _draw_map(sheet: Sheet, scenes: Sequence[_Scene], layout: _Layout) -> tuple:
    """Draw the map of C and the counts below it. Returns its source and keys."""
    for scene in scenes:
        if scene.grid()[2] == 1:
            sheet.about |= {scene.key + n: words for n, words in scene.stories().items()}
    columns = zip(*(scene.tiles(layout) for scene in scenes))
    x, y, size, state, key = map(together, columns, (np.nan, np.nan, np.nan, 0, -1))
    vector = all(scene.report.size and scene.report.size[1] == 1 for scene in scenes)
    per_tile = [scene.grid()[2] for scene in scenes]
    which = np.repeat(np.arange(len(scenes)), FRAMES)
    each = ["each wavefront" if count == 1 else f"{count} wavefronts" for count in per_tile]
    heads = [f"{'y' if vector else 'C'}: a tile for {part}" for part in each]
    sheet.numbers("heading", 12, 14, which, names=heads, bold=True, size=14)
    source = sheet.boxes("map", x, y, size, size, fill=(STATES, state), key=key)
    done = np.concatenate([scene.done for scene in scenes])
    now = np.concatenate([scene.running.sum(axis=1) for scene in scenes])
    whole = np.repeat([scene.report.wavefronts for scene in scenes], FRAMES)
    counts = (
        ("to come: ", whole - now - done, "soft"),
        ("running: ", now, "ink"),
        ("done: ", done, "c"),
    )
    below = layout.top + layout.map_side + 22
    for n, (prefix, values, ink) in enumerate(counts):
        sheet.numbers(prefix[:-2], 12, below + 22 * n, values, prefix=prefix, ink=ink, size=15)
    return source, key


def _draw_dots(
    sheet: Sheet, scenes: Sequence[_Scene], layout: _Layout, places: np.ndarray
) -> tuple:
    """Draw the wavefronts that run. Returns their source and keys."""
    columns = zip(*(scene.dots(places, layout) for scene in scenes))
    x, y, wide, key = map(together, columns, (np.nan, np.nan, 0.05, -1))
    look: dict = {"ink": "ink", "moves": ("x", "y", "w"), "round": 6}
    return sheet.boxes("dots", x, y, wide, layout.dot, key=key, **look), key


def _draw_engines(sheet: Sheet, scenes: Sequence[_Scene], layout: _Layout) -> np.ndarray:
    """Draw the engines with their bars. Returns the centres of all slots, of shape (engines, slots,
    2).
    """
    engines = scenes[0].report.device.simd_engines
    slots = max(scene.report.active for scene in scenes)
    number, across = np.arange(engines), layout.across
    wide, high = (layout.engines_width + 6) // across - 6, layout.engine_height - 6
    x = layout.left + number % across * (wide + 6)
    below = number // across >= (layout.rows + 1) // 2  # the L2 slices and memory channels
    y = layout.top - 20 + number // across * layout.engine_height + 54 * below
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
        columns={"busy": busy},
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
            columns={"percent": share},
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


def _draw_memory(sheet: Sheet, scenes: Sequence[_Scene], layout: _Layout) -> None:
    for n, (name, title) in enumerate((("L2", "L2 slice"), ("DRAM", "memory channel"))):
        share = together([scene.share(name) for scene in scenes], 0)
        count = share.shape[1]
        room = layout.engines_width / count
        left, y = layout.left + np.arange(count) * room, layout.memory_top + 9 + 24 * n
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
            columns={"percent": share},
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


def _draw_running(sheet: Sheet, scenes: Sequence[_Scene], layout: _Layout) -> None:
    """A chart of the number of running wavefronts: it rises, stays level, and drains. Where clocks
    were left out it is torn.
    """
    left, wide, top, high = layout.left, layout.engines_width, layout.height - 46, 40
    slots = max(scene.report.active for scene in scenes) * scenes[0].report.device.simd_engines
    count = np.concatenate([np.tile(scene.running.sum(axis=1), (FRAMES, 1)) for scene in scenes])
    tall = np.maximum(count / slots * high, 3 * (count > 0))  # a few are seen, too
    pitch = wide / FRAMES
    x = left + (np.arange(FRAMES) + 0.5) * pitch
    sheet.boxes("room running", left + wide / 2, top + high / 2, wide, high, ink="faint", alpha=0.6)
    sheet.boxes(
        "run",
        np.tile(x, (len(tall), 1)),
        top + high - tall / 2,
        pitch + 0.3,
        tall,
        ink="c",
        alpha=0.45,
    )
    sheet.play_head("head", np.tile(x, len(scenes)), top + high / 2, high, 2.5)
    words = f"wavefronts running, of {slots} that fit"
    sheet.words(left + wide, top - 8, words, "soft", size=12, align="right")
    if any(scene.skipped_clocks for scene in scenes):
        _draw_tear(sheet, scenes, left + TORN * pitch, top, high)


def _draw_tear(sheet: Sheet, scenes: Sequence[_Scene], x: float, top: float, high: float) -> None:
    """Tear the time axis at ``x`` in the scenes of which a part was left out, and say what."""
    texts = ["", *dict.fromkeys(filter(None, (scene.tear() for scene in scenes)))]
    which = np.repeat([texts.index(scene.tear()) for scene in scenes], FRAMES)
    torn = np.where(which > 0, x, np.nan)[:, np.newaxis]
    middle = top + high / 2
    sheet.boxes("tear", torn, middle, 8, high + 6, ink="surface")
    for side in (-5, 5):
        sheet.boxes(f"edge of the tear {side}", torn + side, middle, 1.5, high + 6, ink="ink")
    sheet.numbers("left out", x, top - 9, which, names=texts, bold=True, align="center", size=12)


def _draw_real_clock(sheet: Sheet, scenes: Sequence[_Scene], layout: _Layout) -> None:
    """All scenes on one clock, launch included: small launches end at once, and do little."""
    top, left, wide = layout.top + layout.map_side + 86, 84, 96
    longest = max(scene.report.seconds for scene in scenes)
    shown = np.repeat(np.arange(len(scenes)), FRAMES)
    sheet.words(12, top, f"real clock, with launch: 0 to {1e3 * longest:.3g} ms", "soft", size=12)
    for n, scene in enumerate(scenes):
        y, r = top + 14 + 12 * n, scene.report
        launch = r.device.launch_us * 1e-6
        so_far = scene.true_clocks / scene.true_clocks[-1]
        now = np.tile(launch + (r.seconds - launch) * so_far, len(scenes))
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
