"""Read the published figures: ``data/published.json``, which names the five papers.

``data/llvm.json`` has statistics of LLVM's code for the kernels; ``python -m tools.llvm`` writes
it.
"""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def figures() -> dict[str, Any]:
    """Return ``published.json``.

    Its keys are ``kernels`` (rows with an ``id``), ``host``, ``bandwidth_need_tb_s``, and ``note``
    (names the sources).
    """
    return _data("published.json")


@cache
def llvm() -> dict[str, Any]:
    """Return LLVM's version, the date, and the registers and loop bundles of each kernel."""
    return _data("llvm.json")


def _data(name: str) -> dict[str, Any]:
    text = files("cypresskit.data").joinpath(name).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def kernels() -> dict[str, dict[str, Any]]:
    """Return the figures of all published kernels by id, such as "sgemm_tn"."""
    return {row["id"]: row for row in figures()["kernels"]}


def kernel(name: str) -> dict[str, Any]:
    """Return the published figures of a kernel by its id."""
    return kernels()[name]


def author(name: str) -> str:
    """Return the surname of the first author of the paper with a kernel's figures."""
    text = kernel(name)["source"].split()[0]
    named = re.search(rf"\b{text} (?:[A-Z]\. )*(\w+)", figures()["note"])
    assert named, name
    return named[1]


def host(name: str) -> dict[str, Any]:
    """Return published figures about hosts.

    ``name`` is "dgemm_transfer_model", "cpu_baselines", "blocked_mma", "hybrid" or
    "padding_limits".
    """
    row: dict[str, Any] = figures()["host"][name]
    return row
