"""A reduction, fetch by fetch: several work-items share a row of A, and one of them adds up what all have found.

From the recorded fetches and LDS accesses of a wavefront of a matrix-vector kernel: who reads which texel, who leaves
its sum in which word, and who picks it up. Left out: the fetches of x, and what other wavefronts do.
"""

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels import KERNELS
from cypresskit.kernels.samples import run
from cypresskit.machine.traffic import Access, Traffic

TURNS, TOP, HIGH = 4, 40, 368  # turns of the loop that are shown; where the rows begin, and how high they are together
MATRIX, ITEMS, LDS, SUMS = (12, 420), 500, 690, 900  # where the parts of the picture are
WORDS = {"item": "sums its texels", "lds": "its word of the LDS", "sum": "its part of the leader's sum"}
TINTS = [*theme.SERIES, "rgba(128,128,128,0.16)"]  # by part; the last: nothing, or nothing left to do


def reduction(kernel: str = "sgemv_n_reduce4") -> Player:
    """A player of a wavefront of ``kernel``, one of the catalogue that multiplies a matrix, stored row by row, with a
    vector and has several work-items for each result. Raises ``ValueError`` for any other."""
    of = KERNELS[kernel]
    if not of.vector or of.trans_a or of.parts == 1:
        raise ValueError(f"{kernel} has no row of A that work-items share: sgemv_n_reduce4 does, and sgemv_n_reduce2")
    traffic, groups = Traffic(), 64 // of.parts
    rows = groups * of.block[0]
    run(of, rows, 1, TURNS * of.k_step, traffic)
    steps = [a for a in traffic.accesses if a.kind != "fetch" or a.resource == 0]
    item, names = np.arange(64), ["leader", *["helper"] * (of.parts - 1)]
    group, part = np.divmod(item, of.parts)
    sheet = Sheet(f"A reduction: {kernel}, {groups} leaders and {64 - groups} helpers")
    fig = sheet.stage("Texels of A, work-items, the LDS and the sums", 1112, TOP + HIGH + 8)
    _draw_matrix(sheet, fig, steps, part, rows)
    row, side, each = TOP + (group + 0.5) * HIGH / groups, min(16.0, HIGH / groups - 4), HIGH / groups / (of.parts + 1)
    fan = LDS + 40 + 0 * part, row + (part - (of.parts - 1) / 2) * each
    places = {"item": (ITEMS + 36 * part, row), "lds": fan, "sum": (SUMS + 24 * part, row)}
    sizes = {"item": (side, side), "lds": (80, each - 1), "sum": (22, side)}
    kinds = [[one.kind for one in steps[:n]] for n in range(len(steps) + 1)]
    stored, added = (np.array([[done.count(kind)] for done in kinds]) for kind in ("store", "load"))
    # A helper that has left its sum has nothing more to do.
    lit = {"item": (stored == 0) | (part == 0), "lds": stored > 0, "sum": (stored > 0) & (part <= added)}
    for name, place in places.items():
        words = [f"work-item {n}, {names[part[n]]} of group {group[n]}: {WORDS[name]}" for n in item]
        fill, round_ = (TINTS, np.where(lit[name], part, len(theme.SERIES))), int(side / 2) * (name == "item")
        sheet.boxes(fig, name, *place, *sizes[name], words=words, key=item, round=round_, fill=fill)
    come, ends = (part > 0) & (part <= added), (fan[0] + 42, fan[1], SUMS - 14, row)
    sheet.arrows(fig, "branches", *(np.where(come, end, np.nan) for end in ends), ink="soft", width=1.5, size=5)
    sheet.about = {int(n): f"**Work-item {n}**, the {names[part[n]]} of group {group[n]}." for n in item}
    _draw_flights(sheet, fig, steps, part, places, rows)
    heads = f"A: {rows} rows", "64 work-items", "LDS: their sums", "the leaders' sums: parts so far"
    sheet.words(fig, [MATRIX[0], ITEMS - 8, LDS, SUMS - 10], TOP - 16, heads, bold=True, size=14)
    captions = [_say(steps, n, of.parts) for n in range(len(steps) + 1)]
    key = sheet.key(*((f"part {n + 1}: {name}", theme.SERIES[n], "box") for n, name in enumerate(names)))
    return sheet.player([fig], captions, sheet.title, step="Access", below=[key])


def _say(steps: list[Access], n: int, parts: int) -> str:
    if n == 0:
        return f"{parts} neighbours share four rows of A; nothing is fetched."
    if n == len(steps):
        return f"The {64 // parts} leaders have all {parts} parts; they store their elements of y."
    now, before = steps[n - 1], sum(a.kind == "load" for a in steps[:n])
    who = f"{int(now.active.sum())} work-items"
    if now.kind == "fetch":
        return f"{who} fetch a texel each, and add its four products to their sums."
    if now.kind == "store":
        return f"{who} leave their sums in the LDS. The fence: nobody goes on before all have."
    return f"{who} load the sum of helper {before} and add it to their own; the others sleep."


def _texel(x, y, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Where a texel of A is drawn; for each turn and each part there is one in a row."""
    wide = MATRIX[1] / 16
    return MATRIX[0] + (np.asarray(x) + 0.5) * wide, TOP + (np.asarray(y) + 0.5) * HIGH / rows


def _draw_matrix(sheet: Sheet, fig, steps: list[Access], part: np.ndarray, rows: int) -> None:
    """A's texels, in the colour of the work-item that has fetched them."""
    across = 1 + max(int(a.x.max()) for a in steps if a.x is not None)
    seen = np.full((len(steps) + 1, rows * across), len(theme.SERIES))
    for n, access in enumerate(steps, 1):
        if access.x is not None and access.y is not None:
            seen[n:, access.y * across + access.x] = part
    y, x = np.divmod(np.arange(rows * across), across)
    at, words = _texel(x, y, rows), [f"A: row {b}, texel {a}" for a, b in zip(x, y)]
    sheet.boxes(fig, "texels", *at, MATRIX[1] / 16 - 2, HIGH / rows - 0.8, fill=(TINTS, seen), words=words)


def _draw_flights(sheet: Sheet, fig, steps: list[Access], part: np.ndarray, places: dict, rows: int) -> None:
    """What moves in each access: from a texel to its work-item, from there to the LDS, from there to the leader."""
    at = np.full((2, len(steps) + 1, 128), np.nan, np.float32)
    colour = np.tile(part, (len(steps) + 1, 2))
    for n, access in enumerate(steps):
        on = np.flatnonzero(access.active)
        slot = on + 64 * (n % 2)  # those of the access before are still landing
        if access.x is not None and access.y is not None:
            begin, end = _texel(access.x, access.y, rows), places["item"]
        elif access.kind == "store":
            begin, end = places["item"], places["lds"]
        else:
            assert access.addresses is not None
            word = access.addresses[0] // 16
            begin, end = (tuple(axis[word] for axis in places[name]) for name in ("lds", "sum"))
            colour[n : n + 2, slot] = part[word[on]]
        at[:, n, slot], at[:, n + 1, slot] = np.array(begin)[:, on], np.array(end)[:, on]
    at[:, -1] = np.nan  # all have arrived
    sheet.boxes(fig, "flights", at[0], at[1], 9, 9, fill=(theme.SERIES, colour), line="ink", round=4, moves=("x", "y"))
