"""What was published about hosts is met, by the kernels' simulated rates and one set of
parameters.
"""

from dataclasses import replace

import pytest
from repository import marked_cells

from cypresskit.devices import HD5870, HD5970, XEON
from cypresskit.host import Machine, adapt_cpu_share, five_stage, four_stage
from cypresskit.timing import simulate, simulate_published

pytestmark = pytest.mark.nightly


def headlines(machine):
    size = 32768, 32768, 4096  # where Li et al.'s sizes are at their best
    chips, both = (
        five_stage(*size, machine).gflops,
        max(call.gflops for _, call in adapt_cpu_share(*size, machine)),
    )
    return [both, chips, chips / four_stage(*size, machine).gflops]


def test_the_documents_host_parameters_move_what_it_says():
    before = headlines(Machine())
    for name, value, *shown in marked_cells("host"):
        after = headlines(Machine(host=replace(XEON, **{name: float(value)})))
        moved = [100 * (new / old - 1) for new, old in zip(after, before)]
        assert list(map(float, shown)) == pytest.approx(moved, abs=0.15), name


def test_the_documents_cause_of_that_miss_is_the_models():
    for clocks, *shown in (
        map(float, row) for row in marked_cells("clause clocks", "figures.md")[:-1]
    ):
        chip, board = (
            replace(device, clause_overhead_clocks=int(clocks)) for device in (HD5970, HD5870)
        )
        unit, nakasato = (
            simulate("dgemm_tn", 2048, k=1536, device=chip),
            simulate_published("dgemm_tn", device=board),
        )
        made = (
            unit.gflops / chip.double_gflops,
            nakasato.gflops,
            nakasato.gflops / board.double_gflops,
        )
        assert shown == pytest.approx([100 * made[0], made[1], 100 * made[2]], abs=0.1, rel=1.1e-3)
