"""Start Python subprocesses, exchange messages with them, and end them.

A subprocess runs the ``main`` of a module, with a socket to its parent, and ends with its parent. A
message is its length in four bytes, then JSON. A malformed or too large message raises
``ValueError``; reading one never runs the sender's code. Such processes compute the workbench's
answers (``editing.answer_process``), and run a student's code (``isolated``).
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

BOOT_CODE = """
import importlib, json, sys
sys.path[:], main, modules = json.loads(sys.argv[1])
for module in modules: importlib.import_module(module)
importlib.import_module(main).main()
"""
MAX_MESSAGE_BYTES = 1 << 26  # bytes of a message


def start_process(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen, socket.socket]:
    """Start a process in a new session, so that interrupting a notebook doesn't interrupt it.

    Parameters
    ----------
    command
        The command; the file descriptor of the process's socket is added as the last argument.
    environment
        The environment variables; by default those of this process.

    Returns
    -------
    process
        The process.
    socket
        Our end of the socket.
    """
    our_end, their_end = socket.socketpair()
    with their_end:
        process = subprocess.Popen(
            [*command, str(their_end.fileno())],
            pass_fds=[their_end.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return process, our_end


def kill_process(process: subprocess.Popen) -> None:
    """Kill a process and the processes that it has started."""
    with suppress(OSError):
        os.killpg(process.pid, 9)
    process.kill()
    process.wait()


def python_command(path: Sequence[str], main: str, *, modules: Sequence[str] = ()) -> list[str]:
    """Return the command of a Python process that runs a module's ``main()``.

    Parameters
    ----------
    path
        The folders in which it finds modules.
    main
        The module.
    modules
        Modules that are imported first.
    """
    folders = [os.path.abspath(folder) for folder in path]
    return [sys.executable, "-I", "-c", BOOT_CODE, json.dumps([folders, main, [*modules]])]


def write_message(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    """Write a message. Raise ``ValueError`` if it is larger than ``MAX_MESSAGE_BYTES``."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > MAX_MESSAGE_BYTES:
        raise ValueError(
            f"a message of {len(data):,} bytes: at most {MAX_MESSAGE_BYTES:,} are allowed"
        )
    stream.write(len(data).to_bytes(4, "big") + data)
    stream.flush()


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next message, or None at the end. Raise ``ValueError`` if it is malformed."""
    head = stream.read(4)
    if not head:
        return None
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > MAX_MESSAGE_BYTES:
        raise ValueError("a message without a valid length")
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("a truncated message")
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a message that isn't JSON: {error}") from None
    if not isinstance(message, dict):
        raise ValueError("a message that isn't a JSON object")
    return message
