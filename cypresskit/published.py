"""Read the published figures: ``data/published.json``, which names the five papers."""

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from cypresskit import devices
from cypresskit.devices import System


@dataclass(frozen=True)
class Conditions:
    """What an author timed.

    Attributes
    ----------
    system
        The computer, with its launch overhead.
    beta
        The factor of the old C. If it isn't 0, the kernel reads C.
    timed
        What was in the time.
    sizes
        The N that were measured; empty if they aren't known.
    source, assumed
        Where this is stated, and what is assumed beyond it.
    """

    system: System
    beta: float
    timed: str
    sizes: range
    source: str
    assumed: str

    @property
    def options(self) -> dict[str, Any]:
        """The options of ``ck.simulate`` that reproduce the conditions."""
        return {"beta": self.beta, "system": self.system}

    def __str__(self) -> str:
        """What is printed below speeds that were simulated by these conditions."""
        reads = "C is read, and " if self.beta else ""
        overhead = f"{self.system.launch_overhead_us:g} µs"
        return f"modeled as published: {reads}a launch's {overhead} are within the time"


@cache
def figures() -> dict[str, Any]:
    """Return ``published.json``.

    Its keys are ``kernels`` (rows with an ``id``), ``conditions`` (what each author timed),
    ``host``, ``bandwidth_need_tb_s``, and ``note`` (names the sources).
    """
    text = files("cypresskit.data").joinpath("published.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def kernels() -> dict[str, dict[str, Any]]:
    """Return the figures of all published kernels by id, such as "sgemm_tn"."""
    return {row["id"]: row for row in figures()["kernels"]}


def kernel(name: str) -> dict[str, Any]:
    """Return the published figures of a kernel by its id."""
    return kernels()[name]


def size_of(name: str) -> int:
    """Return the N for which a kernel's speed was published, or the one that is assumed.

    Raises ``ValueError`` if there is neither.
    """
    row = kernel(name)
    for field in ("n_at_max", "n", "n_assumed"):
        if field in row:
            return int(row[field])
    raise ValueError(f"{name} was published without an N: pass n")


def conditions(name: str) -> Conditions:
    """Return what was timed for a kernel's figures.

    ``ck.simulate_published(name)`` simulates that.
    """
    row = figures()["conditions"][kernel(name)["conditions"]]
    first, last, step = row["sizes"] or (0, -1, 1)
    given = {"system": getattr(devices, row["system"]), "sizes": range(first, last + 1, step)}
    return Conditions(**(row | given))


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
