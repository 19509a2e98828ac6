"""The workbook's experiments on a GPU of today, the record of one that was measured, and the clock
of CUDA kernels: ``ck.today.simulate(kernel, grid, threads, a, b, c)`` says how long a launch takes
on an H200, and why, on a computer without a GPU. The record holds it to account: ``clock_errors``.

``tools/cuda/experiments.py`` makes such a record: that needs a CUDA GPU and the extra ``gpu``.
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

import_later(__name__, {"simulate": "cuda_clock", "H200": "gpus"})


def _read(name: str) -> dict:
    return dict(json.loads(files("cypresskit.today").joinpath(name).read_text(encoding="utf-8")))


@cache
def record() -> dict:
    """The record that comes with the package: one GPU, its driver, the versions, and a row for each
    figure.
    """
    return _read("record.json")


def figures(experiment: str, another: dict | None = None) -> dict[str, float]:
    """The figures of an experiment by case, such as ``{"8 x 8": 18800.0}``: the record's, or
    another's.
    """
    return {
        row["case"]: row["value"]
        for row in (another or record())["rows"]
        if row["experiment"] == experiment
    }


def clock_ghz() -> float:
    """The clock at which the record's GPU was found at work."""
    return float(record()["clock at work"].split()[0]) / 1e3


@cache
def modelled() -> dict[str, float]:
    """What ``simulate`` says of the record's products, by "experiment, case" in Gflop/s, each with
    its own machine code. ``python -m tools.cuda.record`` makes them.
    """
    return _read("modelled.json")


def clock_errors() -> list[tuple[str, float, float]]:
    """(product, Gflop/s modelled, Gflop/s measured) for each product of the record that is
    modelled, from the worst miss to the smallest.
    """
    measured = {f"{row['experiment']}, {row['case']}": row["value"] for row in record()["rows"]}
    rows = [(name, speed, measured[name]) for name, speed in modelled().items()]
    return sorted(rows, key=lambda row: -abs(log(row[1] / row[2])))
