"""Processes of our own beside this one: start one, send it messages, hear what it says, end it.

Each is a new Python that runs the ``main`` of a module, in a session of its own, with a stream to
whoever started it; it ends when that one is gone. A message is four bytes of length, then JSON; one
that is malformed or too large raises ``ValueError``, and runs no code of its writer's. The
workbench's answers come from such processes (``editing.answer_process``), and a student's code
runs in one (``isolated``).
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

BOOT = """
import importlib, json, os, shutil, sys
sys.path[:], main, modules, warm = json.loads(sys.argv[1])
if warm: shutil.copytree(warm, os.environ["NUMBA_CACHE_DIR"], dirs_exist_ok=True)
for module in modules: importlib.import_module(module)
importlib.import_module(main).main()
"""
LARGEST = 1 << 26  # bytes of a message


def begin(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen, socket.socket]:
    """Start a process in a session of its own, where the stop button of a notebook doesn't reach
    it. Returns it, and our end of the stream of messages to it; the number of its end is its
    last argument.
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


def end(process: subprocess.Popen) -> None:
    """End a process and what it has started."""
    with suppress(OSError):
        os.killpg(process.pid, 9)
    process.kill()
    process.wait()


def python(
    path: Sequence[str],
    main: str,
    *,
    modules: Sequence[str] = (),
    warm: str = "",
) -> list[str]:
    """The command of a bare Python that runs a module's ``main()``. It finds modules at ``path``,
    and begins with some, and with a copy of the machine code in the folder ``warm``.
    """
    folders = [os.path.abspath(folder) for folder in path]
    return [sys.executable, "-I", "-c", BOOT, json.dumps([folders, main, [*modules], warm])]


def write(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    """Write a message. Raises ``ValueError`` if it is larger than ``LARGEST``."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > LARGEST:
        raise ValueError(f"a message of {len(data):,} bytes; {LARGEST:,} are the most")
    stream.write(len(data).to_bytes(4, "big") + data)
    stream.flush()


def read(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message, or None at the end. Raises ``ValueError`` for what is none."""
    head = stream.read(4)
    if not head:
        return None
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > LARGEST:
        raise ValueError("a message without a length")
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("a message that breaks off")
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a message that is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise ValueError("a message that is no object")
    return message
