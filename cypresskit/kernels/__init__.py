"""The kernels, as IL that a student can read, and the catalogue that launches them."""

from cypresskit.kernels.catalogue import KERNELS, Kernel

__all__ = ["KERNELS", "Kernel"]
