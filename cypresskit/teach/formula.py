"""Exercises whose answer is a function of a few numbers: it is called with several, and each result compared.

A *slip* is a wrong formula that students write. It is named only if it explains every result, not just one of them.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from importlib import import_module
from inspect import signature
from math import isclose

from cypresskit.teach.check import Halted, Verdict, a_type, exercise, tried, unless

CLOSE = 1e-6  # relative


def formula_exercise(
    cases: Sequence[tuple], slips: Mapping[str, str], hint: str, unit: str = "", *, name: str = ""
) -> Callable[[Callable], Callable[[object], Verdict]]:
    """A function that is right, made a check of a student's, called ``name``, by default as it is without ``check_``;
    the rest as for ``judge``."""

    def made(right: Callable) -> Callable[[object], Verdict]:
        called = name or right.__name__.removeprefix("check_")

        @wraps(right)
        def check(answer: object) -> Verdict:
            return judge(answer, called, right, cases, slips, hint, unit)

        del check.__wrapped__  # it takes an answer, not what the answer takes
        return exercise(check, called)

    return made


def judge(
    answer, name: str, right: Callable, cases: Sequence[tuple], slips: Mapping[str, str], hint: str, unit: str = ""
) -> Verdict:
    """The verdict on ``answer``, the student's function ``name``, which has to give what ``right`` gives for ``cases``.

    ``slips``: hints to the formula that makes the mistake, in what ``right`` and its module call things, or of
    ``right`` itself. ``hint`` is for other mistakes; ``unit`` stands after numbers.
    """

    def number(value) -> float | None:
        try:
            return None if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            return None

    want, got = [float(right(*case)) for case in cases], []
    calls = [f"{name}({', '.join(map(_text, case))})" for case in cases]
    for call, case in zip(calls, cases):
        value = tried(call, answer, *deepcopy(case), hint=f"the call was {call}.")  # a copy, which it may change
        unless(
            value is not None, f"{call} returns nothing.", f"its `return` is missing, or has nothing to return; {hint}"
        )
        figure = tried(call, number, value, hint=f"the call was {call}.")
        kind = "a text" if isinstance(value, str) else a_type(value)
        if figure is None:
            raise Halted(f"{call} returns {kind}, not a number.", f"the call was {call}.")
        got.append(figure)
    fine = [isclose(value, right, rel_tol=CLOSE) for value, right in zip(got, want)]
    if all(fine):
        return Verdict(True, f"{len(cases)} calls give what they should; {calls[0]} is {_text(want[0])}{unit}.")
    n = fine.index(False)
    finding = f"{calls[n]} gives {_text(got[n])}{unit}; it should be {_text(want[n])}{unit}."
    known = vars(import_module(right.__module__)) | {"right": right}
    for said, slip in slips.items():
        wrong = eval(f"lambda {', '.join(signature(right).parameters)}: {slip}", known)
        if all(isclose(value, wrong(*case), rel_tol=CLOSE) for value, case in zip(got, cases)):
            return Verdict(False, finding, said)
    if any(fine):
        if got[0] and len(set(got)) == 1:  # a number, not the 0 of before one begins
            hint = f"it gives that in every call, as if it did not use its arguments; {hint}"
        hint += f" ({sum(fine)} of {len(cases)} calls are right.)"
    return Verdict(False, finding, hint)


def _text(value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
