"""What comes later."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path


def without_a_loop(test):
    """The test in a thread of its own: in this one a browser's event loop may run, and controls
    draw later.
    """

    @functools.wraps(test)
    def run(*arguments, **options):
        with ThreadPoolExecutor(1) as alone:
            return alone.submit(test, *arguments, **options).result()

    return run


def wait_for(what, pause=lambda: time.sleep(0.05)):
    """Wait until it is so. What never comes, ends."""
    late = time.monotonic() + 120
    while not what():
        assert time.monotonic() < late
        pause()


def is_alive(process):
    """Whether a process hasn't ended, even if its parent doesn't know yet."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
