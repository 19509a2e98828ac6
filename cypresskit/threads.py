"""How many threads may work at once: those of the fast engine, and of simulations side by side."""

import os


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
