"""Checks of answers: the verdict, and the shell in which a student's function can do no harm.

On Linux, a check of a function runs in a copy of this process (a fork), which the answer may fill,
crash or keep busy. Timers end the copy once the answer has used up its time, whatever it does:
catch everything in a loop, recurse around an ``except:``, stay in one call of C. A limit on its
memory makes Python raise ``MemoryError``. Whatever an answer changes besides its arguments is gone
with the copy. Elsewhere it runs in this process, which the stop button ends.

``run_answer`` calls the answer. ``exercise`` turns everything that may happen, such as the stop
button, ``input``, ``sys.exit`` and a notebook's ``exit``, into verdicts: no traceback shows how the
check finds its answers, and the kernel lives on.
"""

import builtins
import io
import linecache
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from typing import TypeVar
from unittest.mock import patch

import numpy as np

from cypresskit.blas import CardMemoryError
from cypresskit.teach import apart
from cypresskit.teach.apart import FORKS

T = TypeVar("T")
SECONDS, WALL = (
    5.0,
    20.0,
)  # of processor time for an answer, and by the clock: a busy machine stops it later
MEGABYTES = 500  # that it may take meanwhile
PACKAGE = Path(__file__).parents[1]
STOPPED = "You stopped it while `{}` was running: does its loop end?"
LOOP = "what changes from one turn of the loop to the next, and what ends it?"
LINES, CHARACTERS = 20, 4_000  # of what an answer prints; a verdict is no longer either


@dataclass(frozen=True, repr=False)
class Verdict:
    """A check's result: ``right``, one sentence of ``finding``, and a ``hint`` if the answer isn't
    right yet; its text is all three. ``check`` is the module and the name of the function that gave
    it.
    """

    right: bool
    finding: str
    hint: str = ""
    check: tuple[str, str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        head = "Right." if self.right else "Not yet."
        return f"{head} {self.finding}" + (f"\nWhere to look: {self.hint}" if self.hint else "")

    __repr__ = __str__


def a_type(value) -> str:
    """A value's type with its article: ``an int``; ``None`` stays ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIO' or name == 'ndarray' else 'a'} {name}"


def error_text(error: BaseException) -> str:
    """An exception as text for a student: its type, and its message if it has one."""
    with suppress(Exception):  # its text is made by whoever wrote its class
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return type(error).__name__


def slip(result: np.ndarray, slips: Mapping[str, np.ndarray], otherwise: str) -> str:
    """The hint of the first slip that gives the same ``result``, or ``otherwise``. ``slips``: hint
    to its result.
    """
    return next((hint for hint, wrong in slips.items() if np.array_equal(result, wrong)), otherwise)


class Halted(BaseException):
    """Raised to end a check with a verdict; no ``except Exception`` in an answer catches it."""

    def __init__(self, finding: str, hint: str):
        super().__init__(finding)
        self.verdict = Verdict(False, finding, hint)


def run_answer(call: str, answer: Callable[..., T], *arguments) -> T:
    """The result of ``answer(*arguments)``; ``call`` is the same as a student would write it.
    Raises what that raises, and ``Halted`` if it is interrupted, exits, calls ``input``, leaves a
    thread running or takes more than ``MEGABYTES``. A copy of a process ends once it has used up
    ``SECONDS`` or ``WALL``.
    """

    def refuse(*_) -> str:  # JupyterLab runs no cell as long as the box of `input` waits
        raise Halted(
            f"`{call}` waits for `input`.",
            "nobody can type here: what it needs is in its arguments.",
        )

    apart.tell(call)
    shell = (
        sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    )  # whose `exit` does other things
    page = getattr(shell, "display_pub", None)  # which a copy can't reach
    before = threading.enumerate()
    instead: list[tuple[object, str, Callable]] = [
        (builtins, "input", refuse),
        (shell, "ask_exit", sys.exit),
    ]
    instead.append((page, "publish", lambda data, *_, **__: print(data.get("text/plain", ""))))
    try:
        with ExitStack() as stack:
            for owner, name, other in instead:
                if getattr(owner, name, None):
                    stack.enter_context(patch.object(owner, name, other))
            if apart.parent:
                stack.enter_context(apart.limits(SECONDS, MEGABYTES, WALL))
            result = answer(*arguments)
    except CardMemoryError:
        raise
    except MemoryError:
        grows = "what does each turn of the loop add to, and when is it enough?"
        raise Halted(
            f"`{call}` fills the memory: is an array too large, or growing without end?", grows
        ) from None
    except KeyboardInterrupt:
        raise Halted(STOPPED.format(call), LOOP) from None
    except SystemExit:
        raise Halted(
            f"`{call}` tries to quit Python.", "leave out `exit`: `return` ends a function."
        ) from None
    left = [thread for thread in threading.enumerate() if thread not in before]
    fine = all(
        thread.name.startswith(("cypresskit", "tqdm")) for thread in left
    )  # of launches, of their progress
    unless(
        fine,
        f"`{call}` leaves a thread running.",
        "wait for it with `join`. Do you need a thread at all?",
    )
    return result


def _copied(judge: Callable[[], Verdict]) -> Verdict:
    """The verdict of ``judge``, run in a copy of this process, after printing what that tells to
    print; or a verdict on how the copy ended.
    """
    call = "it"

    def hear(news: str | tuple[str]) -> None:  # a call that begins, or a text to print
        nonlocal call
        if isinstance(news, str):
            call = news
        else:
            with suppress(OSError):  # of an output that is closed or full
                print(*news, end="")

    try:
        return apart.call(judge, hear=hear, seconds=apart.LONGEST)
    except KeyboardInterrupt:
        return Verdict(False, STOPPED.format(call), LOOP)
    except OSError as error:
        finding = f"The check can't begin: Python can't be copied here ({error.strerror or error})."
        return Verdict(False, finding, "close notebooks that you don't need, and run it again.")
    except apart.Lost as lost:
        end = lost.signal
    limits: dict[int, str] = {
        signal.SIGPROF: f"{SECONDS:g} s of computing",
        signal.SIGALRM: f"{WALL:g} s by the clock",
    }
    if end in limits:
        return Verdict(
            False, f"`{call}` had not ended after {limits[end]}: does its loop end?", LOOP
        )
    how = f" ({signal.Signals(end).name})" if end > 0 else ""
    return Verdict(
        False, f"`{call}` brings Python down{how}.", "does it recurse without end, or quit Python?"
    )


def tried(call: str, answer: Callable[..., T], *arguments, hint: str) -> T:
    """The result of ``run_answer``. An exception, other than of a full card, becomes a verdict with
    ``hint``. To test whether a result can be used, ``answer`` is the check's own function, which
    raises as it takes the result apart.
    """
    try:
        return run_answer(call, answer, *arguments)
    except (CardMemoryError, Halted):
        raise
    except BaseException as error:
        name = call.partition("(")[0]
        what = (
            "nothing" if "NoneType" in error_text(error) else "something that the check can't use"
        )
        unless(_from_student(error), f"{name} returns {what}.", hint)
        hint += " A power is `**` in Python; `^` is something else." * (
            "for ^: " in error_text(error)
        )
        raise Halted(
            f"{name} stops with {error_text(error).rstrip('.')}{_line(error)}.", hint
        ) from None


def _line(error: BaseException) -> str:
    """Where a student's cell raised an error, as text: ``, in line 4: `y = x[3]` ``; empty if none
    did.
    """
    ran = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    cell = next((file for file, _ in ran if not Path(file).is_relative_to(PACKAGE)), None)
    if cell is None:
        return ""
    line = [line for file, line in ran if file == cell][-1]
    text = linecache.getline(cell, line).strip()
    return f", in line {line}" + f": `{text}`" * bool(text)


def _from_student(error: BaseException) -> bool:
    """Whether an error came from outside the checks' own code, or from arguments that a function
    doesn't take.
    """
    ran = (Path(frame.f_code.co_filename).parent for frame, _ in walk_tb(error.__traceback__))
    refused = any(words in error_text(error) for words in ("() takes ", "() missing "))
    return refused or any(folder != Path(__file__).parent for folder in ran)


def unless(fine: object, finding: str, hint: str) -> None:
    """End a check with "Not yet.", ``finding`` and ``hint``, unless ``fine``."""
    if not fine:
        raise Halted(finding, hint)


class Page(io.TextIOBase):
    """A text stream that passes its first lines on to ``show``, and counts the rest."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self.show, self.text = show, ""
        self.more, self.begun = 0, False  # lines that are left out, and whether one more has begun

    def write(self, text: str) -> int:
        whole, before = self.text + text, len(self.text)
        self.text = "".join(whole.splitlines(keepends=True)[:LINES])[:CHARACTERS]
        if self.text[before:]:
            self.show(self.text[before:])
        if rest := whole[len(self.text) :]:
            self.more, self.begun = self.more + rest.count("\n"), not rest.endswith("\n")
        return len(text)

    def end(self) -> None:
        if self.text and not self.text.endswith("\n"):
            self.show("\n")
        if more := self.more + self.begun:
            self.show(f"... and {more:,} lines more\n")


def exercise(check: Callable[..., Verdict], function: str = "") -> Callable[..., Verdict]:
    """A decorator for checks: they give a verdict whatever the answer does, and show at most a page
    of what it prints. ``function``: the name of an answer that must be one, by default the check's
    parameter, if a Callable.
    """
    name, parameter = next(iter(signature(check).parameters.items()))
    needed = function or parameter.annotation is Callable
    name = function or name

    def judged(*arguments, **options) -> Verdict:
        out = sys.stdout
        page = Page(lambda text: apart.tell((text,)) if apart.parent else out.write(text))
        try:
            unless(
                arguments,
                f"{check.__name__} was given nothing.",
                f"`{check.__name__}({name})` checks {name}.",
            )
            kind = f"{name} is of type {type(arguments[0]).__name__}, not a function."
            unless(not needed or callable(arguments[0]), kind, f"keep the line `def {name}`.")
            with redirect_stdout(page):
                return check(*arguments, **options)
        except Halted as halted:
            return halted.verdict
        except KeyboardInterrupt:
            return Verdict(False, "The check was stopped.", "run it again, and let it end.")
        except BaseException as error:  # what it gave can't be printed or compared
            hint = "return just what the exercise asks for."
            return Verdict(
                False, f"The check can't use what {name} gives: {error_text(error)}", hint
            )
        finally:
            page.end()

    @wraps(check)
    def checked(*arguments, **options) -> Verdict:
        judge = partial(judged, *arguments, **options)
        verdict = _copied(judge) if needed and FORKS and not apart.parent else judge()
        if (size := len(finding := verdict.finding)) > CHARACTERS:
            finding = f"{finding[:CHARACTERS]} ... ({size:,} characters)"
        return replace(verdict, finding=finding, check=(check.__module__, check.__name__))

    return checked
