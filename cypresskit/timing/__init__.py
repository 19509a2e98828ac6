"""Timing: how long a compiled kernel takes on a device, and why.

``simulate`` returns a ``Report``, ``line_costs`` what each line of a kernel costs, ``what_if`` what
each limit of the chip costs. ``timed_launch`` has the ``trace`` of a launch, ``sampling`` decides
how much of it the ``chip`` simulates.
"""

from cypresskit.timing.costs import LineCost, LineCosts, line_costs
from cypresskit.timing.limits import Limit, WhatIf, what_if
from cypresskit.timing.report import Event, Report
from cypresskit.timing.simulate import report_on, simulate
from cypresskit.timing.timed_launch import TimedLaunch
from cypresskit.trace.symbolic import DataDependentError

__all__ = [
    "DataDependentError",
    "Event",
    "Limit",
    "LineCost",
    "LineCosts",
    "Report",
    "TimedLaunch",
    "WhatIf",
    "line_costs",
    "report_on",
    "simulate",
    "what_if",
]
