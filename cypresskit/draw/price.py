"""What each line of a kernel costs, beside the clauses that it runs in.

Drawn from prices (``ck.price``). On the left the lines of IL, each with two bars: pale for its
work, the share of the launch in which its unit works for it, and full for its price, the share
that would be saved if it took no time. On the right SIMD engine 0, a row for each wavefront slot:
a click on a line lights up the clauses that it is in, and the other way round. Left out: lines with
hardly any work, and all engines but one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from bokeh.core.properties import value

from cypresskit.draw import theme
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Bars, Sheet, TimeAxis
from cypresskit.draw.window import check_window
from cypresskit.il.dataflow import Numbering, liveness
from cypresskit.kernels.own import Source
from cypresskit.tables import quantity
from cypresskit.timing import LinePrice, Prices, Report, simulate
from cypresskit.timing import price as priced
from cypresskit.timing.limits import registers_for_more
from cypresskit.timing.work import BARRIER

WIDE, HIGH, TOP = 1250, 470, 44
NUMBER = 66  # right edge of the lines' numbers
LIVE = (74, 56)  # live registers: left edge and width
TEXT = 140  # left edge of the IL
BARS = (400, 210)  # left edge and width
WORK = 668  # the columns of figures
PRICE = 728
CLOCKS = (790, 450)  # the engine's rows: left edge and width
ROW = 34  # the highest of them
DECIDES = 1000  # more than a clause has slots: a line's access outweighs them
LETTERS, LEAST = 34, 15  # of a line of IL that is shown; the least height of a row of the listing
FRAMES = 90
INKS = {"ALU": "alu", "texture": "texture", "LDS": "b", "stores": "c"}
STATES = ("ALU", "start", "end"), ("TEX", "start", "served"), ("WRITE", "start", "end")


def price(
    given: Prices | Report | Source = "sgemm_nn",
    n: int = 1024,
    window: tuple[float, float] = (2000, 5000),
) -> Player:
    """A player of what each line of a kernel costs, over a ``window`` (clocks) of an engine.

    ``given`` are prices of ``ck.price``, a report, or a kernel, which is simulated with size ``n``.
    First it asks which lines are the dear ones.
    """
    check_window(window)
    prices = prices_of(given, n)
    report = prices.report
    rows = _rows(prices)
    if not rows or not report.timeline:
        raise ValueError(f"{report.kernel}: no line of it has work to draw")
    clocks = _clocks(report, window)
    sheet = Sheet(f"The price of a line: {report.kernel}")
    sheet.stage(
        f"Lines of {report.kernel} with work and price; clauses of a SIMD engine", WIDE, HIGH
    )
    clause_of_line = _clause_of_line(report)
    _draw_lines(sheet, prices, rows, clause_of_line)
    _draw_engine(sheet, report, clocks)
    for clause in sorted(set(clause_of_line.values())):
        sheet.about[clause] = _story(prices, clause, clause_of_line)
    legend = sheet.legend(
        ("work (pale) and price, ALU", "alu", "box"),
        ("texture unit", "texture", "box"),
        ("LDS", "b", "box"),
        ("stores", "c", "box"),
        ("registers that are live", "soft", "box"),
    )
    note = sheet.note(
        "Prices are modelled, and don't add up: of two lines that hide each other, neither has one."
    )
    text = [
        f"  {_name(row)}: work {100 * sum(line.share for line in row):.1f} % of the launch"
        for row in rows
    ]
    guess = _guess(rows)
    return sheet.player(
        _captions(prices, clocks),
        text,
        below=[legend, note],
        step="Clock",
        guess=guess,
        still_frame=FRAMES // 4,
    )


def prices_of(given: Prices | Report | Source, n: int) -> Prices:
    """The prices that are given, or those of a report or of a kernel at size ``n``."""
    if isinstance(given, Prices):
        return given
    report = given if isinstance(given, Report) else simulate(given, n, progress=False)
    return priced(report)


def _clocks(report: Report, window: tuple[float, float]) -> np.ndarray:
    """The clock of each frame: the window, or the whole timeline if that is over by then."""
    last = max(event.end for event in report.timeline)
    begin, end = window if window[1] <= last else (0.0, min(window[1] - window[0], last))
    return np.linspace(begin, end, FRAMES)


def _rows(prices: Prices) -> list[list[LinePrice]]:
    """The lines with work, in rows: those of a kind that follow one another are together."""
    most = max(line.share for line in prices.lines)
    dear = [line for line in prices.lines if line.share >= most / 50 or line.price >= 0.005]
    return [list(row) for _, row in groupby(dear, lambda n: (n.opcode, n.unit, n.together))]


def _name(row: list[LinePrice]) -> str:
    """What a row is called: "lines 45 to 52, sample"."""
    first, last = row[0], row[-1]
    lines = f"line {first.line}" if len(row) == 1 else f"lines {first.line} to {last.line}"
    return f"{lines}, {first.opcode}"


def _guess(rows: list[list[LinePrice]]) -> Guess:
    """The question, with the rows that have most work as answers."""
    likely = sorted(rows, key=lambda row: -sum(line.share for line in row))[:3]
    best = max(rows, key=lambda row: max(line.price for line in row))
    likely = sorted([*likely, *([] if best in likely else [best])], key=lambda row: row[0].line)
    dearest = max(best, key=lambda line: line.price)
    truth = (
        f"line {dearest.line}, `{dearest.text}`: {100 * dearest.price:.1f} % of the launch, for"
        f" {100 * dearest.share:.1f} % of work"
    )
    return Guess("Where is the dear line?", [_name(row) for row in likely], truth, _name(best))


def _captions(prices: Prices, clocks: np.ndarray) -> list[str]:
    report, dearest = prices.report, prices.dearest
    asks = "Pale bars are work. Which line would save most if it took no time?"
    says = (
        f"Line {dearest.line} is the dearest: done in no time, it would end the launch"
        f" {100 * dearest.price:.1f} % sooner."
    )
    head = f"**{report.kernel}**, clock"
    return [
        f"{head} {clock:.0f}. {says if share == 1 else asks}"
        for clock, share in zip(clocks, _revealed())
    ]


def _revealed() -> np.ndarray:
    """The share of the prices that each frame shows: nothing at first, all from the middle on."""
    return np.clip(np.linspace(-1, 2.5, FRAMES), 0, 1)


@dataclass(frozen=True, eq=False)
class Listing:
    """Where the rows of the listing and their lines stand, in pixels from the top of the stage.

    ``rows`` has lines of a kind together. For each row: ``heights``, and ``middle``, the middle of
    its first line of letters. For each line, all rows one after another: ``y``, its middle, and
    ``thick``, its height.
    """

    rows: list[list[LinePrice]]
    heights: np.ndarray
    middle: np.ndarray
    y: np.ndarray
    thick: np.ndarray

    @property
    def lines(self) -> list[LinePrice]:
        return [line for row in self.rows for line in row]


def _listing(rows: list[list[LinePrice]]) -> Listing:
    """The rows below each other. A line alone has room for letters; lines of a kind are as thin as
    it takes for all rows to fit the stage.
    """
    counts = np.array([len(row) for row in rows])
    thin = _height_of_line(counts)
    heights = np.maximum(counts * thin, LEAST)
    tops = TOP + np.concatenate(([0], np.cumsum(heights)[:-1]))

    y, thick = [], []
    for top, count in zip(tops, counts):
        height = thin if count > 1 else LEAST
        y += [top + (n + 0.5) * height for n in range(count)]
        thick += [height] * count

    middle = tops + np.minimum(heights, LEAST) / 2
    return Listing(rows, heights, middle, np.array(y), np.array(thick))


def _height_of_line(counts: np.ndarray) -> float:
    """The height of a line in rows of so many, if all rows are to fit the stage."""
    room = HIGH - TOP - 4
    height = float(LEAST)
    while height > 2 and np.maximum(counts * height, LEAST).sum() > room:
        height -= 0.1
    return height


def _draw_lines(
    sheet: Sheet, prices: Prices, rows: list[list[LinePrice]], clause_of_line: dict[int, int]
) -> None:
    """The lines of IL, their live registers, and their bars with figures."""
    listing = _listing(rows)
    sheet.words([LIVE[0], TEXT, BARS[0]], 14, ["live", "line of IL", ""], bold=True, size=14)
    sheet.words(BARS[0], 14, "work and price", bold=True, size=14)
    sheet.words([WORK, PRICE], 32, ["work", "price"], "soft", align="right", size=12)

    _draw_live(sheet, prices.report, listing.lines, listing.y, listing.thick)
    _draw_texts(sheet, listing)
    _draw_bars(sheet, listing.lines, listing.y, listing.thick, clause_of_line)
    _draw_figures(sheet, listing)


def _draw_texts(sheet: Sheet, listing: Listing) -> None:
    """The number and the text of each row's first line, and how many lines there are."""
    numbers = [
        f"{row[0].line}" + (f"-{row[-1].line}" if len(row) > 1 else "") for row in listing.rows
    ]
    sheet.words(NUMBER, listing.middle, numbers, "soft", align="right", size=12)

    texts = [theme.elided(row[0].text, LETTERS) for row in listing.rows]
    sheet.words(TEXT, listing.middle, texts, size=12, font=value("monospace"))

    tall = [
        n for n, row in enumerate(listing.rows) if len(row) > 1 and listing.heights[n] >= 2 * LEAST
    ]
    if tall:
        counts = [f"{len(listing.rows[n])} such lines" for n in tall]
        sheet.words(TEXT, listing.middle[tall] + LEAST, counts, "soft", size=12)


def _draw_figures(sheet: Sheet, listing: Listing) -> None:
    """Work and price of each row in per cent; prices once they are revealed."""
    work = [f"{100 * np.mean([line.share for line in row]):.1f} %" for row in listing.rows]
    sheet.words(WORK, listing.middle, work, "soft", align="right", size=12)

    names = [""]
    for row in listing.rows:
        cost = f"{100 * np.mean([line.price for line in row]):.1f} %"
        names.append(f"~ {cost}" if any(line.scatters for line in row) else cost)

    count = len(listing.rows)
    shown = np.where(_revealed()[:, np.newaxis] == 1, 1 + np.arange(count), 0)
    x = np.full(count, PRICE)
    sheet.numbers(
        "prices", x, listing.middle, shown, names=names, align="right", bold=True, size=12
    )


def _draw_bars(
    sheet: Sheet,
    lines: list[LinePrice],
    y: np.ndarray,
    thick: np.ndarray,
    clause_of_line: dict[int, int],
) -> None:
    left, wide = BARS
    scale = wide / max(max(line.share, line.price) for line in lines)
    revealed = _revealed()[:, np.newaxis]
    with_price = (_revealed() == 1)[:, np.newaxis]
    for unit, ink in INKS.items():
        for flat in (False, True):
            chosen = [
                n
                for n, line in enumerate(lines)
                if line.unit == unit and (thick[n] < LEAST) == flat
            ]
            if not chosen:
                continue
            chosen_lines = [lines[n] for n in chosen]
            high = float(thick[chosen[0]])
            share = np.array([max(line.share * scale, 1) for line in chosen_lines])
            cost = np.array([max(line.price, 0) * scale for line in chosen_lines])
            name = f"{unit}, lines of a kind" if flat else unit
            tips = [_tip(line) for line in chosen_lines] + [
                _tip(line, with_price=True) for line in chosen_lines
            ]
            sheet.boxes(
                f"work {name}",
                left + share / 2,
                y[chosen],
                share,
                high - (3 if high > 6 else 0.6),
                ink=ink,
                alpha=0.35,
                words=(tips, np.arange(len(chosen_lines)) + len(chosen_lines) * with_price),
                key=[clause_of_line.get(line.line, -1) for line in chosen_lines],
            )
            width = np.maximum(cost * revealed, 0.01)
            sheet.boxes(f"price {name}", left + width / 2, y[chosen], width, 0.45 * high, ink=ink)


def _draw_live(
    sheet: Sheet, report: Report, lines: list[LinePrice], y: np.ndarray, thick: np.ndarray
) -> None:
    """How many registers are live at each line, and what fewer would be good for."""
    live = _live(report)
    counts = np.array([live.get(line.line, 0) for line in lines])
    left, wide = LIVE
    width = np.maximum(wide * counts / max(max(live.values(), default=1), 1), 0.5)
    words = [
        f"{quantity(count, 'register')} of IL live at line {line.line}"
        for count, line in zip(counts, lines)
    ]
    gap = np.where(thick > 6, 3, 0)
    sheet.boxes("live", left + width / 2, y, width, thick - gap, ink="soft", alpha=0.5, words=words)


def _live(report: Report) -> dict[int, int]:
    """The registers of IL that are live before each line."""
    program = report.launch.code.program
    numbering = Numbering(program)
    counts: dict[int, int] = {}
    for instruction, bits in zip(program.body, liveness(program, numbering)):
        count = len({number for number, _ in numbering.keys(bits)})
        counts[instruction.line] = max(counts.get(instruction.line, 0), count)
    return counts


def room(report: Report) -> str:
    """How many registers a kernel has, and how many fewer would make room for more wavefronts."""
    text = f"{quantity(report.registers, 'register')}: room for {report.active}"
    fit = registers_for_more(report)
    if fit is None:
        return f"{text}, and fewer registers would make no more"
    registers, more = fit
    return f"{text}; with {registers}, {report.registers - registers} fewer, for {more}"


def _draw_engine(sheet: Sheet, report: Report, clocks: np.ndarray) -> None:
    """The clauses of SIMD engine 0, a row for each wavefront slot."""
    left, wide = CLOCKS
    first, last = float(clocks[0]), float(clocks[-1])
    pitch = min(ROW, (HIGH - TOP - 30) / report.active)

    def to_x(clock):
        return left + (clock - first) * wide / (last - first)

    sheet.words(left, 14, f"SIMD engine 0, clocks {first:.0f} to {last:.0f}", bold=True, size=14)
    sheet.words(left, 32, room(report), "soft", size=12)
    y = TOP + 12 + pitch * np.arange(report.active)
    axis = TimeAxis(clocks, to_x)
    events = list(zip(report.timeline, clause_of_events(report)))
    for kind, begin, finish in STATES:
        shown = [
            (event, clause)
            for event, clause in events
            if event.kind == kind
            and getattr(event, begin) < last
            and getattr(event, finish) > first
        ]
        if not shown:
            continue
        start = np.clip([getattr(event, begin) for event, _ in shown], first, last)
        end = np.clip([getattr(event, finish) for event, _ in shown], first, last)
        slot = np.array([event.slot for event, _ in shown])
        stories = [
            f"wavefront {event.wavefront}: clocks {event.start:.0f} to {event.end:.0f}"
            for event, _ in shown
        ]
        ink = {"ALU": "alu", "TEX": "texture", "WRITE": "c"}[kind]
        sheet.progress_bars(
            f"clauses {kind}",
            Bars(start, end, y[slot], max(0.62 * pitch, 4)),
            axis,
            future="faint",
            ink=ink,
            words=stories,
            key=[clause for _, clause in shown],
        )
    high = pitch * report.active
    sheet.play_head("head", to_x(clocks), TOP + 12 + high / 2 - pitch / 2, high + 8)


def clause_of_events(report: Report) -> list[int]:
    """The number of the clause that each event of the timeline is, an index into the code's
    control-flow instructions; -1 where it isn't known.
    """
    launch = report.launch
    running: dict[int, Iterator[int]] = {}
    for path in launch.walk(min(launch.round, report.wavefronts)):
        for wavefront in path.wavefronts.tolist():
            running[wavefront] = _controls(path)
    return [next(running.get(event.wavefront, iter(())), -1) for event in report.timeline]


def _controls(path) -> Iterator[int]:
    """The clauses that a wavefront of a path runs, one after the other."""
    for body, turns in path.segments:
        controls = [clause.control for clause in body if clause.kind != BARRIER]
        for _ in range(turns):
            yield from controls


def _clause_of_line(report: Report) -> dict[int, int]:
    """The clause that each line is in: that of its access, or the one with most of its slots."""
    clauses: dict[int, tuple[int, int]] = {}
    for n, control in enumerate(report.launch.code.controls):
        weights = {access.line: DECIDES for access in control.accesses}
        for operation in control.operations:
            weights[operation.line] = weights.get(operation.line, 0) + 1
        for line, weight in weights.items():
            clauses[line] = max(clauses.get(line, (0, -1)), (weight, n))
    return {line: n for line, (_, n) in clauses.items()}


def _story(prices: Prices, clause: int, clause_of_line: dict[int, int]) -> list[tuple[int, str]]:
    """What is told of a clause: its lines, how long wavefronts stood at it and, once prices are
    shown, its dearest line; from which frame on.
    """
    lines = [line for line in prices.lines if clause_of_line.get(line.line) == clause]
    if not lines:
        return [(0, "A clause of the loop's control flow.")]
    first, last = lines[0].line, lines[-1].line
    name = f"Line {first}" if first == last else f"Lines {first} to {last}"
    waits = {kind: sum(line.work.waited[kind] for line in lines) for kind in lines[0].work.waited}
    all_waits = sum(sum(line.work.waited.values()) for line in prices.lines)
    shares = {kind: 100 * clocks / max(all_waits, 1) for kind, clocks in waits.items()}
    cost = max(lines, key=lambda line: line.price)
    verb = "is" if first == last else "are"
    waiting = (
        f"**{name}** {verb} one clause. Of all waiting, {shares['unit']:.0f} % is for its unit,"
        f" {shares['data']:.0f} % for its data."
    )
    dearest = f"Its dearest line is {cost.line}, {100 * cost.price:.1f} % of the launch."
    return [(0, waiting), (int(np.argmax(_revealed() == 1)), f"{waiting} {dearest}")]


def _tip(line: LinePrice, with_price: bool = False) -> str:
    """What pointing at a line tells, with its price once that is shown."""
    work = f"{line.line}: {line.text}, work {100 * line.share:.1f} % of the launch ({line.unit})"
    if not with_price:
        return work
    span = f" ({100 * line.low:.1f} to {100 * line.high:.1f}: it scatters)" if line.scatters else ""
    return f"{work}, price {100 * line.price:.1f} %{span}"
