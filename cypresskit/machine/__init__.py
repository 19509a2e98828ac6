"""Run any IL program on numpy arrays, with two engines that agree bit for bit.

``launch`` checks the arguments and picks the engine: ``compiled`` runs the program as native code,
``interpreter`` executes one instruction at a time for all work-items and reports events to
observers. Left out: time (``timing``).
"""

from cypresskit.machine.counters import LaunchCounters
from cypresskit.machine.engines import launch
from cypresskit.machine.launch import KernelError, prepare
from cypresskit.machine.observer import Observer

__all__ = ["KernelError", "LaunchCounters", "Observer", "launch", "prepare"]
