"""BLAS on the simulated device: numpy arrays in, numpy arrays out."""

from cypresskit.blas.choice import choose
from cypresskit.blas.dd import DD
from cypresskit.blas.gemm import gemm, gemm_packed, gemv

__all__ = [
    "DD",
    "choose",
    "gemm",
    "gemm_packed",
    "gemv",
]
