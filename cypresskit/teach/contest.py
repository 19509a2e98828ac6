"""Lesson 12: kernels and chips that compete in simulated Gflop/s, and the checks of the four exercises.

An entry is a single-precision TN kernel (the rules of ``sgemm_tn.il``: resources 0 and 1, cb0, C in g[]) with its own
block. It has to be right before it is timed: with every check on at two small sizes, with alpha and beta, and then
at 512 x 512 x 512. ``write`` makes such kernels for any block. A chip may move memory about on the die and no more.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from cypresskit.compiler import CompileError
from cypresskit.devices import HD5870, Device
from cypresskit.il import ILError
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.machine import KernelError, launch
from cypresskit.teach import formula
from cypresskit.teach.answers import check_gemm
from cypresskit.teach.published import kernel as published
from cypresskit.teach.verdict import Verdict, stopped
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import compiled, simulate

N = 2048  # where entries are timed
FREE = ("register_pool", "lds_bytes", "l1_bytes", "l2_bytes", "name")  # what a chip may change
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
    """An entry with a block of ``rows`` x ``columns`` (multiples of 4) and ``steps`` steps of k a turn."""
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
    """Check an entry (or a kernel of the catalogue) and, if it is right, time it at n x n x n."""
    fault = _fault(of, device)
    if fault:
        return Score(of.name, fault)
    report = timed(of, n, device=device)
    return Score(of.name, Verdict(True, f"{of.name}: {report.gflops:.0f} Gflop/s at n = {n}."), report)


def _fault(of: Kernel, device: Device) -> Verdict | None:
    """What is wrong with a kernel, or None."""
    try:
        program = of.program
        compiled(of, device)
    except ILError as error:
        return Verdict(False, f"The kernel does not assemble.\n{error}", "the line above the caret.")
    except CompileError as error:
        return Verdict(False, f"The kernel does not compile: {error}", "fewer registers: a smaller block, fewer steps.")
    rng = np.random.default_rng(12)
    (rows, columns), k = of.block, 2 * of.k_step
    for m, n in ((rows, 2 * columns), (2 * rows, columns)):
        a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((k, m), (k, n), (m, n)))
        found = check_gemm(of, a, b, c, alpha=2.0, beta=-1.0, program=program)
        if found:
            return Verdict(
                False, f"{found[0]}\nHere C is {m} x {n} and k = {k}.", "that line, before you think of speed."
            )
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((512, 512), (512, 512)))
    arguments = of.arguments(a, b, None, 1.0, 0.0)
    try:
        run = launch(program, **arguments, max_instructions=100_000_000)
    except KernelError as error:
        return Verdict(False, f"At 512 x 512 x 512: {error}", "it ran at small sizes: what depends on the size?")
    if run.out_of_range or not np.array_equal(of.result(arguments, 512, 512), a.T @ b):
        return Verdict(
            False, "C is wrong at 512 x 512 x 512, though right at small sizes.", "what depends on the size?"
        )
    return None


def leaderboard(scores: list[Score], chip: str = "HD 5870") -> str:
    """Scores, the best first, with the published figure among them. Wrong kernels stand below, with the reason."""
    paper = published("sgemm_tn")
    rows = [(s.gflops, s.name, f"{s.report.registers:3} registers, {s.report.bound}") for s in scores if s.report]
    rows.append((paper["gflops_max"], "Nakasato 2010", f"measured at n = {paper['n_at_max']}"))
    lines = [f"simulated on the {chip}, n = {N}"]
    lines += [f"{g:6.0f}  {name:20} {more}" for g, name, more in sorted(rows, reverse=True)]
    wrong = [f"     -  {s.name:20} {s.verdict.finding.splitlines()[0][:80]}" for s in scores if not s.report]
    return "\n".join(lines + wrong)


def die_bytes(device: Device) -> int:
    """Bytes of memory on the chip: registers, LDS and L1 of all engines, and L2."""
    return (
        device.simd_engines * (device.register_pool * POOL_BYTES + device.lds_bytes + device.l1_bytes) + device.l2_bytes
    )


def chip_fault(device) -> Verdict | None:
    """What a chip may not be, or None: only memories change, and all together they don't grow."""
    if not isinstance(device, Device):
        return Verdict(
            False, f"A chip is a Device, not a {type(device).__name__}.", "replace(ck.HD5870, ...) makes one."
        )
    for field in fields(Device):
        if field.name not in FREE and getattr(device, field.name) != getattr(HD5870, field.name):
            return Verdict(False, f"{field.name} is not the HD 5870's.", f"only {', '.join(FREE[:-1])} may change.")
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
    mine = entry(with_loop(loop))
    fault = _fault(mine, HD5870)
    if fault:
        return fault
    card = compiled(mine, HD5870).card(2)
    if card.mads < 128:
        return Verdict(
            False,
            f"C is right, but a turn has {card.fetches} fetches and {card.loop_bundles} bundles for one step of k.",
            "fetch the next rows too, `_aoffimmi(0,1,0)`, and add their products before the loop tests again.",
        )
    speed, plain = judge(mine).gflops, timed(write(8, 8, 1), N, device=HD5870).gflops
    return Verdict(
        True,
        f"Two steps in {card.loop_bundles} bundles and {card.gprs} registers: {speed:.0f} Gflop/s at n = {N};"
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
        "(n / 64)^2 wavefronts; 20 engines take `active` each in a round; round the number of rounds up.",
    )


def check_chip(chip) -> Verdict:
    """Exercise 3: a chip on which ``sgemm_tn`` runs at least 3 % faster than on the HD 5870, with as much memory."""
    fault = chip_fault(chip)
    if fault:
        return fault
    before = timed(KERNELS["sgemm_tn"], N, device=HD5870)
    try:
        after = timed(KERNELS["sgemm_tn"], N, device=chip)
    except ValueError as error:
        return Verdict(False, f"sgemm_tn does not run on it: {error}", "which memory does it need?")
    finding = f"sgemm_tn: {after.gflops:.0f} Gflop/s with {after.active} wavefronts on an engine; the HD 5870 has"
    finding += f" {before.gflops:.0f} with {before.active}"
    if after.gflops < 1.03 * before.gflops:
        return Verdict(
            False, f"{finding}.", "which of its memories does this kernel not use at all? What would it like more of?"
        )
    return Verdict(True, f"{finding}. The chip's memory: {die_bytes(chip):,} bytes, no more than before.")


def check_entry(mine: Kernel) -> Verdict:
    """Exercise 4: an entry that is right, and faster on the simulated HD 5870 than ``sgemm_tn``."""
    if not isinstance(mine, Kernel) or mine.precision != "single":
        what = f"An entry is what contest.entry(...) or contest.write(...) returns, not a {type(mine).__name__}."
        return Verdict(False, what, "contest.entry(text, block=(8, 8), k_step=2), for instance.")
    try:
        score = judge(mine)
    except Exception as error:
        return stopped("The launch", error, "are block and k_step those of the text?")
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
