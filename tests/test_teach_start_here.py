"""The checks of lesson 00: they accept what is right, reject what is wrong, and say where to look."""

import numpy as np
import pytest

import cypresskit as ck
from cypresskit.teach.start_here import check_half, check_peak, check_update
from cypresskit.teach.verdict import unread


def test_the_peak_is_accepted():
    assert check_peak(lambda engines, processors, lanes, clock: 2 * engines * processors * lanes * clock).right


@pytest.mark.parametrize(
    ("peak", "said"),
    [
        (lambda e, p, u, g: 0, "multiply: engines"),
        (lambda e, p, u, g: e * p * u * g, "two operations"),
        (lambda e, p, u, g: 2 * e * p * g, "several lanes"),
        (lambda e, p, u, g: 2e9 * e * p * u * g, "10^9"),
        (lambda e, p, u, g: 2 * e * p * u, "how often a second"),
        (lambda e, p, u, g: 2720, "use its arguments"),
        (lambda e, p, u, g: int(2 * e * p * u * g), "3 of 4 calls"),
        (lambda e, p, u, g: None, "return"),
        (lambda e, p, u: 1, "the call was"),
        (lambda e, p, u, g: "many", "the call was"),
        (lambda e, p, u, g: str(2 * e * p * u * g), "the call was"),
        (lambda e, p, u, g: 2 * e * p * u * g / 1000, "multiply: engines"),
        (2720, "keep the line"),
    ],
)
def test_other_peaks_are_rejected(peak, said):
    verdict = check_peak(peak)
    assert not verdict.right and said in verdict.hint


@pytest.mark.parametrize(
    "update",
    [
        lambda c, a, b: ck.gemm(a, b, c, alpha=-1, beta=1),
        lambda c, a, b: ck.gemm(-a, b, c, beta=1.0, kernel="sgemm_nn"),
    ],
)
def test_updates_on_the_card_are_accepted(update):
    assert check_update(update).right


def in_place(c, a, b):
    c -= ck.gemm(a, b)
    return c


@pytest.mark.parametrize(
    ("update", "said"),
    [
        (lambda c, a, b: c, "nothing was subtracted"),
        (lambda c, a, b: c - a @ b, "one call of ck.gemm"),
        (lambda c, a, b: c - ck.gemm(a, b), "give ck.gemm the c"),
        (lambda c, a, b: ck.gemm(a, b, c, alpha=1, beta=1), "which alpha"),
        (lambda c, a, b: ck.gemm(a, b), "c is not read"),
        (lambda c, a, b: ck.gemm(a, b, c, alpha=-1), "c is not read"),
        (lambda c, a, b: ck.gemm(a, b, c, beta=-1), "alpha belongs to the product"),
        (lambda c, a, b: ck.gemm(a, b, c, alpha=-1, beta=2), "alpha belongs to the product"),
        (lambda c, a, b: ck.gemm(b, a, c, alpha=-1, beta=1), "it was called with c of"),
        (lambda c, a, b: ck.gemm(a, b, ck.gemm(a, b, c, alpha=-0.5, beta=1), alpha=-0.5, beta=1), "one call"),
        (lambda c, a, b: (c - ck.gemm(a, b))[:-1], "the shape of c"),
        (in_place, "return a new matrix"),
        (lambda c, a, b: None, "the shape of c"),
        (lambda c: c, "it was called with c of"),
        (None, "it was called with c of"),
    ],
)
def test_other_updates_are_rejected(update, said):
    verdict = check_update(update)
    assert not verdict.right and said in verdict.hint


def test_only_the_smallest_size_is_half_of_the_peak():
    right = [n for n in range(128, 1537, 128) if check_half(n).right]
    assert right and 512 < right[0] < 1024
    assert check_half(np.int64(right[0])).right


@pytest.mark.parametrize(
    ("half", "said"),
    [
        (128, "larger matrices"),
        (512, "larger matrices"),
        (4096, "go down"),
        (8192, "between 512 and 4096"),
        (700, "multiple"),
        (0, "multiple"),
        (-128, "multiple"),
        (768.0, "multiple"),
        (True, "multiple"),
        ("768", "multiple"),
        (None, "multiple"),
    ],
)
def test_other_sizes_are_rejected(half, said):
    verdict = check_half(half)
    assert not verdict.right and said in verdict.hint


# -- what a notebook shows of any verdict

CHECK, GOOD, BROKEN = (
    "ck.teach.start_here.check_peak(peak)",
    "def peak(e):\n    return e",
    "def peak(e):\n    return (e",
)


def test_a_cell_that_cannot_be_read_is_told_in_place_of_a_verdict_on_the_answer_of_before():
    told = unread(["", GOOD, CHECK, BROKEN, CHECK])
    assert told.startswith("Not yet. The cell of peak isn't Python") and "line 2" in told
    assert "half" in unread(["half = 128\nwhile half", "ck.teach.start_here.check_half(half)"])


@pytest.mark.parametrize(
    "cells", [[CHECK], ["", GOOD, CHECK], [BROKEN, GOOD, CHECK], [GOOD, "other = (", CHECK], [BROKEN, "v = 1", "v"]]
)
def test_cells_that_can_be_read_leave_the_verdict(cells):
    assert unread(cells) == ""


def test_a_notebook_shows_it(capsys):
    kind = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    shell = kind.instance()
    shell.user_ns["ck"], check = ck, "ck.teach.start_here.check_half(half)"
    try:
        for cell in ("half = 768", check, "half = (", check):
            shell.run_cell(cell, store_history=True)
    finally:
        kind.clear_instance()
    shown = capsys.readouterr().out
    assert shown.index("Right. N = 768") < shown.index("Not yet. The cell of half isn't Python")
