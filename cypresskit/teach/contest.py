"""Lesson 12: kernels and chips that compete in simulated Gflop/s, and the checks of the four exercises.

An entry is a single-precision TN kernel (the rules of ``sgemm_tn.il``: resources 0 and 1, cb0, C in g[]) with its own
block. It has to be right before it is timed: with every check on at two small sizes, with alpha and beta, and then in
the very launch that is timed, every element. That launch's numbers are whole and up to 64, so that sums are exact in
any order and yet too large for two of them to share a float. The timing model refuses branches that depend on them.
``write`` makes such kernels for any block. A chip may move memory about on the die and no more.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from textwrap import shorten

import numpy as np

from cypresskit.compiler import CompileError
from cypresskit.devices import HD5870, Device
from cypresskit.il import ILError
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.machine import KernelError, launch
from cypresskit.teach import formula
from cypresskit.teach.answers import check_gemm
from cypresskit.teach.published import kernel as published
from cypresskit.teach.verdict import Verdict
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import compiled, simulate

N = 2048  # where entries are timed
FREE = ("register_pool", "lds_bytes", "l1_bytes", "l2_bytes")  # what a chip may change
POOL_BYTES = 64 * 16  # of one register for a wavefront


@dataclass(frozen=True)
class Entry(Kernel):
    """A kernel whose IL is ``source``."""

    source: str = ""

    @property
    def text(self) -> str:
        return self.source


def entry(text: str, block: tuple[int, int] = (8, 8), k_step: int = 2, name: str = "mine") -> Entry:
    """An entry of IL ``text`` that computes ``block`` of C a work-item and ``k_step`` steps of k a turn."""
    return Entry(name, "single", "pixel", block, k_step, "an entry", True, False, source=text)


def with_loop(loop: str) -> str:
    """``sgemm_tn.il`` with another main loop; ``l9.x`` holds 1.0 there."""
    text = KERNELS["sgemm_tn"].text
    head, _, rest = text.partition("whileloop\n")
    tail = rest.partition("endloop\n")[2]
    return head.replace("dcl_cb ", "dcl_literal l9, 1.0, 0.0, 0.0, 0.0\ndcl_cb ") + loop + tail


def write(rows: int, columns: int, steps: int) -> Entry:
    """An entry with a block of ``rows`` x ``columns`` and ``steps`` steps of k a turn; ``ValueError`` unless rows and
    columns are multiples of 4 and the block has at most 16 x 16 elements."""
    if rows % 4 or columns % 4 or not 0 < rows * columns <= 256 or min(rows, columns, steps) < 1:
        raise ValueError(
            f"write({rows}, {columns}, {steps}): rows and columns are multiples of 4, as texels are, for at most 256"
            " elements; steps are at least 1"
        )
    down, across = rows // 4, columns // 4
    first = 2 + steps * (down + across)  # of the block's registers
    fetches, products = [], []
    for step in range(steps):
        a = 2 + step * (down + across)
        b = a + down
        for texture, start, count, letter in ((0, a, down, "x"), (1, b, across, "y")):
            fetch = f"sample_resource({texture})_sampler({texture})_aoffimmi"
            fetches += [f"{fetch}({t},{step},0) r{start + t}, r0.{letter}z00" for t in range(count)]
        for i in range(rows):
            for t in range(across):
                r = first + i * across + t
                products.append(f"mad r{r}, r{a + i // 4}.{'xyzw'[i % 4]}, r{b + t}, r{r}")
    stores = []
    for i in range(rows):
        stores += ["iadd r1.x, r1.x, cb0[0].w"] * (i > 0)
        for t in range(across):
            r = first + i * across + t
            stores += [f"mul r{r}, r{r}, cb0[0].x", "if_logicalnz cb0[4].x", f"    mov r2, g[r1.x+{t}]"]
            stores += [f"    mad r{r}, r2, cb0[0].y, r{r}", "endif", f"mov g[r1.x+{t}], r{r}"]
    formats = "_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
    lines = ["il_ps_2_0", "dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__"]
    lines += [f"dcl_resource_id({n}){formats}" for n in (0, 1)]
    lines += ["dcl_cb cb0[5]", f"dcl_literal l0, 0.0, {steps}.0, {rows}.0, -0.5"]
    lines += [f"dcl_literal l1, {down}.0, {across}.0, {-down / 2}, {-across / 2}"]
    lines += ["mad r0.xy, vWinCoord0.yx, l1.xy, l1.zw", "mov r0.z, l0.x"]
    lines += [f"mov r{r}, l0.x" for r in range(first, first + rows * across)]
    lines += ["whileloop", "ge r1.x, r0.z, cb0[0].z", "break_logicalnz r1.x", *fetches, *products]
    lines += ["add r0.z, r0.z, l0.y", "endloop", "add r1.x, vWinCoord0.y, l0.w", "mul r1.x, r1.x, l0.z"]
    lines += ["ftoi r1.x, r1.x", "ftoi r1.y, r0.y", "imad r1.x, r1.x, cb0[0].w, r1.y", *stores, "endmain", "end"]
    return entry("\n".join(lines), (rows, columns), steps, f"{rows} x {columns}, {steps} step{'s' * (steps > 1)}")


@dataclass(frozen=True)
class Score:
    """An entry's result: ``verdict`` on whether it is right, and its ``report`` if it is."""

    name: str
    verdict: Verdict
    report: Report | None = None

    @property
    def gflops(self) -> float:
        """Simulated Gflop/s; 0 if the kernel is wrong."""
        return self.report.gflops if self.report else 0.0


timed = lru_cache(maxsize=64)(simulate)


def judge(of: Kernel, device: Device = HD5870, n: int = N) -> Score:
    """Check an entry (or ``sgemm_tn`` and its like) and, if it is right, time it at n x n x n. It never raises."""
    fault = chip_fault(device) or _not_an_entry(of)
    if fault:
        return Score(str(getattr(of, "name", of)), fault)
    return _judged(of, replace(device, name=HD5870.name), n)  # a new name alone is no new chip to time


@lru_cache(maxsize=64)
def _judged(of: Kernel, device: Device, n: int) -> Score:
    fault = _fault(of, device, n)
    if fault:
        return Score(of.name, fault)
    try:
        report = timed(of, n, device=device)
    except ValueError as error:
        hint = "addresses and branches may not depend on what the matrices hold, and a wavefront has to fit the chip."
        return Score(of.name, Verdict(False, f"{of.name} can't be timed: {error}", hint))
    return Score(of.name, Verdict(True, f"{of.name}: {report.gflops:.0f} Gflop/s at n = {n}."), report)


def _not_an_entry(of) -> Verdict | None:
    """What keeps anything from being run as an entry, or None. A class that overrides a kernel's methods is none."""
    kind = type(of).__name__
    if type(of) is not Entry and not (type(of) is Kernel and of in KERNELS.values()):
        what = f"An entry is what contest.entry(...) or contest.write(...) returns, not a {kind}."
        return Verdict(False, what, "contest.entry(text, block=(8, 8), k_step=2), for instance.")
    text: object = of.text  # whatever was passed
    if not isinstance(text, str):
        return Verdict(False, f"The kernel is a {type(text).__name__}, not text.", "pass the IL between quotes.")
    if (of.precision, of.mode, of.trans_a, of.trans_b, of.streams) != ("single", "pixel", True, False, 0):
        return Verdict(False, f"{of.name} is no rival of sgemm_tn.", "entries compute SGEMM TN as pixel kernels.")
    sizes = [*of.block, of.k_step] if isinstance(of.block, tuple) else []
    if len(sizes) != 3 or not all(type(size) is int and 0 < size <= 64 for size in sizes):
        what = f"block = {of.block!r}, k_step = {of.k_step!r}: three whole numbers from 1 to 64 are needed."
        return Verdict(False, what, "rows and columns of C that a work-item computes, as (8, 8); steps of k in a turn.")
    return None


def _fault(of: Kernel, device: Device, full: int) -> Verdict | None:
    """What is wrong with a kernel, or None: at two small sizes with every check on, then at ``full`` cubed."""
    try:
        program = of.program
        compiled(of, device)
    except ILError as error:
        return Verdict(False, f"The kernel does not assemble.\n{error}", "the line above the caret.")
    except CompileError as error:
        return Verdict(False, f"The kernel does not compile: {error}", "fewer registers: a smaller block, fewer steps.")
    rng = np.random.default_rng(12)
    (rows, columns), k = of.block, 2 * of.k_step
    try:
        for m, n in ((rows, 2 * columns), (2 * rows, columns)):
            a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((k, m), (k, n), (m, n)))
            if found := check_gemm(of, a, b, c, alpha=2.0, beta=-1.0, program=program):
                finding = f"{found[0]}\nHere C is {m} x {n} and k = {k}."
                return Verdict(False, finding, "that line, before you think of speed.")
        a, b = (rng.integers(-64, 65, (full, full)).astype(np.float32) for _ in "ab")
        arguments = of.arguments(a, b, None, 1.0, 0.0)
        run = launch(program, **arguments)
    except (KernelError, TypeError, ValueError) as error:
        return Verdict(False, f"The kernel does not run: {error}", "are its mode, block and k_step those of the text?")
    got, want = of.result(arguments, full, full), a.T @ b
    wrong = got != want
    if not wrong.any() and not run.out_of_range:
        return None
    what = f"{run.out_of_range:,} fetches lie outside A and B"
    if wrong.any():
        i, j = divmod(int(wrong.argmax()), full)
        what = f"{wrong.sum():,} elements are wrong, the first C[{i}, {j}]: {got[i, j]:g} in place of {want[i, j]:g}"
    finding = f"At {full} x {full} x {full}, where it would be timed, {what}. At small sizes it is right."
    return Verdict(False, finding, "what depends on the size, on k or on the place?")


def leaderboard(entries: Iterable[Kernel | tuple[Kernel, Device]], n: int = N) -> str:
    """Judge kernels, or pairs of a kernel and a chip, and list them, the best first, with the published figure among
    them. Wrong ones stand below, with the reason."""
    paper = published("sgemm_tn")
    rows, wrong = [(float(paper["gflops_max"]), "Nakasato 2010", f"measured at n = {paper['n_at_max']}")], []
    for of in entries:
        kernel, chip = of if isinstance(of, tuple) and len(of) == 2 else (of, HD5870)
        score = judge(kernel, chip, n)
        name = shorten(score.name if chip is HD5870 else f"{score.name}, {getattr(chip, 'name', chip)}", 20)
        if score.report:
            more = [f"{score.report.registers:3} registers", score.report.bound]
            more += [f"{f} {getattr(chip, f)}" for f in FREE if getattr(chip, f) != getattr(HD5870, f)]
            rows.append((score.gflops, name, ", ".join(more)))
        else:
            wrong.append(f"     -  {name:20} {shorten(score.verdict.finding, 80)}")
    lines = [f"{g:6.0f}  {name:20} {more}" for g, name, more in sorted(rows, reverse=True)]
    return "\n".join([f"Gflop/s, simulated at n = {n}", *lines, *wrong])


def die_bytes(device: Device) -> int:
    """Bytes of memory on the chip: registers, LDS and L1 of all engines, and L2."""
    return (
        device.simd_engines * (device.register_pool * POOL_BYTES + device.lds_bytes + device.l1_bytes) + device.l2_bytes
    )


def chip_fault(device) -> Verdict | None:
    """What a chip may not be, or None: only memories change, and all together they don't grow."""
    if type(device) is not Device:
        return Verdict(
            False, f"A chip is a Device, not a {type(device).__name__}.", "replace(ck.HD5870, ...) makes one."
        )
    for field in fields(Device):
        if field.name not in (*FREE, "name") and getattr(device, field.name) != getattr(HD5870, field.name):
            return Verdict(False, f"{field.name} is not the HD 5870's.", f"only {', '.join(FREE)} may change.")
    over = die_bytes(device) - die_bytes(HD5870)
    if over > 0:
        return Verdict(False, f"{over:,} bytes more than the HD 5870 has.", "take them from another memory.")
    return None


def check_two_steps(loop) -> Verdict:
    """Exercise 1: the main loop of ``sgemm_tn`` with two steps of k a turn."""
    if not isinstance(loop, str):
        return Verdict(
            False, f"The loop is a {type(loop).__name__}, not text.", "keep the three quotes on either side."
        )
    mine, n = entry(with_loop(loop)), 1024
    score = judge(mine, n=n)
    if not score.report:
        return score.verdict
    card = compiled(mine, HD5870).card(2)
    if card.mads < 128:
        return Verdict(
            False,
            f"C is right, but a turn has {card.fetches} fetches and {card.loop_bundles} bundles for one step of k.",
            "fetch the next rows too, `_aoffimmi(0,1,0)`, and add their products before the loop tests again.",
        )
    plain = timed(write(8, 8, 1), n, device=HD5870).gflops
    return Verdict(
        True,
        f"Two steps in {card.loop_bundles} bundles and {card.gprs} registers: {score.gflops:.0f} Gflop/s at n = {n};"
        f" one step a turn gives {plain:.0f}.",
    )


def check_filled(filled: Callable) -> Verdict:
    """Exercise 2: ``filled(n, active)``, the share of wavefront slots with work over all rounds of an n x n product."""

    def right(n: int, active: int) -> float:
        count, room = (n // 64) ** 2, HD5870.simd_engines * active
        return count / (-(-count // room) * room)

    return formula.judge(
        filled,
        "filled",
        right,
        [(2048, 10), (1024, 10), (1280, 10), (1536, 12), (256, 10)],
        {
            "that is the last round alone; all of them count.": lambda n, k: (
                ((n // 64) ** 2 % (20 * k) or 20 * k) / 20 / k
            ),
            "there are 20 engines, each with so many wavefronts.": lambda n, k: (
                (n // 64) ** 2 / (-(-((n // 64) ** 2) // k) * k)
            ),
            "a round that is begun is a round: round their number up.": lambda n, k: (n // 64) ** 2 / (20 * k),
            "that is the share that stays empty.": lambda n, k: 1 - right(n, k),
            "a wavefront has 64 work-items of 8 x 8 elements: 64 x 64 of them.": lambda n, k: (
                (n // 8) ** 2 / (-(-((n // 8) ** 2) // (20 * k)) * 20 * k)
            ),
        },
        "how many wavefronts are there, how many slots has a round, and how many rounds are begun?",
    )


def check_chip(chip) -> Verdict:
    """Exercise 3: a chip on which ``sgemm_tn`` runs at least 3 % faster than on the HD 5870, with as much memory."""
    score = judge(KERNELS["sgemm_tn"], chip)
    if not score.report:
        return score.verdict
    before, after = timed(KERNELS["sgemm_tn"], N, device=HD5870), score.report
    finding = f"sgemm_tn: {after.gflops:.0f} Gflop/s with {after.active} wavefronts on an engine; the HD 5870 has"
    finding += f" {before.gflops:.0f} with {before.active}"
    if after.gflops < 1.03 * before.gflops:
        return Verdict(
            False, f"{finding}.", "which of its memories does this kernel not use at all? What would it like more of?"
        )
    return Verdict(True, f"{finding}. The chip's memory: {die_bytes(chip):,} bytes, no more than before.")


def check_entry(mine: Kernel) -> Verdict:
    """Exercise 4: an entry that is right, and faster on the simulated HD 5870 than ``sgemm_tn``."""
    score = judge(mine)
    if not score.report:
        return score.verdict
    best = timed(KERNELS["sgemm_tn"], N, device=HD5870).gflops
    finding = f"C is right, at {score.gflops:.0f} Gflop/s; sgemm_tn does {best:.0f}"
    if score.gflops <= best:
        return Verdict(
            False, f"{finding}.", f"it is bound by {score.report.bound}, with {score.report.active} wavefronts."
        )
    return Verdict(
        True, f"{finding}. It takes {score.report.registers} registers, and is bound by {score.report.bound}."
    )
