"""Exercises whose answer is a function: it is called with several arguments, and each result
compared.

A *mistake* is a wrong formula that students write. Its hint is shown only if it explains every
result. If all results are right, three calls with random arguments follow. Their right results are
never shown, so copying the numbers from earlier messages doesn't pass.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from math import gcd, isclose, isfinite

from cypresskit.tables import listed
from cypresskit.teach.check import (
    LOOP_HINT,
    CheckStopped,
    Verdict,
    call_answer,
    capitalize,
    check_rng,
    function_exercise,
    require,
    type_with_article,
)

Mistakes = Callable[..., Mapping[str, float]]
RELATIVE_TOLERANCE = 1e-5  # numbers that a verdict shows alike, in six digits, are equal
N_RANDOM_CASES = 3  # calls with numbers that aren't shown
ROUNDED = "right, but rounded: give it as it comes out, without `round`, `int` or `//`."


def formula_exercise(
    cases: Sequence[tuple],
    mistakes: Mistakes,
    hint: str,
    unit: str = "",
    *,
    name: str = "",
    draw: Callable[[], tuple] | None = None,
) -> Callable[[Callable], Callable[[object], Verdict]]:
    """Turn the right function into the check of a student's function: both must return the same for
    ``cases``, and for random cases from ``draw``, by default ``draw_case``. The student's is called
    ``name``, by default the right one's name without ``check_``.

    ``mistakes`` returns, for a case, what each mistake gives, by its hint: the same hints for each
    case. ``hint`` is for other mistakes; ``unit`` follows numbers.
    """

    def made(right: Callable) -> Callable[[object], Verdict]:
        called = name or right.__name__.removeprefix("check_")

        @wraps(right)
        def check(answer) -> Verdict:
            formula = Formula(
                right, called, cases, mistakes, hint, unit, draw or partial(draw_case, cases)
            )
            return formula.judged(answer)

        del check.__wrapped__  # it takes an answer, not what the answer takes
        return function_exercise(check, called)

    return made


@dataclass(frozen=True)
class Formula:
    """The formula of an exercise, see ``formula_exercise``. ``right`` computes it, ``draw`` makes a
    random case.
    """

    right: Callable
    name: str
    cases: Sequence[tuple]
    mistakes: Mistakes
    hint: str
    unit: str
    draw: Callable[[], tuple]

    def judged(self, answer: Callable) -> Verdict:
        """Return the verdict on a student's function. A call that fails counts only if the others
        are right: a wrong formula may divide by zero, and its number in another call says more.
        """
        results, cases, failed = [], [], []
        for case in self.cases:
            try:
                results.append(self.result(answer, case))
                cases.append(case)
            except CheckStopped as stopped:
                failed.append(stopped)
                if len(failed) > 1 or stopped.verdict.hint == LOOP_HINT:  # each may take long
                    break
        want = [self.right(*case) for case in cases]
        fine = [is_equal(result, value) for result, value in zip(results, want)]
        if not all(fine):
            return replace(self, cases=cases).refused(results, want, fine, failed, answer)
        if failed:
            return failed[0].verdict

        self.try_others(answer)
        message = (
            f"All {len(self.cases)} calls return the expected number: {self.call(self.cases[0])}"
        )
        return Verdict(True, f"{message} is {_text(want[0])}{self.unit}.")

    def try_others(self, answer: Callable) -> None:
        """Stop the check if the answer is wrong for numbers that aren't shown."""
        for case in [self.draw() for _ in range(N_RANDOM_CASES)]:
            result = self.result(answer, case)
            want = self.right(*case)
            message = (
                f"The {len(self.cases)} calls that are shown are right, but it is wrong for other"
                " numbers."
            )
            why = f"{self.hint} Does it compute from what it is given?"
            if _are_rounded([result], [want]):
                why = ROUNDED
            require(is_equal(result, want), message, why)

    def refused(
        self,
        results: list[float],
        want: list[float],
        fine: list[bool],
        failed: Sequence[CheckStopped],
        answer: Callable,
    ) -> Verdict:
        """Return the verdict on wrong results: the first, and the mistake that explains all; or,
        beside the hint, what other calls ``failed`` with.
        """
        n = fine.index(False)
        message = (
            f"{self.call(self.cases[n])} gives {_text(results[n])}{self.unit};"
            f" it should be {_text(want[n])}{self.unit}."
        )
        mistaken = [self.mistakes(*case) for case in self.cases]
        for its_hint in mistaken[0]:
            if all(is_equal(result, made[its_hint]) for result, made in zip(results, mistaken)):
                return Verdict(False, message, its_hint)

        hint = self.hint
        if _are_rounded(results, want):
            hint = ROUNDED
        elif found := (not failed and _pattern(results, want)) or self.ignored(answer):
            hint = f"{found} {capitalize(hint)}"
        if any(fine):
            right = [self.call(case) for case, is_right in zip(self.cases, fine) if is_right]
            are = "is" if len(right) == 1 else "are"
            which = f": {listed(right)}" * (hint == self.hint and len(right) < 4)
            hint += f" ({len(right)} of {len(fine) + len(failed)} calls {are} right{which}.)"
        if failed:
            hint += f" In another call {failed[0].verdict.message}"
        return Verdict(False, message, hint)

    def ignored(self, answer: Callable) -> str:
        """Return which arguments the answer's source never reads, of those that change the right
        result; "" if it reads all.
        """
        unread = [
            f"`{name}`"
            for place, (name, is_read) in enumerate(getattr(answer, "parameters", ()))
            if not is_read and place < len(self.cases[0]) and self._depends_on(place)
        ]
        return f"it doesn't use {listed(unread)}." if unread else ""

    def _depends_on(self, place: int) -> bool:
        """Return whether the right result of a case changes with the argument in a place."""
        return any(
            self.right(*case[:place], other[place], *case[place + 1 :]) != self.right(*case)
            for case in self.cases
            for other in self.cases
        )

    def result(self, answer: Callable, case: tuple) -> float:
        """Return the answer's result for a case; anything but a number stops the check."""
        return result_of(self.call(case), answer, case, self.hint)

    def call(self, case: tuple) -> str:
        """Return a call of the student's function, as it would be written."""
        return f"{self.name}({', '.join(map(_text, case))})"


def draw_case(cases: Sequence[tuple]) -> tuple:
    """Return a random case: each number is between the least and the largest in its place. Whole
    numbers keep their common divisor, so multiples of 64 stay multiples of 64.
    """
    case: list = []
    for column in zip(*cases):
        low, high = min(column), max(column)
        step = gcd(*column) if all(isinstance(number, int) for number in column) else 0
        case.append(
            step * check_rng.randint(low // step, high // step)
            if step
            else check_rng.uniform(low, high)
        )
    return tuple(case)


def result_of(call: str, answer: Callable, case: tuple, hint: str) -> float:
    """Return the number that a call returns. Anything else stops the check."""

    def number(value) -> float | None:
        try:
            return None if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            return None

    value = call_answer(call, answer, *case, hint=hint)
    require(
        value is not None,
        f"{call} returns nothing.",
        "its `return` is missing, or has nothing to return (`print` doesn't return)."
        f" {capitalize(hint)}",
    )
    figure = call_answer(call, number, value, hint=hint)
    if figure is None:
        kind = "a text" if isinstance(value, str) else type_with_article(value)
        raise CheckStopped(f"{call} returns {kind}, not a number.", "return one number.")
    return figure


def is_equal(value: float, right: float) -> bool:
    """Whether two numbers agree to six digits and, if ``right`` is whole, to less than a half."""
    off_by_one = isinstance(right, int) and abs(value - right) >= 0.5
    return isclose(value, right, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12) and not off_by_one


def _are_rounded(values: Sequence[float], right: Sequence[float]) -> bool:
    """Whether ``values`` are whole and less than 1 from the ``right`` ones, and one of them is
    close to it, so that no constant is.
    """
    pairs = [*zip(values, right)]
    is_close = any(isclose(*pair, rel_tol=0.1) for pair in pairs if any(pair))
    return is_close and all(one.is_integer() and abs(one - other) < 1 for one, other in pairs)


def _pattern(results: Sequence[float], right: Sequence[float]) -> str:
    """Return what the results have in common: they are 0, or the right ones times a number."""
    if not any(results):
        return "it returns 0 in every call: does it return what it computes?"
    if len(right) > 1 and all(right) and isfinite(ratio := results[0] / right[0]):
        pairs = zip(results, right)
        if all(isclose(one, ratio * value, rel_tol=1e-6) for one, value in pairs):
            return f"each result is {ratio:.6g} times the right one."
    return ""


def _text(value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
