"""Lesson 02: words fetched per operation, the speed of any block, and the checks of its
exercises.
"""

from collections.abc import Sequence
from fractions import Fraction

from cypresskit.devices import HD5850, HD5870, Device
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.generated import block_kernel
from cypresskit.kernels.samples import run
from cypresskit.lesson_table import Table
from cypresskit.published import conditions
from cypresskit.published import kernel as published
from cypresskit.teach.climb import climb_exercise, describe_iteration
from cypresskit.teach.formula import formula_exercise
from cypresskit.threads import map_in_threads
from cypresskit.timing.as_published import simulate_published
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate


def word_bytes(kernel: Kernel) -> int:
    """Return the bytes of one number of a kernel's matrices; a double-double has two doubles."""
    return BYTES[kernel.precision]


def counted(name: str) -> Fraction:
    """Count the words that a kernel of the catalog fetches per flop, with N = 64."""
    kernel = KERNELS[name]
    return Fraction(run(kernel, 64, 64, 64).fetch_bytes, word_bytes(kernel) * 2 * 64**3)


def simulate_block(size: int, n: int = 2048, device: Device = HD5870) -> Report:
    """Simulate the plain kernel with a block of ``size`` x ``size``, for matrices of n x n."""
    return simulate(block_kernel(size, size), n, device=device)


def simulate_blocks(sizes: Sequence[int]) -> dict[int, Report]:
    """Simulate several blocks with ``simulate_block``, on all cores."""
    return dict(zip(sizes, map_in_threads(simulate_block, sizes), strict=True))


def words_table() -> Table:
    """Return the words that kernels fetch per flop, as fractions: counted, and by the formula."""
    names = "sgemm_naive", "sgemm_tn_stream", "sgemm_tn", "dgemm_tn_stream_2x8", "dgemm_tn"
    rows = []
    for name in (*names, "ddgemm_tn_fma"):
        height, width = KERNELS[name].block
        formula = Fraction(height + width, 2 * height * width)
        rows.append([name, f"{height} x {width}", str(counted(name)), str(formula)])
    heads = ["kernel", "block", "counted", "(rows + columns) / (2 rows columns)"]
    return Table(heads, rows, keys=len(heads))


def memory_bandwidths() -> dict[str, float]:
    """Return the GB/s that the HD 5870's memories deliver, by name."""
    l2 = HD5870.memory_channels * HD5870.l2_slice_bytes_clock * HD5870.clock_ghz
    return {"texture units": HD5870.texture_gb_s, "L2 cache": l2, "memory": HD5870.memory_gb_s}


def measured_table() -> Table:
    """Return the speeds of three published kernels: their roofline, as published, and modeled."""
    names = "sgemm_tn", "dgemm_tn", "ddgemm_tn_fma"
    rows = []
    for name, report in zip(names, map_in_threads(simulate_published, names)):
        kernel, row = KERNELS[name], published(name)
        roof = HD5870.texture_gb_s * kernel.block[0] / word_bytes(kernel)
        speeds = min(HD5870.peak_gflops(kernel.precision), roof), row["gflops_max"]
        rows.append([name, row["n_at_max"], *speeds, report.gflops])
    heads = ["kernel", "N", "roofline, Gflop/s", "measured", "modeled"]
    return Table(heads, rows, keys=2, note=str(conditions("sgemm_tn")))


@climb_exercise("own")
def check_whole_kernel(mine: Kernel) -> str:
    """Exercise 1: a whole kernel with a block of 4 x 4 and an output stream for each row."""
    return describe_iteration(mine)


def mistakes_in_ceiling(b, p, r, s):
    """Return what each mistake gives."""
    fed = r * b / s  # Gflop/s for which words arrive
    return {
        "no more than the peak, even if the fetches allow more.": fed,
        "that is the peak alone; where a flop needs many words, the fetches decide.": p,
        "solve bandwidth = F S / b for F: b multiplies, S divides.": min(p, r * b * s),
        "bandwidth is in bytes, and a word has several.": min(p, r * b),
        "bandwidth is in bytes, not bits.": min(p, fed / 8),
        "a larger block needs fewer words a flop, so it allows more.": min(p, r / b / s),
        "the bandwidth comes in GB/s: how many flops does a byte allow?": min(p, r),
        "this is the bandwidth that the peak needs. The speed is limited by `bandwidth_gb_s`.": (
            p * s / b
        ),
        "a factor of 2 is in W = 1/b already: b flops come from a word.": min(p, fed / 2),
        "a block of b x b does b flops with each word.": min(p, r / s),
        "this compares bandwidths. Return a speed: solve bandwidth = F S / b for F.": (
            min(r, p * s / b)
        ),
        "the smaller of the two holds the kernel back, not the larger.": max(p, fed),
        "a block's b * b multiply-adds take 2 b words, so b flops come from a word.": (
            min(p, r * b * b / s)
        ),
        "W = 1/b counts both flops already, the multiplication and the addition: this is twice too"
        " much.": min(p, 2 * fed),
    }


@formula_exercise(
    [
        *((b, HD5870.single_gflops, HD5870.texture_gb_s, 4) for b in (8, 4, 1, 16)),
        *((4, HD5870.double_gflops, rate, 8) for rate in (HD5870.texture_gb_s, HD5870.memory_gb_s)),
        (2, HD5850.double_gflops, HD5850.texture_gb_s, 8),
        (12, HD5850.single_gflops, HD5850.texture_gb_s, 4),
        (1, HD5870.single_gflops, HD5870.memory_gb_s, 4),
    ],
    mistakes_in_ceiling,
    "solve bandwidth = F S / b for F. Is that or the peak smaller?",
    " Gflop/s",
)
def check_ceiling(b, p, r, s):
    """Exercise 2: ``ceiling(b, peak_gflops, bandwidth_gb_s, word_bytes)`` in Gflop/s: the
    roofline.
    """
    return min(p, r * b / s)


@climb_exercise("02")
def check_larger_block(mine: Kernel) -> str:
    """Exercise 3: a kernel with a block of 8 x 8 (or of 4 x 8, which is fast enough, too)."""
    return describe_iteration(mine)
