"""The checks of lesson 04: they accept what is right, reject what is wrong, and say where to look."""

from dataclasses import replace

import pytest
from conftest import ROOT

import cypresskit as ck
from cypresskit.compiler import compile
from cypresskit.teach.book import read, student
from cypresskit.teach.registers import BUDGET, check_c_late, check_chip, check_needed

# -- exercise 1


def ceiling(compute, wait):
    return -(-(compute + wait) // compute)


def counted(compute, wait):
    wavefronts = 1
    while wavefronts * compute < compute + wait:
        wavefronts += 1
    return wavefronts


@pytest.mark.parametrize("needed", [ceiling, counted, lambda c, w: float(ceiling(c, w))])
def test_enough_wavefronts_are_accepted(needed):
    assert check_needed(needed).right


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (lambda compute, wait: 1, "gives 1; it should be 4"),
        (lambda compute, wait: (compute + wait) / compute, "no part of a wavefront"),
        (lambda compute, wait: (compute + wait) // compute, "round up, not down"),
        (lambda compute, wait: round((compute + wait) / compute), "not to the nearest"),
        (lambda compute, wait: -(-wait // compute), "itself computes too: a round is compute + wait clocks long."),
        (lambda compute, wait: wait / compute, "and round up to a whole number"),
        (lambda compute, wait: wait // compute, "and round up, not down"),
        (lambda compute, wait: wait // compute + 2, "fills wait exactly this is one too many"),
        (lambda compute, wait: ceiling(compute, wait) + 1, "would do"),
        (lambda compute, wait: compute + wait, "how many fill that time"),
        (lambda compute, wait: float("inf"), "gives inf"),
        (lambda compute, wait: float("nan"), "gives nan"),
        (lambda compute, wait: "4", "the text '4'"),
        (lambda compute, wait: None, "returns nothing"),
        (lambda compute: 4, "TypeError"),
        (4, "not a function"),
    ],
)
def test_wrong_numbers_of_wavefronts_are_rejected(needed, said):
    verdict = check_needed(needed)
    assert not verdict.right and verdict.hint and said in str(verdict)


# -- exercise 2


def given() -> str:
    """The kernel as a student finds it."""
    source = student(read(ROOT / "notebooks/source/04_registers_and_wavefronts.md"))
    return next(c.source.split("'''")[1] for c in source.cells if c.source.startswith("with_c = '''"))


def kernel(early: list[str], late: list[str]) -> str:
    text = given().replace("; place 1: before the loop", "\n".join(early))
    return text.replace("; place 2: after the loop", "\n".join(late))


STEP = "iadd r1.z, r1.z, cb0[0].w"
READS = ["mov r1.z, r0.w", "mov r4, g[r1.z]", STEP, "mov r5, g[r1.z]", STEP, "mov r6, g[r1.z]", STEP, "mov r7, g[r1.z]"]
ADDS = [f"mad r{10 + i}, r{4 + i}, cb0[0].y, r{10 + i}" for i in range(4)]


@pytest.mark.parametrize(
    "late",
    [
        READS + ADDS,
        ["if_logicalnz cb0[4].y", "endif", *READS, *ADDS[::-1]],
        [*READS, *(a.replace("mad", "fma") for a in ADDS)],
    ],
    ids=["all read, then added", "in another order", "with fma"],
)
def test_c_read_late_is_accepted(late):
    verdict = check_c_late(kernel([], late))
    assert verdict.right, verdict


def test_the_budget_lies_between_late_and_early():
    late, early = (compile(ck.assemble(kernel(*lines))).gprs for lines in (([], READS + ADDS), (READS, ADDS)))
    assert late <= BUDGET < early


@pytest.mark.parametrize(
    ("early", "late", "said"),
    [
        ([], [], "the old C was not added to r10"),
        (READS, ADDS, f"registers; {BUDGET} are enough"),
        ([], READS + ADDS[:3], "row 3 of every block"),
        ([], [*READS, *(a.replace("cb0[0].y", "cb0[0].x") for a in ADDS)], "without its beta"),
        ([], [*READS, *(a[: a.rindex(",")].replace("mad", "mul") for a in ADDS)], "`mul` puts beta times C"),
        ([], [*READS, *(f"mad r{10 + i}, r{10 + i}, cb0[0].y, r{4 + i}" for i in range(4))], "beta multiplies C, not"),
        ([], ["mov r4, g[r0.w]", "mad r10, r4, cb0[0].y, r10", STEP.replace("r1.z", "r0.w")], "step on with a copy"),
        ([], [r for r in READS if r != STEP] + ADDS, "row 1 got another row"),
        ([], [*READS, *(a.replace("mad", "mda") for a in ADDS)], "does not assemble"),
        ([], [*READS, *ADDS, "mov r1.z, l0.w", "mov g[r1.z+99999], r10"], "does not run"),
    ],
    ids=[
        "unsolved",
        "early",
        "a row forgotten",
        "alpha for beta",
        "mul",
        "beta times the block",
        "r0.w stepped on",
        "always row 0",
        "a slip of the pen",
        "outside",
    ],
)
def test_wrong_or_greedy_kernels_are_rejected(early, late, said):
    verdict = check_c_late(kernel(early, late))
    assert not verdict.right and verdict.hint and said in str(verdict)


def test_c_added_in_every_turn_and_rows_that_are_not_stored_are_told_apart():
    inside = kernel(READS, []).replace("endloop", "\n".join([*ADDS, "endloop"]))
    assert "in every turn of the loop" in check_c_late(inside).hint
    unstored = kernel([], READS + ADDS).replace("mov g[r0.w], r13", "")
    assert check_c_late(unstored).hint.startswith("row 3 of C stays as it was")


def test_a_block_that_begins_as_beta_times_c_is_accepted():
    first = [line for i in range(4) for line in ("mov r4, g[r1.z]", f"mul r{10 + i}, r4, cb0[0].y", STEP)]
    assert check_c_late(kernel(["mov r1.z, r0.w", *first], [])).right


def test_what_is_no_kernel_is_rejected():
    assert "int, not text" in check_c_late(3).finding


# -- exercise 3


@pytest.mark.parametrize("name", ["HD 5870", "my chip"])
def test_just_enough_registers_are_accepted(name):
    assert check_chip(replace(ck.HD5870, name=name, register_pool=370)).right


@pytest.mark.parametrize(
    ("chip", "said"),
    [
        (ck.HD5870, "6 wavefronts of sgemm_tn_37 fit"),
        (replace(ck.HD5870, register_pool=369), "9 wavefronts"),
        (replace(ck.HD5870, register_pool=371), "fewer registers would do"),
        (replace(ck.HD5870, register_pool=407), "11 wavefronts"),
        (replace(ck.HD5870, register_pool=370, l1_bytes=0), "Something else"),
        (replace(ck.HD5870, register_pool=20), "does not fit"),
        (370, "my_chip is a int"),
        (None, "my_chip is a NoneType"),
    ],
)
def test_other_chips_are_rejected(chip, said):
    verdict = check_chip(chip)
    assert not verdict.right and verdict.hint and said in verdict.finding


def test_a_failing_run_looks_like_this():
    assert str(check_chip(ck.HD5870)) == (
        "Not yet. With 256 registers, 6 wavefronts of sgemm_tn_37 fit; sgemm_tn has 10.\n"
        "Where to look: a wavefront of this kernel takes 37 registers of the pool."
    )
