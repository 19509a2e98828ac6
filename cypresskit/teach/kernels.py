"""From a student's kernel to a verdict: assemble it, run it, name the slip, hold it to a budget.

``judge_kernel`` assembles, and turns whatever is raised into a verdict; the lesson's function that
it calls runs the program and judges it. ``check_gemm`` and ``run_gemm`` launch programs as kernels
of the catalogue are launched. ``block_kernel`` writes such kernels for any block.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, wraps

import numpy as np

from cypresskit.compiler import CompileError
from cypresskit.il import ILError, Program, assemble
from cypresskit.il.opcodes import OPCODES
from cypresskit.kernels import Kernel
from cypresskit.machine import KernelError, Run, launch
from cypresskit.machine.checks import Findings, check
from cypresskit.teach.check import LOOP, Verdict, a_type, error_text, exercise
from cypresskit.teach.slips import mistakes

NAMES = {0: "A", 1: "B", "g": "C"}
assembled = lru_cache(maxsize=64)(
    assemble
)  # once, however often and with whatever block it is judged
LONGEST = 10**5  # instructions of a work-item: no exercise needs a tenth of them
LIMIT = " (max_instructions raises the limit.)"  # nothing that a student can change


def judge_kernel(
    text: object,
    name: str,
    judge: Callable[[Program], Verdict],
    *,
    what: str = "kernel",
    quotes: str = "pass the IL between quotes.",
    stuck: str = "is a declaration missing, or changed?",
    crowded: str = "fewer registers: it is the block that takes most of them.",
    before: str = "",
) -> Verdict:
    """The verdict of ``judge`` on the program in ``text``; or on what is no text, doesn't assemble,
    compile or run. ``what`` names the answer, ``quotes`` tells how to write it as text, ``stuck``
    is the hint if it doesn't run, ``crowded`` if it needs too many registers; ``before`` as for
    ``assemble``.
    """
    if type(text) is not str:
        return Verdict(False, f"The {what} is {a_type(text)}, not text.", quotes)
    try:
        return judge(assembled(text, name, before=before))
    except ILError as error:
        hint = (
            "the line above the caret." if str(error).endswith("^") else "the place that it names."
        )
        return Verdict(False, f"The kernel does not assemble.\n{error}", hint)
    except CompileError as error:
        hint = crowded if "registers" in str(error) else "the line it names."
        return Verdict(False, f"The kernel does not compile: {error}", hint)
    except (KernelError, TypeError, ValueError) as error:
        hint = LOOP if "has not ended" in str(error) else stuck
        return Verdict(
            False, f"The kernel does not run: {error_text(error).removesuffix(LIMIT)}", hint
        )


def kernel_exercise(
    name: str, **how
) -> Callable[[Callable[[Program], Verdict]], Callable[[object], Verdict]]:
    """A decorator: a function from Program to Verdict becomes a check of IL text; ``how`` as for
    ``judge_kernel``.
    """

    def made(judge: Callable[[Program], Verdict]) -> Callable[[object], Verdict]:
        @exercise
        @wraps(judge)
        def check(text: object) -> Verdict:
            return judge_kernel(text, name, judge, **how)

        return check

    return made


def sentence(message: str) -> str:
    """A finding's message with a capital letter, unless it begins with an instruction or a
    register.
    """
    word = message.split()[0].replace("-", "")
    return message[0].upper() + message[1:] if word.isalpha() and word not in OPCODES else message


def fault(findings: Findings) -> Verdict | None:
    """The verdict on the first finding, or None if there is none."""
    if not findings:
        return None
    first = findings[0]
    line = f" Line {first.line} of the kernel: {first.text.strip()}" if first.text else ""
    rest = len(findings) - 1
    more = (
        f" ({rest} more"
        f" finding{'s follow from it, or come' if rest > 1 else ' follows from it, or comes'}"
        " next.)"
    )
    return Verdict(
        False,
        f"{sentence(first.message)}.{line}{more * (rest > 0)}",
        first.advice.removesuffix(LIMIT),
    )


def run_gemm(
    program: Program, kernel: Kernel, *matrices, alpha=1.0, beta=0.0
) -> tuple[np.ndarray, Run]:
    """(C, the run's counts) of a student's ``program``, launched like ``kernel`` on matrices A, B
    and perhaps C.
    """
    a, b, c = (*matrices, None)[:3]
    arguments = kernel.arguments(a, b, c, alpha, beta)
    run = launch(program, **arguments, max_instructions=LONGEST)
    return kernel.result(arguments, a.shape[kernel.trans_a], b.shape[not kernel.trans_b]), run


def check_gemm(
    kernel: Kernel,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    program: Program | None = None,
    names: Mapping = NAMES,
) -> Findings:
    """Findings on ``kernel``, or on a student's ``program`` launched like it: a C other than alpha
    op(A) op(B) + beta C, and unsound accesses. Matrices are as stored (see ``Kernel.arguments``).

    ``names`` as for ``ck.check``. Raises ``ValueError`` for kernels that write C through output
    streams or read their matrices from a buffer, and for those in double-double.
    """
    if (
        kernel.precision not in ("single", "double")
        or kernel.streams
        or kernel.buffer
        or kernel.packed
    ):
        raise ValueError(
            f"check_gemm takes kernels that fetch A and B and store C to g[]; {kernel.name}"
            " does not"
        )
    arguments = kernel.arguments(a, b, c, alpha, beta)
    stored = [arguments["inputs"][n].astype(np.float64) for n in (0, 1)]
    left, right = kernel.operands(*(matrix.reshape(len(matrix), -1) for matrix in stored))
    old = arguments["global_memory"].astype(np.float64)
    rounding = float(np.finfo(kernel.dtype).eps)
    steps = left.shape[1] + 4
    size = abs(alpha) * (np.abs(left) @ np.abs(right)) + abs(beta) * np.abs(old)
    return check(
        program or kernel.program,
        **arguments,
        names=names,
        expected=(alpha * (left @ right) + beta * old).astype(kernel.dtype),
        tolerance=rounding * steps * size,
        mistakes=dict(mistakes(kernel, left, right, old, alpha, beta)),
    )


@dataclass(frozen=True)
class Written(Kernel):
    """A kernel with the IL ``source``, after lines that reports don't count."""

    source: str = ""
    before: str = ""

    @property
    def text(self) -> str:
        return self.before + self.source

    @cached_property
    def program(self) -> Program:
        return assembled(self.source, f"{self.name}.il", before=self.before)


def block_kernel(
    rows: int, columns: int, steps: int = 1, *, scaled: bool = False, name: str = ""
) -> Written:
    """An SGEMM TN kernel in the form of ``sgemm_tn.il`` with a block of ``rows`` x ``columns`` and
    ``steps`` steps of k a turn; without ``scaled`` it knows no alpha and no beta. A texel holds as
    many numbers as the block is wide, up to four. Blocks of 1 and 2 rows store to output streams.
    r2 onwards hold what a turn fetches, then the block.
    """
    wide = min(columns, 4)
    down, across = max(rows // 4, 1), max(columns // 4, 1)
    first, streams = 2 + steps * (down + across), rows if wide < 4 else 0
    block = [(i, t, first + i * across + t) for i in range(rows) for t in range(across)]
    by_columns = sorted(
        block, key=lambda place: place[1]
    )  # neighbours share their b, and read ports with it
    mask = "" if wide == 4 else "." + "xyzw"[:wide].ljust(4, "_")
    fetches, products = [], []
    for step in range(steps):
        a = 2 + step * (down + across)
        for texture, start, count, letter in ((0, a, down, "x"), (1, a + down, across, "y")):
            fetch = f"sample_resource({texture})_sampler({texture})_aoffimmi"
            fetches += [f"{fetch}({t},{step},0) r{start + t}, r0.{letter}z00" for t in range(count)]
        products += [
            f"mad r{r}{mask}, r{a + i // 4}.{'xyzw'[i % 4]}, r{a + down + t}, r{r}"
            for i, t, r in by_columns
        ]
    stores = [f"mov o{i}{mask}, r{r}" for i, _, r in block if streams]
    if not streams:
        stores = ["mad r1.x, vWinCoord0.y, l0.z, l0.w", "ftoi r1.x, r1.x", "ftoi r1.y, r0.y"]
        stores.append("imad r1.x, r1.x, cb0[0].w, r1.y")
    for i, t, r in block if not streams else ():
        stores += ["iadd r1.x, r1.x, cb0[0].w"] * (i > 0 and t == 0)
        if scaled:
            stores += [
                f"mul r{r}, r{r}, cb0[0].x",
                "if_logicalnz cb0[4].x",
                f"    mov r2, g[r1.x+{t}]",
            ]
            stores += [f"    mad r{r}, r2, cb0[0].y, r{r}", "endif"]
        stores.append(f"mov g[r1.x+{t}], r{r}")
    formats = "_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
    lines = ["il_ps_2_0", "dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__"]
    lines += [f"dcl_resource_id({n}){formats}" for n in (0, 1)] + [
        f"dcl_output_generic o{i}" for i in range(streams)
    ]
    lines += ["dcl_cb cb0[5]", f"dcl_literal l0, 0.0, {steps}.0, {rows}.0, {-rows / 2}"]
    lines += [f"dcl_literal l1, {down}.0, {across}.0, {-down / 2}, {-across / 2}"]
    lines += [
        "mad r0.xy, vWinCoord0.yx, l1.xy, l1.zw",
        "mov r0.z, l0.x",
        *(f"mov r{r}, l0.x" for *_, r in block),
    ]
    lines += ["whileloop", "ge r1.x, r0.z, cb0[0].z", "break_logicalnz r1.x", *fetches, *products]
    lines += ["add r0.z, r0.z, l0.y", "endloop", *stores, "endmain", "end"]
    name, source = name or f"block_{rows}x{columns}", "\n".join(lines)
    written = Written(
        name, "single", "pixel", (rows, columns), steps, "", trans_a=True, source=source
    )
    return replace(written, streams=streams, texel=4 * wide)
