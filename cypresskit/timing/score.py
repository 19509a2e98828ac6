"""``score``: the simulated chip against every published figure that it can speak of.

The figures are the project's copy of what the papers print, ``data/published.json``; a row names one by its ``id``
and ``quantity`` there. Gflop/s are taken at the published N, or at N = 2048 where none is given; efficiencies and the
best N over ``SIZES``. Kernel cards come from the compiler. ``sensitivity`` does the headlines again with each
calibration of the device halved and doubled.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from importlib.resources import files
from typing import Any

from cypresskit.compiler.card import kernel_card
from cypresskit.devices import HD5870, Device, calibrations
from cypresskit.kernels import KERNELS
from cypresskit.timing.simulate import compiled, simulate
from cypresskit.timing.sweep import Table, sweep

N = 2048  # where a source gives none
SIZES = (1024, 1536, 2048, 2560, 3072, 4096, 5120)
PACKED = (1, 16)  # products in a launch of the packed kernel, few and many
CARD = {  # name in published.json: field of the kernel card
    "gprs": "gprs", "slots4_pct": "slots4_pct", "slots5_pct": "slots5_pct", "floats": "floats", "fetches": "fetches",
    "fetch_bytes": "fetch_bytes", "bundles": "loop_bundles", "l1_bytes_per_clock": "l1_bytes_per_clock",
    "nominal_gflops": "nominal_gflops",
}  # fmt: skip
PEAKS = {"ddgemm_tn_fma": (21 + 8) / 2, "ddgemm_tn_nofma": (21 + 25) / 2}  # double instructions per operation


def published() -> dict:
    """What the papers print."""
    return json.loads(files("cypresskit.data").joinpath("published.json").read_text())


def score(device: Device = HD5870, *, executor: Executor | None = None, progress: bool = True) -> Table:
    """Rows ``id``, ``quantity``, ``published``, ``simulated``, ``ratio`` (None over 0). It takes about a minute."""
    figures = published()
    known = {row["id"]: row for row in figures["kernels"] if row["id"] in KERNELS}
    points = sorted({*((name, row.get("n_at_max", N)) for name, row in known.items()), ("sgemm_tn", N)})
    for name, row in known.items():  # a double-double kernel is at its best early, and slow to simulate
        sizes = SIZES if "efficiency_pct_range" in row else SIZES[:3] if "n_at_max" in row else ()
        points += [(name, n) for n in sizes if (name, n) not in points]
    done: dict[tuple[str, int], dict] = {}
    for name in sorted({name for name, _ in points}):
        ns = [n for other, n in points if other == name]
        done |= dict(zip([(name, n) for n in ns], sweep([name], ns, [device], executor=executor, progress=progress)))
    rows = [row for name in known for row in _kernel(name, known[name], done, device)]
    packed = next(row for row in figures["kernels"] if row["id"] == "sgemm_packed4")
    some = [simulate("sgemm_packed", packed["n"], count=count, device=device).gflops for count in PACKED]
    rows.append(_row("sgemm_packed4", "gflops_range", packed["gflops_range"], [round(g, 1) for g in some]))
    need = {"dgemm": device.double_gflops * 8, "sgemm": device.single_gflops * 4}  # times bytes per number
    need |= {"ddgemm": device.peak_gflops("double-double") * 16, "texture_cache": device.texture_gb_s}
    for quantity, gb_s in need.items():
        figure = float(str(figures["bandwidth_need_tb_s"][quantity]).removesuffix("/ b"))
        rows.append(_row("bandwidth_need_tb_s", quantity, figure, round(gb_s / 1e3, 3)))
    return Table([{**row, "ratio": _ratio(row["published"], row["simulated"])} for row in rows])


def _kernel(name: str, figures: dict, done: dict, device: Device) -> Iterator[dict]:
    at = done[name, figures.get("n_at_max", N)]
    code = compiled(KERNELS[name], device)
    card = kernel_card(KERNELS[name], code)
    if "gflops_max" in figures:
        yield _row(name, "gflops_max", figures["gflops_max"], at["gflops"])
    if "n_at_max" in figures:
        best = max((row["gflops"], n) for (other, n), row in done.items() if other == name)[1]
        yield _row(name, "n_at_max", figures["n_at_max"], best)
    if "efficiency_pct_range" in figures:
        percents = [done[name, n]["percent"] for n in SIZES]
        yield _row(name, "efficiency_pct_range", figures["efficiency_pct_range"], [min(percents), max(percents)])
    if "slower_than_sgemm_tn_by" in figures:
        ratio = done["sgemm_tn", N]["gflops"] / at["gflops"]
        yield _row(name, "slower_than_sgemm_tn_by", figures["slower_than_sgemm_tn_by"], round(ratio, 3))
    if "active_threads" in figures:
        yield _row(name, "active_threads", figures["active_threads"], 4 * at["active"])
    if "wavefronts" in figures:
        yield _row(name, "wavefronts", figures["wavefronts"], at["active"])
    if "of_nominal_pct" in figures:
        yield _row(
            name, "of_nominal_pct", figures["of_nominal_pct"], round(100 * at["gflops"] / card.nominal_gflops, 1)
        )
    if "peak_gflops" in figures:
        yield _row(name, "peak_gflops", figures["peak_gflops"], round(device.double_gflops / PEAKS[name], 2))
    if "mads" in figures:
        yield _row(name, "mads", figures["mads"], card.mads)
    for quantity, field in CARD.items():
        if quantity in figures:
            yield _row(name, quantity, figures[quantity], getattr(card, field))


def _row(name: str, quantity: str, figure, simulated) -> dict:
    return {"id": name, "quantity": quantity, "published": figure, "simulated": simulated}


def _ratio(figure, simulated):
    if isinstance(figure, list):
        return [_ratio(one, other) for one, other in zip(figure, simulated)]
    return round(simulated / figure, 3) if figure else None


LATENCIES = ("l1_clocks", "l2_clocks", "dram_clocks")
HEADLINES = (  # what the papers are known for: kernel and N
    ("sgemm_tn", 4352), ("sgemm_tn_37", 2048), ("dgemm_tn", 1664), ("dgemm_nn", 3712), ("ddgemm_tn_fma", 1408),
    ("sgemm_64x64", 2048), ("sgemm_64x64_lds", 2048),
)  # fmt: skip


def sensitivity(device: Device = HD5870, *, executor: Executor | None = None, progress: bool = True) -> Table:
    """Per cent by which each headline moves when a calibration is halved or doubled: rows ``calibration``, ``value``,
    then one column per kernel. A share stops at 1; a latency takes along those that would be out of order."""
    boards: dict[tuple[str, float | str], Device] = {("as calibrated", ""): device}
    for c in calibrations(device):
        for factor in (0.5, 2.0):
            value = type(c.value)(c.value * factor)
            value = min(value, 1.0) if c.name == "dram_efficiency" else value
            change: dict[str, Any] = {c.name: value}
            if c.name in LATENCIES:
                at = LATENCIES.index(c.name)
                for n, other in enumerate(LATENCIES):
                    change[other] = (min if n < at else max)(value, getattr(device, other))
                change[c.name] = value
            boards[c.name, value] = replace(device, **change)
    tables = {}
    for name, n in HEADLINES:
        table = sweep([name], [n], list(boards.values()), executor=executor, progress=progress)
        tables[name] = dict(zip(boards, table["gflops"]))
    rows = []
    for key in boards:
        moved = {name: round(100 * (of[key] / next(iter(of.values())) - 1), 1) + 0.0 for name, of in tables.items()}
        rows.append({"calibration": key[0], "value": key[1], **moved})
    return Table(rows)
