"""The steps of the climb: each adds one idea to the reader's kernel.

A step is data: its idea, how its kernel is launched and timed, and its targets. They are in
``steps.toml``. ``ck.workbench(step="02")`` opens one, in its own file (``step_files``). Lessons and
checks read the same table.
"""

import json
import os
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
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
BLOCK = re.compile(r"block_(\d+)x(\d+)(?:x(\d+))?")  # rows, columns, values of k per iteration
MIME = "application/vnd.cypresskit.step+json"  # of a notebook's output that holds a step's text
LARGEST = 64 << 20  # bytes of a notebook
LONGEST = MAX_TEXT // 4  # characters of a text in it; a file may have as many bytes
CLOSE = 1.005  # a ratio: closer speeds count as equal, since the model is no more precise


_OUTPUTS = replace(KERNELS["sgemm_tn_stream"].convention, block=(4, 4), streams=4, k_step=1)
#: How kernels are launched that are written from an empty editor.
EMPTY = {"four_outputs_tn": _OUTPUTS, "four_outputs_nn": replace(_OUTPUTS, trans_a=False, k_step=4)}


@dataclass(frozen=True)
class Targets:
    """The targets of a step, in Gflop/s."""

    minimum: float  # a correct kernel this fast passes the step
    reference: float  # of the reference kernel
    published: float  # of the published kernel: a record is above it


@dataclass(frozen=True)
class Step:
    """A step of the climb."""

    name: str
    title: str
    idea: str  # in two or three sentences
    like: str  # kernel whose launch convention the text has, unless it stores C in another way
    share: float  # of the reference kernel's speed: the minimum
    reference: str  # name of the kernel that sets the second target
    start: str = ""  # kernel that it starts from, if not the file in ``starts`` with its name
    published: str = "sgemm_tn"  # name of the published kernel that sets the third target
    hint: str = ""  # for a correct kernel that is slower than the reference; "": what would help
    opens: tuple[str, ...] = ()  # panels that are open at first
    guess: bool = False  # the costs open once the reader has guessed the most expensive line
    previous: str = ""  # step whose kernel it continues with
    n: int = REFERENCE  # m = n = k at which its kernel is timed
    whole: bool = False  # whether the whole launch is simulated, if its blocks are large
    old_c: bool = False  # whether the kernel must add beta times the old C
    solution: tuple[str, ...] = ()  # lines, one of which is shown to a reader who is stuck
    leads: bool = False  # whether a sentence says what an incomplete kernel doesn't do yet
    climbs: bool = True  # whether it is part of the reader's climb; the others are side steps

    @property
    def file(self) -> str:
        """The name of the reader's file for this step."""
        return f"{self.name}.il"

    @property
    def targets(self) -> Targets:
        """The three targets, in the digits of a shown speed."""
        gflops = FIGURES[Timed(self.reference, self.n)].gflops
        record = float(published_kernel(self.published)["gflops_max"])
        return Targets(*map(shown_speed, (self.share * gflops, gflops, record)))

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
    lines_shown: int = 0  #: of the solution, to a reader who was stuck


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
                lines = held.get("lines_shown")
                lines = lines if type(lines) is int else 0
                texts[step] = StepText(text, held.get("kept") is not False, lines)
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
    """Return a kernel of the catalog, or the generated one of a block, such as ``"block_4x4"`` or,
    with three values of k per iteration, ``"block_12x8x3"``. Raises ``KeyError`` for other names.
    """
    if name in EMPTY:
        return Kernel(name, starter_text(name), EMPTY[name])
    if block := BLOCK.fullmatch(name):
        rows, columns, steps = (int(number or 1) for number in block.groups())
        return block_kernel(rows, columns, steps, scaled=True)
    return KERNELS[name]


def starter_text(name: str) -> str:
    """Return the source in ``starts`` of this name, or of the kernel; a source stays as it is."""
    if "\n" in name:
        return name
    file = files("cypresskit").joinpath(f"editing/starts/{name}.il")
    return file.read_text(encoding="utf-8") if file.is_file() else reference_kernel(name).text


def kernel_name(file: str) -> str:
    """Return what the kernel in a file is called, such as "your step 05" in that step's."""
    name = file.removesuffix(".il")
    if name in STEPS:
        return f"your step {name}" if name[0].isdigit() else "your kernel"
    return name


def shown_speed(gflops: float) -> float:
    """Return a speed in the four digits in which it is shown, saved and compared with targets."""
    return float(f"{gflops:.4g}")


def step_named(name: object) -> Step:
    """Return a step by its name. Raises ``ValueError`` for other names."""
    if not isinstance(name, str) or name not in STEPS:
        raise ValueError(f"step is one of {', '.join(map(repr, STEPS))}, not {name!r}")
    return STEPS[name]


def _read_steps() -> dict[str, Step]:
    """Return the steps of ``steps.toml``, by name."""
    file = files("cypresskit").joinpath("editing/steps.toml")
    steps = {}
    for name, row in tomllib.loads(file.read_text(encoding="utf-8")).items():
        for field, value in row.items():
            if isinstance(value, str):
                row[field] = " ".join(value.split())
            elif isinstance(value, list):
                row[field] = tuple(value)
        steps[name] = Step(name, **row)
    return steps


STEPS = _read_steps()
