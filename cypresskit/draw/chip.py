"""The chip at work: each wavefront leaves the map of C for a SIMD engine, and returns when done.

Drawn from timing reports, each over its own duration: when and where each wavefront ran, and how
busy arithmetic and texture units, L2 slices and memory channels were. Several reports (sizes,
kernels) are scenes of one picture. ``chip_scene`` computes what a report shows in each frame.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from cypresskit.draw.chip_scene import ENGINE_KEYS, FRAMES, HIDDEN, ChipLayout, Scene
from cypresskit.draw.display import require_nonempty
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import HEADING, Sheet
from cypresskit.kernels.own import Source, resolve
from cypresskit.tables import plural
from cypresskit.threads import map_in_threads
from cypresskit.timing import Report, simulate

SIZES = (2048, 1024, 512, 256, 128)
STATES = "faint", "c 0.38", "c"  # colors of a tile: not started, running, done
IDLE = "faint 0.2", "faint 0.6"
MEMORY = "texture 0.45"  # the busy part of an L2 slice or a channel
PAST = "c 0.15", "c 0.45"  # the chart of running wavefronts: to come, so far
MAX_ENGINES = 20  # that there is room for
RUNNING = 120  # pixels: height of the chart of running wavefronts


def chip(
    reports: Report | Sequence[Report] | Source = "sgemm_tn",
    sizes: Sequence[int] = SIZES,
) -> Player:
    """Draw the chip over the duration of one or more launches, one scene each.

    Parameters
    ----------
    reports
        Reports of ``ck.simulate`` for boards with the same number of engines (at most 20), L2
        slices and memory channels; or a kernel, which is simulated.
    sizes
        The sizes N for which a kernel is simulated.

    Raises
    ------
    ValueError
        If there are no reports, or the boards differ or have more engines.

    Examples
    --------
    >>> ck.draw.chip("sgemm_tn", [512, 1024])
    """
    if isinstance(reports, Source):
        kernel = resolve(reports)
        reports = map_in_threads(partial(simulate, kernel), sizes)
    drawn = require_nonempty(reports, "pass reports of simulate, or a kernel's name", Report)
    scenes = _scenes(drawn)

    device = drawn[0].device
    layout = ChipLayout(device, scenes)
    names = " and ".join(dict.fromkeys(r.kernel for r in drawn))
    sheet = Sheet(f"How many of the {device.simd_engines} engines have work? {names}")
    # On a phone, the engines are below C.
    sheet.stage("A map of C", layout.left, layout.height)
    _draw_map(sheet, scenes, layout)
    _draw_running(sheet, scenes, layout)
    label = "SIMD engines, L2 slices and memory channels"
    sheet.stage(label, layout.width - layout.left, layout.height, left=layout.left)
    _draw_engines(sheet, scenes, layout)
    _draw_memory(sheet, scenes, layout)
    _draw_dots(sheet, scenes, layout)
    running = np.array([scene.count for scene in scenes])
    has_room = (running < device.simd_engines * layout.fitting / 2).any(axis=0)

    legend = sheet.legend(
        ("tile not started", "faint"),
        ("running", "c", "pale"),
        ("done", "c"),
        ("wavefront", "ink"),
        ("arithmetic (ALU)", "alu"),
        ("texture unit", "texture"),
        ("L2 slice or memory channel", MEMORY),
    )
    captions = [scene.say(frame) for scene in scenes for frame in range(FRAMES)]
    return sheet.player(
        captions,
        "modeled",
        below=[legend],
        step="Moment",
        scenes=[(scene.name, FRAMES) for scene in scenes],
        # Halfway, or where half of the chip is empty.
        opens=FRAMES // 2 + int(np.argmax(has_room[FRAMES // 2 :])),
    )


def _scenes(reports: Sequence[Report]) -> list[Scene]:
    """Return a scene for each report. Raises ``ValueError`` for reports that don't fit together."""
    boards = {(r.device.simd_engines, r.device.memory_channels) for r in reports}
    if len(boards) != 1 or max(boards)[0] > MAX_ENGINES:
        raise ValueError(
            f"SIMD engines and memory channels are {boards}: pass reports for boards with the same"
            f" numbers of both, and at most {MAX_ENGINES} engines"
        )
    return [Scene(reports, number) for number in range(len(reports))]


def _concatenate(scenes: Sequence[np.ndarray], empty: float) -> np.ndarray:
    """Concatenate arrays (frames, things) of several scenes, padded to the largest number of
    things.
    """
    most = max(part.shape[1] for part in scenes)
    return np.concatenate(
        [np.pad(p, ((0, 0), (0, most - p.shape[1])), constant_values=empty) for p in scenes]
    )


def _draw_map(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> None:
    """Draw the map of C, a tile for one or more wavefronts."""
    left = layout.map_left
    for scene in scenes:
        if scene.has_a_tile_each:
            sheet.about |= scene.stories()

    heads = [
        f"{'Simulated' if scene.skipped else 'C'}: {scene.per_tile}"
        f" {plural('wavefront', scene.per_tile)} per tile"
        for scene in scenes
    ]
    which = np.repeat(range(len(scenes)), FRAMES)
    sheet.numbers("heading", left, 14, which, names=heads, **HEADING)

    columns = zip(*(scene.tiles(layout) for scene in scenes))
    x, y, size, state, key = map(_concatenate, columns, (np.nan, np.nan, np.nan, 0, -1))
    sheet.boxes("map", x, y, size, size, fill=(STATES, state), key=key)


def _draw_dots(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> None:
    """Draw the running wavefronts."""
    columns = zip(*(scene.dots(layout) for scene in scenes))
    x, y, width, key = map(_concatenate, columns, (np.nan, np.nan, HIDDEN, -1))
    sheet.boxes(
        "dots",
        x,
        y,
        width,
        "w",  # as wide as high
        color="ink",
        key=key,
        moves=("x", "y", "w"),
        round=7,
    )
    # They come from C, and go back there.
    c = sheet.figures[0]
    c.renderers += sheet.fig.renderers[-2:]
    sheet.picks.append(sheet.picks[-1] | {"figure": c})


def _draw_engines(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> None:
    """Draw the engines, their slots and their bars."""
    engines = scenes[0].report.device.simd_engines
    number = np.arange(engines)
    x, y = layout.engine_x, layout.engine_y
    width, height = layout.engine_size
    keys = [scene.first_key + ENGINE_KEYS + number for scene in scenes]
    for scene, of_scene in zip(scenes, keys):
        sheet.about |= {key: scene.story(n) for n, key in enumerate(of_scene.tolist())}

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
        key=np.repeat(keys, FRAMES, axis=0),
        tip="@words: @busy wavefronts",
    )
    sheet.text(x + 6, y + 11, [f"engine {n}" for n in number], "soft")
    if more := layout.fitting - layout.slots.shape[2]:
        sheet.text(x + 6, y + 54, [f"and {more} more"] * engines, "soft")

    room = height - 14
    for unit, color, left in (
        ("ALU", "alu", x + width - 28),
        ("texture", "texture", x + width - 14),
    ):
        words = [f"SIMD engine {n}, {unit}" for n in number]
        place = left, y + height / 2, 10, room
        _draw_shares(sheet, scenes, unit, place, words, upward=True, color=color)
    x, y = layout.slots.reshape(2, -1)
    sheet.boxes("slots", x, y, layout.slot_size, layout.slot_size, line="line", round=7)


def _draw_shares(
    sheet: Sheet,
    scenes: Sequence[Scene],
    unit: str,
    room: tuple,
    words: Sequence[str],
    *,
    upward: bool = False,
    **style,
) -> None:
    """Draw how busy the units of a kind are: bars that fill their rooms (x, y, width, height), from
    the left or upward.
    """
    x, y, width, height = room
    share = np.concatenate([scene.share(unit) for scene in scenes])
    part = np.maximum(share, 0.5) / 100
    sheet.boxes(f"room {unit}", *room, color="faint")
    if upward:
        y, height = y + height / 2 - part * height / 2, part * height
    else:
        x, width = x - width / 2 + part * width / 2, part * width
    sheet.boxes(
        unit,
        x,
        y,
        width,
        height,
        moves=("y", "h") if upward else ("x", "w"),
        columns={"percent": share},
        words=words,
        tip="@words: busy @percent %",
        **style,
    )


def _draw_memory(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> None:
    """Draw how busy the L2 slices and the memory channels are."""
    rows = {"L2": ("L2 slice", "L2"), "DRAM": ("memory channel", "mem")}
    slices = np.arange(scenes[0].report.device.memory_channels)
    wide = layout.engines_width / len(slices)
    x = layout.left + (slices + 0.5) * wide
    for row, (unit, (title, short)) in enumerate(rows.items()):
        room = x, layout.memory_top + 9 + 24 * row, wide - 6, 19
        words = [f"{title} {i}" for i in slices]
        _draw_shares(sheet, scenes, unit, room, words, fill=([MEMORY], 0 * slices))
        sheet.text(x, room[1], [f"{short} {i}" for i in slices], align="center")


def _draw_running(sheet: Sheet, scenes: Sequence[Scene], layout: ChipLayout) -> None:
    """Draw the number of running wavefronts over time."""
    left, width, top = layout.running_left, layout.running_width, layout.running_top
    slots = len(layout.engine_x) * layout.fitting
    now, done = zip(*((scene.count, scene.done) for scene in scenes))
    count = np.repeat(now, FRAMES, axis=0)
    bar = np.maximum(count / slots * RUNNING, 3 * (count > 0))  # even one is visible
    pitch = width / FRAMES
    x = left + (np.arange(FRAMES) + 0.5) * pitch

    middle = top + RUNNING / 2
    sheet.boxes("room running", left + width / 2, middle, width, RUNNING, color="faint", alpha=0.6)
    columns = np.tile(x, (len(bar), 1))
    foot = top + RUNNING
    past = np.tile(np.tri(FRAMES, dtype=int), (len(scenes), 1))  # until each frame
    sheet.boxes("run", columns, foot - bar / 2, pitch + 0.3, bar, fill=(PAST, past))
    sheet.play_head("head", np.tile(x, len(scenes)), middle, RUNNING, 2.5)
    sheet.text(left, top - 10, f"room for {slots:,}", "soft")
    for y, word, counts, color in ((60, "running", now, "ink"), (84, "done", done, "c")):
        values = np.concatenate(counts)
        sheet.numbers(word, left, y, values, prefix=f"{word}: ", color=color, **HEADING)
