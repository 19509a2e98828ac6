"""Call a student's answer: plain data goes in, plain data comes out.

    with Answer(cells, name) as answer:
        value = answer(1, 2)

An ``Answer`` is made by running a notebook's cells, is called like the function that they define,
and returns plain data (see ``plain``). An exception of the function becomes ``Raised``. A call that
doesn't end, crashes, exits, or sends an invalid message raises ``NoResult``. Each answer runs in a
process of its own (``process``), or in a browser in this one (``here``).
"""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from cypresskit.isolated import here, plain
from cypresskit.isolated.plain import decode, encode
from cypresskit.isolated.process import ForkServer
from cypresskit.subprocesses import read_message, write_message

MAX_CHARACTERS = 4_000  # of output that is shown at once
MAX_TRACEBACK = 1_000  # characters of a process's report on its own failure


class NoResult(Exception):
    """The answer gave no result.

    ``reason`` is one of "time", "memory", "input", "exit", "large", "forged", "broken" and "ended".
    ``signal`` is the signal that ended the process, or 0.
    """

    def __init__(self, reason: str, text: str = "", signal: int = 0) -> None:
        super().__init__(text or reason)
        self.reason, self.signal = reason, signal


class Raised(Exception):
    """The answer raised an error.

    ``type`` is the name of its type; ``line`` and ``source`` are the student's line that raised it,
    0 and "" if there is none.
    """

    def __init__(self, type: str, text: str, line: int = 0, source: str = "") -> None:
        super().__init__(text)
        self.type, self.line, self.source = type, line, source


class Refused(Exception):
    """Cells gave no answer. ``sets`` is the name that the faulty cell sets, or None."""

    def __init__(self, sets: str | None, text: str, line: int) -> None:
        super().__init__(text)
        self.sets, self.line = sets, line


@dataclass(frozen=True)
class CallLimits:
    """The limits of a call."""

    seconds: float = 10.0  #: by the clock
    megabytes: float = 1_000  #: of address space, besides what its cells have taken


class Cell(NamedTuple):
    """A cell that an answer needs."""

    source: str
    sets: str  #: the answer's name, or "" if the cell doesn't set it
    binding: list[int]  #: the first lines of statements that mustn't fail: they set what it needs


#: Serves a notebook's checks.
OWN = ForkServer()


class Connection:
    """A stream of messages to a copy of a warm process.

    Parameters
    ----------
    server
        The warm process.
    show
        Gets what is printed there.
    """

    def __init__(self, server: ForkServer, show: Callable[[str], object] = lambda _: None) -> None:
        self.server = server
        self.show = show
        self.busy = False  # whether it is computing
        self.reported = False  # whether its end has been reported
        self.stream: Any = None

    def open(self) -> None:
        """Start a copy, when no other one of the server is running."""
        self.server.lock.acquire()
        try:
            self.stream = self.server.channel()
            self.messages: BinaryIO = self.stream.makefile("rwb")
        except BaseException:
            self.server.lock.release()
            raise

    def close(self) -> None:
        """End the copy."""
        try:
            if self.stream is None:
                return
            with suppress(OSError):
                self.messages.close()
            self.stream.close()
            if not self.reported:
                (self.server.end if self.busy else self.server.ended)()
        finally:
            self.stream = None
            self.server.lock.release()

    def exchange(self, message: dict, limits: CallLimits) -> dict:
        """Send a message and return the reply. Raises ``NoResult``."""
        late = threading.Event()
        self.busy = True

        def stop() -> None:
            late.set()
            self.server.end()
            with suppress(OSError):
                self.stream.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(limits.seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            write_message(self.messages, message)
            while True:
                reply = read_message(self.messages)
                if reply is None:
                    raise self._lost(late.is_set())
                if reply.keys() != {"print"}:
                    self.busy = False
                    return reply
                with suppress(OSError):  # the output may be closed or full
                    self.show(plain.text(reply["print"], MAX_CHARACTERS))
        except OSError:
            raise self._lost(late.is_set()) from None
        except ValueError:
            raise NoResult("forged") from None
        finally:
            timer.cancel()
            timer.join()

    def _lost(self, late: bool) -> NoResult:
        """Return the exception for a process that has ended."""
        if late:
            return NoResult("time")
        status = 0
        if self.server.process:
            self.reported = True
            status = self.server.ended()
        return NoResult("ended", signal=status & 0x7F)


def checked(reply: dict) -> dict:
    """Return a reply, whose parts have the right types. Raises ``NoResult``, ``Raised`` and
    ``Refused``.
    """
    if "broken" in reply:  # an answer could send this, too
        raise NoResult("broken", plain.text(reply["broken"])[-MAX_TRACEBACK:])
    if "halted" in reply:
        raise NoResult(plain.text(reply["halted"], 20))
    if "failed" in reply:
        failed = reply["failed"]
        if not isinstance(failed, dict):
            raise NoResult("forged")
        kind, said, source = (
            plain.text(failed.get(part, ""), most)
            for part, most in (("type", 60), ("text", 2_000), ("source", 200))
        )
        raise Raised(kind, said, _whole(failed.get("line")), source)
    if "cell" in reply:
        cell = reply["cell"]
        if not isinstance(cell, list) or len(cell) != 3:
            raise NoResult("forged")
        sets, said, line = cell
        sets = sets if isinstance(sets, str) else None
        raise Refused(sets, plain.text(said, 2_000), _whole(line))
    made = reply.get("made")
    fine = made == "function" or (isinstance(made, dict) and "value" in made)
    if not fine and "result" not in reply:
        raise NoResult("forged")
    return reply


def decoded(data: Any) -> Any:
    """Return the value in a reply."""
    try:
        return decode(data)
    except (ValueError, RecursionError, OverflowError):
        raise NoResult("forged") from None


def _whole(value: Any) -> int:
    """Return a whole number from a message; 0 for anything else."""
    return value if type(value) is int else 0


class Answer:
    """A student's answer.

    Parameters
    ----------
    cells
        The cells that make it.
    name
        The name that they set.
    limits
        For each call.
    making
        For running the cells.
    show
        Gets what the answer prints.
    server
        Where its process comes from. If ``here.IS_USED``, it runs in this process.

    Attributes
    ----------
    value
        The plain data of an answer that isn't a function.
    names
        The names in its cells, if the check has looked for them.
    parameters
        The names of its parameters, and whether its cells read each, if the check has looked.
    """

    def __init__(
        self,
        cells: Iterable[Cell],
        name: str,
        *,
        limits: CallLimits | None = None,
        making: CallLimits | None = None,
        show: Callable[[str], object] = lambda _: None,
        server: ForkServer | None = None,
    ) -> None:
        self.limits = limits or CallLimits()
        self.making = making or self.limits
        self.connection: Connection | here.ServerHere
        self.connection = here.ServerHere(show) if here.IS_USED else Connection(server or OWN, show)
        self.value: Any = None
        self.names: set[str] = set()
        self.parameters: list[tuple[str, bool]] = []
        self.type = ""
        self.function = False
        self.how = {"cells": [cell._asdict() for cell in cells], "name": name}

    def __enter__(self) -> "Answer":
        self.connection.open()
        try:
            megabytes = {"first": self.making.megabytes, "megabytes": self.limits.megabytes}
            message = {"make": self.how | megabytes}
            reply = checked(self.connection.exchange(message, self.making))
            made = reply["made"]
            self.type = plain.text(reply.get("type", ""), 60)
            if made != "function":
                self.value = decoded(made["value"])
            self.function = made == "function"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def __call__(self, *arguments: Any) -> Any:
        return self._result({}, arguments)

    def through(self, function: Callable, *arguments: Any) -> Any:
        """Return ``function(answer, *arguments)``, called in the answer's process.

        It is a function of the package, such as those in a lesson's ``visible``.
        """
        return self._result({"through": [function.__module__, function.__name__]}, arguments)

    def _result(self, how: dict, arguments: tuple) -> Any:
        call = how | {"values": [encode(argument) for argument in arguments]}
        return decoded(checked(self.connection.exchange({"call": call}, self.limits))["result"])


def call(module: str, name: str, *arguments: Any, limits: CallLimits, server: ForkServer) -> Any:
    """Call a function of the package in its own process, with plain arguments and result.

    It is trusted: the lessons are accessible there.
    """
    connection = Connection(server)
    connection.open()
    try:
        how = {"function": [module, name], "megabytes": limits.megabytes}
        how["arguments"] = [encode(argument) for argument in arguments]
        return decoded(checked(connection.exchange({"run": how}, limits))["result"])
    finally:
        connection.close()
