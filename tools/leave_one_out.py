"""Predict each published peak with calibrations that were fitted to the other peaks alone.

    python -m tools.leave_one_out        # the table of docs/model.md; 108 simulations, some minutes

``clause_clocks`` and ``dram_clocks`` are fitted on a grid to the other peaks and to the ratio of 25 to 37 registers. A
row has the values that fit best, the peak that they predict, its ratio to the published one, and the least and the most
of what values that fit nearly as well predict.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np

import cypresskit as ck
from cypresskit import published
from cypresskit.tables import markdown

FITTED: dict[str, tuple] = {"clause_clocks": (0, 4, 8, 12), "dram_clocks": (300, 320, 400)}
LARGE = 4096  # N, where a source gives none
RATIO_N = 2048  # N at which 25 registers are held against 37
NEARLY = 0.005  # more error than the best, as a root mean square of logarithms


def rows() -> list[dict]:
    fits: list[dict] = [dict(zip(FITTED, values)) for values in product(*FITTED.values())]
    boards = [replace(ck.HD5870, **fit) for fit in fits]
    peaks = {name: row for name, row in published.kernels().items() if name in ck.kernels and "gflops_max" in row}
    sizes = {name: row.get("n_at_max", LARGE) for name, row in peaks.items()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def rates(name: str, n: int) -> np.ndarray:
            return np.array(ck.sweep(name, n, boards, executor=pool)["gflops"])

        ratios = {name: rates(name, n) / peaks[name]["gflops_max"] for name, n in sizes.items()}
        slower = published.kernel("sgemm_tn_37")["slower_than_sgemm_tn_by"]
        ratios["sgemm_tn_37"] = rates("sgemm_tn", RATIO_N) / rates("sgemm_tn_37", RATIO_N) / slower
    table = []
    for name in peaks:
        errors = np.array([np.log(ratio) for other, ratio in ratios.items() if other != name])
        error = np.sqrt((errors**2).mean(axis=0))
        best, near = int(error.argmin()), error <= error.min() + NEARLY
        published_peak = peaks[name]["gflops_max"]
        predicted = ratios[name] * published_peak
        row = {"id": name} | {field: getattr(boards[best], field) for field in FITTED} | {"published": published_peak}
        row |= {"predicted": f"{predicted[best]:.4g}", "ratio": f"{ratios[name][best]:.3f}"}
        table.append(row | {"low": f"{predicted[near].min():.4g}", "high": f"{predicted[near].max():.4g}"})
    return table


if __name__ == "__main__":
    table = rows()
    print(markdown(list(table[0]), (row.values() for row in table)))
