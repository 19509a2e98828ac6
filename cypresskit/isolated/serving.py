"""Make an answer from a notebook's cells, call it with cases, and describe what came out.

``Server`` handles the messages of ``answer.Answer``, in a process of its own (``runner``) or in
the notebook's (``here``):

    -> {"make": ...}                     the cells, and the name of the answer that they set; the
                                         "megabytes" of a call, and the "first" for the cells
    -> {"call": {"values": [...]}}       arguments; optional "through": [module, name] of a
                                         function to pass the answer to
    -> {"run": {"function": ...}}        a function of the package: [module, name], its "values"
                                         and "megabytes"
    <- {"print": "text"}                 the first lines of its output
    <- {"result": ...}                   of "make", the answer: a function only by its type
    <- {"raised": [type, message, line, source]}  an error of the answer
    <- {"refused": [sets, message, line]}  a cell that can't be run
    <- {"lost": [reason, ""]}            no result, for a reason such as "memory"; for "broken", a
                                         fault of the package, with the traceback
"""

import ast
import builtins
import importlib
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from difflib import get_close_matches
from functools import partial
from io import TextIOBase
from pathlib import Path
from runpy import run_path
from traceback import walk_tb
from typing import Any

import numpy as np

from cypresskit.isolated.plain import Other, decode, encode

PACKAGE = Path(__file__).parents[1]
MAX_LINES, MAX_CHARACTERS = 20, 4_000  # of an answer's output
CELL = "<cell "  # begins the file name of a student's code
MAX_ERROR = 2_000  # characters of a message or a traceback
MAX_SOURCE = 200  # characters of the line that raised an error


class Halt(BaseException):
    """Ends a call for a named reason, such as "input"."""


class FirstLines(TextIOBase):
    """A text stream that passes its first lines on to ``show``, and drops the others."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self.show = show
        self.text = ""
        self.is_full = False

    def write(self, text: str) -> int:
        if self.is_full:
            return len(text)
        before = len(self.text)
        room = text[: MAX_CHARACTERS - before]  # of a text that may be hundreds of megabytes
        lines = (self.text + room).splitlines(keepends=True)[:MAX_LINES]
        self.text = "".join(lines)
        taken = len(self.text) - before
        if taken:
            self.show(self.text[before:])
        if taken < len(text):
            self.is_full = True
            self.show("...\n" if self.text.endswith("\n") else "\n...\n")
        return len(text)


class Server:
    """Serves one answer.

    Parameters
    ----------
    send
        Sends a message.
    """

    ends_at_interrupt = False  #: whether the stop button's ``KeyboardInterrupt`` arrives here

    def __init__(self, send: Callable[[dict], None]) -> None:
        self.send = send
        self.output = FirstLines(lambda text: self.send({"print": text}))
        self.answer: Any = None

    def handle(self, message: dict) -> None:
        """Do what a message says, and send the outcome."""
        (task,) = message
        tasks: dict[str, Callable] = {"make": self.make, "call": self.call, "run": self.run}
        try:
            tasks[task](message[task])
        except Exception:  # not the answer's: those are caught in `guarded`
            self.send({"lost": ["broken", traceback.format_exc()[-MAX_ERROR:]]})

    # -- how the answer is made

    def make(self, how: dict) -> None:
        """Make the answer that cells set. What they print isn't shown."""

        def work() -> Any:
            self.answer = self.run_cells(how["cells"], how["name"])
            return Other("function") if callable(self.answer) else self.answer

        self.guarded(work, [], FirstLines(lambda _: None))

    def run_cells(self, cells: list[dict], name: str) -> Any:
        """Return the answer that cells set.

        Each cell has its ``source``; ``sets``, the answer's name, or "" if it doesn't set it; and
        ``binding``, the first lines of statements that mustn't fail: they set names it needs.
        """
        names: dict = {"__name__": "__main__", "ck": sys.modules["cypresskit"], "np": np}
        # A notebook has these without an import.
        names |= {"display": print_values, "get_ipython": RefusedMagics}
        for number, cell in enumerate(cells, 1):
            file = f"{CELL}{number}>"
            source = cell["source"]
            lines = source.splitlines(keepends=True)
            linecache.cache[file] = (len(source), None, lines, file)
            try:
                tree = ast.parse(source, file)
            except SyntaxError as error:
                python = "Python {}.{}".format(*sys.version_info)
                message = f"isn't valid {python}: {str(error.msg).rstrip('?')}"
                raise Refused(cell["sets"], message, error.lineno or 0) from None
            self.run_statements(tree, file, cell, names)
        if name not in names:
            raise Refused(None, "", 0)
        return names[name]

    def run_statements(self, tree: ast.Module, file: str, cell: dict, names: dict) -> None:
        """Run a cell, statement by statement. One that isn't ``binding`` may fail."""
        for statement in tree.body:
            try:
                exec(compile(ast.Module([statement], []), file, "exec"), names)
            except MemoryError:
                raise
            except Exception as error:
                if statement.lineno in cell["binding"]:
                    line, _ = place_of(error)
                    message = f"stops with {error_text(error)}"
                    raise Refused(cell["sets"], message, line or statement.lineno) from None

    # -- calls

    def call(self, how: dict) -> None:
        """Call the answer with values, or through a function of the package that calls it."""
        called = self.answer
        if "through" in how:
            called = partial(load_function(*how["through"]), self.answer)
        self.guarded(called, how["values"], self.output)

    def run(self, how: dict) -> None:
        """Call a function of the package by its name."""
        module, name = how["function"]
        function = getattr(importlib.import_module(module), name)
        self.guarded(function, how["values"], self.output)

    def guarded(self, work: Callable, values: list, output: FirstLines) -> None:
        """Do some work with encoded values, and send the outcome. What it prints goes to
        ``output``.
        """
        reply: dict[str, Any]
        try:
            with refuse_input(), redirect_stdout(output), redirect_stderr(output):
                reply = {"result": encode(work(*map(decode, values)))}
        except MemoryError:
            reply = {"lost": ["memory", ""]}
        except SystemExit:
            reply = {"lost": ["exit", ""]}
        except Halt as halt:
            reply = {"lost": [str(halt), ""]}
        except Refused as refused:
            reply = {"refused": [refused.sets, str(refused), refused.line]}
        except BaseException as error:
            if self.ends_at_interrupt and isinstance(error, KeyboardInterrupt):
                raise
            message = error_text(error)[:MAX_ERROR]
            reply = {"raised": [type(error).__name__, message, *place_of(error)]}
        try:
            self.send(reply)
        except ValueError:
            self.send({"lost": ["large", ""]})


def load_function(module: str, name: str) -> Callable:
    """Return a function of the package, read from its file: a lesson's can't be imported here."""
    file = PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
    return run_path(str(file))[name]


class Refused(Exception):
    """Cells gave no answer.

    ``sets`` is the name that the faulty cell sets, or None; ``line`` is the line of its error.
    """

    def __init__(self, sets: str | None, text: str, line: int) -> None:
        super().__init__(text)
        self.sets, self.line = sets, line


def error_text(error: BaseException) -> str:
    """Return an exception's type and message as text for a student."""
    text = type(error).__name__
    with suppress(Exception):  # the student's class may raise here
        text = f"{text}: {error}".removesuffix(": ")
        if isinstance(error, NameError):
            *_, (frame, _) = walk_tb(error.__traceback__)
            similar = get_close_matches(error.name or "", frame.f_locals, 1)
            text += "".join(f" (did you mean `{name}`?)" for name in similar)
    return text


def place_of(error: BaseException) -> tuple[int, str]:
    """Return the line of the student's code that raised an error, and how it begins; (0, "") if
    none did.
    """
    ran = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    cell = next((file for file, _ in ran if file.startswith(CELL)), None)
    if cell is None:
        return 0, ""
    line = [number for file, number in ran if file == cell][-1]
    return line, linecache.getline(cell, line).strip()[:MAX_SOURCE]


class RefusedMagics:
    """What ``get_ipython()`` returns while an answer is judged."""

    def run_line_magic(self, name: str, *_: Any) -> None:
        raise RuntimeError(f"`%{name}` isn't run while an answer is judged")

    def run_cell_magic(self, name: str, *_: Any) -> None:
        self.run_line_magic(f"%{name}")

    def getoutput(self, command: str) -> None:
        raise RuntimeError(f"`!{command}` isn't run while an answer is judged")


def print_values(*values: Any, **_: Any) -> None:
    """Print values, in place of a notebook's ``display``."""
    for value in values:
        print(repr(value))


def refuse(*_: Any) -> str:
    raise Halt("input")


@contextmanager
def refuse_input() -> Iterator[None]:
    """End an answer that calls ``input``: there is no keyboard."""
    real_input = builtins.input
    builtins.input = refuse
    try:
        yield
    finally:
        builtins.input = real_input
