"""What a bare process runs: it makes an answer from cells or from a pickled function, calls it
with cases, and hands back what came out, as plain data.

``main`` is started by ``process``. It stays warm and forks itself for each answer, one after the
other. Messages go to and fro over one stream (see ``subprocesses``):

    -> {"make": ...}                     how the answer is made
    <- {"made": "function" or a value}   or {"failed": ...}; or {"cell": [sets, message, line]} of
                                         a cell that can't be run
    -> {"call": {"values": [...]}}       arguments, which the answer may change; and "through":
                                         [module, name] of a function that calls the answer
    -> {"run": {"function": ...}}        a function of the package: [module, name], its "arguments"
                                         and "limits"
    <- {"print": "text"}                 what it prints, a page of it
    <- {"ask": [name, ...]}              what is done outside, on the card: -> {"answer": ...}
    <- {"result": ...} or {"failed": ...}; or {"halted": why}, such as "memory" or "thread"
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
from cypresskit.subprocesses import read, write

LINES, CHARACTERS = 20, 4_000  # of what an answer prints
FILE = 20_000_000  # bytes of a file that an answer writes
TEXT = 2_000  # characters of an error's message
AT_PARENTS_END = 1  # of prctl: a process gets a signal as its parent ends
OURS = ("cypresskit", "tqdm")  # names of threads that a launch may leave

#: What a first launch would import, in each copy of a process that forks.
LAUNCHING = ("cypresskit.machine.fast.execute", "cypresskit.machine.fast.host")


class Halt(BaseException):
    """Ends a call for a reason that has a name, such as "input"."""


class Page(io.TextIOBase):
    """A text stream that passes its first lines on to ``show``, and counts the rest."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self.show = show
        self.text = ""
        self.more = 0  # lines left out
        self.begun = False  # whether one more has begun

    def write(self, text: str) -> int:
        whole = self.text + text
        before = len(self.text)
        self.text = "".join(whole.splitlines(keepends=True)[:LINES])[:CHARACTERS]
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
    """Serves one answer: its messages come from ``reader``, and replies go to ``writer``."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self.reader, self.writer = reader, writer
        self.page = Page(lambda text: self.send({"print": text}))
        self.missing: dict[str, str] = {}
        self.limits: dict[str, float] = {}  # "make" and "run" bring them
        self.answer: Any = None

    def send(self, message: dict) -> None:
        write(self.writer, message)

    def ask(self, name: str, /, *values: Any, **options: Any) -> Any:
        """What the process outside gives for a request: a product on its card, for instance."""
        self.send({"ask": [name, encode(list(values)), encode(options)]})
        reply = read(self.reader)
        if reply is None:
            os._exit(1)
        if "raised" in reply:
            kind, text = reply["raised"]
            raise card.ERRORS[kind](text)
        return decode(reply["answer"])

    def serve(self) -> None:
        while message := read(self.reader):
            (task,) = message
            tasks: dict[str, Callable] = {"make": self.make, "call": self.call, "run": self.run}
            try:
                tasks[task](message[task])
            except Exception:  # nothing of the answer's raises here
                self.send({"broken": traceback.format_exc()[-4_000:]})

    # -- how the answer is made

    def make(self, how: dict) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
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
            self.guarded(lambda: unpickle_function(data, teach_stub.absent), made=True)
        bound_memory(how["limits"]["megabytes"])
        self.limits |= how["limits"]

    def run_cells(self, cells: list[dict], name: str) -> Any:
        """The answer that cells set. Each has its ``source``; ``sets``, the answer's name where it
        sets that, or ""; and ``binding``, the lines where statements begin that have to run.
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
        """Run a cell, statement by statement. One that isn't ``binding`` may fail: it shows what
        isn't there.
        """
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
        """Call a function of the package by its name, for the contest's judge."""
        self.limits |= how["limits"]
        module, name = how["function"]
        function = getattr(importlib.import_module(module), name)
        self.guarded(lambda: function(*map(decode, how["arguments"])))

    def guarded(self, work: Callable, arguments: list | None = None, made: bool = False) -> None:
        """Do some work within the limits, and tell what became of it."""
        before = threading.enumerate()
        try:
            with limited(**self.limits), shielded(), redirect_stdout(self.page):
                with redirect_stderr(self.page):
                    value = work()
                if made:
                    self.answer = value
                    what = "function" if callable(value) else {"value": encode(value, described)}
                    reply: dict[str, Any] = {"made": what, "type": type(value).__name__}
                else:
                    reply = {"result": encode(value, described)}
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
            message += f" while an answer is judged: a {kind} can't be handed to it"
        kind = type(error).__name__
        return {"type": kind, "text": message[:TEXT], "line": line, "source": text[:200]}


class CellError(Exception):
    """A cell that could not be run: what it ``sets``, what went wrong, and its ``line`` with the
    ``text`` of that.
    """

    def __init__(self, sets: str | None, message: str, line: int, text: str = "") -> None:
        super().__init__(message)
        self.sets = sets
        self.message = message
        self.line = line
        self.text = text


def error_text(error: BaseException) -> str:
    """An exception as text for a student: its type, and its message if it has one."""
    with suppress(Exception):  # its text is made by whoever wrote its class
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return type(error).__name__


def place_of(error: BaseException) -> tuple[int, str]:
    """(line, its text) of the student's code that raised an error; (0, "") if none did."""
    ran = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = next((file for file, _ in ran if not ours(file)), None)
    if own is None:
        return 0, ""
    line = [number for file, number in ran if file == own][-1]
    return line, linecache.getline(own, line).strip()


def ours(file: str) -> bool:
    """Whether a file is Python's or the package's, by its name alone: the answer may have emptied
    ``sys.modules``, and a ``Path`` imports.
    """
    return file.startswith(("<frozen", f"{PACKAGE}{os.sep}"))


def described(value: Any) -> plain.Described | None:
    """Fields of a board, from which the judge builds its own."""
    if isinstance(value, Device):
        return plain.Described("Device", dict(vars(value)))
    return None


def refuse(*_: Any) -> str:
    raise Halt("input")


@contextmanager
def shielded() -> Iterator[None]:
    """While an answer runs, ``input`` ends it, as nobody can type there."""
    own = builtins.input
    builtins.input = refuse
    try:
        yield
    finally:
        builtins.input = own


def taken_memory(column: int) -> int:
    """The bytes in a column of what Linux says of this process's memory. Raises
    ``FileNotFoundError`` elsewhere.
    """
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[column]) * resource.getpagesize()


def bound_memory(megabytes: float) -> None:
    """Never let this process have more than now and twice so many ``megabytes``, whatever it does
    to its own limits: memory that is shared counts, and so do libraries that it loads.
    """
    with suppress(FileNotFoundError):
        _, before = resource.getrlimit(resource.RLIMIT_AS)
        most = taken_memory(0) + int(2e6 * megabytes)
        if before != resource.RLIM_INFINITY:
            most = min(most, before)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def limited(seconds: float, megabytes: float) -> Iterator[None]:
    """End this process after ``seconds`` of computing, and make Python raise ``MemoryError`` where
    it would take ``megabytes`` more. The process outside looks at the clock."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with suppress(FileNotFoundError):  # elsewhere than on Linux there is no limit of memory
        taken = taken_memory(5)
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the stop button is for who waits for this
    serve_forks(socket.socket(fileno=int(sys.argv[-1])))


def serve_forks(control: socket.socket) -> None:
    """For each socket that comes, serve an answer in a copy of this process; send how it ended."""
    silence()
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
        status = status_of(child, control)
        control.send(status.to_bytes(2, "big"))


def tell_kernel(what: int, value: int) -> None:
    """Set an attribute of this process with Linux's prctl; elsewhere nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def status_of(child: int, control: socket.socket) -> int:
    """The status with which a child ends, as of ``os.waitpid``. It is ended as soon as nobody holds
    the other end of ``control`` any more.
    """
    with suppress(OSError, AttributeError):  # elsewhere than on Linux
        ends = os.pidfd_open(child)
        readable, *_ = select.select([control.fileno(), ends], [], [])
        os.close(ends)
        if control.fileno() in readable:
            os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def silence() -> None:
    """What is written to the standard streams themselves goes nowhere."""
    empty = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(empty, stream)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
