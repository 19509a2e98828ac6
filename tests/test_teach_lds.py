"""The checks of lesson 07: they accept what is right, reject what is wrong, and say where to look."""

import pytest
from conftest import ROOT

from cypresskit.teach.book import read, student
from cypresskit.teach.lds import check_bank_clocks, check_place, check_transpose, clocks_of_turn


@pytest.mark.parametrize(
    ("name", "texture", "lds"),
    [
        ("sgemm_64x64", 8 * 16 + 8 * 32, 0),
        ("sgemm_64x64_lds", 64 + 8 * 32, 4 * (4 + 8 + 8)),
        ("sgemm_64x64_lds_rows", 64 + 8 * 32, 16 + 8 * 16),
        ("sgemm_64x64_lds_padded", 64 + 8 * 32, 8 + 8 * 8),
        ("sgemm_64x64_lds_worst", 64 + 8 * 32, 4 * (64 + 8 * 8)),
    ],
)
def test_clocks_of_a_turn(name, texture, lds):
    clocks = clocks_of_turn(name)
    assert (clocks["texture"], clocks["LDS"]) == (texture, lds)
    assert clocks["ALU"] % 4 == 0 and 200 < clocks["ALU"] < 300


# -- exercise 1


def by_bank(words):
    return max(len({w for w in words if w % 32 == bank}) for bank in range(32))


def sorting(words):
    banks = [word % 32 for word in set(words)]
    return max(banks.count(bank) for bank in banks)


@pytest.mark.parametrize("clocks", [by_bank, sorting])
def test_conflicts_counted_right_are_accepted(clocks):
    assert check_bank_clocks(clocks).right


@pytest.mark.parametrize(
    ("clocks", "said"),
    [
        (lambda words: 0, "gives 0; it should be 1"),
        (lambda words: max([w % 32 for w in words].count(b) for b in range(32)), "served at once"),
        (lambda words: len({w % 32 for w in words}), "don't count the banks"),
        (lambda words: len(set(words)), "don't count all the words"),
        (lambda words: 1 + len(set(words)) - len({w % 32 for w in words}), "not the sum"),
        (lambda words: max(len({w for w in words if w % 16 == b}) for b in range(16)), "the chip has 32 banks"),
        (lambda words: max(len({w for w in words if w // 32 == b}) for b in range(512)), "// 32 is its row"),
        (lambda words: max(len({w for w in words if w // 4 % 32 == b}) for b in range(32)), "not bytes"),
        (lambda words: by_bank(words) - 1, "the first one takes a clock as well"),
        (lambda words: 1, "use its arguments"),
        (lambda words: words.sort(), "returns nothing"),
        (lambda words: words[16], "IndexError"),
        (None, "not a function"),
    ],
    ids="unsolved no_broadcast banks words sum sixteen rows bytes one_less always_one none raises no_function".split(),
)
def test_wrong_counts_are_rejected(clocks, said):
    verdict = check_bank_clocks(clocks)
    assert not verdict.right and verdict.hint and said in str(verdict)


# -- exercise 2


@pytest.mark.parametrize("place", [lambda row: 4 * row + 2 * (row // 8), lambda row: row // 8 * 34 + row % 8 * 4])
def test_layouts_without_conflicts_are_accepted(place):
    verdict = check_place(place)
    assert verdict.right and "8 clocks and the eight loads 64" in verdict.finding


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (lambda row: 4 * row, "In which banks do rows r and r + 8 begin?"),
        (lambda row: 4 * row + 4 * (row // 8), "the loads are fine"),
        (lambda row: 4 * row + row // 8, "Storing takes"),
        (lambda row: 8 * row, "The tile takes words 0 to 507"),
        (lambda row: row, "Rows 0 and 1 overlap"),
        (lambda row: 4 * (row % 8), "Rows 0 and 8 overlap"),
        (lambda row: 4 * row - 8, "The tile takes words -8"),
        (lambda row: 4.25 * row, "parts of a word"),
        (lambda row: 4 * row + 2 * (row // 4), "the loads are fine"),
        (lambda row: None, "TypeError"),
        (lambda row: "34", "TypeError"),
        (34, "TypeError"),
    ],
)
def test_other_layouts_are_rejected(place, said):
    verdict = check_place(place)
    assert not verdict.right and verdict.hint and said in str(verdict)


# -- exercise 3

PLACE = "; your lines go below this one"


def kernel(*lines: str) -> str:
    source = student(read(ROOT / "notebooks/source/07_lds_transpose.md"))
    text = next(c.source.split("'''")[1] for c in source.cells if c.source.startswith("transposing = '''"))
    assert PLACE in text
    return text.replace(PLACE, "\n".join(lines))


def lines(pitch: str, fence: str = "fence_threads_lds") -> list[str]:
    store = [f"umad r1.z, r1.y, {pitch}, r1.x", "ishl r1.z, r1.z, l0.z", "lds_store_id(0) r1.z, r3.x"]
    return [*store, fence, f"umad r1.w, r1.x, {pitch}, r1.y", "ishl r1.w, r1.w, l0.z", "lds_load_id(0) r4.x, r1.w"]


@pytest.mark.parametrize("pitch", ["l2.y", "l2.w"], ids=["10 words", "12 words"])
def test_right_transposes_are_accepted(pitch):
    verdict = check_transpose(kernel(*lines(pitch)))
    assert verdict.right and "in 8 clocks" in verdict.finding


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ([], "nothing arrives in r4.x"),
        (["mov r4.x, r3.x"], "nothing was exchanged"),
        (["itof r2.xy, r1.yx", "sample_resource(0)_sampler(0) r4, r2.xy00"], "the LDS was busy for 0 clocks"),
        ([*lines("l2.y")[:3], "if_logicalnz r1.x", "fence_threads_lds", "endif", *lines("l2.y")[4:]], "does not run"),
        (lines("l0.w"), "take 12 clocks"),
        (lines("l2.x"), "clocks of the LDS; 8 are possible"),
        (lines("l2.y", fence=""), "right, by luck"),
        (lines("l0.x"), "is "),
        ([line for line in lines("l2.y") if "ishl" not in line], "bytes are four times words"),
        (lines("l2.y")[:3], "nothing arrives in r4.x"),
        ([*lines("l2.y"), "lds_laod_id(0) r4.x, r1.w"], "does not assemble"),
        (["ishl r1.z, r1.x, l0.w", *lines("l2.y")[2:]], "does not run"),
    ],
    ids=["unsolved", "copied", "fetched twice", "fence in an if", "pitch 8", "pitch 9", "no fence", "pitch 7",
         "words for bytes", "never loaded",
         "a slip of the pen", "outside"],
)  # fmt: skip
def test_wrong_transposes_are_rejected(text, said):
    verdict = check_transpose(kernel(*text))
    assert not verdict.right and verdict.hint and said in str(verdict)


def test_what_is_no_kernel_is_rejected():
    assert "NoneType, not text" in check_transpose(None).finding


def test_a_failing_run_looks_like_this():
    assert str(check_place(lambda row: 4 * row)) == (
        "Not yet. Storing takes 16 clocks and the eight loads 128; 8 and 64 are possible.\n"
        "Where to look: in a clock, 16 work-items load from two rows that lie 8 apart."
        " In which banks do rows r and r + 8 begin?"
    )
