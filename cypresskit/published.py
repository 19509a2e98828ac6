"""The figures printed in the five source texts (``data/published.json``, which names them), and
LLVM's code for the kernels (``data/llvm.json``, recorded with version and date by ``python -m
tools.llvm``).
"""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def figures() -> dict[str, Any]:
    """The whole file: ``kernels`` (rows with ``id``), ``host``, ``bandwidth_need_tb_s``, and a
    ``note`` on sources.
    """
    return _data("published.json")


@cache
def llvm() -> dict[str, Any]:
    """LLVM's version, the date, and for each kernel the registers and bundles of its loop as LLVM
    made them.
    """
    return _data("llvm.json")


def _data(name: str) -> dict[str, Any]:
    text = files("cypresskit.data").joinpath(name).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def kernels() -> dict[str, dict[str, Any]]:
    """The figures of every published kernel by its id, such as "sgemm_tn"."""
    return {row["id"]: row for row in figures()["kernels"]}


def kernel(name: str) -> dict[str, Any]:
    """Published figures of a kernel by its id."""
    return kernels()[name]


def author(name: str) -> str:
    """The surname of the first author of the text that a kernel's figures come from."""
    text = kernel(name)["source"].split()[0]
    named = re.search(rf"\b{text} (?:[A-Z]\. )*(\w+)", figures()["note"])
    assert named, name
    return named[1]


def host(name: str) -> dict[str, Any]:
    """Published figures about hosts: "dgemm_transfer_model", "cpu_baselines", "blocked_mma",
    "hybrid", "padding_limits".
    """
    row: dict[str, Any] = figures()["host"][name]
    return row
