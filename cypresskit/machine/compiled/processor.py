"""Describe the host's processor, and its mode that flushes subnormals.

Compiled code sets the mode when it begins, and restores it at its end. x86 flushes as the chip
does: results that are subnormal when rounded to 24 bits. ARM flushes before it rounds, and other
hosts have no such mode. There, and in programs with doubles, operations flush themselves.
"""

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cypresskit.il.host_llvm import host_processor


def flush_functions(mode: str) -> str:
    """Return LLVM IR of ``@flush``, which sets a mode ("x86", or "soft" for none), and of
    ``@restore``, which restores the one before.
    """
    return Path(__file__).with_name(f"{mode}.ll").read_text(encoding="utf-8")


@dataclass(frozen=True)
class HostProcessor:
    """A host, as LLVM and ``flush_functions`` know it."""

    name: str
    features: str
    mode: str


@cache
def this_host() -> HostProcessor:
    """Return the processor that this process runs on."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return HostProcessor(*host_processor(), "x86" if is_x86 else "soft")
