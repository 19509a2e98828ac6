"""The climb: one kernel of the reader's own, carried from lesson to lesson.

A step asks for a part of the kernel, a whole text, or an entry of the contest; the book writes what
stands around a part. ``keep`` tries it, writes the kernel into ``my_kernel.il``, where any editor
may change it, and remembers it by step in ``my_climb.json`` beside it: the road has a bar for each.
Nothing is replaced there by what is slower, or wasn't written by the reader, and no text is lost:
``back_to`` puts a step's kernel into the file again, and what was changed there is set aside.
Branches (a compute shader, doubles, the LDS) have files of their own. Whoever skips a lesson gets
the text so far from ``so_far``. Good pars are the road's figures, so speeds are simulated at their
N, which is 2048 for all but the last step.
"""

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from hashlib import sha256
from html import escape
from itertools import count
from pathlib import Path

import numpy as np

from cypresskit.compiler import CompileError
from cypresskit.il import ILError, Program
from cypresskit.kernels import KERNELS
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.element_trace import trace_element
from cypresskit.kernels.generated import block_kernel
from cypresskit.kernels.own import LARGEST, read_text, shortened
from cypresskit.kernels.own import kernel as own_kernel
from cypresskit.kernels.text_kernel import TextKernel, as_launched_like
from cypresskit.kernels.verification import Verification, verify
from cypresskit.machine import KernelError
from cypresskit.published import kernel as published
from cypresskit.saving import save_file
from cypresskit.teach.check import Verdict, exercise
from cypresskit.teach.kernels import fault, judge_kernel, run_gemm
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
PLACE = re.compile(rf"\b{re.escape(str(FILE))}:(\d+)(?::\d+)?")  # of an error
WHOLE = re.compile(r"(?m)^\s*il_[pc]s_2_0\b")  # what every whole text has
BLOCK = re.compile(r"\br([6-9]|1\d|2[01])\b")  # registers of the book's block
FIELDS = {"text", "block", "k_step"}
FIRST = "00"  # the step that every reader begins with
CONTEST = ("contest", "larger N")  # the steps that enter a kernel as it is
COMPARED_N = 2048  # the N at which it is decided which of two kernels is faster
CLOSE = 1.005  # speeds nearer than this are equal: the model is no better than that
TOLERANCE = 0.02  # of a par: a speed that is this little below it has reached it


@dataclass(frozen=True)
class Around:
    """What the book writes before and after a reader's part of a kernel."""

    before: str = ""
    after: str = ""

    @classmethod
    def lines(cls, text: str, first: str, last: str) -> "Around":
        """What stands around the lines from ``first`` to ``last`` of a text, these included."""
        before, _, after = text.partition(f"{first}\n")
        return cls(before, after.partition(f"{last}\n")[2])


@dataclass(frozen=True)
class ClimbStep:
    """A step of the climb.

    ``good``: (kernel, N) of the road's launch that sets the good par. ``paper``: the published
    kernel that sets the paper's par. ``like`` is the kernel whose launch the reader's
    follows, ``blocks`` are the blocks that it may compute: the first that gives a right product
    counts. ``around`` gives what the book adds to a part of a kernel, ``completed`` what it adds to
    a whole one. A turn of its loop does one of ``k_steps`` steps of k. ``file`` is where the kernel
    is kept. ``given`` is the ``digest`` of the text as the lesson gives it, where that is right as
    it stands. ``hint`` says where to look if a right kernel is slower than the good par; without
    one, right is enough. ``alpha`` and ``beta`` are those of its check, None where it needn't know
    them.
    """

    good: tuple[str, int]
    like: Callable[[], Kernel]
    blocks: tuple[tuple[int, int], ...]
    around: Callable[[], Around] = Around
    completed: Callable[[str], str] = str
    k_steps: tuple[int, ...] = (1, 2, 4)
    paper: str = "sgemm_tn"
    file: Path = FILE
    given: str = ""
    hint: str = ""
    alpha: float | None = 2.0
    beta: float | None = -1.0

    def kernel(self, given: str | Kernel) -> Kernel:
        """The kernel that a reader means: a part of it, its whole text, or the kernel itself."""
        if isinstance(given, Kernel):
            return given
        around = Around() if WHOLE.search(given) else self.around()
        source = self.completed(f"{given.rstrip()}\n{around.after}")
        like = self.like()
        bare = TextKernel(
            "my_kernel",
            like.precision,
            like.mode,
            like.block,
            like.k_step,
            "",
            source=source,
            before=around.before,
        )
        mine = as_launched_like(bare, like)
        most, least = max(self.k_steps), min(self.k_steps)
        blocks = (replace(mine, block=block, k_step=most) for block in self.blocks)
        right = next((kernel for kernel in blocks if _is_right(kernel)), None)
        if right is None:
            return replace(mine, block=self.blocks[0], k_step=least)
        tried = (replace(right, k_step=k_step) for k_step in self.k_steps)
        return next(kernel for kernel in tried if _is_right(kernel))

    @property
    def n(self) -> int:
        """Where its kernels are timed."""
        return self.good[1]

    @property
    def good_par(self) -> float:
        """The Gflop/s of the good par, as the road has them."""
        from cypresskit.draw.road import FIGURES, RoadLaunch

        return FIGURES[RoadLaunch(*self.good)].gflops

    @property
    def paper_par(self) -> float:
        """The Gflop/s that the paper printed."""
        return published(self.paper)["gflops_max"]


def scaled(text: str) -> str:
    """The text of a block kernel that stores to ``g[...]``, with alpha and beta, so that it can do
    all that a kernel of the catalogue can. ``r2`` is free behind the loop.
    """
    if "cb0[0].x" in text:
        return text
    return STORE.sub(SCALED, text)


def _with_alpha(text: str) -> str:
    """The text of an 8 x 8 block kernel that adds beta times C itself, with alpha."""
    times = "".join(f"mul r{n}, r{n}, cb0[0].x\n" for n in range(6, 22))
    return text.replace("endloop\n", f"endloop\n{times}") if "cb0[0].x" not in text else text


def _with_one(text: str) -> str:
    """A text of the catalogue in which ``l9.x`` holds 1.0, for a loop that counts by one."""
    return text.replace("dcl_cb ", "dcl_literal l9, 1.0, 0.0, 0.0, 0.0\ndcl_cb ")


def around_loop(name: str) -> Around:
    """What stands around the main loop of a kernel of the catalogue, in which ``l9.x`` holds
    1.0.
    """
    return Around.lines(_with_one(KERNELS[name].text), "whileloop", "endloop")


def _around_order() -> Around:
    """What stands around the main loop of the book's 8 x 8 kernel."""
    return Around.lines(block_kernel(8, 8, scaled=True).text, "whileloop", "endloop")


def _around_old_c() -> Around:
    """What stands around all that an 8 x 8 kernel does once its block is zero: ``r0.w`` is the
    block's place in C.
    """
    lines = block_kernel(8, 8).text.splitlines(keepends=True)
    loop, end = (lines.index(f"{word}\n") for word in ("whileloop", "endloop"))
    place = [*lines[end + 1 : end + 5], "mov r0.w, r1.x\n"]
    stores = ["mov r1.x, r0.w\n", *lines[end + 5 :]]
    return Around("".join(lines[:loop] + place), "".join(stores) + "\n")


def _around_numbering() -> Around:
    """What stands around the numbering of a compute kernel's work-items, whose loop is that of the
    book's 8 x 8 kernel: the row goes to ``r1.z``, the column to ``r1.w``.
    """
    text = _with_one(KERNELS["sgemm_tn_compute"].text)
    text = text.replace("dcl_literal l9", "dcl_literal l8, 1, 3, 6, 7\ndcl_literal l9")
    outside = Around.lines(text, "whileloop", "endloop")
    loop = block_kernel(8, 8).text.partition("whileloop\n")[2].partition("endloop\n")[0]
    loop = BLOCK.sub(lambda match: f"r{int(match[1]) + 4}", loop).replace("l0.y", "l9.x")
    whole = f"{outside.before}whileloop\n{loop}endloop\n{outside.after}"
    return Around.lines(whole, *NUMBERING.splitlines())


#: How the compute kernel numbers its work-items: line by line.
NUMBERING = """ushr r1.z, vTidInGrpFlat.x, l0.x
iand r1.w, vTidInGrpFlat.x, l0.y"""

STEPS = {
    "00": ClimbStep(
        ("sgemm_naive", 2048),
        lambda: KERNELS["sgemm_naive"],
        ((1, 1),),
        lambda: Around(HEAD, TAIL),
        given="50585457378d",
    ),
    "01 2x2": ClimbStep(
        ("block_2x2", 2048), lambda: block_kernel(2, 2), ((2, 2),), alpha=None, beta=None
    ),
    "01": ClimbStep(("block_4x4", 2048), lambda: block_kernel(4, 4), ((4, 4),), completed=scaled),
    "02": ClimbStep(
        ("block_8x8", 2048),
        lambda: block_kernel(8, 8),
        ((8, 8), (4, 8), (8, 4)),
        completed=scaled,
    ),
    "03": ClimbStep(
        ("block_8x8", 2048),
        lambda: block_kernel(8, 8),
        ((8, 8),),
        _around_order,
        scaled,
        given="736e56df51e7",
        hint="a bundle reads three registers of each channel: which four neighbours share numbers"
        " of B, and not of A alone?",
    ),
    "04": ClimbStep(
        ("block_8x8", 2048),
        lambda: block_kernel(8, 8),
        ((8, 8),),
        _around_old_c,
        _with_alpha,
        given="a444b9b024a1",
        hint="each number of C that waits for its `mad` holds a register. How few can wait at once,"
        " and when?",
    ),
    "05": ClimbStep(
        ("block_8x8", 2048),
        lambda: KERNELS["sgemm_tn_compute"],
        ((8, 8),),
        _around_numbering,
        file=Path("my_compute.il"),
        given="554bc9877f3b",
        hint="a quad is four numbers in a row, 4q to 4q + 3. For a square, which bit of the number"
        " moves down a row?",
    ),
    "06": ClimbStep(
        ("dgemm_tn", 2048),
        lambda: KERNELS["dgemm_tn"],
        ((4, 4),),
        partial(around_loop, "dgemm_tn"),
        paper="dgemm_tn",
        file=Path("my_double.il"),
    ),
    "07": ClimbStep(
        ("sgemm_64x64_lds", 2048),
        lambda: KERNELS["sgemm_64x64_lds"],
        ((8, 8),),
        partial(around_loop, "sgemm_64x64_lds"),
        k_steps=(4,),
        paper="sgemm_64x64_lds",
        file=Path("my_lds.il"),
        hint="is a number of A still fetched eight times, instead of once and then read from the"
        " LDS?",
    ),
    "12": ClimbStep(
        ("sgemm_tn", 2048),
        lambda: KERNELS["sgemm_tn"],
        ((8, 8),),
        partial(around_loop, "sgemm_tn"),
        given="de47c27125af",
    ),
    # What was entered brings its block along
    "contest": ClimbStep(("sgemm_tn", 2048), lambda: KERNELS["sgemm_tn"], ((8, 8),)),
    "larger N": ClimbStep(("sgemm_tn", 4352), lambda: KERNELS["sgemm_tn"], ((8, 8),)),
}


class SmallProduct:
    """A small product by a reader's kernel: C, and which of its elements are wrong."""

    def __init__(self, got: np.ndarray, right: np.ndarray) -> None:
        self.got = got
        self.wrong = got != right

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


class NoProduct:
    """Why a reader's kernel gives no product, over as many lines as that takes."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"No C yet: {self.reason}"

    def _repr_html_(self) -> str:
        # The red of draw.predict, which would load Bokeh where answers are judged
        style = "color: light-dark(#b3261e, #ff8a78); white-space: pre-wrap"
        return f'<pre role="alert" style="{style}">{escape(repr(self))}</pre>'


def _step(step: object, text: object) -> ClimbStep:
    """A step of the climb, for what a reader wrote."""
    if not isinstance(step, str) or step not in STEPS:
        raise ValueError(f"step is one of {', '.join(map(repr, STEPS))}, not {shortened(step)}")
    if not isinstance(text, str | Path | Kernel):
        wanted = "a string, a Path or a Kernel"
        raise TypeError(f"text is the kernel that you wrote, {wanted}, not {shortened(text)}")
    return STEPS[step]


def step_kernel(step: str, text: str | Path | Kernel) -> Kernel:
    """The kernel of a step that a reader wrote, or that stands in a file; right or not."""
    chosen = _step(step, text)
    return chosen.kernel(read_text(text) if isinstance(text, Path) else text)


def seen(step: str, text: str | Path | Kernel) -> SmallProduct | NoProduct:
    """C of a small product of whole numbers by a step's kernel, with wrong elements in orange; or
    why there is none.
    """
    _step(step, text)
    try:
        return SmallProduct(*_product(step_kernel(step, text), 8, 4))
    except (ILError, CompileError, KernelError, ValueError, OSError) as error:
        return NoProduct(reason(error, text))


def keep(step: str, text: str | Path | Kernel) -> str:
    """Try a step's kernel, keep it in the step's file if it is right, and say its speed and its
    three pars. The file is ``my_kernel.il``; some steps have one of their own. A file that holds a
    faster kernel stays as it is, and of two kernels of a step the faster one is kept; what was
    changed in the file and would be lost is set aside. Otherwise it says what is wrong, or that the
    text is the one that the lesson gives, and leaves all as it is. ``text`` is what the step asks
    for, a whole kernel, or the ``Path`` of a file with one.
    """
    chosen = _step(step, text)
    try:
        mine = step_kernel(step, text)
        if race := _race(mine, chosen):
            return f"Not kept yet: {race}"
        for blocks in (1, 3):
            got, right = _product(mine, 8 * blocks, 4 * blocks)
            if not np.array_equal(got, right):
                i, j = np.argwhere(got != right)[0]
                return f"Not kept yet: C[{i}, {j}] is {got[i, j]:g}, and should be {right[i, j]:g}."
        untouched = _is_untouched(step, text, mine)
        if untouched and step != FIRST:
            return "Not kept yet: this is the text as it was given, with none of your lines."
        report = _timed(mine, chosen.n)
    except (ILError, CompileError, KernelError, ValueError, OSError) as error:
        return f"Not kept yet: {reason(error, text)}"
    _reports[step, mine.text] = report
    gflops = report.gflops
    where, words = _store(step, mine, untouched)
    kept = f", and kept {where}" if where else ""
    pars = (
        f"Pars: right, reached; good, {chosen.good_par:,.0f}, {_reached(gflops, chosen.good_par)};"
        f" the paper's, {chosen.paper_par:,}, {_reached(gflops, chosen.paper_par)}."
    )
    return "\n".join((f"Right{kept}: {gflops:,.0f} Gflop/s at N = {chosen.n}.", pars, *words))


def back_to(step: str) -> str:
    """Put the kernel that is kept of a step into the step's file again, and say where that is which
    the file held.
    """
    file = _step(step, "").file
    entries = _kept()
    if step not in entries:
        return f"Nothing is kept of {step} yet: {KEPT} has {', '.join(entries) or 'no kernel'}."
    held = _held(file)
    words = [f"{file} holds your {step} again.", *_write(file, entries[step]["text"])]
    if held and held.step not in ("", step):
        words.append(f"It held {held}: {_back_to_call(held.step)}")
    return "\n".join((*words, *_faster_step(file, _speeds(file)[step])))


@dataclass(frozen=True)
class Held:
    """What a step's file holds: its text, the step that it is kept of or "", and its Gflop/s, which
    are 0 for what isn't right.
    """

    text: str
    step: str
    gflops: float

    def __str__(self) -> str:
        what = f"your {self.step}" if self.step else "a text that was changed there"
        return f"{what}, {self.gflops:,.0f} Gflop/s" if self.gflops else f"{what}, not right yet"


def _store(step: str, mine: Kernel, untouched: bool) -> tuple[str, list[str]]:
    """Store a right kernel, unless a faster one stands where it would. Returns where it is
    kept, "" if nowhere, and sentences on what has made room and on what is faster.
    """
    file = STEPS[step].file
    gflops = _timed(mine, COMPARED_N).gflops
    speeds = _speeds(file)
    held = _held(file)
    is_best = round(speeds.get(step, 0.0)) <= round(gflops)  # of this step's
    if untouched and step in speeds:
        is_best = _same_text(_kept()[step]["text"], mine.text)
    goes_in = held is None or _same_text(held.text, mine.text)
    if held and not untouched:
        goes_in = goes_in or held.gflops <= CLOSE * gflops

    words = _write(file, mine.text) if goes_in else []
    if is_best:
        words += _remember(step, mine)
    elif not held or held.step != step:
        words.append(
            f"Your {step} stays the earlier one, {speeds[step]:,.0f}: {_back_to_call(step)}"
        )
    if held and not goes_in:
        words.append(f"{file} stays as it is: it holds {held}.")
        what = "begin anew" if step == FIRST else f"put your {step} there"
        words += [f"To {what}: {_back_to_call(step)}"] if is_best else []

    words += _faster_step(file, held.gflops if held and not goes_in else gflops)
    if goes_in:
        return f"in {file}", words
    return f"as your {step}" if is_best else "", words


def _held(file: Path) -> Held | None:
    """What a file holds, with its speed; None if there is nothing."""
    try:
        text = read_text(file)
    except (OSError, ValueError):
        return None
    if not text.strip():
        return None
    if step := _holder(file, text):
        return Held(text, step, _speeds(file)[step])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that its product is wrong
            mine = own_kernel(file)
        return Held(text, "", _gflops(mine) if _is_right(mine) else 0.0)
    except (CompileError, KernelError, ValueError):
        return Held(text, "", 0.0)


def _holder(file: Path, text: str) -> str:
    """The last step of a file that a text is kept of, or ""."""
    steps = [
        step
        for step, entry in _kept().items()
        if STEPS[step].file == file and _same_text(entry["text"], text)
    ]
    return steps[-1] if steps else ""


def _same_text(one: str, other: str) -> bool:
    return one.rstrip() == other.rstrip()


def _speeds(file: Path) -> dict[str, float]:
    """The Gflop/s of each kept step of a file; 0 for a text that was damaged."""
    speeds = {}
    for step, entry in _kept().items():
        if STEPS[step].file == file:
            report = _reports.get((step, entry["text"])) if STEPS[step].n == COMPARED_N else None
            speeds[step] = report.gflops if report else _gflops(_kept_kernel(step, entry))
    return speeds


def _gflops(mine: Kernel | None) -> float:
    """How fast a kernel is, to be compared with others; 0 for none, and what doesn't run."""
    try:
        return _timed(mine, COMPARED_N).gflops if mine else 0.0
    except (CompileError, KernelError, ValueError):
        return 0.0


def _remember(step: str, mine: Kernel) -> list[str]:
    """Keep a step's kernel for the road. Returns where the file that remembers them was set aside,
    if it was damaged.
    """
    entries = _entries()
    damaged = entries is None or (step in entries and step not in _kept())
    words = _set_aside(KEPT) if damaged and KEPT.exists() else []
    kept = {"text": mine.text, "block": mine.block, "k_step": mine.k_step}
    save_file(KEPT, json.dumps((entries or {}) | {step: kept}, indent=1) + "\n")
    return words


def _faster_step(file: Path, gflops: float) -> list[str]:
    """Which kept step of a file is the fastest, if that is more than ``gflops``."""
    speeds = _speeds(file)
    fastest = max(speeds, key=lambda step: speeds[step], default="")
    if not fastest or speeds[fastest] <= CLOSE * gflops:
        return []
    return [f"Your fastest is your {fastest}, {speeds[fastest]:,.0f}: {_back_to_call(fastest)}"]


def _write(file: Path, text: str) -> list[str]:
    """Write a kernel's file. Returns where its text was set aside, if it is kept of no step."""
    words: list[str] = []
    if file.exists():
        held = file.read_bytes().decode(errors="replace")
        if _same_text(held, text):
            return words
        if held.strip() and not _holder(file, held):
            words = _set_aside(file)
    save_file(file, text)
    return words


def _set_aside(file: Path) -> list[str]:
    """Copy a file to the first free name beside it. Returns the sentence that says so."""
    data = file.read_bytes()
    names = (file.with_name(f"{file.stem}_{n}{file.suffix}") for n in count(1))
    aside = next(name for name in names if not name.exists() or name.read_bytes() == data)
    save_file(aside, data)
    return [f"What {file} held is in {aside} now."]


def _is_untouched(step: str, given: str | Path | Kernel, mine: Kernel) -> bool:
    """Whether a text is the one that the lesson gives; or in the contest the book's kernel, which
    it gives to those who have none.
    """
    if isinstance(given, str) and digest(given) == STEPS[step].given:
        return True
    side = _side(step)
    return (
        step in CONTEST
        and not FILE.exists()
        and _same_text(mine.text, block_kernel(side, side, scaled=True).text)
    )


def digest(text: str) -> str:
    """A short digest of the instructions of a text, whatever their remarks and blanks."""
    lines = [" ".join(line.partition(";")[0].split()) for line in text.splitlines()]
    return sha256("\n".join(filter(None, lines)).encode()).hexdigest()[:12]


def _back_to_call(step: str) -> str:
    """The call that puts a step's kernel into its file again."""
    return f'ck.teach.climb.back_to("{step}")'


def _race(mine: Kernel, step: ClimbStep) -> str:
    """Which word of the LDS is read before it is sure to be written, if one is: then no number
    says anything.
    """
    if not any(i.opcode.startswith("lds_") for i in mine.program.expanded):
        return ""
    findings = verify(mine, alpha=step.alpha, beta=step.beta).findings
    verdict = fault(findings) if any("race" in finding.kind for finding in findings) else None
    return verdict.finding if verdict else ""


Describe = Callable[[Kernel], str]


def climb_exercise(step: str) -> Callable[[Describe], Callable[[object], Verdict]]:
    """A decorator that makes the check of a step's text: right at several shapes, with every check
    on; and as fast as the good par, where the step has a hint for what is slower.

    The lesson's function says with what a right kernel reaches its speed: "with 16 bundles".
    """
    chosen = STEPS[step]

    def made(describe: Describe) -> Callable[[object], Verdict]:
        @exercise
        @wraps(describe)
        def check(text: object) -> Verdict:
            if type(text) is not str:
                return judge_kernel(text, FILE.name, lambda _: Verdict(False, ""))
            mine = chosen.kernel(text)
            assert isinstance(mine, TextKernel)
            judged = partial(_judged, chosen, mine, describe)
            verdict = judge_kernel(mine.source, FILE.name, judged, before=mine.before)
            return replace(verdict, finding=_of_the_cell(verdict.finding))

        return check

    return made


def _judged(step: ClimbStep, mine: Kernel, describe: Describe, _: Program) -> Verdict:
    """The verdict on a step's kernel that assembles."""
    verified = verify(mine, alpha=step.alpha, beta=step.beta)
    if not verified.right:
        return _wrong(mine, verified)
    gflops = _timed(mine, step.n).gflops
    finding = f"C is right, {describe(mine)}: {gflops:,.0f} Gflop/s at N = {step.n}"
    if step.hint and _reached(gflops, step.good_par) != "reached":
        return Verdict(False, f"{finding}; {step.good_par:,.0f} is the good par.", step.hint)
    return Verdict(True, f"{finding}.")


def _wrong(mine: Kernel, verified: Verification) -> Verdict:
    """The verdict on a wrong product: what the checks found; or if that is only the element, the
    term that spoiled it.
    """
    wrong, findings = verified.wrong, verified.findings
    if wrong and not any(finding.kind != "answer" for finding in findings):
        notes = trace_element(mine, wrong.row, wrong.column).notes
        if notes:
            return Verdict(False, f"{wrong}.", " ".join(notes[:2]))
    what = f"{wrong or verified.error}."
    return fault(findings) or Verdict(False, what, "what goes into this element, term by term?")


@lru_cache(maxsize=64)
def _timed(kernel: Kernel, n: int) -> Report:
    """A kernel's report; the check and ``keep`` ask for the same."""
    return simulate(kernel, n)


def mine_so_far() -> dict[str, Report | Kernel]:
    """The reader's kernels by step, for ``ck.draw.road(..., mine=...)``: the report of each that
    was timed in this session, else the kernel. A text that was damaged and doesn't assemble any
    more is left out.
    """
    mine_by_step: dict[str, Report | Kernel] = {}
    for step, kept in _kept().items():
        mine = _kept_kernel(step, kept)
        if mine is not None:
            mine_by_step[mine.name] = _reports.get((step, kept["text"]), mine)
    return mine_by_step


def _kept_kernel(step: str, entry: dict) -> Kernel | None:
    """The kernel that is kept of a step; None for a text that was damaged."""
    like = STEPS[step].like()
    block, k_step = _sizes(entry)
    try:
        return own_kernel(entry["text"], like=like, block=block, k_step=k_step, name=f"my {step}")
    except (CompileError, KernelError, ValueError):  # an ILError is a ValueError
        return None


#: Of each step's text that was timed in this session.
_reports: dict[tuple[str, str], Report] = {}


def _kept() -> dict[str, dict]:
    """What is kept of each step, in their order, without what is damaged."""
    kept = _entries() or {}
    return {step: kept[step] for step in STEPS if _is_kept(kept.get(step))}


def _entries() -> dict | None:
    """All that the file holds which remembers the steps; None if it is no such file."""
    try:
        entries = json.loads(KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return entries if isinstance(entries, dict) else None


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
    side = _side(lesson)
    if side == 1:
        return HEAD + NAIVE + TAIL
    return block_kernel(side, side, scaled=True).text


def _side(lesson: str) -> int:
    """The side of the book's block when a lesson begins."""
    return 1 if lesson < "02" else 4 if lesson < "03" else 8


def start(lesson: str) -> tuple[str, tuple[int, int], int]:
    """The text with which a lesson begins, as ``so_far``, its block, and its steps of k a turn.
    Those of a file that was edited elsewhere are found out; while it is no kernel, they are those
    of the last lesson of this file that was kept.
    """
    text = so_far(lesson)
    kept = [entry for name, entry in _kept().items() if STEPS[name].file == FILE]
    for entry in kept:
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
                return text, *_sizes(kept[-1])
    side = _side(lesson)
    return text, (side, side), 1


def _sizes(entry: dict) -> tuple[tuple[int, int], int]:
    rows, columns = entry["block"]
    return (rows, columns), entry["k_step"]


def _reached(gflops: float, par: float) -> str:
    return "reached" if gflops >= (1 - TOLERANCE) * par else "not yet"


def reason(error: Exception, text: object = "") -> str:
    """Why a ``text`` is no kernel, or none that runs; with lines of its file, or of its cell."""
    words = (error.message if isinstance(error, KernelError) else str(error)).strip()
    if isinstance(text, Path):
        return words.replace(f"{FILE}:", f"{text.name}:")
    return _of_the_cell(words)


def _of_the_cell(words: str) -> str:
    """Words on a text that stands in a cell: its lines are the cell's."""
    return PLACE.sub(r"line \1 of the cell", words)


def _is_right(kernel: Kernel) -> bool:
    """Whether a kernel runs and gives a right small product, and fetches nothing from outside of A
    and B: an odd number of turns tells its steps of k apart.
    """
    try:
        got, right, outside = _run(kernel, 8, 3)
    except (ILError, CompileError, KernelError, ValueError):
        return False
    return not outside and np.array_equal(got, right)


def _product(kernel: Kernel, least: int, turns: int) -> tuple[np.ndarray, np.ndarray]:
    """C of small whole numbers by a kernel, and what it should be: at least ``least`` rows and
    columns, in whole blocks, and so many turns of its loop.
    """
    got, right, _ = _run(kernel, least, turns)
    return got, right


def _run(kernel: Kernel, least: int, turns: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The same, and how many fetches were outside of A and B."""
    m, n = (-(-least // side) * side for side in kernel.multiple)
    k = turns * kernel.k_step
    rng = np.random.default_rng([m, n, k])
    a, b = (rng.integers(1, 5, shape).astype(kernel.dtype) for shape in ((m, k), (k, n)))
    got, run = run_gemm(kernel.program, kernel, a.T.copy() if kernel.trans_a else a, b)
    return got, a @ b, run.out_of_range
