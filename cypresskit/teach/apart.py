"""A function call in a process of its own, with an untouched copy of the package and limits of time and memory.

Of what a student wrote, or did to this process, only the call's arguments reach the new one. Arguments and result are
JSON. Processor time and memory are limited where the system can (not on Windows), elapsed time everywhere. It keeps
faults and patches apart, not attackers: the process has its user's rights, and the network.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from cypresskit.teach import check

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

ROOT = Path(__file__).parents[2]
START = "import sys; sys.path.insert(0, sys.argv[1]); from cypresskit.teach.apart import serve; serve()"
SECONDS, MEGABYTES = 120, 4000
LONGEST = 1e6  # seconds that a process can be waited for
ENDLESS, FULL = "what ends its loop?", "what grows there, and when is it enough?"


class Lost(Exception):
    """The process gave no result; the text says why, and ``hint`` where to look."""

    def __init__(self, why: str, hint: str = "does it quit Python, or crash it?"):
        super().__init__(why)
        self.hint = hint


def call(function: str, *arguments, seconds: float = SECONDS, megabytes: float = MEGABYTES):
    """The result of ``function``, spelled ``package.module:name``, for ``arguments``; both are of JSON's types. Raises
    ``Lost`` if it takes more than ``seconds`` of processor time (or four times that by the clock) or more than
    ``megabytes`` of address space, if it raises or crashes."""
    asked = json.dumps([function, arguments, seconds, megabytes])
    try:
        ran = subprocess.run(
            [sys.executable, "-I", "-c", START, str(ROOT)], input=asked, capture_output=True, text=True,
            encoding="utf-8", errors="replace", timeout=min(4 * seconds, LONGEST),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Lost(f"it had not ended after {4 * seconds:g} s", ENDLESS) from None
    with suppress(ValueError):
        result, *error = json.loads(ran.stdout.rpartition("\n")[2])
        if error:
            raise Lost(*error)
        return result
    if ran.returncode in (-9, -14, -24, -27):  # SIGKILL and SIGXCPU: ``seconds`` are over; the others: an answer's are
        raise Lost("it had not ended when its time was up", ENDLESS)
    raise Lost(f"its process ended with {ran.returncode}")


def serve() -> None:
    """Answer the call on standard input, in the new process. What the function prints is dropped."""
    function, arguments, seconds, megabytes = json.loads(sys.stdin.read())
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    check.disposable = True
    with suppress(AttributeError, ValueError, OSError, OverflowError):  # macOS refuses some
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 3))
        resource.setrlimit(resource.RLIMIT_AS, (int(megabytes * 1e6),) * 2)
    try:
        module, _, name = function.partition(":")
        reply = [getattr(import_module(module), name)(*arguments)]
    except MemoryError:
        reply = [None, f"it needs more than {megabytes:g} MB", FULL]
    except SystemExit:
        reply = [None, "it tries to quit Python", "leave out `exit`: `return` ends a function."]
    except BaseException as error:
        reply = [None, f"{type(error).__name__}: {error}".removesuffix(": ")]
    answer.write("\n" + json.dumps(reply))
    answer.close()
    os._exit(0)  # whatever threads the function has left behind
