"""Figures of the five source texts for a lesson's comparison: ``host("hybrid")``, ``kernel("sgemm_packed4")``."""

import json
from importlib.resources import files


def host(name: str) -> dict:
    """Published figures about hosts: "dgemm_transfer_model", "blocked_mma", "hybrid", "padding_limits"."""
    return _all()["host"][name]


def kernel(name: str) -> dict:
    """Published figures of a kernel by its id, such as "sgemm_tn"."""
    return next(row for row in _all()["kernels"] if row["id"] == name)


def _all() -> dict:
    return json.loads(files("cypresskit.data").joinpath("published.json").read_text())
