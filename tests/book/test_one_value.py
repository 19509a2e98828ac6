"""Beside a published speed stands one modeled value: what its author timed."""

import re
from dataclasses import replace

import pytest
from repository import ROOT, marked_cells
from sampling import drawn_by_day

import cypresskit as ck
from cypresskit import published
from cypresskit.draw.stored_curves import stored_speeds

SPEEDS = {
    row["gflops_max"]: name for name, row in published.kernels().items() if "gflops_max" in row
}
README = " ".join((ROOT / "README.md").read_text().split())


def test_the_value_is_timed_as_its_author_did():
    report = ck.simulate_published("dgemm_tn", 512)
    assert report == ck.simulate("dgemm_tn", 512, beta=1, system=ck.NAKASATO)
    packed = ck.simulate_published("sgemm_packed4", count=4)
    assert packed == ck.simulate("sgemm_packed", 512, count=4, system=ck.ASHRAF)


@drawn_by_day("name", [n for n in SPEEDS.values() if n in ck.kernels], 2)
def test_pictures_have_the_value_that_cells_print(name):
    stored = stored_speeds(name)[published.size_of(name)]
    assert ck.simulate_published(name).gflops == pytest.approx(stored, rel=5e-4)


# -- what the README claims


def left_out():
    """The rows of docs/model.md's table of fits that leave a top speed out, by kernel."""
    return {name: row for name, *row in marked_cells("leave one out")}


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
    measured = (ROOT / "docs/measured.md").read_text()
    assert f"between {least}, which his" in measured and f"and {most}, which his" in measured
