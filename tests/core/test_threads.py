"""Work on all processors: results in order, and an end by the first exception or Ctrl-C."""

import signal
import threading
import time
from unittest.mock import patch

import pytest

from cypresskit import threads
from cypresskit.threads import check_stop, map_in_threads


@pytest.fixture(params=[1, 2, 3])
def processors(request):
    with patch.object(threads, "processors", lambda: request.param):
        yield request.param


def test_results_are_in_the_order_of_the_items(processors):
    assert map_in_threads(lambda n: (time.sleep(0.002 * (9 - n)), n)[1], range(9)) == [*range(9)]


def test_the_first_items_exception_is_raised(processors):
    def fail(n):
        raise ValueError(f"item {n}")

    with pytest.raises(ValueError, match="item 0"):
        map_in_threads(fail, range(5))


def wait_until_stopped(n):
    """Stand for a long simulation, which ends when its result isn't needed anymore."""
    while True:
        check_stop()
        time.sleep(0.001)


@pytest.mark.parametrize("is_nested", [False, True])
def test_an_exception_ends_what_other_threads_do(is_nested):
    def work(n):
        if n == 0:
            raise ValueError("the first")
        return map_in_threads(wait_until_stopped, [n, n]) if is_nested else wait_until_stopped(n)

    with patch.object(threads, "processors", lambda: 3), pytest.raises(ValueError, match="first"):
        map_in_threads(work, range(9))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="there are no such signals")
def test_ctrl_c_ends_all_threads():
    started = threading.Barrier(3)

    def work(n):
        started.wait()
        wait_until_stopped(n)

    ended = threading.Event()

    def press():
        started.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        while not ended.wait(5):  # Python may miss one just before it waits for a lock
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    keys = threading.Thread(target=press)
    keys.start()
    with patch.object(threads, "processors", lambda: 2), pytest.raises(KeyboardInterrupt):
        try:
            map_in_threads(work, range(5))
        finally:
            ended.set()
    keys.join()


def test_nothing_is_stopped_outside():
    map_in_threads(str, range(3))
    check_stop()
