"""The wavefronts of one SIMD engine over time, and below them who computes: two, one, or nobody.

Drawn from timing reports. Each lane is a wavefront slot of SIMD engine 0; a fetch is on its way until its data are
there. Fewer registers, more slots: when one wavefront waits, another computes. Left out: the other engines.
"""

from itertools import pairwise

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.timing import Report, simulate

FRAMES = 150
LEFT, WIDE, LANE = 60, 1176, 16  # of the lanes, in pixels
COMPUTING = (("wait", 1.0), ("alu", 0.35), ("alu", 1.0))  # nobody, one, two or more: colour and strength
HEAD = 82  # the room above and below a report's lanes
KINDS = {"ALU": ("computes", "alu", 11), "TEX": ("fetch on its way", "texture", 4), "WRITE": ("stores", "c", 11)}


def wavefronts(*reports: Report | str, n: int = 1024, window: tuple[float, float] = (2000, 6000)) -> Player:
    """A player over the ``window`` (clocks) of one or more reports, one above the other.

    ``reports`` come from ``simulate``; kernels by name are simulated with size ``n``. By default "sgemm_tn" (25
    registers) above "sgemm_tn_37". Raises ``ValueError`` for a report without timeline.
    """
    made = [simulate(r, n) if isinstance(r, str) else r for r in reports or ("sgemm_tn", "sgemm_tn_37")]
    for report in made:
        if not report.timeline:
            raise ValueError(f"{report.kernel}: the report has no timeline to draw")
    sheet = Sheet("Wavefronts of a SIMD engine: " + " and ".join(report.kernel for report in made))
    clocks = np.linspace(*window, FRAMES + 1)
    high = sum(HEAD + LANE * report.active for report in made)
    label = "; ".join(f"{r.kernel}: {r.active} lanes, and below them how many compute" for r in made)
    fig = sheet.stage(label, LEFT + WIDE + 16, high)
    tops = np.cumsum([0, *(HEAD + LANE * report.active for report in made)])
    for number, report in enumerate(made):
        _draw(sheet, fig, report, number, float(tops[number]), clocks)
    captions = [
        f"Clock {clock:.0f}. " + " ".join(f"**{r.kernel}**: {_state(r, clock)}." for r in made) for clock in clocks
    ]
    text = [f"{sheet.title}, clocks {window[0]:.0f} to {window[1]:.0f}"]
    text += [f"{r.kernel}: {r.registers} registers, room for {r.active} wavefronts" for r in made]
    key = sheet.key(
        *((words, ink, "box") for words, ink, _ in KINDS.values()), ("one computes", "alu", "pale"),
        ("nobody computes: all wait", "wait", "box"),
    )  # fmt: skip
    return sheet.player([fig], captions, "\n".join(text), below=[key], step="Clock")


def within(report: Report, kind: str, window: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Clocks (n + 1,) at which the number of wavefronts in a clause of a kind changes within the window, and it between
    them (n,)."""
    spans = [(e.start, e.end) for e in report.timeline if e.kind == kind]
    edges = np.unique(np.clip([*window, *(t for span in spans for t in span)], *window))
    middle = (edges[1:] + edges[:-1]) / 2
    return edges, np.array([sum(start <= t < end for start, end in spans) for t in middle])


def _state(report: Report, clock: float) -> str:
    now = [e.kind for e in report.timeline if e.start <= clock < e.end]
    begun = {e.wavefront for e in report.timeline if e.start <= clock}
    rest = len(begun & {e.wavefront for e in report.timeline if e.end > clock}) - len(now)
    return f"{now.count('ALU')} compute, {now.count('TEX')} wait for data, {rest} for their turn"


def _draw(sheet: Sheet, fig, report: Report, number: int, top: float, clocks: np.ndarray) -> None:
    window = float(clocks[0]), float(clocks[-1])
    scale = WIDE / (window[1] - window[0])
    name, lanes = f"{report.kernel} {number}" if number else report.kernel, report.active

    def at(clock):
        return LEFT + (clock - window[0]) * scale

    title = f"{report.kernel}: {report.registers} registers, room for {lanes} wavefronts"
    sheet.words(fig, [LEFT], [top + 12], [title], bold=True, size=15)
    lane = top + 30 + LANE * np.arange(lanes)
    sheet.words(fig, [LEFT - 8] * lanes, lane, [str(n) for n in range(lanes)], "soft", align="right", size=11)
    here = [e for e in report.timeline if e.end > window[0] and e.start < window[1]]
    for kind, (words, ink, high) in KINDS.items():
        events = [e for e in here if e.kind == kind]
        if events:
            start, end, slot = (np.array([getattr(e, key) for e in events]) for key in ("start", "end", "slot"))
            start, end = np.clip(start, *window), np.clip(end, *window)
            said = [f"wavefront {e.wavefront} {words}: clocks {e.start:.0f} to {e.end:.0f}" for e in events]
            keys = [100_000 * number + e.wavefront for e in events]
            place = f"{kind} {name}", start, end, lane[slot.astype(int)], high, clocks, at
            sheet.past(fig, *place, ink=ink, words=said, key=keys)
    edges, count = within(report, "ALU", window)
    strip, level = top + 36 + LANE * lanes, np.minimum(count, 2).astype(np.uint8)
    who = ["nobody computes", "one computes", "two compute"]
    said = [f"{who[n]}: clocks {a:.0f} to {b:.0f}" for n, (a, b) in zip(level, pairwise(edges))]
    for n, (ink, strength) in enumerate(COMPUTING):
        on = np.flatnonzero(level == n)
        place = f"computing {n} {name}", edges[on], edges[on + 1], np.full(len(on), strip), 13, clocks, at
        sheet.past(fig, *place, ink=ink, alpha=strength, words=[said[i] for i in on])
    _draw_texture(sheet, fig, report, name, strip + 19, clocks, at)
    sheet.words(fig, [LEFT - 8], [strip], ["ALU"], align="right", size=12, bold=True)
    sheet.rule(fig, f"head {name}", at(clocks), (top + 22 + strip + 26) / 2, strip + 26 - top - 22)
    passed = np.clip(clocks[:, np.newaxis] - edges[:-1], 0, np.diff(edges))
    so_far = np.maximum(clocks - window[0], 1e-9)
    for n, said_of, ink, left in ((0, "nobody computes", "wait", 250), (1, "one", "soft", 130), (2, "two", "alu", 0)):
        share = np.round(100 * passed[:, level == n].sum(axis=1) / so_far).astype(np.uint8)
        names = [f"{said_of} {percent} %" for percent in range(101)]
        x = [LEFT + WIDE - left]
        sheet.numbers(fig, f"share {n} {name}", x, [top + 12], share[:, np.newaxis], names=names, ink=ink, bold=n == 0,
                      align="right", size=14)  # fmt: skip
    slots: dict[int, list] = {}
    for e in here:
        slots.setdefault(e.wavefront, []).append(e)
    for wavefront, events in slots.items():
        spent = {k: sum(min(e.end, window[1]) - max(e.start, window[0]) for e in events if e.kind == k) for k in KINDS}
        sheet.about[100_000 * number + wavefront] = (
            f"**Wavefront {wavefront}** of {report.kernel}, lane {events[0].slot}, in these"
            f" {window[1] - window[0]:.0f} clocks: computes {spent['ALU']:.0f}, waits {spent['TEX']:.0f} for data, and"
            " else for its turn."
        )


def _draw_texture(sheet: Sheet, fig, report: Report, name: str, y: float, clocks: np.ndarray, at) -> None:
    """How many of the wavefronts have fetches on their way, as bars of that height."""
    edges, count = within(report, "TEX", (float(clocks[0]), float(clocks[-1])))
    on = np.flatnonzero(count)
    said = [f"fetches of {count[n]} on their way: clocks {edges[n]:.0f} to {edges[n + 1]:.0f}" for n in on]
    high = 16 * count[on] / report.active
    place = edges[on], edges[on + 1], y + 8 - high / 2, high, clocks, at
    sheet.words(fig, [LEFT - 8], [y + 1], ["TEX"], align="right", size=12, bold=True)
    sheet.past(fig, f"texture {name}", *place, ink="texture", words=said)


def waiting(compute: int = 2, wait: int = 6, most: int = 6, turns: int = 5) -> Player:
    """The toy of lesson 04: an engine that computes for one wavefront at a time, ``compute`` clocks, after which that
    one waits for ``wait``, ``turns`` times. A scene for each number of wavefronts up to ``most``; who is ready first
    comes first. Raises ``ValueError`` for numbers below 1."""
    if min(compute, wait, most, turns) < 1:
        raise ValueError(f"compute {compute}, wait {wait}, most {most} and turns {turns} have to be 1 or more")
    runs = [_engine(count, compute, wait, turns) for count in range(1, most + 1)]
    ends = [max(start for _, start in run) + compute for run in runs]
    sheet = Sheet(f"Waiting: {compute} clocks of arithmetic, then {wait} of waiting")
    fig = sheet.stage(
        "A lane for each wavefront, and below them whether anybody computes", LEFT + WIDE + 16, 60 + 30 * most
    )
    scale = WIDE / max(end + wait for end in ends)
    lane = 30 + 30 * np.arange(most)
    sheet.words(fig, [LEFT - 8] * most, lane, list("ABCDEFGHIJKLMNOP"[:most]), "soft", align="right", size=13)
    sheet.words(fig, [LEFT - 8], [lane[-1] + 30], ["ALU"], align="right", size=13, bold=True)
    boxes: dict[str, list] = {"wait": [], "ALU": [], "red": []}
    captions, scenes = [], []
    for count, (run, end) in enumerate(zip(runs, ends), 1):
        scenes.append((f"{count} wavefront" if count == 1 else str(count), end + 1))
        busy = {clock for _, start in run for clock in range(start, start + compute)}
        for now in range(end + 1):
            idle = sum(clock not in busy for clock in range(now))
            share = f"{(now - idle) / now:.0%}" if now else "nothing"
            captions.append(f"Clock {now}. {count} of them: the engine has computed for {share} of the time.")
        for row, clock, long, name in [
            *((w, start + compute, wait, "wait") for w, start in run),
            *((row, start, compute, "ALU") for w, start in run for row in (w, most)),
            *((most, clock, 1, "red") for clock in range(end) if clock not in busy),
        ]:
            boxes[name].append((row, clock, long, len(captions) - end - 1, end))
    frame = np.arange(len(captions))[:, np.newaxis]
    for (name, found), ink, high in zip(boxes.items(), ("texture", "alu", "wait"), (4, 20, 20)):
        row, start, long, first, last = np.array(found or [(0, 0, 0, 0, 0)]).T
        so_far = np.where(frame <= first + last, np.clip(frame - first - start, 0, long), 0)
        x = np.where(so_far > 0, LEFT + (start + so_far / 2) * scale, np.nan)
        wide = np.where(so_far > 0, so_far * scale - 1.5, 0.01)
        sheet.boxes(fig, f"toy {name}", x, 30.0 + 30 * row, wide, high, ink=ink, moves=("x", "w"))
    key = sheet.key(("computes", "alu", "box"), ("waits", "texture", "box"), ("nobody computes", "wait", "box"))
    return sheet.player([fig], captions, sheet.title, below=[key], step="Clock", scenes=scenes, lasts=8)


def _engine(wavefronts: int, compute: int, wait: int, turns: int) -> list[tuple[int, int]]:
    """(wavefront, clock at which it begins to compute), one after another."""
    ready, left, clock, found = [0] * wavefronts, [turns] * wavefronts, 0, []
    while any(left):
        able = [w for w in range(wavefronts) if left[w] and ready[w] <= clock]
        if able:
            w = min(able, key=ready.__getitem__)
            found.append((w, clock))
            clock, left[w] = clock + compute, left[w] - 1
            ready[w] = clock + wait
        else:
            clock += 1
    return found
