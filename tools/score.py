"""The simulated chip beside every published figure that it can speak of: the table of
docs/model.md, by ``python -m tools.score``, about a minute on all cores.

The figures are the project's copy of what the papers print, ``data/published.json``; a row names
one by its ``id`` and ``quantity`` there. Gflop/s are taken at the published N, or at the better of
2048 and 4096 where none is given; efficiencies and the best N over ``SIZES``. Kernel cards come
from the compiler, and the rows of hosts from ``host_score``. The ratio is simulated over published;
what a paper shows in a picture only has neither. ``judged`` adds the errors, ``verdict`` sums them
up.
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

N = 2048  # where a source gives none
LARGE = 4096  # and the larger size at which such a kernel may be faster
Done = dict[tuple[str, int], dict[str, Any]]  # rows of simulated launches, by kernel and size
SIZES = (1024, 1536, 2048, 2560, 3072, 4096, 5120)
PACKED = (1, 16)  # products in a launch of the packed kernel, few and many
CARD = (  # quantities of the published figures that are a kernel's statistics
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
STATS = {"mads": "multiply_adds", "bundles": "bundles_per_iteration"}  # names of their fields
# Double instructions per operation
PEAKS = {
    "ddgemm_tn_fma": DOUBLE_DOUBLE,
    "ddgemm_tn_nofma": (21 + 25) / 2,
}


def score(*, progress: bool = True) -> list[dict[str, Any]]:
    """Rows ``id``, ``quantity``, ``published``, ``simulated``, ``ratio`` (None over 0). They take
    about a minute of processor time.
    """
    figures = {name: row for name, row in published.kernels().items() if name in KERNELS}
    points = {(name, row.get("n_at_max", N)) for name, row in figures.items()} | {("sgemm_tn", N)}
    for name, row in figures.items():
        # A double-double kernel is at its best early, and slow to simulate
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
    # Flop/s times bytes per number
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
    """Rows of the reports of launches (kernel, N, board), in their order, made on all cores."""

    def row(point: tuple[str, int, Device]) -> dict[str, Any]:
        kernel, n, device = point
        return simulate(kernel, n, device=device, progress=False).row()

    points = list(points)
    with ThreadPoolExecutor(processors()) as pool:
        rows = pool.map(row, points)
        return list(tqdm(rows, "simulating", len(points), disable=not progress))


def _kernel(name: str, figures: dict[str, Any], done: Done) -> Iterator[dict[str, Any]]:
    """Rows for every published figure of a kernel that is also simulated."""
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
    simulated |= {field: partial(getattr, made, STATS.get(field, field)) for field in CARD}
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
    """``function`` of the values or, if they are lists, of each row of them."""
    return list(map(function, *values)) if isinstance(values[0], list) else function(*values)


#: What calibrations were calibrated on, and what was assumed because it meets the figure: by row,
#: their names.
CALIBRATED = {
    ("sgemm_tn_37", "slower_than_sgemm_tn_by"): "dram_clocks",
    ("dgemm_tn", "gflops_max"): "clause_overhead_clocks",
    ("hybrid", "kernel_pct_max"): "clause_overhead_clocks",
    ("hybrid", "speedup_over_four_stage"): "padded rows (assumed)",
    ("sgemm_packed4", "gflops_range"): "launch_overhead_us",
}


def judged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of ``score`` with ``error_pct`` and ``calibrated``: the calibrations fitted to this
    figure, or "".
    """
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
    """One line on judged rows: the median and the worst error, and which calibration was fitted to
    which figure.
    """
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
    """Print published against simulated."""
    with ThreadPoolExecutor(1) as pool:
        try:
            hosts = pool.submit(host_rows)
            rows = judged([*score(), *hosts.result()])
        except KeyboardInterrupt:
            os._exit(130)  # Python would wait for what the pool simulates now: ten seconds
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
