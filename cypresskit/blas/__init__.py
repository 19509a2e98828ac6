"""Multiply numpy arrays on the simulated device, with the interface of BLAS."""

from cypresskit.blas.dd import DD
from cypresskit.blas.gemm import gemm, gemv

__all__ = [
    "DD",
    "gemm",
    "gemv",
]
