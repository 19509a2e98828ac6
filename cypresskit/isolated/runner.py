"""Run in a sandboxed process: build a student's answer, call it with cases, return plain data.

An answer is made from a notebook's cells, or from a pickled function. ``process`` starts ``main``,
which stays warm and forks itself for each answer. Messages go over one stream (see
``subprocesses``):

    -> {"make": ...}                     how the answer is made
    <- {"made": "function" or a value}   or {"failed": ...}; or {"cell": [sets, message, line]} of
                                         a cell that can't be run
    -> {"call": {"values": [...]}}       arguments, which the answer may change; optional "through":
                                         [module, name] of a function to pass the answer to
    -> {"run": {"function": ...}}        a function of the package: [module, name], its "arguments"
                                         and "limits"
    <- {"print": "text"}                 its output, up to one page
    <- {"ask": [name, ...]}              calls a service: -> {"answer": ...} or {"raised": ...}
    <- {"result": ...} or {"failed": ...}; or {"halted": reason}, such as "memory" or "thread"
    <- {"broken": a traceback}           a fault of the package, not of the answer
"""

import ast
import base64
import builtins
import ctypes
import importlib
import io
import linecache
import os
import resource
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from traceback import walk_tb
from typing import Any, BinaryIO

import numpy as np

from cypresskit.devices import Device
from cypresskit.isolated import card, plain, teach_stub
from cypresskit.isolated.function_pickle import PACKAGE, unpickle_function
from cypresskit.isolated.plain import decode, encode
from cypresskit.isolated.seccomp import forbid_child_processes
from cypresskit.subprocesses import read_message, write_message

MAX_LINES, MAX_CHARACTERS = 20, 4_000  # of an answer's output
MAX_FILE = 20_000_000  # bytes of a file that an answer writes
MAX_ERROR = 2_000  # characters of an error's message
AT_PARENTS_END = 1  # of prctl: the signal that a process gets when its parent ends
OURS = ("cypresskit", "tqdm")  # names of threads that a launch may leave behind

#: Modules that a first launch imports: imported before forking, so that no copy has to.
LAUNCHING = ("cypresskit.machine.fast.execute", "cypresskit.machine.fast.host")


class Halt(BaseException):
    """Ends a call for a named reason, such as "input"."""


class Page(io.TextIOBase):
    """A text stream that passes its first lines on to ``show``, and counts the others."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self.show = show
        self.text = ""
        self.more = 0  # complete lines that were left out
        self.begun = False  # whether an incomplete line was left out, too

    def write(self, text: str) -> int:
        whole = self.text + text
        before = len(self.text)
        self.text = "".join(whole.splitlines(keepends=True)[:MAX_LINES])[:MAX_CHARACTERS]
        if self.text[before:]:
            self.show(self.text[before:])
        left_out = whole[len(self.text) :]
        if left_out:
            self.more += left_out.count("\n")
            self.begun = not left_out.endswith("\n")
        return len(text)

    @property
    def left_out(self) -> int:
        return self.more + self.begun


class Server:
    """Serves one answer: reads messages from ``reader``, and writes replies to ``writer``."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self.reader, self.writer = reader, writer
        self.page = Page(lambda text: self.send({"print": text}))
        self.missing: dict[str, str] = {}
        self.limits: dict[str, float] = {}  # "make" and "run" bring them
        self.answer: Any = None

    def send(self, message: dict) -> None:
        write_message(self.writer, message)

    def ask(self, name: str, /, *values: Any, **options: Any) -> Any:
        """Ask the process outside, for example for a matrix product. Return its reply."""
        self.send({"ask": [name, encode(list(values)), encode(options)]})
        reply = read_message(self.reader)
        if reply is None:
            os._exit(1)
        if "raised" in reply:
            kind, text = reply["raised"]
            raise card.ERRORS[kind](text)
        return decode(reply["answer"])

    def serve(self) -> None:
        while message := read_message(self.reader):
            (task,) = message
            tasks: dict[str, Callable] = {"make": self.make, "call": self.call, "run": self.run}
            try:
                tasks[task](message[task])
            except Exception:  # not the answer's: those are caught in `guarded`
                self.send({"broken": traceback.format_exc()[-4_000:]})

    # -- how the answer is made

    def make(self, how: dict) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
        bound_memory(how["first"]["megabytes"])
        forbid_child_processes()
        self.limits |= how["first"]
        for file, lines in how.get("lines", {}).items():
            linecache.cache[file] = (0, None, lines, file)
        teach_stub.install()
        if "gemm" in how["services"]:
            card.install(self.ask)
        if "cells" in how:
            self.guarded(lambda: self.run_cells(how["cells"], how["name"]), made=True)
        else:
            self.missing = how["missing"]
            data = base64.b64decode(how["pickle"])
            self.guarded(lambda: unpickle_function(data, teach_stub.make_stub), made=True)
        bound_memory(how["limits"]["megabytes"])
        self.limits |= how["limits"]

    def run_cells(self, cells: list[dict], name: str) -> Any:
        """Return the answer that cells set.

        Each cell has its ``source``; ``sets``, the answer's name, or "" if it doesn't set it; and
        ``binding``, the first lines of statements that mustn't fail: they set names it needs.
        """
        names: dict = {"__name__": "__main__", "ck": sys.modules["cypresskit"], "np": np}
        for number, cell in enumerate(cells, 1):
            file = f"<cell {number}>"
            source = cell["source"]
            lines = source.splitlines(keepends=True)
            linecache.cache[file] = (len(source), None, lines, file)
            try:
                tree = ast.parse(source, file)
            except SyntaxError as error:
                message = f"isn't valid Python: {error.msg}"
                raise CellError(cell["sets"], message, error.lineno or 0) from None
            self.run_statements(tree, file, cell, names)
        if name not in names:
            raise CellError(None, "", 0)
        return names[name]

    def run_statements(self, tree: ast.Module, file: str, cell: dict, names: dict) -> None:
        """Run a cell, statement by statement. One that isn't ``binding`` may fail."""
        for statement in tree.body:
            code = compile(ast.Module([statement], []), file, "exec")
            Absent = teach_stub.Absent
            Absent.lenient = True
            try:
                exec(code, names)
            except MemoryError:
                raise
            except Exception as error:
                if statement.lineno in cell["binding"]:
                    line, text = place_of(error)
                    message = f"stops with {error_text(error)}"
                    raise CellError(cell["sets"], message, line or statement.lineno, text) from None
            finally:
                Absent.lenient = False

    # -- calls

    def call(self, how: dict) -> None:
        """Call the answer with values, or through a function of the package that calls it."""
        arguments = [decode(encoded) for encoded in how["values"]]
        for place, value in enumerate(arguments):
            if isinstance(value, plain.Other) and value == card.HANDLE:
                arguments[place] = card.CardOutside(self.ask)
        called = self.answer
        if "through" in how:
            module, name = how["through"]
            called = partial(getattr(importlib.import_module(module), name), self.answer)
        self.guarded(lambda: called(*arguments), arguments)

    def run(self, how: dict) -> None:
        """Call a function of the package by its name."""
        self.limits |= how["limits"]
        module, name = how["function"]
        function = getattr(importlib.import_module(module), name)
        self.guarded(lambda: function(*map(decode, how["arguments"])))

    def guarded(self, work: Callable, arguments: list | None = None, made: bool = False) -> None:
        """Do some work within the limits, and send the outcome."""
        before = threading.enumerate()
        try:
            with limit_resources(**self.limits), refuse_input(), redirect_stdout(self.page):
                with redirect_stderr(self.page):
                    value = work()
                if made:
                    self.answer = value
                    what = (
                        "function" if callable(value) else {"value": encode(value, describe_board)}
                    )
                    reply: dict[str, Any] = {"made": what, "type": type(value).__name__}
                else:
                    reply = {"result": encode(value, describe_board)}
                    kept = [None if isinstance(a, card.CardOutside) else a for a in arguments or ()]
                    reply["arguments"] = encode(kept)
            left = [thread for thread in threading.enumerate() if thread not in before]
            if not all(thread.name.startswith(OURS) for thread in left):
                reply = {"halted": "thread"}
        except MemoryError as error:
            full = isinstance(error, card.ERRORS["CardMemoryError"])
            reply = {"failed": self.error(error)} if full else {"halted": "memory"}
        except SystemExit:
            reply = {"halted": "exit"}
        except Halt as halt:
            reply = {"halted": str(halt)}
        except CellError as error:
            reply = {"cell": [error.sets, error.message, error.line]}
        except BaseException as error:
            reply = {"failed": self.error(error)}
        try:
            self.send(reply | {"left_out": self.page.left_out})
        except ValueError:
            self.send({"halted": "large", "left_out": self.page.left_out})

    def error(self, error: BaseException) -> dict:
        line, text = place_of(error)
        message = error_text(error)
        if isinstance(error, NameError) and error.name in self.missing:
            kind = self.missing[error.name]
            message += f" in the check, which can't receive a {kind}"
        kind = type(error).__name__
        return {"type": kind, "text": message[:MAX_ERROR], "line": line, "source": text[:200]}


class CellError(Exception):
    """A cell that could not be run: what it ``sets``, the error, and the ``line`` with its text."""

    def __init__(self, sets: str | None, message: str, line: int, text: str = "") -> None:
        super().__init__(message)
        self.sets = sets
        self.message = message
        self.line = line
        self.text = text


def error_text(error: BaseException) -> str:
    """Return an exception's type and message as text for a student."""
    with suppress(Exception):  # the student's class may raise here
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return type(error).__name__


def place_of(error: BaseException) -> tuple[int, str]:
    """Return the line of the student's code that raised an error, and its text; (0, "") if none
    did.
    """
    ran = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = next((file for file, _ in ran if not is_ours(file)), None)
    if own is None:
        return 0, ""
    line = [number for file, number in ran if file == own][-1]
    return line, linecache.getline(own, line).strip()


def is_ours(file: str) -> bool:
    """Return whether a file is the package's, or of a module frozen into Python.

    ``Path`` isn't used: it would import, and the answer may have emptied ``sys.modules``.
    """
    return file.startswith(("<frozen", f"{PACKAGE}{os.sep}"))


def describe_board(value: Any) -> plain.Described | None:
    """Return a board's fields, to rebuild it outside; None if the value isn't a board."""
    if isinstance(value, Device):
        return plain.Described("Device", dict(vars(value)))
    return None


def refuse(*_: Any) -> str:
    raise Halt("input")


@contextmanager
def refuse_input() -> Iterator[None]:
    """End an answer that calls ``input``: there is no keyboard."""
    own = builtins.input
    builtins.input = refuse
    try:
        yield
    finally:
        builtins.input = own


def read_memory_use(column: int) -> int:
    """Return a column of /proc/self/statm in bytes: 0 is the address space, 5 data and stack.

    Raises ``FileNotFoundError`` on other systems.
    """
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[column]) * resource.getpagesize()


def bound_memory(megabytes: float) -> None:
    """Limit this process's address space to its present size plus 2 * ``megabytes``.

    The process can't raise this limit. Shared memory and libraries are included.
    """
    with suppress(FileNotFoundError):
        _, before = resource.getrlimit(resource.RLIMIT_AS)
        most = read_memory_use(0) + int(2e6 * megabytes)
        if before != resource.RLIM_INFINITY:
            most = min(most, before)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def limit_resources(seconds: float, megabytes: float) -> Iterator[None]:
    """End this process after ``seconds`` of processor time, and make Python raise ``MemoryError``
    if it needs ``megabytes`` more.

    The caller limits wall-clock time.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with suppress(FileNotFoundError):  # memory is only limited on Linux
        taken = read_memory_use(5)
        sizes = [size for size in before if size != resource.RLIM_INFINITY]
        most = min([taken + int(1e6 * megabytes), *sizes])
        resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, min(seconds, 1e6))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, before)


# -- the process


def main() -> None:
    """Serve answers over the socket whose number is the last argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the stop button is for the process outside
    serve_forks(socket.socket(fileno=int(sys.argv[-1])))


def serve_forks(control: socket.socket) -> None:
    """For each socket received, fork a process for an answer, and send its status."""
    control.send(b"\0\0")
    for module in LAUNCHING:
        importlib.import_module(module)
    while True:
        data, sockets, *_ = socket.recv_fds(control, 1, 1)
        if not data or not sockets:
            return
        child = os.fork()
        if child == 0:
            tell_kernel(AT_PARENTS_END, signal.SIGKILL)
            control.close()
            os.setsid()
            with socket.socket(fileno=sockets[0]) as channel:
                with channel.makefile("rb") as reader, channel.makefile("wb") as writer:
                    with suppress(OSError):
                        Server(reader, writer).serve()
            os._exit(0)
        os.close(sockets[0])
        status = wait_for_status(child, control)
        control.send(status.to_bytes(2, "big"))


def tell_kernel(what: int, value: int) -> None:
    """Set an attribute of this process with Linux's prctl; do nothing on other systems."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def wait_for_status(child: int, control: socket.socket) -> int:
    """Wait for a child, and return its status as ``os.waitpid`` does.

    The child is killed if the other end of ``control`` is closed.
    """
    with suppress(OSError, AttributeError):  # not available on other systems than Linux
        ends = os.pidfd_open(child)
        readable, *_ = select.select([control.fileno(), ends], [], [])
        os.close(ends)
        if control.fileno() in readable:
            os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]
