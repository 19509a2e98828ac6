"""Timing: how long a compiled kernel takes on a device, and why.

``simulate`` returns a ``Report``, ``line_costs`` what each line of a kernel costs, ``what_if`` what
each limit of the chip costs. ``timed_launch`` has the ``trace`` of a launch, ``sampling`` decides
how much of it the ``chip`` simulates.
"""

from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate
from cypresskit.trace.symbolic import DataDependentError

__all__ = ["DataDependentError", "Report", "simulate"]
