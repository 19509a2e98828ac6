"""The numbers that the page's text names, and each step's gain and gauges."""

import re
from pathlib import Path

from cypresskit import published, today
from cypresskit.editing.steps import step_named  # noqa: F401  # by page.md
from cypresskit.gains import FIGURES, REFERENCE, Timed, idea_of  # noqa: F401  # by page.md
from cypresskit.kernels.compiled import compile
from cypresskit.timing import Report, simulate, simulate_published  # noqa: F401  # by page.md
from tools.climb_page.kernels import STEPS, UP, N, compared, report

PAPER = "sgemm_tn"  # the published kernel
_published = published.kernel(PAPER)
RECORD, BEST_N = _published["gflops_max"], _published["n_at_max"]
DOCS = Path(__file__).parents[2] / "docs"
UNITS = {
    "ALU": "arithmetic",
    "texture": "texture units",
    "LDS": "LDS",
    "L2": "L2 cache",
    "DRAM": "memory",
}
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
    return int(_printed("model", rf"^\| {PAPER} \| \d+ \| \d+ \| \d+ \| (\d+) \|"))


def misses() -> str:
    """Return how far the model is from all published figures, as ``tools/score.py`` prints it."""
    return _printed("figures", r"^(\d+ figures: median error .* worst [\d.]+ %)")


def _printed(document: str, pattern: str) -> str:
    """Return what a tool has printed into a document, and its test keeps as it is."""
    (found,) = re.findall(pattern, (DOCS / f"{document}.md").read_text(), re.M)
    return found


def llvm() -> Report:
    """Return how long LLVM's code of the published kernel takes."""
    return simulate(compile(PAPER, by="llvm"), REFERENCE)


def limits(name: str) -> list[str]:
    """Return the units that are as busy as the one that holds a step's kernel back."""
    busy, bound = gauges(name), report(name).bound
    return [unit for unit in busy if busy.get(bound, 100) - busy[unit] < 1]


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
    return f"{100 * (factor - 1):+.0f} %".replace("-", "\N{MINUS SIGN}")


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
