"""Lesson 02."""

from cypresskit.editing.steps import starter_text

GIVEN = starter_text("02")
EMPTY, WHOLE = starter_text("own"), starter_text("four_outputs_tn")
FETCH_A = "sample_resource(0)_sampler(0)_aoffimmi(1,0,0) r3, r0.xz00"
FETCH_B = "sample_resource(1)_sampler(1)_aoffimmi(1,0,0) r5, r0.yz00"
ROWS = [f"r{2 + row // 4}.{'xyzw'[row % 4]}" for row in range(8)]
LOWER = [f"mad r{6 + 2 * i}, {a}, r4, r{6 + 2 * i}" for i, a in enumerate(ROWS) if i > 3]
RIGHT = [f"mad r{7 + 2 * i}, {a}, r5, r{7 + 2 * i}" for i, a in enumerate(ROWS)]
FETCHES = "    ; two more fetches, into r3 and r5: your lines go below this one\n"
PRODUCTS = "    ; twelve more products: your lines go below this one\n"


def lines(*added):
    """Lines of the loop."""
    return "".join(f"    {line}\n" for line in added)


KERNEL = GIVEN.replace(FETCHES, lines(FETCH_A, FETCH_B)).replace(PRODUCTS, lines(*LOWER, *RIGHT))
