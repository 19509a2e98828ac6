"""Run lessons ahead of their readers: what they time is then cached when a reader runs them.

``cypresskit lab`` starts ``python -m cypresskit.cli.ahead`` beside JupyterLab, with the lowest
priority and on copies: a reader's notebooks are never touched. It compiles the timing engine at
once, and runs lessons from the reader's first notebook on, unless there is one processor, or a
battery feeds it. Binder's image, the site's workbook and a release run the same command when they
are built. A lesson that has run before, with the same model, isn't run again.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from typing import Any

from cypresskit.files import result_cache
from cypresskit.threads import processors
from cypresskit.timing import simulate

IDLE = "--idle"
CELL_SECONDS = 1800  # on a busy computer; a cell that hangs ends


def start(lessons: Iterable[Path]) -> "Popen[bytes] | None":
    """Start a process of the lowest priority that runs lessons, and ends with this process.

    Returns
    -------
    The process; None if nothing would be cached.
    """
    if result_cache.hash_key() is None:
        return None
    command = [sys.executable, "-m", "cypresskit.cli.ahead", IDLE, *map(str, lessons)]
    return Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)


def run(lesson: Path, parent: int | None = None) -> None:
    """Run a lesson, unless it has run before.

    Parameters
    ----------
    lesson
        Its notebook, which isn't changed.
    parent
        The process with which this one ends, after a cell.

    Raises
    ------
    nbclient.exceptions.CellExecutionError, nbclient.exceptions.CellTimeoutError
        If a cell fails, or doesn't end.
    """
    import nbformat
    from nbclient import NotebookClient

    def check_parent(**_: object) -> None:
        if parent not in (None, os.getppid()):
            os._exit(0)  # the kernel ends by itself when this process is gone
        if parent is not None:
            manager: Any = client.km
            put_last(manager.provisioner.pid)

    ran = result_cache.hash_key("lesson", hashlib.sha256(lesson.read_bytes()).hexdigest())
    if result_cache.load(ran):
        return
    with TemporaryDirectory() as folder:
        notebook = nbformat.read(lesson, 4)
        where = {"metadata": {"path": folder}}
        client = NotebookClient(
            notebook, timeout=CELL_SECONDS, kernel_name="python3", resources=where
        )
        client.on_cell_start = check_parent
        client.execute(stderr=DEVNULL)  # of the kernel, which warns of its own settings
    result_cache.save(ran, True)


def put_last(process: int) -> None:
    """Give a process's session the lowest priority. Linux compares the priorities of processes only
    within a session (``man 7 sched``: autogroups), and this process and its kernels have their own.
    """
    with suppress(OSError):  # another system, or none of its kind
        Path(f"/proc/{process}/autogroup").write_text("19")


def is_welcome() -> bool:
    """Return whether work for later may run: not on the only processor, nor on a battery."""
    import psutil

    battery = psutil.sensors_battery()
    return processors() > 1 and (battery is None or battery.power_plugged is not False)


def wait_for_reader(parent: int) -> None:
    """Return once a kernel is started. End this process with its parent."""
    from jupyter_core.paths import jupyter_runtime_dir

    since = time.time()
    folder = Path(jupyter_runtime_dir())
    while not any(_written(file) > since for file in folder.glob("kernel-*.json")):
        time.sleep(1)
        if parent != os.getppid():
            sys.exit()


def _written(file: Path) -> float:
    """Return the time when a file was written; 0 if it is gone, as that of a kernel that ended."""
    with suppress(FileNotFoundError):
        return file.stat().st_mtime
    return 0.0


def main(arguments: list[str]) -> int:
    """Run the lessons in ``arguments``. Return the exit status: 1 if one failed."""
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    is_idle = IDLE in arguments
    parent = os.getppid() if is_idle else None
    if parent is not None:
        if hasattr(os, "nice"):
            os.nice(19)
        put_last(os.getpid())
        simulate("sgemm_64x64_lds", 64)
        if not is_welcome():
            return 0
        wait_for_reader(parent)
    failed = 0
    for lesson in [Path(name).absolute() for name in arguments if name != IDLE]:
        try:
            run(lesson, parent)
        except (CellExecutionError, DeadKernelError, OSError) as error:
            text = str(error)
            if isinstance(error, CellExecutionError):
                text = f"{error.ename}: {error.evalue}"
            reason, *_ = text.partition("\n")
            print(f"{lesson.name} failed. {reason}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
