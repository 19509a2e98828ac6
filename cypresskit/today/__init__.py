"""The workbook's experiments on a GPU of today, and the record of one that was measured.

``python -m cypresskit.today.experiments FILE`` makes such a record; that alone needs a CUDA GPU and
the extra ``gpu``.
"""

import json
from functools import cache
from importlib.resources import files


@cache
def record() -> dict:
    """The record that comes with the package: one GPU, its driver, the versions, and a row for each
    figure.
    """
    return json.loads(files("cypresskit.today").joinpath("record.json").read_text(encoding="utf-8"))


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
