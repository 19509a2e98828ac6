"""What the page asks: candidates to tap, each with what the simulated chip answers to it.

Step 01a lacks a line, step 03 has its products in several orders, and step nn its matrices in
several layouts. All is recorded when the page is written: a tap loads nothing.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup

from cypresskit.draw.texture_fetch import Replay
from cypresskit.editing.dynamic_answers import judged_kernel
from cypresskit.editing.small_product import small_product
from cypresskit.editing.steps import MARK, STEPS, reference_kernel
from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import MATRICES
from cypresskit.tables import quantity, ranged
from cypresskit.teach.climb import explain_wrong_product
from cypresskit.timing import simulate
from tools.climb_page.drawn import bundles
from tools.climb_page.kernels import KERNELS, NAMES, N, colored, kernel, roles
from tools.climb_page.numbers import speed

STEP = STEPS["01a"]
(SOLUTION,) = STEP.solution
#: The candidates: mistakes that readers make, and the line, not first and not last.
CANDIDATES = (
    SOLUTION.replace("r2.y", "r2.x"),
    SOLUTION.replace("r11", "r10"),
    SOLUTION,
    SOLUTION.replace("mad", "mul").removesuffix(", r11"),
)
HOLE = "@"  # the row of the loop that is missing
#: Orders of the products of 8 x 8, by the words of a line that they are sorted by: its sum, its
#: number of A and its texel of B.
ORDERS: dict[str, Callable[[list[str]], Any]] = {
    f"as in step {[*KERNELS].index('02') + 1}": lambda words: 0,
    "by row of C": itemgetter(2, 3),
    "by component of A": lambda words: (words[2][-1], words[3]),
    "by texel of B": itemgetter(3),
}
#: Layouts of A, and of the four work-items that fetch together.
LAYOUTS = {
    "A as it is, 2 x 2": "sgemm_nn",
    "A transposed, 2 x 2": "sgemm_tn",
    "A as it is, 4 x 1": "sgemm_64x64",
    "A transposed, 4 x 1": "sgemm_tn_compute",
}


class Frame(NamedTuple):
    """A candidate, and the answer to it."""

    choice: str | Markup  #: what is tapped; "" before the first touch
    shown: Any  #: what is drawn
    says: str
    gflops: int
    kind: str = "wrong"  #: or "right"; "" before the first touch
    unit: str = "Gflop/s"


def film() -> list[Frame]:
    """Return what the chip answers to the kernel without its line, and with each candidate."""
    rows = STEP.starter.splitlines()
    at = next(number for number, row in enumerate(rows) if MARK in row)
    return [_typed(rows, at, line) for line in ("", *CANDIDATES)]


def film_loop() -> tuple[int, list[str]]:
    """Return the loop's lines with a ``HOLE``, and the number of the first one."""
    rows = STEP.starter.splitlines()
    begin, end = rows.index("whileloop") + 1, rows.index("endloop")
    lines = [HOLE if MARK in row else row.split(";")[0].strip() for row in rows[begin:end]]
    for long, short in NAMES:
        lines = [row.replace(long, short) for row in lines]
    return begin + 1, lines


def _typed(rows: list[str], at: int, line: str) -> Frame:
    """Return the answer to the given kernel with a line in the place of a row."""
    typed = [*rows]
    typed[at] = f"    {line}" if line else rows[at]
    seen = judged_kernel("\n".join(typed) + "\n", STEP.file, STEP.like)
    assert seen.kernel is not None
    product = small_product(seen.kernel)
    assert product is not None
    small = product.answer()
    cells = [pair for rows in zip(small["c"], small["right"]) for pair in zip(*rows)]
    shown = [(int(value), bool(value != right)) for value, right in cells]
    before = round(speed("00"))
    choice = colored(line, roles("01a"))
    if seen.right:
        now = round(simulate(seen.kernel, N).gflops)
        says = f"C is correct. {now} Gflop/s instead of {before}: {now / before:.0f} times as fast."
        return Frame(choice, shown, says, now, "right")
    hint = explain_wrong_product(seen, STEP.starter).hint.replace("`", "")
    if not line:
        empty = [row for row in range(seen.kernel.block[0]) if not any(small["c"][row])]
        hint = f"Row {ranged(empty)} of each block isn't computed yet."
    said = [each for each in hint.split(". ") if not each.startswith("The same")][:2]
    words = ". ".join(said).rstrip(".")
    says = f"{sum(wrong for _, wrong in shown)} of {len(shown)} are wrong. {words}."
    return Frame(choice, shown, says, before, "wrong" if line else "", "Gflop/s so far")


def orders() -> list[Frame]:
    """Return the bundles of the loop of 8 x 8 with its products in each of ``ORDERS``."""
    given = kernel("02")
    head, _, rest = given.text.partition("whileloop")
    loop, _, tail = rest.partition("endloop")
    rows = loop.splitlines()
    products = [row for row in rows if row.strip().startswith("mad")]
    frames = []
    for name, key in ORDERS.items():
        others = iter(sorted(products, key=lambda row: key(row.replace(",", "").split())))
        ordered = [next(others) if row in products else row for row in rows]
        text = f"{head}whileloop" + "\n".join(ordered) + f"\nendloop{tail}"
        made = Kernel(name, text, given.convention)
        packed = bundles(made, roles("02"))
        texels = sorted({texel for row in packed for texel, _ in row.values() if texel})
        full = sum(len(row) == 5 for row in packed)
        says = f"{quantity(len(packed), 'bundle')} per iteration, {full} of them full."
        frames.append(Frame(name, (texels, packed), says, round(simulate(made, N).gflops)))
    most = max(len(frame.shown[1]) for frame in frames)
    for frame in frames:  # as high as the highest, so that nothing moves
        frame.shown[1].extend([{}] * (most - len(frame.shown[1])))
    return _best(frames)


def layouts() -> list[Frame]:
    """Return the clocks in which four work-items get their texels, in each of ``LAYOUTS``: of A,
    and of B.
    """
    frames = []
    for name, launched in LAYOUTS.items():
        replay = Replay(reference_kernel(launched), 0)
        shown, said = {}, []
        for resource, matrix in MATRICES.items():
            fetch = next(n for n, a in enumerate(replay.accesses) if a.resource == resource)
            clocks = [
                step.texels for step in replay.served if (step.fetch, step.quad) == (fetch, 0)
            ]
            shown[matrix] = [[int(replay.bank[texel]) for texel in texels] for texels in clocks]
            texels = quantity(sum(map(len, clocks)), "texel")
            said.append(f"{matrix}: {texels} in {quantity(len(clocks), 'clock')}.")
        gflops = round(simulate(reference_kernel(launched), N).gflops)
        frames.append(Frame(name, shown, " ".join(said), gflops))
    return _best(frames)


def _best(frames: list[Frame]) -> list[Frame]:
    """Return the candidates; the fastest is right."""
    most = max(frame.gflops for frame in frames)
    return [frame._replace(kind="right") if frame.gflops == most else frame for frame in frames]


RIDDLES = {made.__name__: made for made in (film, orders, layouts)}
