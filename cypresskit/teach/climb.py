"""The climb: one kernel of the reader's own, carried from lesson to lesson.

``keep`` runs a lesson's text, writes it into ``my_kernel.il``, where any editor may change it, and
remembers it by lesson in ``my_climb.json`` beside it: the road has a bar for each. Whoever skips a
lesson gets the text so far from ``so_far``. Speeds are simulated at N = 2048, as the road's are.
"""

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from cypresskit.compiler import CompileError
from cypresskit.draw.road import FIGURES, REFERENCE, RoadLaunch
from cypresskit.il import ILError
from cypresskit.kernels import KERNELS
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.generated import block_kernel
from cypresskit.kernels.own import LARGEST, resolve, shortened
from cypresskit.kernels.own import kernel as own_kernel
from cypresskit.kernels.text_kernel import TextKernel
from cypresskit.machine import KernelError
from cypresskit.published import kernel as published
from cypresskit.saving import save_file
from cypresskit.teach.kernels import run_gemm
from cypresskit.timing import Report, simulate

FILE, KEPT = Path("my_kernel.il"), Path("my_climb.json")
HEAD = """il_ps_2_0
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_resource_id(1)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_resource_id(2)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_output_generic o0
dcl_cb cb0[5]
dcl_literal l0, 1.0, -0.5, 0.0, 0.0
"""
NAIVE = """mad r0.xy, vWinCoord0.yx, l0.x, l0.y   ; r0.x: the row of C; r0.y: the column
mov r0.z, l0.z                         ; k = 0
mov r10, l0.z                          ; the sum
whileloop
    ge r1.x, r0.z, cb0[0].z            ; k done?
    break_logicalnz r1.x
    sample_resource(0)_sampler(0) r2, r0.zx00   ; a number of A
    sample_resource(1)_sampler(1) r3, r0.yz00   ; a number of B
    mad r10.x, r2.x, r3.x, r10.x       ; sum = a * b + sum
    add r0.z, r0.z, l0.x               ; k = k + 1
endloop
mul r10.x, r10.x, cb0[0].x             ; times alpha, which is 1 here
"""
TAIL = """; plus beta times the old C, if beta isn't 0
if_logicalnz cb0[4].x
    sample_resource(2)_sampler(2) r2, r0.yx00
    mad r10.x, r2.x, cb0[0].y, r10.x
endif
mov o0.x, r10.x
endmain
end
"""
#: A store of four numbers of the block, and the same of alpha times them plus beta times the old C.
STORE = re.compile(r"(?m)^( *)mov (g\[[^\]]*\]), (r\d+) *(;.*)?$")
SCALED = r"""\1mul \3, \3, cb0[0].x
\1if_logicalnz cb0[4].x
\1    mov r2, \2
\1    mad \3, r2, cb0[0].y, \3
\1endif
\1mov \2, \3"""
FIELDS = {"text", "block", "k_step"}
TOLERANCE = 0.02  # of the good par, which is the book's own kernel


@dataclass(frozen=True)
class ClimbStep:
    """A step of the climb: the launch on the road that is its good par, and what makes a kernel of
    what the reader wrote.
    """

    good: RoadLaunch
    launched: Callable[[Any], Kernel]


def _naive(text: str) -> TextKernel:
    """A kernel of the twelve lines of lesson 00; errors count the lines from the text's first."""
    like = KERNELS["sgemm_naive"]
    shaped = own_kernel(like.text, like=like, block=(1, 1), k_step=1, name="my_kernel")
    assert isinstance(shaped, TextKernel)
    return replace(shaped, source=f"{text.rstrip()}\n{TAIL}", before=HEAD)


def scaled(text: str) -> str:
    """The text of a block kernel that stores to ``g[...]``, with alpha and beta, so that it can do
    all that a kernel of the catalogue can. ``r2`` is free behind the loop.
    """
    if "cb0[0].x" in text:
        return text
    return STORE.sub(SCALED, text)


def _block(*shapes: tuple[int, int]) -> Callable[[str], TextKernel]:
    """What makes a kernel of a whole text: with the first of these blocks that gives a right
    product, else with the last.
    """

    def launched(text: str) -> TextKernel:
        whole = scaled(text)
        *kernels, last = (
            replace(block_kernel(*shape), source=whole, name="my_kernel") for shape in shapes
        )
        return next((kernel for kernel in kernels if _is_right(kernel)), last)

    return launched


STEPS = {
    "00": ClimbStep(RoadLaunch("sgemm_naive"), _naive),
    "01": ClimbStep(RoadLaunch("block_4x4"), _block((4, 4))),
    "02": ClimbStep(RoadLaunch("block_8x8"), _block((8, 8), (4, 8))),
    "12": ClimbStep(RoadLaunch("sgemm_tn"), resolve),  # an entry brings its block along
}


class SmallProduct:
    """A small product by a reader's kernel: C, and which of its elements are wrong."""

    def __init__(self, got: np.ndarray, right: np.ndarray) -> None:
        self.got, self.wrong = got, got != right

    def __repr__(self) -> str:
        rows = [
            " ".join(f"{value:5g}{'!' if bad else ' '}" for value, bad in zip(*row, strict=True))
            for row in zip(self.got, self.wrong, strict=True)
        ]
        return f"C, {self._said()}:\n" + "\n".join(rows)

    def _repr_html_(self) -> str:
        style = "padding: 2px 8px; text-align: right; font-variant-numeric: tabular-nums"
        rows = []
        for values, wrong in zip(self.got, self.wrong, strict=True):
            cells = [
                f'<td style="{style}; background: {"#d55e00" if bad else "#009e73"}; color: #000">'
                f"{escape(f'{value:g}')}</td>"
                for value, bad in zip(values, wrong, strict=True)
            ]
            rows.append(f"<tr>{''.join(cells)}</tr>")
        return f"<p>C, {self._said()}:</p><table>{''.join(rows)}</table>"

    def _said(self) -> str:
        count = int(self.wrong.sum())
        return "all right" if not count else f"{count} of {self.wrong.size} elements wrong"


def _step(lesson: object, text: object) -> ClimbStep:
    """A lesson's step, for what a reader wrote."""
    if not isinstance(lesson, str) or lesson not in STEPS:
        raise ValueError(f"lesson is one of {', '.join(map(repr, STEPS))}, not {shortened(lesson)}")
    takes_kernels = lesson == "12"
    if not (isinstance(text, str) or (takes_kernels and isinstance(text, Kernel))):
        wanted = "a string or a Kernel" if takes_kernels else "a string"
        raise TypeError(f"text is the kernel that you wrote, {wanted}, not {shortened(text)}")
    return STEPS[lesson]


def seen(lesson: str, text: str | Kernel) -> "SmallProduct | str":
    """C of a small product of whole numbers by a lesson's kernel, with wrong elements in red; or
    why there is none.
    """
    step = _step(lesson, text)
    try:
        mine = step.launched(text)
        return SmallProduct(*_product(mine, 8, 4))
    except (ILError, CompileError, KernelError, ValueError) as error:
        return _reason(error)


def keep(lesson: str, text: str | Kernel) -> str:
    """Try a lesson's kernel, keep it in ``my_kernel.il`` if it is right, and say its speed and its
    three pars. It says what is wrong otherwise, and keeps the file as it is.
    """
    step = _step(lesson, text)
    try:
        mine = step.launched(text)
        for blocks in (1, 3):
            got, right = _product(mine, 8 * blocks, 4 * blocks)
            if not np.array_equal(got, right):
                i, j = np.argwhere(got != right)[0]
                return f"Not kept yet: C[{i}, {j}] is {got[i, j]:g}, and should be {right[i, j]:g}."
        report = simulate(mine, REFERENCE)
    except (ILError, CompileError, KernelError, ValueError) as error:
        return f"Not kept yet: {_reason(error)}"
    save_file(FILE, mine.text)
    kept = {"text": mine.text, "block": mine.block, "k_step": mine.k_step}
    save_file(KEPT, json.dumps(_kept() | {lesson: kept}, indent=1) + "\n")
    _reports[lesson, mine.text] = report
    gflops = report.gflops
    paper = published("sgemm_tn")["gflops_max"]
    good = FIGURES[step.good].gflops
    return (
        f"Right, and kept in {FILE}: {gflops:,.0f} Gflop/s at N = {REFERENCE}.\n"
        f"Pars: right, reached; good, {good:,.0f}, {_reached(gflops, good)};"
        f" the paper's, {paper:,}, {_reached(gflops, paper)}."
    )


def mine_so_far() -> dict[str, Report | Kernel]:
    """The reader's kernels by lesson, for ``ck.draw.road(..., mine=...)``: the report of each that
    was timed in this session, else the kernel. A text that was damaged and doesn't assemble any
    more is left out.
    """
    found: dict[str, Report | Kernel] = {}
    for lesson, kept in sorted(_kept().items()):
        like = KERNELS["sgemm_naive"] if lesson == "00" else block_kernel(8, 8)
        block, name = tuple(kept["block"]), f"my {lesson}"
        try:
            mine = own_kernel(
                kept["text"], like=like, block=block, k_step=kept["k_step"], name=name
            )
        except (CompileError, KernelError, ValueError):  # an ILError is a ValueError
            continue
        found[name] = _reports.get((lesson, kept["text"]), mine)
    return found


#: Of each lesson's text that was timed in this session.
_reports: dict[tuple[str, str], Report] = {}


def _kept() -> dict[str, dict]:
    """What is kept of each lesson, without what is damaged."""
    try:
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict):
        return {}
    return {lesson: kept[lesson] for lesson in STEPS if _is_kept(kept.get(lesson))}


def _is_kept(entry: object) -> bool:
    """Whether an entry of the file is what ``keep`` writes: a text, its block, and its k_step."""
    if not isinstance(entry, dict) or set(entry) != FIELDS:
        return False
    text, block, k_step = (entry[name] for name in ("text", "block", "k_step"))
    if not isinstance(text, str) or not isinstance(block, list) or len(block) != 2:
        return False
    return all(type(size) is int and 1 <= size <= LARGEST for size in (*block, k_step))


def so_far(lesson: str) -> str:
    """The reader's text as it stands when a lesson begins: the file's, or the book's for whoever
    skipped what comes before.
    """
    if FILE.exists():
        return FILE.read_text(encoding="utf-8")
    before = [step for name, step in STEPS.items() if name < lesson]
    if len(before) < 2:
        return _naive(NAIVE).text
    side = 4 if len(before) == 2 else 8
    return block_kernel(side, side, scaled=True).text


def start(lesson: str) -> tuple[str, tuple[int, int], int]:
    """The text with which a lesson begins, as ``so_far``, its block, and its steps of k a turn.
    Those of a file that was edited elsewhere are found out; while it is no kernel, they are those
    of the last lesson that was kept.
    """
    text, kept = so_far(lesson), _kept()
    for entry in kept.values():
        if entry["text"] == text:
            return text, *_sizes(entry)
    if FILE.exists():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that its product is wrong: the lesson says so
                mine = own_kernel(FILE)
            return text, mine.block, mine.k_step
        except (CompileError, KernelError, ValueError):
            if kept:
                return text, *_sizes(kept[max(kept)])
    side = (1, 4, 8)[max(0, sum(name < lesson for name in STEPS) - 1)]
    return text, (side, side), 1


def _sizes(entry: dict) -> tuple[tuple[int, int], int]:
    rows, columns = entry["block"]
    return (rows, columns), entry["k_step"]


def _reached(gflops: float, par: float) -> str:
    return "reached" if gflops >= (1 - TOLERANCE) * par else "not yet"


def _reason(error: Exception) -> str:
    return str(error).strip().removesuffix(" (max_instructions raises the limit.)")


def _is_right(kernel: Kernel) -> bool:
    """Whether a kernel runs and gives a right small product."""
    try:
        got, right = _product(kernel, 8, 4)
    except (ILError, CompileError, KernelError, ValueError):
        return False
    return np.array_equal(got, right)


def _product(kernel: Kernel, least: int, turns: int) -> tuple[np.ndarray, np.ndarray]:
    """C of small whole numbers by a kernel, and what it should be: at least ``least`` rows and
    columns, in whole blocks, and so many turns of its loop.
    """
    m, n = (-(-least // side) * side for side in kernel.block)
    k = turns * kernel.k_step
    rng = np.random.default_rng([m, n, k])
    a, b = (rng.integers(1, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    got, _ = run_gemm(kernel.program, kernel, a.T.copy() if kernel.trans_a else a, b)
    return got, a @ b
