"""The dear line: which line of a kernel costs most, guessed before it is edited, then priced.

Lines are of five kinds, the same in every lesson, so that guesses can be compared from the first
to the last. Left out: where a kernel's work is done by lines of one kind, which of them it is.
"""

from collections.abc import Iterator
from pathlib import Path

from cypresskit.compiler import CompileError
from cypresskit.draw.predict import Prediction
from cypresskit.il import ILError, Program
from cypresskit.kernels.catalogue import Kernel
from cypresskit.machine import KernelError
from cypresskit.teach import climb
from cypresskit.timing import LinePrice, price, simulate

A, B, PRODUCT, LOOP, OTHER = KINDS = (
    "a fetch of A",
    "a fetch of B",
    "a product",
    "one that runs the loop",
    "another",
)
PRODUCTS = {"mad", "mul", "dmad", "dmul", "fma"}
#: Of the launch that is priced: it is short, and has whole turns for any kernel of the lessons.
N, K = 1024, 96
EQUAL = 0.95  # of the highest price: a line that costs so much is as dear


def compared(step: str, text: str | Path | Kernel, guess: Prediction) -> str:
    """The dearest line of each kind in a reader's kernel, and beside the dearest of all the
    ``guess``, one of ``KINDS``. Where several kinds are as dear, each is right. ``step`` and
    ``text`` are those of ``climb.keep``; what is no kernel gets the reason.
    """
    try:
        kernel = climb.step_kernel(step, text)
        prices = price(simulate(kernel, N, k=K))
    except (ILError, CompileError, KernelError, ValueError, OSError) as error:
        return f"No prices yet: {climb.reason(error, text)}"
    kinds = dict(_kinds(kernel.program))
    dearest: dict[str, LinePrice] = {}
    for line in prices.lines:
        kind = kinds[line.work.id]
        if kind not in dearest or line.price > dearest[kind].price:
            dearest[kind] = line
    rows = [
        f"  {_percent(dearest[kind].price)} %  {kind:22}  {_shown(dearest[kind].text)}"
        for kind in KINDS
        if kind in dearest
    ]
    as_dear = [
        kind for kind in KINDS if kind in dearest and _as_dear(dearest[kind], prices.dearest)
    ]
    truth = guess.value if guess.value in as_dear else ", or ".join(as_dear)
    heading = f"The dearest line of each kind, at {N} x {N} x {K}, in % of the launch"
    return "\n".join((heading, *rows, guess.said(truth)))


def _kinds(program: Program) -> Iterator[tuple[tuple[int, tuple[int, ...]], str]]:
    """The kind of each line, by its number and the calls around it."""
    depth = 0
    for instruction in program.expanded or program.instructions:
        depth += {"loop": 1, "endloop": -1}.get(instruction.op.flow, 0)
        kind = OTHER
        if instruction.opcode == "sample":
            kind = {0: A, 1: B}.get(instruction.controls.resource, OTHER)
        elif depth > 0 and instruction.opcode in PRODUCTS:
            kind = PRODUCT
        elif depth > 0 and not instruction.opcode.startswith("lds_"):
            kind = LOOP
        yield (instruction.line, instruction.calls), kind


def _as_dear(line: LinePrice, dearest: LinePrice) -> bool:
    return line.price >= EQUAL * dearest.price


def _percent(price: float) -> str:
    return f"{round(100 * price, 1) + 0.0:5.1f}"  # never -0.0


def _shown(text: str) -> str:
    """A line of IL without its remark; what the book writes around a reader's part has no text."""
    return text.partition(";")[0].strip() or "(written by the book)"
