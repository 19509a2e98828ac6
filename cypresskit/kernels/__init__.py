"""Provide the kernels, as readable IL files, and the catalog that launches them."""

from cypresskit.kernels.catalogue import KERNELS, Kernel

__all__ = ["KERNELS", "Kernel"]
