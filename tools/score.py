"""Compare the simulated chip with all published figures: the table in docs/model.md.

``python -m tools.score`` prints it, in about a minute on all cores. A row names a figure of
``data/published.json`` by its ``id`` and ``quantity``. Gflop/s are simulated at the published N, or
at the better of 2048 and 4096 if none is given; efficiencies and the best N, over ``SIZES``.
Statistics of kernels come from the compiler, and rows of hosts from ``host_score``. The ratio is
simulated over published; figures that a paper shows only as a picture have none.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tqdm.auto import tqdm

from cypresskit import published
from cypresskit.devices import DOUBLE_DOUBLE, HD5870, Device
from cypresskit.kernels import KERNELS
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.tables import markdown
from cypresskit.threads import processors
from cypresskit.timing.simulate import simulate
from tools.host_score import host_rows

N = 2048  # if a source states no N
LARGE = 4096  # a larger size, at which such a kernel may be faster
Done = dict[tuple[str, int], dict[str, Any]]  # rows of simulated launches, by kernel and size
SIZES = (1024, 1536, 2048, 2560, 3072, 4096, 5120)
PACKED = (1, 16)  # products per launch of the packed kernel
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


def score(*, progress: bool = True) -> list[dict[str, Any]]:
    """Return rows of ``id``, ``quantity``, ``published``, ``simulated`` and ``ratio``.

    The ratio is None if the published figure is 0. This takes about a minute of processor time.
    """
    figures = {name: row for name, row in published.kernels().items() if name in KERNELS}
    points = {(name, row.get("n_at_max", N)) for name, row in figures.items()} | {("sgemm_tn", N)}
    for name, row in figures.items():
        # Double-double kernels reach their best at small sizes, and are slow to simulate
        sizes: tuple[int, ...] = SIZES[:3] if "n_at_max" in row else (LARGE,)
        if "efficiency_pct_range" in row:
            sizes = SIZES
        points |= {(name, n) for n in sizes if "gflops_max" in row}
    order = sorted(points, key=lambda point: -point[1])
    done = dict(zip(order, timed([(name, n, HD5870) for name, n in order], progress)))
    rows = [row for name in figures for row in _kernel(name, figures[name], done)]
    packed = published.kernel("sgemm_packed4")
    speeds = [simulate("sgemm_packed", packed["n"], count=count).gflops for count in PACKED]
    rows.append(
        _row("sgemm_packed4", "gflops_range", packed["gflops_range"], [round(g, 1) for g in speeds])
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


def timed(points: Iterable[tuple[str, int, Device]], progress: bool) -> list[dict[str, Any]]:
    """Return the rows of the reports of launches (kernel, N, board), simulated on all cores."""

    def row(point: tuple[str, int, Device]) -> dict[str, Any]:
        kernel, n, device = point
        return simulate(kernel, n, device=device, progress=False).row()

    points = list(points)
    with ThreadPoolExecutor(processors()) as pool:
        rows = pool.map(row, points)
        return list(tqdm(rows, "simulating", len(points), disable=not progress))


def _kernel(name: str, figures: dict[str, Any], done: Done) -> Iterator[dict[str, Any]]:
    """Yield rows for the published figures of a kernel."""
    best = done[name, figures.get("n_at_max", N)]
    if "n_at_max" not in figures:
        best = max(best, done.get((name, LARGE), best), key=lambda row: row["gflops"])
    made = kernel_stats(name)
    simulated: dict[str, Callable[..., Any]] = {
        "gflops_max": lambda: best["gflops"],
        "n_at_max": lambda: max(
            (row["gflops"], n) for (other, n), row in done.items() if other == name
        )[1],
        "efficiency_pct_range": lambda: [
            extreme(done[name, n]["percent"] for n in SIZES) for extreme in (min, max)
        ],
        "slower_than_sgemm_tn_by": lambda: round(done["sgemm_tn", N]["gflops"] / best["gflops"], 3),
        "active_threads": lambda: 4 * best["active_wavefronts"],
        "wavefronts": lambda: best["active_wavefronts"],
        "of_nominal_pct": lambda: round(100 * best["gflops"] / made.nominal_gflops, 1),
        "peak_gflops": lambda: round(HD5870.double_gflops / PEAKS[name], 2),
    }
    simulated |= {field: partial(getattr, made, STATS.get(field, field)) for field in STATISTICS}
    for quantity, value in simulated.items():
        if quantity in figures:
            yield _row(name, quantity, figures[quantity], value())


def _row(name: str, quantity: str, figure: Any, simulated: Any) -> dict[str, Any]:
    ratio = _each(
        lambda expected, value: round(value / expected, 3) if expected else None, figure, simulated
    )
    return {
        "id": name,
        "quantity": quantity,
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
    ("dgemm_tn", "gflops_max"): "clause_overhead_clocks",
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
    """Return a summary of judged rows: the median and worst error, and the calibrations."""
    errors = []
    for row in rows:
        row_errors = row["error_pct"] if isinstance(row["error_pct"], list) else [row["error_pct"]]
        errors += [(abs(error), row) for error in row_errors if error is not None]
    errors.sort(key=lambda pair: pair[0])
    worst = errors[-1]
    on = ", ".join(f"{name} on {id} {quantity}" for (id, quantity), name in CALIBRATED.items())
    return (
        f"{len(errors)} figures: median error {errors[len(errors) // 2][0]:.1f} %, worst"
        f" {worst[0]:.1f} % ({worst[1]['id']} {worst[1]['quantity']}). Calibrated: {on}."
    )


def main() -> None:
    """Print the table and the summary."""
    with ThreadPoolExecutor(1) as pool:
        try:
            hosts = pool.submit(host_rows)
            rows = judged([*score(), *hosts.result()])
        except KeyboardInterrupt:
            os._exit(130)  # without waiting for the simulations in progress
    table = markdown(list(rows[0]), ([_shown(value) for value in row.values()] for row in rows))
    print(table, "", verdict(rows), sep="\n")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)


if __name__ == "__main__":
    main()
