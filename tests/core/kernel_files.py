"""Kernels in files: those of zoo/ have a bug, those of programs/ are to give the same bits wherever
they run.

A file is TOML: a ``title``, the ``launch``, and a ``text``, or ``bug`` and ``near_miss``. In the
place of a word that is among the ``choices`` stands one of them: all in turn, each with all of
another word's.
"""

import tomllib
from copy import deepcopy
from itertools import product

import numpy as np


def array(shape):
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


def launch_of(table):
    """The arguments that a file's launch stands for."""
    launch = deepcopy(table)
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


def replace_words(value, words):
    """A text, or all texts in a table or list, with each of the ``words`` replaced."""
    if isinstance(value, dict):
        return {name: replace_words(item, words) for name, item in value.items()}
    if isinstance(value, list):
        return [replace_words(item, words) for item in value]
    if isinstance(value, str):
        for word, choice in words.items():
            value = value.replace(word, choice)
    return value


def programs(path):
    """The texts of a file of programs/, and the launch of each."""
    case = tomllib.loads(path.read_text())
    choices = case.get("choices", {})
    for chosen in product(*choices.values()):
        words = dict(zip(choices, chosen))
        yield replace_words(case["text"], words), launch_of(replace_words(case["launch"], words))
