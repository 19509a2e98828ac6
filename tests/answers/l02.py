"""Lesson 02."""

import re

from answers import given, number, text
from cypresskit.teach.l02_why_blocks import check_ceiling, check_four_by_eight, check_words

KERNEL = given("02_why_blocks", "four_by_eight", solution=True)
FETCH = "sample_resource(1)_sampler(1)_aoffimmi(1,0,0) r4, r0.yz00"

CHECKS = {
    check_words: number(
        [lambda r, c: 0.5 / r + 0.5 / c],
        [
            (lambda r, c: 0, "how many numbers of A"),
            (lambda r, c: (r + c) / (r * c), "two operations"),
            (lambda r, c: 1 / r, "square blocks"),
            (lambda r, c: 1 / c, "only the columns"),
            (lambda r, c: 2 * r * c / (r + c), "words per flop"),
            (lambda r, c: 2 * (r + c) / (r * c), "not bytes"),
        ],
    ),
    check_ceiling: number(
        [lambda b, peak, rate, size: min(peak, rate / size * b)],
        [
            (lambda b, p, r, s: p, "the roof alone"),
            (lambda b, p, r, s: r * b / s, "no more than the peak"),
            (lambda b, p, r, s: min(p, r * b), "a word has several"),
            (lambda b, p, r, s: min(p, r / b / s), "fewer words"),
            (lambda b, p, r, s: max(p, r * b / s), "the smaller"),
            (lambda b, p, r, s: min(p, 2 * r * b / s), "count as two"),
            (lambda b, p, r, s: min(p, r * b / 4), "B = F S / b"),
            (lambda b, p, r, s: [p], "the call was"),
        ],
    ),
    check_four_by_eight: text(
        [KERNEL, KERNEL.replace("r4", "r9"), KERNEL.replace("mad r15", "fma r15")],
        [
            (re.sub(before, after, KERNEL), said)
            for before, after, said in [
                (r"    mad r1[4567].*\n", "", "nothing is added to r14"),
                ("    mad r17.*\n", "", "r17"),
                ("_aoffimmi.1,0,0. r4", " r4", "every fetch of a block's columns of B is the first"),
                (re.escape(FETCH), FETCH + "\n    " + FETCH.replace("r4", "r5"), ("12 / 3", "fetched twice")),
                (re.escape(FETCH), "", "does a `sample_resource` put a texel there first?"),
                (r"r2.z, r4, r16", "r2.y, r4, r16", "r16"),
                (r"mad r17, r2.w, r4, r17", "mul r17, r2.w, r4", "r17"),
                (r"    add r0.z, r0.z, l0.y\n", "", "break condition"),
                (r"mov g\[r1.x\+1\], r17", "mov g[r1.x+100000], r17", ""),
                ("mad r14", "mda r14", "caret"),
                ("dcl_resource_id.1.*\n", "", ""),
            ]
        ]
        + [("il_cs_2_0\nend\n", "")],
    ),
}
