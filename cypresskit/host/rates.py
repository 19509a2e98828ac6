"""Compute a chip's rate of multiplication, by the timing model."""

from cypresskit.devices import Device
from cypresskit.host.checks import check_type, check_whole
from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.own import Source, resolve
from cypresskit.timing.simulate import simulate

STEADY_K = 1536  # from here on the time per value of k is constant: within 0.5 % of k = 4096


def find_tn_kernel(kernel: Source) -> Kernel:
    """Return the kernel, which may be given by name. It has to take what the host sends: A
    transposed, B as it is, one product per launch.

    Raises ``KeyError`` for an unknown name, ``ValueError`` for another kind of kernel.
    """
    chosen = resolve(kernel)
    if not chosen.trans_a or chosen.trans_b or chosen.is_vector or chosen.convention.packed:
        raise ValueError(
            f"the host transposes A, so it needs a TN kernel for whole matrices; {chosen.name} is"
            " not one"
        )
    if chosen.precision != "double":
        raise ValueError(f"the host sends float64; {chosen.name} is not for that")
    return chosen


def kernel_rate(
    kernel: Source, m: int, n: int, k: int, device: Device, pads_rows: bool = True
) -> float:
    """Return the flop/s of a kernel on one chip for an (m, k) by (k, n) product, without launch
    overhead.

    Beyond ``STEADY_K``, time is taken as proportional to k. ``pads_rows``: rows in buffers are
    padded, so that strides are no power of two.
    """
    m, n, k = check_whole(m=m, n=n, k=k)
    check_type(Device, device=device)
    check_type(bool, pads_rows=pads_rows)
    chosen = find_tn_kernel(kernel)
    rows = m
    columns = n
    depth = min(k, STEADY_K)
    if chosen.convention.buffer and pads_rows:
        rows, columns = (padded_row(size, device) for size in (m, n))
    report = simulate(chosen, n=columns, m=rows, k=depth, device=device)
    return 2.0 * rows * columns * depth / report.seconds


def padded_row(length: int, device: Device) -> int:
    """Round ``length`` up so that rows in a buffer are an odd number of channel bursts apart.

    This spreads them over all channels and banks. An assumption: APP 4.6.2 advises it, but the
    papers don't print how strips were stored.
    """
    bursts = -(-length * BYTES["double"] // device.channel_bytes) | 1
    return bursts * device.channel_bytes // BYTES["double"]
