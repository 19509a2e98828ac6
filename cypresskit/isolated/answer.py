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
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from cypresskit.isolated import here
from cypresskit.isolated.plain import Other, decode, encode, text
from cypresskit.isolated.process import ForkServer
from cypresskit.isolated.serving import MAX_CHARACTERS, MAX_ERROR, Refused
from cypresskit.subprocesses import read_message, write_message


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
NOTEBOOK_SERVER = ForkServer()


class Connection:
    """A stream of messages to a copy of a warm process, when no other copy of it is running.

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
        self.is_busy = False  # whether it is computing
        self.is_ended = False  # whether its end has been reported
        server.lock.acquire()
        try:
            self.stream = server.channel()
            self.messages: Any = self.stream.makefile("rwb")
        except BaseException:
            server.lock.release()
            raise

    def close(self) -> None:
        """End the copy."""
        try:
            with suppress(OSError):
                self.messages.close()
            self.stream.close()
            if not self.is_ended:
                (self.server.end if self.is_busy else self.server.ended)()
        finally:
            self.server.lock.release()

    def exchange(self, message: dict, limits: CallLimits) -> dict:
        """Send a message and return the reply. Raises ``NoResult``."""
        late = threading.Event()
        self.is_busy = True

        def stop() -> None:
            late.set()
            self.server.end()
            with suppress(OSError):
                self.stream.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(limits.seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            with suppress(OSError):  # it has ended
                write_message(self.messages, message)
                while (reply := read_message(self.messages)) is not None:
                    if reply.keys() != {"print"}:
                        self.is_busy = False
                        return reply
                    with suppress(OSError):  # the output may be closed or full
                        self.show(text(reply["print"], MAX_CHARACTERS))
        except ValueError:
            raise NoResult("forged") from None
        finally:
            timer.cancel()
            timer.join()
        if late.is_set():
            raise NoResult("time")
        self.is_ended = True
        raise NoResult("ended", signal=self.server.ended() & 0x7F)


def result_of(reply: dict) -> Any:
    """Return the result in a reply. Raises ``Raised``, ``Refused`` or ``NoResult`` if the reply
    says so, and ``NoResult`` for one of any other form.
    """
    match reply:
        case {"result": result}:
            with suppress(ValueError, RecursionError, OverflowError):
                return decode(result)
        case {"raised": [str(kind), str(message), int(line), str(source)]}:
            kind, message, source = (text(part, MAX_ERROR) for part in (kind, message, source))
            raise Raised(kind, message, line, source)
        case {"refused": [str() | None as sets, str(message), int(line)]}:
            raise Refused(sets, text(message, MAX_ERROR), line)
        case {"lost": [str(reason), str(message)]}:  # an answer could send "broken", too
            raise NoResult(reason, text(message, MAX_ERROR))
    raise NoResult("forged")


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
        The plain data of the answer; ``Other("function")`` if it can be called.
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
        self.show = show
        self.server = server or NOTEBOOK_SERVER
        self.value: Any = None
        self.names: set[str] = set()
        self.parameters: list[tuple[str, bool]] = []
        self.how = {"cells": [cell._asdict() for cell in cells], "name": name}

    @property
    def is_function(self) -> bool:
        """Whether it can be called."""
        return isinstance(self.value, Other) and self.value.type == "function"

    def __enter__(self) -> "Answer":
        self.connection: Connection | here.ServerHere
        if here.IS_USED:
            self.connection = here.ServerHere(self.show)
        else:
            self.connection = Connection(self.server, self.show)
        try:
            megabytes = {"first": self.making.megabytes, "megabytes": self.limits.megabytes}
            self.value = self._result({"make": self.how | megabytes}, self.making)
        except BaseException:
            self.connection.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def __call__(self, *arguments: Any) -> Any:
        return self._called({}, arguments)

    def through(self, function: Callable, *arguments: Any) -> Any:
        """Return ``function(answer, *arguments)``, called in the answer's process.

        It is a function of the package, such as those in a lesson's ``visible``.
        """
        return self._called({"through": [function.__module__, function.__name__]}, arguments)

    def _called(self, how: dict, arguments: tuple) -> Any:
        call = how | {"values": [*map(encode, arguments)]}
        return self._result({"call": call}, self.limits)

    def _result(self, message: dict, limits: CallLimits) -> Any:
        return result_of(self.connection.exchange(message, limits))


def call(module: str, name: str, *arguments: Any, limits: CallLimits, server: ForkServer) -> Any:
    """Call a function of the package in its own process, with plain arguments and result.

    It is trusted: the lessons are accessible there.
    """
    with closing(Connection(server)) as connection:
        how = {
            "function": [module, name],
            "megabytes": limits.megabytes,
            "values": [*map(encode, arguments)],
        }
        return result_of(connection.exchange({"run": how}, limits))
