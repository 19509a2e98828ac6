"""The compiled multiply-add of ``cypresskit.il.fused``."""

import subprocess
import sys

FIRST_CALLS = """
import gc, threading
import numpy as np
from cypresskit.il.fused import multiply_add

numbers = np.arange(12.0).reshape(3, 4)
ready, compiled = threading.Barrier(8), threading.Barrier(8)
right = []

def first_call():
    ready.wait()
    multiply_add(numbers, numbers, numbers)
    compiled.wait()
    gc.collect()
    product, _ = multiply_add(numbers, numbers, numbers)
    right.append((product == numbers * numbers + numbers).all())

threads = [threading.Thread(target=first_call) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(right) == 8 and all(right)
"""


def test_first_calls_at_the_same_time_keep_their_code():
    """In a process of its own: code that is gone ends it."""
    ended = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
