"""Lesson 02: what it counts and models, and its checks, which reject what is wrong and say where to look."""

import re

import pytest
from conftest import ROOT

import cypresskit as ck
from cypresskit.teach import book
from cypresskit.teach.why_blocks import check_ceiling, check_four_by_eight, check_words, counted, pace


@pytest.mark.parametrize(("name", "words"), [("sgemm_tn", 1 / 8), ("dgemm_tn_stream_2x8", 5 / 16), ("ddgemm_naive", 1)])
def test_kernels_fetch_what_the_formula_says(name, words):
    assert counted(name) == words


def test_the_best_block_is_neither_the_smallest_nor_the_largest():
    speeds = {size: pace(size, n=768, k=96).gflops for size in (1, 4, 8, 16)}
    assert max(speeds, key=speeds.get) == 8
    assert pace(1, n=192, k=96).bound in ("texture", "latency", "tail")


def test_a_chip_with_more_registers_likes_large_blocks_better():
    from dataclasses import replace

    chip = replace(ck.HD5870, register_pool=1024)
    assert pace(16, device=chip).gflops > 1.5 * pace(16).gflops


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (lambda r, c: 0, "how many numbers of A"),
        (lambda r, c: (r + c) / (r * c), "two operations"),
        (lambda r, c: 1 / r, "square blocks"),
        (lambda r, c: 1 / c, "only the columns"),
        (lambda r, c: 2 * r * c / (r + c), "words per flop"),
        (lambda r, c: 2 * (r + c) / (r * c), "not bytes"),
        (lambda r, c: 1 / 0, "the call was"),
        (lambda b: 1 / b, "the call was"),
        ("1/b", "keep the line"),
    ],
)
def test_other_words_are_rejected(words, said):
    verdict = check_words(words)
    assert not verdict.right and said in verdict.hint


def test_right_formulas_are_accepted():
    assert check_words(lambda r, c: 0.5 / r + 0.5 / c).right
    assert check_ceiling(lambda b, peak, rate, size: min(peak, rate / size * b)).right


@pytest.mark.parametrize(
    ("ceiling", "said"),
    [
        (lambda b, p, r, s: p, "the roof alone"),
        (lambda b, p, r, s: r * b / s, "no more than the peak"),
        (lambda b, p, r, s: min(p, r * b), "a word has several"),
        (lambda b, p, r, s: min(p, r / b / s), "fewer words"),
        (lambda b, p, r, s: max(p, r * b / s), "the smaller"),
        (lambda b, p, r, s: min(p, 2 * r * b / s), "count as two"),
        (lambda b, p, r, s: min(p, r * b / 4), "B = F S / b"),
        (lambda b, p, r, s: [p], "the call was"),
        (None, "keep the line"),
    ],
)
def test_other_ceilings_are_rejected(ceiling, said):
    verdict = check_ceiling(ceiling)
    assert not verdict.right and said in verdict.hint


# -- exercise 3


@pytest.fixture(scope="module")
def kernel() -> str:
    """The solved kernel, from the lesson."""
    cells = book.solved(book.read(ROOT / "notebooks" / "source" / "02_why_blocks.md")).cells
    return re.search(r"four_by_eight = '''(.*?)'''", "\n".join(cell.source for cell in cells), re.S)[1]


FETCH = "sample_resource(1)_sampler(1)_aoffimmi(1,0,0) r4, r0.yz00"


def test_right_kernels_are_accepted(kernel):
    assert check_four_by_eight(kernel).right
    assert check_four_by_eight(kernel.replace("r4", "r9")).right
    assert check_four_by_eight(kernel.replace("mad r15", "fma r15")).right


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (r"    mad r1[4567].*\n", "", "nothing is added to r14"),
        ("    mad r17.*\n", "", "r17"),
        ("_aoffimmi.1,0,0. r4", " r4", "every fetch of a block's columns of B is the first"),
        (FETCH.replace("(", r"\(").replace(")", r"\)"), FETCH + "\n    " + FETCH.replace("r4", "r5"), "fetched twice"),
        (r"r2.z, r4, r16", "r2.y, r4, r16", "r16"),
        (r"mad r17, r2.w, r4, r17", "mul r17, r2.w, r4", "r17"),
        (r"    add r0.z, r0.z, l0.y\n", "", "break condition"),
        (r"mov g\[r1.x\+1\], r17", "mov g[r1.x+100000], r17", ""),
        ("mad r14", "mda r14", "caret"),
        ("dcl_resource_id.1.*\n", "", ""),
    ],
)
def test_wrong_kernels_are_rejected(kernel, before, after, said):
    wrong = re.sub(before, after, kernel)
    assert wrong != kernel
    verdict = check_four_by_eight(wrong)
    assert not verdict.right and verdict.hint and said in verdict.hint


@pytest.mark.parametrize("text", ["", "il_cs_2_0\nend\n", None, 48])
def test_what_is_no_kernel_is_rejected(text):
    verdict = check_four_by_eight(text)
    assert not verdict.right and verdict.hint
