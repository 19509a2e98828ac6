"""Timing: how long a compiled kernel takes on a device, and why.

``simulate`` returns a ``Report``, ``simulate_published`` that of a published kernel, timed as its
author did. ``line_costs`` has what each line of a kernel costs, ``what_if`` what each limit of the
chip costs. ``timed_launch`` has the ``trace`` of a launch, ``sampling`` decides how much of it the
``chip`` simulates.
"""

from cypresskit.timing.as_published import simulate_published
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate
from cypresskit.trace.symbolic import DataDependentError

__all__ = ["DataDependentError", "Report", "simulate", "simulate_published"]
