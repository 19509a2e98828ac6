"""Pictures that only this page has, as SVG whose parts appear one after the other: the lessons'
pictures show more than a step's heading says. Their data are recordings of simulated runs.
"""

from collections.abc import Iterator
from html import escape

import numpy as np

from cypresskit.compiler import compile
from cypresskit.draw.block import Update, find_block
from cypresskit.draw.chip_scene import Scene
from cypresskit.kernels.samples import record_work_item
from cypresskit.tables import quantity
from tools.climb_page.kernels import KERNELS, LAST, kernel, report, roles
from tools.climb_page.numbers import UNITS

WORDS = 8  # fetched numbers that are shown of each kernel
ROW, WIDTH, LEFT, RIGHT = 26, 300, 46, 190  # pixels: of the picture of reuse
SIDE = 165  # pixels, of a map of C


def _panel(title: str, said: str, size: tuple[int, int], inside: str, more: str = "") -> str:
    """Return a panel as SVG. What it says is beside its title, or below a narrow one; a screen
    reader says ``more``, too.
    """
    width, height = size
    place = f'x="{width}" y="16" class="end"' if width == WIDTH else 'x="0" y="32"'
    title = title.replace(" x ", " \N{MULTIPLICATION SIGN} ")
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}: {said}{more}">'
        f'<text x="0" y="16" class="title">{title}</text>'
        f'<text {place} data-said="">{said}</text>{inside}</svg>'
    )


# -- step 1: fetched numbers, and a line from each to the products that use it


def products(name: str) -> list[Update]:
    """Return the first products of a work-item: those of its first fetched numbers."""
    recording = record_work_item(kernel(name))
    words: list[tuple] = []
    found = []
    for update in find_block(recording).updates:
        words += [word for word in _words(update) if word not in words]
        if len(words) > WORDS:
            break
        found.append(update)
    return found


def _words(update: Update) -> tuple[tuple, tuple]:
    """Return the two numbers of a product: the matrix and the place of each."""
    return ("a", *update.from_a), ("b", *update.from_b)


def reuse() -> Iterator[str]:
    """Yield a kernel without reuse, and the one with blocks of 4 x 4."""
    for name, title in (("00", "1 x 1"), ("01b", "4 x 4")):
        made = products(name)
        numbers = list(dict.fromkeys(word for update in made for word in _words(update)))
        numbers.sort(key=lambda word: word[0])  # A above B
        heights = {word: 40.0 + ROW * n for n, word in enumerate(numbers)}
        said = f"{quantity(len(numbers), 'number')} fetched, {quantity(len(made), 'product')}"
        inside = "".join([*_lines(made, heights), *_boxes(heights)])
        yield _panel(title, said, (WIDTH, 250), inside)


def _lines(made: list[Update], heights: dict[tuple, float]) -> Iterator[str]:
    """Yield a line from each number to each of its products, and the products' dots."""
    side = 4 if len(made) > WORDS else 1  # products in a row
    for n, update in enumerate(made):
        x = RIGHT + 24 * (n % side)
        y = 53 + 2 * ROW * (n // side)
        for word in _words(update):
            path = f"M{LEFT} {heights[word]}L{x} {y}"
            yield f'<path class="{word[0]} from" pathLength="1" d="{path}" style="--n:{n}"/>'
        yield f'<circle class="c" cx="{x}" cy="{y}" r="6" style="--n:{n + 1}"/>'


def _boxes(heights: dict[tuple, float]) -> Iterator[str]:
    """Yield the fetched numbers' boxes, with their places."""
    for (matrix, row, column), y in heights.items():
        box = f'x="0" y="{y - 10}" width="{LEFT}" height="20" rx="2"'
        name = escape(f"{matrix.upper()}[{row}, {column}]")
        yield f'<rect class="{matrix}" {box}/><text x="{LEFT / 2}" y="{y + 4}" class="mid">{name}'
        yield "</text>"


# -- step 4: the clocks of both units, for four blocks


def units() -> Iterator[str]:
    """Yield, for each block, the clocks that a wavefront needs of each unit per value of k."""
    held = {"1 x 1": "00", "2 x 2": "01a", "4 x 4": "01b", "8 x 8": "02"}
    needed = {title: clocks(name) for title, name in held.items()}
    most = max(max(of.values()) for of in needed.values())
    for (title, name), of in zip(held.items(), needed.values()):
        rows, columns = kernel(name).block
        inside = ""
        for y, (unit, number) in zip((52, 92), of.items()):
            kind = ' class="title"' * (number == max(of.values()))
            width = SIDE * number / most
            inside += f'<text x="0" y="{y}"{kind}>{UNITS[unit]}: {number:.0f} clocks</text>'
            inside += f'<path class="{unit.lower()} run" d="M0 {y + 6}h{width:.1f}v14H0z"'
            inside += f' style="--t:{number / most:.3f}"/>'
        more = "".join(f", {UNITS[unit]} {number:.0f} clocks" for unit, number in of.items())
        yield _panel(title, quantity(rows * columns, "product"), (SIDE, 114), inside, more)


def clocks(name: str) -> dict[str, float]:
    """Return the clocks that a wavefront of a kernel needs of each unit, per value of k."""
    held = report(name)
    assert held.size
    share = held.clocks * held.device.simd_engines / held.wavefronts / held.size[2]
    return {unit: held.busy[unit] * share for unit in ("texture", "ALU")}


# -- step 5: the bundles of two orders


def packing() -> Iterator[str]:
    """Yield the loop's bundles in both orders of its products, colored by their texel of B."""
    packed = {"Before": bundles("02"), "In the other order": bundles("03")}
    most = max(map(len, packed.values()))
    for title, rows in packed.items():
        texels = sorted({texel for row in rows for _, texel, _ in row if texel})
        inside = "".join(_bundle(n, row, texels, n / most) for n, row in enumerate(rows))
        yield _panel(title, quantity(len(rows), "bundle"), (WIDTH, 32 + 15 * most), inside)


def _bundle(n: int, row: list[tuple[int, str, str]], texels: list[str], time: float) -> str:
    """Return a bundle as SVG: its number, and its five slots."""
    y = 28 + 15 * n
    filled = {slot: (texel, words) for slot, texel, words in row}
    parts = [f'<text x="16" y="{y + 11}" class="end">{n + 1}</text>']
    for slot in range(5):
        texel, words = filled.get(slot, ("", ""))
        kind = f"b b{texels.index(texel)}" if texel else "other" if words else "empty"
        x = 22 + 56 * slot
        parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="54" height="13"/>')
        parts.append(f'<text x="{x + 27}" y="{y + 10.5}" class="mid">{words}</text>')
    return f'<g class="at" style="--t:{time:.3f}">{"".join(parts)}</g>'


def bundles(name: str) -> list[list[tuple[int, str, str]]]:
    """Return the bundles of a kernel's loop. Each operation is its slot; the register that holds
    its texel of B, or "" if it is no product; and what a product adds to, or the operation's name.
    """
    code = compile(kernel(name).program)
    rows = []
    for bundle in (each for clause in code.main_loop for each in clause.bundles):
        row = []
        for operation in bundle.operations:
            words = code.program.lines[operation.line - 1].split(";")[0].replace(",", "").split()
            texel, target = "", words[0].partition("_")[0]
            if target == "mad":
                (texel,) = (word for word in words if roles(name).get(word) == "b")
                target = f"{words[1]}.{'xyzw'[operation.channel]}"
            row.append((operation.slot, texel, target))
        rows.append(row)
    return rows


# -- step 10: three kernels fill C


def race() -> Iterator[str]:
    """Yield the maps of C of three kernels at the moment when the fastest is done."""
    titles = {"nn": "A as it is", "lds": "A through the LDS", LAST: "A transposed"}
    n = KERNELS["lds"].launch.n
    scenes = {title: Scene(report(name, n), 0, False) for name, title in titles.items()}
    last = min(scene.clocks[-1] for scene in scenes.values())
    for title, scene in scenes.items():
        times = np.ceil(100 * scene.wavefronts[:, 2] / last).astype(int)
        is_done = times <= 100
        paths = "".join(
            f'<path class="at" d="{tiles(np.flatnonzero(times == time), scene.across)}"'
            f' style="--t:{time / 100}"/>'
            for time in np.unique(times[is_done])
        )
        share = "done" if is_done.all() else f"{100 * is_done.mean():.0f} % done"
        said = f"{scene.report.gflops:,.0f} Gflop/s: {share}"
        inside = f'<rect class="empty" x="0" y="40" width="{SIDE}" height="{SIDE}"/>'
        inside += f'<svg y="40" height="{SIDE}" viewBox="0 0 {scene.across} {scene.down}">'
        yield _panel(title, said, (SIDE, SIDE + 40), f"{inside}{paths}</svg>")


def tiles(numbers: np.ndarray, across: int) -> str:
    """Return tiles of a map as an SVG path."""
    return "".join(f"M{n % across} {n // across + 0.5}h1" for n in numbers)


DRAWN = {"reuse": reuse, "units": units, "packing": packing, "three": race}


def picture(name: str) -> str:
    """Return a picture of ``DRAWN`` as HTML."""
    return f'<div class="drawn {name}">{"".join(DRAWN[name]())}</div>'
