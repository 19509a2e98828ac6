"""Exercises whose answer is a function of a few numbers: it is called with several, and each result compared.

A *slip* is a wrong formula that students write. It is named only if it explains every result, not just one of them.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import isclose

from cypresskit.teach.check import Halted, Verdict, a_type, tried, unless

CLOSE = 1e-6  # relative


def judge(
    answer,
    signature: str,
    right: str | Callable,
    cases: Sequence[tuple],
    slips: Mapping[str, str | Callable],
    hint: str,
    unit: str = "",
    **helpers: object,
) -> Verdict:
    """The verdict on ``answer``, the student's function of this ``signature``, as ``peak(e, p, u, g)``, which has to
    give what ``right`` gives for ``cases``.

    ``slips``: hints to what makes the mistake. They and ``right`` are formulas of the signature's names, of ``helpers``
    and, slips, of ``right``; or functions. ``hint`` is for other mistakes; ``unit`` stands after numbers.
    """
    name, arguments = signature.rstrip(")").split("(")
    known: dict = dict(helpers)

    def results(formula: str | Callable) -> list[float]:
        function = eval(f"lambda {arguments}: {formula}", known) if isinstance(formula, str) else formula
        known.setdefault("right", function)
        return [float(function(*case)) for case in cases]

    def number(value) -> float | None:
        try:
            return None if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            return None

    want, got = results(right), []
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
    for said, slip in slips.items():
        if all(isclose(value, slipped, rel_tol=CLOSE) for value, slipped in zip(got, results(slip))):
            return Verdict(False, finding, said)
    if any(fine):
        if got[0] and len(set(got)) == 1:  # a number, not the 0 of before one begins
            hint = f"it gives that whatever it is called with: use its arguments; {hint}"
        hint += f" ({sum(fine)} of {len(cases)} calls are right.)"
    return Verdict(False, finding, hint)


def _text(value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
