"""Lesson 13: figures of then and now side by side, the reader's own GPU, and the checks of the
three exercises.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from shutil import which

from cypresskit.teach.check import chance
from cypresskit.teach.formula import formula_exercise
from cypresskit.today import figures, record

EVERY = {row["case"]: row["value"] for row in record()["rows"]}


def own() -> dict | None:
    """The record of the reader's GPU, measured now, in a minute or a few; None without a GPU or
    numba-cuda.
    """
    if not (which("nvidia-smi") and find_spec("numba_cuda")):
        return None
    from cypresskit.today.experiments import Bench

    return Bench().record()


def gain(experiment: str, before: str, after: str) -> float:
    """The factor by which the record's figure is better ``after`` than ``before``; for banks, less
    is better.
    """
    then, now = (figures(experiment)[case] for case in (before, after))
    return then / now if experiment.startswith("bank") else now / then


def beside(experiment: str, cypress: Mapping[str, float], mine: dict | None = None) -> str:
    """A table of Cypress's figures, the record's and the reader's, each also as a multiple of the
    first case's.
    """
    parts = {"Cypress": cypress, record()["device"]: figures(experiment)}
    parts |= {mine["device"]: figures(experiment, mine)} if mine else {}
    lines = [" " * 14 + "".join(f"{name:>22}" for name in parts)]
    for case in figures(experiment):
        pairs = [(values.get(case), next(iter(values.values()))) for values in parts.values()]
        cells = [f"{value:,.0f} {value / first:8.2f} x" if value else "-" for value, first in pairs]
        lines.append(f"{case:14}" + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join(lines)


@formula_exercise(
    [
        (96, 64, 0),
        (96, 32, 38000),
        (128, 256, 8192),
        (16, 256, 0),
        (166, 64, 0),
        (40, 1024, 100000),
    ],
    {
        "workgroups come whole: `//` rounds down.": (
            lambda r, t, s: min(65536 / (r * t), 233472 / (s + 1024), 2048 / t) * t / 32
        ),
        "workgroups come whole.": lambda r, t, s: min(
            65536 // (32 * r), 233472 // (s + 1024) * t // 32, 64
        ),
        "each takes 1,024 bytes more.": lambda r, t, s: (
            min(65536 // (r * t), 233472 // max(s, 1), 2048 // t) * t // 32
        ),
        "these are workgroups, not warps.": lambda r, t, s: min(
            65536 // (r * t), 233472 // (s + 1024), 2048 // t
        ),
        "shared memory is limited, too.": lambda r, t, s: (
            min(65536 // (r * t), 2048 // t) * t // 32
        ),
        "only 2,048 threads fit.": lambda r, t, s: (
            min(65536 // (r * t), 233472 // (s + 1024)) * t // 32
        ),
    },
    "how many whole workgroups do the registers allow, how many the shared memory, how many the"
    " threads?",
    " warps",
)
def check_warps(r, t, s):
    """Exercise 1: ``warps(registers, threads, shared)``, how many warps share a multiprocessor of
    the H200.
    """
    return min(65536 // (r * t), 233472 // (s + 1024), 2048 // t) * t // 32


@formula_exercise(
    [(256, 128, 4), (160, 64, 4), (128, 48, 8), (4096, 128, 2)],
    {
        "the clock moves bytes, not numbers: how many has a number?": lambda f, w, s: f / w,
        "upside down: more arithmetic needs a larger block.": lambda f, w, s: w / (f * s),
        "a step of k fetches a column *and* a row.": lambda f, w, s: f * s / w / 2,
        "each product is a multiplication and an addition: two operations.": lambda f, w, s: (
            2 * f * s / w
        ),
    },
    "in a step of k, how many clocks do 2b numbers take to arrive, and how many do the operations"
    " take?",
)
def check_smallest(f, w, s):
    """Exercise 2: ``smallest(flops, width, size)``, the side of a block that ``width`` bytes a
    clock can feed.
    """
    return f * s / w


def any_cases() -> tuple:
    """A random experiment of the record, and two of its cases."""
    experiment = chance.choice(
        ("block", "double", "size", "warps", "bank, one warp", "bank, 32 warps")
    )
    return experiment, *chance.sample([*figures(experiment)], 2)


@formula_exercise(
    [("block", "1 x 1", "8 x 8"), ("bank, one warp", "32", "33"), ("double", "4 x 4", "1 x 1")],
    {
        "several experiments have such a case: look at the experiment, too.": lambda e, b, a: (
            EVERY[a] / EVERY[b]
        ),
        "where the unit is a time, less is better.": lambda e, b, a: figures(e)[a] / figures(e)[b],
        "upside down: better means more than 1.": lambda e, b, a: gain(e, a, b),
        "a case may be worse: then it is less than 1.": lambda e, b, a: max(
            gain(e, b, a), gain(e, a, b)
        ),
        "that is how much more; asked is how many times.": lambda e, b, a: gain(e, b, a) - 1,
    },
    "find the two rows, divide their values, and mind the unit.",
    " times",
    name="gained",
    draw=any_cases,
)
def check_gained(e, b, a):
    """Exercise 3: ``gained(experiment, before, after)``, how many times better one case is than
    another.
    """
    return gain(e, b, a)
