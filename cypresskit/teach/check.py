"""A check of an answer: what it says, and the shell around it, in which a student's function is stopped if it doesn't
end, and prints no more than a page.

``asked`` calls it with limits of processor time and, where /proc tells it, of memory. A second thread watches both.
Once one is used up, it raises an exception in the first: that works on every system, and not in the main thread alone.
It takes effect between two of Python's instructions, so what waits in C for long, such as a huge numpy operation or
``time.sleep``, is not stopped before it comes back; the stop button ends such waits. ``exercise`` turns
this, the stop button, ``input``, ``sys.exit`` and a notebook's ``exit`` into verdicts, so that no traceback shows how
the check finds its answers, and the kernel lives on.
"""

import builtins
import ctypes
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from cypresskit.blas import CardMemoryError

T = TypeVar("T")
SECONDS, WALL = 5.0, 20.0  # of processor time for an answer, and by the clock: a busy machine stops it later
MEGABYTES = 500  # that the process may grow by meanwhile
PAUSE = 0.05  # seconds between two looks at them
PACKAGE = Path(__file__).parents[1]
LOOP = "what changes from one turn of the loop to the next, and what ends it?"
LINES, CHARACTERS = 20, 4_000  # of what an answer prints; a verdict is no longer either


@dataclass(frozen=True, repr=False)
class Verdict:
    """``right``, one sentence of ``finding``, and a ``hint`` if the answer is not right yet. Its text is all three.
    ``check`` names the module and the function that gave it."""

    right: bool
    finding: str
    hint: str = ""
    check: tuple[str, str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        head = "Right." if self.right else "Not yet."
        return f"{head} {self.finding}" + (f"\nWhere to look: {self.hint}" if self.hint else "")

    __repr__ = __str__


def a_type(value) -> str:
    """The type of a value with its article: ``an int``; ``None`` is itself."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIO' or name == 'ndarray' else 'a'} {name}"


def said(error: BaseException) -> str:
    """An exception in one line or more, as a student should see it."""
    with suppress(Exception):  # its text is made by whoever wrote its class
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return type(error).__name__


def slip(got: np.ndarray, slips: Mapping[str, np.ndarray], otherwise: str) -> str:
    """The first of ``slips``, which map hints to what the mistake gives, that explains every element of ``got``."""
    return next((hint for hint, wrong in slips.items() if np.array_equal(got, wrong)), otherwise)


class Halted(BaseException):
    """An answer was stopped, or tried to quit Python: the verdict on it. No ``except Exception`` catches it."""

    def __init__(self, finding: str, hint: str):
        super().__init__(finding)
        self.verdict = Verdict(False, finding, hint)


def asked(call: str, answer: Callable[..., T], *arguments) -> T:
    """What ``answer`` returns for ``arguments``: ``call`` is how a student would write it. Raises what that raises, and
    ``Halted`` if it has not ended after ``SECONDS`` or ``WALL``, takes more than ``MEGABYTES``, is interrupted, exits,
    or asks a reader."""
    limits, traced = _Limits(call), sys.gettrace()
    late = _late(limits)

    def refuse(*_) -> str:  # JupyterLab runs no cell as long as the box of `input` waits
        raise Halted(f"`{call}` waits for `input`.", "nobody types here: what it needs is in its arguments.")

    watcher = threading.Thread(target=limits.watch, args=(late,), daemon=True)
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None  # whose `exit` does other things
    try:
        watcher.start()
        with _replaced(builtins, "input", refuse), _replaced(shell, "ask_exit", sys.exit):
            limits.running = True
            try:
                return answer(*arguments)
            finally:
                limits.running = False
                sys.settrace(traced)
    except CardMemoryError:
        raise
    except MemoryError:
        raise Halted(*limits.fills) from None
    except KeyboardInterrupt:
        raise Halted(f"You stopped it while `{call}` was running: does its loop end?", LOOP) from None
    except SystemExit:
        raise Halted(f"`{call}` tries to quit Python.", "leave out `exit`: `return` ends a function.") from None
    finally:
        while True:  # the last exception may still be on its way
            try:
                if limits.gate.locked():
                    limits.gate.release()
                if watcher.is_alive():
                    watcher.join()
                _raise_in(limits.thread, None)
                break
            except late:
                pass


class _Limits:
    """The limits of a call that begins here and now. ``running``: the answer itself is at work. ``passed``: what to say
    once a limit is, finding and hint; ``fills``: the same of the memory. The watch ends when the ``gate`` opens."""

    def __init__(self, call: str):
        self.call, self.thread, self.gate = call, threading.get_ident(), threading.Lock()
        self.computed, self.begun = time.process_time(), time.monotonic()
        self.most = _resident() + 1e6 * MEGABYTES
        grows = "what does each turn of the loop add to, and when is it enough?"
        self.fills = f"`{call}` fills the memory: what grows without end?", grows
        self.running, self.passed = False, tuple[str, ...]()
        self.gate.acquire()

    def watch(self, late: type[Halted]) -> None:
        """Raise ``late`` in the thread that calls the answer, once a limit is passed."""
        pause = PAUSE
        while not self.gate.acquire(timeout=pause):
            spent, passed = time.process_time() - self.computed, time.monotonic() - self.begun
            full = _resident() > self.most
            if full or spent > SECONDS or passed > WALL:
                after = f"{spent:.2g} s of computing, {passed:.2g} s by the clock"
                slow = f"`{self.call}` had not ended after {after}: does its loop end?", LOOP
                self.passed = self.passed or (self.fills if full else slow)
                _raise_in(self.thread, late)
                pause = 10 * PAUSE  # then once more: it may have arrived where nothing is raised, as in `__del__`


def _late(limits: _Limits) -> type[Halted]:
    """What says that a limit is passed, wherever it arrives: another thread can only send a class. If the answer
    catches it, the answer's next line raises it again: loops around an ``except:`` end, too. The package's own lines
    don't: a launch that is stopped puts everything back."""

    def again(_, event: str, __) -> Callable:
        if event == "line":  # not at "exception": an `except:` that is about to catch that would catch this
            raise Late
        return again

    def trace(frame: FrameType | None) -> None:
        if not limits.running or threading.get_ident() != limits.thread:
            return
        while frame and frame.f_code is not asked.__code__:
            if not Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
                frame.f_trace = again
            frame = frame.f_back
        sys.settrace(lambda *_: None)  # without it, no frame is traced

    class Late(Halted):
        def __init__(self) -> None:
            super().__init__(*limits.passed)
            trace(sys._getframe(1))

        def __del__(self) -> None:  # Python stops tracing where a trace function raises
            trace(sys._getframe(1))

    return Late


def tried(call: str, answer: Callable[..., T], *arguments, hint: str) -> T:
    """What ``asked`` gives. Whatever the answer raises, a full card apart, is the check's verdict, with ``hint``.
    So is a result that can't be used: there ``answer`` is the check's function, which raises as it takes it apart."""
    try:
        return asked(call, answer, *arguments)
    except (CardMemoryError, Halted):
        raise
    except BaseException as error:
        name = call.partition("(")[0]
        what = "nothing" if "NoneType" in said(error) else "something that the check can't use"
        unless(_from_student(error), f"{name} returns {what}.", hint)
        raise Halted(f"{name} stops with {said(error).rstrip('.')}.", hint) from None


def _from_student(error: BaseException) -> bool:
    """Whether it was raised outside of the checks' own code, or by a call that the student's function doesn't take."""
    ran = (Path(frame.f_code.co_filename).parent for frame, _ in walk_tb(error.__traceback__))
    refused = any(words in said(error) for words in ("() takes ", "() missing "))
    return refused or any(folder != Path(__file__).parent for folder in ran)


def unless(fine: object, finding: str, hint: str) -> None:
    """Ends a check with "Not yet.", ``finding`` and ``hint``, unless all is ``fine``."""
    if not fine:
        raise Halted(finding, hint)


@contextmanager
def _replaced(of: Any, name: str, other: Callable) -> Iterator[None]:
    """Meanwhile ``of`` has another method ``name``, if it has one."""
    before = getattr(of, name, None)
    if before:
        setattr(of, name, other)
    try:
        yield
    finally:
        if before:
            setattr(of, name, before)


def _resident() -> int:
    """Bytes of memory that this process takes; 0 where the system has no /proc to tell it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a thread, or take back one that was not raised yet."""
    what = ctypes.py_object(error) if error else ctypes.py_object()
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)


class Page(io.TextIOBase):
    """Takes what is printed, and keeps the first lines."""

    def __init__(self) -> None:
        self.text, self.more, self.begun = "", 0, False  # lines that are left out, and whether one more has begun

    def write(self, text: str) -> int:
        whole = self.text + text
        self.text = "".join(whole.splitlines(keepends=True)[:LINES])[:CHARACTERS]
        if rest := whole[len(self.text) :]:
            self.more, self.begun = self.more + rest.count("\n"), not rest.endswith("\n")
        return len(text)

    def show(self) -> None:
        if self.text:
            print(self.text, end="" if self.text.endswith("\n") else "\n")
        if more := self.more + self.begun:
            print(f"... and {more:,} lines more")


def exercise(check: Callable[..., Verdict], function: str = "") -> Callable[..., Verdict]:
    """A check that gives a verdict whatever the answer does, says whose it is, and shows a page of what is printed.
    ``function``: what the answer is called, if it has to be one; by default as the check's parameter."""
    name, parameter = next(iter(signature(check).parameters.items()))
    needed = function or parameter.annotation is Callable
    name = function or name

    @wraps(check)
    def checked(*arguments, **options) -> Verdict:
        page = Page()
        try:
            if needed and arguments:
                kind = f"{name} is of type {type(arguments[0]).__name__}, not a function."
                unless(callable(arguments[0]), kind, f"keep the line `def {name}`.")
            with redirect_stdout(page):
                verdict = check(*arguments, **options)
        except Halted as halted:
            verdict = halted.verdict
        except KeyboardInterrupt:
            verdict = Verdict(False, "The check was stopped.", "run it again, and let it end.")
        except BaseException as error:  # what it gave can't be printed or compared
            hint = "return just what the exercise asks for."
            verdict = Verdict(False, f"The check can't use what {name} gives: {said(error)}", hint)
        finally:
            page.show()
        if (size := len(finding := verdict.finding)) > CHARACTERS:
            finding = f"{finding[:CHARACTERS]} ... ({size:,} characters)"
        return replace(verdict, finding=finding, check=(check.__module__, check.__name__))

    return checked
