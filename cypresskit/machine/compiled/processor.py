"""Describe the host's processor, and its mode that flushes subnormals.

Compiled code sets the mode when it begins, and restores it at its end. x86 flushes as the chip
does: results that are subnormal when rounded to 24 bits. ARM flushes before it rounds, so a result
just below 2^-126 becomes 0 instead of 2^-126; but every flushed result sets a flag. If the flag is
set at the end (status UNDERFLOWED), the launch is run again on code whose operations flush
themselves. Programs with doubles, and hosts without such a mode, always use such code.
"""

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cypresskit.il.host_llvm import host_processor

FLAGGED = ("arm", "flags")  # modes in which a flushed result may be wrong


def flush_functions(mode: str) -> str:
    """Return LLVM IR of ``@flush``, which sets a mode, and ``@restore``, which restores the one
    before. "flags" is x86 treated as ARM, for tests.
    """
    name = "x86" if mode == "flags" else mode
    return Path(__file__).with_name(f"{name}.ll").read_text(encoding="utf-8")


@dataclass(frozen=True)
class HostProcessor:
    """A host, as LLVM and ``flush_functions`` know it."""

    name: str
    features: str
    mode: str


@cache
def this_host() -> HostProcessor:
    """Return the processor that this process runs on."""
    modes = {"x86_64": "x86", "amd64": "x86", "aarch64": "arm", "arm64": "arm"}
    mode = modes.get(platform.machine().lower(), "soft")
    return HostProcessor(*host_processor(), mode)
