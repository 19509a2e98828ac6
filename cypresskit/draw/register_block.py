"""The register block of one work-item, filling up: operands, products, place in the matrices, and the line that runs.

``register_block(recording)`` finds by itself which registers play which part. It follows where every register component
came from: a fetch gives it a place in a matrix, a copy hands that on, anything else wipes it. A multiply-add that adds
to its own destination and multiplies elements of two different matrices is a step of a rank-1 update; what it adds to
is an element of the block, its operands are cells of A's column and B's row. Of an operand's two indices the one that
never changes for an element of the block is its row (from A) or column (from B) in C; the other is k.

So it works for any block, single or double, any work-item, A stored either way. It leaves out kernels whose operands
pass through LDS and double-double, where a sum is many instructions.
"""

from dataclasses import dataclass
from html import escape

import numpy as np
from bokeh.models import ColumnDataSource, Div, HoverTool
from bokeh.transform import linear_cmap

from cypresskit.draw import theme
from cypresskit.draw.player import Listing, Player, Track, short
from cypresskit.machine.record import Recording

NAMES = {0: "A", 1: "B"}
GAP = 0.6  # between the operands and the block, in cells


@dataclass(frozen=True)
class Origin:
    """An element of a matrix as it is stored: resource number, row, column."""

    resource: int
    row: int
    column: int

    def __getitem__(self, axis: int) -> int:
        return (self.row, self.column)[axis]


@dataclass(frozen=True)
class Update:
    """At ``step`` the element held in ``total`` grew by ``a`` times ``b``; each is a (register, component)."""

    step: int
    total: tuple[int, int]
    a: tuple[int, int]
    b: tuple[int, int]
    from_a: Origin
    from_b: Origin


@dataclass(frozen=True, eq=False)
class Block:
    """Which register components hold what. ``totals`` maps (row, column) of C to a (register, component); ``a`` maps
    (row, phase) and ``b`` (phase, column), where phases count the steps of k that registers hold at a time. ``k_axis``
    tells for A and B whether k is the stored row (0) or column (1). ``words`` is 1 for singles, 2 for doubles."""

    totals: dict[tuple[int, int], tuple[int, int]]
    a: dict[tuple[int, int], tuple[int, int]]
    b: dict[tuple[int, int], tuple[int, int]]
    k_axis: tuple[int, int]
    words: int
    updates: tuple[Update, ...]

    @property
    def rows(self) -> range:
        return range(min(i for i, _ in self.totals), max(i for i, _ in self.totals) + 1)

    @property
    def columns(self) -> range:
        return range(min(j for _, j in self.totals), max(j for _, j in self.totals) + 1)

    @property
    def phases(self) -> int:
        return 1 + max(phase for _, phase in self.a)


class Origins:
    """Where each register component's value came from, followed step by step."""

    def __init__(self, recording: Recording, words: int) -> None:
        self.recording, self.words = recording, words
        self.known: dict[tuple[int, int], Origin] = {}
        self._fetched = {int(row[0]): row for row in recording.fetches}

    def step(self, step: int) -> list[Update]:
        """Follow one instruction; the updates that it makes to a block."""
        i = self.recording.program.body[self.recording.at[step]]
        if i.dest is None or i.dest.register.kind != "r":
            return []
        register, written = i.dest.register.index, i.dest.written
        found, new = self._updates(step, i), {}
        if step in self._fetched:
            _, resource, x, y, inside = map(int, self._fetched[step])
            width = self.recording.textures[resource][2]
            for c in written if inside else ():
                new[register, c] = Origin(resource, y, (x * width + c) // self.words)
        elif i.opcode == "mov" and i.sources[0].register.kind == "r" and not i.sources[0].modified:
            source = i.sources[0]
            for c in written:
                letter = source.swizzle[c]
                if letter in "xyzw" and (origin := self.known.get((source.register.index, "xyzw".index(letter)))):
                    new[register, c] = origin
        for c in written:
            self.known.pop((register, c), None)
        self.known.update(new)
        return found

    def _updates(self, step: int, i) -> list[Update]:
        if i.opcode not in ("mad", "fma", "dmad") or any(s.register.kind != "r" or s.modified for s in i.sources):
            return []
        double = i.op.double
        if (self.words == 2) != double or i.sources[2].register != i.dest.register:
            return []
        found = []
        for c in [c for c in i.dest.written if not double or c % 2 == 0]:
            letters = [s.swizzle[0 if double else c] for s in i.sources]
            a, b, total = ((s.register.index, "xyzw".find(n)) for s, n in zip(i.sources, letters))
            first, second = self.known.get(a), self.known.get(b)
            if total[1] != c or first is None or second is None or first.resource == second.resource:
                continue
            if first.resource > second.resource:
                a, b, first, second = b, a, second, first
            found.append(Update(step, total, a, b, first, second))
        return found


def find_block(recording: Recording) -> Block:
    """The register block of a recorded run; ``ValueError`` if there is none to be found."""
    words = 2 if any(i.opcode == "dmad" for i in recording.program.body) else 1
    origins = Origins(recording, words)
    updates = [u for step in range(len(recording)) for u in origins.step(step)]
    k_axis = tuple(_k_axis(updates, name) for name in ("from_a", "from_b"))
    totals: dict[tuple[int, int], tuple[int, int]] = {}
    operands: tuple[dict[int, list], dict[int, list]] = ({}, {})
    for u in updates:
        i, j = u.from_a[1 - k_axis[0]], u.from_b[1 - k_axis[1]]
        totals[i, j] = u.total
        for cells, index, cell in ((operands[0], i, u.a), (operands[1], j, u.b)):
            if cell not in cells.setdefault(index, []):
                cells[index].append(cell)
    if not totals:
        raise ValueError(
            f"{recording!r} shows no register block: no multiply-add adds a product of fetched elements of two matrices "
            "to its own destination. Kernels that go through LDS or compute in double-double can't be drawn this way."
        )
    a = {(i, phase): cell for i, cells in operands[0].items() for phase, cell in enumerate(cells)}
    b = {(phase, j): cell for j, cells in operands[1].items() for phase, cell in enumerate(cells)}
    return Block(totals, a, b, k_axis, words, tuple(updates))


def _k_axis(updates: list[Update], name: str) -> int:
    """Which index of an operand varies while it adds to one and the same element."""
    seen: dict[tuple[int, int], list[Origin]] = {}
    for u in updates:
        seen.setdefault(u.total, []).append(getattr(u, name))
    return 0 if any(len({o.row for o in origins}) > 1 for origins in seen.values()) else 1


class _Frames:
    """Every number of the picture at every step, from one pass over a recording."""

    def __init__(self, recording: Recording, block: Block) -> None:
        self.recording, self.block = recording, block
        steps, phases = len(recording), block.phases
        cells = [list(group.values()) for group in (block.totals, block.b, block.a)]
        dtype = np.float64 if block.words == 2 else np.float32
        self.values = [np.zeros((steps, len(group)), dtype) for group in cells]
        self.wrote = [np.zeros((steps, len(group)), np.uint8) for group in cells]
        self.read = [np.zeros((steps, len(group)), np.uint8) for group in cells]
        self.k = np.full((steps, 2 * phases), -1, np.int32)  # of A's columns, then of B's rows
        self.marks = np.full((steps, 5, 2), np.nan, np.float32)  # row, column: fetched A, B; read A, B; written C
        self.captions: list[str] = []
        self.updates: dict[int, list[Update]] = {}
        for u in block.updates:
            self.updates.setdefault(u.step, []).append(u)
        self._fill(cells, dtype)

    def _fill(self, cells, dtype) -> None:
        recording, block = self.recording, self.block
        count = 1 + max([*recording.program.registers, *(r for group in cells for r, _ in group)])
        registers = np.zeros((count, 4), np.uint32)
        origins = Origins(recording, block.words)
        index = [tuple(np.array(group).T) for group in cells]
        starts = np.searchsorted(recording.writes[:, 0], np.arange(len(recording) + 1))
        fetched = {int(row[0]): row for row in recording.fetches}
        stored = {int(step): int(element) for step, element in recording.stores}
        elements = {cell: n for n, cell in enumerate(cells[0])}
        places = {cell: place for place, cell in block.totals.items()}
        for step in range(len(recording)):
            _, register, component, bits = recording.writes[starts[step] : starts[step + 1]].T
            registers[register, component] = bits
            origins.step(step)
            touched = set(zip(register.tolist(), component.tolist()))
            updates = self.updates.get(step, [])
            read = {cell for u in updates for cell in (u.a, u.b)}
            for n, group in enumerate(cells):
                rows, columns = index[n]
                words = registers[rows[:, None], columns[:, None] + np.arange(block.words)]
                self.values[n][step] = np.ascontiguousarray(words).view(dtype)[:, 0]
                self.wrote[n][step] = [3 * (cell in touched) for cell in group]
                self.read[n][step] = [2 * (n > 0 and cell in read) for cell in group]
            for part, (group, axis) in enumerate(((block.a, block.k_axis[0]), (block.b, block.k_axis[1]))):
                for key, cell in group.items():
                    origin, phase = origins.known.get(cell), key[1 - part]
                    if origin is not None and origin.resource == part:
                        self.k[step, part * block.phases + phase] = origin[axis]
            if step in fetched and (resource := int(fetched[step][1])) in NAMES:
                self.marks[step, resource] = fetched[step][3], fetched[step][2]
            if updates:
                u = updates[0]
                self.marks[step, 2] = u.from_a[0], u.from_a[1]
                self.marks[step, 3] = u.from_b[0], u.from_b[1]
                self.marks[step, 4] = places[updates[0].total]
            self.captions.append(self._caption(step, registers, fetched.get(step), stored.get(step), elements))

    def _caption(self, step: int, registers, fetch, store, elements) -> str:
        recording, block = self.recording, self.block
        i, line = recording.program.body[recording.at[step]], recording.line(step)
        text = recording.program.lines[line - 1].split(";")[0].strip()
        head = f"Step {step + 1} of {len(recording)}, line {line}: <code>{escape(text)}</code>"
        updates = self.updates.get(step)
        if updates:
            value = [short(float(self.values[0][step, elements[u.total]])) for u in updates]
            (i0, j0), j1 = self._place(updates[0]), self._place(updates[-1])[1]
            a, b = (_span([getattr(u, n) for u in updates], m) for n, m in (("from_a", "A"), ("from_b", "B")))
            return f"{head}C[{i0}, {j0}:{j1 + 1}] grows by {a} times {b}, to ({', '.join(value)})"
        if fetch is not None:
            _, resource, x, y, inside = map(int, fetch)
            wide = recording.textures[resource][2] // block.words
            name = NAMES.get(resource, f"resource {resource}")
            where = f"{name}[{y}, {x * wide}:{(x + 1) * wide}]" if inside else "a texel outside the matrix, which reads 0"
            return f"{head}fetches {where} into {i.dest.register}: {self._register(i, registers)}"
        if store is not None:
            return f"{head}stores {i.sources[0].register} to element {store} of global memory"
        if i.op.kind == "flow":
            return head + self._flow(step, i)
        if i.dest is not None and i.dest.register.kind == "r":
            return f"{head}sets {str(i.dest).replace('_', '')} to {self._register(i, registers)}"
        return head + i.op.meaning

    def _place(self, u: Update) -> tuple[int, int]:
        return u.from_a[1 - self.block.k_axis[0]], u.from_b[1 - self.block.k_axis[1]]

    def _register(self, i, registers) -> str:
        bits = registers[i.dest.register.index]
        kind = "d" if i.op.double and i.op.result == "d" or self.block.words == 2 and i.op.kind == "fetch" else i.op.result
        if kind == "d":
            values = bits.view(np.float64)[sorted({c // 2 for c in i.dest.written})]
        else:
            dtype = {"i": np.int32, "u": np.uint32}.get(kind, np.float32)
            values = bits.view(dtype)[list(i.dest.written)]
            if kind == "b" and i.opcode not in ("mov", "sample", "load", "cmov_logical"):
                return ", ".join("true" if b else "false" for b in bits[list(i.dest.written)])
        shown = [short(float(v)) for v in values]
        return shown[0] if len(set(shown)) == 1 else f"({', '.join(shown)})"

    def _flow(self, step: int, i) -> str:
        at = self.recording.at
        on = step + 1 == len(at) or at[step + 1] == at[step] + 1
        role = i.op.flow
        if role == "break":
            return "stays in the loop" if on else "leaves the loop"
        if role == "if":
            return "holds: runs what follows" if on else "does not hold: skips what follows"
        return {"loop": "enters the loop", "endloop": "ends a turn of the loop"}.get(role, "goes on")


def _span(origins: list[Origin], name: str) -> str:
    """``A[3, 8:12]`` for the elements that an instruction reads."""
    rows, columns = sorted({o.row for o in origins}), sorted({o.column for o in origins})
    parts = [f"{p[0]}:{p[-1] + 1}" if len(p) > 1 else str(p[0]) for p in (rows, columns)]
    return f"{name}[{', '.join(parts)}]"


def register_block(recording: Recording, *, start: int = 0) -> Player:
    """A player of one work-item's register block, one frame for each instruction that it executed.

    ``recording`` comes from a ``Recorder`` that listened to a launch with A as resource 0 and B as resource 1; ``start``
    is the frame shown first. Raises ``ValueError`` if the run keeps no block in registers.
    """
    block = find_block(recording)
    frames = _Frames(recording, block)
    inks = theme.Inks()
    where = f"work-item {recording.place if len(recording.place) > 1 else recording.place[0]}"
    title = f"Register block of {recording.program.name}, {where}"
    cells, tracks = _draw_cells(block, frames, inks, title)
    maps, more = _draw_maps(recording, block, frames, inks)
    listing = Div(stylesheets=[theme.TEXT_CSS], sizing_mode="stretch_width")
    legend = Div(text=_LEGEND, stylesheets=[theme.TEXT_CSS], sizing_mode="stretch_width")
    lines = Listing(recording.program.lines, np.array([recording.line(s) for s in range(len(recording))]))
    marks = _rounds(block)
    return Player(
        title, cells, [listing, maps, legend], frames.captions, tracks + more,
        figures=[cells, maps], text=_text(title, recording, block, frames, marks), inks=inks,
        listing=(listing, lines), marks=marks, start=start,
    )  # fmt: skip


_LEGEND = (
    '<span class="key wrote"></span>written by this line &ensp;<span class="key read"></span>read by it &ensp;'
    '<span class="key shade"></span>this work-item\'s part of the matrices. Tints: blue above zero, orange below.'
)


def _rounds(block: Block) -> list[int]:
    """The first step of each rank-1 update."""
    axis, starts, last = block.k_axis[0], [], None
    for u in block.updates:
        if u.from_a[axis] != last:
            starts.append(u.step)
            last = u.from_a[axis]
    return starts


def _registers(cells: list[tuple[int, int]]) -> str:
    """``r2 r3``, or ``r2-r9`` for more than two."""
    numbers = sorted({register for register, _ in cells})
    return " ".join(f"r{n}" for n in numbers) if len(numbers) < 3 else f"r{numbers[0]}-r{numbers[-1]}"


def _draw_cells(block: Block, frames: _Frames, inks: theme.Inks, title: str):
    rows, columns, phases = block.rows, block.columns, block.phases
    fig = theme.plot(
        title,
        (-phases - GAP - 0.15, len(columns) + 1.45),
        (len(rows) + 0.75, -phases - GAP - 0.75),
        name="cells",
    )
    tracks = []
    groups = (
        ("C", [(j - columns[0] + 0.5, i - rows[0] + 0.5) for i, j in block.totals], list(block.totals.values())),
        ("B", [(j - columns[0] + 0.5, p - phases + 0.5 - GAP) for p, j in block.b], list(block.b.values())),
        ("A", [(p - phases + 0.5 - GAP, i - rows[0] + 0.5) for i, p in block.a], list(block.a.values())),
    )
    boxes = []
    for n, (name, places, cells) in enumerate(groups):
        x, y = (np.array(axis, np.float32) for axis in zip(*places))
        names = [f"r{register}.{'xyzw'[c : c + block.words]}" for register, c in cells]
        source = ColumnDataSource({"x": x, "y": y, "register": names}, name=f"cells {name}")
        tracks.append(Track(source, "value", frames.values[n], text="text"))
        tracks += [Track(source, "wrote", frames.wrote[n]), Track(source, "read", frames.read[n])]
        top = float(np.nanmax(np.abs(np.where(np.isfinite(frames.values[n]), frames.values[n], 0)), initial=0)) or 1.0
        tint = linear_cmap("value", theme.TINTS, -top, top, nan_color="rgba(0,0,0,0)")
        box = fig.rect("x", "y", 0.94, 0.94, source=source, fill_color=tint, line_width=1)
        boxes.append(inks(box, line_color="line"))
        for column, style in (("read", "dashed"), ("wrote", "solid")):
            inks(
                fig.rect("x", "y", 0.9, 0.9, source=source, fill_color=None, line_width=column, line_dash=style),
                line_color=column,
            )
        style = {"text_align": "center", "text_baseline": "middle", "text_font_size": "12px"}
        inks(fig.text("x", "y", text="text", source=source, **style), text_color="ink")
    fig.add_tools(HoverTool(renderers=boxes, tooltips=[("register", "@register"), ("value", "@value")]))
    heads = ColumnDataSource(
        {
            "x": [p - phases + 0.5 - GAP for p in range(phases)] + [-0.12] * phases,
            "y": [-GAP / 2] * phases + [p - phases + 0.5 - GAP for p in range(phases)],
            "align": ["center"] * phases + ["right"] * phases,
        },
        name="k",
    )
    tracks.append(Track(heads, "k", frames.k, text="text", prefix="k="))
    small = {"text_baseline": "middle", "text_font_size": "11px"}
    inks(fig.text("x", "y", text="text", text_align="align", source=heads, **small), text_color="soft")
    labels = [(len(columns) + 0.1, i - rows[0] + 0.5, _registers([c for (r, _), c in block.totals.items() if r == i]))
              for i in rows]  # fmt: skip
    labels += [(len(columns) + 0.1, p - phases + 0.5 - GAP, _registers([c for (q, _), c in block.b.items() if q == p]))
               for p in range(phases)]  # fmt: skip
    below = [(p - phases + 0.5 - GAP, len(rows) + 0.3, _registers([c for (_, q), c in block.a.items() if q == p]))
             for p in range(phases)]  # fmt: skip
    for place, align in ((labels, "left"), (below, "center")):
        x, y, text = zip(*place)
        inks(fig.text(x, y, text=text, text_align=align, **small), text_color="soft")
    where = f"C[{rows[0]}:{rows[-1] + 1}, {columns[0]}:{columns[-1] + 1}]"
    name = {"text_font_style": "bold", "text_font_size": "13px", "text_baseline": "middle"}
    inks(fig.text([-phases / 2 - GAP], [-GAP - 0.35], text=["A"], text_align="center", **name), text_color="ink")
    inks(fig.text([0], [-phases - GAP - 0.4], text=["B"], **name), text_color="ink")
    inks(fig.text([0], [len(rows) + 0.38], text=[f"block {where}"], **name), text_color="ink")
    return fig, tracks


def _draw_maps(recording: Recording, block: Block, frames: _Frames, inks: theme.Inks):
    shapes = {NAMES[n]: (h, w * words // block.words) for n, (h, w, words) in recording.textures.items() if n in NAMES}
    shapes["C"] = (shapes["A"][1 - block.k_axis[0]], shapes["B"][1 - block.k_axis[1]])
    gap = 0.06 * sum(columns for _, columns in shapes.values())
    left, right = {}, 0.0
    for name, (_, columns) in shapes.items():
        left[name], right = right, right + columns + gap
    high = max(rows for rows, _ in shapes.values())
    label = "The matrices as they lie in memory: " + ", ".join(f"{n} {r} x {c}" for n, (r, c) in shapes.items())
    fig = theme.plot(label, (-gap / 2, right - gap / 2), (high + gap / 2, -1.6 * gap), name="maps")
    fig.min_height = 110

    def boxes(name: str, rows: range, columns: range):
        x = left[name] + (columns[0] + columns[-1] + 1) / 2
        return x, (rows[0] + rows[-1] + 1) / 2, len(columns), len(rows)

    depth = {name: range(shapes[name][axis]) for name, axis in zip("AB", block.k_axis)}
    stripes = {
        "A": (depth["A"], block.rows) if block.k_axis[0] == 0 else (block.rows, depth["A"]),
        "B": (depth["B"], block.columns) if block.k_axis[1] == 0 else (block.columns, depth["B"]),
        "C": (block.rows, block.columns),
    }
    outlines = zip(*(boxes(name, range(r), range(c)) for name, (r, c) in shapes.items()))
    inks(fig.rect(*map(list, outlines), fill_color=None, line_width=1.5), line_color="ink")
    parts = zip(*(boxes(name, *stripe) for name, stripe in stripes.items()))
    inks(fig.rect(*map(list, parts), line_width=1), fill_color="shade", line_color="line")
    names = [f"{name}  {rows} x {columns}" for name, (rows, columns) in shapes.items()]
    inks(
        fig.text(list(left.values()), -0.45 * gap, text=names, text_font_size="12px", text_baseline="bottom"),
        text_color="ink",
    )
    return fig, _mark_tracks(recording, block, frames, inks, fig, left)


def _mark_tracks(recording: Recording, block: Block, frames: _Frames, inks: theme.Inks, fig, left) -> list[Track]:
    """The rectangles that move over the maps: texels fetched, elements read, elements of C written."""
    wide = [recording.textures[n][2] // block.words for n in NAMES]
    updates = max(frames.updates.values(), key=len)
    read = [len({o[1] for o in origins}) for origins in ([u.from_a for u in updates], [u.from_b for u in updates])]
    tall = [len({o[0] for o in origins}) for origins in ([u.from_a for u in updates], [u.from_b for u in updates])]
    width = np.array([*wide, *read, len({u.from_b[1 - block.k_axis[1]] for u in updates})], np.float32)
    height = np.array([1, 1, *tall, len({u.from_a[1 - block.k_axis[0]] for u in updates})], np.float32)
    scale = np.array([*wide, 1, 1, 1], np.float32)
    offset = np.array([left[name] for name in "ABABC"], np.float32)
    marks = ColumnDataSource(
        {"w": width, "h": height, "wrote": [3, 3, 0, 0, 3], "read": [0, 0, 2, 2, 0]},
        name="marks",
    )
    for column, style in (("read", "dashed"), ("wrote", "solid")):
        box = fig.rect("x", "y", "w", "h", source=marks, fill_color=None, line_width=column, line_dash=style)
        inks(box, line_color=column)
    x = offset + frames.marks[:, :, 1] * scale + width / 2
    return [Track(marks, "x", x), Track(marks, "y", frames.marks[:, :, 0] + height / 2)]


def _text(title: str, recording: Recording, block: Block, frames: _Frames, marks: list[int]) -> str:
    """The picture in words: the operands at the start of each rank-1 update, and the block when all are done."""
    kind = "float64" if block.words == 2 else "float32"
    size = f"{len(block.rows)} x {len(block.columns)} {kind}"
    where = f"C[{block.rows[0]}:{block.rows[-1] + 1}, {block.columns[0]}:{block.columns[-1] + 1}]"
    lines = [f"{title}: {where}, {size}, {len(recording)} steps"]
    b, a = list(block.b), list(block.a)
    for step in marks:
        u = frames.updates[step][0]
        i, j = next(key[1] for key, cell in block.a.items() if cell == u.a), next(
            key[0] for key, cell in block.b.items() if cell == u.b
        )
        column = [short(float(v)) for key, v in zip(a, frames.values[2][step]) if key[1] == i]
        row = [short(float(v)) for key, v in zip(b, frames.values[1][step]) if key[0] == j]
        k = u.from_a[block.k_axis[0]]
        lines.append(f"step {step + 1:4}  k = {k}  A's column: {' '.join(column)}  B's row: {' '.join(row)}")
    last = block.updates[-1].step
    lines.append(f"the block after step {last + 1}:")
    values = dict(zip(block.totals, frames.values[0][last]))
    lines += ["  " + " ".join(f"{short(float(values[i, j])):>6}" for j in block.columns) for i in block.rows]
    return "\n".join(lines)
