"""Compare the simulated chip with all published figures: the table in docs/figures.md.

``python -m tools.score`` prints it, in about a minute on all cores. A row names a figure of
``data/published.json`` by its ``id`` and ``quantity``, for which the table has ``WORDS``, and the
sizes that were simulated by ``at``.
Each launch is simulated as its author measured it (``published.conditions``). Tops and ranges come
from the stored curves of the papers' plots (``tools/curves.py``). Gflop/s of a source that states
no N are those of an assumed one (``n_assumed``). Statistics of kernels come from the compiler, and
rows of hosts from ``host_score``. The ratio is simulated over published; figures that a paper shows
only as a picture have none.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import Any

from cypresskit import published
from cypresskit.devices import DOUBLE_DOUBLE, HD5870, Device
from cypresskit.draw.stored_curves import stored_speeds
from cypresskit.kernels import KERNELS
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.tables import markdown
from cypresskit.threads import processors
from cypresskit.timing import Report
from cypresskit.timing.as_published import simulate_published
from tools.host_score import host_rows

LAUNCHED = 2048  # N of a kernel without a published speed
RATIO_FROM = 1024  # the least N at which kernels with 25 and 37 registers are compared
TOP = "gflops_max of the grid"  # the quantity of a curve's highest speed
PACKED = 1, 4  # products in a launch: SGEMM4 is read as up to four
STATISTICS = (  # published quantities that are statistics of a kernel
    "mads",
    "gprs",
    "slots4_pct",
    "slots5_pct",
    "floats",
    "fetches",
    "fetch_bytes",
    "bundles",
    "l1_bytes_per_clock",
    "nominal_gflops",
)
#: Fields of ``KernelStats`` with another name than in published.json.
STATS = {"mads": "multiply_adds", "bundles": "bundles_per_iteration"}
# Double instructions per operation
PEAKS = {
    "ddgemm_tn_fma": DOUBLE_DOUBLE,
    "ddgemm_tn_nofma": (21 + 25) / 2,
}


def score() -> list[dict[str, Any]]:
    """Return rows of ``id``, ``quantity``, ``at``, ``published``, ``simulated`` and ``ratio``.

    The ratio is None if the published figure is 0. This takes about a minute of processor time.
    """
    figures = {name: row for name, row in published.kernels().items() if name in KERNELS}
    points = [
        (name, published.size_of(name) if "gflops_max" in row else LAUNCHED, HD5870)
        for name, row in figures.items()
    ]
    reports = zip(points, timed(points))
    rows = [row for (name, *_), done in reports for row in _kernel(name, figures[name], done)]
    packed = published.kernel("sgemm_packed4")
    speeds = [simulate_published("sgemm_packed4", count=count).gflops for count in PACKED]
    rows.append(
        _row(
            "sgemm_packed4",
            "gflops_range",
            packed["gflops_range"],
            [round(g, 1) for g in speeds],
            f"N = {packed['n']}, {PACKED[0]} and {PACKED[1]} products",
        )
    )
    # Gflop/s times bytes per number
    need = {
        "dgemm": HD5870.double_gflops * 8,
        "sgemm": HD5870.single_gflops * 4,
    }
    need |= {
        "ddgemm": HD5870.peak_gflops("double-double") * 16,
        "texture_cache": HD5870.texture_gb_s,
    }
    for quantity, gb_s in need.items():
        figure = float(
            str(published.figures()["bandwidth_need_tb_s"][quantity]).removesuffix("/ b")
        )
        rows.append(_row("bandwidth_need_tb_s", quantity, figure, round(gb_s / 1e3, 3)))
    return rows


def timed(points: Iterable[tuple[str, int, Device]]) -> list[Report]:
    """Return the reports of launches (kernel, N, board), simulated on all cores as their authors
    measured them.
    """

    def report_on(point: tuple[str, int, Device]) -> Report:
        kernel, n, device = point
        return simulate_published(kernel, n, device=device)

    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(report_on, points))


def _kernel(name: str, figures: dict[str, Any], best: Report) -> Iterator[dict[str, Any]]:
    """Yield rows for the published figures of a kernel, and its launch at its ``best`` N."""
    fastest = round(best.gflops, 2)
    made = kernel_stats(name)
    speeds = stored_speeds(name)
    assert best.size
    at = f"N = {best.size[1]}"
    if "n_at_max" in figures:
        top = max(speeds, key=lambda n: speeds[n])
        grid = f"N = {min(speeds)}, {min(speeds) + 128} ... {max(speeds)}"
        yield _row(name, "gflops_max", figures["gflops_max"], fastest, at)
        yield _row(name, TOP, figures["gflops_max"], speeds[top], f"{grid}: {top}")
        share = round(speeds[figures["n_at_max"]] / speeds[top], 3)
        yield _row(name, "n_at_max: speed there over the grid's top", 1.0, share, at)
    elif "gflops_max" in figures:
        yield _row(name, "gflops_max", figures["gflops_max"], fastest, at)
    if "efficiency_pct_range" in figures:
        least = figures["range_from_n"]
        peak = HD5870.peak_gflops(figures["precision"])
        shares = [100 * speed / peak for n, speed in speeds.items() if n >= least]
        ends = [round(min(shares), 2), round(max(shares), 2)]
        sizes = f"N = {least}, {least + 128} ... {max(speeds)}"
        yield _row(name, "efficiency_pct_range", figures["efficiency_pct_range"], ends, sizes)
    if "slower_than_sgemm_tn_by" in figures:
        others = stored_speeds("sgemm_tn")
        ratio = median(others[n] / speeds[n] for n in speeds if n >= RATIO_FROM)
        sizes = f"median of N = {RATIO_FROM}, {RATIO_FROM + 128} ... {max(speeds)}"
        yield _row(
            name,
            "slower_than_sgemm_tn_by",
            figures["slower_than_sgemm_tn_by"],
            round(ratio, 3),
            sizes,
        )
    simulated: dict[str, Callable[..., Any]] = {
        "active_threads": lambda: 4 * best.active_wavefronts,
        "wavefronts": lambda: best.active_wavefronts,
        "of_nominal_pct": lambda: round(100 * fastest / made.nominal_gflops, 1),
        "peak_gflops": lambda: round(HD5870.double_gflops / PEAKS[name], 2),
    }
    simulated |= {field: partial(getattr, made, STATS.get(field, field)) for field in STATISTICS}
    for quantity, value in simulated.items():
        if quantity in figures:
            yield _row(name, quantity, figures[quantity], value())


def _row(name: str, quantity: str, figure: Any, simulated: Any, at: str = "") -> dict[str, Any]:
    ratio = _each(
        lambda expected, value: round(value / expected, 3) if expected else None, figure, simulated
    )
    return {
        "id": name,
        "quantity": quantity,
        "at": at,
        "published": figure,
        "simulated": simulated,
        "ratio": ratio,
    }


def _each(function: Callable[..., Any], *values: Any) -> Any:
    """Return ``function`` of the values; if they are lists, a list of the results per element."""
    return list(map(function, *values)) if isinstance(values[0], list) else function(*values)


#: By figure: the calibration that was fitted to it, or the assumption that was made to meet it.
CALIBRATED = {
    ("sgemm_tn_37", "slower_than_sgemm_tn_by"): "dram_clocks",
    ("sgemm_tn", TOP): "clause_overhead_clocks",
    ("dgemm_tn", TOP): "clause_overhead_clocks",
    ("hybrid", "kernel_pct_max"): "clause_overhead_clocks",
    ("hybrid", "speedup_over_four_stage"): "padded rows (assumed)",
    ("sgemm_packed4", "gflops_range"): "launch_overhead_us",
}


def judged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add ``error_pct`` and ``calibrated`` to rows: the calibration fitted to the figure, or ""."""
    table = []
    for row in rows:
        error = _each(
            lambda ratio: None if ratio is None else round(100 * (ratio - 1), 1), row["ratio"]
        )
        table.append(
            {
                **row,
                "error_pct": error,
                "calibrated": CALIBRATED.get((row["id"], row["quantity"]), ""),
            }
        )
    return table


def verdict(rows: Iterable[dict[str, Any]]) -> str:
    """Return a summary of judged rows: the median and the worst error."""
    errors = []
    for row in rows:
        row_errors = row["error_pct"] if isinstance(row["error_pct"], list) else [row["error_pct"]]
        errors += [(abs(error), row) for error in row_errors if error is not None]
    errors.sort(key=lambda pair: pair[0])
    worst_error, worst = errors[-1]
    half = errors[len(errors) // 2][0]
    where = f"{_shown(worst['id'])}, {_shown(worst['quantity'])}"
    return (
        f"{len(errors)} figures: median error {half:.1f} %, worst {worst_error:.1f} % ({where})."
        " The last column names what was fitted to a figure."
    )


#: The table's words for the fields of rows, and for the names in published.json.
WORDS = {
    "id": "kernel, or subject",
    "at": "sizes",
    "ratio": "simulated / published",
    "error_pct": "error, %",
    "calibrated": "fitted to it",
    "bandwidth_need_tb_s": "bandwidth, TB/s",
    "dgemm_transfer_model": "DGEMM with transfers",
    "blocked_mma": "larger than the card",
    "hybrid": "two chips and a CPU",
    "active_threads": "active wavefronts times 4",
    "block": "largest block",
    "bundles": "bundles per iteration",
    "ddgemm": "needed by double-double, times b",
    "dgemm": "needed by double, times b",
    "efficiency_pct_range": "% of the peak, least and most",
    "fetch_bytes": "bytes fetched per iteration",
    "fetches": "fetches per iteration",
    "floats": "numbers in registers",
    "gflops_max": "top speed, Gflop/s",
    TOP: "top of the curve, Gflop/s",
    "gflops_range": "Gflop/s, least and most",
    "gprs": "registers",
    "gpu_only_gflops": "chips alone, Gflop/s",
    "gpu_only_pct": "chips alone, % of the peak",
    "hybrid_gflops": "together, Gflop/s",
    "hybrid_pct": "together, % of the peak",
    "io_gflops_max": "with transfers, Gflop/s",
    "kernel_pct_max": "kernel, % of the peak",
    "l1_bytes_per_clock": "bytes from L1 per clock",
    "mads": "multiply-adds per iteration",
    "n_at_max: speed there over the grid's top": "speed at the published N / top of the curve",
    "n_balance": "N at which transfers take as long as the kernel",
    "nominal_gflops": "by bundles alone, Gflop/s",
    "of_nominal_pct": "top speed, % of that by bundles alone",
    "overlap_gain": "gain by overlap",
    "padding_gain": "gain by less padding",
    "peak_gflops": "peak, Gflop/s",
    "sgemm": "needed by single, times b",
    "slots4_pct": "bundles with 4 operations, %",
    "slots5_pct": "bundles with 5 operations, %",
    "slower_than_sgemm_tn_by": "times slower than sgemm_tn",
    "speedup_over_four_stage": "five stages, times faster than four",
    "texture_cache": "of the texture cache",
    "wavefronts": "active wavefronts",
    "with_pcie_10_gb_s": "with a bus of 10 GB/s, Gflop/s",
}


def main() -> None:
    """Print the table and the summary."""
    with ThreadPoolExecutor(1) as pool:
        try:
            hosts = pool.submit(host_rows)
            rows = judged([*score(), *hosts.result()])
        except KeyboardInterrupt:
            os._exit(130)  # without waiting for the simulations in progress
    names = [WORDS.get(name, name) for name in rows[0]]
    table = markdown(names, ([_shown(value) for value in row.values()] for row in rows))
    print(table, "", verdict(rows), sep="\n")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else WORDS.get(value, str(value))


if __name__ == "__main__":
    main()
