"""How far each calibration moves the headlines: by how many per cent, if it is halved or doubled.

python -m tools.sensitivity        # the table of docs/model.md; some minutes
"""

from dataclasses import replace
from typing import Any

import numpy as np

from cypresskit.devices import HD5870, Device, calibrations
from cypresskit.timing import Table
from cypresskit.timing.sweep import timed

LATENCIES = ("l1_clocks", "l2_clocks", "dram_clocks")
HEADLINES = (  # what the papers are known for: kernel and N
    ("sgemm_tn", 4352), ("sgemm_tn_37", 2048), ("dgemm_tn", 1664), ("dgemm_nn", 3712), ("ddgemm_tn_fma", 1408),
    ("sgemm_64x64", 2048), ("sgemm_64x64_lds", 2048),
)  # fmt: skip


def calibrated(device: Device, **values: Any) -> Device:
    """The device with other ``values``; a latency takes along those that would be out of order."""
    for at, name in enumerate(LATENCIES):
        if name in values:
            others = {n: (min if m < at else max)(values[name], getattr(device, n)) for m, n in enumerate(LATENCIES)}
            return replace(device, **(others | values))
    return replace(device, **values)


def sensitivity(device: Device = HD5870) -> Table:
    """Rows ``calibration``, ``value``, then one column per kernel: per cent."""
    boards: dict[tuple[str, float | str], Device] = {("as calibrated", ""): device}
    for c in calibrations(device):
        for value in (type(c.value)(c.value / 2), c.value * 2):
            boards[c.name, value] = calibrated(device, **{c.name: value})
    rows = timed([(name, n, board) for name, n in HEADLINES for board in boards.values()], None, progress=False)
    gflops = np.array([row["gflops"] for row in rows]).reshape(len(HEADLINES), -1)
    moved = (100 * (gflops / gflops[:, :1] - 1)).round(1) + 0.0
    names = [name for name, _ in HEADLINES]
    return Table([
        {"calibration": name, "value": value} | dict(zip(names, column.tolist()))
        for (name, value), column in zip(boards, moved.T)
    ])  # fmt: skip


if __name__ == "__main__":
    print(sensitivity().markdown())
