"""What comes later."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor


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
