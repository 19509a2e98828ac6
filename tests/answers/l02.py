"""Lesson 02."""

from cypresskit.editing.steps import book_text

GIVEN = book_text("02")
FETCH = "sample_resource(1)_sampler(1)_aoffimmi(1,0,0) r4, r0.yz00"
RIGHT_HALF = [FETCH, *(f"mad r{14 + i}, r2.{c}, r4, r{14 + i}" for i, c in enumerate("xyzw"))]
HERE = "    ; the right half: your lines go below this one\n"
KERNEL = GIVEN.replace(HERE, "".join(f"    {line}\n" for line in RIGHT_HALF))
