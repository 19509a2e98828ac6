"""Current GPUs, for the clock of CUDA kernels: every number with its source, as in
``cypresskit.devices``.

"H200" means measured on one, by the experiments of the package's record (L1, L2, memory, slices,
latency; another run of them differs by 1 to 9 %) and by loops of instructions; "NVIDIA" is the CUDA
C++ Programming Guide; "data sheet", the board's. What is assumed says so. One set of numbers serves
every kernel.
"""

from dataclasses import dataclass

from cypresskit.devices import Board, Terms, _amount, _count, _positive, _power, check_numbers

SCHEDULERS = 4  # of a multiprocessor
#: Clocks of a scheduler for an instruction. Calibrated on 152 compiled loops without their loads,
#: on an H200: within 13 to 16 %.
ISSUE_CLOCKS = {
    "FFMA FMUL FADD": 1.48,
    "DFMA DMUL DADD": 2.31,
    "IADD3 LOP3 LEA SHF SEL ISETP MOV PLOP3": 1.54,
    "IMAD VIADD": 0.74,
    "IMAD.WIDE": 3.97,
    "uniform": 1.28,
    "other": 0.57,
}


@dataclass(frozen=True, kw_only=True, repr=False)
class CudaGpu(Board):
    """A GPU that runs CUDA. As a ``Board``, multiprocessors are its SIMD engines, warps its
    wavefronts, sectors its cache lines, and the load unit, with L1 and shared memory, its texture
    unit. The engine counts quarters of a clock, so that each of four schedulers is an ALU.
    """

    terms = Terms(
        "multiprocessor", "warp", "schedulers", "load unit", "L1", "{} registers per thread"
    )
    has_own_alus = True  # NVIDIA: each scheduler has warps of its own
    dram_lines = 2  # H200: fetching one sector also fetches its neighbor
    clause_switch_clocks = clause_overhead_clocks = dram_row_clocks = 0
    memory_banks, dram_row_bytes = 1, 2048  # opening a row takes no time
    bundle_clocks = 1
    alu_latency_clocks = SCHEDULERS

    name: str
    simd_engines: int = _count("multiprocessors", "data sheet", 132)
    thread_processors: int = _count("lanes of a multiprocessor", "NVIDIA", 128)
    double_fmas: float = _positive("double multiply-adds per lane and clock", "NVIDIA", 0.5)
    register_pool: int = _count("registers of all warps", "NVIDIA: 65536 / 32", 2048)
    lds_bytes: int = _count("bytes of shared memory", "NVIDIA", 228 << 10)
    max_wavefronts: int = _count("warps per multiprocessor", "NVIDIA", 64)
    max_workgroups: int = _count("per multiprocessor", "NVIDIA", 32)
    clock_ghz: float = _positive("GHz", "H200", 1.98)
    memory_gb_s: float = _positive("GB/s, peak", "data sheet", 4800.0)
    memory_channels: int = _power(
        "channels, with a slice of L2 each",
        "none",
        32,
        "assumed: a power of two; all slices gave 3,500 to 4,700 bytes a clock",
    )
    line_bytes: int = _power("bytes of a sector", "NVIDIA", 32)
    l1_bytes: int = _amount("bytes with shared memory", "data sheet", 256 << 10)
    l1_ways: int = _count("ways", "none", 32, "assumed")
    l2_bytes: int = _power("bytes near a multiprocessor", "none", 32 << 20, "of 50 MB; assumed")
    l2_ways: int = _count("ways", "none", 16, "assumed")
    l2_slice_bytes_clock: float = _positive("bytes per clock and slice", "H200", 108.0)
    channel_bytes: int = _power("bytes in a row on one slice", "H200", 256)
    l1_clocks: int = _amount("clocks, L1 hit", "H200", 33)
    l2_clocks: int = _amount("clocks, L2 hit", "H200", 280)
    dram_clocks: int = _amount("clocks, memory", "H200", 693)
    dram_efficiency: float = _positive("share of the peak", "H200", 0.9)
    launch_overhead_us: float = _amount(
        "microseconds that a launch takes longer than its warps", "none", 0.8, "N = 128, the record"
    )

    def __post_init__(self) -> None:
        check_numbers(self)

    def __repr__(self) -> str:
        return (
            f"<CudaGpu {self.name}: {self.simd_engines} multiprocessors at {self.clock_ghz:g} GHz>"
        )

    def peak_gflops(self, bytes_of_number: int) -> float:
        """Return the peak in Gflop/s: in double precision for numbers of 8 bytes."""
        each = self.double_fmas if bytes_of_number == 8 else 1
        return 2 * each * self.simd_engines * self.thread_processors * self.clock_ghz


H200 = CudaGpu(name="H200")
