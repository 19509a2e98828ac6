"""The wavefronts of one SIMD engine over time, and below them who computes: two, one, or nobody.

Drawn from timing reports. Each row is a wavefront slot of SIMD engine 0; a fetch is on its way until its data are
there. Fewer registers, more slots: when one wavefront waits, another computes. Left out: the other engines.
"""

from itertools import pairwise
from string import ascii_uppercase

import numpy as np

from cypresskit.devices import is_whole
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.timing import Report, simulate

FRAMES = 150
LEFT, WIDE, ROW = 60, 1176, 16  # of the rows, in pixels
LONGEST = 1000  # clocks of the toy
HEAD = 82  # the room above and below a report's rows
KINDS = {"ALU": ("computes", "alu", 11), "TEX": ("fetch on its way", "texture", 4), "WRITE": ("stores", "c", 11)}
# Of the strip: who, its colour and strength, and where the share so far stands.
COMPUTING = (("nobody computes", "wait", 1.0, 250), ("one", "alu", 0.35, 130), ("two", "alu", 1.0, 0))


def wavefronts(*reports: Report | str, n: int = 1024, window: tuple[float, float] = (2000, 6000)) -> Player:
    """A player over the ``window`` (clocks) of one or more reports, one above the other.

    ``reports`` come from ``simulate``; kernels by name are simulated with size ``n``. By default "sgemm_tn" (25
    registers) above "sgemm_tn_37". Raises ``ValueError`` for a report without timeline.
    """
    given = [simulate(r, n) if isinstance(r, str) else r for r in reports or ("sgemm_tn", "sgemm_tn_37")]
    made = nonempty(given, "pass reports of simulate, or names of kernels", Report)
    for report in made:
        if not report.timeline:
            raise ValueError(f"{report.kernel}: the report has no timeline to draw")
    sheet = Sheet("Wavefronts of a SIMD engine: " + " and ".join(report.kernel for report in made))
    clocks, most = np.linspace(*window, FRAMES + 1), max(report.active for report in made)
    label = "; ".join(f"{r.kernel}: {r.active} rows, and below them how many compute" for r in made)
    high = HEAD + ROW * most
    fig = sheet.stage(label, LEFT + WIDE + 16, len(made) * high)
    for number, report in enumerate(made):
        _draw(sheet, fig, report, number, number * high, most, clocks)
    captions = [
        f"Clock {clock:.0f}. " + " ".join(f"**{r.kernel}**: {_state(r, clock)}." for r in made) for clock in clocks
    ]
    text = [f"{sheet.title}, clocks {window[0]:.0f} to {window[1]:.0f}"]
    text += [f"{r.kernel}: {r.registers} registers, room for {r.active} wavefronts" for r in made]
    kinds = ((words, ink, "box") for words, ink, _ in KINDS.values())
    key = sheet.key(*kinds, ("one computes", "alu", "pale"), ("nobody computes: all wait", "wait", "box"))
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


def _draw(sheet: Sheet, fig, report: Report, number: int, top: float, most: int, clocks: np.ndarray) -> None:
    window, slots = (float(clocks[0]), float(clocks[-1])), report.active
    name = f"{report.kernel} {number}" if number else report.kernel

    def at(clock):
        return LEFT + (clock - window[0]) * WIDE / (window[1] - window[0])

    title = f"{report.kernel}: {report.registers} registers, room for {slots} wavefronts"
    sheet.words(fig, LEFT, top + 12, title, bold=True, size=15)
    y, strip = top + 30 + ROW * np.arange(slots), top + 36 + ROW * most
    names = [*map(str, range(slots)), "ALU", "TEX"]
    sheet.words(fig, LEFT - 8, [*y, strip, strip + 20], names, "soft", align="right", size=12)
    if slots < most:
        gone, middle = ROW * (most - slots), top + 22 + ROW * (slots + most) / 2
        sheet.boxes(fig, f"no room {name}", LEFT + WIDE / 2, middle, WIDE, gone - 4, ink="faint", alpha=0.7)
        why = f"no room: {slots} x {report.registers} of the {report.device.register_pool} registers are taken"
        sheet.words(fig, LEFT + WIDE / 2, middle, why, "soft", align="center", size=13)
    here = [e for e in report.timeline if e.end > window[0] and e.start < window[1]]
    for kind, (words, ink, high) in KINDS.items():
        events = [e for e in here if e.kind == kind]
        if events:
            start, end, slot = (np.array([getattr(e, key) for e in events]) for key in ("start", "end", "slot"))
            said = [f"wavefront {e.wavefront} {words}: clocks {e.start:.0f} to {e.end:.0f}" for e in events]
            keys = [100_000 * number + e.wavefront for e in events]
            place = np.clip(start, *window), np.clip(end, *window), y[slot.astype(int)], high, clocks, at
            sheet.past(fig, f"{kind} {name}", *place, ink=ink, words=said, key=keys)
    edges, count = within(report, "ALU", window)
    level, passed = np.minimum(count, 2), np.clip(clocks[:, np.newaxis] - edges[:-1], 0, np.diff(edges))
    for n, (who, ink, strength, x) in enumerate(COMPUTING):
        on = np.flatnonzero(level == n)
        said = [f"{who}: clocks {a:.0f} to {b:.0f}" for a, b in np.array(list(pairwise(edges)))[on]]
        place = edges[on], edges[on + 1], strip, 13, clocks, at
        sheet.past(fig, f"computing {n} {name}", *place, ink=ink, alpha=strength, words=said)
        share = np.round(100 * passed[:, on].sum(axis=1) / np.maximum(clocks - window[0], 1e-9)).astype(int)
        sheet.numbers(fig, f"share {n} {name}", LEFT + WIDE - x, top + 12, share, bold=n == 0, ink=ink, align="right",
                      names=[f"{who} {part} %" for part in range(101)], size=14)  # fmt: skip
    edges, count = within(report, "TEX", window)
    on = np.flatnonzero(count)
    said = [f"fetches of {count[n]} on their way: clocks {edges[n]:.0f} to {edges[n + 1]:.0f}" for n in on]
    tall = 16 * count[on] / slots
    sheet.past(fig, f"texture {name}", edges[on], edges[on + 1], strip + 27 - tall / 2, tall, clocks, at, ink="texture",
               words=said)  # fmt: skip
    sheet.rule(fig, f"head {name}", at(clocks), (top + 22 + strip + 26) / 2, strip + 26 - top - 22)
    for wavefront in dict.fromkeys(e.wavefront for e in here):
        mine = [(e.kind, min(e.end, window[1]) - max(e.start, window[0])) for e in here if e.wavefront == wavefront]
        spent = {kind: sum(clocks for of, clocks in mine if of == kind) for kind in KINDS}
        sheet.about[100_000 * number + wavefront] = (
            f"**Wavefront {wavefront}** of {report.kernel} in these {window[1] - window[0]:.0f} clocks: computes "
            f"{spent['ALU']:.0f}, waits {spent['TEX']:.0f} for data, the rest for its turn."
        )


def waiting(compute: int = 2, wait: int = 6, most: int = 0, turns: int = 5) -> Player:
    """The toy of lesson 04: an engine that computes for one wavefront at a time, ``compute`` clocks, after which that
    one waits for ``wait``, as long as a wavefront alone takes for ``turns`` of both. A scene for each number of
    wavefronts up to ``most``, or else up to what keeps the engine busy, 6 at least; who is ready first comes first.
    Raises ``ValueError`` for clocks and turns below 1, more than ``LONGEST`` clocks,
    and more than 26 wavefronts."""
    if not all(map(is_whole, (compute, wait, turns))) or turns * (compute + wait) > LONGEST:
        limits = f"have to be whole numbers of 1 or more, and {LONGEST:,} clocks at most together"
        raise ValueError(f"compute {compute}, wait {wait} and turns {turns} {limits}")
    most = most or max(6, -(-(compute + wait) // compute))
    if not is_whole(most, len(ascii_uppercase)):
        raise ValueError(f"{most} wavefronts: there are letters for 1 to {len(ascii_uppercase)}")
    sheet = Sheet(f"Waiting: {compute} clocks of arithmetic, then {wait} of waiting")
    label = "A row for each wavefront, and below them whether anybody computes"
    tall = min(30.0, max(15.0, 300 / most))  # a row; thirteen of them still fit a screen
    fig = sheet.stage(label, LEFT + WIDE + 16, 60 + tall * most)
    bars: dict[str, list] = {"texture": [], "alu": [], "wait": []}  # by ink: row, from, to, in which scene
    captions, now, end = [], [], turns * (compute + wait)
    scale, said = WIDE / end, ["", "1 wavefront", *(f"{n} wavefronts" for n in range(2, most + 1))]
    for count in range(1, most + 1):
        run = [(who, start, min(start + compute, end)) for who, start in _engine(count, compute, wait, end)]
        busy = {clock for _, start, done in run for clock in range(start, done)}
        bars["texture"] += [(who, done, min(done + wait, end), count) for who, _, done in run]
        bars["alu"] += [(row, start, done, count) for who, start, done in run for row in (who, most)]
        bars["wait"] += [(most, clock, clock + 1, count) for clock in range(end) if clock not in busy]
        for clock in range(end + 1):
            passed = "no time has passed"
            if clock:
                share = 100 * sum(one < clock for one in busy) / clock
                passed = f"the engine has computed for {share:.0f} % of the time"
            captions.append(f"Clock {clock}. {said[count]}: {passed}.")
            now.append((count, clock))
    scene, clock = np.array(now).T[:, :, np.newaxis]
    for (ink, found), high in zip(bars.items(), (4, tall / 1.5, tall / 1.5)):
        row, start, stop, shown = np.array(found).T.reshape(4, -1)
        clocks = np.where(scene == shown, clock, np.nan)
        sheet.past(fig, f"toy {ink}", start, stop, 30 + tall * row, high, clocks, lambda t: LEFT + t * scale, ink=ink)
    y = 30 + tall * np.arange(most + 1)
    value = np.where(scene > np.arange(most), np.arange(1, most + 1), 0)
    style: dict = {"align": "right", "size": 13}
    sheet.numbers(fig, "rows", LEFT - 8, y[:-1], value, names=["", *ascii_uppercase[:most]], **style)
    sheet.words(fig, LEFT - 8, y[-1], "ALU", bold=True, **style)
    sheet.rule(fig, "head", LEFT + clock[:, 0] * scale, float(y.mean()), y[-1])
    scenes = [(f"{n} wavefront" if n == 1 else str(n), int((scene == n).sum())) for n in range(1, most + 1)]
    key = sheet.key(("computes", "alu", "box"), ("waits", "texture", "box"), ("nobody computes", "wait", "box"))
    return sheet.player([fig], captions, sheet.title, below=[key], step="Clock", scenes=scenes, lasts=8)


def _engine(wavefronts: int, compute: int, wait: int, end: int) -> list[tuple[int, int]]:
    """(wavefront, clock at which it begins to compute), one after another, before clock ``end``."""
    ready, clock, found = [0] * wavefronts, 0, []
    while clock < end:
        w = min(range(wavefronts), key=ready.__getitem__)
        found.append((w, clock))
        ready[w] = clock + compute + wait
        clock = max(clock + compute, min(ready))
    return found
