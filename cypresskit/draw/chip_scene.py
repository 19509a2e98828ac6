"""What the picture of the chip shows of one report: positions, states and texts for each frame.

Of a long launch, a report may have simulated only some rounds of wavefronts. Those are shown one
after the other, and the caption says how many were skipped.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.devices import Device
from cypresskit.draw.sheet import Grid
from cypresskit.tables import plural
from cypresskit.timing import Report

FRAMES = 120  # of a report
MAX_TILES = 1024  # with more wavefronts, a tile represents several
MAX_SLOTS = 16  # of an engine, that are drawn even if they stay empty
HIDDEN = 0.05  # pixels: the width of a hidden dot
# The keys of a scene begin at SCENE_KEYS times its number: its wavefronts, by number, and from
# ENGINE_KEYS on its engines.
SCENE_KEYS, ENGINE_KEYS = 100_000, 50_000


class ChipLayout:
    """Positions on the stage, in pixels: at most four by five engines, as the HD 5870 has."""

    width, height = 1220, 440
    map_left, map_side, map_top = 12, 380, 40
    running_left, running_width, running_top = 412, 124, 300  # the chart of running wavefronts
    left, engines_width, engines_top = 556, 658, 4
    engine_size = 160, 68
    memory_top = 226  # the L2 slices and memory channels, between the rows of engines

    def __init__(self, device: Device, scenes: "Sequence[Scene]") -> None:
        row, column = np.divmod(np.arange(device.simd_engines), 4)
        # The engines' upper left corners.
        self.engine_x = self.left + column * 166
        self.engine_y = self.engines_top + row * 74 + 54 * (row > 2)

        # In each engine: wavefronts that fit, and those that are drawn. If these are all, there is
        # room for them in two rows; if not, for the used ones in the upper.
        self.fitting = max(scene.report.active_wavefronts for scene in scenes)
        slots = self.fitting
        if slots > MAX_SLOTS:
            slots = 1 + int(max(scene.slot.max() for scene in scenes))
        beside = -(-slots // 2) if 4 < slots == self.fitting else slots
        step = min(22.0, (self.engine_size[0] - 44) / beside)
        row, column = np.divmod(np.arange(slots), beside)
        across = self.engine_x[:, np.newaxis] + 14 + column * step
        down = self.engine_y[:, np.newaxis] + 31 + row * min(21.0, step + 4)
        # The centers of the engines' slots, of shape (2, engines, slots), and their size.
        self.slots = np.stack(np.broadcast_arrays(across, down))
        self.slot_size = min(14.0, max(step - 3, step / 2))
        self.dot = self.slot_size - 2  # a wavefront's width


class Scene:
    """One report in the picture of the chip.

    Attributes
    ----------
    first_key
        Its first wavefront's key.
    size
        m, n and k as text; "" if it has none.
    wavefronts
        Engine, start and end of each simulated wavefront, in clocks; shape (wavefronts, 3).
    skipped
        The number of wavefronts that weren't simulated.
    beside
        What the other kernels of the picture reach, for the last caption; "" if there are none.
    clocks
        The simulated clock of each frame.
    slot
        Each one's slot on its engine.
    running
        Whether each simulated wavefront is running; shape (frames, wavefronts).
    count, done
        The numbers of running and of finished wavefronts in each frame.
    across, down, per_tile
        The map of C: tiles across and down, and wavefronts per tile.
    has_a_tile_each
        Whether each wavefront of the launch has its own tile.
    """

    def __init__(self, reports: Sequence[Report], number: int) -> None:
        self.report = report = reports[number]
        self.use = report.use
        self.first_key = SCENE_KEYS * number
        self.size = " x ".join(f"{n:,}" for n in report.size or ())
        self.name = report.kernel
        others = [r for r in reports if r.kernel != report.kernel]
        told = " and ".join(f"{r.gflops:,.0f} with {r.kernel}" for r in others)
        self.beside = f" in place of {told}" if told else ""
        if report.size and not others:  # all scenes show the same kernel
            self.name = self.size if len({*report.size}) > 1 else f"N = {report.size[0]:,}"

        self.wavefronts = self.use.wavefronts
        self.skipped = report.wavefronts - len(self.wavefronts)
        self.clocks = np.linspace(0, self.use.clocks[-1], FRAMES)
        self.slot = self._slots()
        _, start, end = self.wavefronts.T
        now = self.clocks[:, np.newaxis]
        self.running = (start < now) & (end > now)
        self.count = self.running.sum(axis=1)
        self.done = (end <= now).sum(axis=1)

        self.per_tile = -(-len(self.wavefronts) // MAX_TILES)
        self.has_a_tile_each = self.per_tile == 1 and not self.skipped
        tiles = -(-len(self.wavefronts) // self.per_tile)
        self.across = self._blocks_across() if self.has_a_tile_each else 0
        if not 0 < self.across <= tiles:
            self.across = int(np.ceil(np.sqrt(tiles)))
        self.down = -(-tiles // self.across)

    def _slots(self) -> np.ndarray:
        """Return the slot of each wavefront: the first that is free when it starts."""
        free = np.zeros((self.report.device.simd_engines, self.report.active_wavefronts))
        slots = []
        for engine, start, end in self.wavefronts:
            of_engine = free[int(engine)]
            slots.append(np.argmax(of_engine <= start + 1))
            of_engine[slots[-1]] = end
        return np.array(slots)

    def _blocks_across(self) -> int:
        """Return how many wavefronts of 8 x 8 work-items are side by side in C, or one if C is a
        vector; 0 if that isn't known.
        """
        kernel, size = self.report.gemm_kernel, self.report.size
        return -(-size[1] // (8 * kernel.block[1])) if kernel and size else 0

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

    def tile(
        self, wavefront: np.ndarray, layout: ChipLayout
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return center x, center y and size of the tile of each wavefront."""
        size = layout.map_side / max(self.across, self.down)
        places = Grid(layout.map_left, layout.map_top, size, size)
        return *places.center(*np.divmod(wavefront // self.per_tile, self.across)), size

    def tiles(self, layout: ChipLayout) -> list[np.ndarray]:
        """Return the tiles of the map in each frame: x, y, size, state and key, each array of shape
        (frames, tiles).
        """
        state = self._tile_states()
        number = np.arange(state.shape[1])
        x, y, size = self.tile(number * self.per_tile, layout)
        key = self.first_key + number if self.has_a_tile_each else -1
        return [np.broadcast_to(part, state.shape) for part in (x, y, size - 1, state, key)]

    def _tile_states(self) -> np.ndarray:
        """Return each tile's state: 0 not started, 1 running, 2 done. Shape (frames, tiles)."""
        tile = np.arange(len(self.wavefronts)) // self.per_tile
        whole = np.bincount(tile)
        _, start, end = self.wavefronts.T
        state = np.empty((FRAMES, len(whole)), int)
        for frame, clock in enumerate(self.clocks):
            begun = np.bincount(tile, start < clock)
            over = np.bincount(tile, end <= clock)
            state[frame] = np.where(over == whole, 2, over + begun > 0)
        return state

    # -- the dots

    def dots(self, layout: ChipLayout) -> tuple[np.ndarray, ...]:
        """Return the dots of the wavefronts, which move from their tile to a slot of their engine
        and back: x, y, width and key, each array of shape (frames, dots).

        Two dots alternate in a slot, so that one can arrive while the other leaves.
        """
        _, engines, slots = layout.slots.shape
        shape = FRAMES, 2 * engines * slots
        xy = np.full((2, *shape), np.nan, np.float32)
        width = np.full(shape, HIDDEN, np.float32)
        key = np.full(shape, -1)

        homes = np.stack(self.tile(np.arange(len(self.wavefronts)), layout)[:2])  # x and y
        taken = np.zeros((engines, slots), int)  # how often it was taken
        for wavefront, (engine_number, start, end) in enumerate(self.wavefronts):
            engine, slot = int(engine_number), self.slot[wavefront]
            taken[engine, slot] += 1
            dot = 2 * (engine * slots + slot) + taken[engine, slot] % 2

            first, last = self._frames_between(start, end)
            runs = slice(first, last)
            rests = [first - 1, last]
            xy[:, runs, dot] = layout.slots[:, engine, slot, np.newaxis]
            xy[:, rests, dot] = homes[:, [wavefront]]
            width[runs, dot] = layout.dot
            if self.has_a_tile_each:
                key[runs, dot] = self.first_key + wavefront
        xy[:, -1] = np.nan  # all are done
        return *xy, width, key

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
            self.first_key + number: f"**Wavefront {number}** of {self.name}: runs on"
            f" SIMD engine {engine:.0f} from clock {start:,.0f} to {end:,.0f}."
            for number, (engine, start, end) in enumerate(self.wavefronts)
        }

    def story(self, engine: int) -> str:
        """Return a sentence on an engine."""
        count = int((self.wavefronts[:, 0] == engine).sum())
        runs = f"runs {count:,} {plural('wavefront', count)}"
        return f"**SIMD engine {engine}** at {self.name}: {runs}."

    def say(self, frame: int) -> str:
        """Return the caption of a frame; the last one begins with speed and bottleneck."""
        report = self.report
        launch = f"{report.kernel}: {self.size}".removesuffix(": ")
        simulated = ""
        if report.simulated < 1:
            simulated = f" ({_percent(report.simulated)} of its work simulated)"
        if self.skipped:
            simulated = (
                f" ({len(self.wavefronts):,} of {report.wavefronts:,} wavefronts simulated; the"
                f" whole launch takes {report.clocks:,.0f} clocks)"
            )
        engines = len(np.unique(self.wavefronts[self.running[frame], 0]))
        result = self._sum() if frame == FRAMES - 1 else ""
        return (
            f"{result}**{launch}** on the {report.device.name}."
            f" Clock {self.clocks[frame]:,.0f} of {self.use.clocks[-1]:,.0f}{simulated}:"
            f" {self.count[frame]:,} wavefronts are running on {engines} of"
            f" {report.device.simd_engines} engines, {self.done[frame]:,} are done."
        )

    def _sum(self) -> str:
        report = self.report
        speed = ""
        if report.flops:
            speed = f"{report.gflops:,.0f}{report.uncertainty} Gflop/s{self.beside}, "
            speed += f"{_percent(report.percent / 100)} of peak, "
        return f"**{speed}bound by {report.bound}.** Bars: averages over the whole launch. "


def _percent(share: float) -> str:
    """Return a share in percent, with at least one digit that isn't 0."""
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1g} %"
