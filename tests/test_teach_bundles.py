"""Lesson 03: its tables and sums, and its checks, which reject what is wrong and say where to look."""

import re

import pytest
from conftest import ROOT

import cypresskit as ck
from cypresskit.compiler import compile, kernel_card
from cypresskit.compiler.ports import Ports, unit
from cypresskit.teach import book
from cypresskit.teach.bundles import PORTS, chains, check_fits, check_least, check_sum, loop, table, tiny, working


def test_the_table_shows_each_slot_and_what_is_handed_on():
    lines = table(tiny("add r5.x, r1.x, r1.y \n add r0, r5.x, r1.z")).splitlines()
    assert lines[0].split() == list("xyzwt")
    assert [line.split().count(".") for line in lines[1:]] == [4, 4]
    assert "ADD*" in lines[2] and "*" not in lines[1]
    assert "RECIP" in table(tiny("rcp r0, r1.x")).splitlines()[1][49:], "t is the last column"


def test_the_loop_is_the_cards():
    kernel = ck.kernels["sgemm_tn"]
    code = compile(kernel.program)
    assert len(loop(code)) == kernel_card(kernel, code).loop_bundles


def test_more_chains_take_fewer_bundles_down_to_a_bound():
    counts = [len(working(chains(n))) for n in (1, 2, 4, 8, 16)]
    assert counts[:2] == [31, 16] and counts[2] <= 10 and min(counts) >= 7


# -- exercise 1


def least(plain, scalar, doubles):
    return max(-(-(plain + scalar + 4 * doubles) // 5), scalar, doubles)


def test_the_bound_is_accepted_and_is_the_compilers():
    assert check_least(least).right
    code = compile(ck.kernels["sgemm_tn"].program)
    operations = [o for bundle in loop(code) for o in bundle.operations]
    assert all(o.row.slots == "any" for o in operations)
    assert least(len(operations), 0, 0) == code.card().bundles_bound


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda p, s, d: 0, "three things"),
        (lambda p, s, d: max((p + s + 4 * d) / 5, s, d), "no part of a bundle"),
        (lambda p, s, d: max((p + s + 4 * d) // 5, s, d), "not down"),
        (lambda p, s, d: max(-(-(p + s + 4 * d) // 5), d), "each scalar operation"),
        (lambda p, s, d: max(-(-(p + s + 4 * d) // 5), s), "no two double"),
        (lambda p, s, d: max(-(-(p + s + d) // 5), s, d), "four slots"),
        (lambda p, s, d: -(-p // 5) + s + d, "slots are shared"),
        (lambda p, s, d: max(-(-(p + s + 4 * d) // 5), s + d), "leaves t free"),
        (lambda p, s, d: (p + s + 4 * d) // 5 + 1, "three things"),
        (lambda p, s: p, "the call was"),
        (lambda p, s, d: p.bundles, "the call was"),
        (None, "keep the line"),
    ],
)
def test_other_bounds_are_rejected(wrong, said):
    verdict = check_least(wrong)
    assert not verdict.right and said in verdict.hint


# -- exercise 2


def fits(reads):
    return all(len({r for r, c in reads if c == channel}) <= 3 for channel in "xyzw")


def test_the_right_rule_is_accepted():
    assert check_fits(fits).right


@pytest.mark.parametrize(("what", "reads", "want"), PORTS, ids=[what for what, *_ in PORTS])
def test_the_compiler_judges_the_examples_alike(what, reads, want):
    """Operands in turns of three to a slot, in the order in which they are listed, or sorted so that they fit."""
    for words in (reads, sorted(reads)):
        units = [unit([("xyzw".index(c), r) for r, c in words[n : n + 3]], False) for n in range(0, len(words), 3)]
        if Ports().fit(units) == want:
            return
    raise AssertionError(f"the compiler says {not want}")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda reads: True, "of channel x"),
        (lambda reads: False, "of channel x"),
        (lambda reads: len(reads) <= 12, "of channel x"),
        (lambda reads: len(set(reads)) <= 4, "of channel"),
        (lambda reads: all(sum(c == x for _, c in reads) <= 3 for x in "xyzw"), "of channel y"),
        (lambda reads: len({r for r, _ in reads}) <= 3, "of channel"),
        (lambda reads: all(len({r for r, c in reads if c == x}) <= 4 for x in "xyzw"), "4 of channel x"),
        (lambda reads: None, "True or False"),
        (lambda reads: reads[0][2], "it was called with"),
        (None, "it was called with"),
    ],
)
def test_other_rules_are_rejected(wrong, said):
    verdict = check_fits(wrong)
    assert not verdict.right and said in verdict.hint


# -- exercise 3


@pytest.fixture(scope="module")
def kernel() -> str:
    """The unsolved kernel, from the lesson."""
    cells = book.student(book.read(ROOT / "notebooks" / "source" / "03_bundles.md")).cells
    return re.search(r"sum_of_16 = '''(.*?)'''", "\n".join(cell.source for cell in cells), re.S)[1]


PAIRS = "add r5, r1, r2 \n add r6, r3, r4 \n add r5, r5, r6 \n"
LAST = "add r5.xy, r5.xy, r5.zw \n add r0.x, r5.x, r5.y"
ONE_BY_ONE = "\n".join(f"add r0.x, r0.x, r{n // 4 + 1}.{'xyzw'[n % 4]}" for n in range(16))


def answered(kernel: str, lines: str) -> str:
    return kernel.replace("; your lines go below this one", lines)


@pytest.mark.parametrize("lines", [PAIRS + LAST, PAIRS.replace("r5", "r8") + LAST.replace("r5", "r8")])
def test_short_sums_are_accepted(kernel, lines):
    assert check_sum(answered(kernel, lines)).right


@pytest.mark.parametrize(
    ("lines", "said", "hint"),
    [
        ("", "0 in place of", "r0.x is left as it was"),
        (PAIRS + LAST.replace("r0.x", "r0.y"), "0 in place of", "r0.x is left as it was"),
        (PAIRS + "add r0.x, r5.x, r5.y", "", "but not z and w"),
        (ONE_BY_ONE, "and takes 1", "which could be done at once"),
        (PAIRS + "add r5.x, r5.x, r5.y \n add r5.x, r5.x, r5.z \n add r0.x, r5.x, r5.w", "takes 6 bundles", "at once"),
        (PAIRS + "mov r0.x, r5.x", "", "not their four numbers"),
        ("add r5.xy, r1.xy, r1.zw \n add r0.x, r5.x, r5.y", "", "only one of the four texels"),
        ("add r5, r1, r2 \n add r5, r5, r3 \n" + LAST, "", "the last texel is left out"),
        (PAIRS.replace("r4", "r3") + LAST, "is the first wrong element", ""),
        (PAIRS + LAST.replace("r0.x", "r0.q"), "does not assemble", "caret"),
        ("add r5, r7, r8 \n" + LAST, "", ""),
    ],
)
def test_other_sums_are_rejected(kernel, lines, said, hint):
    verdict = check_sum(answered(kernel, lines))
    assert not verdict.right and said in verdict.finding and hint in verdict.hint and verdict.hint


@pytest.mark.parametrize("text", ["", "hello", None, 16])
def test_what_is_no_kernel_is_rejected(text):
    assert not check_sum(text).right
