"""A GEMM that starts and ends in the host's memory: the bus, pipelines, blocks larger than the card, chips and CPU."""

from cypresskit.host.blocked import blocked_time, gemm_out_of_core, largest_block
from cypresskit.host.machine import Machine
from cypresskit.host.pipeline import Matrices, adaptive, five_stage, four_stage, measured_share, static_share
from cypresskit.host.published_rows import host_rows
from cypresskit.host.resources import Resource
from cypresskit.host.tasks import Span, Task, Timeline, TimelineError, run
from cypresskit.host.transfer import balance, effective_rate, kernel_seconds, measured, transfer_seconds

__all__ = [
    "Machine", "Matrices", "Resource", "Span", "Task", "Timeline", "TimelineError", "adaptive", "balance",
    "blocked_time", "effective_rate", "five_stage", "four_stage", "gemm_out_of_core", "host_rows", "kernel_seconds",
    "largest_block", "measured", "measured_share", "run", "static_share", "transfer_seconds",
]  # fmt: skip
