"""Lesson 06: Hilbert's matrix in three precisions, and the checks of the exercises on
double-doubles.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np

from cypresskit import published
from cypresskit.blas import gemm, to_fractions, to_pairs
from cypresskit.compiler import compile
from cypresskit.il import Program
from cypresskit.il.fused import two_product
from cypresskit.isolated import Answer
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.lesson_table import Table
from cypresskit.machine import launch
from cypresskit.tables import listed
from cypresskit.teach.check import Verdict, call_answer, function_exercise, require
from cypresskit.teach.climb import climb_exercise
from cypresskit.teach.kernels import kernel_exercise
from cypresskit.threads import map_in_threads
from cypresskit.timing.as_published import simulate_published

#: Gflop/s of double-double products on one core of a current processor
CORE_GFLOPS = {"plain loops": 0.25, "the same loops in vectors": 2.3}
MEASURED_ON = (
    "now: measured on an AMD EPYC of 2022 (family 25, model 17, a virtual machine) on"
    " 25 November 2026, by tools/double_double.c with gcc 12.2; N = 256, best of twenty runs"
)
#: What does exercise 1 at once.
EXACT = {"fsum", "Fraction", "Decimal", "longdouble", "float128", "mpmath"}
BUDGET = 8  # double instructions of exercise 2


def hilbert(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Hilbert's matrix, 1 / (i + j + 1), as fractions, and its inverse as whole numbers:
    object arrays (n, n).
    """

    def filled(element: Callable[[int, int], object]) -> np.ndarray:
        return np.array([[element(i, j) for j in range(n)] for i in range(n)], object)

    def inverse(i: int, j: int) -> int:
        ways = comb(n + i, n - j - 1) * comb(n + j, n - i - 1) * comb(i + j, i) ** 2
        return (-1) ** (i + j) * (i + j + 1) * ways

    return filled(lambda i, j: Fraction(1, i + j + 1)), filled(inverse)


def products(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """Return A B by precision, as fractions: exactly what each precision has."""
    given: dict[str, tuple] = {
        "single": (a.astype(np.float32), b.astype(np.float32)),
        "double": (a.astype(np.float64), b.astype(np.float64)),
        "double-double": (to_pairs(a), to_pairs(b)),
    }
    found = {}
    for name, matrices in given.items():
        c = gemm(*matrices)
        found[name] = to_fractions(c) if c.ndim == 3 else np.vectorize(Fraction)(c.astype(float))
    return found


def errors(n: int) -> dict[str, float]:
    """Return the largest error in Hilbert's n x n matrix times its inverse, by precision."""
    exact = np.eye(n, dtype=int)
    return {name: float(np.abs(c - exact).max()) for name, c in products(*hilbert(n)).items()}


KERNEL_NAMES = ("dgemm_tn", "ddgemm_tn_fma", "ddgemm_tn_nofma")


def counts_table() -> Table:
    """Tabulate the double instructions in an iteration of each kernel, the fewest bundles that hold
    them, and the compiled bundles.
    """
    rows = []
    for name in KERNEL_NAMES:
        code = compile(KERNELS[name].program)
        operations = [o for control in code.main_loop for o in control.operations if o.place == 0]
        count = Counter(o.name.removesuffix("_64") for o in operations if o.name.endswith("_64"))
        least = count["ADD"] / 2 + count["MUL"] + count["FMA"]
        made = kernel_stats(name)
        kinds = count["ADD"], count["MUL"], count["FMA"]
        rows.append([name, *kinds, least, made.bundles_per_iteration, made.nominal_gflops])
    heads = ["kernel", "ADD", "MUL", "FMA", "bundles at least", "compiled", "Gflop/s at best"]
    return Table(heads, rows)


def measured_table() -> Table:
    """Tabulate speeds and registers of the three kernels, published and modeled."""
    rows = []
    for name, report in zip(KERNEL_NAMES, map_in_threads(simulate_published, KERNEL_NAMES)):
        row = published.kernel(name)
        speeds = row["gflops_max"], report.gflops, report.gflops / row["gflops_max"]
        rows.append([name, *speeds, row["gprs"], report.registers])
    speeds_of = "measured, Gflop/s", "modeled", "modeled / measured"
    heads = ["kernel", *speeds_of, "registers: published", "compiled"]
    return Table(heads, rows, note=f"{published.conditions('dgemm_tn')}")


def cores_table() -> Table:
    """Tabulate double-double products on one core of 2010 and one of a current processor, and the
    speedup of the card over it.
    """
    card = published.kernel("ddgemm_tn_fma")["gflops_max"]
    speeds = {"then, mpack": published.host("cpu_baselines")["mpack_dd_gflops"]}
    speeds |= {f"now, {words}": speed for words, speed in CORE_GFLOPS.items()}
    rows = [[words, speed, round(card / speed)] for words, speed in speeds.items()]
    heads = ["one core", "Gflop/s", f"the card, with {card}, is so many times as fast"]
    return Table(heads, rows, note=MEASURED_ON)


@function_exercise
def check_two_sum(two_sum_of: Answer) -> Verdict:
    """Exercise 1: ``two_sum_of(a, b)`` gives the rounded sum and exactly what rounding lost."""
    if exact := sorted(EXACT & two_sum_of.names):
        return Verdict(
            False,
            f"two_sum_of uses {exact[0]}, which computes exactly: the chip has no such thing.",
            "write it yourself, with additions and subtractions of doubles.",
        )
    rng = np.random.default_rng(53)
    cases = [
        (1.0, 2.0**-60),
        (2.0**-60, 1.0),
        (0.1, 0.2),
        (-1.0, 1.0 - 2.0**-53),
        (1e16, 1.0),
        (3.0, -1e17),
    ]
    cases += [
        (float(a), float(b))
        for a, b in rng.standard_normal((20, 2)) * 10.0 ** rng.integers(-9, 9, (20, 2))
    ]

    def numbers(a: float, b: float) -> tuple[float, float]:
        s, e = two_sum_of(a, b)
        return float(0.0 + s), float(0.0 + e)  # `0.0 +` refuses texts, which `float` would convert

    def called(a: float, b: float) -> tuple[float, float, float]:
        """Return (s, e) of the answer, and what the sum lost: exactly, as it fits into a double."""
        case = f"two_sum_of({a!r}, {b!r})"
        hint = f"{case} should give two numbers: the sum, and what it lost."
        s, e = call_answer(case, numbers, a, b, hint=hint)
        require(
            s == a + b,
            f"{case} gives the sum {s!r}, but a + b is {a + b!r}.",
            "s is the rounded sum, a + b.",
        )
        return s, e, float(Fraction(a) + Fraction(b) - Fraction(s))

    def is_right(pair: Sequence[float]) -> bool:
        _, e, lost = called(*pair)
        return e == lost

    for a, b in cases:
        _, e, lost = called(a, b)
        if e != lost:
            hint = _lost_hint(e, lost)
            if all(is_right(sorted(case, key=abs, reverse=True)) for case in cases):
                hint = (
                    "this is right where |a| is the larger one. If |b| is larger, a loses digits"
                    " as well: add what b lost and what a lost."
                )
            elif all(is_right(sorted(case, key=abs)) for case in cases):
                hint = (
                    "this is right where |b| is the larger one. If |a| is larger, b loses digits"
                    " as well: add what a lost and what b lost."
                )
            elif e == 0 and all(
                abs(e) == abs(lost)
                for _, e, lost in (called(*sorted(c, key=abs, reverse=True)) for c in cases)
            ):
                hint = (
                    "this is right in size where |a| is the larger one. If |b| is larger, a loses"
                    " digits as well; and e has a sign."
                )
            elif all(is_right([*map(abs, case)]) for case in cases):
                hint = "this is right for positive numbers: -1e17 is larger in size than 3."
            elif e == -lost and not all(e == -lost for _, e, lost in map(called, *zip(*cases))):
                hint = "check the sign of one part: what b lost and what a lost are both added."
            elif e in (a - (a + b - a), b - (a + b - b)):
                hint = "s - a is the part of b that is in s: take it from b, and s - b from a."
            message = f"two_sum_of({a!r}, {b!r}) gives e = {e!r}; the sum lost {lost!r}."
            return Verdict(False, message, hint)
    return Verdict(
        True, f"s + e is the exact sum for {len(cases)} pairs, whichever of the two is larger."
    )


def _lost_hint(e: float, lost: float) -> str:
    """Return a hint on a wrong ``e``. ``lost`` is the true one."""
    if e == -lost:
        return "the sign: s + e has to be the true sum, so e is what is missing from s."
    if e == 0:
        return "in float64, s - a isn't always b: e is made of such differences."
    if e == 2 * lost:
        return "this counts the loss twice: the part of a in s is s less the part of b in s."
    return (
        "s - a is the part of b that is in s: what is missing of b? What s has besides is the part"
        " of a: what is missing of a?"
    )


@kernel_exercise("product.il", stuck="the result goes to r1, and from there to o0.")
def check_product(program: Program) -> Verdict:
    """Exercise 2: IL of a pixel shader that multiplies double-doubles, in ``BUDGET`` double
    instructions.
    """
    rng = np.random.default_rng(106)
    a, b = (
        np.stack([h, h * 2.0**-54 * rng.uniform(-1, 1, h.shape)], -1)
        for h in rng.uniform(1, 9, (2, 4, 16))
    )
    out = np.zeros((4, 16, 2))
    launch(program, (16, 4), inputs={0: a, 1: b}, outputs={0: out})
    singles = (i for i in program.body if i.opcode in ("add", "mul", "mad"))
    half = next(
        (
            f"`{i.opcode}` in line {i.line} is for singles, `d{i.opcode}` for doubles."
            for i in singles
        ),
        "",
    )
    hint = half or "dmul, dmad and dadd suffice, and on these numbers their results are finite."
    require(
        np.isfinite(out).all(),
        f"The product comes out as {out.flat[np.isfinite(out).argmin()]}.",
        hint,
    )
    x, y, z = (
        np.vectorize(Fraction)(m[..., 0]) + np.vectorize(Fraction)(m[..., 1]) for m in (a, b, out)
    )
    digits = -np.log10(np.maximum(np.abs((z - x * y) / (x * y)).astype(float).max(), 1e-40))
    message = (
        f"The worst of 64 products has {abs(max(digits, 0)):.1f} right digits; 31 are possible."
    )
    require(digits >= 31, message, half or _product_hint(a, b, out))
    overlap = (np.abs(out[..., 1]) > np.spacing(out[..., 0]) / 2).any()
    message = (
        "The products are right, but high and low part overlap: high isn't the sum rounded to a"
        " double."
    )
    require(not overlap, message, "renormalize: high' = high + low, low' = low - (high' - high).")
    count = sum(i.op.double for i in program.body)
    message = (
        f"All 64 products have {digits:.1f} digits, with {count} double instructions; {BUDGET} are"
        " enough."
    )
    hint = "dmad rounds once: dmad(a, b, -p) is all that p = a * b lost, with one instruction."
    require(count <= BUDGET, message, hint)
    return Verdict(
        True, f"All 64 products have {digits:.1f} digits or more, with {count} double instructions."
    )


def _product_hint(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> str:
    """Return a hint on the part of the product that is missing or wrong."""
    p, e = two_product(a[..., 0], b[..., 0])
    cross, other = a[..., 0] * b[..., 1], a[..., 1] * b[..., 0]
    parts = {"what p lost": e, "a's high times b's low": cross, "a's low times b's high": other}
    high, low = np.moveaxis(out, -1, 0)
    small = e + cross + other
    mistakes = {
        "nothing arrives in o0: `mov o0, r1` at the end.": (np.abs(high) + np.abs(low), 0 * p),
        "r1.xy is 0 at the end: you copy a register that is never computed.": (high, 0 * p),
        "p is added to a * b instead of subtracted: -p is `r1.xy_neg(xyzw)`.": (high, 3 * p),
        "the sign of what p lost: it is a * b - p.": ((high - p) + low, cross + other - e),
        "r1.xy is still p; the new high part belongs there.": (low, small - ((p + small) - p)),
        "subtract from the low part what you added to the high part; you add it.": (
            low,
            small + ((p + small) - p),
        ),
        "the sign of the low part: it is r4 minus what the high part took of it.": (
            low,
            ((p + small) - p) - small,
        ),
    }
    mistakes[
        "all that p lacks counts twice, in r1.xy and r1.zw: r1.zw is r4 less what r1.xy gained."
    ] = (
        (high - p) + low,
        2 * small,
    )
    for counts in product(range(3), repeat=3):
        present = sum((count * part for count, part in zip(counts, parts.values())), 0 * p)
        said = [
            f"{word}: {listed([name for name, each in zip(parts, counts) if each == count])}"
            for count, word in {0: "missing", 2: "twice"}.items()
            if count in counts
        ]
        if said:
            mistakes[f"{'; '.join(said)}."] = ((high - p) + low, present)
    mistakes["r1.zw is 0 at the end: the low part is what the high part couldn't take."] = (
        low,
        0 * p,
    )
    otherwise = "the product is p + what p lost + high of a * low of b + low of a * high of b."
    hints = (
        hint
        for hint, (values, wrong) in mistakes.items()
        if np.allclose(values, wrong, rtol=1e-9, atol=0)
    )
    return next(hints, otherwise)


@climb_exercise("06")
def check_in_double(mine: Kernel) -> str:
    """Exercise 3: the main loop of a kernel with a block of 4 x 4 doubles."""
    return f"with {kernel_stats(mine).bundles_per_iteration} bundles per iteration"
