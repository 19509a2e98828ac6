"""Compare published figures about hosts with the model: rows for the project's score.

Li et al. print one figure for many sizes. The model's best at their largest size, over all their
k, is compared with it; a whole work unit, with their kernel's figure. Nakasato's rate with
transfers is compared at N = 2048, the size in his text. Matsumoto et al. show the gains from
overlap and from padding only in pictures: these rows have no published figure, and the simulated
ones are the minimum and maximum over similar sizes. All rows use one set of parameters:
``devices.XEON``, and those of the device.
"""

from typing import Any

from cypresskit import published
from cypresskit.devices import HD5870, HD5970
from cypresskit.draw.stored_curves import stored
from cypresskit.host.blocked import largest_block
from cypresskit.host.machine import Machine
from cypresskit.host.pipeline import BLOCK, adapt_cpu_share, five_stage, four_stage
from cypresskit.host.rates import kernel_rate
from cypresskit.host.transfer import n_balance, rate_with_transfers, round_trip_timeline


def host_rows() -> list[dict[str, Any]]:
    """Return rows with ``id``, ``quantity`` (as in published.json), ``published``, ``simulated``
    and ``ratio``.

    For a bus of 10 GB/s the source states "at least 300", so a ratio above 1 agrees. Figures that
    are published as a picture are None, and so is their ratio.
    """
    rows: list[dict[str, Any]] = []

    def row(
        id: str, quantity: str, simulated: Any, value: float | None = None, at: str = ""
    ) -> None:
        printed = published.host(id).get(quantity) if value is None else value
        ratio = None if printed is None else simulated / printed
        rows.append(
            {
                "id": id,
                "quantity": quantity,
                "at": at,
                "published": printed,
                "simulated": simulated,
                "ratio": ratio,
            }
        )

    model = published.host("dgemm_transfer_model")
    bus, kernel = model["pcie_gb_s"] * 1e9, model["kernel_gflops"] * 1e9
    row("dgemm_transfer_model", "n_balance", n_balance(bus, kernel))
    fitted = round_trip_timeline(2048, bus, kernel).gflops
    row("dgemm_transfer_model", "io_gflops_max", fitted, at="N = 2048, assumed")
    faster = rate_with_transfers(2048, 10e9, kernel) / 1e9
    row("dgemm_transfer_model", "with_pcie_10_gb_s", faster, 300, at="N = 2048")
    row("blocked_mma", "block", largest_block(HD5870))
    for quantity, least_most in mma_gains().items():
        row("blocked_mma", quantity, least_most)
    hybrid = published.host("hybrid")
    machine = Machine(HD5970)
    n = max(hybrid["m_n"])
    ks = hybrid["k"]
    chips = max(five_stage(n, n, k, machine).gflops for k in ks)
    with_cpu = max(timeline.gflops for k in ks for _, timeline in adapt_cpu_share(n, n, k, machine))
    four = max(four_stage(n, n, k, machine).gflops for k in ks)
    peak = HD5970.chips * HD5970.double_gflops
    row("hybrid", "hybrid_gflops", with_cpu)
    row("hybrid", "hybrid_pct", 100 * with_cpu / (peak + machine.host.cpu_gflops))
    row("hybrid", "gpu_only_gflops", chips)
    row("hybrid", "gpu_only_pct", 100 * chips / peak)
    row("hybrid", "speedup_over_four_stage", chips / four)
    fastest = max(kernel_rate("dgemm_tn", BLOCK, BLOCK, k, HD5970) for k in ks)
    row("hybrid", "kernel_pct_max", 100 * fastest / (1e9 * HD5970.double_gflops))
    return rows


def mma_gains() -> dict[str, list[float]]:
    """Return the minimum and maximum speedup of the blocked multiply-add by each improvement, from
    the stored curves of both of their figures.

    ``overlap_gain``: by overlap, at multiples of the block. ``padding_gain``: by less padding,
    halfway between multiples.
    """
    curves = {
        name: {n: gflops for n, gflops, _ in curve}
        for chart in stored().values()
        for name, curve in chart.items()
    }
    waits, padded = curves["no overlap"], curves["padded to 1792"]
    fitted = curves["padded to multiples of 128"]
    overlap = [padded[n] / waits[n] for n in waits]
    padding = [fitted[n] / padded[n] for n in padded if n > min(waits) and n not in waits]
    return {
        "overlap_gain": [min(overlap), max(overlap)],
        "padding_gain": [min(padding), max(padding)],
    }
