"""Lesson 13."""

from cypresskit.today import record


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
