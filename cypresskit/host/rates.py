"""How fast a chip multiplies: the one place where the host's models ask the timing model of the kernel they run."""

from functools import lru_cache

from cypresskit.devices import Device


@lru_cache(maxsize=256)
def kernel_rate(kernel: str, m: int, n: int, k: int, device: Device) -> float:
    """flop/s of catalogue kernel ``kernel`` on one chip ``device`` for an (m, k) by (k, n) product, launch included."""
    from cypresskit.timing import simulate  # here, since the timing model's compiled engine takes a while to import

    return simulate(kernel, n=n, m=m, k=k, device=device).gflops * 1e9
