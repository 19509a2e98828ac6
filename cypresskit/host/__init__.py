"""GEMM from the host's memory and back, in time and in numbers: the bus, pipelines, blocks larger
than the card.
"""

from cypresskit.host.blocked import blocked_time, gemm_out_of_core, largest_block
from cypresskit.host.machine import Machine
from cypresskit.host.pipeline import (
    Matrices,
    adaptive,
    balanced_share,
    five_stage,
    four_stage,
    static_share,
)
from cypresskit.host.resources import Resource
from cypresskit.host.tasks import Span, Task, Timeline, TimelineError, run
from cypresskit.host.transfer import (
    balance,
    effective_rate,
    kernel_seconds,
    round_trip,
    transfer_seconds,
)

__all__ = [
    "Machine",
    "Matrices",
    "Resource",
    "Span",
    "Task",
    "Timeline",
    "TimelineError",
    "adaptive",
    "balance",
    "balanced_share",
    "blocked_time",
    "effective_rate",
    "five_stage",
    "four_stage",
    "gemm_out_of_core",
    "kernel_seconds",
    "largest_block",
    "round_trip",
    "run",
    "static_share",
    "transfer_seconds",
]
