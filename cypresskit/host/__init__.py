"""Model GEMM from the host's memory and back: bus, pipelines, and matrices larger than the card."""

from cypresskit.host.blocked import blocked_timeline, gemm_out_of_core, largest_block
from cypresskit.host.machine import Machine
from cypresskit.host.pipeline import (
    Matrices,
    adapt_cpu_share,
    five_stage,
    four_stage,
    static_cpu_share,
)
from cypresskit.host.tasks import Span, Task, Timeline, TimelineError, run_tasks
from cypresskit.host.transfer import (
    kernel_seconds,
    n_balance,
    rate_with_transfers,
    round_trip_timeline,
    transfer_seconds,
)

__all__ = [
    "Machine",
    "Matrices",
    "Span",
    "Task",
    "Timeline",
    "TimelineError",
    "adapt_cpu_share",
    "blocked_timeline",
    "five_stage",
    "four_stage",
    "gemm_out_of_core",
    "kernel_seconds",
    "largest_block",
    "n_balance",
    "rate_with_transfers",
    "round_trip_timeline",
    "run_tasks",
    "static_cpu_share",
    "transfer_seconds",
]
