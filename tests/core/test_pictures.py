"""One law for every picture: each number that it shows is one of the thing that its text is about,
as what the picture was given has it. See said.py.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from conftest import by_day
from pages import finish, pipeline, recorded, view, whole_numbers
from said import Now, Said, Thing, assert_held, values_of
from test_draw_digits import sums

import cypresskit as ck
from cypresskit import draw, host
from cypresskit.compiler import compile
from cypresskit.draw import published_charts
from cypresskit.draw.chart import Chart
from cypresskit.draw.player import Player
from cypresskit.draw.stored_curves import stored
from cypresskit.kernels import samples
from cypresskit.machine.traffic import Traffic
from cypresskit.timing import Report, simulate
from cypresskit.trace.memory_layout import MemoryLayout


class Picture(NamedTuple):
    """A picture, the things that it is drawn of, and those that are so at a text's frame."""

    player: Player | Chart
    things: Collection[Thing]
    now: Now = lambda _: ()
    frames: Sequence[int] = ()


# -- the chip, its engines and their bundles


def chip(kernel: str, *sizes: int) -> Picture:
    reports = [simulate(kernel, n) for n in sizes]
    frames = 120
    slots = 20 * max(report.active_wavefronts for report in reports)
    things: list[Thing] = [(slots,)]
    for report in reports:
        ran = report.use.wavefronts
        things += [(n, *report.size, *row) for n, row in enumerate(ran)]
        on = [np.flatnonzero(ran[:, 0] == engine) for engine in range(20)]
        things += [(e, *report.size, *of[:12], len(of) - 12) for e, of in enumerate(on)]

    @cache
    def at(frame: int) -> list[Thing]:
        report, step = reports[frame // frames], frame % frames
        use = report.use
        clock = use.clocks[-1] * step / (frames - 1)
        engine, start, end = use.wavefronts.T
        running = (start < clock) & (end > clock)
        interval = min(np.searchsorted(use.clocks, clock, "right"), len(use.clocks) - 1) - 1
        found: list[Thing] = [(-(-len(engine) // 1024),)]
        for unit, shares in use.shares.items():
            share = np.nan_to_num(shares[interval]) * (step > 0)
            if step == frames - 1:
                share = shares.mean(axis=0)
                if len(engine) < report.wavefronts and share.any():
                    share = share * report.busy[unit] / share.mean()
            found += [(n, 100 * min(part, 1)) for n, part in enumerate(share)]
        now = clock, use.clocks[-1], 100 * report.simulated, len(engine), report.wavefronts
        speed = report.gflops, *values_of(str(report.uncertainty)), report.percent
        after = *speed, *values_of(report.bound)
        counts = running.sum(), len({*engine[running]}), 20, (end <= clock).sum()
        found.append((*report.size, *now, report.clocks, *counts, *after))
        return [*found, *enumerate(np.bincount(engine[running].astype(int), minlength=20))]

    return Picture(draw.chip(reports), things, lambda say: at(say.frame))


def at_work(spans: np.ndarray, begin: float, now: float) -> np.ndarray:
    """In how much of a time nobody, one, and two or more are at work, in percent."""
    marks = np.unique(np.clip([begin, now, *spans.ravel()], begin, now))
    middle = (marks[1:] + marks[:-1]) / 2
    count = sum(((start <= middle) & (middle < end)).astype(int) for start, end in spans)
    return 100 * np.bincount(np.minimum(count, 2), np.diff(marks), 3) / max(now - begin, 1e-9)


def wavefronts(*reports: Report) -> Picture:
    window = (2000, 6000)
    player = draw.wavefronts(*reports, window=window)
    things: list[Thing] = []
    states: list[dict[str, np.ndarray]] = []
    for report in reports:
        events, switch = report.timeline, report.device.clause_switch_clocks
        things += [(event.wavefront, event.start, event.end) for event in events]
        fetches = [event for event in events if event.kind == "TEX"]
        things += [(event.wavefront, event.start, event.served) for event in fetches]
        things += [(event.wavefront, event.served, event.end) for event in fetches]
        marks = {*window, *(m for e in events for m in (e.start, e.served, e.end))}
        things += [sorted(marks), (report.registers, 256, report.active_wavefronts)]
        parts = [(e.wavefront, e.kind, e.start, e.end) for e in events]
        numbers = {event.wavefront for event in events}
        for n in numbers:
            for one, other in pairwise(e for e in events if e.wavefront == n):
                ready = min(one.end + switch, other.start)
                parts += [(n, "waits", ready, other.start), (n, "switches", one.end, ready)]
        spent: Counter[tuple[int, str]] = Counter()
        for n, kind, start, end in parts:
            spent[n, kind] += max(0, min(end, window[1]) - max(start, window[0]))
        length = window[1] - window[0]
        for n in numbers:
            things.append(frozenset((n, length, *(c for (m, _), c in spent.items() if m == n))))
        kinds = "ALU", "TEX", "waits", "switches"
        spans = {kind: np.array([part[2:] for part in parts if part[1] == kind]) for kind in kinds}
        states.append(spans | {"serves": np.array([(e.start, e.served) for e in fetches])})

    def iterations(report: Report, now: float) -> int:
        """Ends of the loop's longest clause, of which these kernels have one."""
        loop = compile(ck.kernels[report.kernel].program).main_loop
        longest = report.device.clause_overhead_clocks + 8 * max(len(c.bundles) for c in loop)
        mine = [e for e in report.timeline if e.kind == "ALU"]
        return sum(window[0] < e.end <= now and abs(e.end - e.start - longest) < 0.5 for e in mine)

    @cache
    def at(frame: int) -> list[Thing]:
        now = window[0] + (window[1] - window[0]) * frame / (len(player) - 1)
        found: list[Thing] = [(now, *(iterations(report, now) for report in reports))]
        found += [(number,) for number in found[0][1:]]
        counts = [
            sum((start <= now < end) for start, end in spans)
            for state in states
            for name, spans in state.items()
            if name != "serves"
        ]
        found.append((now, *counts))
        for state in states:
            alone = at_work(state["ALU"], window[0], now)
            serves = at_work(state["serves"], window[0], now)
            found += [(part,) for part in (*alone, alone[2] + alone[1] / 2, 100 - serves[0])]
        return found

    rows = [(n,) for n in range(max(report.active_wavefronts for report in reports))]
    return Picture(player, [*things, *rows], lambda say: at(say.frame))


def bundles(kernel: str) -> Picture:
    code = compile(ck.kernels[kernel].program)
    loop = [bundle for clause in code.main_loop for bundle in clause.bundles]
    lines = [values_of(line.split(";")[0]) for line in code.program.lines]
    things: list[Thing] = [*((n,) for n in range(3)), *lines]
    frames: list[Thing] = []
    for n, line in enumerate(lines, 1):
        at = [k for k, bundle in enumerate(loop, 1) for o in bundle.operations if o.line == n]
        things.append((n, *line, *at))
    for n, bundle in enumerate(loop, 1):
        reads = [(o.slot, r) for o in bundle.operations for r in o.reads]
        ports = {(r.index, r.channel) for _, r in reads if r.kind == "gpr"}
        handed = {
            (r.kind, r.kind == "pv" and r.channel) for _, r in reads if r.kind in ("pv", "ps")
        }
        its_lines = sorted({o.line for o in bundle.operations})
        slots = len(bundle.operations), 5
        frames.append((n, len(loop), *slots, *its_lines, len(ports), 12, len(handed)))
    card = code.stats(*ck.kernels[kernel].convention.per_iteration)
    sums = card.bundles_per_iteration, card.multiply_adds, sum(len(b.operations) for b in loop)
    iteration = *sums, 5 * len(loop), card.slots5_pct, card.clocks_per_iteration
    frames[-1] = *frames[-1], *iteration
    return Picture(draw.bundles(kernel), things, lambda say: [frames[say.frame]])


# -- what a work-item and a wavefront do


def register_block(*places: tuple[int, int]) -> Picture:
    """A product whose sums are exact: A is stored transposed, so it is k x m."""
    a, b = whole_numbers(4, (8, 16), (8, 24))
    runs = recorded("sgemm_tn", a, b, *places)
    starts = np.cumsum([0, *map(len, runs)])
    things: list[Thing] = [(-1,), *((k,) for k in range(8)), (8, 16), (8, 24), (16, 24)]
    things += [(x, y, 8 * y, 8 * y + 8, 8 * x, 8 * x + 8) for y in range(2) for x in range(3)]
    things += [(8 * y, 8 * y + 8, 8 * x, 8 * x + 8) for x, y in places]
    things += np.ndindex(16, 24)  # nothing is added yet
    grows = []
    for i, j, k in np.ndindex(16, 6, 8):
        here = slice(4 * j, 4 * j + 4)
        grows.append(
            (i, 4 * j, 4 * j + 4, k, i, k, 4 * j, 4 * j + 4, *a[: k + 1, i] @ b[: k + 1, here])
        )

    def now(say: Said) -> list[Thing]:
        if say.where != "about" or "term" not in say.text:
            return at(say.frame)
        (i, j), sums = map(int, values_of(say.text)[:2]), []
        for k in range(1, 9):
            terms = [n for pair in zip(a[:k, i], b[:k, j]) for n in pair][-12:]
            sums.append((i, j, *terms, a[:k, i] @ b[:k, j], k, k - 1, i, k - 1, j))
        return sums

    @cache
    def at(frame: int) -> list[Thing]:
        run = runs[scene := int(np.searchsorted(starts, frame, "right")) - 1]
        step = frame - int(starts[scene])
        line = run.line(step)
        code = values_of(run.program.lines[line - 1].split(";")[0])
        head = step + 1, len(run), line, *code
        registers = np.array([*run.registers(step).values()], np.uint32)
        rows = [bits.view(kind) for bits in registers for kind in (np.float32, np.int32, np.uint32)]
        texels = {at: (y, 4 * x, 4 * x + 4) for at, _, x, y, _ in run.fetches.tolist()}
        elements = {at: (element,) for at, element in run.stores.tolist()}
        place = *texels.get(step, ()), *elements.get(step, ())
        (x, y), used = run.place, (len(run.fetches), 128, 8, 512, len(run.stores))
        whole = 8 * y, 8 * y + 8, 8 * x, 8 * x + 8, *used
        does = [*((*place, *row) for row in rows), *grows, place]
        cells = [(number,) for number in registers.view(np.float32).ravel()]
        return [*cells, *((*head, *what, *whole) for what in does)]

    frames = sorted({0, len(runs[0]) // 2, len(runs[0]) - 1, int(starts[-1]) - 1})
    return Picture(draw.register_block(*runs), things, now, frames)


def texture_fetch(*kernels: str) -> Picture:
    """A unit with four banks, each of which gives a quad one of its words in a clock; L1 is larger
    than all that is fetched here.
    """
    things: list[Thing] = [
        (64,),
        *((n,) for n in range(-1, 17)),
        *((n, n // 4 + 1) for n in range(64)),
    ]
    clocks: list[list[Thing]] = []
    waited: list[list[int]] = []
    for kernel in kernels:
        run = samples.record_traffic(kernel, n=max(32, 8 * ck.kernels[kernel].block[0]), k=16)
        layout = MemoryLayout(run.launch, ck.HD5870)
        first: dict[int, int] = {}
        held: set[int] = set()
        own: list[Thing] = []
        waits, missed, asked = [0], 0, 0
        for fetch, access in enumerate([a for a in run.accesses if a.kind == "fetch"][:16], 1):
            words = layout.address(access.resource, access.x, access.y) // 16
            line = run.launch.program.body[access.at].line
            for quad in range(16):
                lanes = slice(4 * quad, 4 * quad + 4)
                wanted = list(dict.fromkeys(words[lanes][access.active[lanes]].tolist()))
                clock, lines = 0, set[int]()
                while wanted:
                    given = {word % 4: word for word in reversed(wanted)}
                    wanted = [word for word in wanted if word not in given.values()]
                    waits.append(waits[-1] + len(wanted) * (clock == 0))
                    clock += 1
                    new = {word // 4 for word in given.values()} - lines
                    lines |= new
                    asked, missed = asked + len(new), missed + len(new - held)
                    held |= new
                    own.append((fetch, line, quad + 1, *sorted(given), len(wanted)))
                    things.append((len(own), quad + 1, fetch, clock, 1))
                    first = dict.fromkeys(given.values(), len(own)) | first
        clocks.append([*own[:-1], (missed, asked)])
        waited.append(waits)
        things.append((len(own),))
        for resource, texture in run.launch.textures.items():
            things.append((texture.height, texture.width))
            y, x = np.divmod(np.arange(texture.width * texture.height), texture.width)
            of = layout.address(resource, x, y) // 16
            for word in np.unique(of).tolist():
                texels = x[of == word]
                row = int(y[of == word][0]), texels.min(), texels.max(), word % 4
                things.append((*row, first.get(word, np.nan)))

    def now(say: Said) -> list[Thing]:
        frame = say.frame
        told = [of[min(frame, len(of)) - 1] if frame else () for of in clocks]
        counts = [(min(frame, len(of)),) for of in clocks]
        counts += [(of[min(frame, len(of) - 1)],) for of in waited]
        return [(frame, *(number for of in told for number in of)), *counts]

    player = draw.texture_fetch(*kernels)
    return Picture(player, things, now, (0, 3, len(player) // 2, len(player) - 1))


def lds_transpose(*kernels: str) -> Picture:
    """An iteration's accesses of each layout: 16 work-items ask at a time, each for two words at
    most, and a bank gives one word in a clock.
    """
    captions: list[list[Thing]] = []
    stories: dict[int, list[float]] = {4 * row + k: [row, k] for row, k in np.ndindex(64, 4)}
    for kernel in kernels:
        traffic = samples.record_traffic(kernel)
        lds = [a for a in traffic.accesses if a.kind != "fetch"]
        iteration = [
            a for n, a in enumerate(lds) if sum(b.at == lds[0].at for b in lds[: n + 1]) == 1
        ]
        held: dict[int, int] = {}
        seen: dict[tuple[bool, int], list[float]] = {}
        frames: list[Thing] = []
        for access in iteration:
            op = traffic.launch.program.body[access.at]
            words = access.addresses // 4
            if is_store := access.kind == "store":
                letters = op.sources[-1].swizzle
                held |= {
                    int(word): 4 * item + "xyzw".index(letter)
                    for row, letter in zip(words, letters)
                    for item, word in enumerate(row)
                }
            for pair, lane in np.ndindex(-(-len(words) // 2), 4):
                who: dict[int, list[int]] = {}
                for row in words[2 * pair : 2 * pair + 2, 16 * lane : 16 * lane + 16]:
                    for item, word in enumerate(row.tolist(), 16 * lane):
                        who.setdefault(word, []).append(item)
                depth: Counter[int] = Counter()
                for word, items in who.items():
                    clock = len(frames) + depth[word % 32]
                    depth[word % 32] += 1
                    span = (items[0], items[-1]) if len(items) > 2 else items
                    told = [*items, word, word % 32, clock] if is_store else [*span, clock]
                    seen.setdefault((is_store, held[word]), told)
                every = sorted({item for items in who.values() for item in items})
                now = op.line, every[0], every[-1], len(who), max(depth.values())
                frames += [now] * max(depth.values())
        captions.append([*frames, (len(frames),)])
        for element, story in stories.items():
            story += seen[True, element] + seen[False, element]
    things: list[Thing] = [
        *stories.values(),
        (64,),
        (9,),
        *((n,) for n in (0, 1, 2, 3, 8, 16, 24, 31)),
    ]
    things += [(word, word % 32) for word in range(2048)]
    things += [(row, k, item) for row, k in np.ndindex(64, 4) for item in {row, 9}]
    things += [(len(of) - 1,) for of in captions]

    def now(say: Said) -> list[Thing]:
        clock = max(say.frame - 1, 0)
        told = [of[min(clock, len(of) - 1)] for of in captions] if say.frame else [(64,)]
        counts = [(min(clock, len(of) - 1),) for of in captions]
        return [(clock, *(number for of in told for number in of)), *counts]

    player = ck.teach.lds.lds_transpose(*kernels)
    return Picture(player, things, now, (0, 1, len(player) // 2, len(player) - 1))


def split_k(kernel: str) -> Picture:
    spec = ck.kernels[kernel]
    rows, columns = spec.convention.multiple[:2]
    traffic = Traffic()
    samples.run(spec, rows, columns, spec.k_step, traffic)
    kinds = Counter((a.kind, a.resource if a.kind == "fetch" else None) for a in traffic.accesses)
    parts = spec.convention.parts
    leaders = 64 // parts
    size = (rows,) if spec.is_vector else (rows, columns)
    captions = [
        (*size, leaders, parts),
        (kinds["fetch", 0], kinds["fetch", 1]),
        (64 - leaders, kinds["store", None]),
        (leaders, kinds["load", None]),
    ]
    things: list[Thing] = [(rows,), (columns,), (leaders,)]
    of_b = [a for a in traffic.accesses if a.kind == "fetch" and a.resource == 1]
    k = [a.x if spec.is_vector else a.y // 4 for a in of_b]  # texels of x, or rows of B
    things += [(n, min(int(of[n]) for of in k) + 1) for n in range(64)]
    for access in traffic.accesses:
        if access.kind == "fetch":
            things += [(int(y), 4 * x, 4 * x + 3) for x, y in zip(access.x, access.y)]
    return Picture(ck.teach.small.split_k(kernel), things, lambda say: [captions[say.frame]])


def block_race(*blocks: int) -> Picture:
    """A product of 8 x 8 x 8: a b x b block receives 2 b words for b b multiply-adds."""
    player = ck.teach.register_block.block_race(blocks)
    clocks = np.linspace(0, 1024 // min(blocks), len(player)).astype(int)
    fetched = {
        b: [
            (matrix, y, x * run.textures[matrix][2] + c)
            for run in sorted(
                ck.teach.register_block.block_runs((b,))[f"{b} x {b}"], key=lambda run: run.item
            )
            for _, matrix, x, y, _ in run.fetches.tolist()
            for c in range(run.textures[matrix][2])
        ]
        for b in blocks
    }

    @cache
    def at(frame: int) -> dict[str, list[Thing]]:
        """By matrix and block; "": the others."""
        clock = int(clocks[frame])
        last = max(blocks), max(blocks), 1024 // max(blocks), 1024 // min(blocks)
        found: list[Thing] = [last if frame == len(player) - 1 else (clock,)]
        cells = defaultdict[str, list[Thing]](list, {"": found})
        for b in blocks:
            words = min(clock, 1024 // b)
            times = Counter(fetched[b][:words])
            found += [(b, b), (words,), (1024 // b,)]
            for i, j in np.ndindex(8, 8):  # A is stored by columns
                terms = sum(all((times[0, k, i], times[1, k, j])) for k in range(8))
                cells[f"A {b}"] += [(i, j, times[0, j, i])]
                cells[f"B {b}"] += [(i, j, times[1, i, j])]
                cells[f"C {b}"] += [(i, j, n) for n in range(terms + 1)]
            done = min(2 * b * b * (words // (2 * b)), 1024)
            for flops in range(max(0, done - 2 * b * b), done + 1, 2):
                found += [(words, flops), (words / max(flops, 1),)]
        return cells

    def now(say: Said) -> list[Thing]:
        things = at(say.frame)
        return things.get(f"{say.text[0]} {say.where.split()[-1]}" if say.where else "", things[""])

    return Picture(player, (), now)


def digits() -> Picture:
    """An element of Hilbert's matrix times its inverse, whose exact sum ends at 0."""
    a, b = ck.teach.double_double.hilbert(8)
    things: list[Thing] = [(24,), (53,), (106,), (10,), *((n,) for n in range(10))]
    captions = []
    for n, (exact, *kinds) in enumerate(zip(*sums().values()), 1):
        errors = [abs(float(kind - exact)) for kind in kinds if kind != exact]
        captions.append((n, 8, float(exact), *errors))
    return Picture(
        ck.teach.double_double.digits(a, b, (2, 4)),
        things,
        lambda say: [captions[say.frame], *((error,) for error in (*captions[say.frame][3:], 0))],
    )


# -- hosts and charts


def timeline(runs: dict[str, host.Timeline]) -> Picture:
    player = draw.timeline(*runs.values(), names=tuple(runs))
    end = max(run.seconds for run in runs.values())
    head = next(t.frames for t in player.tracks if t.source.name.startswith("head"))[:, 0]
    paces = {name: pace(run) for name, run in runs.items()}
    fastest = min((p for p in paces.values() if p), default=1)
    things: list[Thing] = [values_of(name) for name in runs]
    for name, run in runs.items():
        slower = paces[name] / fastest
        names = [[*s.task.place] or values_of(s.task.name) for s in run.spans]
        stages = ", ".join(span.task.stage for span in run.spans)
        things += [(*values_of(resource), *values_of(stages)) for resource in run.resources]
        for n, span in enumerate(run.spans):
            when = 1e3 * span.start, 1e3 * span.end, 1e3 * (span.end - span.start)
            before = [number for m in run.predecessors[n] for number in names[m]]
            behind = [m for m, of in enumerate(run.predecessors) if n in of]
            after = [number for m in behind for number in names[m]]
            own = *names[n], *span.task.place, *when, span.task.bytes / 1e6, slower
            rows = {*span.task.uses, span.task.queue}
            things += [(*values_of(row), *own, *before, *after) for row in rows]
            things.append(values_of(span.task.label))
        busiest = *values_of(run.bound), 100 * run.busy[run.bound]
        things.append((1e3 * run.seconds, run.gflops, *busiest))

    def now(say: Said) -> list[Thing]:
        if say.where == "tick names":
            return [(1e3 * end * (say.data["x"][say.index] - head[0]) / (head[-1] - head[0]),)]
        return at(say.frame)

    @cache
    def at(frame: int) -> list[Thing]:
        clock = end * frame / (len(player) - 1)
        told, shares = [1e3 * clock], list[Thing]()
        for name, run in runs.items():
            on = [s for s in run.spans if s.start <= clock + 1e-12 < s.end]
            told += [*values_of(name), len(on) - 4, paces[name] / fastest]
            told += [
                n
                for s in on
                for row in (s.task.queue, s.task.name, str(s.task.place), *s.task.uses)
                for n in values_of(row)
            ]
            for row, capacity in run.resources.items():
                parts = (np.clip((clock - s.start) / (s.end - s.start), 0, 1) for s in run.spans)
                used = sum(part * s.task.uses.get(row, 0) for part, s in zip(parts, run.spans))
                over = max(min(clock, run.seconds), 1e-12)
                shares.append((100 * round(used / capacity / over, 12),))
            if frame == len(player) - 1:
                path: Counter[str] = Counter()
                for span in (run.spans[n] for n in run.critical_path()):
                    path[span.task.stage] += 100 * (span.end - span.start) / run.seconds
                told += [*path.values(), end / min(run.seconds for run in runs.values())]
        return [frozenset(told), *shares]

    return Picture(player, things, now)


def pace(run: host.Timeline) -> float:
    """Seconds of the chips for each flop; 0 with a CPU beside them."""
    products = [s.task for s in run.spans if s.task.stage in ("mult", "mult1", "cpu")]
    if not run.flops or any(task.stage == "cpu" for task in products):
        return 0.0
    return sum(task.uses.get(task.queue, 0.0) for task in products) / run.flops


def line_chart(curves: dict[str, dict[float, float]]) -> Picture:
    points = [(x, y) for curve in curves.values() for x, y in curve.items()]
    things = [(y, x) for x, y in points]
    things += [[n for point in curve.items() for n in point] for curve in curves.values()]
    things += [[n for x, y in curve.items() for n in (y, x)] for curve in curves.values()]
    return Picture(draw.line_chart(curves, "x", "y", kind="counted"), things)


def roofline() -> Picture:
    rates = {"texture units": 1088.0, "L2 cache": 435.2, "memory": 153.6}  # the data sheet's
    things: list[Thing] = [(rate, 2720.0, 2720.0 / rate) for rate in rates.values()]
    for name in ("sgemm_tn", "sgemm_64x64_lds", "sgemm_64x64"):
        speed = ck.published.kernel(name)["gflops_max"]
        things += [(2.0, speed), (100 * speed / 2176,)]  # 8 x 8 needs 2 flops for each byte
    return Picture(ck.teach.why_blocks.roofline(), [*things, (2720.0,), (4.0,)])


def published(name: str) -> Picture:
    chart, rows = published_charts.CHARTS[name], stored()[name]
    curves = {series: {x: y for x, y, _ in rows[series]} for series in chart.series}
    told: list[float] = []
    things: list[Thing] = []
    for series, (x, y) in chart.points.items():
        curve = curves[series]
        top = max(curve, key=curve.__getitem__)
        told += [y, x, curve[x], 100 * (curve[x] / y - 1), curve[top], top]
    for level in chart.levels:
        told += [*values_of(f"{level.series} {level.words}"), level.y, level.least]
        if level.series:
            inside = [y for x, y in curves[level.series].items() if level.least <= x <= level.most]
            told.append(level.extreme(inside))
    timed = (values_of(str(ck.published.conditions(name))) for name in _kernels(chart.series))
    told += [n for numbers in timed for n in numbers]
    for label, curve in zip(chart.series.values(), curves.values()):
        numbers = values_of(label)
        things += [(*numbers, y, x) for x, y in curve.items()]
        things += [(*numbers, x, y) for x, y in curve.items()]
        things.append((*numbers, *(n for x, y in curve.items() for n in (*numbers, y, x))))
        things.append((*numbers, *(n for point in curve.items() for n in point)))
        things.append((sum(one.get(min(curve), 0) for one in curves.values()), *numbers))
    ends = [y for curve in curves.values() for y in (max(curve.values()), *curve.values())]
    things.append(frozenset((*ends, *values_of(re.sub(r"{[^}]*}", "", chart.finding)))))
    things += [frozenset((*told, *values_of(chart.miss))), values_of(chart.source)]
    if chart.y == "%":
        for bar in ("four", "five"):
            for x in curves["mult of four stages"]:
                parts = [curve[x] for series, curve in curves.items() if f"of {bar}" in series]
                things += [(x, part) for part in (*parts, 100 - sum(parts))]
                things += [(n, part) for part in parts for n in (1, 2)]
                things.append((100 - sum(parts),))
    return Picture(draw.published(name), things)


def _kernels(series: Iterable[str]) -> list[str]:
    return [name for name in series if name in ck.published.kernels()]


# -- the law

TWO = ("sgemm_tn", "sgemm_tn_37")
PICTURES: dict[str, Callable[[], Picture]] = {
    "chip": lambda: chip("sgemm_tn", 128, 1024, 2048),
    "wavefronts": lambda: wavefronts(*(simulate(kernel, 256) for kernel in TWO)),
    "bundles": lambda: bundles("ddgemm_tn_fma"),
    "bundles with the LDS": lambda: bundles("sgemm_64x64_lds"),
    "register_block": lambda: register_block((2, 1), (0, 0)),
    "texture_fetch": lambda: texture_fetch("dgemm_nn"),
    "lds_transpose": lambda: lds_transpose("sgemm_64x64_lds_padded", "sgemm_64x64_lds_worst"),
    "lds_transpose, rows": lambda: lds_transpose("sgemm_64x64_lds", "sgemm_64x64_lds_rows"),
    "split_k": lambda: split_k("sgemm_nn_reduce4"),
    "split_k by a vector": lambda: split_k("sgemv_n_reduce4"),
    "block_race": lambda: block_race(1, 2, 4, 8),
    "digits": digits,
    "timeline": lambda: timeline({"one": pipeline(), "two": pipeline()}),
    "timeline of stages": lambda: timeline(
        {
            "four": host.four_stage(4096, 4096, 1024, host.Machine()),
            "five": host.five_stage(4096, 4096, 1024, host.Machine()),
        }
    ),
    "timeline with a CPU": lambda: timeline(
        {"hybrid": host.five_stage(4096, 4096, 1024, host.Machine(), cpu_share=0.1)}
    ),
    "timeline of round trips": lambda: timeline(
        {f"N = {n}": host.round_trip_timeline(n, 3e9, 450e9) for n in (600, 2400)}
    ),
    "timeline by hand": lambda: timeline(
        {"by hand": ck.teach.pipelines.by_hand([2, 3, 1], units=4)}
    ),
    "roofline": roofline,
    "line_chart": lambda: line_chart({"a": {0: 3.25, 1: 5.5, 2: 9.125}}),
} | {f"published, {name}": lambda name=name: published(name) for name in published_charts.CHARTS}


#: What captions say before anything has happened.
IDLE = re.compile("No fetch has|LDS is empty|Nothing is fetched|at most 0 words| 0 wavefronts are")


@pytest.mark.parametrize("name", by_day(PICTURES, 10))
def test_every_number_is_one_of_what_was_given(name):
    """And every figure has a name for those who listen, and opens at its first event or its end."""
    picture = PICTURES[name]()
    assert_held(*picture)
    if isinstance(picture.player, Chart):
        return
    spec = picture.player.figures[0].tags[0]
    assert all(spec["labels"])
    before, now = picture.player.captions[: spec["opens"]], picture.player.captions[spec["opens"]]
    assert not IDLE.search(now)
    if name == "register_block":
        assert "grows by" in now and not any("grows by" in words for words in before)
    elif name.startswith(("wavefronts", "chip", "timeline")):
        assert spec["opens"] > 10, "at the first clock all is gray"
    elif name == "digits":
        assert spec["opens"] == len(picture.player.captions) - 1, "the sum whose digits are lost"
    elif not name.startswith("bundles"):
        assert all(map(IDLE.search, before)), "no event is before the first one"


def test_each_block_of_the_race_is_done_with_its_last_word():
    """For products of 8 x 8 x 8, blocks of b x b fetch 2 * 8**3 / b words."""
    race, n = view("block_race"), 8
    assert [finish(race, f"{b} x {b}") for b in (1, 2, 8)] == [2 * n**3 // b for b in (1, 2, 8)]
