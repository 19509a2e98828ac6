"""What holds of every test: it changes nothing that all tests of its process share, finds
`__main__` as it was, and gets the same numbers from the shared sources of random ones in every run.
"""

import gc
import os
import random
import re
import resource
import secrets
import signal
import sys
import threading
import time

import pytest

MAIN = sys.modules["__main__"]
LIMITS = [value for name, value in vars(resource).items() if name.startswith("RLIMIT_")]
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGPROF)
#: Threads that may be there after a test, by class and name: a launch's; an event loop's
#: and jupyter_core's, which both keep for the next call; jupyter_client's, which ends with a beat;
#: and those of a folder that a module's tests share, each of which ends with its request.
KEPT = re.compile(
    r"\w+ (cypresskit|asyncio_)|.* - runner$|HBChannel "
    r"|.*\(process_request_thread\)$"
)


def process_state():
    """Return what all tests of a process share."""
    return {
        "environment": os.environ.copy() | {"PYTEST_CURRENT_TEST": ""},
        "working folder": os.getcwd(),
        "signal handlers": [*map(signal.getsignal, HANDLED)],
        "limits": [*map(resource.getrlimit, LIMITS)],
        "timers": [signal.getitimer(which)[0] > 0 for which in range(3)],
        "limit of recursion": sys.getrecursionlimit(),
        "garbage collection": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0),
    }


def own_threads():
    """Return the running threads without those in ``KEPT``."""
    named = ((thread, f"{type(thread).__name__} {thread.name}") for thread in threading.enumerate())
    return {thread for thread, name in named if not KEPT.match(name)}


@pytest.fixture(autouse=True)
def leaves_no_trace():
    """Fail a test that changes what all tests of its process share, or leaves a thread running."""
    before, threads = process_state(), own_threads()
    yield
    after = process_state()
    changed = [
        f"{name}: {before[name]} -> {now}" for name, now in after.items() if now != before[name]
    ]
    assert not changed, f"the test changes the process for all that follow: {'; '.join(changed)}"
    late = time.monotonic() + 60  # an executor's threads, on a busy machine
    while (left := own_threads() - threads) and time.monotonic() < late:
        time.sleep(0.01)
    assert not left, f"the test leaves threads running: {left}"


@pytest.fixture(autouse=True)
def main_stays(leaves_no_trace):
    """`__main__`, which IPython replaces and empties, is as it was: what starts processes would
    trip there.
    """
    yield
    sys.modules["__main__"] = MAIN


def draw_the_same(monkeypatch, seed):
    """Begin every source of random numbers anew, with those that belong to ``seed``."""
    own = random.Random(seed)
    random.seed(seed)
    monkeypatch.setattr(secrets, "token_hex", lambda size=None: own.randbytes(size or 32).hex())
    if check := sys.modules.get("cypresskit.teach.check"):
        check.check_rng.seed(seed)


@pytest.fixture(autouse=True)
def same_numbers(leaves_no_trace, monkeypatch, request):
    """A test draws the same numbers in every run, whatever ran before it; others with ``--new``."""
    draw_the_same(monkeypatch, f"{request.config.getoption('new')} {request.node.nodeid}")
