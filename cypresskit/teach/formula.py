"""Exercises whose answer is a function of a few numbers: it is called with several, and each result compared.

A *slip* is a wrong formula that students write. It is named only if it explains every result, not just one of them.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import isclose

from cypresskit.teach.shell import asked
from cypresskit.teach.verdict import Verdict, stopped

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

    def function(formula: str | Callable) -> Callable:
        return eval(f"lambda {arguments}: {formula}", known) if isinstance(formula, str) else formula

    known["right"] = right = function(right)
    if not callable(answer):
        return Verdict(
            False, f"{name} is of type {type(answer).__name__}, not a function.", f"keep the line `def {name}`."
        )
    got = []
    for case in cases:
        call = f"{name}({', '.join(map(_text, case))})"
        try:
            value = asked(call, answer, *deepcopy(case))  # a copy, which it may change
            if value is None:
                return Verdict(False, f"{call} returns nothing.", f"end {name} with `return ...`; {hint}")
            if isinstance(value, str):
                raise ValueError(f"it returns the text {value!r}, not a number")
            got.append(float(value))
        except Exception as error:
            return stopped(name, error, f"the call was {call}.")
    want = [float(right(*case)) for case in cases]
    wrong = [n for n in range(len(cases)) if not _close(got[n], want[n])]
    if not wrong:
        best = f"{name}({', '.join(map(_text, cases[0]))}) is {_text(want[0])}{unit}"
        return Verdict(True, f"{len(cases)} calls give what they should; {best}.")
    n = wrong[0]
    finding = (
        f"{name}({', '.join(map(_text, cases[n]))}) gives {_text(got[n])}{unit}; it should be {_text(want[n])}{unit}."
    )
    for said, slip in slips.items():
        slipped = function(slip)
        if all(_close(value, float(slipped(*case))) for value, case in zip(got, cases)):
            return Verdict(False, finding, said)
    fine = len(cases) - len(wrong)
    if fine and got[0] and len(set(got)) == 1:  # a number, not the 0 of before one begins
        hint = f"it gives that whatever it is called with: use its arguments; {hint}"
    return Verdict(False, finding, hint + (f" ({fine} of {len(cases)} calls are right.)" if fine else ""))


def _close(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=CLOSE)


def _text(value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
