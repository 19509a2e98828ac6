"""Start, watch and end bare processes.

A warm process (``ForkServer``) is forked for each answer. In a sandbox it runs under
bubblewrap: without network, home, lessons and reference solutions, in a file system that is
read-only, with the machine code in the user's cache. Without a sandbox it has the user's rights,
and an answer could read the reference solution on disk.
"""

import os
import platform
import shutil
import socket
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from cypresskit.files.disk_cache import cache_folder
from cypresskit.isolated import seccomp
from cypresskit.isolated.serving import PACKAGE
from cypresskit.subprocesses import kill_process, python_command, start_process
from cypresskit.threads import processors

MAIN = "cypresskit.isolated.runner"  # the program of a bare process
#: Folders of the package that are hidden in a sandbox, but for each lesson's ``visible``.
HIDDEN = "teach", "lessons"
#: Folders of the system that Python and its libraries may need.
SYSTEM = "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/etc/ld.so.cache", "/etc/localtime"
ENVIRONMENT = "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ"  # variables that are passed on
#: Further variables outside a sandbox: the folders of the user's files, caches and temporary files.
OUTSIDE = "HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TMPDIR"
START_SECONDS = 120  # for a new process to start
CACHE = "/tmp/cache"  # the folder of caches in a sandbox


class ForkServer:
    """A warm process, and the copy of it that serves an answer.

    Parameters
    ----------
    sandbox
        The command of the sandbox in which it runs; None for none.
    modules
        Modules that it imports before it is copied.
    """

    def __init__(
        self, sandbox: Sequence[str] | None = None, *, modules: Sequence[str] = ()
    ) -> None:
        self.sandbox = sandbox
        self.modules = modules
        self.lock = threading.Lock()
        self.process: subprocess.Popen | None = None
        self.control: socket.socket | None = None
        self.pid = 0
        self.is_fresh = False  # its first message hasn't been read

    def start(self) -> None:
        """Start the warm process, without waiting for it."""
        if self.process and self.process.poll() is None and self.pid == os.getpid():
            return
        self.process, self.control = start_process(*self.command())
        self.pid = os.getpid()
        self.is_fresh = True
        weakref.finalize(self, kill_process, self.process)

    def command(self) -> tuple[list[str], dict[str, str]]:
        """Return the command that starts the warm process, and its environment."""
        folders = [str(PACKAGE.parent), *library_folders()]
        python = python_command(folders, MAIN, modules=self.modules)
        # Stored results may have been forged by an earlier answer.
        keep = {"CYPRESSKIT_KEEP": "0"}
        if self.sandbox is None:
            return python, bare_environment(OUTSIDE) | keep
        return [*self.sandbox, *python], bare_environment(()) | keep | {"XDG_CACHE_HOME": CACHE}

    def channel(self) -> socket.socket:
        """Return a stream to a new copy of the warm process."""
        self.start()
        assert self.control
        if self.is_fresh:
            self.control.settimeout(START_SECONDS)
            try:
                if not self.control.recv(2):
                    raise OSError("a bare Python process can't start here")
            except TimeoutError:
                raise OSError(
                    f"a bare Python process hasn't started after {START_SECONDS} s"
                ) from None
            self.is_fresh = False
        our_end, their_end = socket.socketpair()
        with their_end:
            socket.send_fds(self.control, [b"\0"], [their_end.fileno()])
        return our_end

    def ended(self) -> int:
        """Return the status with which the copy ended, as of ``os.waitpid``.

        If that isn't reported within 5 s, the warm process is ended, too.
        """
        if control := self.control:
            with suppress(OSError):
                control.settimeout(5)
                data = control.recv(2)
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
    servers = [ForkServer(modules=modules) for _ in range(processors())]
    free = deque(servers)

    def work_on(item: Any) -> Any:
        server = free.pop()
        try:
            return work(item, server)
        finally:
            free.append(server)

    pool = ThreadPoolExecutor(len(servers))
    try:
        yield from pool.map(work_on, items)
    finally:  # also when the user stops the command: what runs is ended, and nothing begins
        pool.shutdown(wait=False, cancel_futures=True)
        for server in servers:
            server.end()
        pool.shutdown()


def bare_environment(more: Sequence[str]) -> dict[str, str]:
    """Return the environment of a bare process, in which ``numba.cuda`` is numba's simulator."""
    names = [*ENVIRONMENT, *more]
    passed = {name: os.environ[name] for name in names if name in os.environ}
    passed |= {name: value for name, value in os.environ.items() if name.startswith("CYPRESSKIT_")}
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    return passed | single | {"NUMBA_ENABLE_CUDASIM": "1"}


def library_folders() -> list[str]:
    """Return the folders of Python's own library, and those in which packages are installed.

    These are below Python's prefix, or have a package's metadata, as ``pip install --user`` and
    ``--target`` leave them. The notebook's own folder isn't one.
    """
    roots = [Path(root).resolve() for root in (sys.prefix, sys.base_prefix, sys.exec_prefix)]
    folders = []
    for folder in filter(os.path.exists, filter(None, sys.path)):
        inside = any(root in Path(folder).resolve().parents for root in roots)
        if inside or any(Path(folder).glob("*.dist-info")):
            folders.append(os.path.abspath(folder))
    return folders


@cache
def find_sandbox() -> list[str] | None:
    """Return bubblewrap's command, or None if it isn't installed or doesn't work, or there is no
    ``seccomp`` filter for this processor.

    In a sandbox the system's libraries, Python, installed packages, this one without its lessons,
    and its machine code are readable. There is no network, no home, and no other process, and
    nothing can be written.
    """
    program = shutil.which("bwrap")
    if program is None or platform.machine() not in seccomp.CALLS:
        return None
    command = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for folder in SYSTEM:
        if os.path.islink(folder):
            command += ["--symlink", os.readlink(folder), folder]
        elif os.path.exists(folder):
            command += ["--ro-bind", folder, folder]
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, *library_folders(), str(PACKAGE)]
    for place in sorted({os.path.abspath(place) for place in places}):
        if os.path.exists(place) and not f"{place}/".startswith("/usr/"):
            command += ["--ro-bind", place, place]
    if compiled := cache_folder():
        command += ["--ro-bind-try", str(compiled), f"{CACHE}/{compiled.name}"]
    hidden = [str(PACKAGE / name) for name in HIDDEN if (PACKAGE / name).is_dir()]
    for folder in hidden:
        command += ["--tmpfs", folder]
    for path in sorted(PACKAGE.glob("teach/*/visible")):
        command += ["--ro-bind", str(path), str(path)]
    for folder in (*hidden, "/tmp", "/dev", "/"):
        command += ["--remount-ro", folder]
    command += ["--chdir", "/tmp"]
    return command if _works(command) else None


def _works(command: list[str]) -> bool:
    """Return whether a bare process starts in a sandbox."""
    server = ForkServer(command)
    try:
        server.channel().close()
    except OSError:
        return False
    finally:
        server.end()
    return True
