"""Multiply numpy arrays on the simulated device, with the interface of BLAS."""

from cypresskit.blas.dd import to_fractions, to_pairs
from cypresskit.blas.gemm import gemm, gemv

__all__ = [
    "gemm",
    "gemv",
    "to_fractions",
    "to_pairs",
]
