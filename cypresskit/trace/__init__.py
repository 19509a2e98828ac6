"""The trace of a launch: from compiled code to the clauses of each wavefront and the cache lines
that they request.

``tracing`` follows the code without data, on the processor of ``vliw``, with ``symbolic`` values
and recorded ``memory_requests``. ``loop_extrapolation`` skips iterations that do the same, as a
``forecast`` proves, ``infinite_loops`` finds loops that never end. ``memory_layout`` turns
addresses into cache lines, ``clauses`` and ``history`` collect what each wavefront ran.
"""
