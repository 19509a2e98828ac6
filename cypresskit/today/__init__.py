"""Current GPUs: the measurements of one, and the time of CUDA kernels without one.

``ck.today.simulate(kernel, grid, threads, a, b, c)`` returns how long a launch takes on an H200,
and why. ``clock_errors`` compares it with the measurements, which ``tools/cuda/experiments.py``
makes: that needs a CUDA GPU and the extra ``gpu``.
"""

import json
from functools import cache
from importlib.resources import files
from math import log
from typing import TYPE_CHECKING

from cypresskit.lazy import import_later

if TYPE_CHECKING:
    from cypresskit.today.cuda_clock import simulate as simulate
    from cypresskit.today.gpus import H200 as H200
    from cypresskit.today.sass_threads import NotTimed as NotTimed

import_later(__name__, {"simulate": "cuda_clock", "H200": "gpus", "NotTimed": "sass_threads"})


@cache
def record() -> dict:
    """Return the measurements that come with the package: one GPU, its driver, the versions, and a
    row for each figure. Rows of products also have their modeled speed, with their own machine
    code.
    """
    text = files("cypresskit.today").joinpath("record.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def figures(experiment: str) -> dict[str, float]:
    """Return the record's figures of an experiment by case, such as ``{"8 x 8": 18800.0}``."""
    return {
        row["case"]: row["value"] for row in record()["rows"] if row["experiment"] == experiment
    }


def clock_ghz() -> float:
    """Return the clock of the record's GPU under load, in GHz."""
    return float(record()["clock at work"].split()[0]) / 1e3


def clock_errors() -> list[tuple[str, float, float]]:
    """Return (product, modeled Gflop/s, measured Gflop/s) for each product of the record that is
    modeled, from the largest error to the smallest.
    """
    rows = [
        (f"{row['experiment']}, {row['case']}", row["modeled"], row["value"])
        for row in record()["rows"]
        if "modeled" in row
    ]
    return sorted(rows, key=lambda row: -abs(log(row[1] / row[2])))
