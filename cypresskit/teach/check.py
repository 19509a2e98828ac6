"""Checks of answers: the verdict, and how a check calls a student's function.

A check runs in the notebook's process. The function that it checks runs in a bare process without
lessons and right answers. (Only the sandbox of ``grading`` prevents it from reading them from disk;
see ``isolated``.) The check sends cases, receives plain data, and compares. An answer may loop
forever, fill the memory, crash, call ``input``, exit, or forge messages to the check: all of this
becomes a verdict, and the notebook continues.

``exercise`` makes a check of a function that takes a value, ``function_exercise`` of one that takes
a function; ``call_answer`` calls the answer. A fault in the check itself is reported as such, and
the answer isn't judged. An ``ArgumentError`` is none: it says that the answer's kernel, board or
size can't be.
"""

import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from cypresskit.il.opcodes import OPCODES
from cypresskit.isolated import Answer, NoResult, Other, Raised, Refused
from cypresskit.isolated.answer import CallLimits
from cypresskit.isolated.plain import Items, decode, encode, is_below_limit
from cypresskit.isolated.serving import error_text
from cypresskit.session import is_watched
from cypresskit.teach import bindings
from cypresskit.teach.answer_source import (
    AnswerSource,
    find_all_names,
    find_parameters,
    find_source,
)

T = TypeVar("T")
# Limits of a call of an answer
SECONDS, MEGABYTES = CallLimits.seconds, CallLimits.megabytes
MAKING = CallLimits(60.0, 2_000)  # for running the cells that make an answer
NEEDED_CELLS_HINT = (
    "only the cells that the answer needs are run: does it use a name that another cell sets, or"
    " that was set by hand?"
)
MODULES_HINT = "the Python that judges hasn't this module: numpy and cypresskit are enough."
STOPPED = "You stopped it while `{}` was running: does its loop end?"
LOOP_HINT = "what changes from one iteration of the loop to the next, and what ends it?"
PATIENCE = 3.0  # seconds without a word from a check
MAX_CHARACTERS = 4_000  # of a verdict
#: What errors mean, by a part of their text.
MEANINGS = {
    " for ^: ": "A power is `**` in Python; `^` is something else.",
    "' object is not iterable": "`sum` takes a list, and so do `min` and `max` of one thing: here"
    " it is a number.",
    "'list' and '": "Lists don't calculate: `np.array` makes an array of a list, which does.",
    "concatenate list": "`+` joins lists: `np.array` makes an array of a list, which calculates.",
    "' object is not subscriptable": "A number has no `[...]`.",
    "' object is not callable": "Is a `*` missing before a parenthesis?",
    "between instances of": "Numbers are compared with numbers, not with a list.",
    "be broadcast together": "The arrays' shapes differ: print `.shape` of each.",
    "size-1 arrays": "An array is where one number belongs.",
    "length-1 arrays": "An array is where one number belongs.",
    "must be of ArrayType": "numpy's functions take several numbers as one list.",
    "interpreted as an integer": "numpy's functions take several numbers as one list.",
    "out of bounds for array of dimension": "numpy's functions take several numbers as one list.",
}
UNUSABLE_ERRORS = (TypeError, ValueError, OverflowError, AttributeError, IndexError, KeyError)
BROKEN = "This check is broken: {}. Your answer was not judged."
REPORT = (
    "this is a fault of the workbook, not yours. Please report it with the lines above, by an"
    " issue on the project's page or to your teacher."
)

#: The random numbers of checks. Each check first seeds it with its own name and the current seed
#: (see ``use_seed``), so a repeated check draws the same. In grading, each submission has a seed.
check_rng = random.Random("notebook")
_seed = ["notebook"]


@contextmanager
def use_seed(seed: str) -> Iterator[None]:
    """Let checks seed their random numbers with ``seed``."""
    _seed.append(seed)
    try:
        yield
    finally:
        _seed.pop()


@contextmanager
def announce_if_slow(text: str) -> Iterator[None]:
    """Print what is known so far, and what is still being done, once it has taken some seconds."""
    timer = threading.Timer(PATIENCE, print, (text,), {"file": sys.stderr, "flush": True})
    with suppress(RuntimeError):  # a browser has no threads
        if is_watched():
            timer.start()
    try:
        yield
    finally:
        timer.cancel()


def make_generator(*parts: object) -> random.Random:
    """Return a random generator, seeded with the current seed and ``parts``."""
    return random.Random(f"{_seed[-1]} {parts}")


@dataclass(frozen=True, repr=False)
class Verdict:
    """The result of a check. Its text has all of ``right``, ``message`` and ``hint``."""

    right: bool
    message: str  # what the answer returned, and what was expected
    hint: str = ""  # one place to look, if the answer isn't right yet
    check: tuple[str, str] | None = field(default=None, compare=False)  # its module and name
    is_broken: bool = False  # the answer wasn't judged, which isn't its fault

    def __str__(self) -> str:
        head = "Right." if self.right else "Not yet."
        if self.is_broken:
            head = "Not judged."
        hint = f"\nWhere to look: {capitalize(self.hint)}" if self.hint else ""
        return f"{head} {self.message}{hint}"

    __repr__ = __str__


def capitalize(text: str) -> str:
    """Capitalize a text, unless its first word is an instruction, a letter or not all letters."""
    word, *_ = text.replace("-", "").split(maxsplit=1)
    is_name = not word.isalpha() or word in OPCODES or (len(word) == 1 and word != "a")
    return text if is_name else text[0].upper() + text[1:]


def type_name(value) -> str:
    """Return the name of a value's type, also of one that isn't plain data."""
    return value.type if isinstance(value, Other | Items) else type(value).__name__


def type_with_article(value) -> str:
    """Return a value's type with its article: ``an int``; ``None`` stays ``None``."""
    if value is None:
        return "None"
    name = type_name(value)
    return f"{'an' if name[:1] in 'aeiouAEIO' or name == 'ndarray' else 'a'} {name}"


class CheckStopped(BaseException):
    """Stops a check with a verdict that isn't right."""

    def __init__(self, message: str, hint: str):
        super().__init__(message)
        self.verdict = Verdict(False, message, hint)


def require(fine: object, message: str, hint: str) -> None:
    """Stop the check with "Not yet.", ``message`` and ``hint``, unless ``fine``."""
    if not fine:
        raise CheckStopped(message, hint)


def call_answer(
    call: str,
    work: Callable[..., T],
    *arguments,
    hint: str,
    unusable: str = "something that the check can't use",
    endless: str = LOOP_HINT,
) -> T:
    """Return ``work(*arguments)``. ``work`` is the answer, or converts its result; ``call`` is the
    call as a student would write it. If the answer fails, or its result can't be used, the check
    stops with ``hint``; with ``endless`` if the answer doesn't end. ``unusable`` describes such a
    result: "f(1) returns {unusable}."
    """
    try:
        return work(*arguments)
    except Raised as error:
        hint += "".join(f" {said}" for part, said in MEANINGS.items() if part in str(error))
        raise CheckStopped(
            f"{call} stops with {str(error).rstrip('.')}{_line(error)}.", hint
        ) from None
    except NoResult as lost:
        message, advice = explain_no_result(call, lost, SECONDS)
        raise CheckStopped(message, endless if lost.reason == "time" else advice) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(STOPPED.format(call)) from None  # no further call is tried
    except UNUSABLE_ERRORS as error:
        nothing = "NoneType" in error_text(error)
        what = "nothing" if nothing else unusable
        raise CheckStopped(f"{call} returns {what}.", hint) from None


def explain_no_result(call: str, lost: NoResult, seconds: float) -> tuple[str, str]:
    """Return (message, hint) on a ``call`` that gave no result within ``seconds``."""
    *_, last = ["", *str(lost).splitlines()]
    ended = f" ({signal.Signals(lost.signal).name})" if lost.signal > 0 else ""
    return {
        "time": (
            f"`{call}` had not ended after {seconds:g} s: does its loop end?",
            LOOP_HINT,
        ),
        "memory": (
            f"`{call}` fills the memory: is an array too large, or growing without end?",
            "what does each iteration of the loop add to, and when is it enough?",
        ),
        "large": (f"`{call}` returns too much to be looked at.", "is a list growing without end?"),
        "input": (
            f"`{call}` waits for `input`.",
            "no input can be typed here: what it needs is in its arguments.",
        ),
        "exit": (
            f"`{call}` tries to quit Python.",
            "leave out `exit`: `return` ends a function.",
        ),
        "broken": (
            f"`{call}` ends its process: {last[:200]}",
            "return numbers, texts, lists or arrays, and leave the process itself alone.",
        ),
        "forged": (
            f"`{call}` returns something that can't be read.",
            "return numbers, texts, lists or arrays, and write to no stream but `print`'s.",
        ),
    }.get(
        lost.reason,
        (
            f"`{call}` crashes Python{ended}.",
            "does it recurse without end, or quit Python?",
        ),
    )


def _line(error: Raised) -> str:
    """Return where a student's cell raised an error: ``, in line 4: `y = x[3]` ``; or ""."""
    if not error.line:
        return ""
    return f", in line {error.line}" + f": `{error.source}`" * bool(error.source)


# -- checks


def exercise(check: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """Decorate a check of a value, so that it returns a verdict whatever the answer is.

    The check's parameter has the answer's name, and gets the value as plain data.
    """
    return _shelled(check, next(iter(signature(check).parameters)), is_called=False)


def function_exercise(check: Callable[..., Verdict], name: str = "") -> Callable[..., Verdict]:
    """Decorate a check of a function, so that it returns a verdict whatever the answer does, and
    shows at most a page of what the answer prints.

    The check gets an ``isolated.Answer``. The answer is called ``name``, by default as the check's
    parameter.
    """
    name = name or next(iter(signature(check).parameters))
    return _shelled(check, name, is_called=True)


def _shelled(check: Callable[..., Verdict], name: str, is_called: bool) -> Callable[..., Verdict]:
    """Return a check that never raises."""

    def judged(*arguments) -> Verdict:
        require(
            arguments,
            f"{check.__name__} was given nothing.",
            f"`{check.__name__}({name})` checks {name}.",
        )
        (given, *_) = arguments
        if is_called and not isinstance(given, AnswerSource):
            given = _source_of(given, name)
        if not isinstance(given, AnswerSource):
            return check(_usable(decode(encode(given)), name))
        with ExitStack() as stack:
            answer = _open_answer(given, stack)
            if is_called:
                kind = f"{name} is of type {type_name(answer.value)}, not a function."
                require(answer.is_function, kind, f"keep the line `def {name}`.")
                return check(answer)
            return check(_usable(answer.value, name))

    @wraps(check)
    def checked(*arguments) -> Verdict:
        key = (check.__module__, check.__name__)
        check_rng.seed(f"{_seed[-1]} {key}")
        try:
            verdict = judged(*arguments)
        except CheckStopped as halted:
            verdict = replace(halted.verdict, right=False)
        except KeyboardInterrupt as stopped:
            hint = LOOP_HINT if stopped.args else "run it again, and let it end."
            verdict = Verdict(False, str(stopped) or "The check was stopped.", hint)
        except Exception as error:
            verdict = report_broken_check(error)
        if verdict.is_broken:
            return replace(verdict, check=key)
        if (size := len(message := verdict.message)) > MAX_CHARACTERS:
            message = f"{message[:MAX_CHARACTERS]} ... ({size:,} characters)"
        return replace(verdict, message=message, check=key)

    checked.answer_name = name  # type: ignore[attr-defined]
    return checked


def _usable(value: Any, name: str) -> Any:
    """Return a value, unless it holds a number that is too large."""
    message = f"{name} holds a number of 2^63 or more, or nan."
    require(is_below_limit(value), message, "how is it computed?")
    return value


def _source_of(answer: Any, name: str) -> AnswerSource:
    """Return the source of a function."""
    kind = f"{name} is of type {type(answer).__name__}, not a function."
    require(callable(answer), kind, f"keep the line `def {name}`.")
    try:
        return find_source(answer, name)
    except ValueError as error:
        raise CheckStopped(
            f"The source of {name} can't be read, and the check runs it: {error}.",
            f"define {name}, and what it uses, by `def` in cells of the notebook.",
        ) from None


def _open_answer(source: AnswerSource, stack: ExitStack) -> Answer:
    """Return the answer that a source makes, in a bare process, which ends with ``stack``."""
    name = source.name
    cells = source.needed_cells()
    hint = f"a cell has to set {name}."
    if magic := bindings.find_refused_magic(source.cells, name):
        hint = f"`{magic}` isn't run when an answer is judged: {hint}"
    missing = f"There is no {name}.", hint
    require(any(cell.sets for cell in cells), *missing)
    page = _Shown()
    answer = Answer(
        cells,
        name,
        limits=CallLimits(SECONDS, MEGABYTES),
        making=MAKING,
        show=(lambda _: None) if source.server else page.show,
        server=source.server,
    )
    try:
        stack.enter_context(answer)
    except Refused as refused:
        require(refused.sets is not None, *missing)
        where = f"The cell of {name}" if refused.sets else f"A cell that {name} needs"
        more = {"NameError": hint if magic else NEEDED_CELLS_HINT}
        more["ModuleNotFoundError"] = hint if magic else MODULES_HINT
        line = f"line {refused.line} of that cell."
        hint = next((more[kind] for kind in more if kind in str(refused)), line)
        raise CheckStopped(f"{where} {refused}.", hint) from None
    except Raised as error:
        message = f"There is no answer to check: {error}."
        raise CheckStopped(message, NEEDED_CELLS_HINT) from None
    except NoResult as lost:
        message, hint = explain_no_result(f"the cell of {name}", lost, MAKING.seconds)
        raise CheckStopped(f"There is no answer to check: {message}", hint) from None
    except OSError as error:
        raise CheckStopped(
            f"The check can't begin: no Python can be started here ({error.strerror or error}).",
            "close notebooks that you don't need, and run it again.",
        ) from None
    stack.callback(page.end)
    answer.names = find_all_names(cells)
    answer.parameters = find_parameters(cells, name)
    return answer


class _Shown:
    """Prints what an answer prints."""

    def __init__(self) -> None:
        self.text = ""

    def show(self, text: str) -> None:
        self.text = text
        sys.stdout.write(text)

    def end(self) -> None:
        """End the last line."""
        with suppress(OSError):  # of an output that is closed or full
            if self.text and not self.text.endswith("\n"):
                sys.stdout.write("\n")


def report_broken_check(error: Exception) -> Verdict:
    """Return the verdict for an error in the check itself, with a traceback to report."""
    lines = "".join(traceback.format_exception(error)).rstrip()
    return Verdict(False, f"{BROKEN.format(error_text(error))}\n{lines}", REPORT, is_broken=True)
