"""Exercises on formulas: when two numbers count as the same."""

import ast
import math
import random
import re
from math import gcd

import pytest
from conftest import ROOT

from cypresskit.il.opcodes import OPCODES
from cypresskit.isolated import Answer, changes
from cypresskit.teach.answer_source import AnswerSource
from cypresskit.teach.formula import Formula, _is_equal, draw_case, formula_exercise
from cypresskit.teach.l04_registers import check_saves


def test_numbers_match_if_they_agree_to_six_digits():
    rng = random.Random(11)
    for _ in range(200):
        right = rng.uniform(1, 10) * 10.0 ** rng.randrange(-6, 12)
        sign = rng.choice((-1, 1))
        assert _is_equal(right * (1 + sign * 4e-6), right)
        assert not _is_equal(right * (1 + sign * 6e-6), right), "differs in the sixth digit"


def test_a_whole_number_matches_only_itself():
    assert _is_equal(2_000_000.4, 2_000_000)
    assert not _is_equal(2_000_001, 2_000_000)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_case_is_like_those_that_are_shown(seed):
    rng = random.Random(seed)
    step = rng.choice([1, 7, 64])
    whole = [step * rng.randrange(1, 100) for _ in range(3)]
    real = [rng.uniform(-5, 5) for _ in range(3)]
    cases = [draw_case(list(zip(whole, real, [12] * 3))) for _ in range(20)]
    for number, share, same in cases:
        assert min(whole) <= number <= max(whole) and number % gcd(*whole) == 0
        assert min(real) <= share <= max(real) and same == 12
    assert all(len(set(column)) > 1 for column in list(zip(*cases))[:2])


def no_mistakes(*_) -> dict:
    return {}


def formula(right, *cases: tuple) -> Formula:
    return Formula(right, "f", cases, no_mistakes, "think.", "", lambda: cases[0])


def hint(right, wrong, *cases: tuple) -> str:
    return formula(right, *cases).judged(wrong).hint


@pytest.mark.parametrize("seed", range(5))
def test_a_constant_factor_and_a_wrong_rounding_are_told(seed):
    """Whatever the formula."""
    rng = random.Random(seed)
    cases = [tuple(rng.randint(2, 50) for _ in range(3)) for _ in range(4)]
    powers = [rng.choice((-2, -1, 1, 2)) for _ in range(3)]
    times = rng.choice((0.001, 0.25, 2, 1e9))

    def right(*case):
        return math.prod(number ** float(power) for number, power in zip(case, powers))

    def whole(a, b, c):
        return -(-(a + b) // c)

    assert f"each result is {times:.6g} times" in hint(right, lambda *x: times * right(*x), *cases)
    many = [(a, b, 3) for a, b, _ in cases] + [(1, 1, 3), (2, 2, 3), (1, 2, 3)]
    assert "off by one" in hint(whole, lambda a, b, c: (a + b) // c, *many)
    assert hint(whole, lambda a, b, c: a * b * c, *many).startswith("think.")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("a * (1 - b / c) + c", "`1 - b` belongs in parentheses in `1 - b / c`"),
        ("a * (1 - b) / c / 4 + c", "`/ 4` is too much in"),
        ("2 * a * (1 - b) / c + c", "`2 *` is too much in"),
        ("a * (1 + b) / c + c", "something else than `+` belongs in `1 + b`"),
        ("a ** 2 * (1 - b) / c + c", "`** 2` is too much in `a ** 2`"),
        ("a * (1 - b) / sqrt(c) + c", "`sqrt` is too much in `sqrt(c)`"),
        ("a * (a - b) / c + c", "something else than `a` belongs in `a - b`"),
        ("b * (1 - a) / c + c", "`a` and `b` are exchanged"),
        ("a * (1 - b) / (1 / c) + c", "`1 /` is too much in `1 / c`"),
        ("(1 - b) / c + c", "it doesn't use `a`"),
        ("a * (a - b - 1 / c) + c", ""),
    ],
)
@pytest.mark.parametrize("form", ["f = lambda a, b, c: _", "def f(a, b, c):\n    return _"])
def test_the_place_of_a_slip_is_told(wrong, said, form):
    """Whatever the form of the answer."""
    cases = [(2.0, 0.25, 4.0), (3.0, 0.5, 1.5), (5.0, 0.125, 7.0)]
    check = formula_exercise(cases, no_mistakes, "think.", name="f")(
        lambda a, b, c: a * (1 - b) / c + c
    )
    cell = "from math import sqrt\n" + form.replace("_", wrong)
    hint = check(AnswerSource([cell], "f")).hint
    assert said in hint and hint.endswith("think.") and bool(said) == (hint != "think.")


#: Right formulas, and wrong ones with what is said of each.
SLIPS = {
    "-(-(a + b) // a)": {
        "(a + b) // a": "`(a + b) // a` has to be rounded up",
        "round((a + b) / a)": "`(a + b) / a` has to be rounded up in `round((a + b) / a)`",
        "-(-(a + b) // a) + 1": "`+ 1` is too much in",
        "-(-(a - b) // a)": "something else than `-` belongs in `a - b`",
        "-(-(b + b) // a)": "something else than the first `b` belongs in `b + b`",
        "(a - b) // a": "",
    },
    "max(a, b) * 3 + c / b": {
        "min(a, b) * 3 + c / b": "something else than `min",
        "max(a, b) * 3 - c / b": "something else than `-` belongs in",
        "max(a, b) * 3 + c * b": "something else than `*` belongs in `c * b`",
        "max(a, b) * 3 + 2 * c / b": "`2 *` is too much in `2 * c",
        "max(a, b) * 7 + c / b": "something else than `7` belongs in",
        "max(a, b) * 3 + c / a": "`a` and `b` are exchanged",
        "max(a, b) + c / b": "a factor is missing beside `max(a, b)` in",
        "max(a, b) * 3 + c / b / c": "`/ c` is too much in `b / c`",
        "max(a, b) * 3 + 1 / b": "it doesn't use `c`",
        "max(a, b) * 3 + c / sum(b)": "`sum` is too much in `sum(b)`",
        "np.max(a, b) * 3 + c / b": "numpy's functions take several numbers as one list",
        "np.array([a, b]) * 3 + c / b": "One number is expected, not 2.",
        "max(a, b)(3) + c / b": "Is a `*` missing before a parenthesis?",
    },
}


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [(right, *row) for right, slips in SLIPS.items() for row in slips.items()],
)
def test_one_changed_part_is_told(right, wrong, said):
    """And no part where one change isn't enough."""
    cases = [(2, 6, 4), (7, 5, 3), (4, 9, 10), (12, 12, 5)]
    made = eval(f"lambda a, b, c: {right}")
    check = formula_exercise(cases, no_mistakes, "think.", name="f")(made)
    answer = AnswerSource(["import numpy as np", f"f = lambda a, b, c: {wrong}"], "f")
    hint = check(answer).hint
    assert (
        said.lower() in hint.lower() and "hink." in hint and (said or hint.startswith("think."))
    ), hint


LOOP = "def f(a, b):\n    n = {0}\n    while n * a < a + b:\n        n += {1}\n    return n"


@pytest.mark.parametrize(
    ("start", "step", "said"),
    [("0", "2", "something else than `2` belongs in `n += 2`"), ("3", "1", "else than `3`")],
)
def test_a_loop_is_changed_as_well(start, step, said):
    check = formula_exercise([(2, 6), (4, 5), (8, 3), (30, 400)], no_mistakes, "think.", name="f")(
        lambda a, b: -(-(a + b) // a)
    )
    assert said in check(AnswerSource([LOOP.format(start, step)], "f")).hint


@pytest.mark.parametrize(
    "body", ["while a: b += 1", "while a: f(0)", "for _ in range(9**9): b += 1"]
)
def test_a_changed_function_that_does_not_end_is_ended_by_its_count(body):
    names: dict = {}
    exec(f"def f(a, b=0):\n    {body}\n    return b", names)
    trials = changes.Trials()
    assert trials.call(names["f"], (0,), 1000) == (0 if "while" in body else None)
    assert trials.call(names["f"], (1,), 1000) is None and trials.left < 0


@pytest.mark.parametrize("wrong", ["24 * a**2 // b + a // c", "24 * a**2 / b + a // c"])
def test_whole_quotients_are_named(wrong):
    cases = [(100.0, 7.0, 3.0), (50.0, 11.0, 7.0), (1000.0, 13.0, 17.0)]
    check = formula_exercise(cases, no_mistakes, "think.", name="f")(
        lambda a, b, c: 24 * a**2 / b + a / c
    )
    said = check(AnswerSource([f"f = lambda a, b, c: {wrong}"], "f")).hint
    assert said.startswith("`//` rounds down to a whole number: divide by `/`. think.")


def test_a_part_that_is_the_whole_is_not_told():
    """`return result` belongs there, whatever it is."""
    value = "max(first, second, work) - max(second, work)"
    cell = (
        f"def saves(first, second, work):\n    result = 0\n    result = {value}\n    return result"
    )
    hint = check_saves(AnswerSource([cell], "saves")).hint
    assert "in `result`" not in hint and "both fetches" in hint


def test_a_loop_or_a_large_power_does_not_delay_a_hint():
    """A changed one might not end."""
    cases = [(1 << 40, 3), (1 << 41, 5)]
    loop = "def f(a, b):\n    while a > 7:\n        a //= b\n    return a"
    for cell in (loop, "def f(a, b):\n    return a**2 + b"):
        judged = formula_exercise(cases, no_mistakes, "think.", name="f")(lambda a, b: a * b)
        assert judged(AnswerSource([cell], "f")).hint == "think."


@pytest.mark.parametrize("body", ['"x" * (1 << 27)', "exit()", "input()"])
def test_an_answer_that_gives_no_result_is_not_changed(body, monkeypatch):
    """A changed one might be larger than the memory."""
    monkeypatch.setattr(Answer, "through", lambda *_: pytest.fail("it is changed"))
    check = formula_exercise([(2,), (3,)], no_mistakes, "think.", name="f")(lambda a: 2 * a)
    assert not check(AnswerSource([f"def f(a):\n    return {body}"], "f")).right


@pytest.mark.parametrize(
    ("wrong", "kind"), [("str({})", "a text"), ("[{}]", "a list"), ("{{{}}}", "a set")]
)
@pytest.mark.parametrize("right", ["a * b / c", "c * a / b", "a + b - c"])
def test_a_result_of_a_wrong_kind_is_told_its_kind_alone(wrong, kind, right):
    """Its value is right: no change of the formula is told to be one."""
    cell = f"f = lambda a, b, c: {wrong.format(right)}"
    made = eval(f"lambda a, b, c: {right}")
    check = formula_exercise([(6, 3, 2), (4, 8, 3)], no_mistakes, "think.", name="f")(made)
    verdict = check(AnswerSource([cell], "f"))
    assert f"returns {kind}, not a number" in verdict.message
    assert "`" not in verdict.hint and "hink." not in verdict.hint


def test_no_hint_begins_with_a_verb_that_is_an_instruction_s_name():
    """As in "add the two times": it would stay small within a verdict, like the instruction."""
    verb = re.compile(rf"({'|'.join(OPCODES)}) (the|an?|all|both|its?|one|two)\b")
    for path in (ROOT / "cypresskit/teach").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = getattr(node, "value", None)
            assert not (isinstance(text, str) and verb.match(text)), (path, text)
