"""Lesson 13."""

from answers import number
from cypresskit.teach.l13_what_is_left import check_gained, check_smallest, check_warps
from cypresskit.today import figures, record


def warps(registers, threads, shared):
    groups = min(65536 // (registers * threads), 233472 // (shared + 1024), 2048 // threads)
    return groups * threads / 32


def gained(experiment, before, after):
    rows = {row["case"]: row for row in record()["rows"] if row["experiment"] == experiment}
    ratio = rows[after]["value"] / rows[before]["value"]
    return 1 / ratio if rows[after]["unit"] == "ns" else ratio


def any_row(experiment, before, after):
    value = {row["case"]: row["value"] for row in record()["rows"]}
    return value[after] / value[before]


CHECKS = {
    check_warps: number(
        [
            warps,
            lambda r, t, s: (
                [n for n in range(65) if n * t <= 2048 and n * r * t <= 65536 and n * (s + 1024) <= 233472][-1]
                * t
                // 32
            ),
        ],
        [
            (lambda r, t, s: min(65536 // (32 * r), 233472 // (s + 1024) * t // 32, 64), "come whole"),
            (lambda r, t, s: min(65536 // (r * t), 233472 // max(s, 1), 2048 // t) * t // 32, "1,024 bytes more"),
            (lambda r, t, s: warps(r, t, s) * 32 / t, "these are workgroups"),
            (lambda r, t, s: min(65536 // (r * t), 2048 // t) * t // 32, "shared memory is limited"),
            (lambda r, t, s: min(65536 // (r * t), 233472 // (s + 1024)) * t // 32, "2,048 threads"),
            (lambda r, t, s: 65536 // (32 * r), "how many whole workgroups"),
            (lambda r, t, s: 20, "as if it did not use its arguments"),
            (lambda r, t, s: 65536 // (r * t * s), "ZeroDivisionError"),
        ],
    ),
    check_smallest: number(
        [lambda f, w, s: f * s / w, lambda f, w, s: s / (w / f)],
        [
            (lambda f, w, s: f / w, "bytes, not numbers"),
            (lambda f, w, s: w / (f * s), "upside down"),
            (lambda f, w, s: f * s / (2 * w), "a column *and* a row"),
            (lambda f, w, s: 2 * f * s / w, "two operations"),
            (lambda f, w, s: (f * s / w) ** 0.5, "how many clocks"),
            (lambda f, w, s: 8, "2 of 4 calls are right"),
        ],
    ),
    check_gained: number(
        [gained],
        [
            (any_row, "several experiments"),
            (lambda e, b, a: figures(e)[a] / figures(e)[b], "less is better"),
            (lambda e, b, a: 1 / gained(e, b, a), "upside down"),
            (lambda e, b, a: gained(e, b, a) - 1, "how many times"),
            (lambda e, b, a: max(figures(e).values()) / min(figures(e).values()), "mind the unit"),
            (lambda e, b, a: figures(e)[a + " "], "KeyError"),
        ],
    ),
}
