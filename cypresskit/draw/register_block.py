"""The register block of a work-item: operands, products, place in the matrices, current line.

All numbers come from a recorded run (``block_steps``): register values after each instruction,
fetched texels, executed lines. ``find_block`` determines the role of each register, and has this
view's limits. Several work-items of one launch are scenes of one picture: a click on the map of C
selects one. A click on an element of the block shows its sum so far.
"""

from collections.abc import Sequence

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Plot, Rect
from bokeh.transform import linear_cmap

from cypresskit.draw import theme
from cypresskit.draw.block import Block, find_block
from cypresskit.draw.block_steps import BlockSteps, Cells
from cypresskit.draw.bundles import short_fetch
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.convention import MATRICES
from cypresskit.kernels.own import Source
from cypresskit.kernels.samples import record_work_item
from cypresskit.machine.record import Recording

GAP = 0.6  # cells between the operands and the block
#: Of a number's color, from the most negative through zero to the most positive.
ALPHAS = (0.42, 0.34, 0.26, 0.18, 0.1, 0.04, 0.1, 0.18, 0.26, 0.34, 0.42)
ITEM_KEYS = 10_000  # the key of work-item 0; elements of the block have smaller ones
MAX_ITEMS = 64  # that the map can show
Shapes = dict[str, tuple[int, int]]  # rows and columns of each matrix as stored


def register_block(*recordings: Recording | Source) -> Player:
    """Draw a work-item's register block, one frame per executed instruction.

    Parameters
    ----------
    recordings
        Recordings of work-items of one launch, with A as resource 0 and B as resource 1; a scene
        each. Or a kernel, of which work-item 0 of a small launch is shown. By default "sgemm_tn".

    Raises
    ------
    ValueError
        If the run keeps no block in registers, or the recordings are of different launches.

    Examples
    --------
    >>> ck.draw.register_block("sgemm_tn")
    """
    runs = [record_work_item(recording) for recording in recordings or ("sgemm_tn",)]
    launches = {(run.program.lines, run.shape.domain, tuple(run.textures.items())) for run in runs}
    if len(launches) > 1:
        raise ValueError(
            "these recordings are of different launches: pass work-items of one launch"
        )
    scenes = [BlockSteps(run, find_block(run)) for run in runs]
    program = runs[0].program
    name = program.name.removesuffix(".il")
    sheet = Sheet(f"How often is a fetched number used? The register block of {name}")

    begins = np.cumsum([0, *(scene.steps for scene in scenes)]).tolist()
    sheet.about |= _sums(scenes, begins)
    _draw_cells(sheet, scenes)
    maps = _draw_maps(sheet, scenes)
    legend = sheet.legend(
        ("written by this line", "wrote", "ring"),
        ("read by this line", "read", "frame"),
        ("this work-item's part", "shade"),
        ("of A", "a"),
        ("of B", "b"),
        ("of C: the stronger, the larger", "c"),
    )
    lines = [[run.line(step)] for run, scene in zip(runs, scenes) for step in range(scene.steps)]
    names = [
        (f"({', '.join(map(str, run.place))})", scene.steps) for run, scene in zip(runs, scenes)
    ]
    first = scenes[0]
    return sheet.player(
        [caption for scene in scenes for caption in scene.captions],
        "computed",
        side=[maps, legend],
        listing=(tuple(map(short_fetch, program.lines)), lines),
        scenes=names if len(runs) > 1 else (),
        opens=min(first.updates),
    )


def _sums(scenes: Sequence[BlockSteps], begins: Sequence[int]) -> dict:
    """Return the texts for a click on each element of the block, with their first frames."""
    about: dict[int, list[tuple[int, str]]] = {}
    for scene, begin in zip(scenes, begins):
        for n, words in scene.sums(begin):
            about.setdefault(n, []).append(words)
    return about


def _by_scene(scenes: Sequence[BlockSteps], values: Sequence) -> np.ndarray:
    """Repeat a value of each scene for all of its steps."""
    return np.repeat(values, [scene.steps for scene in scenes], axis=0)


# -- the block


def _draw_cells(sheet: Sheet, scenes: Sequence[BlockSteps]) -> None:
    """Draw the block, with A's columns on its left and B's rows above it."""
    block = scenes[0].block
    rows, columns, phases = block.rows, block.columns, block.phases
    edge = phases + GAP  # from the block to the outer edge of the operands
    x_range = -edge - 0.15, len(columns) + 1.45
    y_range = len(rows) + 0.75, -edge - 0.75
    sheet.plot(sheet.title, x_range, y_range)

    x = {column: n + 0.5 for n, column in enumerate(columns)}
    y = {row: n + 0.5 for n, row in enumerate(rows)}
    before = [phase + 0.5 - edge for phase in range(phases)]
    groups = {
        "C": {cell: (x[j], y[i]) for (i, j), cell in block.totals.items()},
        "B": {cell: (x[j], before[phase]) for (phase, j), cell in block.b.items()},
        "A": {cell: (before[phase], y[i]) for (i, phase), cell in block.a.items()},
    }
    for n, (name, places) in enumerate(groups.items()):
        _draw_group(sheet, name, places, [scene.groups[n] for scene in scenes])
    _draw_k(sheet, scenes, before)
    _draw_names(sheet, block, list(y.values()), before)
    blocks = [f"block {scene.where}" for scene in scenes]
    which = _by_scene(scenes, range(len(scenes)))
    sheet.numbers("part", 0, len(rows) + 0.38, which, names=blocks, bold=True)


def _draw_k(sheet: Sheet, scenes: Sequence[BlockSteps], before: Sequence[float]) -> None:
    """Write the k of A's columns above them, and of B's rows beside them."""
    phases = len(before)
    heads = sheet.source(
        "k",
        x=[*before, *[-0.12] * phases],
        y=[*[-GAP / 2] * phases, *before],
        align=["center"] * phases + ["right"] * phases,
    )
    k = np.concatenate([scene.k for scene in scenes])
    sheet.track(heads, "k", k, text="text", prefix="k=")
    sheet.text("x", "y", "text", "soft", align="align", size=11, source=heads)


def _draw_names(sheet: Sheet, block: Block, y: Sequence[float], before: Sequence[float]) -> None:
    """Write the operands' names, and the registers of the rows of C and B and of A's columns."""
    edge = block.phases + GAP
    right, below = len(block.columns) + 0.1, len(block.rows) + 0.3
    look: dict = {"color": "soft", "size": 11}
    names = [_registers(block.totals, 0, row) for row in block.rows]
    names += [_registers(block.b, 0, phase) for phase in range(block.phases)]
    sheet.text([right] * len(names), [*y, *before], names, **look)
    names = [_registers(block.a, 1, phase) for phase in range(block.phases)]
    sheet.text(list(before), [below] * len(names), names, align="center", **look)
    corners = [0.0, -GAP - block.phases / 2 - 0.1], [-edge - 0.4, -GAP - 0.35]
    sheet.text(*corners, ["B", "A"], bold=True)


def _registers(cells: dict[tuple[int, int], tuple[int, int]], axis: int, number: int) -> str:
    """Return the registers of a row (axis 0) or column of cells: ``r2 r3``, or ``r2-r9`` for three
    or more.
    """
    numbers = sorted({register for place, (register, _) in cells.items() if place[axis] == number})
    if len(numbers) < 3:
        return " ".join(f"r{n}" for n in numbers)
    return f"r{numbers[0]}-r{numbers[-1]}"


def _draw_group(
    sheet: Sheet,
    name: str,
    places: dict[tuple[int, int], tuple[float, float]],
    steps: Sequence[Cells],
) -> None:
    """Draw register components at their ``places``: tinted boxes, numbers, and frames around
    accesses.
    """
    x, y = (np.array(axis, np.float32) for axis in zip(*places.values()))
    values, wrote, read = map(np.concatenate, zip(*steps))
    source = sheet.source(
        f"cells {name}",
        x=x,
        y=y,
        register=[f"r{register}.{'xyzw'[c]}" for register, c in places],
        key=np.arange(len(places)),
        lit=[0] * len(places),
        wrote=wrote,
        read=read,
    )
    sheet.track(source, "value", values, text="text")
    finite = values[np.isfinite(values)]
    top = float(np.abs(finite).max(initial=0)) or 1.0
    tints = [f"{name.lower()} {alpha}" for alpha in ALPHAS]  # of the matrix, as everywhere
    tint = linear_cmap("value", list(map(theme.light, tints)), -top, top, nan_color="rgba(0,0,0,0)")
    sheet.colors.append((tint.transform, "palette", tints))
    box = sheet.glyph(Rect, "x", "y", 0.94, 0.94, source=source, fill_color=tint)
    sheet.paint(box, line_color="line")
    tip = "@register = @value"
    sheet.fig.add_tools(HoverTool(renderers=[box], tooltips=tip, attachment="vertical"))
    _draw_frames(sheet, source, 0.9, 0.9)
    if name == "C":
        sheet.ring(source, 0.7, 0.7, "lit", "ink")
        sheet.picks.append(
            {"source": source, "figure": sheet.fig, "w": 1, "h": 1, "on": 3, "marks": []}
        )
    sheet.text("x", "y", "text", align="center", fit=0.34, source=source)


def _draw_frames(sheet: Sheet, source: ColumnDataSource, w, h) -> None:
    """Draw frames around read and written cells: the columns of these names are line widths."""
    for column, dash in (("read", "dashed"), ("wrote", "solid")):
        sheet.ring(source, w, h, column, column, line_dash=dash)


# -- the matrices


class _Map:
    """The matrices side by side; a unit is an element. ``right`` is the right edge of the last one,
    including a gap.
    """

    def __init__(self, recording: Recording, block: Block) -> None:
        self.shapes: Shapes = {
            MATRICES[n]: (rows, texels * words)
            for n, (rows, texels, words) in recording.textures.items()
            if n in MATRICES
        }
        k_of_a, k_of_b = block.k_axis
        self.shapes["C"] = self.shapes["A"][1 - k_of_a], self.shapes["B"][1 - k_of_b]
        self.gap = 0.06 * sum(columns for _, columns in self.shapes.values())
        self.left = {}
        right = 0.0
        for name, (_, columns) in self.shapes.items():
            self.left[name] = right
            right += columns + self.gap
        self.right = self.left["C"] + self.shapes["C"][1] + self.gap

    def box(self, name: str, rows: range, columns: range) -> tuple[float, float, int, int]:
        """Return center x, center y, width and height of a part of a matrix."""
        x = self.left[name] + (columns[0] + columns[-1] + 1) / 2
        return x, (rows[0] + rows[-1] + 1) / 2, len(columns), len(rows)


def _draw_maps(sheet: Sheet, scenes: Sequence[BlockSteps]) -> Plot:
    """Draw the matrices, the work-item's part of them, and each step's accesses."""
    recording, block = scenes[0].recording, scenes[0].block
    maps = _Map(recording, block)
    gap = maps.gap
    sizes = {name: f"{rows} x {columns}" for name, (rows, columns) in maps.shapes.items()}
    listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
    label = f"The matrices in memory: {listed}"
    highest = max(rows for rows, _ in maps.shapes.values())
    x_range = (-gap / 2, maps.right - gap / 2)
    y_range = (highest + gap / 2, -1.6 * gap)
    fig = sheet.plot(label, x_range, y_range, high=200)
    fig.min_height = 110

    boxes = [maps.box(name, range(r), range(c)) for name, (r, c) in maps.shapes.items()]
    columns = (list(column) for column in zip(*boxes))
    outlines = sheet.glyph(Rect, *columns, fill_color=None, line_width=1.5)
    sheet.paint(outlines, line_color="ink")
    stripes = [
        [maps.box(*stripe) for stripe in _stripes(scene.block, maps.shapes)] for scene in scenes
    ]
    parts = _by_scene(scenes, stripes)
    sheet.boxes("stripes", *np.moveaxis(parts, -1, 0), color="shade", line="line")
    _draw_items(sheet, scenes, maps)
    has_room = {name: 8 * columns > maps.right for name, (_, columns) in maps.shapes.items()}
    names = [f"{name}  {size}" if has_room[name] else name for name, size in sizes.items()]
    sheet.text(list(maps.left.values()), -0.45 * gap, names, text_baseline="bottom")
    _draw_marks(sheet, scenes, maps)
    return fig


def _draw_marks(sheet: Sheet, scenes: Sequence[BlockSteps], maps: _Map) -> None:
    """Draw frames around what a step fetches of A and B, reads of A and B, and writes of C."""
    row, column, high, wide = np.moveaxis(np.concatenate([scene.marks for scene in scenes]), -1, 0)
    left = np.array([maps.left[name] for name in "ABABC"], np.float32)
    frames: dict = {"wrote": [3, 3, 0, 0, 3], "read": [0, 0, 2, 2, 0]}
    x, y = left + column + wide / 2, row + high / 2
    marks = sheet.source("marks", x=x, y=y, w=wide, h=high, **frames)
    _draw_frames(sheet, marks, "w", "h")


def _stripes(block: Block, shapes: Shapes) -> list[tuple[str, range, range]]:
    """Return the rows and columns of each matrix that the work-item uses."""
    parts = []
    for name, part, k_axis in zip("AB", (block.rows, block.columns), block.k_axis):
        depth = range(shapes[name][k_axis])
        parts.append((name, part, depth) if k_axis else (name, depth, part))
    return [*parts, ("C", block.rows, block.columns)]


def _draw_items(sheet: Sheet, scenes: Sequence[BlockSteps], maps: _Map) -> None:
    """Draw all work-items in the map of C, to be selected."""
    width, height, _ = scenes[0].recording.shape.domain
    block = scenes[0].block
    down, across = len(block.rows), len(block.columns)
    if (height * down, width * across) != maps.shapes["C"] or width * height > MAX_ITEMS:
        return
    scene_of = {scene.recording.item: n for n, scene in enumerate(scenes)}
    y, x = np.divmod(np.arange(width * height), width)
    words = [
        f"({i}, {j}): C[{j * down}:{(j + 1) * down}, {i * across}:{(i + 1) * across}]"
        for i, j in zip(x, y)
    ]
    left = maps.left["C"]
    sheet.boxes(
        "items",
        left + (x + 0.5) * across,
        (y + 0.5) * down,
        across,
        down,
        fill=None,
        line="line",
        words=[f"work-item {name}" for name in words],
        key=ITEM_KEYS + np.arange(len(x)),
    )
    for item, name in enumerate(words):
        missing = "" if item in scene_of else ", not recorded here"
        sheet.about[ITEM_KEYS + item] = f"Work-item {name}{missing}."
    sheet.scene_of_key |= {ITEM_KEYS + item: n for item, n in scene_of.items()}
