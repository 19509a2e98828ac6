"""Beside a published speed stands one modeled value: what its author timed.

No output, picture or document has a published speed and, for that kernel and N, the speed of the
chip alone.
"""

import re
from dataclasses import replace
from functools import cache

import nbformat
import pytest
from conftest import ROOT

import cypresskit as ck
from cypresskit import published
from cypresskit.devices import CHIP_ALONE
from cypresskit.draw.published_charts import CHARTS
from cypresskit.draw.stored_curves import stored_speeds
from cypresskit.gains import FIGURES, Timed

SPEEDS = {
    row["gflops_max"]: name for name, row in published.kernels().items() if "gflops_max" in row
}
MANY = 20  # numbers of a line that is a curve's
CLOSE = 0.005  # the shares by which two speeds may differ and be one
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


# -- the texts


@cache
def alone(name: str) -> float:
    """The speed of the chip alone at the N of a kernel's published speed."""
    launch = Timed(name, published.size_of(name))
    return FIGURES[launch].gflops if launch in FIGURES else ck.simulate(*launch).gflops


def numbers(text: str) -> set[float]:
    """The numbers in a text."""
    found = re.findall(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|[.,]\d)", text)
    return {float(number.replace(",", "")) for number in found}


def text_faults(text: str) -> list[str]:
    """Return the kernels whose published speed stands beside the chip alone's. A curve has so many
    speeds that one of them is anything: lines of many numbers are left out.
    """
    if CHIP_ALONE.name in text:
        return []
    lines = [line for line in text.splitlines() if len(numbers(line)) < MANY]
    there, found = numbers("\n".join(lines)), []
    for speed, name in SPEEDS.items():
        if name not in ck.kernels or speed not in there or speed < 100:
            continue
        value, right = alone(name), stored_speeds(name)[published.size_of(name)]
        written = {round(value, places) for places in (0, 1, 2)}
        if abs(value / right - 1) > CLOSE and written & there:
            found.append(name)
    return found


def test_no_document_has_the_chips_speed_beside_a_published_one():
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("notebooks/source/*.md")]
    found = []
    for path in paths:
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            found += [(path.name, name, paragraph) for name in text_faults(paragraph)]
    assert found == []


def test_no_output_has_the_chips_speed_beside_a_published_one():
    found = []
    for path in sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", ()):
                data = output.get("data", {})
                text = "\n".join([output.get("text", ""), data.get("text/plain", "")])
                found += [(path.name, name) for name in text_faults(text)]
    assert found == []


def test_no_picture_has_the_chips_speed_beside_a_published_one():
    pictures = [ck.draw.climb(), *map(ck.draw.published, CHARTS)]
    assert [picture.title for picture in pictures if text_faults(repr(picture))] == []


def test_a_planted_text_is_found():
    for name in ("sgemm_tn", "dgemm_tn"):
        speed = published.kernel(name)["gflops_max"]
        assert text_faults(f"| {name} | {speed:,} | {alone(name):,.0f} |") == [name]
        right = stored_speeds(name)[published.size_of(name)]
        assert text_faults(f"It reached {speed}, and the model gives {right:.0f}.") == []


# -- the one value


def test_the_value_is_timed_as_its_author_did():
    report = ck.simulate_published("dgemm_tn", 512)
    assert report == ck.simulate("dgemm_tn", 512, beta=1, system=ck.NAKASATO)
    packed = ck.simulate_published("sgemm_packed4", count=4)
    assert packed == ck.simulate("sgemm_packed", 512, count=4, system=ck.ASHRAF)
    with pytest.raises(ValueError, match="without an N"):
        ck.simulate_published("sgemm_tn_37")


@pytest.mark.parametrize("name", [n for n in SPEEDS.values() if n in ck.kernels])
def test_pictures_have_the_value_that_cells_print(name):
    stored = stored_speeds(name)[published.size_of(name)]
    assert ck.simulate_published(name).gflops == pytest.approx(stored, rel=5e-4)


# -- what the README claims


def left_out() -> dict[str, list[str]]:
    """The rows of docs/model.md's table of fits that leave a top speed out, by kernel."""
    text = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    table = text.split("<!-- leave one out -->")[1].split("<!-- end of leave one out -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    return {name: row for name, *row in rows}


def test_the_readme_says_what_comes_out_without_an_input():
    said = re.search(r"within 5 %: ([\d,]+) Gflop/s for the record's ([\d,]+)", README)
    *_, speed, predicted, _, _, _ = left_out()["sgemm_tn"]
    assert said and said.groups() == (f"{int(predicted):,}", f"{int(speed):,}")
    assert all(abs(float(row[4]) - 1) < 0.05 for row in left_out().values())


@pytest.mark.nightly
@pytest.mark.parametrize("name", left_out())
def test_what_comes_out_is_what_the_model_gives_with_these_rates(name):
    overhead, memory, _, predicted, *_ = map(float, left_out()[name])
    board = replace(ck.HD5870, clause_overhead_clocks=int(overhead), dram_clocks=int(memory))
    assert ck.simulate_published(name, device=board).gflops == pytest.approx(predicted, rel=1e-3)


def test_ashrafs_launch_is_between_what_his_two_speeds_need():
    """What a launch of packed products would have to cost, in microseconds."""
    row = published.kernel("sgemm_packed4")
    needed = []
    for count, gflops in zip((4, 1), reversed(row["gflops_range"])):
        chip = ck.simulate("sgemm_packed", row["n"], count=count)
        needed.append(round(1e6 * (chip.flops / gflops / 1e9 - chip.seconds)))
    least, most = needed
    assert least < ck.ASHRAF.launch_overhead_us < most
    assert f"need {least} to {most}" in ck.ASHRAF.fitted_to
    measured = (ROOT / "docs/measured.md").read_text(encoding="utf-8")
    assert f"between {least}, which his" in measured and f"and {most}, which his" in measured
