"""One thread that looks, again and again, at what may change outside: files and processes."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

LOOK_SECONDS = 0.4  # between two looks

#: The functions that look, each of a connected conversation.
looks: set[Callable[[], None]] = set()


@cache
def start_watching() -> None:
    """Start the thread, unless it has been started."""
    threading.Thread(target=_watch, name="cypresskit files", daemon=True).start()


def _watch() -> None:
    while True:
        time.sleep(LOOK_SECONDS)
        for look in tuple(looks):
            with suppress(Exception):  # the next look comes, whatever this one raised
                look()
