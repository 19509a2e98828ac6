"""The steps of the climb: one idea after the other, each typed into the same kernel.

A step is data: what it is about, how its kernel is launched and timed, and what it is asked to
reach. ``ck.workbench(step="02")`` opens one; what a reader types for it is in a file of its own
(``step_files``). Lessons and checks read the same table.
"""

import json
import os
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from cypresskit.draw.climb_picture import FIGURES, REFERENCE, Timed
from cypresskit.files.received import read_plain
from cypresskit.il.parser import MAX_TEXT
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.generated import block_kernel
from cypresskit.published import author
from cypresskit.published import kernel as published

FIRST = "00"  # the step that every reader begins with
SIDES = re.compile(r"block_(\d+)x(\d+)")
MIME = "application/vnd.cypresskit.step+json"  # of a notebook's output with a step's text
LARGEST = 64 << 20  # bytes of a notebook
LONGEST = MAX_TEXT // 4  # letters of a text in it: as many bytes as a file may have
CLOSE = 1.005  # times: speeds nearer than this are equal; the model is no better than that
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
class Step:
    """A step of the climb.

    ``idea`` is told in two sentences, ``hint`` leads on from any right kernel that isn't good yet.
    ``like``: the book's kernel by whose convention the text is launched, unless it asks for
    another. It is timed at m = n = k = ``n``. ``start``: the book's kernel with whose text it
    begins, by default the start that has the step's name. ``good`` names the kernel of the book's
    climb, and ``paper`` the published one, that set two of the pars; the first par is a ``share``
    of the good one. ``views`` are those of "Play it". ``previous``: the step whose kernel it goes
    on with; a step without one begins with its own start. ``old_c``: whether its kernel must add
    beta times the old C. ``opens`` names the panels of the workbench that are open from the start;
    with ``guess``, the costs open once the reader has guessed. ``blocks``, rows and columns, are
    drawn beside the hint. ``climbs``: whether it is a step of a reader's climb; the others are
    ideas beside it.
    """

    name: str
    title: str
    idea: str
    like: str
    share: float
    good: str
    views: tuple[str, ...]
    start: str = ""
    paper: str = "sgemm_tn"
    hint: str = ""
    opens: tuple[str, ...] = ()
    guess: bool = False
    blocks: tuple[tuple[int, int], ...] = ()
    previous: str = ""
    n: int = REFERENCE
    old_c: bool = False
    climbs: bool = True

    @property
    def file(self) -> str:
        """The name of the file with what the reader types for it."""
        return f"{self.name}.il"

    @property
    def pars(self) -> Pars:
        """The three pars."""
        gflops = FIGURES[Timed(self.good, self.n)].gflops
        return Pars(self.share * gflops, gflops, float(published(self.paper)["gflops_max"]))

    @property
    def record(self) -> str:
        """The surname of the author of the published kernel."""
        return author(self.paper)

    @property
    def book(self) -> str:
        """The book's text to begin with."""
        return book_text(self.start or self.name)


class StepText(NamedTuple):
    """A text that counts as a step's, and whether the step keeps it."""

    text: str
    kept: bool


def step_texts(outputs: object) -> dict[str, StepText]:
    """The texts of workbenches that count, by step, as the ``outputs`` of a notebook's cell have
    them; of the same step, the last. Outputs of anything else are ignored, whatever they are.
    """
    texts = {}
    for output in outputs if isinstance(outputs, list) else []:
        data = output.get("data") if isinstance(output, dict) else None
        held = data.get(MIME) if isinstance(data, dict) else None
        if not isinstance(held, dict):
            continue
        step, text = held.get("step"), held.get("text")
        if isinstance(step, str) and step in STEPS and isinstance(text, str):
            texts[step] = StepText(text, held.get("kept") is not False)
    return texts


def saved_texts() -> dict[str, StepText]:
    """The texts of this notebook's workbenches that count, by step, as it was saved last: a
    notebook that was moved holds the only copies. Jupyter says which file it is; where none is
    named, or what is there is no notebook, there are none.
    """
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    if path.suffix != ".ipynb":
        return {}
    try:
        cells = json.loads(read_plain(Path(os.path.realpath(path)), LARGEST))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    texts = step_texts(outputs)
    return {step: held for step, held in texts.items() if 0 < len(held.text) <= LONGEST}


def book_kernel(name: str) -> Kernel:
    """The book's kernel of a name: of the catalogue, or of a block (``"block_4x4"``). Raises
    ``KeyError`` for another name.
    """
    if sides := SIDES.fullmatch(name):
        return block_kernel(int(sides[1]), int(sides[2]), scaled=True)
    return KERNELS[name]


def book_text(name: str) -> str:
    """The text with which a step of this name begins, or of the book's kernel; a text is itself."""
    if "\n" in name:
        return name
    file = files("cypresskit").joinpath(f"editing/starts/{name}.il")
    return file.read_text(encoding="utf-8") if file.is_file() else book_kernel(name).text


def step_named(name: object) -> Step:
    """The step of a name. Raises ``ValueError`` that says which there are."""
    if not isinstance(name, str) or name not in STEPS:
        raise ValueError(f"step is one of {', '.join(map(repr, STEPS))}, not {name!r}")
    return STEPS[name]


STEPS = {
    step.name: step
    for step in (
        Step(
            name="00",
            title="One element",
            idea="Each work-item computes one element of C: it runs along a row of A and down "
            "a column of B. It fetches two numbers for each product.",
            like="sgemm_naive",
            share=0.0,
            good="sgemm_naive",
            guess=True,
            views=("chip", "texture_fetch"),
        ),
        Step(
            name="01a",
            title="Two by two",
            idea="A work-item computes a block of 2 x 2 elements of C: row 0 in r10, row 1 in "
            "r11. It uses each number that it fetches twice. From here on, A is stored transposed: "
            "A[k, row].",
            like="block_2x2",
            share=0.5,
            good="block_2x2",
            opens=("costs",),
            hint="does an iteration fetch two numbers of A and two of B, and use each twice?",
            views=("register_block",),
        ),
        Step(
            name="01b",
            title="Four by four",
            idea="A texel holds four neighbors, and one fetch returns them all. A block of 4 x 4 "
            "uses each of them four times. How many registers will it need? 2 x 2 needed 5.",
            opens=("registers",),
            like="block_4x4",
            share=0.9,
            good="block_4x4",
            hint="one texel of A and one of B make all 16 products: is more fetched?",
            views=("register_block",),
        ),
        Step(
            name="02",
            title="Larger blocks",
            idea="A block of 8 x 8 is four blocks of 4 x 4, and uses each fetched number eight "
            "times. One of the four is there. The block must fit into registers: how many will it "
            "need?",
            opens=("registers",),
            like="block_8x8",
            share=0.7,
            good="block_8x8",
            hint="is a side of the block still 4? Make it 8: fetch a second texel, double the sums "
            "and the stores, and multiply the first texel by 2. If the block is 8 x 8, lesson 03 "
            "is next.",
            blocks=((4, 4), (4, 8), (8, 8)),
            views=("register_block",),
        ),
        Step(
            name="03",
            title="The order of products",
            idea="Five operations fit into a bundle if their operands can be read at once. The "
            "order of the products decides this. Which line costs the most now: a fetch, or a "
            "product?",
            opens=("bundles",),
            like="block_8x8",
            share=0.94,
            good="block_8x8",
            hint="our solution has 16 bundles and 22 registers, for 11 wavefronts: which do you "
            "have more of? A bundle reads at most three registers of each channel: put the lines "
            "that use the same texel of B next to each other.",
            views=("bundles",),
            previous="02",
        ),
        Step(
            name="04",
            title="Late reads",
            idea="This kernel reads the old C before its loop, and needs it after. Until then, "
            "each number occupies a register, and registers decide how many wavefronts an engine "
            "holds. How many registers are enough?",
            opens=("registers",),
            like="block_8x8",
            share=0.98,
            good="block_8x8",
            hint="each number of C that waits for its `mad` occupies a register. What is the "
            "smallest number that has to wait at once?",
            views=("wavefronts",),
            old_c=True,
            climbs=False,
        ),
        Step(
            name="05",
            title="Which work-item computes what",
            idea="A compute kernel numbers its work-items itself, here row by row. Four "
            "consecutive numbers are a quad, and the texels that a quad requests decide how long "
            "a fetch takes. Which line costs the most?",
            opens=("costs", "limits"),
            like="sgemm_tn_compute",
            share=0.98,
            good="block_8x8",
            hint="a quad is four consecutive numbers, 4q to 4q + 3. For a square, which bit of "
            "the number moves down a row?",
            views=("texture_fetch",),
            climbs=False,
        ),
        Step(
            name="06",
            title="Doubles",
            idea="A register holds two doubles, and a product of two takes four slots of a "
            "bundle. A block of 4 x 4 matches what the texture units deliver. How many bundles "
            "will an iteration need?",
            opens=("bundles",),
            like="dgemm_tn",
            share=0.5,
            good="dgemm_tn",
            paper="dgemm_tn",
            hint="fetch the texels of four values of k per iteration, and add 4 to the counter.",
            views=("bundles",),
            climbs=False,
        ),
        Step(
            name="07",
            title="The local data share",
            idea="The 64 work-items of a group share what they fetch: each number of A is "
            "fetched once, and read from the LDS by all. None may read before all have written. "
            "Which line costs the most?",
            opens=("limits", "costs"),
            like="sgemm_64x64_lds",
            share=0.98,
            good="sgemm_64x64_lds",
            paper="sgemm_64x64_lds",
            hint="is a number of A still fetched eight times, instead of once and then read "
            "from the LDS?",
            views=("texture_fetch", "chip"),
            climbs=False,
        ),
        Step(
            name="12",
            title="Unrolled by two",
            idea="An iteration that handles two values of k has one test for both, and twice as "
            "many fetches in flight. How many bundles will it need?",
            opens=("bundles",),
            like="block_8x8",
            share=0.998,
            good="sgemm_tn",
            hint="is k counted once per iteration, by a literal of 2.0? And do all fetches of the "
            "iteration come before its first product?",
            views=("bundles",),
            previous="03",
        ),
        Step(
            name="larger",
            title="A larger product",
            idea="A larger product fills the chip more evenly, until DRAM spends its time opening "
            "rows.",
            opens=("limits",),
            like="sgemm_tn",
            start="sgemm_tn",
            share=0.0,
            good="sgemm_tn",
            views=("chip",),
            previous="12",
            n=4352,
            climbs=False,
        ),
        Step(
            name="contest",
            title="The contest",
            idea="Any correct kernel counts, with any block. A win is above 2,028 Gflop/s, half a "
            "percent more than the fastest of contest.generate_kernel. The check simulates every "
            "iteration of a close one, the workbench a sample. How full is the last round of "
            "wavefronts (exercise 2)?",
            opens=("costs", "bundles"),
            like="sgemm_tn",
            start="sgemm_tn",
            share=0.9,
            good="sgemm_tn",
            hint="what is the overhead of an iteration, besides products and fetches?",
            views=("chip",),
            previous="12",
        ),
    )
}
