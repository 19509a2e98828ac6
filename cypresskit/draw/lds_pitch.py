"""Where rows of A begin in the LDS, as the pitch from one to the next grows: which banks they share, and what it costs.

For each pitch ``sgemm_64x64_lds_rows`` is written anew and run, its product compared with numpy's, and its LDS accesses
are replayed (`lds`). A frame is a pitch: the same words, in other banks.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.devices import HD5870, is_whole
from cypresskit.draw import theme
from cypresskit.draw.lds import BANK, BANKS, ROWS, WIDE, Layout, name_banks
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.il import assemble
from cypresskit.kernels import KERNELS
from cypresskit.kernels.samples import run
from cypresskit.machine.traffic import Traffic

PITCHES = range(4, 35)
CHOICES = 4, 5, 6, 8, 16, 32  # of a guess, as far as these are drawn
HIGH, STACK, WORDS, FOOT = 410, 176, 184, 392  # the stage; the stacks' foot, the words' and the bars' place
STORED = 16  # rows of A: those that the first 16 work-items store


def pitched(pitch: int) -> Traffic:
    """What a wavefront asks of the LDS if rows of A lie ``pitch`` words apart. Raises ``ValueError`` for rows that
    overlap or don't fit, ``ArithmeticError`` if the product is wrong."""
    if not is_whole(pitch, HD5870.lds_bytes // 256) or pitch < 4:
        raise ValueError(f"a pitch of {pitch} words: rows of A take 4 of them, and 64 rows have to fit the LDS")
    kernel, traffic = KERNELS["sgemm_64x64_lds_rows"], Traffic()
    text = kernel.text
    for old, new in (
        ("dcl_lds_id(0) 1024", f"dcl_lds_id(0) {256 * pitch}"),
        ("0x380, 0, 0, 0", f"{4 * pitch}, {32 * pitch}, 0, 0"),
        ("0, 16, 32, 48", ", ".join(str(4 * pitch * row) for row in range(4))),
        ("64, 80, 96, 112", ", ".join(str(4 * pitch * row) for row in range(4, 8))),
        ("ishl r3.x, vTidInGrpFlat.x, l2.y", "umul r3.x, vTidInGrpFlat.x, l3.x"),
        ("iand r3.y, r3.x, l3.x", "ushr r3.y, vTidInGrpFlat.x, l1.y\numul r3.y, r3.y, l3.y"),
    ):
        text = text.replace(old, new)
    run(kernel, 64, 64, 8, traffic, program=assemble(text, f"pitch {pitch}"))
    return traffic


def lds_pitch(pitches: Sequence[int] = PITCHES) -> Player:
    """A player with a frame for each pitch (words from one row of A to the next, at least 4): a store and a load of the
    first 16 work-items, and the clocks of a whole turn. Raises ``ValueError`` without pitches, and for those that
    don't fit."""
    pitches = nonempty(pitches, "pass at least one pitch")
    layouts = [Layout(run, 1, 0) for run in map(pitched, pitches)]
    sheet = Sheet("Rows of A in the LDS, and the pitch between them")
    fig = sheet.stage("32 banks, the words of 16 rows, and who stacks up", 2 * WIDE + 76, HIGH)
    said = "A store: each of 16 work-items puts down two words", "A load: 8 of them want two words, 8 two others"
    for n, (left, title) in enumerate(zip((8, WIDE + 68), said)):
        sheet.words(fig, left, 12, title, bold=True, size=14)
        _draw_banks(sheet, fig, left, layouts, n == 0)
    costs = [_costs(of) for of in layouts]
    totals = np.array(costs).sum(axis=1)
    _draw_totals(sheet, fig, pitches, totals)
    captions = [f"Pitch {pitch}: storing takes {store} clocks of a turn and loading {load}: {store + load}."
                for pitch, (store, load) in zip(pitches, costs)]  # fmt: skip
    key = sheet.key(*ROWS, ("waits for its bank", "wait", "ring"), ("fewest clocks", "c", "ring"))
    return sheet.player([fig], captions, sheet.title, step="Pitch", below=[key], guess=_question(pitches, totals))


def _question(pitches: Sequence[int], totals: np.ndarray) -> Guess | None:
    """Which of up to six pitches costs least; of those that cost the least, only the first is a choice."""
    clocks = dict(zip(map(int, pitches), totals.tolist()))
    some = [p for p in CHOICES if p in clocks]
    if len(some) < 2:
        some = list(clocks)[:: -(-len(clocks) // 6)]
    best = min(some, key=clocks.__getitem__)
    some = [p for p in some if p == best or clocks[p] > clocks[best]]
    truth = "; ".join(f"pitch {p} takes {clocks[p]}" for p in some) + " clocks a turn."
    question = "which pitch costs the fewest clocks?"
    return Guess(question, [str(p) for p in some], truth, str(best)) if len(some) > 1 else None


def _costs(layout: Layout) -> tuple[int, int]:
    """Clocks of a turn in which something is stored, and loaded."""
    stores = {request.clock for request in layout.requests if request.store}
    return len(stores), len({request.clock for request in layout.requests} - stores)


def _draw_banks(sheet: Sheet, fig, left: float, layouts: Sequence[Layout], store: bool) -> None:
    """The words of 16 rows where they lie, those that the first group asks for in full colour, and its stacks."""
    kind, element = "store" if store else "load", np.arange(4 * STORED)
    name_banks(sheet, fig, left, 26, FOOT - 106, kind)
    word, layer = np.zeros((len(layouts), len(element)), int), np.full((len(layouts), len(element)), -1)
    for frame, layout in enumerate(layouts):
        begin = min(r.begin for r in layout.requests if r.store == store)
        for r in (r for r in layout.requests if r.element < len(element)):
            word[frame, r.element] = r.word
            if r.begin == begin:
                layer[frame, r.element] = r.layer
    said = [f"A[{e // 4}, k = {e % 4}]" for e in element]
    row = np.where(layer[0] >= 0, element // 4 % 8, 8 + element // 4 % 8)
    pale = [theme.faded(colour, 0.3) for colour in theme.SERIES]
    high = min(8.0, 102 / (1 + word.max() // BANKS))
    x, y = left + (word % BANKS + 0.5) * BANK, WORDS + (word // BANKS + 0.5) * high
    colours = [*theme.SERIES, *pale]
    sheet.boxes(fig, f"words {kind}", x, y, BANK - 2, high - 1, fill=(colours, row), key=element, words=said)
    asked = np.flatnonzero(layer[0] >= 0)
    up, waits = min(12.0, 140 / (1 + layer.max())), np.where(layer[:, asked] > 0, 2, 0)
    at = x[:, asked], STACK - (layer[:, asked] + 0.5) * up, BANK - 3, up - 1.5
    words = [said[e] for e in asked]
    fill = colours, row[asked]
    source = sheet.boxes(fig, f"stack {kind}", *at, fill=fill, key=asked, words=words, wait=waits)
    sheet.ring(fig, source, *at[2:], "wait")
    sheet.about |= {int(e): f"**{said[e]}**, stored by work-item {e // 4}." for e in element}
    deep = 1 + layer.max(axis=1)
    sheet.numbers(fig, f"deep {kind}", left + WIDE, 12, deep, prefix="clocks: ", align="right", size=14)


def _draw_totals(sheet: Sheet, fig, pitches: Sequence[int], totals: np.ndarray) -> None:
    """A bar for each pitch so far: the clocks of its turn, and at the end a frame round the fewest."""
    each, n = (2 * WIDE + 60) / len(pitches), np.arange(len(pitches))
    x, tall = 8 + (n + 0.5) * each, 66 * totals / totals.max()
    sheet.words(fig, 8, FOOT - 76, "Clocks of a turn, by pitch", size=12)
    words, seen = [f"pitch {pitch}: {total} clocks" for pitch, total in zip(pitches, totals)], n <= n[:, np.newaxis]
    best = 3 * (seen[:, -1:] & (totals == totals.min()))
    bars = sheet.boxes(fig, "totals", x, FOOT - tall / 2, each - 4, np.where(seen, tall, np.nan), ink="read",
                       words=words, best=best)  # fmt: skip
    sheet.ring(fig, bars, each - 4, "h", "best", "c")
    sheet.numbers(fig, "clocks", x, FOOT - tall - 9, np.where(seen, totals, -1), align="center", size=11)
    sheet.words(fig, x, FOOT + 9, [str(p) for p in pitches], "soft", align="center", size=11)
    head = sheet.boxes(fig, "head", x[:, np.newaxis], FOOT - 33, each - 2, 70, line="ink")  # it jumps, as words do
    sheet.heads.append({"figure": fig, "source": head, "reach": [FOOT - 84, FOOT + 18]})
