"""How fast a chip multiplies: the one place where the host's models ask the timing model of the kernel they run."""

from functools import lru_cache

from cypresskit.devices import Device

STEADY_K = 1536  # from here on a kernel's loop goes at the same pace: within 0.5 % of k = 4096


def kernel_rate(kernel: str, m: int, n: int, k: int, device: Device) -> float:
    """flop/s of catalogue kernel ``kernel`` on one chip ``device`` for an (m, k) by (k, n) product, launch included."""
    return _simulated(kernel, m, n, min(k, STEADY_K), device)


@lru_cache(maxsize=256)
def _simulated(kernel: str, m: int, n: int, k: int, device: Device) -> float:
    from cypresskit.timing.simulate import simulate  # here, since its compiled engine takes a while to import

    return simulate(kernel, n=n, m=m, k=k, device=device).gflops * 1e9
