"""What was measured on a current GPU, to compare Cypress with (lesson 13)."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def record() -> dict[str, Any]:
    """Return the measurements that come with the package: one GPU, its driver, how they were made
    (``made by``), and a row for each figure.
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
