"""The checks accept what is right, reject what is wrong and say where to look; and what lessons
show beside them.
"""

import re
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from inspect import signature
from itertools import product

import numpy as np
import pytest
from answer_sources import find_function
from answers import of_kinds, read_planted
from hypothesis import example, given, settings
from hypothesis import strategies as st
from repository import ROOT
from sampling import by_day, drawn_by_day

import cypresskit as ck
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.lesson_table import Table
from cypresskit.teach import formula
from cypresskit.teach.answer_source import AnswerSource, find_parameters
from cypresskit.teach.l00_start_here import checks as start
from cypresskit.teach.l03_bundles import checks as bundles
from cypresskit.teach.l03_bundles.order_table import order_table
from cypresskit.teach.l04_registers import checks as registers
from cypresskit.teach.l06_double_double.checks import hilbert
from cypresskit.teach.l06_double_double.two_sums import two_sums

CHECKS = read_planted()
FUNCTIONS = of_kinds("formula", "function", "product")
#: What is launched takes seconds.
LAUNCHED = of_kinds("text", "product")


@pytest.mark.parametrize("check", [*by_day(LAUNCHED, 3), *of_kinds("formula", "function", "value")])
def test_planted_answers_get_their_verdicts(check):
    """Right ones are accepted; wrong ones aren't, and it is said why."""
    row = CHECKS[check]
    missed = []
    for answer, words in [*((each, None) for each in row.right), *row.wrong]:
        verdict = check(answer)
        is_so = verdict.right == (words is None) and bool(verdict.hint) != verdict.right
        if verdict.is_broken or not is_so or any(word not in str(verdict) for word in words or ()):
            missed.append((getattr(answer, "__code__", answer), str(verdict)))
    assert not missed


CORRECT = "C is correct"


def test_a_slow_kernel_gets_its_hint():
    """The last words on a kernel that is correct, without a launch."""
    slow = [
        (text, words[-1])
        for text, words in CHECKS[registers.check_c_late].wrong
        if CORRECT in words
    ]
    assert len(slow) > 2
    kernel = reference_kernel(STEPS["04"].like)
    for text, words in slow:
        assert words in registers.late_hint(ck.load_kernel(text, like=kernel))


def test_the_table_of_an_order_says_what_the_check_says_of_it():
    """Its cell stands above the check, so a slip is met there first."""
    told = []
    for answer, _ in CHECKS[bundles.check_order_for_llvm].wrong:
        with suppress(Exception):  # the answer's own, in its own line
            told.append((answer, order_table(answer)))
    slips = [(answer, table) for answer, table in told if not isinstance(table, Table)]
    assert len(slips) >= 5
    assert [str(table) for _, table in slips] == [
        str(bundles.check_order_for_llvm(answer)) for answer, _ in slips
    ]


#: An answer that ignores what it is given in one place, but for the first call.
FROZEN = """
_seen = []
def frozen(*given):
    _seen or _seen.append(given[{place}])
    return {name}(*given[:{place}], _seen[0], *given[{place} + 1 :])
"""


@drawn_by_day("check", FUNCTIONS, 8)
def test_an_answer_that_ignores_a_parameter_is_refused(check):
    """So every check of a function varies each parameter that the right one reads."""
    source = find_function(CHECKS[check].right[0], check.__name__.removeprefix("check_"))
    parameters = find_parameters(source.needed_cells(), source.name)
    assert parameters
    for place, (name, is_read) in enumerate(parameters):
        cells = [*source.cells, FROZEN.format(place=place, name=source.name)]
        assert not is_read or not check(AnswerSource(cells, "frozen")).right, name


def test_every_check_has_answers():
    lessons = {check.__module__ for check in CHECKS}
    assert len(lessons) == len(list(ROOT.glob("notebooks/source/[0-9]*.md")))
    for lesson in lessons:
        module = import_module(lesson)
        checks = {value for name, value in vars(module).items() if name.startswith("check_")}
        own = {check for check in checks if check.__module__ == lesson}
        assert not own - set(CHECKS)
        assert all(len(signature(check).parameters) == 1 for check in own), "each takes an answer"


def test_a_slip_is_named_only_if_it_explains_every_result():
    def judged(answer):
        made = formula.formula_exercise(
            [(2.0,), (3.0,)], lambda x: {"SLIP": 2 * x + 4}, "HINT", name="f"
        )
        return made(lambda x: x * x)(answer)

    assert judged(lambda x: x**2).right
    assert judged(lambda x: 2 * x + 4).hint == "SLIP"
    assert judged(lambda x: 8).hint == "it doesn't use `x`. HINT"
    assert judged(lambda x: x + 1).hint == "HINT"
    assert judged(lambda x: 2 * x + (x > 2) * 5).hint == "HINT (1 of 2 calls is right: f(2).)"
    assert judged(lambda x: 4).hint == "it doesn't use `x`. HINT (1 of 2 calls is right.)"


def test_an_argument_counts_as_unused_only_if_the_source_never_reads_it():
    """A term may be lost beside a larger one, and another limit be smaller."""

    def right(time, size, rate):
        return min(time + size / rate, 9.0)

    def judged(answer):
        cases = [(1.0, 2.0, 8.0), (3.0, 4.0, 8.0), (1.0, 4.0, 2.0)]
        return formula.formula_exercise(cases, lambda *_: {}, "HINT", name="f")(right)(answer)

    def scaled(time, size, rate):
        time = time + 1
        return size / rate

    assert "use" not in judged(lambda time, size, rate: time * 1e20 + size / rate).hint
    assert (
        judged(lambda time, size, rate: min(time, size, 0.5)).hint == "it doesn't use `rate`. HINT"
    )
    assert judged(lambda a, b, c: 7.0).hint == "it doesn't use `a`, `b` and `c`. HINT"
    assert judged(scaled).hint == "HINT"
    assert judged(lambda *_: 7.0).hint == "HINT"


def test_a_hint_says_only_what_is_true_where_other_calls_fail():
    def judged(answer):
        made = formula.formula_exercise([(0,), (2,), (4,)], lambda *_: {}, "HINT", name="f")
        return made(lambda x: 3 * x + 1)(answer)

    assert judged(lambda x: 0 // x).hint.startswith("HINT In another call f(0) stops with ZeroDiv")
    assert "every call" not in judged(lambda x: 13 + 0 // x).hint
    assert "(1 of 3 calls is right: f(2).)" in judged(lambda x: 7 + 0 // x).hint


@drawn_by_day(("check", "mode"), product(LAUNCHED, ["ps", "cs"]), 4)
def test_a_kernel_of_the_other_mode_gets_a_verdict(check, mode):
    verdict = check(f"il_{mode}_2_0\nend\n")
    assert not verdict.right and not verdict.is_broken, verdict


BY_HEART = """
calls = 0

def by_heart(*case):
    global calls
    calls += 1
    value = {}(*case)
    if calls <= {}:
        return value
    return not value if isinstance(value, bool) else value - 1
"""


@drawn_by_day("check", of_kinds("formula"), 4)
def test_who_knows_the_shown_results_by_heart_is_found_out(check):
    """A function that is right as often as it was called before it was found to be right for what
    is shown.
    """
    right = CHECKS[check].right[0]
    count, counts, _ = (
        check(right).message.removeprefix("All ").partition(" calls return the expected number")
    )
    source = right if isinstance(right, AnswerSource) else find_function(right, "")
    cell = BY_HEART.format(source.name, count if counts else 0)
    verdict = check(AnswerSource([*source.cells, cell], "by_heart"))
    assert not verdict.right and "is wrong for other numbers." in verdict.message
    assert "should be" not in str(verdict)


def test_a_check_that_is_given_nothing_says_what_it_takes():
    assert "`check_peak(peak)` checks peak" in str(start.check_peak())


# -- what lessons show


def test_the_table_shows_each_slot_and_what_is_handed_on():
    chain = ["add r5.x, r1.x, r1.y", "add r0, r5.x, r1.z"]
    table = bundles.bundle_table({"chain": chain, "one": ["rcp r0, r1.x"]})
    assert table.heads == ["program", *"xyzwt"]
    assert [row[0] for row in table.values] == ["chain", "chain", "one"]
    first, second, alone = (row[1:] for row in table.values)
    assert [row.count("") for row in (first, second, alone)] == [4, 4, 4]
    assert "ADD*" in second and "ADD" in first
    assert alone[-1] == "RCP", "t is the last column"


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_hilbert_times_its_inverse_is_one(n):
    matrix, inverse = hilbert(n)
    assert np.array_equal(matrix @ inverse, np.eye(n, dtype=int))


@settings(max_examples=60)
@given(*[st.floats(-1e18, 1e18).filter(lambda x: x == 0 or abs(x) > 1e-18)] * 2)
@example(1.0, 2.0**-60 + 2.0**-70)
@example(-3.0, 2.0**56)
def test_a_two_sum_in_powers_of_two_is_exact(a, b):
    """Each row, read back, is a step of Knuth's; the last one is what the sum lost."""
    rows = dict(two_sums((a, b)).values)

    def value_of(step):
        terms = re.findall(r"(-?) ?2\^(-?\d+)", rows[step])
        return sum((Fraction(2) ** int(n) * (-1 if sign else 1) for sign, n in terms), Fraction(0))

    assert (value_of("a"), value_of("b"), value_of("s = a + b")) == (
        Fraction(a),
        Fraction(b),
        Fraction(a + b),
    )
    assert value_of("e, the sum of both") == Fraction(a) + Fraction(b) - Fraction(a + b)
