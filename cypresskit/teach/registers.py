"""Lesson 04: the checks of its exercises on registers, wavefronts and waiting."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cypresskit.compiler import CompileError, compile
from cypresskit.devices import HD5870, Device
from cypresskit.il import ILError, assemble
from cypresskit.machine import KernelError, launch
from cypresskit.teach.verdict import Verdict, said, stopped
from cypresskit.timing.simulate import simulate

BUDGET = 10  # registers of exercise 2's kernel with C read after the loop; read before it, C makes it 12


def check_needed(needed: Callable) -> Verdict:
    """Exercise 1: ``needed(compute, wait)`` is the least number of wavefronts that keeps an engine busy, if each in
    turn computes and then waits for so many clocks."""
    for compute, wait in ((2, 6), (1, 0), (4, 5), (108, 408), (124, 540), (300, 8)):
        want = -(-(compute + wait) // compute)
        case = f"needed({compute}, {wait})"
        try:
            got = needed(compute, wait)
            right, whole = bool(got == want), bool(got == int(got))
        except Exception as error:
            return stopped("needed", error, f"{case} should give a whole number.")
        if right:
            continue
        hint = f"while one wavefront waits {wait} clocks, others compute for as long: how many, and the one itself?"
        if not whole:
            hint = "there is no part of a wavefront: round up to the next whole number."
        elif got == wait // compute + 1:
            hint = f"{got} wavefronts fill {got * compute} of {compute + wait} clocks: round up, not down."
        elif got == want + 1:
            hint = (
                f"{want} would do: {want} times {compute} clocks is {want * compute}, a round takes {compute + wait}."
            )
        elif got == want - 1:
            hint = "the wavefront itself computes too: a round is compute + wait clocks long."
        return Verdict(False, f"{case} gives {got}; the right number is {want}.", hint)
    return Verdict(True, "Enough wavefronts for six kinds of kernel, and never one too many.")


def check_c_late(text: object) -> Verdict:
    """Exercise 2: IL of a kernel with a 4 x 4 block that adds beta * C, within ``BUDGET`` registers."""
    if not isinstance(text, str):
        return Verdict(False, f"The kernel is a {type(text).__name__}, not text.", "pass the IL between quotes.")
    try:
        program = assemble(text, "with_c.il")
        registers = compile(program).gprs
    except (ILError, CompileError) as error:
        return Verdict(False, f"The kernel does not assemble.\n{error}", "the line above the caret.")
    rng = np.random.default_rng(37)
    for (m, n, k), beta in (((8, 12, 3), 0), ((4, 4, 2), 1), ((20, 8, 5), 3)):
        a, b, c = (rng.integers(1, 8, shape).astype(np.float32) for shape in ((k, m), (k, n), (m, n)))
        head = np.zeros((5, 4), np.float32)
        head[0, :3], head.view(np.int32)[0, 3] = (1, beta, k), n // 4
        got, inputs = c.copy(), {i: x.reshape(k, -1, 4) for i, x in enumerate((a, b))}
        try:
            launch(
                program, (n // 4, m // 4), inputs=inputs, constants={0: head}, global_memory=got, max_instructions=10**5
            )
        except (KernelError, ValueError) as error:
            return Verdict(False, f"The kernel does not run: {said(error)}", "compare that line with sgemm_tn.il.")
        if not np.array_equal(got, a.T @ b + beta * c):
            return Verdict(False, *_c_fault(got, a.T @ b, c, beta))
    room = HD5870.active_wavefronts(registers)
    if registers > BUDGET:
        return Verdict(
            False,
            f"C is right, but the kernel needs {registers} registers; {BUDGET} are enough.",
            "what is read before the loop is kept in registers all through it. When is C needed?",
        )
    return Verdict(True, f"C is right, with {registers} registers: {room} wavefronts fit on an engine.")


def _c_fault(got: np.ndarray, product: np.ndarray, old: np.ndarray, beta: float) -> tuple[str, str]:
    right = product + beta * old
    rows = [i for i in range(4) if not np.array_equal(got[i::4], right[i::4])]
    finding = (
        f"With beta = {beta}, C is wrong in row{'s' * (len(rows) > 1)} {', '.join(map(str, rows))} of every block."
    )
    part, i = got[rows[0] :: 4], rows[0]
    if np.array_equal(part, product[i::4]):
        return finding, f"the old C was not added to r{10 + i}, which holds row {i}."
    if beta != 1 and np.array_equal(part, (product + old)[i::4]):
        return finding, "the old C was added without its beta, cb0[0].y."
    if any(np.array_equal(part, (product[i::4] + beta * old[j::4])) for j in range(4) if j != i):
        return finding, f"row {i} got another row of the old C: rows of C lie cb0[0].w elements apart."
    return (
        finding,
        f"what is added to r{10 + i}: beta (cb0[0].y) times four numbers of the old C, from row {i} of the block.",
    )


def check_chip(chip: object) -> Verdict:
    """Exercise 3: an HD 5870 with just so many more registers that ``sgemm_tn_37`` has as many wavefronts as
    ``sgemm_tn`` has on the real one."""
    if not isinstance(chip, Device):
        return Verdict(
            False, f"my_chip is a {type(chip).__name__}.", "dataclasses.replace(ck.HD5870, ...) gives a device."
        )
    if replace(chip, name=HD5870.name, register_pool=HD5870.register_pool) != HD5870:
        return Verdict(False, "Something else than register_pool was changed.", "start from ck.HD5870 again.")
    want, registers = HD5870.active_wavefronts(25), 37
    try:
        room = chip.active_wavefronts(registers)
    except ValueError as error:
        return Verdict(False, f"The kernel does not fit: {error}", "equation 2, the other way round.")
    finding = f"With {chip.register_pool} registers, {room} wavefronts of sgemm_tn_37 fit; sgemm_tn has {want}"
    if room != want:
        return Verdict(False, f"{finding}.", f"a wavefront of this kernel takes {registers} registers of the pool.")
    if chip.register_pool > want * registers:
        return Verdict(
            False, f"{finding}, but fewer registers would do.", f"what is the least pool for {want} wavefronts?"
        )
    slow, fast = (simulate("sgemm_tn_37", m=3840, n=1024, k=128, device=d).gflops for d in (HD5870, chip))
    needs = f"{chip.register_pool / HD5870.register_pool - 1:.0%} more registers"
    return Verdict(True, f"{needs}, and sgemm_tn_37 goes from {slow:.0f} to {fast:.0f} Gflop/s (modelled).")
