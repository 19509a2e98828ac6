"""The speed at which a chip multiplies. Only here do the host's models ask the timing model."""

from functools import lru_cache

from cypresskit.devices import Device
from cypresskit.host.checks import check_type, check_whole
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.timing.simulate import simulate

STEADY_K = 1536  # from here on a kernel's loop goes at the same pace: within 0.5 % of k = 4096


def tn_kernel(kernel: Source) -> Kernel:
    """The kernel, given by name or itself, if it multiplies what the host sends: A transposed, B as
    it is, one product at a time. Raises ``KeyError`` for an unknown name, ``ValueError`` for
    another kind of kernel.
    """
    chosen = resolve(kernel)
    if not chosen.trans_a or chosen.trans_b or chosen.vector or chosen.convention.packed:
        raise ValueError(
            f"the host transposes A, so it needs a TN kernel for whole matrices; {chosen.name} is"
            " not one"
        )
    if chosen.precision == "double-double":
        raise ValueError(f"the host sends float32 or float64; {chosen.name} is not for one of them")
    return chosen


def kernel_rate(
    kernel: Source, m: int, n: int, k: int, device: Device, pads_rows: bool = True
) -> float:
    """flop/s of ``kernel`` on one chip ``device`` for an (m, k) by (k, n) product, launch included.
    Steps of k beyond ``STEADY_K`` are timed at the pace of those before. ``pads_rows``: buffers
    have padded rows, so that strides are no power of two.
    """
    check_whole(m=m, n=n, k=k)
    check_type(Device, device=device)
    chosen = tn_kernel(kernel)
    launch = device.launch_overhead_us * 1e-6
    rows = m
    columns = n
    depth = min(k, STEADY_K)
    if chosen.convention.buffer and pads_rows:
        rows, columns = (padded_row(size, chosen.dtype.itemsize, device) for size in (m, n))
    running = _seconds(chosen, rows, columns, depth, device) - launch
    flops = 2.0 * m * n * k
    return flops / (launch + running * flops / (2.0 * rows * columns * depth))


@lru_cache(maxsize=256)
def _seconds(kernel: Kernel, m: int, n: int, k: int, device: Device) -> float:
    """Seconds of a launch by the timing model, cached for later blocks of the same size."""
    return simulate(kernel, n=n, m=m, k=k, device=device).seconds


def padded_row(length: int, itemsize: int, device: Device) -> int:
    """``length`` rounded up so that rows in a buffer are an odd number of channel bursts apart,
    which spreads them over all channels and banks. An assumption: APP 4.6.2 advises it, but nobody
    printed how strips lay on the card.
    """
    bursts = -(-length * itemsize // device.channel_bytes) | 1
    return bursts * device.channel_bytes // itemsize
