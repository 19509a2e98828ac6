"""Checks of answers: the verdict, and how a check calls a student's function.

A check runs here, in the notebook's process; the function that it checks runs in a bare process,
which is handed no lesson and no right answer; only a sandbox, as marks have one, keeps it from
looking for them on disk (see ``cypresskit.isolated``). The check hands over cases,
gets plain data back, and compares. Whatever an answer does, catch everything in a loop, fill the
memory, crash, call ``input``, exit or write messages of its own, becomes a verdict, and the
notebook lives on.

``exercise`` makes a check of a function that takes an answer; ``tried`` calls the answer. A fault
in the check itself is never told as the student's: it says that the check is broken.
"""

import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from typing import Any, TypeVar

import numpy as np

from cypresskit.devices import HD5870, Device
from cypresskit.isolated import Answer, NoResult, Other, Raised
from cypresskit.isolated.card import CardMemoryError
from cypresskit.isolated.function_pickle import PACKAGE
from cypresskit.isolated.plain import Described, Items, decode, encode
from cypresskit.isolated.process import CallLimits
from cypresskit.isolated.runner import described, error_text
from cypresskit.timing import DataDependentError

T = TypeVar("T")
# What a call of an answer may take
SECONDS, WALL, MEGABYTES = CallLimits.seconds, CallLimits.wall, CallLimits.megabytes
STOPPED = "You stopped it while `{}` was running: does its loop end?"
LOOP = "what changes from one turn of the loop to the next, and what ends it?"
CHARACTERS = 4_000  # of a verdict
GRADER = "NBGRADER_EXECUTION"  # the variable by which nbgrader says what it is doing
BEYOND = 2**63  # above all sizes, rates and counts
UNUSABLE = (TypeError, ValueError, OverflowError, AttributeError, IndexError, KeyError)
BROKEN = "This check is broken: {}. Your answer was not judged."
REPORT = (
    "this is a fault of the workbook, not yours. Please report it with the lines above, by an"
    " issue on the project's page or to your teacher."
)

#: Where checks draw numbers. Each check begins anew: the same exercise, and in marks the same
#: student, gets the same numbers (see ``seeded``).
chance = random.Random("notebook")
_seed = ["notebook"]


@contextmanager
def seeded(seed: str) -> Iterator[None]:
    """Within this, checks draw the numbers that belong to ``seed``."""
    _seed.append(seed)
    try:
        yield
    finally:
        _seed.pop()


def draws(*parts: object) -> random.Random:
    """Random numbers that belong to the seed of now and to ``parts``."""
    return random.Random(f"{_seed[-1]} {parts}")


@dataclass(frozen=True, repr=False)
class Verdict:
    """A check's result: ``right``, one sentence of ``finding``, and a ``hint`` if the answer isn't
    right yet; its text is all three. ``check`` is the module and the name of the function that gave
    it. ``broken``: the check failed, and the answer wasn't judged.
    """

    right: bool
    finding: str
    hint: str = ""
    check: tuple[str, str] | None = field(default=None, compare=False)
    broken: bool = False

    def __str__(self) -> str:
        head = "Right." if self.right else "Not yet."
        if self.broken:
            head = "Not judged."
        return f"{head} {self.finding}" + (f"\nWhere to look: {self.hint}" if self.hint else "")

    __repr__ = __str__


def a_type(value) -> str:
    """A value's type with its article: ``an int``; ``None`` stays ``None``."""
    if value is None:
        return "None"
    name = value.type if isinstance(value, Other | Items) else type(value).__name__
    if isinstance(value, Described):
        return f"a {value.kind} with fields that have other types"
    return f"{'an' if name[:1] in 'aeiouAEIO' or name == 'ndarray' else 'a'} {name}"


def slip(result: np.ndarray, slips: Mapping[str, np.ndarray], otherwise: str) -> str:
    """The hint of the first slip that gives the same ``result``, or ``otherwise``. ``slips``: hint
    to its result.
    """
    return next((hint for hint, wrong in slips.items() if np.array_equal(result, wrong)), otherwise)


class Halted(BaseException):
    """Ends a check with a verdict that isn't right."""

    def __init__(self, finding: str, hint: str):
        super().__init__(finding)
        self.verdict = Verdict(False, finding, hint)


def unless(fine: object, finding: str, hint: str) -> None:
    """End a check with "Not yet.", ``finding`` and ``hint``, unless ``fine``."""
    if not fine:
        raise Halted(finding, hint)


def tried(call: str, work: Callable[..., T], *arguments, hint: str) -> T:
    """The result of ``work(*arguments)``. ``work`` is an answer, or the check's own function which
    takes an answer's result apart; ``call`` is the same as a student would write it. What the
    answer raises, and a result that can't be used, end the check with ``hint``.

    Raises ``CardMemoryError`` if that is what the answer raised.
    """
    name = call.partition("(")[0]
    try:
        return work(*arguments)
    except Raised as error:
        if error.type == "CardMemoryError":
            raise CardMemoryError(str(error).partition(": ")[2]) from None
        if "for ^: " in str(error):
            hint += " A power is `**` in Python; `^` is something else."
        raise Halted(f"{name} stops with {str(error).rstrip('.')}{_line(error)}.", hint) from None
    except NoResult as lost:
        raise Halted(*lost_words(call, lost)) from None
    except KeyboardInterrupt:
        raise Halted(STOPPED.format(call), LOOP) from None
    except UNUSABLE as error:
        nothing = "NoneType" in error_text(error)
        what = "nothing" if nothing else "something that the check can't use"
        raise Halted(f"{name} returns {what}.", hint) from None


def lost_words(call: str, lost: NoResult) -> tuple[str, str]:
    """(finding, hint) on a ``call`` that gave no result."""
    *_, last = ["", *str(lost).splitlines()]
    ended = f" ({signal.Signals(lost.signal).name})" if lost.signal > 0 else ""
    return {
        "time": (
            f"`{call}` had not ended after {SECONDS:g} s of computing: does its loop end?",
            LOOP,
        ),
        "clock": (
            f"`{call}` had not ended after {WALL:g} s by the clock: does its loop end?",
            LOOP,
        ),
        "memory": (
            f"`{call}` fills the memory: is an array too large, or growing without end?",
            "what does each turn of the loop add to, and when is it enough?",
        ),
        "large": (f"`{call}` returns too much to be looked at.", "is a list growing without end?"),
        "input": (
            f"`{call}` waits for `input`.",
            "nobody can type here: what it needs is in its arguments.",
        ),
        "exit": (
            f"`{call}` tries to quit Python.",
            "leave out `exit`: `return` ends a function.",
        ),
        "thread": (
            f"`{call}` leaves a thread running.",
            "wait for it with `join`. Do you need a thread at all?",
        ),
        "broken": (
            f"`{call}` brings the process down in which it runs: {last[:200]}",
            "return numbers, texts, lists or arrays, and leave the process itself alone.",
        ),
        "forged": (
            f"`{call}` gives something that can't be read.",
            "return numbers, texts, lists or arrays, and write to no stream but `print`'s.",
        ),
    }.get(
        lost.reason,
        (
            f"`{call}` brings Python down{ended}.",
            "does it recurse without end, or quit Python?",
        ),
    )


def _line(error: Raised) -> str:
    """Where a student's cell raised an error, as text: ``, in line 4: `y = x[3]` ``; empty if none
    did.
    """
    if not error.line:
        return ""
    return f", in line {error.line}" + f": `{error.source}`" * bool(error.source)


# -- answers that are values


def plain_value(value: Any) -> Any:
    """A value as the check looks at it: plain data, a board of the package's own making, or what
    stands for anything else.
    """
    return built(decode(encode(value, described)))


def built(value: Any) -> Any:
    """The board that plain fields describe; any other value as it is."""
    if not isinstance(value, Described):
        return value
    given = value.fields
    if value.kind == "Device" and given.keys() == {f.name for f in fields(Device)}:
        fine = all(_alike(given[name], own) for name, own in vars(HD5870).items())
        with suppress(TypeError, ValueError):
            return Device(**given) if fine else value
    return value


def _alike(value: Any, own: Any) -> bool:
    """Whether a field of a board has the type of the stock one's, and no number is beyond what one
    can be of; whole numbers are floats, too.
    """
    if isinstance(value, int | float) and not abs(value) < BEYOND:
        return False
    return type(value) is type(own) or (isinstance(own, float) and type(value) is int)


def _without_end(value: Any) -> bool:
    """Whether there is a number in a value that is beyond all that is counted here."""
    if isinstance(value, list | tuple):
        return any(map(_without_end, value))
    return type(value) is int and not abs(value) < BEYOND


# -- checks


def exercise(
    check: Callable[..., Verdict], function: str = "", services: Sequence[str] = ()
) -> Callable[..., Verdict]:
    """A decorator for checks: they give a verdict whatever the answer does, and show at most a page
    of what it prints.

    function : the name of an answer that must be one; by default the check's parameter, if its
        annotation is Callable or Answer. The check gets an ``isolated.Answer`` in its place.
    Where nbgrader grades a notebook, an answer that isn't right raises ``AssertionError``, which is
    how nbgrader takes the points.

    services : names of what the answer may ask for. The check puts them into the answer's
        ``services`` before it calls it: with "gemm", ``ck.gemm`` is done here.
    """
    name, parameter = next(iter(signature(check).parameters.items()))
    needed = bool(function) or parameter.annotation in (Callable, Answer)
    name = function or name

    def judged(*arguments) -> Verdict:
        unless(
            arguments,
            f"{check.__name__} was given nothing.",
            f"`{check.__name__}({name})` checks {name}.",
        )
        if not needed:
            value = plain_value(arguments[0])
            finding = f"There is a number in {name} that is larger than all that is counted here."
            unless(not _without_end(value), finding, "how is it computed?")
            return check(value)
        with ExitStack() as stack:
            return check(_opened(arguments[0], name, services, stack))

    @wraps(check)
    def checked(*arguments) -> Verdict:
        key = (check.__module__, check.__name__)
        chance.seed(f"{_seed[-1]} {key}")
        try:
            verdict = judged(*arguments)
        except Halted as halted:
            verdict = replace(halted.verdict, right=False)
        except KeyboardInterrupt:
            verdict = Verdict(False, "The check was stopped.", "run it again, and let it end.")
        except Exception as error:
            verdict = broken(error)
        if os.environ.get(GRADER) == "autograde" and not verdict.right:
            raise AssertionError(str(verdict))
        if verdict.broken:
            return replace(verdict, check=key)
        if (size := len(finding := verdict.finding)) > CHARACTERS:
            finding = f"{finding[:CHARACTERS]} ... ({size:,} characters)"
        return replace(verdict, finding=finding, check=key)

    checked.needs_function = needed  # type: ignore[attr-defined]
    checked.answer_name = name  # type: ignore[attr-defined]
    checked.services = tuple(services)  # type: ignore[attr-defined]
    return checked


def _opened(answer: Any, name: str, services: Sequence[str], stack: ExitStack) -> Answer:
    """The answer in a bare process, which ends with ``stack``."""
    if isinstance(answer, Answer):  # of marks, made from a notebook's cells
        kind = f"{name} is of type {answer.type}, not a function."
        unless(answer.function, kind, f"keep the line `def {name}`.")
        return answer
    kind = f"{name} is of type {type(answer).__name__}, not a function."
    unless(callable(answer), kind, f"keep the line `def {name}`.")
    page = _Shown()
    limits = CallLimits(SECONDS, WALL, MEGABYTES)
    offered = dict.fromkeys(services, not_served)
    try:
        opened = Answer(answer, services=offered, limits=limits, show=page.show)
    except Exception as error:
        raise Halted(
            f"{name} can't be handed to the process where it is judged: {error_text(error)}.",
            "make inside the function what it uses, rather than outside.",
        ) from None
    try:
        stack.enter_context(opened)
    except Raised as error:
        raise Halted(
            f"{name} can't be made again where it is judged: {error}.",
            "make inside the function what it uses, rather than outside.",
        ) from None
    except NoResult as lost:
        raise Halted(*lost_words(name, lost)) from None
    except OSError as error:
        raise Halted(
            f"The check can't begin: no Python can be started here ({error.strerror or error}).",
            "close notebooks that you don't need, and run it again.",
        ) from None
    stack.callback(lambda: page.end(opened.left_out))
    return opened


def not_served(*_: Any, **__: Any) -> None:
    """What an answer is told that asks before the check has begun."""
    raise ValueError("the card isn't there yet")


class _Shown:
    """Prints what an answer prints, and how many lines more there were."""

    def __init__(self) -> None:
        self.text = ""

    def show(self, text: str) -> None:
        self.text = text
        sys.stdout.write(text)

    def end(self, left_out: int) -> None:
        with suppress(OSError):  # of an output that is closed or full
            if self.text and not self.text.endswith("\n"):
                sys.stdout.write("\n")
            if left_out:
                sys.stdout.write(f"... and {left_out:,} lines more\n")


#: Where the package looks at what it is given: what is raised there is the answer's fault.
ARGUMENTS = {
    "devices.py",
    "machine/arguments.py",
    "machine/engines.py",
    "machine/launch.py",
    "machine/shape.py",
    "timing/simulate.py",
    "timing/surfaces.py",
}


def refused(error: Exception) -> bool:
    """Whether the package refused a kernel or a board, in words; else it failed."""
    if isinstance(error, DataDependentError):
        return True
    *_, (frame, _) = walk_tb(error.__traceback__)
    file = Path(frame.f_code.co_filename)
    return file.is_relative_to(PACKAGE) and file.relative_to(PACKAGE).as_posix() in ARGUMENTS


def broken(error: Exception) -> Verdict:
    """The verdict where the check itself failed, with the traceback for a report."""
    lines = "".join(traceback.format_exception(error)).rstrip()
    return Verdict(False, f"{BROKEN.format(error_text(error))}\n{lines}", REPORT, broken=True)
