"""What the picture of the chip shows of one report: positions, states and texts for each frame.

Of a long launch, a report may have simulated only some rounds of wavefronts. Those are shown one
after the other, and the caption says how many were skipped.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from cypresskit.devices import Device
from cypresskit.tables import plural
from cypresskit.timing import Report
from cypresskit.timing.launch_time import Use

FRAMES = 120  # of a report
MAX_TILES = 1024  # with more wavefronts, a tile represents several
LARGEST_TILE = 40.0  # pixels
HIDDEN = 0.05  # pixels: the width of a hidden dot
LISTED = 12  # wavefronts of an engine that are listed
# Keys of a scene: first its wavefronts, by number, then its engines.
SCENE_KEYS, ENGINE_KEYS = 100_000, 50_000

Number = TypeVar("Number", int, np.ndarray)


def wavefront_key(scene: int, wavefront: Number) -> Number:
    """Return the key of a wavefront in a scene, or the keys of several."""
    return SCENE_KEYS * scene + wavefront


def engine_key(scene: int, engine: Number) -> Number:
    """Return the key of a SIMD engine in a scene, or the keys of several."""
    return SCENE_KEYS * scene + ENGINE_KEYS + engine


@dataclass(frozen=True)
class ChipLayout:
    """Positions on the stage, in pixels."""

    across: int  #: engines side by side
    rows: int  #: rows of engines
    width: int = 1250
    map_left: int = 12
    map_side: int = 224
    top: int = 46  # of the map
    left: int = 268  # of the engines
    engines_width: int = 974
    engine_height: int = 72
    gap: int = 6  # between two engines
    memory_height: int = 54  # between the rows of engines
    dot: int = 12  # a wavefront's width

    @classmethod
    def of(cls, device: Device) -> "ChipLayout":
        """Return the layout for a device: five by four engines for the HD 5870, smaller ones for
        more.
        """
        across = 5 if device.simd_engines <= 20 else 10
        rows = -(-device.simd_engines // across)
        return cls(across, rows) if rows <= 6 else cls(across, rows, engine_height=52, dot=4)

    @property
    def height(self) -> int:
        return 424 + max(self.rows - 4, 0) * self.engine_height

    @property
    def engines_top(self) -> int:
        return self.top - 20

    @property
    def rows_above(self) -> int:
        """The rows of engines above the L2 slices and memory channels."""
        return (self.rows + 1) // 2

    @property
    def memory_top(self) -> float:
        return self.engines_top + self.rows_above * self.engine_height

    @property
    def engine_size(self) -> tuple[int, int]:
        """Width and height of an engine."""
        width = (self.engines_width + self.gap) // self.across - self.gap
        return width, self.engine_height - self.gap

    def engine_corners(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y of the engines' upper left corners."""
        row, column = np.divmod(number, self.across)
        x = self.left + column * (self.engine_size[0] + self.gap)
        is_below = row >= self.rows_above
        y = self.engines_top + row * self.engine_height + self.memory_height * is_below
        return x, y

    @property
    def running_top(self) -> int:
        """The top of the chart of running wavefronts."""
        return self.height - 46


class Grid(NamedTuple):
    """The map of C: tiles across and down, and wavefronts per tile."""

    across: int
    down: int
    per_tile: int


class Tiles(NamedTuple):
    """The tiles of the map, each array of shape (frames, tiles)."""

    x: np.ndarray
    y: np.ndarray
    size: np.ndarray
    state: np.ndarray  # 0 not started, 1 running, 2 done
    key: np.ndarray


class Dots(NamedTuple):
    """The running wavefronts, each array of shape (frames, dots)."""

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    key: np.ndarray


@dataclass(frozen=True, eq=False)
class Scene:
    """One report in the picture of the chip."""

    report: Report
    use: Use  #: the report's record of the units
    number: int
    is_one_kernel: bool  #: whether all scenes show the same kernel

    @property
    def name(self) -> str:
        size = self.report.size
        if size is None or not self.is_one_kernel:
            return self.report.kernel
        return f"N = {size[0]}" if len(set(size)) == 1 else " x ".join(map(str, size))

    @property
    def wavefronts(self) -> np.ndarray:
        """Engine, start and end of each simulated wavefront, in clocks; shape (wavefronts, 3)."""
        return self.use.wavefronts

    # -- time

    @property
    def clocks(self) -> np.ndarray:
        """The simulated clock of each frame."""
        return np.linspace(0, self.use.clocks[-1], FRAMES)

    @property
    def skipped(self) -> int:
        """The number of wavefronts that weren't simulated."""
        return self.report.wavefronts - len(self.wavefronts)

    @cached_property
    def running(self) -> np.ndarray:
        """Whether each simulated wavefront is running; shape (frames, wavefronts)."""
        _, start, end = self.wavefronts.T
        return (start < self.clocks[:, np.newaxis]) & (end > self.clocks[:, np.newaxis])

    @cached_property
    def done(self) -> np.ndarray:
        """The number of finished wavefronts in each frame."""
        return (self.wavefronts[:, 2] <= self.clocks[:, np.newaxis]).sum(axis=1)

    # -- how busy each part is

    def share(self, name: str) -> np.ndarray:
        """Return how busy each unit of a kind is in each frame, in percent. The last frame has the
        average of the whole launch.
        """
        bounds = self.use.clocks
        shares = self.use.shares[name]
        interval = np.searchsorted(bounds, self.clocks, "right") - 1
        interval = np.clip(interval, 0, len(bounds) - 2)
        percent = np.round(100 * shares[interval]).astype(int)
        percent[0] = 0
        percent[-1] = np.round(100 * self._overall(name))
        return percent

    def _overall(self, name: str) -> np.ndarray:
        """Return how busy each unit is over the whole launch.

        The differences between units come from the simulated part, their average from the report.
        """
        share = self.use.shares[name].mean(axis=0)
        if self.skipped and share.any():
            share = share * self.report.busy[name] / share.mean()
        return np.minimum(share, 1)

    # -- the map

    @cached_property
    def grid(self) -> Grid:
        """How the map is divided into tiles."""
        count = len(self.wavefronts)
        per_tile = -(-count // MAX_TILES)
        tiles = -(-count // per_tile)
        across = self._blocks_across() if per_tile == 1 else 0
        if not 0 < across <= tiles:
            across = int(np.ceil(np.sqrt(tiles)))
        return Grid(across, -(-tiles // across), per_tile)

    def _blocks_across(self) -> int:
        """Return how many wavefronts of 8 x 8 work-items are side by side in C.

        0 if that isn't known: if only some were simulated, or C is a vector.
        """
        kernel, size = self.report.gemm_kernel, self.report.size
        if self.skipped or not kernel or not size or size[1] == 1:
            return 0
        return -(-size[1] // (8 * kernel.block[1]))

    @property
    def has_a_tile_each(self) -> bool:
        """Whether each wavefront of the launch has its own tile."""
        return self.grid.per_tile == 1 and not self.skipped

    def tile(
        self, wavefront: np.ndarray, layout: ChipLayout
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return center x, center y and size of the tile of each wavefront."""
        across, down, per_tile = self.grid
        size = min(layout.map_side / across, layout.map_side / down, LARGEST_TILE)
        row, column = np.divmod(wavefront // per_tile, across)
        return layout.map_left + (column + 0.5) * size, layout.top + (row + 0.5) * size, size

    def tiles(self, layout: ChipLayout) -> Tiles:
        """Return the tiles of the map in each frame."""
        state = self._tile_states()
        number = np.arange(state.shape[1])
        x, y, size = self.tile(number * self.grid.per_tile, layout)
        key = wavefront_key(self.number, number) if self.has_a_tile_each else -1
        return Tiles(*(np.broadcast_to(part, state.shape) for part in (x, y, size - 1, state, key)))

    def _tile_states(self) -> np.ndarray:
        """Return each tile's state: 0 not started, 1 running, 2 done. Shape (frames, tiles)."""
        tile = np.arange(len(self.wavefronts)) // self.grid.per_tile
        whole = np.bincount(tile)
        _, start, end = self.wavefronts.T
        state = np.empty((FRAMES, len(whole)), int)
        for frame, clock in enumerate(self.clocks):
            begun = np.bincount(tile, start < clock)
            over = np.bincount(tile, end <= clock)
            state[frame] = np.where(over == whole, 2, over + begun > 0)
        return state

    # -- the dots

    def dots(self, places: np.ndarray, layout: ChipLayout) -> Dots:
        """Return the dots of the wavefronts, which move from their tile to a slot of their engine
        and back.

        Two dots alternate in a slot, so that one can arrive while the other leaves. ``places``
        (engines, slots, 2) are the centers of the slots.
        """
        engines, slots, _ = places.shape
        shape = FRAMES, 2 * engines * slots
        xy = np.full((2, *shape), np.nan, np.float32)
        width = np.full(shape, HIDDEN, np.float32)
        key = np.full(shape, -1)

        homes = np.stack(self.tile(np.arange(len(self.wavefronts)), layout)[:2])  # x and y
        free = np.zeros((engines, slots))  # the clock from which a slot is free
        taken = np.zeros((engines, slots), int)  # how often it was taken
        for wavefront, (engine_number, start, end) in enumerate(self.wavefronts):
            engine = int(engine_number)
            slot = int(np.argmax(free[engine] <= start + 1))
            free[engine, slot] = end
            taken[engine, slot] += 1
            dot = 2 * (engine * slots + slot) + taken[engine, slot] % 2

            first, last = self._frames_between(start, end)
            runs = slice(first, last)
            rests = [first - 1, last]
            xy[:, runs, dot] = places[engine, slot][:, np.newaxis]
            xy[:, rests, dot] = homes[:, [wavefront]]
            width[runs, dot] = layout.dot
            if self.has_a_tile_each:
                key[runs, dot] = wavefront_key(self.number, wavefront)
        xy[:, -1] = np.nan  # all are done
        return Dots(xy[0], xy[1], width, key)

    def _frames_between(self, start: float, end: float) -> tuple[int, int]:
        """Return the first frame after a clock, and the first one from another on (at most the
        last).
        """
        step = self.clocks[1]
        return int(start / step) + 1, min(int(np.ceil(end / step)), FRAMES - 1)

    # -- words

    def stories(self) -> dict[int, str]:
        """Return a sentence on each wavefront, by its key."""
        return {
            wavefront_key(self.number, number): f"**Wavefront {number}** of {self.name}: runs on"
            f" SIMD engine {engine:.0f} from clock {start:,.0f} to {end:,.0f}."
            for number, (engine, start, end) in enumerate(self.wavefronts)
        }

    def story(self, engine: int) -> str:
        """Return a sentence on an engine."""
        ran = np.flatnonzero(self.wavefronts[:, 0] == engine)
        if not len(ran):
            return f"**SIMD engine {engine}** at {self.name}: idle."
        listed = ", ".join(map(str, ran[:LISTED]))
        if len(ran) > LISTED:
            listed += f" and {len(ran) - LISTED} more"
        runs = f"runs {plural('wavefront', len(ran))} {listed}"
        return f"**SIMD engine {engine}** at {self.name}: {runs}."

    def say(self, frame: int) -> str:
        """Return the caption of a frame."""
        report = self.report
        size = ""
        if report.size:
            m, n, k = report.size
            size = f" {m} x {k}" if n == 1 else f" {m} x {n} x {k}"
        simulated = ""
        if report.simulated < 1:
            simulated = f" ({_percent(report.simulated)} of its work simulated)"
        if self.skipped:
            simulated = (
                f" ({len(self.wavefronts):,} of {report.wavefronts:,} wavefronts simulated; the"
                f" whole launch takes {report.clocks:,.0f} clocks)"
            )
        running = int(self.running[frame].sum())
        engines = len(np.unique(self.wavefronts[self.running[frame], 0]))
        return (
            f"**{report.kernel}{size}** on the {report.device.name}."
            f" Clock {self.clocks[frame]:,.0f} of {self.use.clocks[-1]:,.0f}{simulated}:"
            f" {running} wavefronts are running on {engines} of {report.device.simd_engines}"
            f" engines, {self.done[frame]} are done{self._sum() if frame == FRAMES - 1 else ''}."
        )

    def _sum(self) -> str:
        """Return what the last caption adds: speed and bottleneck."""
        report = self.report
        bound = f"bound by {report.bound}. The bars show averages over the whole launch"
        if not report.flops:
            return f", {bound}"
        speed = f"{report.gflops:.0f}{report.uncertainty} Gflop/s, {report.percent:.0f} % of peak"
        return f": {speed}, {bound}"


def _percent(share: float) -> str:
    """Return a share in percent, with at least one digit that isn't 0."""
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1g} %"
