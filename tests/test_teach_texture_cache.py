"""The checks of lesson 05: they accept what is right, reject what is wrong, and say where to look."""

import pytest
from conftest import ROOT

from cypresskit.teach.book import read, student
from cypresskit.teach.texture_cache import check_ceiling, check_lines, check_numbering

# -- exercise 1


def loop(texels, width):
    touched = []
    for x, y in texels:
        if (y * width + x) // 4 not in touched:
            touched.append((y * width + x) // 4)
    return len(touched)


@pytest.mark.parametrize("lines", [loop, lambda texels, width: len({(16 * (y * width + x)) >> 6 for x, y in texels})])
def test_lines_counted_right_are_accepted(lines):
    assert check_lines(lines).right


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (lambda texels, width: 0, "gives 0"),
        (lambda texels, width: len(set(texels)), "four neighbours in a row share a line"),
        (lambda texels, width: len({x // 4 for x, y in texels}), "the row counts too"),
        (lambda texels, width: len({(x // 4, y) for x, y in texels}), "a line may end in the next row"),
        (lambda texels, width: len({y for x, y in texels}), "a row has many lines"),
        (lambda texels, width: len({y * width + x for x, y in texels}), "share a line"),
        (lambda texels, width: len({(x * width + y) // 4 for x, y in texels}), "row y begins at texel y * width"),
        (lambda texels, width: len({(y * width + x) // 16 for x, y in texels}), "room for four texels, not 16"),
        (lambda texels, width: len({(y * width + x) // 64 for x, y in texels}), "divide by four"),
        (lambda texels, width: len({(y * 64 + x) // 4 for x, y in texels}), "a line may end in the next row"),
        (lambda texels, width: len([(y * width + x) // 4 for x, y in texels]), "a set keeps each line once"),
        (lambda texels, width: {(y * width + x) // 4 for x, y in texels}, "TypeError"),
        (lambda texels, width: texels.clear() or 1, "use its arguments"),
        (lambda texels, width: None, "returns nothing"),
        (lambda texels, width: [][0], "IndexError"),
        (lambda texels: 1, "TypeError"),
        ("two", "not a function"),
    ],
)
def test_wrong_counts_are_rejected(lines, said):
    verdict = check_lines(lines)
    assert not verdict.right and verdict.hint and said in str(verdict)


# -- exercise 2

PLACE = "; another column and row: your lines go below this one"
SQUARES = """iand r1.x, vTidInGrpFlat.x, l0.x
ushr r2.x, vTidInGrpFlat.x, l0.x
iand r2.y, r2.x, l0.w
ior r1.x, r1.x, r2.y
iand r1.y, r2.x, l0.x
ushr r2.x, vTidInGrpFlat.x, l0.z
iand r2.y, r2.x, l0.w
ior r1.y, r1.y, r2.y"""


def kernel(lines: str = PLACE) -> str:
    source = student(read(ROOT / "notebooks/source/05_texture_cache.md"))
    text = next(c.source.split("'''")[1] for c in source.cells if c.source.startswith("numbering = '''"))
    assert PLACE in text
    return text.replace(PLACE, lines)


UPRIGHT = "mov r2.x, r1.x\nmov r1.x, r1.y\nmov r1.y, r2.x"  # column and row exchanged: quads stand upright


@pytest.mark.parametrize("lines", [SQUARES, f"{SQUARES}\n{UPRIGHT}"], ids=["as in the solution", "mirrored"])
def test_squares_are_accepted(lines):
    verdict = check_numbering(kernel(lines))
    assert verdict.right and "A costs 16 clocks of the texture unit and B 16" in verdict.finding


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (PLACE, "B 32. Sixteen are enough"),
        (UPRIGHT, "A costs 32"),
        ("mov r1.x, l1.w\nmov r1.y, l1.w", "63 of 64 elements of the tile are not right"),
        (SQUARES.replace("iand r2.y, r2.x, l0.w\nior r1.x", "iand r2.y, r2.x, l0.y\nior r1.x"), "not computed at all"),
        ("iand r1.x, vTidInGrpFlat, l9.x", "does not assemble"),
        ("ishl r1.y, r1.y, l0.y", "does not run"),
        ("whileloop\nendloop", "does not run"),
    ],
    ids=["unsolved", "upright", "all at one place", "a bit lost", "no such literal", "outside", "endless"],
)
def test_other_numberings_are_rejected(lines, said):
    verdict = check_numbering(kernel(lines))
    assert not verdict.right and verdict.hint and said in verdict.finding


def test_what_is_no_kernel_is_rejected():
    assert "NoneType, not text" in check_numbering(None).finding


# -- exercise 3

RATE = 64 * 20 * 0.85


@pytest.mark.parametrize(
    "ceiling",
    [
        lambda flops, bundles, clocks: flops * RATE / max(4 * bundles, clocks),
        lambda flops, bundles, clocks: min(flops * RATE / clocks, flops * 320 * 0.85 / bundles),
    ],
)
def test_right_ceilings_are_accepted(ceiling):
    verdict = check_ceiling(ceiling)
    assert verdict.right and "SGEMM TN 2176, DDGEMM 24, DGEMM TN 512, DGEMM NN 363" in verdict.finding


@pytest.mark.parametrize(
    ("ceiling", "said"),
    [
        (lambda flops, bundles, clocks: 0.0, "gives 0 Gflop/s; it should be 2176"),
        (lambda flops, bundles, clocks: flops * RATE / (4 * bundles + clocks), "at the same time"),
        (lambda flops, bundles, clocks: flops * RATE / min(4 * bundles, clocks), "not the faster one"),
        (lambda flops, bundles, clocks: flops * RATE / max(16 * bundles, clocks), "16 of 64 work-items"),
        (
            lambda flops, bundles, clocks: flops * RATE / max(4 * bundles, 16 * clocks),
            "all of a turn's fetches already",
        ),
        (lambda flops, bundles, clocks: 2 * flops * RATE / max(4 * bundles, clocks), "two flops already"),
        (lambda flops, bundles, clocks: max(4 * bundles, clocks) / (flops * RATE), "flops over time"),
        (lambda flops, bundles, clocks: flops * 64 * 20 / max(4 * bundles, clocks), "how many clocks has a second"),
        (lambda flops, bundles, clocks: flops * 64 * 20 * 850 / max(4 * bundles, clocks), "not 850"),
        (lambda flops, bundles, clocks: float("inf"), "gives inf"),
        (lambda flops, bundles, clocks: flops * RATE / max(bundles, clocks), "a bundle of a wavefront takes 4 clocks"),
        (lambda flops, bundles, clocks: flops * 17 / max(4 * bundles, clocks), "a wavefront has 64"),
        (lambda flops, bundles, clocks: flops * 54.4 / max(4 * bundles, clocks), "20 SIMD engines"),
        (lambda flops, bundles, clocks: flops * RATE / (4 * bundles), "the texture unit has to keep up"),
        (lambda flops, bundles, clocks: flops * RATE / clocks, "the arithmetic takes its time"),
        (lambda flops, bundles, clocks: 1e9 * flops * RATE / max(4 * bundles, clocks), "in Gflop/s"),
        (lambda flops, bundles, clocks: "fast", "ValueError"),
        (2176, "not a function"),
    ],
)
def test_wrong_ceilings_are_rejected(ceiling, said):
    verdict = check_ceiling(ceiling)
    assert not verdict.right and verdict.hint and said in str(verdict)


def test_a_failing_run_looks_like_this():
    assert str(check_numbering(kernel())) == (
        "Not yet. C is right; A costs 16 clocks of the texture unit and B 32. Sixteen are enough for each.\n"
        "Where to look: a quad is four numbers in a row, 4q to 4q + 3."
        " For a square, which bit of the number moves down a row?"
    )
