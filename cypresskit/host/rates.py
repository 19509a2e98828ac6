"""How fast a chip multiplies: the one place where the host's models ask the timing model of the kernel they run."""

from functools import lru_cache

from cypresskit.devices import Device

STEADY_K = 512  # from here on a kernel's loop goes at the same pace: within 0.5 % of k = 4096


@lru_cache(maxsize=256)
def kernel_rate(kernel: str, m: int, n: int, k: int, device: Device) -> float:
    """flop/s of catalogue kernel ``kernel`` on one chip ``device`` for an (m, k) by (k, n) product, launch included.

    Simulated with k up to 512, so that an answer takes half a second.
    """
    from cypresskit.timing.simulate import simulate  # here, since its compiled engine takes a while to import

    return simulate(kernel, n=n, m=m, k=min(k, STEADY_K), device=device).gflops * 1e9
