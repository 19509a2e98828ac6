"""What each idea of the course gains: the one list of the climb.

Its picture (``draw.climb``), the workbench's steps, and the site's first page print these titles
and speeds. Titles of steps are those of ``data/steps.toml``. Speeds are the timing model's, of
the chip alone, stored in ``data/climb.json`` by ``python -m tools.stored_figures``.
"""

import json
import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

REFERENCE = 2048  # the N of most steps


class Timed(NamedTuple):
    """A kernel, or a function of ``host``, and the N for which it is timed."""

    kernel: str  #: as ``editing.steps.reference_kernel`` takes it
    n: int = REFERENCE


class Figure(NamedTuple):
    """The speed of a launch and its limit."""

    gflops: float
    ceiling: float  #: Gflop/s if the busiest unit never paused
    unit: str  #: the busiest unit


class Idea(NamedTuple):
    """An idea of the course."""

    lesson: int  #: that explains it
    name: str
    launch: Timed
    before: Timed | None = None  #: the launch that it is compared with
    step: str = ""  #: the workbench's step that adds it to the kernel; "": beside the climb
    #: If it changes two things: the launch with the second one alone, and what that is.
    halfway: tuple[Timed, str] | None = None

    @property
    def is_step(self) -> bool:
        """Whether it is a step of the climb."""
        return bool(self.step)

    @property
    def gflops(self) -> float:
        """Its speed in Gflop/s."""
        return FIGURES[self.launch].gflops

    @property
    def factor(self) -> float:
        """How many times as fast it is as the launch before; 1.0 for the first step."""
        return self.gflops / FIGURES[self.before].gflops if self.before else 1.0

    @property
    def causes(self) -> tuple[float, float]:
        """The factors of an idea that changes two things: of the first, and of the second."""
        assert self.before and self.halfway, self.name
        between = FIGURES[self.halfway[0]].gflops
        return self.gflops / between, between / FIGURES[self.before].gflops


def _read(path: str) -> str:
    return files("cypresskit").joinpath(path).read_text(encoding="utf-8")


#: The rows of the file of steps, by name.
STEP_ROWS: dict[str, dict[str, Any]] = tomllib.loads(_read("data/steps.toml"))
FIGURES: dict[Timed, Figure] = {
    Timed(*launch): Figure(*figure) for launch, figure in json.loads(_read("data/climb.json"))
}


def _step(
    lesson: int,
    step: str,
    launch: Timed,
    before: Timed | None = None,
    halfway: tuple[Timed, str] | None = None,
) -> Idea:
    """Return a step of the climb, with its title."""
    return Idea(lesson, STEP_ROWS[step]["title"], launch, before, step, halfway)


NAIVE, TRANSPOSED = Timed("sgemm_naive"), Timed("block_1x1")
BLOCK_2, BLOCK_4 = Timed("block_2x2"), Timed("block_4x4")
#: The kernels with our solution's lines: 8 x 8, and the same lines in a better order.
BLOCK_8, REORDERED = Timed("our_step_02"), Timed("our_step_03")
SINGLE, DOUBLE = Timed("sgemm_tn"), Timed("dgemm_tn")
NN = Timed("sgemm_nn")
LARGER = Timed("sgemm_tn", 4352)
ROUND_TRIP = Timed("round_trip_timeline")
BLOCKED = Timed("blocked_timeline", 7168)
IDEAS = (
    _step(0, "00", NAIVE),
    _step(1, "01a", BLOCK_2, NAIVE, (TRANSPOSED, "A stored transposed")),
    _step(1, "01b", BLOCK_4, BLOCK_2),
    _step(2, "02", BLOCK_8, BLOCK_4),
    _step(3, "03", REORDERED, BLOCK_8),
    _step(12, "12", SINGLE, REORDERED),
    _step(12, "larger", LARGER, SINGLE),
    Idea(1, "A transposed, no block", TRANSPOSED, NAIVE),
    Idea(4, "registers: 25, not 37", SINGLE, Timed("sgemm_tn_37")),
    Idea(5, "square quads", SINGLE, Timed("sgemm_tn_compute")),
    Idea(5, "NN, not TN", NN, SINGLE),
    Idea(6, "double", DOUBLE, SINGLE),
    Idea(6, "double-double", Timed("ddgemm_tn_fma"), DOUBLE),
    Idea(7, "NN through the LDS", Timed("sgemm_64x64_lds"), NN),
    Idea(8, "helpers", Timed("sgemm_nn_reduce4", 256), Timed("sgemm_nn", 256)),
    Idea(9, "double, with transfers", ROUND_TRIP, DOUBLE),
    Idea(10, "in blocks", BLOCKED, ROUND_TRIP),
    Idea(11, "two chips, pipeline", Timed("five_stage", 16384), BLOCKED),
)
#: Every launch whose speed is stored for an idea.
LAUNCHES = frozenset(
    launch
    for idea in IDEAS
    for launch in (idea.launch, idea.before, idea.halfway and idea.halfway[0])
    if launch
)


def idea_of(step: str) -> Idea:
    """Return the idea that a step of the climb adds. Raises ``KeyError`` for other names."""
    return {idea.step: idea for idea in IDEAS if idea.step}[step]
