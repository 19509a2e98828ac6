"""What the page asks: candidates to tap, each with what the simulated chip answers to it.

Step 01a lacks a line, step 01b asks for larger blocks, step 03 has its products in several orders,
and step nn its matrices in several layouts. All is recorded when the page is written: a tap loads
nothing.
"""

import re
from collections.abc import Callable
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from cypresskit.compiler import compile
from cypresskit.draw.texture_fetch import Replay
from cypresskit.editing.judgment import verify_text
from cypresskit.editing.small_product import multiply_small
from cypresskit.editing.steps import MARK, STEPS, reference_kernel
from cypresskit.gains import idea_of
from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import MATRICES
from cypresskit.tables import quantity, ranged
from cypresskit.teach.climb import explain_wrong_product
from cypresskit.timing import simulate
from tools.climb_page.kernels import N, colored, compared, kernel, lines, roles
from tools.climb_page.numbers import speed

STEP = STEPS["01a"]
(SOLUTION,) = STEP.solution
ROWS = STEP.starter.splitlines()
GAP = next(at for at, row in enumerate(ROWS) if MARK in row)  # the row that lacks its line
#: The candidates: mistakes that readers make, and the line, not first and not last.
CANDIDATES = (
    SOLUTION.replace("r2.y", "r2.x"),
    SOLUTION.replace("r11", "r10"),
    SOLUTION,
    SOLUTION.replace("mad", "mul").removesuffix(", r11"),
)
#: By a step whose kernel is a candidate: the riddle that its numbers and words would answer.
ANSWERS = {"02": "sizes", "03": "orders", "nn": "layouts", "compute": "layouts"}
BEFORE = "Gflop/s before"  # the unit of a speed that isn't the reader's
HOLE = "@"  # the row of the loop that is missing
#: What the loop's lines fetch and compute, from its first fetch to the hole.
NOTES = "x, y: A[k, rows 0 and 1]", "x, y: B[k, columns 0 and 1]", "row 0", "row 1"
#: Blocks, from the size on that a whole texel of A and of B fills.
SIZES = {
    "4 x 4": "our_step_01b",
    "8 x 8": "our_step_02",
    "12 x 12": "block_12x12",
    "16 x 16": "block_16x16",
}
#: What limits such a block.
VERDICTS = {
    "texture": "fetches are the limit",
    "ALU": "enough of both, arithmetic is the limit",
    "latency": "too few to hide the wait for fetches",
}
#: Orders of the products of 8 x 8, by the words of a line that they are sorted by: its sum, its
#: number of A and its texel of B.
ORDERS: dict[str, Callable[[list[str]], Any]] = {
    "texels of B in turn": lambda words: 0,
    "by row of C": itemgetter(2, 3),
    "by component of A": lambda words: (words[2][-1], words[3]),
    "by texel of B": itemgetter(3),
}
FIRST_LINES = 5  # of an order, enough to tell it from the others
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


@cache
def film() -> tuple[Frame, ...]:
    """Return what the chip answers to the kernel without its line, and with each candidate."""
    return tuple(map(_typed, ("", *CANDIDATES)))


def film_loop() -> tuple[int, list[tuple[str, str]]]:
    """Return the number of the loop's first fetch, and its lines from there to a ``HOLE``, without
    addresses, each with its note.
    """
    first = next(at for at, row in enumerate(ROWS) if "sample_r" in row)
    loop = lines("\n".join(_with(HOLE)), "loop")
    shown = [re.sub(r"r0\.\w+", "…", row) for row in loop][first - ROWS.index("whileloop") - 1 :]
    return first + 1, [*zip(shown, NOTES)]


def _with(row: str) -> list[str]:
    """Return the kernel's rows with another one in the place of its gap."""
    return [*ROWS[:GAP], row, *ROWS[GAP + 1 :]]


def _typed(line: str) -> Frame:
    """Return the answer to the kernel with a line in its gap, or with none."""
    rows = _with(f"    {line}") if line else ROWS
    seen = verify_text("\n".join(rows) + "\n", STEP.file, STEP.like)
    assert seen.kernel is not None
    product = multiply_small(seen.kernel)
    assert product is not None
    small = product.answer()
    c, right = (np.array(small[name], int) for name in ("c", "expected"))
    cells = [*zip(c.ravel().tolist(), (c != right).ravel().tolist())]
    before = _slower("01a")
    choice = colored(line, roles("01a"))
    if seen.is_correct:
        now = round(simulate(seen.kernel, N).gflops)
        block, layout = idea_of("01a").causes
        says = (
            f"C is correct, {now / before:.1f} times as fast: {block:.1f} by the block that you"
            f" completed, {layout:.1f} as A is transposed."
        )
        return Frame(choice, (cells, "all rows are correct"), says, now, "right")
    hint = explain_wrong_product(seen, STEP.starter).hint.replace("`", "")
    if not line:
        empty = [row for row in range(seen.kernel.block[0]) if not any(small["c"][row])]
        hint = f"Row {ranged(empty)} of each block of C isn't computed yet."
    said = [each for each in hint.split(". ") if not each.startswith("The same")][:2]
    words = ". ".join(said).rstrip(".")
    says = f"{(c != right).sum()} of {c.size} are wrong. {words}."
    shown = cells, f"rows {ranged([*np.flatnonzero((c != right).any(axis=1))])} are wrong"
    return Frame(choice, shown, says, before, "wrong" if line else "", BEFORE)


@cache
def sizes() -> tuple[Frame, ...]:
    """Return how often blocks of each of ``SIZES`` use a fetch, and what they hold: of each figure
    its share of the most, too.
    """
    figures = {}
    for name, launched in SIZES.items():
        made = reference_kernel(launched)
        report, (rows, columns) = simulate(made, N), made.block
        figures[name] = {
            "products per fetch": 4 * rows * columns // (rows + columns),
            "registers": report.registers,
            "wavefronts": report.active_wavefronts,
        }
    most = {each: max(of[each] for of in figures.values()) for each in figures[name]}
    frames = []
    for name, of in figures.items():
        shown = {each: (number, number / most[each]) for each, number in of.items()}
        used, _, wavefronts = of.values()
        made = reference_kernel(SIZES[name])
        verdict = VERDICTS[simulate(made, N).bound]
        says = f"{used} products per fetch, {wavefronts} wavefronts: {verdict}"
        frames.append(_frame(name, shown, says, made))
    return _asked("02", dict.fromkeys(most, ("", 0)), frames)


def bundles(held: Kernel, holds: dict[str, str]) -> list[dict[int, tuple[str, str]]]:
    """Return the bundles of a kernel's loop: by its slot, of each operation the register that holds
    its texel of B, or "" if it is no product; and what a product adds to, or the operation's name.
    Operations are in the program's order. ``holds`` has the matrix that each register holds.
    """
    code = compile(held.program)
    rows = []
    for bundle in (each for clause in code.main_loop for each in clause.bundles):
        row = {}
        for operation in sorted(bundle.operations, key=attrgetter("at", "channel")):
            words = code.program.lines[operation.line - 1].split(";")[0].replace(",", "").split()
            texel, target = "", words[0].partition("_")[0]
            if target == "mad":
                (texel,) = (word for word in words if holds.get(word) == "b")
                target = f"{words[1]}.{'xyzw'[operation.channel]}"
            row[operation.slot] = texel, target
        rows.append(row)
    return rows


def ordered() -> dict[Markup, Kernel]:
    """Return 8 x 8 with its products in each of ``ORDERS``, by what is tapped."""
    given = kernel("02")
    head, _, rest = given.text.partition("whileloop")
    loop, _, tail = rest.partition("endloop")
    written = loop.splitlines()
    products = [line for line in written if line.strip().startswith("mad")]
    made = {}
    for name, key in ORDERS.items():
        order = sorted(products, key=lambda line: key(line.replace(",", "").split()))
        first = [colored(line.strip(), roles("02")) for line in order[:FIRST_LINES]]
        choice = Markup("\n").join([name, *first])
        others = iter(order)
        ordered = [next(others) if line in products else line for line in written]
        text = f"{head}whileloop" + "\n".join(ordered) + f"\nendloop{tail}"
        made[choice] = Kernel(name, text, given.convention)
    return made


@cache
def orders() -> tuple[Frame, ...]:
    """Return the bundles of the loop of 8 x 8 with its products in each of ``ORDERS``."""
    made = ordered()
    packed = {choice: bundles(each, roles("02")) for choice, each in made.items()}
    texels = sorted(register for register, holds in roles("02").items() if holds == "b")
    most = max(map(len, packed.values()))
    frames = []
    for choice, rows in packed.items():
        at = next(at for at, row in enumerate(rows) if [*map(all, row.values())] == [True] * 4)
        _, left = next(iter(rows[at + 1].values()))
        why = f". Row {at + 1} has no fifth: {left} finds no port of {left[-1]}"
        full = sum(sum(map(all, row.values())) == 5 for row in rows)
        if rows is min(packed.values(), key=len):
            why = f"; {full} have five products"
        says = f"{len(rows)} bundles{why}"
        frames.append(_frame(choice, (texels, rows, most), says, made[choice]))
    return _asked("03", (texels, [{}] * most, most), frames)


@cache
def layouts() -> tuple[Frame, ...]:
    """Return the clocks in which four work-items get their texels, in each of ``LAYOUTS``: of A,
    and of B.
    """
    served = {}
    for name, launched in LAYOUTS.items():
        replay = Replay(reference_kernel(launched), 0)
        served[name] = {matrix: _banks(replay, at) for at, matrix in MATRICES.items()}
    every = [clocks for fetches in served.values() for clocks in fetches.values()]
    size = max(map(len, every)), max(len(banks) for clocks in every for banks in clocks)
    frames = []
    for name, fetches in served.items():
        waits = [
            f"{matrix}'s fetch wants {len(clocks)} texels of bank"
            f" {' and of bank '.join(map(str, sorted(clocks[-1])))}"
            for matrix, clocks in fetches.items()
            if len(clocks) > 1
        ]
        clocks = quantity(sum(map(len, fetches.values())), "clock")
        says = f"{clocks}, as {' and '.join(waits) or 'no fetch waits'}"
        frames.append(_frame(name, (fetches, *size), says, reference_kernel(LAYOUTS[name])))
    return _asked("nn", ({matrix: [] for matrix in fetches}, *size), frames)


def _banks(replay: Replay, resource: int) -> list[list[int]]:
    """Return the banks that deliver a quad's texels of a matrix, by clock."""
    fetch = next(n for n, access in enumerate(replay.accesses) if access.resource == resource)
    clocks = [each.texels for each in replay.served if (each.fetch, each.quad) == (fetch, 0)]
    return [[int(replay.bank[texel]) for texel in texels] for texels in clocks]


def _frame(choice: str, shown: Any, says: str, made: Kernel) -> Frame:
    """Return a candidate that is a kernel, with its speed."""
    return Frame(choice, shown, f"{says}.", round(simulate(made, N).gflops))


def _asked(step: str, empty: Any, frames: list[Frame]) -> tuple[Frame, ...]:
    """Return what is there before the first touch, and the candidates: the fastest is right."""
    most, least = max(frame.gflops for frame in frames), _slower(step)
    made = [Frame("", empty, "", least, "", BEFORE)]
    for frame in frames:
        kind, word = "wrong", "No" if frame.gflops <= least else "Faster, but not the fastest"
        if frame.gflops == most:
            kind, word = "right", "Right"
        made.append(frame._replace(kind=kind, says=f"{word}: {frame.says}"))
    return tuple(made)


def _slower(step: str) -> int:
    """Return the speed of the slower of the two kernels that a step compares: the reader looks for
    the faster one.
    """
    return round(min(speed(step), speed(compared(step))))


RIDDLES = {made.__name__: made for made in (film, sizes, orders, layouts)}
