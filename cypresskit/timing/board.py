"""``Board``: what the timing engine reads of a chip.

The fields are described in ``devices.Device``. A board that has them can be timed, whatever
language its kernels are written in. Left out: what only the compiler and the trace of IL read.
"""

from typing import Protocol

from cypresskit.devices import Terms


class Board(Protocol):
    """A chip as the timing engine sees it: Cypress's ``Device``, or a ``CudaGpu``."""

    @property
    def name(self) -> str: ...

    @property
    def terms(self) -> Terms: ...

    @property
    def clock_ghz(self) -> float: ...

    @property
    def launch_overhead_us(self) -> float: ...

    @property
    def simd_engines(self) -> int: ...

    @property
    def register_pool(self) -> int: ...

    @property
    def bundle_clocks(self) -> int: ...

    @property
    def alu_latency_clocks(self) -> int: ...

    @property
    def clause_switch_clocks(self) -> int: ...

    @property
    def clause_overhead_clocks(self) -> int: ...

    @property
    def line_bytes(self) -> int: ...

    @property
    def l1_bytes(self) -> int: ...

    @property
    def l1_ways(self) -> int: ...

    @property
    def l1_clocks(self) -> int: ...

    @property
    def l2_bytes(self) -> int: ...

    @property
    def l2_ways(self) -> int: ...

    @property
    def l2_clocks(self) -> int: ...

    @property
    def l2_slices(self) -> int: ...

    @property
    def l2_slice_bytes_clock(self) -> float: ...

    @property
    def fetches_in_order(self) -> bool: ...

    @property
    def memory_channels(self) -> int: ...

    @property
    def memory_banks(self) -> int: ...

    @property
    def channel_bytes(self) -> int: ...

    @property
    def dram_clocks(self) -> int: ...

    @property
    def dram_row_bytes(self) -> int: ...

    @property
    def dram_row_clocks(self) -> int: ...

    @property
    def dram_lines(self) -> int: ...

    @property
    def dram_bytes_clock(self) -> float: ...

    @property
    def dram_efficiency(self) -> float: ...
