"""Simulate the papers' plots: the curves of ``draw/published.json``.

Each curve simulates what its author timed (``published.conditions``). ``python -m
tools.stored_figures`` writes the file, and ``tools/score.py`` reads tops and ranges from it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cypresskit import host, published
from cypresskit.devices import HD5870, HD5970
from cypresskit.draw.published_charts import CHARTS
from cypresskit.timing.as_published import simulate_published
from cypresskit.timing.simulate import simulate

Row = tuple[float, float, float]  # x, y, and the share by which y may be off
BLOCK = 1792  # of Matsumoto's products
STEPS = range(256, 4097, 256)  # N of plots whose sizes aren't known
SMALL = range(128, 1025, 128)
COUNTS = 1, 2, 4, 6, 8, 12, 16  # products in a launch
MAX_DOUBLE_DOUBLE = 2048  # N
SIDE = 16384  # of Li's matrices


def kernel_row(kernel: str, n: int) -> Row:
    """Return the speed of a published kernel at N, timed as its author did."""
    report = simulate_published(kernel, n)
    return n, round(report.gflops, 2), round(report.error, 4)


def kernel_rows(kernel: str) -> Iterator[Row]:
    """Yield the speeds of a published kernel at the N that were measured."""
    sizes: Iterable[int] = published.conditions(kernel).sizes or STEPS
    is_slow = published.kernel(kernel)["precision"] == "double-double"
    for n in sizes:
        if n <= MAX_DOUBLE_DOUBLE or not is_slow:
            yield kernel_row(kernel, n)


def other_rows(kernel: str, sizes: Iterable[int]) -> Iterator[Row]:
    """Yield the speeds of a kernel of which no number is printed, on the chip alone."""
    for n in sizes:
        report = simulate(kernel, n)
        yield n, round(report.gflops, 2), round(report.error, 4)


def packed_rows() -> Iterator[Row]:
    """Yield the speeds of Ashraf's packed products, by their number."""
    row = published.kernel("sgemm_packed4")
    for count in COUNTS:
        report = simulate_published(row["id"], count=count)
        yield count, round(report.gflops, 2), round(report.error, 4)


def transfer_rows(rate: Callable[[int], float], gb_s: float) -> Iterator[Row]:
    """Yield the speeds of DGEMM with its transfers, for a kernel of ``rate(N)`` Gflop/s."""
    for n in published.conditions("dgemm_tn").sizes:
        yield n, round(host.rate_with_transfers(n, 1e9 * gb_s, 1e9 * rate(n)) / 1e9, 2), 0.0


def matsumoto_rows(sizes: Iterable[int], **options: Any) -> Iterator[Row]:
    """Yield the speeds of products that are larger than the card."""
    machine = host.Machine(HD5870)
    for n in sizes:
        yield n, round(host.blocked_timeline(n, n, n, machine, **options).gflops, 2), 0.0


def stage_rows(stages: Callable[..., host.Timeline], stage: str) -> Iterator[Row]:
    """Yield a stage's share of the time of all stages of one of Li's pipelines, by k, in
    percent.
    """
    machine = host.Machine(HD5970)
    for k in published.host("hybrid")["k"]:
        seconds = stages(SIDE, SIDE, k, machine).stages()
        yield k, round(100 * seconds[stage] / sum(seconds.values()), 2), 0.0


def curve(name: str, done: dict[str, list[Row]]) -> Iterable[Row]:
    """Return the rows of a curve of ``CHARTS``, given those of earlier ones."""
    bus = published.host("dgemm_transfer_model")
    constant = bus["kernel_gflops"]
    multiples = [BLOCK * number for number in range(1, 9)]
    between = range(BLOCK // 2, 8 * BLOCK + 1, BLOCK // 2)

    def alone(n: int) -> float:
        return {x: y for x, y, _ in done["dgemm_tn"]}[n]

    special: dict[str, Callable[[], Iterable[Row]]] = {
        "sgemm_packed4": packed_rows,
        "dgemm_tn with transfers": lambda: transfer_rows(alone, bus["pcie_gb_s"]),
        "formula, 3 GB/s": lambda: transfer_rows(lambda n: constant, bus["pcie_gb_s"]),
        "formula, 10 GB/s": lambda: transfer_rows(lambda n: constant, 10),
        "no overlap": lambda: matsumoto_rows(multiples, block=BLOCK, overlap=False),
        "padded to 1792": lambda: matsumoto_rows(between, block=BLOCK),
        "padded to multiples of 128": lambda: matsumoto_rows(between),
        "mult of four stages": lambda: stage_rows(host.four_stage, "mult"),
        "store of four": lambda: stage_rows(host.four_stage, "store"),
        "mult1 of five": lambda: stage_rows(host.five_stage, "mult1"),
        "store1 of five": lambda: stage_rows(host.five_stage, "store1"),
        "store2 of five": lambda: stage_rows(host.five_stage, "store2"),
        "load2 of five": lambda: stage_rows(host.five_stage, "load2"),
    }
    if name in special:
        return special[name]()
    if name in published.kernels():
        return kernel_rows(name)
    return other_rows(name, SMALL if name.startswith("sgemm") else STEPS)


def curves() -> dict[str, dict[str, list[Row]]]:
    """Return the rows of all curves, by chart and name."""
    done: dict[str, list[Row]] = {}
    for chart in CHARTS.values():
        for name in chart.series:
            if name not in done:
                done[name] = list(curve(name, done))
    return {key: {name: done[name] for name in chart.series} for key, chart in CHARTS.items()}
