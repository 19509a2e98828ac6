"""The machine: runs any IL program on numpy arrays, with two engines that agree bit for bit.

``launch`` checks the arguments and picks the engine: ``fast`` translates the program to native
code, ``explain`` steps through it with every register at hand and tells observers what happens.
What the compiler made of a program is run by ``vliw``, for the timing.
"""

from cypresskit.machine.engines import launch
from cypresskit.machine.launch import KernelError, prepare
from cypresskit.machine.observer import Observer
from cypresskit.machine.run import LaunchCounters

__all__ = ["KernelError", "LaunchCounters", "Observer", "launch", "prepare"]
