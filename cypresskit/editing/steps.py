"""The steps of the climb: one idea after the other, each typed into the same kernel.

A step is data: what it is about, how its kernel is launched and timed, and what it is asked to
reach. ``ck.workbench(step="02")`` opens one; what a reader made of it is an entry of the history of
the kernel's file (``edits``). Lessons and checks read the same table.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from cypresskit.kernels import KERNELS
from cypresskit.kernels.generated import block_kernel
from cypresskit.published import kernel as published

FILE = "my_kernel.il"  # where a reader's kernel is
SIDES = re.compile(r"block_(\d+)x(\d+)")
MIME = "application/vnd.cypresskit.step+json"  # of a notebook's output with a step's kept text
WITHIN = 0.02  # of a par: a speed that is this little below it is "within 2 %"


@dataclass(frozen=True)
class Pars:
    """What a step asks for, in Gflop/s: ``right``, with which a right kernel counts as this step's;
    ``good``, the book's kernel; ``paper``, the published one.
    """

    right: float
    good: float
    paper: float


@dataclass(frozen=True)
class Question:
    """What is asked before the edit, and of what its answer will be known: the dearest ``"line"``
    of the text that stands there, or the ``"gflops"`` of the first kernel that is kept.
    """

    text: str
    about: str


@dataclass(frozen=True)
class Step:
    """A step of the climb.

    ``idea`` is told in two sentences, ``hint`` leads on from a right kernel that isn't good yet.
    ``like``: the kernel of the catalogue by whose convention it is launched, or "", which finds it
    out. It is timed at m = n = k = ``n``. ``start``: the book's text to begin with, or the name of
    the kernel that has it. ``right`` is the first par; ``good`` names the kernel of the road, and
    ``paper`` the published one, that set the others. ``views`` are those of "Play it".
    ``previous``: the step whose kernel it goes on with; a step without one begins with its own
    ``start``.
    """

    name: str
    title: str
    idea: str
    like: str
    start: str
    right: float
    good: str
    paper: str
    question: Question
    hint: str
    views: tuple[str, ...]
    previous: str = ""
    n: int = 2048

    @property
    def pars(self) -> Pars:
        """The three pars."""
        gflops = _road()[self.good, self.n]
        return Pars(self.right, gflops, float(published(self.paper)["gflops_max"]))

    @property
    def book(self) -> str:
        """The book's text to begin with."""
        return book_text(self.start)

    @property
    def line(self) -> str:
        """The first step of those that go on with one kernel."""
        return STEPS[self.previous].line if self.previous else self.name


def kept_texts(outputs: object) -> dict[str, str]:
    """The texts that workbenches kept, by step, as the ``outputs`` of a notebook's cell have them;
    of the same step, the last. What is none of a workbench's is left alone, whatever it is.
    """
    texts = {}
    for output in outputs if isinstance(outputs, list) else []:
        data = output.get("data") if isinstance(output, dict) else None
        held = data.get(MIME) if isinstance(data, dict) else None
        step, text = (held.get("step"), held.get("text")) if isinstance(held, dict) else ("", "")
        if isinstance(step, str) and step in STEPS and isinstance(text, str):
            texts[step] = text
    return texts


def book_text(start: str) -> str:
    """The text of a kernel of the catalogue or of a block (``"block_4x4"``); a text is itself."""
    if "\n" in start:
        return start
    if sides := SIDES.fullmatch(start):
        return block_kernel(int(sides[1]), int(sides[2]), scaled=True).text
    return KERNELS[start].text


@cache
def _road() -> dict[tuple[str, int], float]:
    """The Gflop/s of each launch of the road, by kernel and N."""
    rows = json.loads(files("cypresskit").joinpath("draw/road.json").read_text(encoding="utf-8"))
    return {(kernel, n): gflops for (kernel, n, _), (gflops, *_) in rows}


def step_named(name: object) -> Step:
    """The step of a name. Raises ``ValueError`` that says which there are."""
    if not isinstance(name, str) or name not in STEPS:
        raise ValueError(f"step is one of {', '.join(map(repr, STEPS))}, not {name!r}")
    return STEPS[name]


_SPEED = Question("How many Gflop/s will it reach?", "gflops")
_DEAR = Question("Which line is dear: without which would the launch end soonest?", "line")

STEPS = {
    step.name: step
    for step in (
        Step(
            name="00",
            title="One element",
            idea="Each work-item computes one element of C: it runs along a row of A and down a"
            " column of B. Two numbers are fetched for each product.",
            like="sgemm_naive",
            start="sgemm_naive",
            right=0,
            good="sgemm_naive",
            paper="sgemm_tn",
            question=_DEAR,
            hint="",
            views=("chip", "texture_fetch"),
        ),
        Step(
            name="01 2x2",
            title="Two by two",
            idea="A work-item computes a block of 2 x 2 elements. Each number that it fetches is"
            " used twice.",
            like="sgemm_naive",
            start="sgemm_naive",
            right=150,
            good="block_2x2",
            paper="sgemm_tn",
            question=_SPEED,
            hint="each number of A meets both of B",
            views=("register_block",),
            previous="00",
        ),
        Step(
            name="01",
            title="Four by four",
            idea="A texel holds four neighbours, and one fetch brings them all. A block of 4 x 4"
            " uses each of them four times.",
            like="",
            start="block_2x2",
            right=600,
            good="block_4x4",
            paper="sgemm_tn",
            question=_SPEED,
            hint="fetch whole texels, and store whole ones",
            views=("register_block",),
            previous="01 2x2",
        ),
        Step(
            name="02",
            title="Larger blocks",
            idea="The larger the block, the more products are made of what was fetched. The block"
            " must fit into registers.",
            like="",
            start="block_4x4",
            right=1200,
            good="block_8x8",
            paper="sgemm_tn",
            question=_SPEED,
            hint="4 x 8 is a start; try 8 x 8",
            views=("register_block",),
            previous="01",
        ),
        Step(
            name="03",
            title="The order of products",
            idea="Five operations fit into a bundle if their numbers can be read at once. Which"
            " products stand beside each other decides it.",
            like="",
            start="block_8x8",
            right=1500,
            good="block_8x8",
            paper="sgemm_tn",
            question=_DEAR,
            hint="a bundle reads three registers of each channel: which four neighbours share"
            " numbers of B, and not of A alone?",
            views=("bundles",),
            previous="02",
        ),
        Step(
            name="04",
            title="Late reads",
            idea="A number of the old C that waits holds a register. The fewer wait, the more"
            " wavefronts an engine holds.",
            like="",
            start="block_8x8",
            right=1500,
            good="block_8x8",
            paper="sgemm_tn",
            question=_SPEED,
            hint="each number of C that waits for its `mad` holds a register. How few can wait at"
            " once, and when?",
            views=("wavefronts",),
            previous="03",
        ),
        Step(
            name="05",
            title="Who computes what",
            idea="A compute kernel numbers its work-items itself. The quads that it makes decide"
            " what the cache sees.",
            like="sgemm_tn_compute",
            start="sgemm_tn_compute",
            right=500,
            good="block_8x8",
            paper="sgemm_tn",
            question=_SPEED,
            hint="a quad is four numbers in a row, 4q to 4q + 3. For a square, which bit of the"
            " number moves down a row?",
            views=("texture_fetch",),
        ),
        Step(
            name="06",
            title="Doubles",
            idea="A double takes two registers' components, and a product of two takes four slots.",
            like="dgemm_tn",
            start="dgemm_tn",
            right=100,
            good="dgemm_tn",
            paper="dgemm_tn",
            question=_SPEED,
            hint="",
            views=("bundles",),
        ),
        Step(
            name="07",
            title="The local data share",
            idea="Work-items of a group share what they fetch. Each number of A is fetched once and"
            " read from the LDS by all.",
            like="sgemm_64x64_lds",
            start="sgemm_64x64_lds",
            right=500,
            good="sgemm_64x64_lds",
            paper="sgemm_64x64_lds",
            question=_SPEED,
            hint="is a number of A still fetched eight times, instead of once and then read from"
            " the LDS?",
            views=("lds",),
        ),
        Step(
            name="12",
            title="Two steps a turn",
            idea="A turn of the loop that does two steps of k pays for its counting once.",
            like="",
            start="block_8x8",
            right=1800,
            good="sgemm_tn",
            paper="sgemm_tn",
            question=_SPEED,
            hint="",
            views=("bundles",),
            previous="04",
        ),
        Step(
            name="larger N",
            title="A larger product",
            idea="A larger product fills the chip more evenly, until memory's rows stand in the"
            " way.",
            like="",
            start="sgemm_tn",
            right=0,
            good="sgemm_tn",
            paper="sgemm_tn",
            question=_SPEED,
            hint="",
            views=("chip",),
            previous="12",
            n=4352,
        ),
        Step(
            name="contest",
            title="The contest",
            idea="Anything goes that is right.",
            like="",
            start="sgemm_tn",
            right=0,
            good="sgemm_tn",
            paper="sgemm_tn",
            question=_SPEED,
            hint="",
            views=("chip",),
            previous="12",
        ),
    )
}
