"""The life of one element of C, from the host's memory and back: a strip of time that zooms down to
a single clock.

Drawn from a timeline of the host, a simulation, and a recording of the work-item that computes the
element. A report has the clauses of SIMD engine 0 only; wavefronts of other engines run the same
ones. Left out: all other elements.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cypresskit import host
from cypresskit.compiler import compile
from cypresskit.devices import HD5870
from cypresskit.draw import theme
from cypresskit.draw.block import Update, find_block
from cypresskit.draw.player import Player, format_short
from cypresskit.draw.sheet import Sheet
from cypresskit.draw.wavefronts import CLAUSE_VERBS
from cypresskit.kernels import KERNELS
from cypresskit.kernels.samples import run
from cypresskit.machine.record import Recorder, Recording
from cypresskit.tables import duration
from cypresskit.timing import Report, simulate
from cypresskit.timing.report import Event

SIDE = 256  # of the matrices
KERNEL = "sgemm_tn"
ZOOMS, CLOSEST = 40, 64  # frames of a zoom, and the clocks that the last one shows
# The stage, in pixels: its size, the lanes' edges and top, a lane, and a bar.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, LANE, BAR_HEIGHT = 1250, 314, 150, 1242, 18, 42, 26
SUMS_Y = HEIGHT - 16  # of the bar with what the whole time was spent on
# Each with the lesson that explains it.
LANES = (
    ("host and bus", "09_bus"),
    ("queue and chip", "00_start_here"),
    ("its wavefront", "04_registers_and_wavefronts"),
    ("a fetch", "05_texture_cache"),
    ("bundles", "03_bundles"),
    ("its sum", "01_register_block"),
)
HOST, CHIP, CLAUSES, FETCH, BUNDLES, SUM = range(len(LANES))
SPENT = {
    "bus": "read",
    "launch": "soft",
    "waits": "wait",
    "fetches": "texture",
    "computes": "alu",
    "stores": "c",
    "switches clauses": "line",
}
CLOCK = 1 / (HD5870.clock_ghz * 1e9)  # seconds


class Part(NamedTuple):
    """An event: lane, start and end in seconds, color, name, a sentence, and whether it is the
    element's own.
    """

    lane: int
    start: float
    end: float
    color: str
    name: str
    story: str
    mine: bool = False


def life(element: tuple[int, int] = (5, 3)) -> Player:
    """Return a player of the life of an element of C, by its row and column, in a product of 256 x
    256 by ``sgemm_tn``. Arrow keys zoom to a multiply-add or to a fetch in the middle of the loop.
    Raises ``ValueError`` for an element outside.
    """
    row, column = element
    if not (0 <= row < SIDE and 0 <= column < SIDE):
        raise ValueError(f"C{list(element)}: give a row and a column from 0 to {SIDE - 1}")
    parts = list(_parts(element))
    whole = max(part.end for part in parts)
    sheet = Sheet(f"The life of C[{row}, {column}]")
    sheet.stage(f"{sheet.title}: a strip of time with a lane for each place", WIDTH, HEIGHT)
    starts, spans = _windows(parts, whole)
    _draw_lanes(sheet, parts, starts[:, np.newaxis], spans[:, np.newaxis])
    sheet.about |= _about(parts)

    own = f"Its own arithmetic is {SIDE} multiply-adds, a clock of one unit each"
    total = f"Of {_took(whole)}: {_draw_sums(sheet, parts, whole)}. {own}."
    lessons = ", ".join(f"{name} [lesson {stem[:2]}]({stem})" for name, stem in LANES)
    legend = sheet.legend(
        ("computes", "alu", "dim"),
        ("texture unit", "texture", "dim"),
        ("in flight", "wait", "dim"),
        ("A", "a", "dim"),
        ("B", "b", "dim"),
        ("C", "c", "dim"),
        ("its own", "ink", "ring"),
    )
    return sheet.player(
        [_say(parts, start, span) for start, span in zip(starts, spans)],
        [total],
        below=[sheet.note(f"**{total}** More: {lessons}."), legend],
        scenes=[("to a multiply-add", ZOOMS), ("to a fetch", ZOOMS)],
        step="Zoom",
        seconds=10,
        still_frame=ZOOMS // 2,
    )


def _windows(parts: Sequence[Part], whole: float) -> tuple[np.ndarray, np.ndarray]:
    """Return when the strip of time begins in each frame, and how long it is. It shrinks from the
    whole to a few clocks around the element's own multiply-add, then around its fetch.
    """
    span = whole * (CLOSEST * CLOCK / whole) ** np.linspace(0, 1, ZOOMS)
    starts = []
    for lane in (SUM, FETCH):
        own = next(part for part in parts if part.lane == lane and part.mine)
        goal = (own.start + own.end) / 2
        place = np.linspace(goal / whole, 0.5, ZOOMS)  # of the goal in the strip
        starts.append(goal - place * span)
    return np.concatenate(starts), np.tile(span, 2)


def _about(parts: Sequence[Part]) -> dict[int, str]:
    """Return the text of a click on each event."""
    about = {}
    for n, part in enumerate(parts):
        if part.lane != CLAUSES:
            _, stem = LANES[part.lane]
            took = _took(part.end - part.start)
            about[n] = f"**{part.name}**, {took}: {part.story}. [lesson {stem[:2]}]({stem})"
    return about


def _parts(element: tuple[int, int]) -> Iterator[Part]:
    """Yield all events, from the host inwards."""
    report = simulate(KERNEL, SIDE)
    machine = host.Machine(HD5870)
    dma = 1e9 * machine.host.dma_gb_s
    trip = host.round_trip_timeline(SIDE, dma, report.flops / report.seconds, "single")
    for span in trip.spans:
        task = span.task
        color = "alu" if task.stage == "mult" else task.matrix.lower()
        yield Part(
            HOST, span.start, span.end, color, task.name, f"the host: {task.name}", color == "c"
        )
    born = next(span.start for span in trip.spans if span.task.stage == "mult")
    first = born + report.seconds - report.clocks * CLOCK  # the chip's clock 0
    story = "the launch: a command waits until the chip begins"
    yield Part(CHIP, born, first, "soft", "launch", story)
    for part in _on_chip(report, element):
        yield part._replace(start=first + part.start * CLOCK, end=first + part.end * CLOCK)


def _on_chip(report: Report, element: tuple[int, int]) -> Iterator[Part]:
    """Yield the events of the element's wavefront, in clocks; for its middle iteration also
    fetches, bundles and multiply-adds.
    """
    row, column = element
    down, across = (8 * side for side in KERNELS[KERNEL].block)
    number = row // down * (SIDE // across) + column // across
    assert report.use
    engine, start, end = report.use.wavefronts[number]
    story = f"wavefront {number} runs on SIMD engine {engine:.0f}"
    yield Part(CHIP, start, end, "c", f"wavefront {number}", story, True)

    # The report has only the clauses of SIMD engine 0.
    events = [event for event in report.timeline if event.wavefront == 0]
    yield from _clauses(events, is_another=number > 0)

    recorder = Recorder((column // 8, row // 8))
    run(KERNELS[KERNEL], SIDE, SIDE, SIDE, recorder)
    recording = recorder.recording
    fetches = [n for n, event in enumerate(events) if event.kind == "TEX"]
    middle = len(fetches) // 2
    fetch, *clauses = events[fetches[middle] : fetches[middle + 1]]
    loop = recording.at[recording.fetches[0, 0]]  # the first instruction of an iteration
    begins = np.flatnonzero(recording.at == loop)  # of iterations, in steps
    steps = range(*begins[middle : middle + 2])
    block = find_block(recording)
    mine = {
        recording.line(update.step): update
        for update in block.updates
        if update.total == block.totals[element] and update.step in steps
    }
    yield from _fetches(fetch, recording, steps, mine.values())
    yield from _bundles(clauses, recording, mine)


def _clauses(events: Sequence[Event], is_another: bool) -> Iterator[Part]:
    """Yield the clauses of a wavefront, and its waits. ``is_another``: it isn't the element's
    wavefront.
    """
    story = "its wavefront goes through its kernel"
    if is_another:
        story += ", timed like wavefront 0"
    yield Part(CLAUSES, events[0].start, events[-1].end, "faint", "", story)
    for event in events:
        does = CLAUSE_VERBS[event.kind]
        yield Part(CLAUSES, event.start, event.served, SPENT[does], does, f"it {does}")
        if event.end > event.served:
            story = "its data are in flight"
            yield Part(CLAUSES, event.served, event.end, "wait", "waits", story)


def _fetches(
    clause: Event, recording: Recording, steps: range, updates: Iterable[Update]
) -> Iterator[Part]:
    """Yield the fetches of an iteration; ``updates`` multiply the numbers of the element's own."""
    origins = [origin for update in updates for origin in (update.from_a, update.from_b)]
    wanted = {(origin.resource, origin.row, origin.column // 4) for origin in origins}
    fetches = [fetch for fetch in recording.fetches.tolist() if fetch[0] in steps]
    clocks = (clause.served - clause.start) / len(fetches)
    for n, (_, resource, x, y, _) in enumerate(fetches):
        start = clause.start + n * clocks
        name = f"{'AB'[resource]}[{y}, {4 * x}:{4 * x + 4}]"
        story = (
            f"the texture unit fetches {name}, and the texels of 63 others, in {clocks:.0f} clocks"
        )
        is_mine = (resource, y, x) in wanted
        yield Part(FETCH, start, start + clocks, "ab"[resource], name, story, is_mine)
    story = "its numbers are in flight"
    yield Part(FETCH, clause.served, clause.end, "wait", "in flight", story)


def _bundles(
    clauses: Sequence[Event], recording: Recording, mine: dict[int, Update]
) -> Iterator[Part]:
    """Yield the bundles of an iteration, and in them the element's own multiply-adds, with their
    lines of IL.
    """
    loop = compile(KERNELS[KERNEL].program).main_loop
    test, *work = (clause.bundles for clause in loop if clause.bundles)
    clocks = HD5870.alu_latency_clocks
    for clause, bundles in zip(clauses, [*work, test]):
        first = clause.start + HD5870.clause_overhead_clocks
        for n, bundle in enumerate(bundles):
            start = first + n * clocks
            end = first + (n + 1) * clocks
            slots = " ".join("xyzwt"[o.slot] for o in bundle.operations)
            own = [
                o
                for o in bundle.operations
                if o.line in mine and o.channel == mine[o.line].total[1]
            ]
            story = f"a bundle with the slots {slots}"
            yield Part(BUNDLES, start, end, "alu", slots, story, bool(own))
            for operation in own:
                name = _multiply_add(recording, mine[operation.line])
                reads = [read for read in operation.reads if read.kind == "gpr"]
                ports = ", ".join(f"R{read.index}.{'xyzw'[read.channel]}" for read in reads)
                story = f"slot {'xyzwt'[operation.slot]} reads {ports}: {name}"
                yield Part(SUM, start, end, "c", name, story, True)


def _multiply_add(recording: Recording, update: Update) -> str:
    """Return a multiply-add with its numbers."""

    def number(step: int, cell: tuple[int, int]) -> str:
        register, component = cell
        return format_short(float(recording.registers(step)[register].view(np.float32)[component]))

    before = number(update.step - 1, update.total)
    after = number(update.step, update.total)
    a, b = number(update.step, update.a), number(update.step, update.b)
    return f"{before} + {a} \N{MULTIPLICATION SIGN} {b} = {after}"


def _draw_lanes(sheet: Sheet, parts: Sequence[Part], start: np.ndarray, span: np.ndarray) -> None:
    """Draw a lane for each place, with the events long enough to be seen in the strip of time that
    each frame shows, and frames around the element's own.
    """
    y = TOP + LANE * (np.arange(len(LANES)) + 0.5)
    names, stems = zip(*LANES)
    lessons = [f"lesson {stem[:2]}" for stem in stems]
    sheet.text(LEFT - 10, y - 7, names, align="right", bold=True, size=14)
    sheet.text(LEFT - 10, y + 9, lessons, "soft", align="right", size=12)
    middle = (LEFT + RIGHT) / 2
    sheet.boxes("lanes", middle, y, RIGHT - LEFT, BAR_HEIGHT, color="faint", alpha=0.3)

    def to_x(seconds: np.ndarray) -> np.ndarray:
        return LEFT + np.clip((seconds - start) / span, 0, 1) * (RIGHT - LEFT)

    colors = {part.color for part in parts}
    for color in sorted(
        colors, key=lambda color: (color != "faint", color)
    ):  # what is below is first
        numbers = [n for n, part in enumerate(parts) if part.color == color]
        _draw_events(sheet, color, numbers, [parts[n] for n in numbers], y, to_x)


def _draw_events(
    sheet: Sheet,
    color: str,
    numbers: Sequence[int],
    events: Sequence[Part],
    lanes_y: np.ndarray,
    to_x: Callable[[np.ndarray], np.ndarray],
) -> None:
    """Draw the events of a color, whose keys are their ``numbers``."""
    lane = np.array([event.lane for event in events])
    mine = np.array([event.mine for event in events])
    left = to_x(np.array([event.start for event in events]))
    right = to_x(np.array([event.end for event in events]))
    is_inside = (left > LEFT) & (right < RIGHT)
    seen = (right - left > 1.5) | (mine & is_inside)
    x = np.where(seen, (left + right) / 2, np.nan).round(1)
    width = np.maximum(right - left, 1.5).round(1)
    y = lanes_y[lane]
    source = sheet.boxes(
        color,
        x,
        y,
        width,
        BAR_HEIGHT,
        color=color,
        moves=("x", "w"),
        key=np.where(lane == CLAUSES, -1, numbers),
        words=[event.story for event in events],
        alpha=0.6,
        columns={"mine": 3 * mine},
    )
    sheet.ring(source, "w", BAR_HEIGHT, "mine", "ink")
    names = ["", *dict.fromkeys(event.name for event in events if event.name)]
    has_room = width > [theme.LETTER * len(event.name) for event in events]
    label = np.where(has_room, [names.index(event.name) for event in events], 0)
    sheet.track(source, "label", label, text="named", names=names)
    sheet.text("x", "y", "named", source=source, align="center", size=12)


def _draw_sums(sheet: Sheet, parts: Sequence[Part], whole: float) -> str:
    """Draw what the whole time was spent on, side by side. Returns the same in words."""
    spent = dict.fromkeys(SPENT, 0.0)
    for part in parts:
        name = "bus" if part.lane == HOST and part.name != "kernel" else part.name
        if name in spent and part.lane in (HOST, CHIP, CLAUSES):
            spent[name] += part.end - part.start
    spent["switches clauses"] = whole - sum(spent.values())

    left = 8.0
    for name, seconds in spent.items():
        width = (WIDTH - 16) * seconds / whole
        x = left + width / 2
        look: dict = {"color": SPENT[name], "alpha": 0.6, "words": [f"{name}: {_took(seconds)}"]}
        sheet.boxes(f"sum {name}", x, SUMS_Y, max(width - 1, 0.5), 24, **look)
        if width > 7 * len(name):
            sheet.text(x, SUMS_Y, name, align="center", size=12)
        elif width > 30:  # a name that is longer than its part of the bar is above it
            above = min(x, WIDTH - 4 * len(name))
            sheet.text(above, SUMS_Y - 19, name, align="center", size=12)
        left += width
    return ", ".join(f"{name} {_took(seconds)}" for name, seconds in spent.items())


def _took(seconds: float) -> str:
    """Return a duration as text, in a suitable unit."""
    return f"{seconds / CLOCK:.0f} clocks" if seconds < 1e-6 else duration(seconds)


def _say(parts: Sequence[Part], start: float, span: float) -> str:
    """Return a caption: what happens at the middle of the window, if long enough to be seen."""
    middle = start + span / 2
    sentences = [
        part.story
        for part in parts
        if part.start <= middle < part.end and part.end - part.start > span / 100
    ]
    return f"**{_took(span)}** in sight. In its middle: {'; '.join(sentences)}."
