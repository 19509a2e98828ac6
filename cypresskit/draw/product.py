"""A product that the simulated device has computed, compared with numpy's: its errors folded by the
block.

All blocks of C are laid one on the other. A place in the block is then a component of a register,
the same in each work-item: a right kernel is even, and a wrong operand spoils the places of a
register. A map of the errors over C would show noise.

The unit is that of the last place of a typical element, one as large as the square root of k: the
matrices are normally distributed. (An element's own unit is tiny where terms cancel.)
"""

import numpy as np

from cypresskit.blas import gemm
from cypresskit.draw.chart import Canvas, Chart, element, text_element
from cypresskit.kernels.comparison import rounding_bounds
from cypresskit.kernels.own import Source, resolve

SIDE = 28  # pixels: a place's side, which a phone may make smaller


def product(kernel: Source = "sgemm_tn", n: int = 512) -> Chart:
    """Multiply on the simulated device, compare with numpy, and draw the errors.

    Parameters
    ----------
    kernel
        A GEMM kernel in single precision: of the catalog, or your own.
    n
        The side of the matrices, a multiple of the block's sides.

    Raises
    ------
    ValueError
        For another precision, and for another ``n``.

    Examples
    --------
    >>> ck.draw.product("sgemm_tn", 512)
    """
    launched = resolve(kernel)
    if launched.precision != "single":
        raise ValueError(
            f"{launched.name} isn't a kernel in single precision. ck.verify compares any kernel's"
            " product with numpy's."
        )
    rows, columns = launched.block
    if n % rows or n % columns:
        raise ValueError(f"n = {n} isn't a multiple of the block's sides, {rows} x {columns}")
    a, b = np.random.default_rng(1).standard_normal((2, n, n)).astype(np.float32)
    unit = float(np.spacing(np.float32(np.sqrt(n))))
    with np.errstate(all="ignore"):  # an incorrect kernel's NaN
        errors = np.abs(gemm(a, b, kernel=launched) - a.astype(np.float64) @ b)
    errors = np.where(np.isnan(errors), np.inf, errors)
    is_wrong = errors > rounding_bounds(a, b, 0, 1, 0, np.float32)
    means, wrong = (_folded(values, launched.block) for values in (errors / unit, is_wrong))

    finding = (
        f"All {n * n:,} elements of C equal numpy's within rounding: they are at most"
        f" {errors.max() / unit:.0f} units of the last place off"
    )
    row, column = np.unravel_index(errors.argmax(), errors.shape)
    detail = f"C[{row}, {column}] is off most. One tone: rounding explains each error."
    if count := int(is_wrong.sum()):
        places = f"{(wrong > 0).sum()} of {wrong.size} places of the block"
        finding = f"{count:,} of {n * n:,} elements of C are wrong, all in {places}"
        detail = "Crossed out: wrong by more than rounding can explain."

    def paint(width: float) -> Canvas:
        side = min(SIDE, width / means.shape[1])
        canvas = Canvas(width, 44 + side * len(means))
        _draw_block(canvas, means, wrong, side)
        return canvas

    sound = means[wrong == 0]
    lines = [f"mean error of a place, counted: {sound.min():.1f} to {sound.max():.1f}"] * bool(
        sound.size
    )
    about = f"{launched.name}, N = {n}, single precision. {detail}"
    return Chart(finding, paint, about=about, lines=lines)


def _folded(values: np.ndarray, block: tuple[int, int]) -> np.ndarray:
    """Return the mean at each place of a block."""
    rows, columns = block
    blocks = values.reshape(-1, rows, values.shape[1] // columns, columns)
    means: np.ndarray = blocks.mean(axis=(0, 2))
    return means


def _draw_block(canvas: Canvas, means: np.ndarray, wrong: np.ndarray, side: float) -> None:
    """Draw the places of the block, with the mean error of each; wrong ones are crossed out."""
    head = "All blocks, one on the other: mean error in units, counted"
    canvas.write(0, 8, head, class_="bold")
    parts = []
    for (row, column), mean in np.ndenumerate(means):
        x, y, share = side * column, 24 + side * row, wrong[row, column]
        box = {"x": x, "y": y, "width": side - 2, "height": side - 2, "rx": 2}
        shape = element("rect", "", "wait 0.3" if share else "c 0.2", **box)
        if share:
            cross = f"M{x + 5:.1f} {y + 5:.1f}l{side - 12:.1f} {side - 12:.1f}"
            cross += f"m0 {12 - side:.1f}l{12 - side:.1f} {side - 12:.1f}"
            shape += element("path", "wait", d=cross, stroke_width=2)
        else:
            middle = x + side / 2 - 1, y + side / 2 - 1
            shape += text_element(*middle, f"{mean:.1f}", "ink", "middle", class_="on")
        words = f"row {row}, column {column} of each block, counted: "
        words += f"{share:.0%} wrong" if share else f"off by {mean:.2f} units"
        parts.append((words, shape))
    canvas.group("places of the block", parts, "counted")
    note = "A place is a component of a register, the same in each work-item."
    if means.size > 1:
        canvas.write(0, 24 + side * len(means) + 10, note, "soft")
