"""What was published about hosts is met, by the kernels' simulated rates and one set of parameters."""

from dataclasses import replace
from pathlib import Path

import pytest

from cypresskit import published
from cypresskit.devices import HD5870, HD5970, XEON
from cypresskit.host import Machine, adaptive, five_stage, four_stage
from cypresskit.timing import simulate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows(scored):
    return {(row["id"], row["quantity"]): row for row in scored.hosts}


def test_rows_are_of_published_quantities(rows):
    for (id, quantity), row in rows.items():
        assert set(row) == {"id", "quantity", "published", "simulated", "ratio"}
        if row["published"] is None:  # a picture, which stays one
            assert row["ratio"] is None and quantity not in published.host(id)
            continue
        if quantity != "with_pcie_10_gb_s":  # which is published as a sentence
            assert row["published"] == published.host(id)[quantity]
        assert row["ratio"] == pytest.approx(row["simulated"] / row["published"])


def test_overlap_and_padding_gain_as_the_source_says_in_words(rows):
    """Overlap "alleviates the communication latency", and the performance is "sensitive to the amount of padding"."""
    least, most = rows["blocked_mma", "overlap_gain"]["simulated"]
    assert 1.1 < least < most < 2  # two times at most, where copies and kernels take equally long
    least, most = rows["blocked_mma", "padding_gain"]["simulated"]
    assert 1 <= least < 1.2 and most > 1.5


HYBRID = ("hybrid_gflops", "hybrid_pct", "gpu_only_gflops", "gpu_only_pct", "speedup_over_four_stage")
FIGURES = [("dgemm_transfer_model", "n_balance"), ("dgemm_transfer_model", "io_gflops_max"), ("blocked_mma", "block"),
           *(("hybrid", quantity) for quantity in HYBRID)]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "within"), [*((name, 0.05) for name in FIGURES), (("hybrid", "kernel_pct_max"), 0.03)]
)
def test_every_figure_is_met_within_3_or_5_percent(rows, name, within):
    assert rows[name]["ratio"] == pytest.approx(1, abs=within)


def test_a_faster_bus_gives_at_least_what_the_source_says(rows):
    assert rows["dgemm_transfer_model", "with_pcie_10_gb_s"]["ratio"] >= 1


def cells(name: str) -> list[list[str]]:
    """The rows of a table of the model's document."""
    text = (Path(__file__).parents[1] / "docs" / "model.md").read_text()
    table = text.split(f"<!-- {name} -->")[1].split(f"<!-- end of {name} -->")[0].strip().splitlines()[2:]
    return [line.strip("| ").split(" | ") for line in table]


def headlines(machine: Machine) -> list[float]:
    size = 32768, 32768, 4096  # where Li et al.'s sizes are at their best
    chips, both = five_stage(*size, machine).gflops, max(call.gflops for _, call in adaptive(*size, machine))
    return [both, chips, chips / four_stage(*size, machine).gflops]


def test_the_documents_host_parameters_move_what_it_says():
    before = headlines(Machine())
    for name, value, *shown in cells("host"):
        after = headlines(Machine(host=replace(XEON, **{name: float(value)})))
        moved = [100 * (new / old - 1) for new, old in zip(after, before)]
        assert list(map(float, shown)) == pytest.approx(moved, abs=0.15), name


def test_the_documents_cause_of_that_miss_is_the_models():
    for clocks, *shown in (map(float, row) for row in cells("clause clocks")[:-1]):  # the last is what was published
        chip, board = (replace(device, clause_clocks=int(clocks)) for device in (HD5970, HD5870))
        unit, nakasato = simulate("dgemm_tn", 2048, k=1536, device=chip), simulate("dgemm_tn", 1664, device=board)
        made = unit.gflops / chip.double_gflops, nakasato.gflops, nakasato.gflops / board.double_gflops
        assert shown == pytest.approx([100 * made[0], made[1], 100 * made[2]], abs=0.1, rel=1.1e-3)
