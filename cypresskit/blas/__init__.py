"""BLAS on the simulated device: numpy arrays in, numpy arrays out."""

from cypresskit.blas.gemm import gemm

__all__ = ["gemm"]
