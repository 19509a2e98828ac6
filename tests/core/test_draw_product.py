"""A product's errors: each is that of an element, and a place is crossed out if it is wrong."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from charted import WIDTHS
from kernel_texts import altered
from sampling import from_rows

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.chart import WIDE

KERNELS = ["sgemm_tn", "sgemm_64x64_lds", "sgemm_nn", "sgemm_naive"]


def parts(chart, width):
    """The words of each mark, and its shapes."""
    groups = ElementTree.fromstring(chart.to_svg(width)).iter("{http://www.w3.org/2000/svg}g")
    return [
        (group.attrib["data-words"], [*group])
        for group in groups
        if group.attrib.get("class") == "point"
    ]


@pytest.mark.parametrize("name", KERNELS)
def test_a_correct_kernel_has_no_wrong_place(name):
    chart = draw.product(name, 64)
    off = r"All 4,096 elements of C equal numpy's within rounding: they are at most (\d+) units.*"
    assert 0 < int(re.fullmatch(off, chart.title)[1]) < 64
    assert ("same in each work-item" in chart.to_svg()) == (name != "sgemm_naive")  # one place
    rows, columns = ck.kernels[name].block
    places = [part for part in parts(chart, WIDE) if part[0].startswith("row ")]
    assert len(places) == rows * columns and not any("wrong" in words for words, _ in places)
    tones = {shapes[0].attrib["fill-opacity"] for _, shapes in places}
    assert len(tones) == 1  # noise is no pattern


@WIDTHS
@from_rows
def test_crossed_out_are_the_places_where_elements_are_wrong(name, old, new, width):
    """By an independent comparison; each at its row and column."""
    kernel, n = altered(name, old, new), 64
    chart = draw.product(kernel, n)
    a, b = np.random.default_rng(1).standard_normal((2, n, n)).astype(np.float32)
    wrong = ~np.isclose(ck.gemm(a, b, kernel=kernel), a.astype(float) @ b, rtol=0, atol=1e-3)
    rows, columns = kernel.block
    expected = {(int(i) % rows, int(j) % columns) for i, j in zip(*np.nonzero(wrong))}
    crossed, lefts, tops = set(), {}, {}
    for words, shapes in parts(chart, width):
        if place := re.match(r"row (\d+), column (\d+)", words):
            row, column = map(int, place.groups())
            lefts[row, column] = float(shapes[0].attrib["x"])
            tops[row, column] = float(shapes[0].attrib["y"])
            if any(shape.tag.endswith("path") for shape in shapes):
                crossed.add((row, column))
                assert "wrong" in words
    assert crossed == expected and expected
    assert len(lefts) == rows * columns
    side = lefts[0, 1] - lefts[0, 0]
    for row, column in lefts:
        assert lefts[row, column] == pytest.approx(lefts[0, 0] + side * column, abs=0.2)
        assert tops[row, column] == pytest.approx(tops[0, 0] + side * row, abs=0.2)
    assert f"{wrong.sum():,} of 4,096 elements of C are wrong" in chart.title
    assert f"all in {len(expected)} of {rows * columns} places" in chart.title
