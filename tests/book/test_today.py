"""The record of a current GPU, and what lessons say of it."""

import re

from fact_values import load_clocks, near

from cypresskit.teach.l13_what_is_left import checks as lesson
from cypresskit.today import figures, record


def test_the_record_is_of_a_real_gpu_and_steady():
    gpu = record()
    assert re.fullmatch(r"NVIDIA \w+", gpu["device"]) and re.fullmatch(r"[\d.]+", gpu["driver"])
    assert {"cypresskit", "numba-cuda", "numba"} <= gpu["versions"].keys() and re.fullmatch(
        r"\d{4}-\d\d-\d\d", gpu["date"]
    )
    for row in gpu["rows"]:
        host = row["case"] in ("128", "pageable")  # what the host does is in it
        assert row["value"] > 0 and row["spread"] < (0.15 if host else 0.05), row
    assert len({(row["experiment"], row["case"]) for row in gpu["rows"]}) == len(gpu["rows"])


def test_loads_of_l1_cost_what_lesson_07_says():
    """The rule against every measured pattern: within 7 %, but where the measuring loop is the
    limit.
    """
    for words in (32, 8):
        for pitch, ns in figures(f"L1, {words} words").items():
            places = [int(pitch) * (thread * words // 32) for thread in range(32)]
            rule = load_clocks(places)
            assert near(ns * lesson.clock_ghz(), max(rule, 1.51), 0.07), (words, pitch)
