"""The steps of the climb: each adds one idea to the reader's kernel.

A step is data: its idea, how its kernel is launched and timed, and its targets.
``ck.workbench(step="02")`` opens one, in its own file (``step_files``). Lessons and checks read the
same table.
"""

import json
import os
import re
from contextlib import suppress
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
from cypresskit.published import kernel as published_kernel

FIRST = "00"  # the first step
SIDES = re.compile(r"block_(\d+)x(\d+)")
MIME = "application/vnd.cypresskit.step+json"  # of a notebook's output that holds a step's text
LARGEST = 64 << 20  # bytes of a notebook
LONGEST = MAX_TEXT // 4  # characters of a text in it; a file may have as many bytes
CLOSE = 1.005  # a ratio: closer speeds count as equal, since the model is no more precise
WITHIN = 0.02  # share of a target: a speed this close below it is shown as nearly reaching it


@dataclass(frozen=True)
class Targets:
    """The targets of a step, in Gflop/s."""

    minimum: float  # a correct kernel this fast passes the step
    reference: float  # of the reference kernel
    published: float  # of the published kernel


@dataclass(frozen=True)
class Step:
    """A step of the climb."""

    name: str
    title: str
    idea: str  # in two or three sentences
    like: str  # kernel whose launch convention the text has, unless it stores C in another way
    share: float  # of the reference kernel's speed: the minimum
    reference: str  # name of the kernel that sets the second target
    views: tuple[str, ...]  # names of the views that can be played
    start: str = ""  # kernel that it starts from, if not the file in ``starts`` with its name
    published: str = "sgemm_tn"  # name of the published kernel that sets the third target
    hint: str = ""  # shown for a correct kernel that is slower than the reference kernel
    opens: tuple[str, ...] = ()  # panels that are open at first
    guess: bool = False  # the costs open once the reader has guessed the most expensive line
    blocks: tuple[tuple[int, int], ...] = ()  # rows and columns, drawn beside the hint
    previous: str = ""  # step whose kernel it continues with
    n: int = REFERENCE  # m = n = k at which its kernel is timed
    old_c: bool = False  # whether the kernel must add beta times the old C
    climbs: bool = True  # whether it is part of the reader's climb; the others are side steps

    @property
    def file(self) -> str:
        """The name of the reader's file for this step."""
        return f"{self.name}.il"

    @property
    def targets(self) -> Targets:
        """The three targets."""
        gflops = FIGURES[Timed(self.reference, self.n)].gflops
        record = float(published_kernel(self.published)["gflops_max"])
        return Targets(self.share * gflops, gflops, record)

    @property
    def record(self) -> str:
        """The surname of the author of the published kernel."""
        return author(self.published)

    @property
    def starter(self) -> str:
        """The given source that the step starts from."""
        return starter_text(self.start or self.name)


class StepText(NamedTuple):
    """The text that a notebook submits for a step, and whether it passed the step (``kept``)."""

    text: str
    kept: bool


def step_texts(outputs: object) -> dict[str, StepText]:
    """Return the submitted texts, by step, in the ``outputs`` of a notebook's cell; for each step,
    the last one. All other outputs are ignored.
    """
    texts = {}
    for output in outputs if isinstance(outputs, list) else []:
        with suppress(KeyError, TypeError, AttributeError):
            held = output["data"][MIME]
            step, text = held["step"], held["text"]
            if step in STEPS and isinstance(text, str):
                texts[step] = StepText(text, held.get("kept") is not False)
    return texts


def saved_texts() -> dict[str, StepText]:
    """Return the submitted texts, by step, in the saved file of this notebook. A notebook that was
    moved to another folder holds the only copies. Without a file that Jupyter names, the result is
    empty.
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


def reference_kernel(name: str) -> Kernel:
    """Return a kernel of the catalog, or the generated one of a block, such as ``"block_4x4"``.
    Raises ``KeyError`` for other names.
    """
    if sides := SIDES.fullmatch(name):
        return block_kernel(int(sides[1]), int(sides[2]), scaled=True)
    return KERNELS[name]


def starter_text(name: str) -> str:
    """Return the source in ``starts`` of this name, or of the kernel; a source stays as it is."""
    if "\n" in name:
        return name
    file = files("cypresskit").joinpath(f"editing/starts/{name}.il")
    return file.read_text(encoding="utf-8") if file.is_file() else reference_kernel(name).text


def step_named(name: object) -> Step:
    """Return a step by its name. Raises ``ValueError`` for other names."""
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
            reference="sgemm_naive",
            guess=True,
            views=("chip", "texture_fetch"),
        ),
        Step(
            name="01a",
            title="Two by two",
            idea="A work-item computes a block of 2 x 2 elements of C: row 0 in r10, row 1 in "
            "r11. It uses each fetched number twice. From here on, A is stored transposed: "
            "A[k, row].",
            like="block_2x2",
            share=0.5,
            reference="block_2x2",
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
            reference="block_4x4",
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
            reference="block_8x8",
            hint="first widen the block to 4 x 8: fetch the second texel of B into `r5`, and add a "
            "`mad` for each of rows 0 to 3. Then make it 8 x 8: fetch the second texel of A into "
            "`r3`, and add two `mad`s for each of rows 4 to 7.",
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
            reference="block_8x8",
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
            reference="block_8x8",
            hint="each element of C that waits for its `mad` takes part of a register. How few "
            "have to wait at the same time?",
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
            reference="block_8x8",
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
            reference="dgemm_tn",
            published="dgemm_tn",
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
            reference="sgemm_64x64_lds",
            published="sgemm_64x64_lds",
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
            reference="sgemm_tn",
            hint="does an iteration handle two values of k, with their eight fetches? Is k counted "
            "once for both, by a literal of 2.0?",
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
            reference="sgemm_tn",
            views=("chip",),
            previous="12",
            n=4352,
            climbs=False,
        ),
        Step(
            name="contest",
            title="The contest",
            idea="Any correct kernel counts, with any block. A win is above 2,028 Gflop/s, half a "
            "percent more than the fastest of contest.generate_kernel. Near that speed the check "
            "simulates every iteration; the workbench simulates a sample. How full is the last "
            "round of wavefronts (exercise 2)?",
            opens=("costs", "bundles"),
            like="sgemm_tn",
            start="sgemm_tn",
            share=0.9,
            reference="sgemm_tn",
            hint="what is the overhead of an iteration, besides products and fetches?",
            views=("chip",),
            previous="12",
        ),
    )
}
