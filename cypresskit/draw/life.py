"""The life of one element of C, from the host's memory and back: a strip of time that zooms down to
a single clock.

Drawn from a timeline of the host, a simulation, and a recording of the work-item that computes the
element. A report keeps the clauses of SIMD engine 0 alone; wavefronts of other engines run the same
ones. Left out: all other elements.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cypresskit import host
from cypresskit.compiler import compile
from cypresskit.devices import HD5870
from cypresskit.draw.block import Update, find_block
from cypresskit.draw.element import LAST, Element, follow, wavefront_of
from cypresskit.draw.player import Player, short
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels import KERNELS
from cypresskit.kernels.samples import run
from cypresskit.machine.record import Recorder, Recording
from cypresskit.timing import Report, simulate
from cypresskit.timing.report import Event

SIDE = LAST + 1  # of the matrices
KERNEL, ZOOMS, CLOSEST = (
    "sgemm_tn",
    40,
    64,
)  # frames of a zoom, and the clocks that the last one shows
WIDE, HIGH, LEFT, TOP, ROW, BAR = (
    1250,
    314,
    150,
    18,
    42,
    26,
)  # the stage, the lanes' left edge, top, distance, height
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
DOES = {"ALU": "computes", "TEX": "fetches", "WRITE": "stores"}
SPENT = {
    "bus": "read",
    "launch": "soft",
    "waits": "wait",
    "fetches": "texture",
    "computes": "alu",
    "stores": "c",
    "changes clauses": "line",
}
CLOCK = 1 / (HD5870.clock_ghz * 1e9)  # seconds


class Part(NamedTuple):
    """An event: lane, start and end in seconds, colour, name, a sentence, and whether it is the
    element's own.
    """

    lane: int
    start: float
    end: float
    ink: str
    name: str
    said: str
    mine: bool = False


def life(element: tuple[int, int] = (5, 3)) -> Player:
    """A player of the life of an element of C, by its row and column, in a product of 256 x 256 by
    ``sgemm_tn``. The wheel or the arrow keys zoom, to a multiply-add or to a fetch in the middle of
    the loop. Raises ``ValueError`` for an element outside.
    """
    element = follow(element)
    parts = list(_parts(element))
    sheet, whole = (
        Sheet(f"The life of C[{element.row}, {element.column}]"),
        max(part.end for part in parts),
    )
    sheet.stage(f"{sheet.title}: a strip of time with a lane for each place", WIDE, HIGH)
    wide = whole * (CLOSEST * CLOCK / whole) ** np.linspace(0, 1, ZOOMS)
    goals = [
        next((p.start + p.end) / 2 for p in parts if p.lane == lane and p.mine)
        for lane in (SUM, FETCH)
    ]
    left = np.concatenate([goal - np.linspace(goal / whole, 0.5, ZOOMS) * wide for goal in goals])
    windows = list(zip(left, np.tile(wide, 2)))
    _draw_lanes(sheet, parts, *np.array(windows).T[:, :, np.newaxis])
    own = f"Its own arithmetic is {SIDE} multiply-adds, a clock of one lane each"
    total = f"Of {_took(whole)}: {_draw_sums(sheet, parts, whole)}. {own}."
    lessons = ", ".join(f"{name} [lesson {stem[:2]}]({stem})" for name, stem in LANES)
    key = sheet.key(
        ("computes", "alu", "dim"),
        ("texture unit", "texture", "dim"),
        ("on its way", "wait", "dim"),
        ("A", "a", "dim"),
        ("B", "b", "dim"),
        ("C", "c", "dim"),
        ("its own", "star", "star"),
    )
    return sheet.player(
        [_say(parts, *window) for window in windows],
        [total],
        below=[sheet.note(f"**{total}** The wheel zooms, after a click. More: {lessons}."), key],
        scenes=[("to a multiply-add", ZOOMS), ("to a fetch", ZOOMS)],
        step="Zoom",
        wheel=True,
        seconds=10,
        still_frame=ZOOMS // 2,
    )


def _parts(element: Element) -> Iterator[Part]:
    """All events, from the host inwards."""
    report, machine = simulate(KERNEL, SIDE), host.Machine(HD5870)
    trip = host.round_trip(
        SIDE, 1e9 * machine.host.dma_gb_s, report.flops / report.seconds, "single"
    )
    for span in trip.spans:
        moves = span.task.stage != "mult"
        ink = span.task.matrix.lower() if moves else "alu"
        yield Part(
            HOST,
            span.start,
            span.end,
            ink,
            span.task.name,
            f"the host: {span.task.name}",
            ink == "c",
        )
    born = next(span.start for span in trip.spans if span.task.stage == "mult")
    first = born + report.seconds - report.clocks * CLOCK  # the chip's clock 0
    yield Part(
        CHIP, born, first, "soft", "launch", "the launch: a command waits until the chip begins"
    )
    for p in _on_chip(report, element):
        yield p._replace(start=first + p.start * CLOCK, end=first + p.end * CLOCK)


def _on_chip(report: Report, element: Element) -> Iterator[Part]:
    """Events of the element's wavefront, in clocks; of its middle turn also fetches, bundles and
    multiply-adds.
    """
    number = wavefront_of(element, KERNELS[KERNEL], (SIDE,) * 3)
    assert report.use and number is not None
    engine, start, end = report.use.wavefronts[number]
    said = f"wavefront {number} runs on SIMD engine {engine:.0f}"
    yield Part(CHIP, start, end, "c", f"wavefront {number}", said, True)
    events = [e for e in report.timeline if e.wavefront == 0]
    said = (
        "its wavefront goes through its kernel"
        + ", timed as wavefront 0's, whose clauses are kept" * (number > 0)
    )
    yield Part(CLAUSES, events[0].start, events[-1].end, "faint", "", said)
    for e in events:
        yield Part(
            CLAUSES, e.start, e.served, SPENT[DOES[e.kind]], DOES[e.kind], f"it {DOES[e.kind]}"
        )
        if e.end > e.served:
            yield Part(CLAUSES, e.served, e.end, "wait", "waits", "its data are on their way")
    recorder = Recorder((element.column // 8, element.row // 8))
    run(KERNELS[KERNEL], SIDE, SIDE, SIDE, recorder)
    recording, turns = recorder.recording, [n for n, e in enumerate(events) if e.kind == "TEX"]
    turn = len(turns) // 2
    begins = np.flatnonzero(
        recording.at == recording.at[recording.fetches[0, 0]]
    )  # of turns, in steps
    steps, block = range(*begins[turn : turn + 2]), find_block(recording)
    mine = {
        recording.line(u.step): u
        for u in block.updates
        if u.total == block.totals[element] and u.step in steps
    }
    fetch, *clauses = events[turns[turn] : turns[turn + 1]]
    wanted = {
        (o.resource, o.row, o.column // 4) for u in mine.values() for o in (u.from_a, u.from_b)
    }
    fetches = [row for row in recording.fetches.tolist() if row[0] in steps]
    each = (fetch.served - fetch.start) / len(fetches)
    for n, (_, resource, x, y, _) in enumerate(fetches):
        start, name = fetch.start + n * each, f"{'AB'[resource]}[{y}, {4 * x}:{4 * x + 4}]"
        said = f"the texture unit fetches {name}, and what 63 others want, in {each:.0f} clocks"
        yield Part(
            FETCH, start, start + each, "ab"[resource], name, said, (resource, y, x) in wanted
        )
    yield Part(
        FETCH, fetch.served, fetch.end, "wait", "on their way", "its numbers are on their way"
    )
    yield from _bundles(clauses, recording, mine)


def _bundles(
    clauses: Sequence[Event], recording: Recording, mine: dict[int, Update]
) -> Iterator[Part]:
    """The bundles of a turn, and in them the element's own multiply-adds, with their lines of
    IL.
    """
    test, *rest = (
        clause.bundles for clause in compile(KERNELS[KERNEL].program).main_loop if clause.bundles
    )
    each = HD5870.result_clocks
    begun = (
        (e.start + HD5870.clause_clocks, bundles) for e, bundles in zip(clauses, [*rest, test])
    )
    for start, bundle in (
        (first + n * each, bundle) for first, bundles in begun for n, bundle in enumerate(bundles)
    ):
        slots = " ".join("xyzwt"[o.slot] for o in bundle.operations)
        done = [
            o for o in bundle.operations if o.line in mine and o.channel == mine[o.line].total[1]
        ]
        yield Part(
            BUNDLES,
            start,
            start + each,
            "alu",
            slots,
            f"a bundle with the slots {slots}",
            bool(done),
        )
        for o in done:
            u = mine[o.line]
            cells = (u.step - 1, u.total), (u.step, u.a), (u.step, u.b), (u.step, u.total)
            old, a, b, new = (
                short(float(recording.registers(step)[r].view(np.float32)[c]))
                for step, (r, c) in cells
            )
            name = f"{old} + {a} \N{MULTIPLICATION SIGN} {b} = {new}"
            ports = ", ".join(f"R{r.index}.{'xyzw'[r.channel]}" for r in o.reads if r.kind == "gpr")
            yield Part(
                SUM,
                start,
                start + each,
                "c",
                name,
                f"slot {'xyzwt'[o.slot]} reads {ports}: {name}",
                True,
            )


def _draw_lanes(sheet: Sheet, parts: Sequence[Part], left: np.ndarray, wide: np.ndarray) -> None:
    """Draw a lane for each place, with the events wide enough to be seen, and stars on the
    element's own.
    """
    y, (names, stems) = TOP + ROW * (np.arange(len(LANES)) + 0.5), zip(*LANES)
    sheet.words(LEFT - 10, y - 7, names, align="right", bold=True, size=14)
    sheet.words(
        LEFT - 10, y + 9, [f"lesson {stem[:2]}" for stem in stems], "soft", align="right", size=12
    )
    sheet.boxes("lanes", (LEFT + WIDE - 8) / 2, y, WIDE - LEFT - 8, BAR, ink="faint", alpha=0.3)
    for ink in sorted(
        {part.ink for part in parts}, key=lambda ink: (ink != "faint", ink)
    ):  # what lies below is first
        numbers = [n for n, part in enumerate(parts) if part.ink == ink]
        lane, begin, finish, _, called, said, mine = zip(*(parts[n] for n in numbers))
        start, end = (
            LEFT + np.clip((t - left) / wide, 0, 1) * (WIDE - LEFT - 8)
            for t in np.array([begin, finish])
        )
        seen = (end - start > 1.5) | (np.array(mine) & (start > LEFT) & (end < WIDE - 8))
        x, size = (
            np.where(seen, (start + end) / 2, np.nan).round(1),
            np.maximum(end - start, 1.5).round(1),
        )
        key = np.where(np.array(lane) == CLAUSES, -1, numbers)
        source = sheet.boxes(
            ink,
            x,
            y[list(lane)],
            size,
            BAR,
            ink=ink,
            moves=("x", "w"),
            key=key,
            words=list(said),
            alpha=0.6,
            columns={"above": y[list(lane)] - 20},
        )
        texts = ["", *dict.fromkeys(filter(None, called))]
        label = np.where(
            size > [6.5 * len(name) for name in called], [texts.index(name) for name in called], 0
        )
        sheet.track(source, "label", label, text="named", names=texts)
        sheet.words("x", "y", "named", source=source, align="center", size=12)
        sheet.star(source, np.array(mine), y="above")
    for n, part in enumerate(parts):
        stem = stems[part.lane]
        if part.lane != CLAUSES:
            sheet.about[n] = (
                f"**{part.name}**, {_took(part.end - part.start)}: {part.said}. [lesson"
                f" {stem[:2]}]({stem})"
            )


def _draw_sums(sheet: Sheet, parts: Sequence[Part], whole: float) -> str:
    """Draw what the whole time was spent on, side by side. Returns the same in words."""
    spent = dict.fromkeys(SPENT, 0.0)
    for part in parts:
        name = "bus" if part.lane == HOST and part.name != "kernel" else part.name
        if name in spent and part.lane in (HOST, CHIP, CLAUSES):
            spent[name] += part.end - part.start
    spent["changes clauses"] = whole - sum(spent.values())
    left = 8.0
    for name, seconds in spent.items():
        wide = (WIDE - 16) * seconds / whole
        x, y = left + wide / 2, HIGH - 16
        words = [f"{name}: {_took(seconds)}"]
        sheet.boxes(
            f"sum {name}", x, y, max(wide - 1, 0.5), 24, ink=SPENT[name], alpha=0.6, words=words
        )
        if wide > 7 * len(name):
            sheet.words(x, y, name, align="center", size=12)
        elif wide > 30:  # a name that is longer than its part of the bar stands above it
            sheet.words(min(x, WIDE - 4 * len(name)), y - 19, name, align="center", size=12)
        left += wide
    return ", ".join(f"{name} {_took(seconds)}" for name, seconds in spent.items())


def _took(seconds: float) -> str:
    """A duration as text, in a suitable unit."""
    if seconds < 1e-6:
        return f"{seconds / CLOCK:.0f} clocks"
    return f"{1e3 * seconds:.3g} ms" if seconds > 1e-4 else f"{1e6 * seconds:.3g} \N{MICRO SIGN}s"


def _say(parts: Sequence[Part], start: float, span: float) -> str:
    """A caption: what happens at the middle of the window, as far as it is wide enough to be
    seen.
    """
    middle = start + span / 2
    here = [
        part.said
        for part in parts
        if part.start <= middle < part.end and part.end - part.start > span / 100
    ]
    return f"**{_took(span)}** in sight. In its middle: {'; '.join(here)}."
