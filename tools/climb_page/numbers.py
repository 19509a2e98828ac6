"""The numbers that the page's text names, and each step's gain and gauges."""

import re
from pathlib import Path

from cypresskit import published, today
from cypresskit.editing.steps import reference_kernel, step_named  # noqa: F401  # by page.md
from cypresskit.gains import FIGURES, REFERENCE, Timed, idea_of  # noqa: F401  # by page.md
from cypresskit.kernels.compiled import compile
from cypresskit.timing import simulate, simulate_published
from tools.climb_page.kernels import LAST, STEPS, UP, N, compared, report

PAPER = "sgemm_tn"  # the published kernel
_published = published.kernel(PAPER)
RECORD, BEST_N = _published["gflops_max"], _published["n_at_max"]
TODAY_N = today.record()["n"]
MODEL = Path(__file__).parents[2] / "docs/model.md"
UNITS = {
    "ALU": "arithmetic",
    "texture": "texture units",
    "LDS": "LDS",
    "L2": "L2 cache",
    "DRAM": "memory",
}
#: What holds a kernel back, by the report's ``bound``.
LIMITS = {
    "texture": "the texture units",
    "ALU": "arithmetic",
    "latency": "none of these, wavefronts wait",
}
MINUS = "\N{MINUS SIGN}"
#: Where a step's change was measured on the H200: the experiment, its cases before and after.
TODAY = {
    "01a": ("block", "1 x 1", "2 x 2"),
    "01b": ("block", "2 x 2", "4 x 4"),
    "02": ("block", "4 x 4", "8 x 8"),
    "03": ("order", "as in step 4", "by texel of B"),
    "12": ("order", "by texel of B", "by texel of B, two values of k"),
}


def speed(name: str, n: int = N) -> float:
    """Return the speed of a step's kernel in Gflop/s."""
    return report(name, n).gflops


def left_out() -> int:
    """Return the published kernel's predicted speed in Gflop/s, with the rates fitted to all other
    kernels: the row of docs/model.md that ``tools/sensitivity.py`` prints.
    """
    row = re.search(rf"^\| {PAPER} \| \d+ \| \d+ \| \d+ \| (\d+) \|", MODEL.read_text(), re.M)
    assert row, "docs/model.md has lost its table"
    return int(row[1])


def losses() -> list[float]:
    """Return what each of the steps down loses, as a share."""
    return [1 - factor(name) for name in STEPS if name not in UP]


def as_measured() -> float:
    """Return the published kernel's simulated speed in Gflop/s, timed as its authors did."""
    return simulate_published(PAPER, BEST_N).gflops


def generated() -> float:
    """Return the generated kernel's speed in Gflop/s."""
    return FIGURES[Timed("block_12x8x3")].gflops


def unrolled(k: int) -> float:
    """Return the speed in Gflop/s of the generated block of 8 x 8 with k values per iteration."""
    return simulate(reference_kernel(f"block_8x8x{k}"), REFERENCE).gflops


def by_llvm() -> float:
    """Return the speed of LLVM's code of the published kernel, in percent of that of ours."""
    return 100 * simulate(compile(PAPER, by="llvm"), REFERENCE).gflops / speed(LAST, REFERENCE)


def limit(name: str) -> tuple[str, list[str]]:
    """Return what holds a step's kernel back, in words, and the units that are as busy as any."""
    busy, bound = gauges(name), report(name).bound
    units = [unit for unit in busy if busy.get(bound, 100) - busy[unit] < 1 and unit in LIMITS]
    return " and ".join(LIMITS[unit] for unit in units or [bound]), units


def h200(experiment: str, slower: str, faster: str) -> float:
    """Return the second case's figure over the first's, as measured on the H200."""
    figures = today.figures(experiment)
    return figures[faster] / figures[slower]


def filled(text: str) -> str:
    """Return a text with the values of the expressions in its braces. Speeds of steps and of the
    generated kernel are those of the chip alone, as the page says.
    """
    return str(eval(f"f{text!r}", globals()))


def factor(name: str) -> float:
    """Return a step's speed over that of the kernel that it is compared with, at the page's N."""
    return speed(name) / speed(compared(name))


def growth(factor: float) -> str:
    """Return a factor in words: from 1.5 on as such, or else in percent."""
    if factor > 1.5:
        return f"{factor:.1f} ×"
    return f"{100 * (factor - 1):+.0f} %".replace("-", MINUS)


def gain(name: str) -> tuple[str, str]:
    """Return how a step's speed compares, with which step's, and the kind: "up", "down" or ""."""
    if name == UP[0]:
        return f"{report(name).percent:.1f} % of the chip's peak", ""
    kind = "up" if name in UP else "down"
    return f"{growth(factor(name))} vs step {number(compared(name))}", kind


def number(name: str) -> int:
    """Return a step's number on the page."""
    return STEPS.index(name) + 1


def gauges(name: str) -> dict[str, float]:
    """Return how busy each unit is, in percent, by its name in ``UNITS``; not an unused LDS."""
    shares = {unit: 100 * report(name).busy.get(unit, 0) for unit in UNITS}
    return {unit: share for unit, share in shares.items() if unit != "LDS" or share >= 1}
