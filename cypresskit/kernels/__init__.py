"""Provide the kernels: IL files, the catalog with their launch conventions, and tools to check
them.

- ``catalogue`` and ``convention``: what a kernel is, and how it is launched.
- ``own``: kernels of users, whose launch convention is found.
- ``verification``, ``element_trace``, ``probes``: whether a kernel is correct, and if not, which
  instruction is at fault.
- ``generated``: kernels with other block sizes.
"""

from cypresskit.kernels.catalogue import KERNELS, Kernel

__all__ = ["KERNELS", "Kernel"]
