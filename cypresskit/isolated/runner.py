"""The program of a bare process: stays warm, and forks itself for each answer.

The process that asks for an answer sends, over the control socket, one end of the answer's own
stream (see ``serving``). When the warm process ends, the answer's process ends, too.
"""

import ctypes
import importlib
import os
import resource
import select
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import Any

from cypresskit.isolated import teach_stub
from cypresskit.isolated.seccomp import forbid_child_processes
from cypresskit.isolated.serving import Server
from cypresskit.subprocesses import read_message, write_message

MAX_FILE = 20_000_000  # bytes of a file that an answer writes
AT_PARENTS_END = 1  # of prctl: the signal that a process gets when its parent ends

#: Modules that a first launch imports: imported before forking, so that no copy has to.
LAUNCHING = ("cypresskit.machine.compiled.execute", "cypresskit.machine.compiled.host")


class ProcessServer(Server):
    """Serves one answer in this process, by messages."""

    def __init__(self, messages: Any) -> None:
        super().__init__(partial(write_message, messages))
        self.messages = messages

    def serve(self) -> None:
        while message := read_message(self.messages):
            self.handle(message)

    def make(self, how: dict) -> None:
        """Make the answer that cells set, within limits that this process can't lift."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
        bound_memory(how["first"])
        forbid_child_processes()
        teach_stub.install()
        super().make(how)
        bound_memory(how["megabytes"])

    def run(self, how: dict) -> None:
        bound_memory(how["megabytes"])
        super().run(how)


def bound_memory(megabytes: float) -> None:
    """Limit this process's address space to ``megabytes`` more than its present size: Python raises
    ``MemoryError`` then.

    The process can't raise this limit. Shared memory and libraries are included.
    """
    with suppress(FileNotFoundError):  # memory is only limited on Linux
        _, before = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + int(1e6 * megabytes)
        if before != resource.RLIM_INFINITY:
            most = min(most, before)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


# -- the process


def main() -> None:
    """Serve answers over the socket whose number is the last argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the stop button is for the process outside
    serve_forks(socket.socket(fileno=int(sys.argv[-1])))


def serve_forks(control: socket.socket) -> None:
    """For each socket received, fork a process for an answer, and send its status."""
    control.send(b"\0\0")  # at once: its start has a limit, and the imports may take long
    for module in LAUNCHING:
        importlib.import_module(module)
    while True:
        data, sockets, *_ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        child = os.fork()
        if child == 0:
            tell_kernel(AT_PARENTS_END, signal.SIGKILL)
            control.close()
            os.setsid()
            with socket.socket(fileno=sockets[0]) as channel:
                with channel.makefile("rwb") as messages, suppress(OSError):
                    ProcessServer(messages).serve()
            os._exit(0)
        os.close(sockets[0])
        status = watch(child, control)
        control.send(status.to_bytes(2, "big"))


def tell_kernel(what: int, value: int) -> None:
    """Set an attribute of this process with Linux's prctl; do nothing on other systems."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def watch(child: int, control: socket.socket) -> int:
    """Wait until a child ends, and return its status, as ``os.waitpid`` does.

    It is killed if the other end of ``control`` is closed.
    """
    with suppress(OSError, AttributeError):  # not available on other systems than Linux
        ends = os.pidfd_open(child)
        readable, *_ = select.select([control.fileno(), ends], [], [])
        if ends not in readable:
            os.kill(child, signal.SIGKILL)
        os.close(ends)
    return os.waitpid(child, 0)[1]
