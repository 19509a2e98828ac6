"""The steps of the climb: each adds one idea to the reader's kernel.

A step is data: its idea, how its kernel is launched and timed, and its targets. They are in
``data/steps.toml``, which lessons and checks read, too. ``ck.workbench(step="02")`` opens one, in
its own file (``step_files``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from cypresskit.diagnosis.source_facts import scalars_read
from cypresskit.draw.scripts import read_packaged
from cypresskit.gains import FIGURES, REFERENCE, STEP_ROWS, Timed
from cypresskit.il.errors import shorten
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.generated import block_kernel
from cypresskit.published import author
from cypresskit.published import kernel as published_kernel

FIRST_STEP = "00"
BLOCK = re.compile(r"block_(\d+)x(\d+)(?:x(\d+))?")  # rows, columns, values of k per iteration
MARK = "your line"  # in the comments that ask for lines
SOLUTION_PREFIX = "our_step_"  # in the name of the kernel with our solution
CLOSE_RATIO = 1.005  # closer speeds count as equal, since the model is no more precise

_OUTPUTS = replace(KERNELS["sgemm_tn_stream"].convention, block=(4, 4), streams=4, k_step=1)
#: How kernels are launched that are written from an empty editor.
EMPTY_STARTS = {
    "four_outputs_tn": _OUTPUTS,
    "four_outputs_nn": replace(_OUTPUTS, trans_a=False, k_step=4),
}


@dataclass(frozen=True)
class Targets:
    """The targets of a step, in Gflop/s: of the chip alone, but for the published one."""

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
    start: str = ""  # name of the source in ``starts`` that it starts from, if not its own
    published: str = "sgemm_tn"  # name of the published kernel that sets the third target
    hint: str = ""  # for a correct kernel that is slower than the reference; "": what would help
    open_panels: Sequence[str] = ()  # panels that are open at first
    has_guess: bool = False  # the costs open once the reader has guessed the most expensive line
    previous_step: str = ""  # step whose kernel it continues with
    n: int = REFERENCE  # m = n = k at which its kernel is timed
    gaps: Sequence[list[str]] = ()  # our lines for each comment that asks for some
    is_reordered: bool = False  # our solution is the step before's in other order, in ``starts``
    can_miss_minimum: bool = False  # the climb also counts a kernel below the minimum
    is_on_climb: bool = True  # whether it is part of the reader's climb; the others are side steps
    is_numbered: bool = True  # whether its name is a number, by which readers know it

    @property
    def file(self) -> str:
        """The name of the reader's file for this step."""
        return f"{self.name}.il"

    @property
    def is_scaled(self) -> bool:
        """Whether its kernel must multiply by alpha and add beta times the old C, as ``like``."""
        return any(scalars_read(reference_kernel(self.like)))

    @property
    def targets(self) -> Targets:
        """The three targets, as speeds are shown. Two are the chip alone's."""
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
        return _read_start(self.start or self.name)

    @property
    def solution(self) -> tuple[str, ...]:
        """Our lines, one of which is shown to a reader who is stuck."""
        return tuple(chain(*self.gaps))

    def with_solution(self, keeps_comments: bool = False) -> str:
        """Return the source with our solution: its lines in place of the comments that ask for
        them, or below them; "" if there is none.
        """
        if self.is_reordered:
            return _read_start(f"{self.name}_solved")
        rows, marks = self.starter.splitlines(), find_gaps(self.starter)
        if not marks or len(marks) != len(self.gaps):
            return ""
        for mark, lines in reversed([*zip(marks, self.gaps)]):
            first = mark if keeps_comments else mark - 1
            rows[first:mark] = [f"    {line}" for line in lines]
        return "\n".join(rows) + "\n"


def find_gaps(text: str) -> list[int]:
    """Return the lines of a text, from 1, whose comments ask for the reader's lines."""
    return [number for number, line in enumerate(text.splitlines(), 1) if MARK in line]


def reference_kernel(name: str) -> Kernel:
    """Return a kernel of the catalog, or the generated one of a block, such as ``"block_4x4"`` or,
    with three values of k per iteration, ``"block_12x8x3"``; our solution of a step, such as
    ``"our_step_02"``; or a source that is yet to be written. Raises ``KeyError`` for other names.
    """
    if name in EMPTY_STARTS:
        return Kernel(name, _read_start(name), EMPTY_STARTS[name])
    if name.startswith(SOLUTION_PREFIX):
        step = STEPS[name.removeprefix(SOLUTION_PREFIX)]
        if text := step.with_solution():
            return Kernel(name, text, reference_kernel(step.like).convention)
    if block := BLOCK.fullmatch(name):
        rows, columns, steps = (int(number or 1) for number in block.groups())
        return block_kernel(rows, columns, steps, scaled=True)
    return KERNELS[name]


def starter_text(name: str) -> str:
    """Return the given source of a step, or else of the reference kernel of this name."""
    return STEPS[name].starter if name in STEPS else reference_kernel(name).text


def _read_start(name: str) -> str:
    """Return a source in ``starts``."""
    return read_packaged(f"editing/starts/{name}.il")


def kernel_name(file: str) -> str:
    """Return what the kernel in a file is called, such as "your step 05" in that step's."""
    name = file.removesuffix(".il")
    if step := STEPS.get(name):
        return f"your step {name}" if step.is_numbered else "your kernel"
    return name


def shown_speed(gflops: float) -> float:
    """Return a speed as it is shown, saved and compared with targets: in whole Gflop/s, but below
    1.
    """
    return float(round(gflops) or gflops)


def step_named(name: object) -> Step:
    """Return a step by its name. Raises ``ValueError`` for other names."""
    if not isinstance(name, str) or name not in STEPS:
        raise ValueError(f"step is one of {', '.join(map(repr, STEPS))}, not {shorten(name)}")
    return STEPS[name]


#: The steps of ``data/steps.toml``, by name.
STEPS = {name: Step(name, **row) for name, row in STEP_ROWS.items()}
