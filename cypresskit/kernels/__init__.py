"""Provide the kernels: IL files, the catalog with their launch conventions, and users' own.

- ``catalogue``, ``convention``, ``statement``: what a kernel is, how it is launched, and the
  comment in which it says so.
- ``own``: kernels of users.
- ``products``, ``comparison``: small products of random integers, and how near a result is.
- ``generated``: kernels with other block sizes.
"""

from cypresskit.kernels.catalogue import KERNELS, Kernel

__all__ = ["KERNELS", "Kernel"]
