"""Lesson 03: what another compiler makes of a kernel, why it is slower, and orders of its products
that suit it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from cypresskit.compiler import Bundle, Code, Control, compile
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.own import load_kernel
from cypresskit.lesson_table import Table
from cypresskit.teach.check import CheckStopped, Verdict, call_answer, require
from cypresskit.timing import simulate

KERNEL, N = KERNELS["sgemm_tn"], 2048
PRODUCT = re.compile(r" *mad r\d+, r\d\.[xyzw], r\d, ")  # a line of the loop
MIN_GFLOPS = 1_300  # of exercise 4
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
    *emptied, filled = sorted(spare, key=lambda b: b.filled)[: len(bundles) - count + 1]
    moved = tuple(o for bundle in (*emptied, filled) for o in bundle.operations)
    changed: dict[int, tuple[Bundle, ...]] = {id(bundle): () for bundle in emptied}
    changed[id(filled)] = (replace(filled, operations=moved),)
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
    return Table(HEADS, [describe(name, code) for name, code in codes.items()])


def describe(name: str, code: Code) -> list:
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


def order_table(order: Callable[[list[str]], list[str]]) -> Table | Verdict:
    """Return what two compilers make of the products in the order of ``order(products())``.

    If it returns something else, return what the check says of that.
    """
    returned = order(products())
    try:
        program = reordered(ordered_lines(lambda _: returned, products())).program
    except CheckStopped as stopped:
        return stopped.verdict
    codes = {"ours": compile(program), "LLVM's": compile(program, by="llvm")}
    return Table(HEADS, [describe(name, code) for name, code in codes.items()])


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
