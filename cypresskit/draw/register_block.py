"""The register block of a work-item, filling up: operands, products, place in the matrices, and the
current line.

Every number comes from a recorded run: register values after each instruction, texels fetched,
lines executed. ``find_block`` finds the role of each register; its limits are this view's. Several
work-items of one launch are scenes of one picture; a click on the map of C chooses one, a click on
an element of the block shows its sum so far.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Rect
from bokeh.transform import linear_cmap

from cypresskit.draw import theme
from cypresskit.draw.block import Block, Origins, find_block
from cypresskit.draw.element import follow
from cypresskit.draw.player import Player, short
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.own import Source
from cypresskit.kernels.samples import recorded
from cypresskit.machine.record import Recording

NAMES = {0: "A", 1: "B"}
GAP = 0.6  # between the operands and the block, in cells
SHOWN = 6  # terms of a sum that are written
FLOW = {
    "loop": "enters the loop",
    "endloop": "ends a turn of the loop",
    ("break", True): "stays in the loop",
    ("break", False): "leaves the loop",
    ("if", True): "holds: runs what follows",
    ("if", False): "does not hold: skips what follows",
}
ITEM, ITEMS = (
    10_000,
    64,
)  # what a work-item's number is added to, to be a key; work-items that the map has room for


class _Frames:
    """Every number in the picture for each step, or for the first ``most``, from one pass over a
    recording.
    """

    def __init__(self, recording: Recording, block: Block, most: int | None = None) -> None:
        self.recording, self.block = recording, block
        self.steps = min(len(recording), most or len(recording))
        self.updates = {
            step: updates for step, updates in block.updates_at.items() if step < self.steps
        }
        self.dtype = np.float64 if block.words > 1 else np.float32
        self.bits = np.zeros(
            (self.steps, 1 + recording.writes[:, 1].max(), 4), np.uint32
        )  # of registers, after a step
        self.k = np.full((self.steps, 2 * block.phases), -1)  # of A's columns, then of B's rows
        touched, read = self._follow(), np.zeros(self.bits.shape, bool)
        self.marks = np.full(
            (self.steps, 5, 2), np.nan, np.float32
        )  # row, column: fetched A, B; read A, B; written C
        self.fetched = {step: fetch for step, *fetch in recording.fetches.tolist()}
        self.stored = dict(recording.stores.tolist())
        for step, (resource, x, y, _) in self.fetched.items():
            if step < self.steps and resource in NAMES:
                self.marks[step, resource] = y, x
        for step, updates in self.updates.items():
            self.marks[step, 2:] = [
                (o[0], o[1])
                for o in (updates[0].from_a, updates[0].from_b, block.place(updates[0]))
            ]
            for cell in (cell for u in updates for cell in (u.a, u.b)):
                read[step, *cell] = True
        self.values, self.wrote, self.read = [], [], []
        for group in (block.totals, block.b, block.a):
            register, c = np.array(list(group.values())).T
            words = self.bits[:, register[:, np.newaxis], c[:, np.newaxis] + np.arange(block.words)]
            self.values.append(np.ascontiguousarray(words).view(self.dtype)[..., 0])
            self.wrote.append(3 * touched[:, register, c])
            self.read.append(2 * read[:, register, c])
        self.captions = [self._caption(step) for step in range(self.steps)]

    def _follow(self) -> np.ndarray:
        """Fill in registers and k, step by step. Returns which registers each step writes."""
        recording, block = self.recording, self.block
        operands = [
            (n, axis, [cell for key, cell in group.items() if key[1 - n] == phase])
            for n, (group, axis) in enumerate(zip((block.a, block.b), block.k_axis))
            for phase in range(block.phases)
        ]
        touched, now = np.zeros(self.bits.shape, bool), np.zeros(self.bits.shape[1:], np.uint32)
        origins = Origins(recording, block.words)
        ends = np.searchsorted(recording.writes[:, 0], np.arange(1, self.steps + 1))
        for step, writes in enumerate(np.split(recording.writes, ends)[:-1]):
            _, register, component, bits = writes.T
            now[register, component], touched[step, register, component] = bits, True
            self.bits[step] = now
            origins.step(step)
            for n, (matrix, axis, cells) in enumerate(operands):
                held = {
                    o[axis] if o and o.resource == matrix else -1
                    for o in map(origins.known.get, cells)
                }
                # Half old and half new while it is fetched: then no k is shown.
                self.k[step, n] = held.pop() if len(held) == 1 else -1
        return touched

    def _number(self, step: int, cell: tuple[int, int]) -> str:
        """A register component's value after a step, as text."""
        register, c = cell
        return short(float(self.bits[step, register, c : c + self.block.words].view(self.dtype)[0]))

    def _caption(self, step: int) -> str:
        recording, block = self.recording, self.block
        i, line = recording.program.body[recording.at[step]], recording.line(step)
        text = recording.program.lines[line - 1].split(";")[0].strip()
        head = f"Step {step + 1} of {len(recording)}, line {line}: `{text}` "
        if updates := self.updates.get(step):
            total = _listed([self._number(step, u.total) for u in updates])
            places = (
                map(block.place, updates),
                (u.from_a for u in updates),
                (u.from_b for u in updates),
            )
            c, a, b = map(_span, places, "CAB")
            return f"{head}{c} grows by {a} times {b}, to {total}"
        if step in self.fetched:
            resource, x, y, inside = self.fetched[step]
            wide = recording.textures[resource][2] // block.words
            name = NAMES.get(resource, f"resource {resource}")
            where = (
                f"{name}[{y}, {x * wide}:{(x + 1) * wide}]"
                if inside
                else f"a texel outside {name}, which reads 0,"
            )
            return f"{head}fetches {where} into {i.dest.register}: {self._register(i, step)}"
        if step in self.stored:
            return (
                f"{head}stores {i.sources[0].register} to element {self.stored[step]} of global"
                " memory"
            )
        if i.op.kind == "flow":
            on = step + 1 == len(recording.at) or recording.at[step + 1] == recording.at[step] + 1
            return head + FLOW.get((i.op.flow, on), FLOW.get(i.op.flow, "goes on"))
        if i.dest is not None and i.dest.register.kind == "r":
            written, typed = str(i.dest).replace("_", ""), text.split(",")[0].split()[-1]
            renamed = re.match(r"r\d+", typed) and typed.split(".")[0] != str(i.dest.register)
            macro = f" ({typed} in the macro)" if renamed else ""
            return f"{head}sets {written}{macro} to {self._register(i, step)}"
        return head + i.op.meaning

    @property
    def where(self) -> str:
        """The work-item's block of C, as text."""
        rows, columns = self.block.rows, self.block.columns
        return f"C[{rows[0]}:{rows[-1] + 1}, {columns[0]}:{columns[-1] + 1}]"

    def sums(self, first: int) -> Iterator[tuple[int, tuple[int, str]]]:
        """(number, (frame, words)) for each element of the block: its sum from that frame on.
        ``first`` is the frame of the recording's first step.
        """
        cells = list(self.block.totals.values())
        names = {
            c: f"**C[{i}, {j}]**, in r{c[0]}.{'xyzw'[c[1]]}"
            for (i, j), c in self.block.totals.items()
        }
        yield from (
            (n, (first, f"{names[cell]}: nothing added yet.")) for n, cell in enumerate(cells)
        )
        terms: dict[tuple[int, int], list[str]] = {cell: [] for cell in cells}
        for step, updates in self.updates.items():
            for u in updates:
                so_far = terms[u.total]
                so_far.append(
                    f"{self._number(step, u.a)} \N{MULTIPLICATION SIGN} {self._number(step, u.b)}"
                )
                shown = "... + " * (len(so_far) > SHOWN) + " + ".join(so_far[-SHOWN:])
                last = f"{_span([u.from_a], 'A')} times {_span([u.from_b], 'B')}"
                after = f"after {len(so_far)} term{'s' * (len(so_far) > 1)}; the last is {last}."
                sentence = f"{names[u.total]} = {shown} = {self._number(step, u.total)}, {after}"
                yield cells.index(u.total), (first + step, sentence)

    def rounds(self) -> list[int]:
        """The first step of each rank-1 update."""
        axis = self.block.k_axis[0]
        return [
            next(same)[0]
            for _, same in groupby(self.updates.items(), lambda update: update[1][0].from_a[axis])
        ]

    def _register(self, i, step: int) -> str:
        """The result of an instruction as text, read in its own type; of a copy or fetch, in the
        kernel's precision.
        """
        bits, written = self.bits[step, i.dest.register.index], list(i.dest.written)
        copies = i.op.kind == "fetch" or i.opcode in ("mov", "cmov_logical")
        if i.op.result == "b" and not copies:
            return ", ".join("true" if b else "false" for b in bits[written])
        if i.op.result == "d" or (copies and self.block.words > 1):
            values = bits.view(np.float64)[sorted({c // 2 for c in written})]
        else:
            values = bits.view({"i": np.int32, "u": np.uint32}.get(i.op.result, np.float32))[
                written
            ]
        shown = [short(float(v)) for v in values]
        return _listed(shown[:1] if len(set(shown)) == 1 else shown)


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def _span(places: Iterable, name: str) -> str:
    """Elements as text: ``A[3, 8:12]``."""
    rows, columns = (
        sorted(set(along)) for along in zip(*((place[0], place[1]) for place in places))
    )
    parts = [f"{p[0]}:{p[-1] + 1}" if len(p) > 1 else str(p[0]) for p in (rows, columns)]
    return f"{name}[{', '.join(parts)}]"


def register_block(
    *recordings: Recording | Source,
    steps: int | None = None,
    element: tuple[int, int] | None = None,
) -> Player:
    """A player of a work-item's register block, one frame for each instruction that it executed.

    ``recordings`` come from ``Recorder``s that listened to one launch with A as resource 0 and B as
    resource 1, a scene for each work-item; or one is a kernel, of which work-item 0 of a
    small run is shown (by default "sgemm_tn"). ``steps`` is the number of steps that are drawn at
    most. ``element``, a row and a column of C, gets a star. Raises ``ValueError`` if the run keeps
    no block in registers, and for recordings of different launches.
    """
    runs = [recorded(one) for one in recordings or ("sgemm_tn",)]
    if len({(one.program.lines, one.domain, tuple(one.textures.items())) for one in runs}) > 1:
        raise ValueError("a register block is drawn for work-items of one launch, not of several")
    scenes = [_Frames(one, find_block(one), steps) for one in runs]
    first, recording = scenes[0], runs[0]
    items = ", ".join(str(one.place if len(one.place) > 1 else one.place[0]) for one in runs)
    sheet = Sheet(
        f"Register block of {recording.program.name}, work-item{'s' * (len(runs) > 1)} {items}"
    )
    starts = np.cumsum([0, *(one.steps for one in scenes)]).tolist()
    about: dict[int, list[tuple[int, str]]] = {}
    for n, words in (sum_ for one, begin in zip(scenes, starts) for sum_ in one.sums(begin)):
        about.setdefault(n, []).append(words)
    sheet.about |= about
    _draw_cells(sheet, scenes)
    starred = _draw_star(sheet, scenes, element)
    maps = _draw_maps(sheet, scenes)
    listing = (
        recording.program.lines,
        [r.line(s) for r, f in zip(runs, scenes) for s in range(f.steps)],
    )
    legend = sheet.key(
        ("written by this line", "wrote", "ring"),
        ("read by it", "read", "frame"),
        ("this work-item's part", "shade", "box"),
        ("above zero", theme.TINTS[-1], "box"),
        ("below zero", theme.TINTS[0], "box"),
        *starred,
    )
    marks = [begin + step for one, begin in zip(scenes, starts) for step in one.rounds()]
    captions = [caption for one in scenes for caption in one.captions]
    names = [(f"({', '.join(map(str, one.place))})", each.steps) for one, each in zip(runs, scenes)]
    size = f"{len(first.block.rows)} x {len(first.block.columns)} float{32 * first.block.words}"
    line = f"{first.where}, {size}, {first.steps} steps, {len(first.rounds())} rank-1 updates"
    return sheet.player(
        captions,
        [line],
        side=[maps, legend],
        listing=listing,
        marks=marks,
        scenes=names if len(runs) > 1 else (),
        still_frame=3 * first.steps // 4,
        first_frame=int(np.isfinite(scenes[0].marks[:, :2, 0]).any(axis=1).argmax()),
    )


def _registers(cells: dict[tuple[int, int], tuple[int, int]], axis: int, number: int) -> str:
    """The registers of the cells in a row (axis 0) or column, as text: ``r2 r3``, or ``r2-r9`` for
    more than two.
    """
    numbers = sorted({register for place, (register, _) in cells.items() if place[axis] == number})
    return (
        " ".join(f"r{n}" for n in numbers) if len(numbers) < 3 else f"r{numbers[0]}-r{numbers[-1]}"
    )


def _all(scenes: Sequence[_Frames], name: str, n: int | None = None) -> np.ndarray:
    """The attribute ``name`` of all scenes (or its ``n``-th array), joined along the frames."""
    return np.concatenate(
        [getattr(scene, name) if n is None else getattr(scene, name)[n] for scene in scenes]
    )


def _draw_cells(sheet: Sheet, scenes: Sequence[_Frames]) -> None:
    """Draw the block, with A's columns on its left and B's rows above it."""
    block = scenes[0].block
    rows, columns, phases = block.rows, block.columns, block.phases
    edge = phases + GAP  # from the block to the far side of the operands
    size = (-edge - 0.15, len(columns) + 1.45), (len(rows) + 0.75, -edge - 0.75)
    sheet.plot(sheet.title, *size, name="cells")
    across = [j + 0.5 for j in range(len(columns))]
    down = [i + 0.5 for i in range(len(rows))]
    before = [p + 0.5 - edge for p in range(phases)]
    places = (
        [(across[j - columns[0]], down[i - rows[0]]) for i, j in block.totals],
        [(across[j - columns[0]], before[p]) for p, j in block.b],
        [(before[p], down[i - rows[0]]) for i, p in block.a],
    )
    for n, (name, where, cells) in enumerate(zip("CBA", places, (block.totals, block.b, block.a))):
        _draw_group(sheet, name, where, list(cells.values()), block.words, scenes, n)
    heads = sheet.source(
        "k",
        x=before + [-0.12] * phases,
        y=[-GAP / 2] * phases + before,
        align=["center"] * phases + ["right"] * phases,
    )
    sheet.track(heads, "k", _all(scenes, "k"), text="text", prefix="k=")
    sheet.words("x", "y", "text", "soft", align="align", size=11, source=heads)
    right = len(columns) + 0.1
    names = [(right, y, _registers(block.totals, 0, i)) for y, i in zip(down, rows)]
    names += [(right, y, _registers(block.b, 0, p)) for p, y in enumerate(before)]
    below = [(x, len(rows) + 0.3, _registers(block.a, 1, p)) for p, x in enumerate(before)]
    words = [(0.0, -edge - 0.4, "B"), (-GAP - phases / 2 - 0.1, -GAP - 0.35, "A")]
    which = np.repeat(np.arange(len(scenes)), [s.steps for s in scenes])
    sheet.numbers(
        "part", 0, len(rows) + 0.38, which, names=[f"block {s.where}" for s in scenes], bold=True
    )
    small: dict = {"ink": "soft", "size": 11}
    for labels, look in zip(
        (names, below, words), (small, small | {"align": "center"}, {"bold": True})
    ):
        x, y, text = map(list, zip(*labels))
        sheet.words(x, y, text, **look)


def _draw_group(
    sheet: Sheet, name: str, places, cells, words: int, scenes: Sequence[_Frames], n: int
) -> None:
    """Draw a group of cells: boxes tinted by their numbers, the numbers, and frames around those
    read or written.
    """
    x, y = (np.array(axis, np.float32) for axis in zip(*places))
    names = [f"r{register}.{'xyzw'[c : c + words]}" for register, c in cells]
    values = _all(scenes, "values", n)
    source = sheet.source(
        f"cells {name}",
        x=x,
        y=y,
        register=names,
        key=np.arange(len(cells)),
        lit=[0] * len(cells),
        wrote=_all(scenes, "wrote", n),
        read=_all(scenes, "read", n),
    )
    sheet.track(source, "value", values, text="text")
    finite = values[np.isfinite(values)]
    top = float(np.abs(finite).max(initial=0)) or 1.0
    tint = linear_cmap("value", theme.TINTS, -top, top, nan_color="rgba(0,0,0,0)")
    box = sheet.glyph(Rect, "x", "y", 0.94, 0.94, source=source, fill_color=tint)
    sheet.fig.add_tools(
        HoverTool(
            renderers=[sheet.inks(box, line_color="line")],
            tooltips="@register = @value",
            attachment="vertical",
        )
    )
    _draw_frames(sheet, source, 0.9, 0.9)
    if name == "C":
        sheet.ring(source, 0.7, 0.7, "lit", "ink")
        sheet.picks.append(
            {"source": source, "figure": sheet.fig, "w": 1, "h": 1, "on": 3, "marks": []}
        )
    sheet.words("x", "y", "text", align="center", fit=0.34, source=source)


def _draw_star(
    sheet: Sheet, scenes: Sequence[_Frames], element: tuple[int, int] | None
) -> list[tuple[str, str, str]]:
    """Put a star on an element in the scenes whose block has it. Returns its line of the legend, or
    none where no scene has it.
    """
    if element is None:
        return []
    row, column = follow(element)
    holds = [scene for scene in scenes if (row, column) in scene.block.totals]
    if not holds:
        return []
    stars = [[place == (row, column) for place in scene.block.totals] for scene in scenes]
    cells = next(r.data_source for r in sheet.fig.renderers if r.data_source.name == "cells C")
    steps = [scene.steps for scene in scenes]
    sheet.star(cells, np.repeat(stars, steps, axis=0), 11, x_offset=9, y_offset=-11)
    place = ", ".join(map(str, holds[0].recording.place))
    return [(f"your C[{row}, {column}], in work-item ({place})", "star", "star")]


def _draw_frames(sheet: Sheet, source: ColumnDataSource, w, h) -> None:
    """Draw frames around what is read and what is written; the columns of those names are their
    line widths.
    """
    for column, dash in (("read", "dashed"), ("wrote", "solid")):
        sheet.ring(source, w, h, column, column, line_dash=dash)


def _draw_maps(sheet: Sheet, scenes: Sequence[_Frames]):
    """Draw the matrices, the work-item's part of them, and what moves: texels fetched, elements
    read and written.
    """
    recording, block = scenes[0].recording, scenes[0].block
    shapes = {
        NAMES[n]: (h, w * words // block.words)
        for n, (h, w, words) in recording.textures.items()
        if n in NAMES
    }
    shapes["C"] = (shapes["A"][1 - block.k_axis[0]], shapes["B"][1 - block.k_axis[1]])
    gap = 0.06 * sum(columns for _, columns in shapes.values())
    left, right = {}, 0.0
    for name, (_, columns) in shapes.items():
        left[name], right = right, right + columns + gap
    high = max(rows for rows, _ in shapes.values())
    label = "The matrices as they lie in memory: " + ", ".join(
        f"{n} {r} x {c}" for n, (r, c) in shapes.items()
    )
    fig = sheet.plot(
        label, (-gap / 2, right - gap / 2), (high + gap / 2, -1.6 * gap), high=140, name="maps"
    )
    fig.min_height = 110

    def boxes(name: str, rows: range, columns: range):
        x = left[name] + (columns[0] + columns[-1] + 1) / 2
        return x, (rows[0] + rows[-1] + 1) / 2, len(columns), len(rows)

    outlines = zip(*(boxes(name, range(r), range(c)) for name, (r, c) in shapes.items()))
    sheet.inks(
        sheet.glyph(Rect, *map(list, outlines), fill_color=None, line_width=1.5), line_color="ink"
    )
    stripes = [[boxes(*stripe) for stripe in _stripes(scene.block, shapes)] for scene in scenes]
    parts = np.repeat(stripes, [scene.steps for scene in scenes], axis=0)
    sheet.boxes("stripes", *np.moveaxis(parts, -1, 0), ink="shade", line="line")
    _draw_items(sheet, scenes, shapes["C"], left["C"])
    names = [f"{name}  {rows} x {columns}" for name, (rows, columns) in shapes.items()]
    sheet.words(list(left.values()), -0.45 * gap, names, baseline="bottom")

    wide = [recording.textures[n][2] // block.words for n in NAMES]
    updates = max(scenes[0].updates.values(), key=len)
    marked = _all(scenes, "marks")
    both = [u.from_a for u in updates], [u.from_b for u in updates]
    width = np.array(
        [*wide, *(len({o.column for o in origins}) for origins in both), 0], np.float32
    )
    height = np.array([1, 1, *(len({o.row for o in origins}) for origins in both), 0], np.float32)
    width[4], height[4] = (len({o[1 - block.k_axis[n]] for o in both[n]}) for n in (1, 0))
    offset = np.array([left[name] for name in "ABABC"], np.float32)
    x = offset + marked[:, :, 1] * np.array([*wide, 1, 1, 1], np.float32) + width / 2
    y = marked[:, :, 0] + height / 2
    marks = sheet.source(
        "marks", x=x, y=y, w=width, h=height, wrote=[3, 3, 0, 0, 3], read=[0, 0, 2, 2, 0]
    )
    _draw_frames(sheet, marks, "w", "h")
    return fig


def _stripes(block: Block, shapes) -> list[tuple[str, range, range]]:
    """The rows and columns of each matrix that the work-item uses."""
    depth = [range(shapes[name][axis]) for name, axis in zip("AB", block.k_axis)]
    of_a = (depth[0], block.rows) if block.k_axis[0] == 0 else (block.rows, depth[0])
    of_b = (depth[1], block.columns) if block.k_axis[1] == 0 else (block.columns, depth[1])
    return [("A", *of_a), ("B", *of_b), ("C", block.rows, block.columns)]


def _draw_items(
    sheet: Sheet, scenes: Sequence[_Frames], shape: tuple[int, int], left: float
) -> None:
    """Draw all work-items in the map of C, to be chosen."""
    wide, high, _ = scenes[0].recording.domain
    down, across = len(scenes[0].block.rows), len(scenes[0].block.columns)
    if (high * down, wide * across) != shape or wide * high > ITEMS:
        return
    scene_of = {scene.recording.item: n for n, scene in enumerate(scenes)}
    x, y = np.arange(wide * high) % wide, np.arange(wide * high) // wide
    words = [
        f"work-item ({i}, {j}): C[{j * down}:{(j + 1) * down}, {i * across}:{(i + 1) * across}]"
        for i, j in zip(x, y)
    ]
    sheet.boxes(
        "items",
        left + (x + 0.5) * across,
        (y + 0.5) * down,
        across,
        down,
        fill=None,
        line="line",
        words=words,
        key=ITEM + np.arange(len(x)),
    )
    for item, name in enumerate(words):
        sheet.about[ITEM + item] = name.replace("work", "Work", 1) + (
            "." if item in scene_of else ", not recorded here."
        )
    sheet.scene_of_key |= {ITEM + item: n for item, n in scene_of.items()}
