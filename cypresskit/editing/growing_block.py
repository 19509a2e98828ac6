"""The pictures of a hint: the block of C that a work-item computes, as it grows."""

from collections.abc import Sequence

from cypresskit.draw import svg

NUMBER = 7  # pixels, of a number that is drawn
TEXEL = 4 * NUMBER
GAP = 2  # pixels
LEFT = TEXEL + 6  # of the block: beside A
TOP = NUMBER + 6  # below B


def growing_block(sides: Sequence[Sequence[int]]) -> str:
    """Return a picture for each block, given by its rows and columns, as HTML."""
    return "".join(f"<figure>{_block(*each)}</figure>" for each in sides)


def _block(rows: int, columns: int) -> str:
    """Draw a block, with the texels of A to its left and of B above it, and a register for each
    four sums.
    """
    wide = LEFT + columns * NUMBER
    high = TOP + rows * NUMBER
    xs = range(LEFT, wide, TEXEL)
    ys = range(TOP, high, TEXEL)
    boxes = [svg.box(LEFT - NUMBER - 4, y, NUMBER - GAP, TEXEL - GAP, "var(--ck-a)") for y in ys]
    boxes += [svg.box(x, 0, TEXEL - GAP, NUMBER - GAP, "var(--ck-b)") for x in xs]
    for y in range(TOP, high, NUMBER):
        boxes += [svg.box(x, y, TEXEL - GAP, NUMBER - GAP, "var(--ck-c)") for x in xs]
    at_y = f"{len(ys)}y" if len(ys) > 1 else "y"
    at_x = f"{len(xs)}x" if len(xs) > 1 else "x"
    words = (
        f"{rows} x {columns}: first texel of A at {at_y}, of B at {at_x}; {len(xs) + len(ys)}"
        f" fetches, {rows * len(xs)} registers of sums, {rows} rows to store"
    )
    drawing = f'<svg width="{wide}" height="{high}" role="img" aria-label="{words}">'
    return f"{drawing}{''.join(boxes)}</svg><figcaption>{words}</figcaption>"
