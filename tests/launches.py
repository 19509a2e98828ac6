"""Kernels in files: those of zoo/ have a bug, those of programs/ are to give the same bits wherever
they run.

A file begins with a title and, in a line each, its launch and what stands in the place of a word,
one of several: all of them in turn, each with all of another word's.
"""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def array(shape: list) -> np.ndarray:
    """An array of a file: its shape, then what it holds if that isn't 1, 2, 3, ..."""
    kind, *words = shape.pop().split() if isinstance(shape[-1], str) else [""]
    if words and kind in ("bits", "floats"):
        numbers = (
            [int(word, 0) for word in words] if kind == "bits" else [float(word) for word in words]
        )
        return np.array(numbers, np.uint32 if kind == "bits" else np.float32).reshape(shape)
    if kind == "pairs":
        return np.stack(np.meshgrid(*[np.array(words, np.float32)] * 2), -1)
    if kind == "random":
        return np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    dtype = {"double": np.float64, "whole": np.int32}.get(kind, np.float32)
    values = np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)
    if kind == "zeros":
        values = np.zeros(shape, np.uint32)
    return values


def launch_of(given: str | dict) -> dict:
    """The arguments that a file's launch stands for, as JSON or a table of TOML."""
    launch = json.loads(given) if isinstance(given, str) else deepcopy(given)
    for name in ("inputs", "constants", "outputs"):
        if name in launch:
            launch[name] = {int(n): array(shape) for n, shape in launch[name].items()}
    if "global_memory" in launch:
        launch["global_memory"] = array(launch["global_memory"])
    if "names" in launch:
        launch["names"] = {
            int(n) if n.isdigit() else n: name for n, name in launch["names"].items()
        }
    return launch


def programs(path: Path) -> Iterator[tuple[str, dict]]:
    """The texts of a file of programs/, and the launch of each."""
    head, body = path.read_text(encoding="utf-8").split("\n\n", 1)
    _, launch, *rest = head.splitlines()
    words = {
        name: choices.split(" | ")
        for name, choices in re.findall(r"^for (\w+): (.*)$", "\n".join(rest), re.M)
    }
    for chosen in product(*words.values()):
        text, given = body, launch.removeprefix("launch: ")
        for name, choice in zip(words, chosen):
            text, given = text.replace(name, choice), given.replace(name, choice)
        yield text, launch_of(given)
