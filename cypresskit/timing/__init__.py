"""Timing: how long a compiled kernel takes on a device, and why.

``simulate`` gives a ``Report``, ``line_costs`` what each line of a kernel costs, ``what_if`` what
each limit of the chip does. Underneath: ``walk`` follows the compiled code without data, with
``words`` (arithmetic that knows what came from memory), ``requests``, ``loops`` (counting loops),
``endless`` (those that never end), ``history`` (what each wavefront went through) and ``surfaces``
(where accesses lie); ``work`` is what comes of it, and ``engine`` the chip that takes the time,
with one file for each of its ``units``.
"""

from cypresskit.timing.limits import Limit, WhatIf, what_if
from cypresskit.timing.prices import LinePrice, Prices, line_costs
from cypresskit.timing.question import Question
from cypresskit.timing.report import Event, Report
from cypresskit.timing.simulate import ask, simulate
from cypresskit.timing.stored import note_model
from cypresskit.timing.words import DataDependentError

__all__ = [
    "DataDependentError",
    "Event",
    "Limit",
    "LinePrice",
    "Prices",
    "Question",
    "Report",
    "WhatIf",
    "ask",
    "line_costs",
    "simulate",
    "what_if",
]

note_model()
