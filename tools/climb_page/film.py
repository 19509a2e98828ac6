"""The film at the page's top: what the chip answers to three texts of step 01a, as a recording."""

from typing import Any

from cypresskit.editing.dynamic_answers import judged_kernel
from cypresskit.editing.small_product import small_product
from cypresskit.editing.steps import MARK, STEPS
from cypresskit.gains import REFERENCE
from cypresskit.teach.climb import explain_wrong_product
from cypresskit.timing import simulate
from tools.climb_page.kernels import NAMES, roles
from tools.climb_page.numbers import speed

STEP = STEPS["01a"]
#: What is typed in the place of the comment that asks for a line: nothing, a slip, the line.
TYPED = ("", STEP.solution[0].replace("r2.y", "r2.x"), STEP.solution[0])
UNTYPED = "Row 1 of each block isn't computed yet."
HOLE = "@"  # the row of the loop that is typed


def recording() -> dict[str, Any]:
    """Return the loop's lines, and for each text the products, verdict and speed."""
    rows = STEP.starter.splitlines()
    at = next(number for number, row in enumerate(rows) if MARK in row)
    begin, end = rows.index("whileloop"), rows.index("endloop")
    loop = [row.split(";")[0].rstrip().removeprefix("    ") for row in rows[begin + 1 : end]]
    loop[at - begin - 1] = HOLE
    for long, short in NAMES:
        loop = [row.replace(long, short) for row in loop]
    return {
        "frames": [_frame(rows, at, line) for line in TYPED],
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
    return {
        "line": line,
        "c": [[int(value) for value in row] for row in small["c"]],
        "right": [[int(value) for value in row] for row in small["right"]],
        "says": hint.split(". ")[0].rstrip(".") + ".",
        "gflops": round(simulate(seen.kernel, REFERENCE).gflops) if seen.right else 0,
    }
