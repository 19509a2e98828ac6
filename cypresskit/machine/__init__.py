"""The machine: runs any IL program on numpy arrays, with two engines that agree bit for bit.

``launch`` checks the arguments and picks the engine: ``fast`` translates the program to native code, ``explain`` steps
through it with every register at hand and tells observers what happens.
"""

from cypresskit.machine.launch import KernelError, Launch, launch, prepare
from cypresskit.machine.observer import Barrier, Fetch, Memory, Observer, Step, Wrote
from cypresskit.machine.run import Run

__all__ = [
    "Barrier",
    "Fetch",
    "KernelError",
    "Launch",
    "Memory",
    "Observer",
    "Run",
    "Step",
    "Wrote",
    "launch",
    "prepare",
]
