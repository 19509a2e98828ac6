"""Lesson 03: what another compiler makes of a kernel, why it is slower, and orders of its products
that suit it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from cypresskit.compiler import Code, CompileError, Control, compile
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.own import load_kernel
from cypresskit.lesson_table import Table
from cypresskit.teach.check import Verdict, call_answer, function_exercise, require
from cypresskit.timing import simulate

KERNEL, N = KERNELS["sgemm_tn"], 2048
PRODUCT = re.compile(r" *mad r\d+, r\d\.[xyzw], r\d, ")  # a line of the loop
TASTE = 1_300  # Gflop/s of exercise 4
HEADS = "code", "bundles", "registers", "waits for fetches", "Gflop/s"


def one_wait(code: Code) -> Code:
    """Return code whose loop fetches all at once, in its first clause of fetches."""
    first, *others = [control for control in code.main_loop if control.fetches]
    fetches = tuple(fetch for control in (first, *others) for fetch in control.fetches)
    changed = {id(control): Control("NOP", depth=control.depth) for control in others}
    changed[id(first)] = replace(first, fetches=fetches)
    return replace(code, controls=tuple(changed.get(id(c), c) for c in code.controls))


def fewer_bundles(code: Code, count: int) -> Code:
    """Return code with ``count`` bundles in its loop: the products of the emptiest others are moved
    into one of them. No chip could execute that one: such code serves for a time.
    """
    bundles = [bundle for control in code.main_loop for bundle in control.bundles]
    spare = [b for b in bundles if all(o.name == "MULADD_IEEE" for o in b.operations)]
    *gone, kept = sorted(spare, key=lambda b: b.filled)[: len(bundles) - count + 1]
    moved = tuple(o for bundle in (*gone, kept) for o in bundle.operations)
    changed = {id(bundle): () for bundle in gone} | {id(kept): (replace(kept, operations=moved),)}
    controls = []
    for control in code.controls:
        left = tuple(b for bundle in control.bundles for b in changed.get(id(bundle), (bundle,)))
        controls.append(replace(control, bundles=left))
    return replace(code, controls=tuple(controls))


def llvm_table() -> Table:
    """Return how fast LLVM's code would be with one property of ours each, and with all of them."""
    ours, theirs = compile(KERNEL.program), compile(KERNEL.program, by="llvm")
    count = sum(len(control.bundles) for control in ours.main_loop)
    codes = {
        "LLVM's": theirs,
        "with one wait": one_wait(theirs),
        f"with {count} bundles": fewer_bundles(theirs, count),
        f"with {ours.gprs} registers": replace(theirs, gprs=ours.gprs),
        "with all three": replace(one_wait(fewer_bundles(theirs, count)), gprs=ours.gprs),
        "ours": ours,
    }
    return Table(HEADS, [row(name, code) for name, code in codes.items()])


def row(name: str, code: Code) -> list:
    """Return a row of ``HEADS``."""
    stats = code.stats()
    speed = round(simulate(code, N).gflops)
    return [name, stats.bundles_per_iteration, stats.gprs, stats.tex_clauses, speed]


def products() -> list[str]:
    """Return the lines with the products of the loop, 32 ``mad``s."""
    return [line.strip() for line in KERNEL.text.splitlines() if PRODUCT.match(line)]


def reordered(order: Sequence[str]) -> Kernel:
    """Return the kernel with its products in another order."""
    lines = iter(order)
    text = [next(lines) if PRODUCT.match(old) else old for old in KERNEL.text.splitlines()]
    return load_kernel("\n".join(text), name="reordered")


def taste(order: Callable[[list[str]], list[str]]) -> Table:
    """Return what two compilers make of the products in the order of ``order(products())``."""
    program = reordered(order(products())).program
    codes = {"ours": compile(program), "LLVM's": compile(program, by="llvm")}
    return Table(HEADS, [row(name, code) for name, code in codes.items()])


def ordered_lines(order: Callable, mads: list[str]) -> list[str]:
    """Return lines in the order of ``order``. Stop the check unless these are all of them."""
    hint = f"it gets the {len(mads)} lines as a list of texts, and returns them all."
    lines = call_answer(
        "order(mads)",
        lambda given: [" ".join(line.split()) for line in order(given)],
        mads,
        hint=hint,
        unusable="something other than a list of texts",
    )
    missing = [line for line in mads if line not in lines]
    require(not missing, f"`{missing[0] if missing else ''}` is missing.", hint)
    require(len(lines) == len(mads), f"It returns {len(lines)} lines for {len(mads)}.", hint)
    return lines


@function_exercise
def check_taste(order: Callable) -> Verdict:
    """Exercise 4: ``order(mads)`` returns the lines of the loop in an order that LLVM compiles to
    faster code.
    """
    mads = products()
    lines = ordered_lines(order, mads)
    ordered_lines(order, [mad.replace("r1", "r3") for mad in mads])  # with r30 in place of r10
    try:
        code = compile(reordered(lines).program, by="llvm")
    except CompileError as error:
        return Verdict(False, str(error), "run this exercise where the workbook is installed.")
    _, bundles, _, waits, speed = row("LLVM's", code)
    message = f"LLVM makes {bundles} bundles of it, with {waits} waits, and {speed:,} Gflop/s"
    where = "its bundles are emptier now: other orders with one wait have fewer."
    if waits > 1:
        where = (
            "LLVM schedules a loop from its end, and fetches what isn't needed any more: which of"
            " the fetched registers r2 to r9 do the last lines use?"
        )
    require(speed >= TASTE, f"{message}; {TASTE:,} are asked for.", where)
    ours = row("ours", compile(reordered(lines).program))
    return Verdict(
        True, f"{message.replace('1 waits', '1 wait')}. Ours makes {ours[1]}, and {ours[4]:,}."
    )
