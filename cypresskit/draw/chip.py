"""The chip at work: wavefronts leave the map of C for a SIMD engine, stay there while they run, and
come back done.

From timing reports, each drawn over its own time: when and on which engine each wavefront ran, how
busy arithmetic and texture units, L2 slices and memory channels were. Several reports (sizes of a
matrix, kernels) are scenes of one picture. What a report shows in each frame is in ``chip_scene``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from bokeh.models import ColumnDataSource

from cypresskit.draw.chip_scene import (
    FRAMES,
    HIDDEN,
    TORN,
    ChipLayout,
    Scene,
    engine_key,
    wavefront_key,
)
from cypresskit.draw.element import follow, wavefront_of
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty, together
from cypresskit.kernels.own import Source, resolve
from cypresskit.timing import Report, simulate

SIZES = (128, 256, 512, 1024, 2048)
# Of a tile: to come, running, done.
STATES = ["rgba(128,128,128,0.16)", "rgba(0,158,115,0.38)", "rgba(0,158,115,1)"]
IDLE = ["rgba(128,128,128,0.05)", "rgba(128,128,128,0.20)"]
RUNNING = 40  # the height of the chart of running wavefronts


class Keyed(NamedTuple):
    """A source whose cells stand for wavefronts, and their keys, of shape (frames, cells)."""

    source: ColumnDataSource
    key: np.ndarray


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
    scenes = _scenes(drawn)

    device = drawn[0].device
    layout = ChipLayout.of(device)
    sheet = Sheet(f"The chip at work: {', '.join(dict.fromkeys(r.kernel for r in drawn))}")
    parts = f"{device.simd_engines} SIMD engines, {device.l2_slices} L2 slices"
    sheet.stage(f"A map of C and {parts} and the memory channels", layout.width, layout.height)
    tiles = _draw_map(sheet, scenes, layout)
    places = _draw_engines(sheet, scenes, layout)
    _draw_memory(sheet, scenes, layout)
    _draw_running(sheet, scenes, layout)
    dots = _draw_dots(sheet, scenes, layout, places)
    starred = _draw_stars(sheet, scenes, [tiles, dots], element)

    legend = sheet.legend(
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
    return sheet.player(
        captions,
        (f"{scene.name}: {scene.report.wavefronts} wavefronts" for scene in scenes),
        below=[legend],
        step="Moment",
        scenes=[(scene.name, FRAMES) for scene in scenes],
        seconds=12,
        still_frame=len(captions) - FRAMES // 2,
    )


def _scenes(reports: Sequence[Report]) -> list[Scene]:
    """A scene for each report. Raises ``ValueError`` for reports that don't go together."""
    boards = {
        (r.device.simd_engines, r.device.memory_channels, r.device.l2_slices) for r in reports
    }
    if len(boards) != 1:
        raise ValueError(
            "the chip is drawn for one or more reports, all of boards with the same parts"
        )
    alone = len({report.kernel for report in reports}) == 1
    scenes = []
    for number, report in enumerate(reports):
        if not report.use:
            raise ValueError(
                "the chip is drawn from reports that tell what its parts did: those of simulate"
            )
        scenes.append(Scene(report, report.use, number, alone))
    return scenes


def _by_frame(values: Sequence) -> np.ndarray:
    """A value of each scene, for all of its frames."""
    return np.repeat(values, FRAMES, axis=0)


def _draw_stars(
    sheet: Sheet,
    scenes: Sequence[Scene],
    sources: Sequence[Keyed],
    element: tuple[int, int] | None,
) -> list[tuple[str, str, str]]:
    """Put a star on an element's tile and wavefront where the map has a tile for each wavefront.
    Returns its line of the legend, or none.
    """
    if element is None:
        return []
    followed = follow(element)
    starred = []
    for scene in scenes:
        wavefront = wavefront_of(followed, scene.report.launched, scene.report.size)
        if wavefront is not None and scene.has_a_tile_each:
            starred.append(wavefront_key(scene.number, wavefront))
    for source, key in sources:
        sheet.star(source, np.isin(key, starred))
    row, column = followed
    return [(f"has your C[{row}, {column}]", "star", "star")] if starred else []


def _draw_map(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> Keyed:
    """Draw the map of C and the counts below it."""
    left = layout.map_left
    for scene in scenes:
        if scene.has_a_tile_each:
            sheet.about |= scene.stories()

    is_vector = all(scene.report.size and scene.report.size[1] == 1 for scene in scenes)
    counts = [scene.grid.per_tile for scene in scenes]
    tiles = ["each wavefront" if count == 1 else f"{count} wavefronts" for count in counts]
    heads = [f"{'y' if is_vector else 'C'}: a tile for {wavefronts}" for wavefronts in tiles]
    which = _by_frame(range(len(scenes)))
    sheet.numbers("heading", left, 14, which, names=heads, bold=True, size=14)

    columns = zip(*(scene.tiles(layout) for scene in scenes))
    x, y, size, state, key = map(together, columns, (np.nan, np.nan, np.nan, 0, -1))
    source = sheet.boxes("map", x, y, size, size, fill=(STATES, state), key=key)
    _draw_counts(sheet, scenes, layout)
    return Keyed(source, key)


def _draw_counts(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> None:
    """Draw how many wavefronts are to come, run and are done."""
    done = np.concatenate([scene.done for scene in scenes])
    running = np.concatenate([scene.running.sum(axis=1) for scene in scenes])
    whole = _by_frame([scene.report.wavefronts for scene in scenes])
    counts = (
        ("to come", whole - running - done, "soft"),
        ("running", running, "ink"),
        ("done", done, "c"),
    )
    for n, (name, count, ink) in enumerate(counts):
        y = layout.counts_top + 22 * n
        sheet.numbers(name, layout.map_left, y, count, prefix=f"{name}: ", ink=ink, size=14)


def _draw_dots(
    sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout, places: np.ndarray
) -> Keyed:
    """Draw the wavefronts that run."""
    columns = zip(*(scene.dots(places, layout) for scene in scenes))
    x, y, width, key = map(together, columns, (np.nan, np.nan, HIDDEN, -1))
    look: dict = {"ink": "ink", "moves": ("x", "y", "w"), "round": layout.dot // 2}
    return Keyed(sheet.boxes("dots", x, y, width, layout.dot, key=key, **look), key)


def _draw_engines(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> np.ndarray:
    """Draw the engines with their bars. Returns the centres of all slots, of shape (engines, slots,
    2).
    """
    engines = scenes[0].report.device.simd_engines
    number = np.arange(engines)
    x, y = layout.engine_corners(number)
    width, height = layout.engine_size
    for scene in scenes:
        sheet.about |= {engine_key(scene.number, n): scene.story(n) for n in range(engines)}

    used = (
        scene.wavefronts[running, 0].astype(int) for scene in scenes for running in scene.running
    )
    busy = np.stack([np.bincount(engine, minlength=engines) for engine in used])
    sheet.boxes(
        "engines",
        x + width / 2,
        y + height / 2,
        width,
        height,
        fill=(IDLE, busy > 0),
        words=[f"SIMD engine {n}" for n in number],
        line="line",
        columns={"busy": busy},
        key=_by_frame([engine_key(scene.number, number) for scene in scenes]),
        tip="@words, wavefronts: @busy",
    )
    names = [f"engine {n}" if layout.across == 5 else str(n) for n in number]
    sheet.words(x + 6, y + 11, names, "soft", size=12)

    _draw_bars(sheet, scenes, layout, "ALU", "alu", x + width - 28)
    _draw_bars(sheet, scenes, layout, "texture", "texture", x + width - 14)
    return _draw_slots(sheet, scenes, layout)


def _draw_bars(
    sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout, unit: str, ink: str, x: np.ndarray
) -> None:
    """Draw how busy a unit of each engine is, as a bar at ``x``."""
    number = np.arange(len(x))
    _, y = layout.engine_corners(number)
    height = layout.engine_size[1]
    room = height - 14
    foot = y + height - 7
    share = together([scene.share(unit) for scene in scenes], 0)
    bar = np.maximum(share, 0.5) / 100 * room
    sheet.boxes(f"room {unit}", x, y + height / 2, 10, room, ink="faint")
    source = sheet.boxes(
        unit,
        x,
        foot - bar / 2,
        10,
        bar,
        ink=ink,
        moves=("y", "h"),
        columns={"percent": share},
        words=[f"SIMD engine {n}, {unit}" for n in number],
        tip="@words: at work @percent %; @cache",
    )
    _add_hits(sheet, source, scenes, "L1")


def _draw_slots(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> np.ndarray:
    """Draw the engines' slots for wavefronts, in a row or two. Returns their centres, of shape
    (engines, slots, 2).
    """
    x, y = layout.engine_corners(np.arange(scenes[0].report.device.simd_engines))
    slots = max(scene.report.active for scene in scenes)
    beside = -(-slots // 2) if slots > 4 else slots
    step = min(22.0, (layout.engine_size[0] - 44) / beside)
    row, column = np.divmod(np.arange(slots), beside)
    across = x[:, np.newaxis] + 14 + column * step
    down = y[:, np.newaxis] + 30 + row * min(20.0, step + 4)
    places = np.stack(np.broadcast_arrays(across, down), -1)
    side = min(14.0, step - 3)
    centres = places.reshape(-1, 2).T
    sheet.boxes("slots", centres[0], centres[1], side, side, line="line", round=7)
    return places


def _add_hits(sheet: Sheet, source: ColumnDataSource, scenes: Sequence[Scene], cache: str) -> None:
    """Hover texts for a cache: the share of the requested lines that it held."""
    hits = together([scene.share(f"{cache} hits") for scene in scenes], -1)
    rates = [f"{cache} has {percent} % of the lines" for percent in range(101)]
    sheet.track(source, "hits", hits + 1, text="cache", names=["it is asked for nothing", *rates])


def _draw_memory(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> None:
    """Draw how busy L2 slices and memory channels are."""
    rows = {"L2": ("L2 slice", "L2"), "DRAM": ("memory channel", "channel")}
    for row, (unit, (title, short)) in enumerate(rows.items()):
        share = together([scene.share(unit) for scene in scenes], 0)
        count = share.shape[1]
        room = layout.engines_width / count
        left = layout.left + np.arange(count) * room
        y = layout.memory_top + 9 + 24 * row
        sheet.boxes(f"room {unit}", left + room / 2, y, room - 6, 19, ink="faint", line="line")
        bar = np.maximum(share, 0.5) / 100 * (room - 6)
        source = sheet.boxes(
            unit,
            left + 3 + bar / 2,
            y,
            bar,
            19,
            ink="texture",
            alpha=0.45,
            moves=("x", "w"),
            columns={"percent": share},
            words=[f"{title} {i}" for i in range(count)],
            tip="@words: at work @percent %" + ("; @cache" if unit == "L2" else ""),
        )
        if unit == "L2":
            _add_hits(sheet, source, scenes, unit)
        names = [f"{short} {i}" for i in range(count)]
        sheet.words(left + room / 2, y, names, size=12, align="center")


def _draw_running(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> None:
    """Draw the number of running wavefronts over time: it rises, stays level, and drains. Where
    clocks were left out the axis is torn.
    """
    left, width, top = layout.left, layout.engines_width, layout.running_top
    engines = scenes[0].report.device.simd_engines
    slots = max(scene.report.active for scene in scenes) * engines
    count = np.concatenate([np.tile(scene.running.sum(axis=1), (FRAMES, 1)) for scene in scenes])
    bar = np.maximum(count / slots * RUNNING, 3 * (count > 0))  # a few are seen, too
    pitch = width / FRAMES
    x = left + (np.arange(FRAMES) + 0.5) * pitch

    middle = top + RUNNING / 2
    sheet.boxes("room running", left + width / 2, middle, width, RUNNING, ink="faint", alpha=0.6)
    columns = np.tile(x, (len(bar), 1))
    foot = top + RUNNING
    sheet.boxes("run", columns, foot - bar / 2, pitch + 0.3, bar, ink="c", alpha=0.45)
    sheet.play_head("head", np.tile(x, len(scenes)), middle, RUNNING, 2.5)
    words = f"wavefronts running, of {slots} that fit"
    sheet.words(left + width, top - 8, words, "soft", size=12, align="right")
    if any(scene.skipped_clocks for scene in scenes):
        _draw_tear(sheet, scenes, left + TORN * pitch, top)


def _draw_tear(sheet: Sheet, scenes: Sequence[Scene], x: float, top: float) -> None:
    """Tear the time axis at ``x`` in the scenes of which a part was left out, and say what."""
    texts = ["", *dict.fromkeys(filter(None, (scene.tear() for scene in scenes)))]
    which = _by_frame([texts.index(scene.tear()) for scene in scenes])
    torn = np.where(which > 0, x, np.nan)[:, np.newaxis]
    middle = top + RUNNING / 2
    height = RUNNING + 6
    sheet.boxes("tear", torn, middle, 8, height, ink="surface")
    for side in (-5, 5):
        sheet.boxes(f"edge of the tear {side}", torn + side, middle, 1.5, height, ink="ink")
    sheet.numbers("left out", x, top - 9, which, names=texts, bold=True, align="center", size=12)
