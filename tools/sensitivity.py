"""Measure the effect of the calibrations: the tables in docs/model.md.

``python -m tools.sensitivity`` prints them, in some minutes.

- ``sensitivity``: by how many percent the main results change if a calibration is halved or
  doubled.
- ``leave_one_out``: each published peak, predicted with ``clause_overhead_clocks`` and
  ``dram_clocks`` fitted on a grid to all other peaks and the ratio of 25 to 37 registers.
  A row has the best values, the predicted peak, its ratio to the published one, and the range of
  the predictions by values that fit nearly as well.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

import cypresskit as ck
from cypresskit import published
from cypresskit.devices import HD5870, Device, calibrations
from cypresskit.tables import markdown
from tools.score import timed

FITTED: dict[str, tuple] = {"clause_overhead_clocks": (0, 4, 8, 12), "dram_clocks": (300, 320, 400)}
LARGE = 4096  # N, if a source states none
RATIO_N = 2048  # N at which kernels with 25 and 37 registers are compared
NEARLY = 0.005  # by which a fit's error (root mean square of logarithms) may exceed the least
LATENCIES = ("l1_clocks", "l2_clocks", "dram_clocks")
HEADLINES = (  # the papers' main results: kernel and N
    ("sgemm_tn", 4352),
    ("sgemm_tn_37", 2048),
    ("dgemm_tn", 1664),
    ("dgemm_nn", 3712),
    ("ddgemm_tn_fma", 1408),
    ("sgemm_64x64", 2048),
    ("sgemm_64x64_lds", 2048),
)


def calibrated(device: Device, **values: Any) -> Device:
    """Return the device with other values. Latencies that would be out of order are adjusted."""
    for i, name in enumerate(LATENCIES):
        if name in values:
            others = {
                n: (min if m < i else max)(values[name], getattr(device, n))
                for m, n in enumerate(LATENCIES)
            }
            return replace(device, **(others | values))
    return replace(device, **values)


def rates(launches: Iterable[tuple[str, int]], boards: Collection[Device]) -> np.ndarray:
    """Return Gflop/s, with a row per launch (kernel, N) and a column per board."""
    reports = timed([(name, n, board) for name, n in launches for board in boards])
    return np.array([report.gflops for report in reports]).reshape(-1, len(boards))


def sensitivity() -> list[dict]:
    """Return rows of ``calibration``, ``value``, and the change of each kernel in percent."""
    boards: dict[tuple[str, float | str], Device] = {("as calibrated", ""): HD5870}
    for c in calibrations(HD5870):
        for value in (type(c.value)(c.value / 2), c.value * 2):
            boards[c.name, value] = calibrated(HD5870, **{c.name: value})
    gflops = rates(HEADLINES, boards.values())
    moved = (100 * (gflops / gflops[:, :1] - 1)).round(1) + 0.0
    names = [name for name, _ in HEADLINES]
    return [
        {"calibration": name, "value": value} | dict(zip(names, column.tolist()))
        for (name, value), column in zip(boards, moved.T)
    ]


def leave_one_out() -> list[dict]:
    """Return a row per published peak, predicted by a fit to the others."""
    fits: list[dict] = [dict(zip(FITTED, values)) for values in product(*FITTED.values())]
    boards = [replace(ck.HD5870, **fit) for fit in fits]
    peaks = {
        name: row
        for name, row in published.kernels().items()
        if name in ck.kernels and "gflops_max" in row
    }
    sizes = {name: row.get("n_at_max", LARGE) for name, row in peaks.items()}
    few, many = rates([("sgemm_tn", RATIO_N), ("sgemm_tn_37", RATIO_N)], boards)
    ratios = {
        name: row / peaks[name]["gflops_max"]
        for name, row in zip(sizes, rates(sizes.items(), boards))
    }
    ratios["sgemm_tn_37"] = few / many / published.kernel("sgemm_tn_37")["slower_than_sgemm_tn_by"]
    table = []
    for name in peaks:
        errors = np.array([np.log(ratio) for other, ratio in ratios.items() if other != name])
        error = np.sqrt((errors**2).mean(axis=0))
        best, near = int(error.argmin()), error <= error.min() + NEARLY
        published_peak = peaks[name]["gflops_max"]
        predicted = ratios[name] * published_peak
        row = (
            {"id": name}
            | {field: getattr(boards[best], field) for field in FITTED}
            | {"published": published_peak}
        )
        row |= {"predicted": f"{predicted[best]:.4g}", "ratio": f"{ratios[name][best]:.3f}"}
        table.append(
            row | {"low": f"{predicted[near].min():.4g}", "high": f"{predicted[near].max():.4g}"}
        )
    return table


if __name__ == "__main__":
    for table in (sensitivity(), leave_one_out()):
        print(markdown(list(table[0]), (row.values() for row in table)), end="\n\n")
