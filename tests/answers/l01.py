"""Lesson 01."""

from cypresskit.editing.steps import starter_text

ROWS = ["mad r11, r2.y, r3, r11", "mad r12, r2.z, r3, r12", "mad r13, r2.w, r3, r13"]
KERNEL = starter_text("01b")


def kernel(*lines):
    return KERNEL.replace("; rows 1, 2 and 3: your lines go below this one", "\n".join(lines))


def texels(x, y, k):
    return [("A", 2 * y, k), ("A", 2 * y + 1, k), ("B", 2 * x, k), ("B", 2 * x + 1, k)]


def two_by_two(lines):
    return starter_text("01a").replace("; row 1: your line goes below this one", lines)
