"""Timing: how long a compiled kernel takes on a device, and why.

``simulate`` returns a ``Report``, ``line_costs`` what each line of a kernel costs, ``what_if`` what
each limit of the chip costs. From the code to the time:

1. ``tracing`` follows the compiled code without data, with ``symbolic`` values and recorded
   ``memory_requests``. ``loop_extrapolation`` fast-forwards counting loops, ``infinite_loops``
   finds those that never end. ``memory_layout`` turns addresses into cache lines, ``clauses`` and
   ``history`` collect what each wavefront ran.
2. ``work`` is the result, and the input of the chip simulation (``engine``, with a file for each of
   its ``units``).
3. ``sampling`` and ``steady_state`` decide how much is simulated.
"""

from cypresskit.timing.costs import LineCost, LineCosts, line_costs
from cypresskit.timing.limits import Limit, WhatIf, what_if
from cypresskit.timing.report import Event, Report
from cypresskit.timing.simulate import run_request, simulate
from cypresskit.timing.symbolic import DataDependentError
from cypresskit.timing.timing_request import TimingRequest

__all__ = [
    "DataDependentError",
    "Event",
    "Limit",
    "LineCost",
    "LineCosts",
    "Report",
    "TimingRequest",
    "WhatIf",
    "line_costs",
    "run_request",
    "simulate",
    "what_if",
]
