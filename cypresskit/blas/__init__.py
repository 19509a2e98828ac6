"""Multiply numpy arrays on the simulated device, with the interface of BLAS."""

from cypresskit.blas.choice import choose_kernel
from cypresskit.blas.dd import DD
from cypresskit.blas.gemm import gemm, gemm_batched, gemv

__all__ = [
    "DD",
    "choose_kernel",
    "gemm",
    "gemm_batched",
    "gemv",
]
