"""What the page's top shows: the loop of step 01a without its last line, four candidates for that
line, and what the chip answers to each, as a recording.
"""

from typing import Any

from cypresskit.editing.dynamic_answers import judged_kernel
from cypresskit.editing.small_product import small_product
from cypresskit.editing.steps import MARK, STEPS
from cypresskit.teach.climb import explain_wrong_product
from cypresskit.timing import simulate
from tools.climb_page.kernels import NAMES, N, roles
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
UNTYPED = "Row 1 of each block isn't computed yet."
HOLE = "@"  # the row of the loop that is missing


def recording() -> dict[str, Any]:
    """Return the loop's lines, and what the chip answers to no line and to each candidate."""
    rows = STEP.starter.splitlines()
    at = next(number for number, row in enumerate(rows) if MARK in row)
    begin, end = rows.index("whileloop"), rows.index("endloop")
    loop = [row.split(";")[0].rstrip().removeprefix("    ") for row in rows[begin + 1 : end]]
    loop[at - begin - 1] = HOLE
    for long, short in NAMES:
        loop = [row.replace(long, short) for row in loop]
    return {
        "frames": [_frame(rows, at, line) for line in ("", *CANDIDATES)],
        "loop": loop,
        "first": begin + 2,  # the number of the loop's first line
        "from": round(speed("00")),
        "roles": roles("01a"),
    }


def _frame(rows: list[str], at: int, line: str) -> dict[str, Any]:
    """Return what the chip answers to the given kernel with a line in the place of a row."""
    typed = [*rows]
    typed[at] = f"    {line}" if line else rows[at]
    seen = judged_kernel("\n".join(typed) + "\n", STEP.file, STEP.like)
    assert seen.kernel is not None
    product = small_product(seen.kernel)
    assert product is not None
    small = product.answer()
    hint = "C is correct."
    if not seen.right:
        hint = explain_wrong_product(seen, STEP.starter).hint if line else UNTYPED
    said = [each for each in hint.replace("`", "").split(". ") if not each.startswith("The same")]
    cells = [pair for rows in zip(small["c"], small["right"]) for pair in zip(*rows)]
    return {
        "line": line,
        "c": [int(value) for value, _ in cells],
        "wrong": [bool(value != should) for value, should in cells],
        "says": ". ".join(said[:2]).rstrip(".") + ".",
        "gflops": round(simulate(seen.kernel, N).gflops) if seen.right else 0,
    }
