"""Lesson 03: small kernels and their bundles as text, sums in several chains, and the checks of its
exercises.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from cypresskit import published
from cypresskit.compiler import Bundle, Code, CompileError, Control, KernelStats, compile
from cypresskit.il import Program, assemble
from cypresskit.il.host_llvm import HAS_LLVM
from cypresskit.il.program import LETTERS
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.lesson_table import Table
from cypresskit.machine import KernelError, launch
from cypresskit.machine.checks import check
from cypresskit.tables import listed, quantity
from cypresskit.teach.check import Verdict, function_exercise, require
from cypresskit.teach.climb import climb_exercise
from cypresskit.teach.formula import formula_exercise
from cypresskit.teach.kernels import judge_findings, kernel_exercise
from cypresskit.teach.l03_bundles.order_table import (
    MIN_GFLOPS,
    describe,
    ordered_lines,
    reordered,
)
from cypresskit.teach.l03_bundles.order_table import llvm_table as llvm_table
from cypresskit.teach.l03_bundles.order_table import products as products

HEAD = """il_ps_2_0
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_output_generic o0
"""
TERMS, BUDGET = 16, 5  # of exercise 3
MOST = 1_000  # instructions of its kernel: a dozen are enough
CHAINED = 32  # numbers that are added up in chains
COMPARED = "sgemm_tn", "dgemm_tn", "ddgemm_tn_fma", "sgemm_64x64", "sgemm_64x64_lds"
WHAT = "bundles", "registers", "full, %"


def tiny(body: str, texels: int = 4) -> Code:
    """Compile a small kernel: r1, r2, ... hold ``texels`` fetched texels, ``body`` is its IL, and
    it stores r0.
    """
    fetches = (
        f"sample_resource(0)_sampler(0)_aoffimmi({n},0,0) r{n + 1}, vWinCoord0.xy00"
        for n in range(texels)
    )
    return compile(
        assemble("\n".join([HEAD, *fetches, body, "mov o0, r0", "endmain", "end"]), "tiny.il")
    )


def bundle_table(programs: Mapping[str, Sequence[str]]) -> Table:
    """Return the arithmetic bundles of small programs, each with its five slots. The last line of a
    program makes the result. A star marks an operation that reads a result of the previous bundle
    from PV or PS.
    """
    rows = []
    for name, lines in programs.items():
        code = tiny("\n".join(lines))
        for bundle in working(code.controls):
            filled = dict.fromkeys(range(5), "")
            for o in bundle.operations:
                is_passed = any(r.kind in ("pv", "ps") for r in o.reads)
                filled[o.slot] = code.opcodes[o.line] + "*" * is_passed
            rows.append([name, *filled.values()])
    return Table(["program", *"xyzwt"], rows)


def working(clauses: Iterable[Control]) -> list[Bundle]:
    """Return the bundles of the clauses that do more than copy values."""
    bundles = (bundle for clause in clauses for bundle in clause.bundles)
    return [bundle for bundle in bundles if any(o.name != "MOV" for o in bundle.operations)]


def compiler_table() -> Table:
    """Return bundles, registers and the share of full bundles: AMD's compiler's, as published, this
    package's, and LLVM's of kernels in single precision.
    """
    rows = []
    for name in COMPARED:
        row, made = published.kernel(name), kernel_stats(name)
        registers = row["gprs"] if "gprs" in row else row["floats"] // 4
        full = row["slots4_pct"] + row["slots5_pct"] if "slots4_pct" in row else None
        found = [(row.get("bundles"), registers, full), _counts(made), (None, None, None)]
        if KERNELS[name].precision == "single":
            found[2] = _counts(compile(KERNELS[name].program, by="llvm").stats())
        rows.append([name, *(value for values in zip(*found, strict=True) for value in values)])
    heads = [f"{what}{whose}" for what in WHAT for whose in (", AMD's", ", ours", ", LLVM's")]
    return Table(["kernel", *heads], rows)


def _counts(stats: KernelStats) -> tuple[int, int, float]:
    """Return what the table compares."""
    return stats.bundles_per_iteration, stats.gprs, stats.slots4_pct + stats.slots5_pct


def chains(count: int) -> Code:
    """Compiled code that adds up ``CHAINED`` numbers in ``count`` partial sums, and these in
    pairs.
    """
    numbers = [f"r{1 + n // 4}.{'xyzw'[n % 4]}" for n in range(CHAINED)]
    partial = [f"r{30 + n // 4}.{'xyzw'[n % 4]}" for n in range(count)]
    lines = [f"add {p}, {numbers[n]}, {numbers[n + count]}" for n, p in enumerate(partial)]
    lines += [
        f"add {partial[n % count]}, {partial[n % count]}, {numbers[n]}"
        for n in range(2 * count, CHAINED)
    ]
    while count > 1:
        count //= 2
        lines += [f"add {partial[n]}, {partial[n]}, {partial[n + count]}" for n in range(count)]
    return tiny("\n".join([*lines, f"mov r0, {partial[0]}"]), texels=CHAINED // 4)


def chain_bundles(count: int) -> int:
    """Return the number of bundles that add up 32 numbers in ``count`` partial sums."""
    return len(working(chains(count).controls))


TAKE_SLOTS = "scalar operations and doubles need slots, too: a scalar one takes one, a double four."


def mistakes_in_least(p, s, d):
    """Return what each mistake gives."""
    slots = p + s + 4 * d
    bundles = -(-slots // 5)
    return {
        f"{TAKE_SLOTS} And bundles are whole: round up.": p / 5,
        f"{TAKE_SLOTS} And round up, not down.": p // 5,
        TAKE_SLOTS: -(-p // 5),
        "count all slots together: scalar operations and doubles fill some of the slots that plain"
        " ones could have.": max(-(-p // 5), s, d),
        "count all slots together, not those of plain operations alone, and round up.": (
            max(p / 5, s, d)
        ),
        "count all slots together, not those of plain operations alone, and round up, not down.": (
            max(p // 5, s, d)
        ),
        "plain operations fit beside the others, and bundles are whole.": p / 5 + s + d,
        "plain operations fit beside the others: count all slots together.": (
            -(-p // 5) + max(s, d)
        ),
        "plain operations fit beside the others: count all slots together, and round up.": (
            p // 5 + max(s, d)
        ),
        "plain operations need slots, too: how many slots are there to fill in all?": max(s, d),
        "plain operations need slots, too. And a scalar operation fits beside a double.": s + d,
        "a scalar operation takes a slot, too, not only its t.": max(-(-(p + 4 * d) // 5), s, d),
        "a bundle has five slots: t takes plain operations, too.": max(-(-slots // 4), s, d),
        "round up, not to the nearest.": max(round(slots / 5), s, d),
        "round up, not to the nearest. And all slots together are only one limit: what about t, and"
        " doubles?": round(slots / 5),
        "one too many where all bundles are full: `-(-a // b)` rounds up.": (
            max(slots // 5 + 1, s, d)
        ),
        "one too many where all bundles are full: `-(-a // b)` rounds up. And all slots together"
        " are only one limit: what about t, and doubles?": slots // 5 + 1,
        "a double leaves t free: it takes four slots.": max(-(-(p + s + 5 * d) // 5), s, d),
        "these are operations; a bundle holds up to five plain ones.": max(p, s, d),
        "there are no half bundles: round up.": max(slots / 5, s, d),
        "bundles are whole: round up.": slots / 5,
        "bundles are whole, and a double multiply-add takes four slots.": (p + s + d) / 5,
        "bundles are whole: `//` rounds down, and you need to round up.": slots // 5,
        "these are slots; a bundle has five.": slots,
        "these are operations; a bundle holds up to five.": p + s + d,
        "all slots together are only one limit: two scalar operations can't share a bundle, nor"
        " two doubles.": bundles,
        "all slots together are only one limit: two scalar operations can't share a bundle. And a"
        " double multiply-add takes four slots, not one.": -(-(p + s + d) // 5),
        "a bundle that isn't full is one too: round up, not down.": max(slots // 5, s, d),
        "each scalar operation needs a t slot, and a bundle has one.": max(bundles, d),
        "no two double multiply-adds fit into one bundle.": max(bundles, s),
        "a double multiply-add takes four slots.": max(-(-(p + s + d) // 5), s, d),
        "slots are shared: plain operations fit beside the others.": -(-p // 5) + s + d,
        "a double leaves t free: a scalar operation fits there.": max(bundles, s + d),
        "a double leaves t free: a scalar operation fits there. And count all slots together.": (
            max(-(-p // 5), s + d)
        ),
        "these are three limits, not three parts: take the largest, and add no doubles to it.": (
            max(bundles, s) + d
        ),
        "these are three limits, not three parts: take the largest, and add nothing to it.": (
            bundles + max(s, d)
        ),
        "all slots together have scalar operations and doubles in them: take the largest of the"
        " three limits, not their sum.": bundles + s + d,
        "a scalar operation takes one of these slots, too; that each needs a t is a limit of its"
        " own.": -(-(p + 4 * d) // 5) + s,
        "a double takes four of these slots; that no two fit in a bundle is a limit of its own.": (
            -(-(p + s) // 5) + d
        ),
        "a double takes four slots of one bundle, not four bundles.": max(bundles, s, 4 * d),
        "a double takes four slots of one bundle, not four bundles. Count all slots together.": (
            max(-(-p // 5), s, 4 * d)
        ),
        "a bundle has five slots. And all slots together are only one limit: what about t, and"
        " doubles?": -(-slots // 4),
        "a bundle has five slots: t takes plain operations, too. And count all slots together.": (
            max(-(-p // 4), s, d)
        ),
        "a bundle has five slots: t takes plain operations, too. And scalar ones take a slot.": (
            max(-(-(p + 4 * d) // 4), s, d)
        ),
        "the largest of the three limits decides, not the smallest.": min(bundles, s, d),
        "a scalar operation takes a slot, too. And no two doubles fit into a bundle.": (
            max(-(-(p + 4 * d) // 5), s)
        ),
        "a double takes four slots. And each scalar operation needs a t: a bundle has one.": (
            max(-(-(p + s) // 5), d)
        ),
        "one too many: the largest of the three limits is enough.": max(bundles, s, d) + 1,
        "one too many: no scalar operation, and no double, needs a bundle more.": (
            max(bundles, max(s, d) + 1)
        ),
    }


@formula_exercise(
    [
        (5, 0, 0),
        (6, 0, 0),
        (130, 0, 0),
        (3, 4, 0),
        (2, 0, 64),
        (70, 0, 64),
        (12, 3, 2),
        (0, 6, 6),
        (0, 0, 0),
    ],
    mistakes_in_least,
    "three things bound it: all slots together, the t slots, and the doubles. Which is the"
    " largest?",
)
def check_least(p, s, d):
    """Exercise 1: ``least(plain, scalar, doubles)``, a lower bound of bundles: ``plain`` operations
    go into any slot, ``scalar`` ones only into t, and each double multiply-add takes x, y, z and
    w.
    """
    return max(-(-(p + s + 4 * d) // 5), s, d)


@climb_exercise("03")
def check_products(mine: Kernel) -> str:
    """Exercise 2: the main loop of an 8 x 8 kernel, its products in an order that packs well."""
    return f"with {kernel_stats(mine).bundles_per_iteration} bundles per iteration"


@kernel_exercise("sum_of_16.il")
def check_sum(program: Program) -> Verdict:
    """Exercise 3: IL that adds the 16 numbers of r1 to r4 into r0.x, in five bundles."""
    texels = np.random.default_rng(16).integers(1, 1000, (1, 5, 4)).astype(np.float32)
    output = np.zeros((1, 2, 4), np.float32)
    findings = check(
        program,
        (2, 1),
        inputs={0: texels},
        outputs={0: output},
        max_instructions=MOST,
        in_place=True,
    )
    if verdict := judge_findings(findings):
        return verdict
    right = [[[texels[0, x : x + 4].sum()] * 4 for x in (0, 1)]]
    if not np.array_equal(output, right):
        otherwise = _times_added(program, texels, float(output.flat[0]))
        if whole := next((i for i in program.body if i.opcode == "iadd"), None):
            otherwise = f"`iadd` in line {whole.line} adds integers: `add` is for floats."
        got, wanted = output.flat[0], right[0][0][0]
        message = f"r0.x is {got:g} in place of {wanted:g} for the first work-item."
        return Verdict(False, message, otherwise)
    count = len(working(compile(program).controls))
    hint = (
        "additions that need each other's results are in different bundles: which could be done"
        " at once?"
    )
    if any(i.opcode.startswith("dp") for i in program.body):
        hint = (
            "a `dp4` is compiled to multiplications, and then three additions that wait for each"
            " other."
        )
    message = f"The sum is correct, in {count} bundles; {BUDGET} are enough."
    require(count <= BUDGET, message, hint)
    return Verdict(True, f"The sum is correct, in {count} bundles for {TERMS - 1} additions.")


def _times_added(program: Program, texels: np.ndarray, result: float) -> str:
    """Return which of the 16 numbers of r1 to r4 a sum leaves out, and which it adds again, if it
    is a sum of them; ``result`` is that of ``texels``.
    """

    def added(numbers: np.ndarray) -> float:
        given, output = np.zeros((1, 5, 4), np.float32), np.zeros((1, 2, 4), np.float32)
        given[0, :4] = numbers.reshape(4, 4)
        launch(program, (2, 1), inputs={0: given}, outputs={0: output}, max_instructions=MOST)
        return float(output.flat[0])

    question = "which of the 16 numbers does r0.x hold at the end, and how often each?"
    for i in program.body:
        if i.opcode.startswith("dp") and i.sources[0] == i.sources[1]:
            question = f"line {i.line} adds squares: `{i.opcode}` multiplies a register by itself."
        elif i.opcode == "mul" and all(source.register.kind == "r" for source in i.sources):
            question = f"line {i.line} multiplies numbers of registers: `add` would add them."
    try:
        times = [added(one) for one in np.eye(TERMS)]
        constant = added(np.zeros(TERMS))
    except KernelError:
        return question
    if not any([*times, constant, result]):
        return "r0.x is 0 as before: does a line write a sum into it?"
    if constant or np.dot(times, texels[0, :4].ravel()) != result:
        return question
    said = []
    for count in sorted({*times} - {1.0}):
        which = _numbers([n for n, each in enumerate(times) if each == count])
        said.append(f"adds {which} {count:g} times" if count else f"leaves out {which}")
    return f"the sum {', and '.join(said)}." if said else question


def _numbers(found: Sequence[int]) -> str:
    """Return the names of some of the 16 numbers of r1 to r4, by their indices."""
    registers, letters = sorted({n // 4 for n in found}), sorted({n % 4 for n in found})
    if len(registers) * len(letters) > len(found):
        return listed([f"r{n // 4 + 1}.{LETTERS[n % 4]}" for n in found])
    of = listed([f"r{n + 1}" for n in registers])
    return of if letters[3:] else f"{listed([LETTERS[n] for n in letters])} of {of}"


@function_exercise
def check_order_for_llvm(order: Callable) -> Verdict:
    """Exercise 4: ``order(mads)`` returns the lines of the loop in an order that LLVM compiles to
    faster code.
    """
    mads = products()
    lines = ordered_lines(order, mads)
    # A second kernel with other registers, so that no list of lines passes.
    ordered_lines(order, [mad.replace("r1", "r3") for mad in mads])
    try:
        code = compile(reordered(lines).program, by="llvm")
    except CompileError as error:
        where = "try another order." if HAS_LLVM else "run this where the workbook is installed."
        return Verdict(False, str(error), where, is_broken=not HAS_LLVM)
    _, bundles, _, waits, speed = describe("LLVM's", code)
    made = f"{bundles} bundles of it, with {quantity(waits, 'wait')}, and {speed:,} Gflop/s"
    message = f"LLVM makes {made}"
    where = "its bundles are emptier now: other orders with one wait have fewer."
    if waits > 1:
        where = (
            "LLVM schedules a loop from its end, and fetches what isn't needed any more: which of"
            " the fetched registers r2 to r9 do the last lines use?"
        )
    require(speed >= MIN_GFLOPS, f"{message}; {MIN_GFLOPS:,} are asked for.", where)
    ours = describe("ours", compile(reordered(lines).program))
    return Verdict(True, f"{message}. Ours makes {ours[1]}, and {ours[4]:,}.")
