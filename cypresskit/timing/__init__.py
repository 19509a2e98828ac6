"""Timing: how long a compiled kernel takes on a device, and why.

``simulate`` gives one ``Report``, ``sweep`` a table of many, ``score`` the table against what was published, and
``sensitivity`` how far each calibration moves it. Underneath: ``shapes`` (a launch without its data), ``slices`` and
``addresses`` (the kernel's address arithmetic, found and run), ``flow`` (its way through the compiled clauses),
``engine`` (the chip), with ``cache``, ``dram`` and ``lds``.
"""

from cypresskit.timing.report import Event, Report
from cypresskit.timing.score import score, sensitivity
from cypresskit.timing.shapes import Shapes
from cypresskit.timing.simulate import simulate
from cypresskit.timing.slices import SliceError
from cypresskit.timing.sweep import Table, sweep

__all__ = ["Event", "Report", "Shapes", "SliceError", "Table", "score", "sensitivity", "simulate", "sweep"]
