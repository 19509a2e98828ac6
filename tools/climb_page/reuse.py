"""The picture of reuse: fetched numbers, and a line from each to the products that use it."""

from collections.abc import Iterator
from html import escape

from cypresskit.draw.block import Update, find_block
from cypresskit.kernels.samples import record_work_item
from cypresskit.tables import plural
from tools.climb_page.kernels import kernel

WORDS = 8  # fetched numbers that are shown of each kernel
ROW, WIDTH, HEIGHT = 26, 300, 250  # pixels: between two numbers; a panel's size
LEFT, RIGHT = 46, 190  # pixels: where numbers end, where products begin


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


def picture() -> str:
    """Return the picture as HTML: a kernel without reuse, and the one with blocks of 4 x 4."""
    panels = "".join(_panel(name, words) for name, words in (("00", "1 x 1"), ("01b", "4 x 4")))
    return f'<div class="reuse">{panels}</div>'


def _panel(name: str, words: str) -> str:
    """Return a kernel's numbers and products as SVG."""
    made = products(name)
    numbers = list(dict.fromkeys(word for update in made for word in _words(update)))
    numbers.sort(key=lambda word: word[0])  # A above B
    heights = {word: 40.0 + ROW * n for n, word in enumerate(numbers)}
    said = f"{plural_of(len(numbers), 'number')} fetched, {plural_of(len(made), 'product')}"
    title = words.replace(" x ", " \N{MULTIPLICATION SIGN} ")
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}: {said}">'
        f'<text x="0" y="16" class="title">{title}</text>'
        f'<text x="{WIDTH}" y="16" class="end">{said}</text>'
        f"{''.join(_lines(made, heights))}{''.join(_boxes(heights))}</svg>"
    )


def plural_of(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {plural(noun, number)}"


def _lines(made: list[Update], heights: dict[tuple, float]) -> Iterator[str]:
    """Yield a line from each number to each of its products, and the products' dots."""
    side = 4 if len(made) > WORDS else 1  # products in a row
    for n, update in enumerate(made):
        x = RIGHT + 24 * (n % side)
        y = 53 + 2 * ROW * (n // side)
        delay = f'style="--n:{n}"'
        for word in _words(update):
            path = f"M{LEFT} {heights[word]}L{x} {y}"
            yield f'<path class="{word[0]}" pathLength="1" d="{path}" {delay}/>'
        yield f'<circle class="c" cx="{x}" cy="{y}" r="6" {delay}/>'


def _boxes(heights: dict[tuple, float]) -> Iterator[str]:
    """Yield the fetched numbers' boxes, with their places."""
    for (matrix, row, column), y in heights.items():
        box = f'x="0" y="{y - 10}" width="{LEFT}" height="20" rx="2"'
        name = escape(f"{matrix.upper()}[{row}, {column}]")
        yield f'<rect class="{matrix}" {box}/><text x="{LEFT / 2}" y="{y + 4}" class="mid">{name}'
        yield "</text>"
