"""Run answers in bare processes: start processes, send calls, read results, and end them.

    with Answer(function, services={}) as answer:
        value = answer(1, 2)

An ``Answer`` is called like the function, and returns plain data (see ``plain``). An exception of
the function becomes ``Raised``. A call that doesn't end, crashes, exits, or sends an invalid
message raises ``NoResult``. Time is measured here, so the process can't extend it.

A warm process (``ForkServer``) is forked for each answer. With a ``Sandbox`` it runs under
bubblewrap: without network, home, lessons and reference solutions, in a file system that is
read-only except for ``SCRATCH`` bytes of machine code in memory. Without a sandbox it has the
user's rights, and an answer could read the reference solution on disk.
"""

import base64
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import Queue
from typing import Any, BinaryIO, NamedTuple

from cypresskit.files.disk_cache import home_cache
from cypresskit.isolated import card, plain
from cypresskit.isolated.function_pickle import PACKAGE, pickle_function
from cypresskit.isolated.plain import decode, encode
from cypresskit.subprocesses import (
    kill_process,
    python_command,
    read_message,
    start_process,
    write_message,
)
from cypresskit.threads import processors

MAIN = "cypresskit.isolated.runner"  # the program of a bare process
HIDDEN = "teach", "lessons"  # folders of the package that are hidden in a sandbox
#: Folders of the system that Python and its libraries may need.
SYSTEM = "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/etc/ld.so.cache", "/etc/localtime"
ENVIRONMENT = "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ"  # variables that are passed on
#: Further variables outside a sandbox: the folders of the user's files, caches and temporary files.
OUTSIDE = "HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TMPDIR"
START_SECONDS = 120  # for a new process to start
MAX_TRACEBACK = 1_000  # characters of a process's report on its own failure
SCRATCH = 100_000_000  # bytes that a sandbox may write, all in memory
#: Folders in a sandbox: for new machine code, and with machine code made before.
MACHINE_CODE, WARM = "/tmp/machine-code", "/tmp/warm"
STALE_SECONDS = 30 * 86_400  # after this time, another version's machine code is removed

Services = Mapping[str, Callable[..., Any]]


class NoResult(Exception):
    """The answer gave no result.

    ``reason`` is one of "time", "clock", "memory", "input", "exit", "thread", "large", "forged",
    "broken", and "ended". ``signal`` is the signal that ended the process, or 0.
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

    seconds: float = 5.0  #: of processor time
    wall: float = 20.0  #: seconds of wall-clock time, of which a busy machine needs more
    megabytes: float = 500


class Sandbox(NamedTuple):
    """A sandbox."""

    command: list[str]  #: of bubblewrap
    warm: str  #: a folder with machine code to start with, or ""


class ForkServer:
    """A warm process, and the copy of it that serves an answer.

    Parameters
    ----------
    sandbox
        The sandbox in which it runs; None for none.
    modules
        Modules that it imports before it is copied; none in a sandbox.
    """

    def __init__(self, sandbox: Sandbox | None = None, *, modules: Sequence[str] = ()) -> None:
        self.sandbox = sandbox
        self.modules = modules
        self.lock = threading.Lock()
        self.process: subprocess.Popen | None = None
        self.control: socket.socket | None = None
        self.pid = 0

    def start(self) -> None:
        """Start the warm process, without waiting for it."""
        if self.process and self.process.poll() is None and self.pid == os.getpid():
            return
        self.process, self.control = start_process(*self._command())
        self.pid = os.getpid()
        self.fresh = True
        weakref.finalize(self, kill_process, self.process)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        # Stored results may have been forged by an earlier answer.
        environment = bare_environment(OUTSIDE if self.sandbox is None else ())
        environment["CYPRESSKIT_KEEP"] = "0"
        if self.sandbox is None:
            return python_command(sys.path, MAIN, modules=self.modules), environment
        command, warm = self.sandbox
        environment["NUMBA_CACHE_DIR"] = MACHINE_CODE
        inside = python_command(
            [str(PACKAGE.parent), *library_folders()], MAIN, warm=WARM if warm else ""
        )
        return [*command, *scratch_arguments(warm=warm), *inside], environment

    def channel(self) -> socket.socket:
        """Return a stream to a new copy of the warm process."""
        self.start()
        assert self.control
        if self.fresh:
            self.control.settimeout(START_SECONDS)
            try:
                if not self.control.recv(2):
                    raise OSError("a bare Python process can't start here")
            except TimeoutError:
                raise OSError(
                    f"a bare Python process hasn't started after {START_SECONDS} s"
                ) from None
            self.fresh = False
        our_end, their_end = socket.socketpair()
        with their_end:
            socket.send_fds(self.control, [b"a"], [their_end.fileno()])
        return our_end

    def ended(self) -> int:
        """Return the status with which the copy ended, as of ``os.waitpid``.

        If it isn't reported at once, the warm process is ended, too.
        """
        assert self.control
        self.control.settimeout(5)
        with suppress(OSError):
            data = self.control.recv(2)
            if len(data) == 2:
                return int.from_bytes(data, "big")
        self.end()
        return 9

    def end(self) -> None:
        """End the warm process and its copy."""
        if self.process:
            kill_process(self.process)
        if self.control:
            self.control.close()
        self.process = self.control = None


def map_with_servers(
    work: Callable[[Any, ForkServer], Any], items: Iterable[Any], modules: Sequence[str]
) -> Iterator[Any]:
    """Yield ``work(item, server)`` for each item, in order, on all processors.

    Each server has imported ``modules``.
    """
    count = processors()
    free: Queue[ForkServer] = Queue()
    for _ in range(count):
        free.put(ForkServer(modules=modules))

    def done(item: Any) -> Any:
        server = free.get()
        try:
            return work(item, server)
        finally:
            free.put(server)

    try:
        with ThreadPoolExecutor(count) as pool:
            yield from pool.map(done, items)
    finally:
        while not free.empty():
            free.get().end()


def bare_environment(more: Sequence[str]) -> dict[str, str]:
    """Return the environment of a bare process, in which ``numba.cuda`` is numba's simulator."""
    names = [*ENVIRONMENT, *more]
    passed = {name: os.environ[name] for name in names if name in os.environ}
    passed |= {name: value for name, value in os.environ.items() if name.startswith("CYPRESSKIT_")}
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    return passed | single | {"NUMBA_ENABLE_CUDASIM": "1"}


def library_folders() -> list[str]:
    """Return the folders of installed packages and of Python's own library."""
    roots = [Path(root).resolve() for root in (sys.prefix, sys.base_prefix, sys.exec_prefix)]
    folders = []
    for folder in sys.path:
        inside = any(root in Path(folder).resolve().parents for root in roots)
        if folder and os.path.exists(folder) and (inside or folder.endswith("-packages")):
            folders.append(folder)
    return folders


def _hidden() -> list[str]:
    """Return the folders of the package that are hidden in a sandbox."""
    return [str(PACKAGE / name) for name in HIDDEN if (PACKAGE / name).is_dir()]


def scratch_arguments(machine_code: str = "", warm: str = "") -> list[str]:
    """Return the last part of bubblewrap's command: the writable folder; all others are read-only.

    Parameters
    ----------
    machine_code
        A folder on disk for machine code; by default it is kept in memory.
    warm
        A folder with machine code, which is shown as ``WARM``.
    """
    place = ["--size", str(SCRATCH), "--tmpfs", MACHINE_CODE]
    if machine_code:
        place = ["--bind", machine_code, MACHINE_CODE]
    if warm:
        place += ["--ro-bind", warm, WARM]
    for folder in (*_hidden(), "/tmp", "/dev", "/"):
        place += ["--remount-ro", folder]
    return [*place, "--chdir", "/tmp"]


@cache
def sandbox_command() -> list[str] | None:
    """Return bubblewrap's command, or None if it isn't installed or doesn't work.

    In a sandbox the system's libraries, Python, installed packages and this one without its lessons
    are readable. There is no network, no home, and no other process. Only ``SCRATCH`` bytes of
    machine code can be written, in memory.
    """
    program = shutil.which("bwrap")
    if program is None:
        return None
    command = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for folder in SYSTEM:
        if os.path.islink(folder):
            command += ["--symlink", os.readlink(folder), folder]
        elif os.path.exists(folder):
            command += ["--ro-bind", folder, folder]
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(sys.executable)]
    places += [os.path.dirname(os.path.realpath(sys.executable)), *library_folders(), str(PACKAGE)]
    for place in sorted({os.path.abspath(place) for place in places}):
        if os.path.exists(place) and not f"{place}/".startswith("/usr/"):
            command += ["--ro-bind", place, place]
    for folder in _hidden():
        command += ["--tmpfs", folder]
    trial = [*command, *scratch_arguments(), sys.executable, "-I", "-c", "import numpy"]
    try:
        done = subprocess.run(
            trial, capture_output=True, timeout=START_SECONDS, env=bare_environment(())
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return command if done.returncode == 0 else None


@cache
def warm_folder() -> Path | None:
    """Return a folder with the simulator's machine code for sandboxes, made once per version.

    None if it can't be stored.
    """
    newest = max(file.stat().st_mtime_ns for file in PACKAGE.rglob("*.py"))
    name = hashlib.sha256(f"{PACKAGE} {newest} {sys.version}".encode()).hexdigest()[:16]
    folder = Path(home_cache(), "cypresskit", "isolated", name)
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as part:
            code = "import cypresskit as ck; ck.simulate('sgemm_tn', 256, progress=False)"
            folders = [str(PACKAGE.parent), *library_folders()]
            boot = f"import sys; sys.path[:0] = {folders!r}; {code}"
            python = [sys.executable, "-I", "-c", boot]
            subprocess.run(
                [*(sandbox_command() or []), *scratch_arguments(part), *python],
                env=bare_environment(()) | {"NUMBA_CACHE_DIR": MACHINE_CODE},
                check=True,
                capture_output=True,
                timeout=600,
            )
            os.rename(shutil.copytree(part, f"{part}-whole"), folder)
        for other in folder.parent.iterdir():
            if other != folder and time.time() - other.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return folder


def find_sandbox() -> Sandbox | None:
    """Return a sandbox, or None if there is none on this system."""
    command = sandbox_command()
    return Sandbox(command, str(warm_folder() or "")) if command else None


#: Serves a notebook's checks.
OWN = ForkServer()


class Answer:
    """A student's answer in a bare process.

    Parameters
    ----------
    made
        A function; or a dict with a notebook's cells and the answer's name.
    services
        Functions that the answer may call by name. It gets their results, and exceptions of the
        types in ``card.ERRORS``.
    limits
        For each call.
    making
        For running the cells.
    show
        Gets what the answer prints.
    server
        Where the process comes from.

    Attributes
    ----------
    value
        The plain data of an answer that isn't a function.
    """

    def __init__(
        self,
        made: Callable | Mapping[str, Any],
        *,
        services: Services | None = None,
        limits: CallLimits | None = None,
        making: CallLimits | None = None,
        show: Callable[[str], object] = lambda _: None,
        server: ForkServer | None = None,
    ) -> None:
        self.services: dict[str, Callable[..., Any]] = dict(services or {})
        self.show = show
        self.limits = limits or CallLimits()
        self.making = making or self.limits
        self.server = server or OWN
        self.left_out = 0  # printed lines beyond the first page
        self.value: Any = None
        self.type = ""
        self.function = False
        self.busy = False  # whether it is computing
        self.reported = False  # whether its end has been reported
        self.stream: Any = None
        if isinstance(made, Mapping):
            how = dict(made)
        else:
            how = pickle_function(made)
            how["pickle"] = base64.b64encode(how["pickle"]).decode("ascii")
        self.how = how

    def __enter__(self) -> "Answer":
        self.server.lock.acquire()
        try:
            self._open()
            first = {"seconds": self.making.seconds, "megabytes": self.making.megabytes}
            limits = {"seconds": self.limits.seconds, "megabytes": self.limits.megabytes}
            how = self.how | {"first": first, "limits": limits, "services": [*self.services]}
            reply = self._exchange({"make": how}, self.making.wall)
            made = reply["made"]
            self.type = plain.replace_surrogates(str(reply.get("type", "")))[:60]
            if made != "function":
                self.value = self._decoded(made["value"])
            self.function = made == "function"
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, *arguments: Any) -> Any:
        return self.with_arguments(*arguments)[0]

    def through(self, module: str, name: str, *arguments: Any) -> Any:
        """Return the result of a function of the package that calls the answer.

        The function ``name`` of ``module`` gets the answer and the arguments.
        """
        call = {"values": [encode(argument) for argument in arguments], "through": [module, name]}
        return self._decoded(self._exchange({"call": call})["result"])

    def with_arguments(self, *arguments: Any) -> tuple[Any, list]:
        """Return the result of a call, and its arguments as they are afterwards."""
        reply = self._exchange({"call": {"values": [encode(argument) for argument in arguments]}})
        after = self._decoded(reply["arguments"])
        if not isinstance(after, list) or len(after) != len(arguments):
            raise NoResult("forged")
        return self._decoded(reply["result"]), after

    # -- messages

    def _open(self) -> None:
        self.stream = self.server.channel()
        self.reader: BinaryIO = self.stream.makefile("rb")
        self.writer: BinaryIO = self.stream.makefile("wb")

    def _close(self) -> None:
        try:
            if self.stream is None:
                return
            for part in (self.writer, self.reader):
                with suppress(OSError):
                    part.close()
            self.stream.close()
            if self.busy and not self.reported:
                self.server.end()
            elif self.server.process and not self.reported:
                self.server.ended()
        finally:
            self.stream = None
            self.server.lock.release()

    def _exchange(self, message: dict, wall: float = 0) -> dict:
        """Send a message and return the reply. Raises ``NoResult``, ``Raised`` and ``Refused``."""
        late = threading.Event()
        self.busy = True

        def stop() -> None:
            late.set()
            self.server.end()
            with suppress(OSError):
                self.stream.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(wall or self.limits.wall, stop)
        timer.daemon = True
        timer.start()
        try:
            write_message(self.writer, message)
            while True:
                reply = read_message(self.reader)
                if reply is None:
                    raise self._lost(late.is_set())
                if "print" in reply:
                    with suppress(OSError):  # the output may be closed or full
                        self.show(plain.replace_surrogates(str(reply["print"]))[:4_000])
                elif "ask" in reply:
                    self._serve(reply["ask"])
                else:
                    self.busy = False
                    return self._checked(reply)
        except OSError:
            raise self._lost(late.is_set()) from None
        except ValueError:
            raise NoResult("forged") from None
        finally:
            timer.cancel()
            timer.join()

    def _serve(self, request: Any) -> None:
        """Answer a request, or send its error."""
        try:
            name, values, options = request
            service = self.services[name]
            values, options = decode(values), decode(options)
            if not isinstance(values, list) or not isinstance(options, dict):
                raise ValueError("an invalid request")
        except (TypeError, ValueError, KeyError):
            raise NoResult("forged") from None
        try:
            reply = {"answer": encode(service(*values, **options))}
        except tuple(card.ERRORS.values()) as error:
            kind = next(name for name, kind in card.ERRORS.items() if isinstance(error, kind))
            reply = {"raised": [kind, str(error.args[0]) if error.args else ""]}
        write_message(self.writer, reply)

    def _checked(self, reply: dict) -> dict:
        """Return a reply whose parts have the right types."""
        left_out = reply.get("left_out", 0)
        self.left_out = left_out if type(left_out) is int else 0
        if "broken" in reply:  # an answer could send this, too
            raise NoResult(
                "broken", plain.replace_surrogates(str(reply["broken"]))[-MAX_TRACEBACK:]
            )
        if "halted" in reply:
            raise NoResult(plain.replace_surrogates(str(reply["halted"]))[:20])
        if "failed" in reply:
            failed = reply["failed"]
            if not isinstance(failed, dict):
                raise NoResult("forged")
            kind, text, source = (
                plain.replace_surrogates(str(failed.get(part, "")))
                for part in ("type", "text", "source")
            )
            line = failed.get("line")
            raise Raised(kind[:60], text[:2_000], line if type(line) is int else 0, source[:200])
        if "cell" in reply:
            sets, text, line = self._three(reply["cell"])
            raise Refused(
                sets if isinstance(sets, str) else None,
                plain.replace_surrogates(str(text))[:2_000],
                line if type(line) is int else 0,
            )
        made = reply.get("made")
        fine = made == "function" or (isinstance(made, dict) and "value" in made)
        if not fine and not {"result", "arguments"} <= reply.keys():
            raise NoResult("forged")
        return reply

    def _three(self, value: Any) -> list:
        if not isinstance(value, list) or len(value) != 3:
            raise NoResult("forged")
        return value

    def _decoded(self, data: Any) -> Any:
        try:
            return decode(data)
        except (ValueError, RecursionError, OverflowError):
            raise NoResult("forged") from None

    def _lost(self, late: bool) -> NoResult:
        """Return the exception for a process that has ended."""
        if late:
            return NoResult("clock")
        status = 0
        if self.server.process:
            status = self.server.ended()
            self.reported = True
        signal = status & 0x7F
        if signal == 27:  # SIGPROF
            return NoResult("time", signal=signal)
        return NoResult("ended", signal=signal)


def call(
    module: str,
    name: str,
    *arguments: Any,
    limits: CallLimits,
    server: ForkServer | None = None,
) -> Any:
    """Call a function of the package in its own process, with plain arguments and result.

    It is trusted: the lessons are accessible there.
    """
    answer = Answer({}, limits=limits, server=server or ForkServer())
    answer.server.lock.acquire()
    try:
        answer._open()
        given = {"seconds": limits.seconds, "megabytes": limits.megabytes}
        how = {
            "function": [module, name],
            "arguments": [encode(argument) for argument in arguments],
        }
        reply = answer._exchange({"run": how | {"limits": given}})
        return answer._decoded(reply["result"])
    finally:
        answer._close()
